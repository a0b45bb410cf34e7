"""Both layers trained on the same samples: reference numbers, and identities of the equations.

The reference numbers, in ``section_21.toml``, are from the prototype of the derivation (section 21
of the docs' theory page), whose nodes leave some 1e-7.
"""

import tomllib
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from replica import GradientStep, solve
from replica.reuse.evaluate_reused import REUSE_RESIDUAL_TOLERANCE, Readout
from replica.reuse.sample_nodes import _neurons, nodes_with_features

NODES = 1e-6  # nodes of the prototype and ours, of errors of order one
NAMES = ["student", "target", "eta", "alpha0", "beta", "lam", "noise"]
KNOWN = tomllib.loads(Path(__file__).with_name("section_21.toml").read_text())
ROWS, ERRORS, PAIRS, PARTS, HALVES, KINDS, TWELVE = (
    KNOWN[name] for name in ("rows", "errors", "pairs", "parts", "halves", "kinds", "twelve")
)
ALL = pytest.mark.parametrize(
    "row", [pytest.param(row, marks=[pytest.mark.slow] * (row not in "AD")) for row in ROWS]
)


def asked(row, **changes):
    """The step, beta and lam of a row of the table."""
    values = dict(zip(NAMES, row, strict=True)) | changes
    beta, lam = values.pop("beta"), values.pop("lam")
    return GradientStep(**values), beta, lam


def solved(row):
    """Test and training errors at alpha = alpha0, all samples reused."""
    step, beta, lam = asked(row)
    point = solve(step.network(beta=beta, reuse=1.0), alpha=step.alpha0, lam=lam)
    assert point.converged
    return point.test_error, point.train_error


@cache
def nodes_of(step, level=0, shares=(1.0,), readouts=(1.0,), biases=(0.0,), norms=True):
    return nodes_with_features(step, (readouts, biases), shares, level, norms)


def readout_of(row="A", level=0, **values):
    """The readout of a row, all of its samples reused unless ``counts`` are given."""
    step, beta, lam = asked(ROWS[row])
    counts = values.pop("counts", (step.alpha0, 0.0, 0.0))
    return Readout(nodes_of(step, level, **values), counts, beta, lam)


def without_pairs(nodes):
    """Strata without (21.14), which the prototype lacks."""
    neurons = tuple(
        kind._replace(trained=kind.trained._replace(by_pairs=0 * kind.trained.by_pairs))
        for kind in nodes.neurons
    )
    return nodes._replace(neurons=neurons)


def errors_of_prototype(row, share=1.0, row_norms=True, level=4, **changes):
    """Test and training errors without (21.14), at alpha = alpha0, samples reused in a
    ``share``."""
    step, beta, lam = asked(row, **changes)
    kinds = kinds_of(step.network(beta=beta))
    nodes = without_pairs(nodes_with_features(step, *kinds, level, row_norms))
    counts = share * step.alpha0, (1 - share) * step.alpha0, (1 - share) * step.alpha0
    readout = Readout(nodes, counts, beta, lam)
    found = readout.errors(readout.solve_cavity())
    return found.test, found.train


def kinds_of(model):
    """Readouts and biases of every kind of neurons, and their shares."""
    shares = np.ravel(1.0 if model.fractions is None else model.fractions)
    return tuple(tuple(values.tolist()) for values in model.rows.kinds), tuple(shares.tolist())


@ALL
def test_errors(row):
    assert np.allclose(errors_of_prototype(ROWS[row]), ERRORS[row][:2], rtol=0, atol=NODES)


@ALL
def test_errors_with_pairs_of_samples(row):
    """Numbers of this code with (21.14), whose term ``test_noise_of_two_samples`` simulates."""
    assert np.allclose(solved(ROWS[row]), PAIRS[row], rtol=0, atol=NODES)


@ALL
def test_errors_without_row_norms(row):
    found = errors_of_prototype(ROWS[row], row_norms=False)
    assert np.allclose(found, ERRORS[row][2:4], rtol=0, atol=NODES)


@ALL
def test_errors_of_gaussian_rows(row):
    found = errors_of_prototype(ROWS[row], initialisation="gaussian")
    assert np.allclose(found, ERRORS[row][4:], rtol=0, atol=NODES)


@ALL
def test_parts_of_the_error_and_overlaps(row):
    readout = readout_of(row, 4 if row == "F" else 3)  # few samples: steep responses
    readout = replace(readout, sample_nodes=without_pairs(readout.sample_nodes))
    cavity = readout.solve_cavity()
    found = readout.errors(cavity)
    theta, chi = found.overlaps.theta.T
    overlaps = found.overlaps.m, theta, found.overlaps.psi[:, 0], chi
    parts = readout.lam / cavity.g, *overlaps, [found.bias], [found.variance]
    assert np.allclose(np.ravel(parts), PARTS[row], rtol=0, atol=NODES)  # six digits printed


@pytest.mark.slow
@pytest.mark.parametrize("row", HALVES)
def test_half_of_the_samples_reused(row):
    assert np.allclose(errors_of_prototype(ROWS[row], 0.5), HALVES[row], rtol=0, atol=NODES)


@pytest.mark.slow
@pytest.mark.parametrize("row", KINDS)
def test_two_readout_values(row):
    values, readout, errors = KINDS[row]
    found = errors_of_prototype(values, readout=readout)
    assert np.allclose(found, errors, rtol=0, atol=NODES)


@pytest.mark.slow
@pytest.mark.parametrize("row", TWELVE)
def test_fresh_samples_are_those_of_the_networks_own_theory(row):
    *values, also = row
    step, beta, lam = asked(values, **also)
    model = step.network(beta=beta)
    of = nodes_with_features(step, *kinds_of(model), 4)
    readout = Readout(of, (0.0, step.alpha0, 1.3), beta, lam)
    found = readout.errors(readout.solve_cavity())
    point = solve(model, alpha=1.3, lam=lam)
    assert np.allclose(
        [found.test, found.train], [point.test_error, point.train_error], rtol=0, atol=1e-7
    )


PAIR = dict(shares=(0.4, 0.6), readouts=(1.5, -0.5), biases=(0.0, 0.3))


def test_responses_of_two_kinds_are_a_gradient():
    readout = readout_of("D", **PAIR)
    found = readout.errors(readout.solve_cavity())
    assert abs(found.stability[0, 1]) > 0.1
    # of differences of numbers of order ten
    assert np.allclose(found.stability, found.stability.T, rtol=0, atol=1e-10)


@pytest.mark.parametrize("values", [{}, PAIR])
def test_squared_norm_is_the_slope_of_the_training_objective(values):
    """d (lam Y) / d lam = a_2, of lam Y = lam a_2 + (alpha) eps_t, by differences."""
    readout = readout_of("D", **values)
    lam, objective = readout.lam, []
    found = readout.errors(readout.solve_cavity())
    for k in (-2, -1, 1, 2):
        readout.lam = lam * (1 + 1e-2 * k)
        at = readout.errors(readout.solve_cavity())
        objective.append(readout.lam * at.squared_norm + readout.counts[0] * at.train)
    slope = np.array([1, -8, 8, -1]) @ objective / (12e-2 * lam)
    assert slope == pytest.approx(found.squared_norm, rel=1e-7)  # of differences of order four


@pytest.mark.parametrize("norms", [True, False])
def test_a_kind_that_is_split_in_two_changes_nothing(norms):
    one = readout_of("D", norms=norms)
    two = readout_of("D", shares=(0.3, 0.7), readouts=(1.0, 1.0), biases=(0.0, 0.0), norms=norms)
    of = [each.errors(each.solve_cavity()) for each in (one, two)]
    whole, split = ([found.test, found.train, found.bias] for found in of)
    assert np.allclose(whole, split, rtol=1e-8, atol=0)  # a singular system for m of both


@pytest.mark.parametrize("values", [{}, PAIR])
def test_corrupted_unknowns_are_flagged(values):
    """Every response factor and element of the covariance, changed after the solution."""
    readout = readout_of("D", **values)
    cavity = readout.solve_cavity()
    assert readout.errors(cavity).residual < REUSE_RESIDUAL_TOLERANCE
    for b in range(len(cavity.g)):
        g = cavity.g.copy()
        g[b] *= 1 + 1e-6
        assert readout.errors(cavity._replace(g=g)).residual > REUSE_RESIDUAL_TOLERANCE
    for i, j in zip(*np.triu_indices(len(cavity.G)), strict=True):
        G = cavity.G.copy()
        G[i, j] = G[j, i] = G[i, j] + 1e-6 * np.abs(G).max()
        assert readout.errors(cavity._replace(G=G)).residual > REUSE_RESIDUAL_TOLERANCE


@pytest.mark.slow
def test_noise_of_two_samples():
    """Covariance, over simulated neurons, of what (21.3) leaves of the features of two samples:
    tau tau^T / d of (21.14)."""
    d, eta, factors, rng = 200, 4.0, [], np.random.default_rng(1)
    step = GradientStep(student="relu", target="sin", alpha0=1, eta=eta)
    h0, h1 = 1 / np.sqrt(2 * np.pi), 0.5
    for _ in range(12):
        X, W = rng.standard_normal((d, d)), rng.standard_normal((60 * d, d))
        W /= np.linalg.norm(W, axis=1, keepdims=True)
        residual = np.sin(X[:, 0]) - h0
        mean_row, own = eta / d * h1 * residual @ X, eta / d * residual * (X**2).sum(axis=1)
        size = np.linalg.norm(mean_row)
        kappa, N = (X @ mean_row - h1 * own) / size, size / (eta * h1)
        weights = np.full(d, 1 / d)
        of = _neurons(step, True, 1, 0, 0.0, 0.0, weights, residual, N, kappa, 200).trained
        Z = W @ X.T
        slope = (Z > 0) - h1
        V = W + eta / d * (slope * residual) @ X
        scalars = np.stack([(W * V).sum(axis=1), (V**2).sum(axis=1)], axis=1)
        noise = np.maximum((V + mean_row) @ X.T, 0) - of.slope_z * Z
        noise -= of.slope_omega * (V @ X.T - own * slope) + scalars @ of.scalars
        noise -= noise.mean(axis=0)
        tau = of.by_pairs
        found = ((noise @ tau) ** 2).mean() - (noise**2).mean(axis=0) @ tau**2  # off the diagonal
        factors.append(found * d / ((tau @ tau) ** 2 - (tau**4).sum()))
    # three standard errors of 12 draws; without (21.14) it is 0
    assert np.mean(factors) == pytest.approx(1, abs=0.25)
