"""Moments of neurons, and strata of layers after giant steps."""

import numpy as np
import pytest

import replica
from replica.convex import loss
from replica.given.layer_strata import NodeMoments, hermite_features, layer_strata
from replica.given.nodes import STRATA_LEVELS
from replica.given.solve_point import solve_point
from replica.problem import activation
from solvers.rules import drop_light_nodes, gauss_hermite, tensor_rule, trapezoid


@pytest.mark.parametrize("student", ["relu", "tanh", "gelu", "sin"])
@pytest.mark.parametrize("spread", [0, 0.2, 3])
def test_a_table_has_the_moments_of_every_neuron(student, spread):
    rng, of = np.random.default_rng(0), activation(student)
    c = np.exp(spread * rng.uniform(-1, 1, 5))
    c[3] = 0.0  # sees special directions alone
    s = rng.standard_normal(5) + 20 * rng.uniform(size=5) * rng.uniform(-1, 1, (20_000, 5))
    exact = hermite_features(of, s[::40], c, 5)
    table, few = NodeMoments(of, s, c, 5), NodeMoments(of, s[:41:40], c, 5)
    if (student, spread) != ("sin", 3):  # whose table takes more integrals than there are moments
        assert table.tabulated.tolist() == [True, True, True, False, True]
    assert not few.tabulated.any()
    for k in range(7):
        # the table is made to 1e-8 or so
        assert np.abs(table.at(k)[::40] - exact[k]).max() < 1e-6 * np.abs(exact).max()
        np.testing.assert_allclose(few.at(k), exact[k, :2], rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize(
    ("student", "size"),
    [
        ("tanh", 0.5),
        *(pytest.param("tanh", size, marks=pytest.mark.slow) for size in (5, 50)),
        *(pytest.param("relu", size, marks=pytest.mark.slow) for size in (0.5, 5, 50)),
    ],
)
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
    # an independent rule: equal steps of a fiftieth of those on which the largest step varies
    finest = STRATA_LEVELS[-1]
    (given,) = layer._conditioned(layer.special)
    rule = trapezoid(2001)
    rule = type(rule)(rule.nodes[:, None], rule.weights)
    strata = layer_strata(given, layer.student, rule, finest.k_max, finest.tol)
    exact = layer.cut(finest, layer.special)
    moments = exact.moments._replace(
        weights=rule.weights, h=np.sin(rule.nodes[:, 0]), spread=np.zeros(2001)
    )
    solved = solve_point(exact._replace(strata=strata, moments=moments), loss("square"), 200, 0.01)
    field = solved.field
    error = rule.weights @ ((moments.h - field.centre[0]) ** 2 + field.variance[0])
    assert abs(found.test_error / error - 1) < 2e-4  # twice what is asked for


def test_heavy_tails_of_a_rule_do_not_count():
    rule = tensor_rule(gauss_hermite(24), gauss_hermite(24))
    kept = drop_light_nodes(rule)
    assert kept.weights.size < rule.weights.size
    assert kept.weights.sum() == pytest.approx(1)
    # E z^4; what is left out holds 1e-6
    assert (kept.nodes**4).T @ kept.weights == pytest.approx(3, rel=1e-5)


class Linear:
    """As a module of torch has them."""

    weight, bias = np.ones((7, 5)), np.ones(7)

    def state_dict(self):
        return {"weight": self.weight, "bias": self.bias}


STATE = {"0.bias": np.ones(7), "0.weight": np.ones((7, 5)), "2.weight": np.ones((1, 7))}


@pytest.mark.parametrize(
    ("given", "name"),
    [
        (dict(weights=STATE), "weights"),
        (dict(weights=Linear()), "weights"),
        (dict(weights=Linear.weight, bias=STATE), "bias"),
        (dict(weights=Linear.weight, bias=Linear()), "bias"),
    ],
)
def test_modules_are_no_arrays(given, name):
    with pytest.raises(replica.InvalidArgument, match=f"{name} must be an array of numbers"):
        replica.FirstLayer(**given, student="relu", target="z1", directions=np.eye(5)[0])
