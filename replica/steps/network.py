"""The rows of the network itself after its giant steps, and the model that has them.
docs/theory.md 15-18"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import null_space

from solvers.results import Array

from ..errors import InvalidArgument
from ..problem import FINITE, Geometry, SpikedRandomFeatures, number, remainder
from ..saddle_point import GroupCovariance, RowCovariance, Rows, group_covariance
from .first_batch import first_batch
from .one_step import GROUPS, after_one_step
from .row_steps import row_steps
from .several_steps import srf_after_steps
from .step import Step

MODELS = ("srf", "network")  # what the theory of a step may be that of
GAUSSIAN_NORMS = 2.0  # d times the variance of the squared norm of a row N(0, I/d)


@dataclass(frozen=True)
class NetworkRows:
    """The rows of a network after its steps: their covariance, and the fluctuation of their norms.

    Attributes
    ----------
    step : GradientStep
    row_norms : bool
        Whether the fluctuation of the rows' norms is kept.

    Raises
    ------
    InvalidArgument
        If the step is one that this theory does not cover.
    """

    step: Step
    row_norms: bool = True

    def __post_init__(self) -> None:
        reason = unsuited(self.step)
        if reason:
            raise InvalidArgument("model", "network", f"srf here: {reason}")
        object.__setattr__(self, "row_norms", bool(self.row_norms))

    @cached_property
    def published(self) -> SpikedRandomFeatures:
        """The published model of the same steps, of width beta = 1."""
        return srf_after_steps(self.step, 1.0)

    @property
    def rows(self) -> Rows:
        """The rows, where the first-step readout has one value.  docs/theory.md 18"""
        return _rows(self.step, self.row_norms)

    @cached_property
    def unit(self) -> RowCovariance:
        """The covariance of the rows of neurons of readout 1, where there are others.
        Eq. (15.1)"""
        return row_covariance(self.step, norms=self.row_norms)

    @property
    def gamma(self) -> Any:
        """Cosines of u, the direction of the spike, with those of the target."""
        if _several_readouts(self.step):
            return self.unit.gamma
        return self.rows.basis[0, : self.step.target.dimension, None]

    @property
    def v(self) -> float:
        """d times the variance of the squared row norms; 0 where it is not kept."""
        return self.unit.v if _several_readouts(self.step) else self.rows.v

    def covariance_of(self, groups: Geometry, kinds: NDArray[np.int64]) -> Rows | GroupCovariance:
        """The rows of the groups with indices ``kinds`` (A,) among ``groups``: with one value of
        the readout, or with several."""
        if not _several_readouts(self.step):
            return self.rows
        return group_covariance(self.unit, self._readouts(groups)[kinds])

    def _readouts(self, groups: Geometry) -> Array:
        """First-step readout of each of the ``groups``, (G,): of those with their r and c."""
        after = after_one_step(self.step)
        r, c = np.atleast_1d(after.r), np.atleast_1d(after.c)
        values = self.step.readout.discretise(r.size)[0]
        gap = np.abs(groups.r - r) + np.abs(groups.c[:, None] - c)
        return np.asarray(values[np.argmin(gap, axis=1)])

    def model(
        self, changed: Mapping[str, Any], *, beta: float, dimension: float
    ) -> SpikedRandomFeatures:
        """The network after a step with ``changed`` fields, itself of width ``beta`` and of
        dimension ``dimension``."""
        rows = NetworkRows(self.step.at(beta, changed), self.row_norms) if changed else self
        return replace(rows.published, rows=rows, beta=beta, dimension=dimension)


def Network(
    *, step: Step, beta: float = 1.0, dimension: float = np.inf, row_norms: bool = True
) -> SpikedRandomFeatures:
    """The network after its steps, with fresh readout data to fit: ``step.network(beta=...)``.

    Its spike and bulk variance are those of the sRF; its bulk has the covariance that the steps
    give it.  For neurons without biases.  With several values of the first-step readout, for an odd
    student, one step and a target of one direction.  docs/theory.md 15-18

    Parameters
    ----------
    step : GradientStep
    beta : float
        Width over input dimension, p/d.
    dimension : float
        As for :class:`replica.SpikedRandomFeatures`.
    row_norms : bool
        Whether the fluctuation of the rows' norms is kept.

    Raises
    ------
    InvalidArgument
        If the step is one that this theory does not cover.

    Examples
    --------
    >>> from replica import GradientStep, solve
    >>> step = GradientStep(student="relu", target="sin", alpha0=0.3, eta=3.0)
    >>> model = Network(step=step, beta=1.0)
    >>> round(solve(model, alpha=2.0, lam=0.1).test_error, 6)
    0.48236
    """
    width = number("beta", beta, 0, FINITE, "positive (p/d)", open_low=True)
    return NetworkRows(step, row_norms).model({}, beta=width, dimension=dimension)


def unsuited(step: Step) -> str:
    """Why the theory of the network does not cover ``step``; empty if it does."""
    if step.label_noise is not None and step.label_noise.kind == "student":
        return "the network's own theory is for label noise with all its moments"
    if any(step.bias.values) or step.train_bias:
        return "the network's own theory is for neurons without a bias"
    if not _several_readouts(step):
        return ""
    several = "the network's own theory of several readout values"
    if step.target.dimension > 1 or not step.target.kinks_known:
        return f"{several} is for targets of one direction"
    if step.steps:
        return f"{several} is for a single step"
    if step.initialisation != "sphere":
        return f"{several} is for rows that start on the sphere"
    return "" if step.student.odd else f"{several} is for odd students"


def _several_readouts(step: Step) -> bool:
    """Whether neurons differ in their first-step readout, and the step is made."""
    made = any(eta for _, eta in step.schedule)
    return made and (step.readout.continuous is not None or len(step.readout.values) > 1)


@lru_cache(maxsize=64)
def _rows(step: Step, norms: bool) -> Rows:
    """The rows after ``step``."""
    step.student.slope_moments()  # refuses a jump
    batches, after = row_steps(step)
    basis = directions(after.spike, step.target.dimension, srf_after_steps(step, 1.0).r)
    start = GAUSSIAN_NORMS if step.initialisation == "gaussian" else 0.0
    return Rows(batches, basis, norms=norms, initial_norms=start if norms else 0.0)


def directions(spike: Array, K: int, r: float) -> Array:
    """u, along the spike r u, and zeta, what the target's K directions have beside it, in the
    special directions, of which the target's come first: (n, S)."""
    length = np.linalg.norm(spike)
    u = np.copysign(1 / length, r) * spike if length else np.eye(1, len(spike))[0]
    L = remainder(u[:K, None])
    if not L.any():  # nothing of the target is left: any direction serves
        return np.vstack([u, null_space(u[None])[:, 0]])
    return np.vstack([u, np.linalg.pinv(L) @ (np.eye(K, len(u)) - np.outer(u[:K], u))])


def row_covariance(step: Step, *, norms: bool = True) -> RowCovariance:
    """The row covariance after ``step`` of neurons of readout 1; without ``norms``, rows of equal
    norm, as in (15.1)-(15.8)."""
    student, alpha0, eta = step.student, step.alpha0, step.eta
    h1, h_check = student.slope_moments()
    b = eta**2 * h_check / alpha0
    largest = np.abs(step.readout.discretise(GROUPS[-1])[0]).max()
    batch = first_batch(step.step_labels, float(largest**2 * b / alpha0))
    w, ws, _ = batch.weights
    power, first = float(w @ batch.y**2), float(ws @ batch.y)
    N = np.sqrt(first**2 + power / alpha0)
    gamma = first / N if N else 0.0
    if not norms:
        return RowCovariance(batch, b, alpha0, gamma, np.zeros(2), 0.0, 0.0)

    def average(exponent: int, *, degree: int) -> float:
        """E z^degree (sigma' - h_1)^exponent"""
        return student.slope_average(lambda z, slope: z**degree * (slope - h1) ** exponent)

    h3 = average(1, degree=2)
    fourth = float(w @ batch.y**4)
    v_odd = 4 * eta**2 * (h3**2 * N**2 + power / alpha0 * (average(2, degree=2) - h3**2))
    v_even = eta**4 * fourth / alpha0**3 * (average(4, degree=0) - h_check**2)
    v_even += 2 * eta**4 * (h_check * power / alpha0) ** 2
    k = np.array([2 * eta * h3, eta**3 * average(3, degree=0) / alpha0**2])
    return RowCovariance(batch, b, alpha0, gamma, k, float(v_odd), float(v_even))
