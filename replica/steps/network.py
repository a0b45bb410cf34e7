"""The network itself after one giant step, as a model beside the sRF.  THEORY 15."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from solvers.results import Array

from ..errors import InvalidArgument
from ..problem.activation import Activation
from ..problem.geometry import Geometry
from ..problem.labels import LabelNoise
from ..problem.srf import FINITE, GradientStep, SpikedRandomFeatures, number
from ..saddle_point.row_covariance import RowCovariance, row_covariance
from .one_step import spiked_parameters

ODD = 1e-9  # of the student's size


@dataclass(frozen=True, kw_only=True)
class Network:
    """The network after its step, with fresh readout data to fit.

    Its spike and bulk variance are those of the sRF; its bulk has the covariance that the step
    gives it.  For an odd student, a single-index target and no biases.

    Parameters
    ----------
    step : GradientStep
    beta : float
        Width over input dimension, p/d.
    dimension : float
        As for :class:`SpikedRandomFeatures`.
    row_norms : bool
        Whether the fluctuation of the rows' norms is kept.  THEORY 15 leaves it out.

    Raises
    ------
    InvalidArgument
        If the step is one that this theory does not cover.

    Examples
    --------
    >>> from replica import GradientStep, solve
    >>> step = GradientStep(student="tanh", target="sin", alpha0=0.3, eta=6.0)
    >>> model = step.network(beta=1.0, row_norms=False)
    >>> round(solve(model, alpha=2.0, lam=0.01).test_error, 7)
    0.634709
    """

    step: GradientStep
    beta: float = 1.0
    dimension: float = np.inf
    row_norms: bool = True

    def __post_init__(self) -> None:
        reason = unsuited(self.step)
        if reason:
            raise InvalidArgument("model", "network", f"srf here: {reason}")
        values = {
            "beta": number("beta", self.beta, 0, FINITE, "positive (p/d)", open_low=True),
            "dimension": number(
                "dimension", self.dimension, 0, np.inf, "positive or inf", open_low=True
            ),
            "row_norms": bool(self.row_norms),
        }
        for name, value in values.items():
            object.__setattr__(self, name, value)

    @cached_property
    def srf(self) -> SpikedRandomFeatures:
        """The published model of the same step."""
        return self.step.srf(beta=self.beta)

    @cached_property
    def covariance(self) -> RowCovariance:
        """The covariance of its rows, for a first-step readout of 1.  Eq. (15.1)"""
        return row_covariance(self.step, norms=self.row_norms)

    @cached_property
    def readouts(self) -> Array:
        """First-step readout of each group of ``geometry``, (A,)."""
        of = spiked_parameters(self.step)
        r, c = np.atleast_1d(of.r), np.atleast_1d(of.c)
        values, _ = self.step.readout.discretise(r.size)
        groups = self.srf.geometry
        gap = np.abs(groups.r - r) + np.abs(groups.c[:, None] - c)
        return np.asarray(values[np.argmin(gap, axis=1)])

    @cached_property
    def geometry(self) -> Geometry:
        """As of the sRF; u is the direction of the gradient also where the spike vanishes."""
        of = self.srf.geometry
        return Geometry(of.r, of.c, of.bias, of.fractions, np.array([[self.covariance.gamma]]))

    # What else the theory asks of a model.

    @property
    def student(self) -> Activation:
        """sigma."""
        return self.step.student

    @property
    def target(self) -> Any:
        """sigma_*."""
        return self.step.target

    @property
    def noise(self) -> float:
        """Variance of the label noise of the readout's data."""
        return self.step.noise

    @property
    def label_noise(self) -> LabelNoise | None:
        """What labels add to the target, in both batches."""
        law: LabelNoise | None = self.step.label_noise
        return law

    @property
    def label_variance(self) -> float:
        """Variance of what is added to the target."""
        return self.srf.label_variance

    @property
    def mean_label(self) -> Any:
        """E[y | x] as a function of the target's argument."""
        return self.srf.mean_label

    @property
    def channel(self) -> bool:
        """Whether labels are +-1 at random."""
        return self.srf.channel

    @property
    def binary(self) -> bool:
        """Whether labels are +-1."""
        return self.srf.binary

    @property
    def intercept(self) -> bool:
        """Whether an output intercept is trained."""
        return self.step.intercept

    @property
    def train_bias(self) -> bool:
        """Never: a bias makes the student's function uneven."""
        return False

    @property
    def r(self) -> Any:
        """Length of the spike."""
        return self.srf.r

    @property
    def c(self) -> Any:
        """Bulk variance, tr C / d."""
        return self.srf.c

    @property
    def gamma(self) -> Any:
        """Cosine of spike and target."""
        return self.srf.gamma


Model = SpikedRandomFeatures | Network


def unsuited(step: GradientStep) -> str:
    """Why the theory of the network does not cover ``step``; empty if it does."""
    if not isinstance(step.target, Activation):
        return "the network's own theory is for targets of one direction"
    if step.steps:
        return "the network's own theory is for a single step"
    if step.label_noise is not None and step.label_noise.kind == "student":
        return "the network's own theory is for label noise with all its moments"
    if any(step.bias.values) or step.train_bias:
        return "the network's own theory is for neurons without a bias"
    if not _is_odd(step.student):
        return "the network's own theory is for odd students"
    return ""


def _is_odd(student: Activation) -> bool:
    x = np.linspace(0.0, 8.0, 101)
    both = student(np.concatenate([x, -x]))
    there, back = np.split(both, 2)
    return bool(np.abs(there + back).max() <= ODD * np.abs(both).max() + 1e-300)
