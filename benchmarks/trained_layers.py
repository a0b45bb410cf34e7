"""Networks in PyTorch's conventions, trained by numpy alone: first layers to be given.

Weights and biases start uniform on +-1/sqrt(number of inputs), as those of nn.Linear, and the
readout has that law, too.  The loss of the training is the mean square.  A number draws a setting,
and with it an optimiser, sizes, the law of inputs, and what the readout is trained on afterwards.
"""

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.random import Generator, default_rng

import replica
from replica.problem import LabelLaw, activation, target

STUDENTS = ("relu", "tanh", "gelu", "softplus")
TARGETS = ("sin", "tanh", "relu", "sin(2*z1)", "z1 + z1*z2", "z1 + z2**2 - 1")
LOSSES = ("square", "square", "huber:0.5", "logistic")
INPUTS = ("N(0, I)", "mixture", "power law")
OPTIMISERS = ("one giant step", "SGD, one batch", "Adam, fresh batches", "Adam, one batch")
SIZES = (400, 800)  # p and d are between these


@dataclass(frozen=True)
class Setting:
    """What is trained, and on what: a network of d inputs and p neurons, then its readout."""

    number: int
    optimiser: str
    student: str
    target: str
    loss: str
    inputs: str
    dimension: int
    width: int
    samples: int
    lam: float
    noise: float

    @property
    def cells(self) -> list[str]:
        """Those of a table."""
        sizes = f"{self.dimension}, {self.width}, {self.samples}"
        of = f"{self.student}/{self.target}"
        settings = [self.optimiser, of, self.inputs, self.loss, sizes]
        return [str(self.number), *settings, f"{self.lam:g}", f"{self.noise:g}"]


ORDINARY = 24  # settings, after which all readouts interpolate
HEADS = ["number", "optimiser", "student/target", "inputs", "loss", "d, p, n", "lam", "noise"]


def drawn(number: int, sizes: tuple[int, int] = SIZES) -> Setting:
    """The setting of a number: optimisers take turns, all else is drawn; from ``ORDINARY`` on
    readouts are ridge regression on half as many samples as neurons, at lam = 1e-6."""
    rng = default_rng([1, number])
    d, p = (int(x) for x in rng.integers(*sizes, 2))
    while abs(p / d - 1) < 0.1:
        p = int(rng.integers(*sizes))
    loss = str(rng.choice(LOSSES)) if number < ORDINARY else "square"
    binary = loss == "logistic"
    setting = Setting(
        number=number,
        optimiser=OPTIMISERS[number % len(OPTIMISERS)],
        student=str(rng.choice(STUDENTS)),
        target="sign" if binary else str(rng.choice(TARGETS)),
        loss=loss,
        inputs=str(rng.choice(INPUTS)),
        dimension=d,
        width=p,
        samples=round(p * np.exp(rng.uniform(np.log(0.25), np.log(5)))),
        lam=round(float(np.exp(rng.uniform(np.log(0.01), np.log(0.3)))), 3),
        noise=0.0 if binary else float(rng.choice([0, 0.1, 0.3])),
    )
    return setting if number < ORDINARY else replace(setting, samples=p // 2, lam=1e-6)


class Inputs(NamedTuple):
    """Gaussian components: fractions (J,), means (J, d), and roots R (J, d, d) of covariances
    R^T R."""

    fractions: Any
    means: Any
    roots: Any

    def draw(self, rng: Generator, count: int) -> Any:
        """Inputs (count, d)."""
        own = rng.choice(len(self.fractions), count, p=self.fractions)
        X = rng.standard_normal((count, self.means.shape[1]))
        for j, root in enumerate(self.roots):
            X[own == j] = X[own == j] @ root
        return X + self.means[own]

    @property
    def given(self) -> Any:
        """The same for ``FirstLayer``; None for N(0, I)."""
        if (self.roots == np.eye(self.means.shape[1])).all() and not self.means.any():
            return None
        return replica.GaussianMixture(
            means=self.means,
            covariances=self.roots.swapaxes(1, 2) @ self.roots,
            fractions=self.fractions,
        )


def power_law(d: int, exponent: float) -> Any:
    """The root (d, d) of a covariance with eigenvalues that fall as k^-exponent, of trace d."""
    sizes = np.arange(1.0, d + 1) ** -exponent
    return np.diag(np.sqrt(sizes / sizes.mean()))


def inputs_of(setting: Setting, rng: Generator) -> Inputs:
    """The law of the inputs."""
    d = setting.dimension
    if setting.inputs == "power law":
        return Inputs(np.ones(1), np.zeros((1, d)), power_law(d, rng.choice([0.5, 1.0]))[None])
    if setting.inputs == "N(0, I)":
        return Inputs(np.ones(1), np.zeros((1, d)), np.eye(d)[None])
    count = int(rng.integers(2, 4))
    fractions = rng.dirichlet(np.full(count, 5.0))
    means = rng.standard_normal((count, d)) * 1.5 / np.sqrt(d)
    roots = []
    for _ in range(count):
        axes = np.linalg.qr(rng.standard_normal((d, d)))[0]
        roots.append(power_law(d, rng.uniform(0, 0.5)) @ axes)
    return Inputs(fractions, means, np.array(roots))


def trained(setting: Setting) -> replica.FirstLayer:
    """The first layer after the training."""
    rng = default_rng([2, setting.number])
    d, p = setting.dimension, setting.width
    of, student = target(setting.target), activation(setting.student)
    inputs = inputs_of(setting, rng)
    directions = np.linalg.qr(rng.standard_normal((d, of.dimension)))[0]
    law, count = LabelLaw(of, setting.noise, None), int(rng.uniform(1, 4) * d)

    def batch():
        X = inputs.draw(rng, count)
        return X, law.draw(directions.T @ X.T, rng)

    shapes = ((p, d), d), ((p,), d), ((p,), p), ((), p)
    start = [rng.uniform(-1, 1, shape) / np.sqrt(fan) for shape, fan in shapes]
    weights, bias, *_ = OF[setting.optimiser](start, batch, student, rng)
    return replica.FirstLayer(
        weights=weights, bias=bias, student=student, target=of, directions=directions,
        noise=setting.noise, inputs=inputs.given,
    )  # fmt: skip


def gradients(parameters, batch, student):
    """Those of the mean square loss: weights (p, d), biases (p,), readout (p,) and its bias."""
    weights, bias, readout, intercept = parameters
    X, y = batch
    fields = X @ weights.T + bias
    features = student(fields)
    residual = 2 / len(y) * (features @ readout + intercept - y)
    back = residual[:, None] * student.slope(fields) * readout
    return [back.T @ X, back.sum(axis=0), features.T @ residual, residual.sum()]


def giant_step(start, batch, student, rng):
    """One step of the first layer at a rate of order sqrt(p)."""
    return descend(start, [batch()], [rng.uniform(1, 4) * np.sqrt(len(start[0]))], student)


def growing_rate(start, batch, student, rng):
    """Five steps of the first layer on one batch, each at three times the rate: they diverge."""
    X, y = batch()
    rate = rng.uniform(1, 2) / (np.linalg.norm(X, 2) ** 2 / len(X))
    return descend(start, [(X, y)] * 5, rate * 3.0 ** np.arange(5), student)


def descend(parameters, batches, rates, student):
    """Gradient descent of the first layer, at a readout that stays as it is."""
    for given, rate in zip(batches, rates, strict=True):
        slopes = gradients(parameters, given, student)
        moved = [x - rate * slope for x, slope in zip(parameters[:2], slopes, strict=False)]
        parameters = [*moved, *parameters[2:]]
    return parameters


def adam_fresh(start, batch, student, rng):
    """Adam of all parameters, a batch for each of ten steps."""
    return adam(start, [batch() for _ in range(10)], rng.uniform(0.003, 0.02), student)


def adam_one(start, batch, student, rng):
    """Adam of all parameters, twenty steps on one batch."""
    return adam(start, [batch()] * 20, rng.uniform(0.002, 0.01), student)


def adam(parameters, batches, rate, student):
    """Adam with the usual constants."""
    first, second = ([np.zeros_like(x) for x in parameters] for _ in range(2))
    for t, given in enumerate(batches, 1):
        slopes = gradients(parameters, given, student)
        first = [0.9 * m + 0.1 * g for m, g in zip(first, slopes, strict=True)]
        second = [0.999 * v + 0.001 * g**2 for v, g in zip(second, slopes, strict=True)]
        parameters = [
            x - rate * (m / (1 - 0.9**t)) / (np.sqrt(v / (1 - 0.999**t)) + 1e-8)
            for x, m, v in zip(parameters, first, second, strict=True)
        ]
    return parameters


OF = dict(zip(OPTIMISERS, (giant_step, growing_rate, adam_fresh, adam_one), strict=True))
