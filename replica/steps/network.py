"""The rows of the network itself after one giant step, and the model that has them.
docs/theory.md 15"""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from solvers.results import Array

from ..errors import InvalidArgument
from ..problem import FINITE, Geometry, SpikedRandomFeatures, number
from ..saddle_point import GroupCovariance, RowCovariance, group_covariance
from .first_batch import first_batch
from .one_step import GROUPS, after_one_step, srf_after_one_step
from .step import Step

MODELS = ("srf", "network")  # what the theory of a step may be that of


@dataclass(frozen=True)
class NetworkRows:
    """The rows of a network after its step: their covariance, and the fluctuation of their norms.

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
        """The published model of the same step, of width beta = 1."""
        return srf_after_one_step(self.step, 1.0)

    @cached_property
    def covariance(self) -> RowCovariance:
        """The covariance of the rows of neurons of first-step readout 1.  Eq. (15.1)"""
        return row_covariance(self.step, norms=self.row_norms)

    @property
    def gamma(self) -> float:
        """Cosine of the gradient with the target."""
        return self.covariance.gamma

    def covariance_of(
        self, groups: Geometry, kinds: NDArray[np.int64]
    ) -> RowCovariance | GroupCovariance:
        """The covariance of the rows of the groups with indices ``kinds`` (A,) among ``groups``:
        that of readout 1 alone, or those of several readouts."""
        readouts = self._readouts(groups)[kinds]
        if len(kinds) == 1 and readouts[0] == 1:
            return self.covariance
        return group_covariance(self.covariance, readouts)

    def _readouts(self, groups: Geometry) -> Array:
        """First-step readout of each of the ``groups``, (G,): of those with their r and c."""
        after = after_one_step(self.step)
        r, c = np.atleast_1d(after.r), np.atleast_1d(after.c)
        # without a step there is one group, and a readout that does not matter
        values = self.step.readout.discretise(r.size)[0] if self.step.eta else np.zeros(1)
        gap = np.abs(groups.r - r) + np.abs(groups.c[:, None] - c)
        return np.asarray(values[np.argmin(gap, axis=1)])

    def model(self, changed: dict[str, float], **own: float) -> SpikedRandomFeatures:
        """The network after a step with ``changed`` fields, itself of width ``beta`` and of
        dimension ``dimension``."""
        rows = self
        if changed:
            step: Any = replace(self.step, **changed)  # type: ignore[arg-type]
            rows = NetworkRows(step, self.row_norms)
        return replace(rows.published, rows=rows, **own)  # type: ignore[arg-type]


def Network(
    *, step: Step, beta: float = 1.0, dimension: float = np.inf, row_norms: bool = True
) -> SpikedRandomFeatures:
    """The network after its step, with fresh readout data to fit: ``step.network(beta=...)``.

    Its spike and bulk variance are those of the sRF; its bulk has the covariance that the step
    gives it.  For an odd student, a single-index target and no biases.  docs/theory.md 15

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
    >>> step = GradientStep(student="tanh", target="sin", alpha0=0.3, eta=6.0)
    >>> model = Network(step=step, beta=1.0, row_norms=False)
    >>> round(solve(model, alpha=2.0, lam=0.01).test_error, 7)
    0.634709
    """
    width = number("beta", beta, 0, FINITE, "positive (p/d)", open_low=True)
    return NetworkRows(step, row_norms).model({}, beta=width, dimension=dimension)


def unsuited(step: Step) -> str:
    """Why the theory of the network does not cover ``step``; empty if it does."""
    if step.target.dimension > 1 or not step.target.kinks_known:
        return "the network's own theory is for targets of one direction"
    if step.steps:
        return "the network's own theory is for a single step"
    if step.label_noise is not None and step.label_noise.kind == "student":
        return "the network's own theory is for label noise with all its moments"
    if any(step.bias.values) or step.train_bias:
        return "the network's own theory is for neurons without a bias"
    if not step.student.odd:
        return "the network's own theory is for odd students"
    return ""


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
