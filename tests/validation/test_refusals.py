"""What simulations, comparisons and models of mixtures refuse, by the name of the argument."""

from dataclasses import replace

import numpy as np
import pytest

from replica import GradientStep, InvalidArgument, Loss
from tests.problems import MODEL, OUTLIERS, THREE
from tests.validation.test_given import LAYER, features
from validation import compare, draw, ladder, simulate
from validation.measure import initial_layer, measured_function, single_step
from validation.mixtures import (
    expand,
    mixture,
    needed_order,
    regression,
    scaling,
    side_by_side,
)

STEP = GradientStep(student="tanh", target="sin", alpha0=2, eta=1.0)
POINT = dict(alpha=1, lam=0.1)
SMALL = POINT | dict(dimension=50, seeds=2)
TWO = dict(lam=0.1, seeds=2)
OF_THREE = replace(features(60), labels=np.arange(60) % 3, classes=None)
NETWORK = dict(dimension=30, seeds=2, rng=0, lam=0.1)


def named(call, name, *values, **others):
    """A case of each of the values of an argument, and of the other arguments as they are."""
    return [(name, call, {name: value} | others) for value in values] or [(name, call, others)]


def compared(**changes):
    return compare(MODEL, **SMALL | changes)


def laddered(**changes):
    return ladder(MODEL, **POINT | dict(dimensions=[30, 60], seeds=2) | changes)


def drawn(problem, **options):
    return draw(problem, **dict(dimension=30) | options)


def fitted(model, **options):
    return simulate(model, **TWO | options)


def reused(reuse=0.0, run=simulate, **options):
    return run(STEP.network(beta=1.0, reuse=reuse), **NETWORK | options)


def mixed(**changes):
    task = regression(mixture(10, eigenvalues=1.0), rng=1)
    of = dict(students=["tanh"], orders=[2], width=5, samples=5, lam=1e-2, rate=1.0)
    return side_by_side(task, **of | changes)


def expanded(**given):
    return expand("tanh", **given)


def published(dimension=30, samples=900):
    layer, readout = initial_layer(student="relu", target="z1*z2", dimension=dimension, width=5)
    return single_step(layer, readout, samples=samples)


def along(**options):
    return measured_function(STEP, **POINT, kappa=0, dimension=30, seeds=2, beta=1.0, **options)


CASES = [
    # a comparison of an sRF
    *named(compared, "alpha", 0, [[1, 2]], 1e-4, 1e18),
    *named(compared, "lam", 0, np.nan),
    *named(compared, "dimension", 1, 50.0),
    *named(compared, "memory", "2 apples", "0GB", "10MB"),
    *named(compared, "shard", "3/2", "0/2", "1/3", "one"),
    *named(compared, "seeds", 1),
    *named(compared, "test_samples", 0),
    *named(compared, "simulated", "hermite"),
    *named(compared, "workers", 0),
    *named(compared, "device", "nonsense"),
    *named(compared, "beta", 1.0),
    *named(compared, "allowance", -0.1),
    ("rng", compared, dict(store="cells")),
    ("store", compared, dict(store="/dev/null/cells", rng=0)),
    # a ladder of sizes
    *(("ladder", laddered, dict(dimensions=of)) for of in ([50], [50, 50], [1, 50], [50, 60.5])),
    *named(laddered, "seeds", 1),
    *named(laddered, "shard", "1/2"),
    # a drawn layer
    *named(drawn, "problem", "tanh"),
    *named(drawn, "beta", None, -1, 1e-3, problem=STEP),
    *named(drawn, "beta", 0.5, problem=MODEL),
    *named(drawn, "dimension", 1, 30.5, problem=MODEL),
    *named(drawn, "rng", "seed", -1, problem=MODEL),
    *(("alpha0", drawn, dict(problem=replace(STEP, alpha0=of), beta=1)) for of in (np.inf, 1e-3)),
    ("alpha0", drawn, dict(problem=replace(THREE, steps=[(2, 1), (np.inf, 1)]), beta=1.0)),
    ("student", drawn, dict(problem=replace(STEP, student="sign"), beta=1)),
    # given layers and features
    ("samples", fitted, dict(model=LAYER)),
    *named(fitted, "samples", 0, [10, 2.5], [], model=LAYER),
    ("samples", fitted, dict(model=LAYER, samples=10, alpha=1)),
    *named(fitted, "alpha", -1, model=LAYER),
    *named(fitted, "alpha", 1, model=features(60)),
    *named(fitted, "dimension", 20, model=LAYER, samples=10),
    *named(fitted, "beta", 1, model=LAYER, samples=10),
    *named(fitted, "simulated", "srf", model=LAYER, samples=10),
    *named(fitted, "loss", "hinge", model=LAYER, samples=10),
    *named(fitted, "loss", "hinge", model=OF_THREE, samples=40),
    *named(fitted, "samples", 60, model=features(60)),
    *named(fitted, "test_samples", 11, model=features(60), samples=50),
    ("samples", fitted, dict(model=STEP, samples=10, beta=1, alpha=1, dimension=20)),
    ("alpha", fitted, dict(model=STEP, beta=1, dimension=20)),
    # samples of the step that the readout has again
    ("alpha0", reused, dict(reuse=1.0, alpha=3)),
    (
        "alpha0",
        lambda: compare(
            replace(STEP, alpha0="alpha"), alpha=[1, 2], beta=1, theory="given", **NETWORK
        ),
        {},
    ),
    *named(reused, "beta", 1.0, alpha=1),
    *named(reused, "simulated", "srf", alpha=1),
    *named(reused, "theory", "srf", run=compare, alpha=1),
    *named(reused, "theory", "given", run=compare, reuse=1, alpha=1),
    # the theory given the layers drawn is that of networks of one size
    ("theory", lambda: compare(STEP, theory="given", beta=0.5, **SMALL, simulated="gaussian"), {}),
    (
        "theory",
        lambda: ladder(STEP, theory="given", beta=0.5, **POINT, dimensions=[40, 80], seeds=2),
        {},
    ),
    # losses that no readout is fitted with
    ("loss", lambda: compared(loss=Loss(np.abs, np.sign, kinks=(0.0,))), {}),
    ("loss", lambda: simulate(OUTLIERS, loss="hinge", **SMALL), {}),
    ("loss", lambda: simulate(replace(OUTLIERS, train_bias=True), loss="absolute", **SMALL), {}),
    # mixtures and their Hermite models
    *named(mixed, "width", 0),
    *named(mixed, "lam", 0.0),
    *named(mixed, "rate", -1.0),
    ("order", mixed, dict(orders=[0])),
    *named(expanded, "order", 0, 22),
    *named(expanded, "b", 0.0, order=3),
    ("data_spread", lambda: needed_order(1.2), {}),
    ("split", lambda: scaling(10, data_spread=0.5, split=2), {}),
    ("noise", lambda: regression(mixture(10, eigenvalues=1.0), noise=-1.0), {}),
    ("alignment", lambda: mixture(20, eigenvalues=1.0, alignment=1.1), {}),
    ("alignment", lambda: mixture(20, eigenvalues=1.0, components=3, alignment=-0.6), {}),
    ("aligned", lambda: regression(mixture(9, eigenvalues=1.0, alignment=-1.0), aligned=True), {}),
    ("eigenvalues", lambda: mixture(50, eigenvalues=1.0, spikes=[1, 0]), {}),
    # what is measured of a network
    *named(published, "samples", 0),
    *named(published, "dimension", 2),
    *named(along, "direction", "z1"),
]


@pytest.mark.parametrize(("name", "call", "given"), CASES)
def test_bad_input_is_named(name, call, given):
    with pytest.raises(InvalidArgument) as caught:
        call(**given)
    assert caught.value.name == name
