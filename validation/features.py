"""First layers of finite size, drawn at random: the network after its step, and the sRF.

At input dimension d the width is p = round(beta d).  Inputs are x ~ N(0, I_d), features
sigma(W x) and targets sigma_*(w* . x) + sqrt(Delta) xi.  Inputs and initial rows are
invariant under rotation, so w* = e_1, and u in the plane of e_1 and e_2, lose no generality.
"""

from collections.abc import Callable, Iterable
from dataclasses import MISSING, dataclass, fields, replace
from typing import Any

import numpy as np
from numpy.random import Generator, default_rng

from replica.activations import Activation
from replica.errors import InvalidArgument
from replica.grids import Problem
from replica.models import GradientStep, SpikedRandomFeatures
from solvers.results import Array

from .arguments import seed_sequence, size, whole
from .data import gaussian_inputs


@dataclass(frozen=True, eq=False)
class Instance:
    """One drawn first layer, and the target to learn on it.

    Attributes
    ----------
    W : (p, d)
        First-layer rows w_i.
    w_star : (d,)
        Target direction w*, a unit vector.
    student : Activation
        sigma.
    target : callable
        sigma_*.
    noise : float
        Variance Delta of the label noise.
    """

    W: Array
    w_star: Array
    student: Activation
    target: Callable[[Array], Array]
    noise: float

    def features(self, X: Array) -> Array:
        """Phi = sigma(X W^T), (n, p), of inputs (n, d)."""
        return self.student(X @ self.W.T)

    def targets(self, X: Array) -> Array:
        """Noiseless targets sigma_*(w* . x), (n,)."""
        return self.target(X @ self.w_star)

    def labels(self, X: Array, rng: Generator) -> Array:
        """Targets with fresh noise of variance Delta, (n,)."""
        return self.targets(X) + np.sqrt(self.noise) * rng.standard_normal(len(X))


def draw(
    problem: Problem, *, dimension: int, rng: Any = None, beta: float | None = None
) -> Instance:
    """Draw the first layer of ``problem`` at a finite input dimension.

    Parameters
    ----------
    problem : GradientStep or SpikedRandomFeatures
        The network, which then takes its step on n0 = round(alpha0 d) samples of its own; or
        the sRF, rows sqrt(c) w_i + r u with w_i uniform on the unit sphere.
    dimension : int
        Input dimension d, 2 or more.
    rng : None, int, SeedSequence or Generator
    beta : float
        Width over input dimension p/d, for a GradientStep; an sRF has its own.

    Raises
    ------
    InvalidArgument
        If an argument is out of range, the step has infinitely many samples, the student has
        a jump (no gradient), or the problem has options that are not simulated: several
        groups of neurons, spikes or target directions, biases, an intercept.

    Examples
    --------
    >>> from replica import GradientStep
    >>> step = GradientStep(student="tanh", target="sin", alpha0=2, eta=1.0)
    >>> draw(step, dimension=50, beta=0.5, rng=0).W.shape
    (25, 50)
    """
    model = spiked_model(problem, beta)
    d = whole("dimension", dimension, 2, "the input dimension d")
    # Streams of their own, so that the data do not depend on how they come in blocks.
    rows, inputs, noise = map(default_rng, seed_sequence(rng).spawn(3))
    W = sphere_rows(size("beta", model.beta, d), d, rows)
    e_1, e_2 = np.eye(2, d)
    start = Instance(W, e_1, model.student, model.target, model.noise)
    if isinstance(problem, SpikedRandomFeatures):
        u = model.gamma * e_1 + np.sqrt(1 - model.gamma**2) * e_2
        return replace(start, W=np.sqrt(model.c) * W + model.r * u)
    if problem.eta == 0:
        return start
    if not np.isfinite(problem.alpha0):
        raise InvalidArgument(
            "alpha0",
            problem.alpha0,
            "finite in a simulation, where the gradient is a sum over n0 = alpha0 d samples "
            "(take a large alpha0, or simulate step.srf(beta=...))",
        )
    blocks = gaussian_inputs(size("alpha0", problem.alpha0, d), d, inputs, width=len(W))
    batch = ((X, start.labels(X, noise)) for X in blocks)
    return replace(start, W=gradient_step(W, batch, student=start.student, eta=problem.eta))


def spiked_model(problem: Problem, beta: float | None) -> SpikedRandomFeatures:
    """The sRF that the theory makes of ``problem``; checks both arguments on the way."""
    if isinstance(problem, GradientStep):
        if beta is None:
            raise InvalidArgument("beta", beta, "given together with a GradientStep (p/d)")
        _check_simulated(problem)
        return problem.srf(beta=beta)
    if not isinstance(problem, SpikedRandomFeatures):
        raise InvalidArgument("problem", problem, "a GradientStep or a SpikedRandomFeatures")
    if beta is not None:
        raise InvalidArgument("beta", beta, "left out: a SpikedRandomFeatures has its own")
    _check_simulated(problem)
    return problem


def _check_simulated(problem: Problem) -> None:
    """Refuse whatever a draw would silently leave out: it knows one group, spike and target
    direction, and no option but beta and noise."""
    for name in ("target", "r", "c", "gamma"):
        value = getattr(problem, name, 0.0)
        if not isinstance(value, (Activation, float)):
            raise InvalidArgument(name, value, "of one direction, spike and group in a simulation")
    off = {f.name: f.default for f in fields(problem) if f.default is not MISSING}
    bare = replace(problem, **{k: v for k, v in off.items() if k not in ("beta", "noise")})
    for name in off:
        if getattr(problem, name) != getattr(bare, name):
            raise InvalidArgument(
                name, getattr(problem, name), "left at its default in a simulation"
            )


def sphere_rows(p: int, d: int, rng: Generator) -> Array:
    """p rows uniform on the unit sphere in d dimensions."""
    rows = rng.standard_normal((p, d))
    return np.asarray(rows / np.linalg.norm(rows, axis=1, keepdims=True))


def gradient_step(
    W: Array, batch: Iterable[tuple[Array, Array]], *, student: Activation, eta: float
) -> Array:
    """Rows (p, d) after one step of rate eta p, the readout being a_i = 1/sqrt(p).  Eq. (1.1)

    ``batch`` yields the samples in blocks of inputs (b, d) and labels (b,).
    """
    total = np.zeros_like(W)
    samples = 0
    for X, y in batch:
        fields = X @ W.T
        residual = y - student(fields).mean(axis=1)  # f0 = p^(-1/2) sum_i a_i sigma is a mean
        total += (residual[:, None] * student.slope(fields)).T @ X
        samples += len(X)
    return np.asarray(W + eta / samples * total)
