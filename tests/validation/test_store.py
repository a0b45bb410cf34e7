"""What the name of a cell is made of."""

from dataclasses import replace

import numpy as np
from scipy.stats import norm

import replica
from replica import (
    Activation,
    GradientStep,
    Loss,
    MultiIndex,
    SpikedRandomFeatures,
    loss,
)  # fmt: skip
from validation import simulate
from validation.run import store
from validation.run.store import describe_cells

MODEL = SpikedRandomFeatures(student="tanh", target="sin", r=1.0, c=1.2, gamma=0.8)
LAW = replica.GaussianMixture(means=[[1.0], [-1.0]])
WEIGHTS = np.random.default_rng(0).standard_normal((12, 20)) / 4
OPTIONS = dict(alpha=[0.5, 1.5], lam=[0.01, 1.0], dimension=30, seeds=3, rng=3)

CHANGES = [
    dict(alpha=[0.5, 1.6]), dict(lam=[0.01, 2.0]), dict(dimension=31), dict(rng=4),
    dict(test_samples=7), dict(simulated="gaussian"),
]  # fmt: skip
STEP = GradientStep(student="tanh", target="sin", alpha0=2, eta=1)
READOUTS = ["gaussian", "box", [-1, 1], norm(0, 2), norm(0, 3)]
LAWS = [LAW, replica.GaussianMixture(means=[[1.5], [-1.5]])]
LABELS = ["outliers:0.1:9", "outliers:0.10000001:9", "student:3", "student:3:0.5"]
PROBLEMS = [
    replace(MODEL, r=1.1), replace(MODEL, c=1.0), replace(MODEL, gamma=0.7),
    replace(MODEL, beta=2.0), replace(MODEL, noise=0.1), replace(MODEL, intercept=True),
    replace(MODEL, student="erf"), replace(MODEL, bias=0.5), replace(MODEL, train_bias=True),
    replace(MODEL, student=Activation(np.tanh, name="tanh", derivative=np.cos)),
    replace(MODEL, target=Activation(lambda x: np.sin(1.0001 * x), name="sin")),
    replace(MODEL, target=MultiIndex(np.sin, dimension=1, name="sin")),
    *(replace(STEP, readout=law) for law in READOUTS),
    *(replace(MODEL, label_noise=law) for law in LABELS),
    *(replace(STEP, inputs=law) for law in LAWS),
]  # fmt: skip
LOSSES = [
    *(loss(name) for name in ("huber:0.3", "huber:0.30000001", "absolute", "quantile:0.3")),
    Loss(np.cosh, np.sinh, name="mine"), Loss(np.exp, np.exp, name="mine"),
]  # fmt: skip


def given_layer(factor, inputs=None):
    layer = replica.FirstLayer(
        weights=factor * WEIGHTS,
        student="relu",
        target="sin",
        directions=np.eye(20)[0],
        inputs=inputs,
    )
    return simulate(layer, samples=10, lam=0.1, seeds=2, rng=3).experiment


def test_everything_that_matters_is_in_the_name(tmp_path):
    """By names and by values: names show six digits."""
    base = simulate(MODEL, **OPTIONS).experiment
    variants = [base, *(simulate(MODEL, **OPTIONS | change).experiment for change in CHANGES)]
    variants += [replace(base, problem=problem) for problem in PROBLEMS]
    variants += [replace(base, loss=of) for of in LOSSES]
    variants += [given_layer(1.0), given_layer(1 + 1e-12)]
    variants += [given_layer(1.0, law) for law in LAWS]
    cells = [cell for one in variants for cell in describe_cells(one, (0, 1)).values()]
    assert cells[0]["version"] == replica.__version__
    names = [store.file_of(tmp_path, cell) for cell in (*cells, cells[0] | {"version": "0.0.0"})]
    assert len(set(names)) == len(names)
    again = replace(base, problem=replace(STEP, inputs=replace(LAW)))
    assert store.file_of(tmp_path, describe_cells(again, (0,))[0]) in names
