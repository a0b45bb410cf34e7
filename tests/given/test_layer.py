"""Moments of neurons, and strata of layers after giant steps."""

import numpy as np
import pytest

import replica
from replica.convex import loss
from replica.given.layer import layer_strata
from replica.given.moments import MomentTable, hermite_moments
from replica.given.nodes import LEVELS
from replica.given.solve import solve_point
from replica.problem import activation
from solvers.rules import trapezoid


@pytest.mark.parametrize("student", ["relu", "tanh", "gelu", "sin"])
@pytest.mark.parametrize("spread", [0, 0.2, 3])
def test_a_table_has_the_moments_of_every_neuron(student, spread):
    rng, of = np.random.default_rng(0), activation(student)
    c = np.exp(spread * rng.uniform(-1, 1, 5))
    c[3] = 0.0  # sees special directions alone
    shift, reach = rng.standard_normal(5), 20 * rng.uniform(size=5)
    s = shift + reach * rng.uniform(-1, 1, (200, 5))
    found = MomentTable(of, shift, reach, c, 5, uses=10**6).at(s, slice(None))
    exact = hermite_moments(of, s, c, 5)
    # the table is made to 1e-8 or so; rank_tol, which it must not show in, is 1e-8 of squares
    assert np.abs(found - exact).max() < 1e-6 * np.abs(exact).max()
    few = MomentTable(of, shift, reach, c, 5, uses=1).at(s, slice(None))  # not tabulated
    np.testing.assert_allclose(few, exact, rtol=1e-9, atol=1e-12)
    some = np.array([4, 3, 1])
    table = MomentTable(of, shift, reach, c, 5, uses=10**6)
    # but for the order of sums
    np.testing.assert_allclose(table.at(s[:9, some], some), found[:, :9, some], rtol=1e-9)


@pytest.mark.parametrize("size", [0.5, 5, 50])
@pytest.mark.parametrize("student", ["tanh", "relu"])
def test_features_may_vary_on_a_small_part_of_a_direction(student, size):
    # rows after a giant step: along it they are ``size`` times what else they have
    rng, p = np.random.default_rng(1), 150
    weights = 0.5 * rng.standard_normal((p, p)) / np.sqrt(p)
    weights[:, :1] = size * (1 + 0.3 * rng.standard_normal((p, 1))) * rng.choice([-1, 1], (p, 1))
    bias = 0.3 * rng.standard_normal(p)
    directions = np.eye(p)[:, :1]
    layer = replica.FirstLayer(
        weights=weights, bias=bias, student=student, target="sin", directions=directions, beside=0
    )
    found = replica.solve(layer, samples=200, lam=0.01, quadrature_tol=1e-4)
    assert found.converged
    # an independent rule: equal steps of a hundredth of those on which the largest step varies
    finest = LEVELS[-1]
    (given,) = layer._conditioned
    rule = trapezoid(4001)
    rule = type(rule)(rule.nodes[:, None], rule.weights)
    strata = layer_strata(given, layer.student, rule, finest)
    exact = layer.cut(finest)
    moments = exact.moments._replace(
        weights=rule.weights, h=np.sin(rule.nodes[:, 0]), spread=np.zeros(4001)
    )
    solved = solve_point(exact._replace(strata=strata, moments=moments), loss("square"), 200, 0.01)
    field = solved.field
    error = rule.weights @ ((moments.h - field.centre[0]) ** 2 + field.power[0])
    assert abs(found.test_error / error - 1) < 2e-4  # twice what is asked for
