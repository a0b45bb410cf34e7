"""The rows of the network itself after its giant steps, and the model that has them.
docs/theory.md 15-18"""

from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import null_space

from solvers.results import Array

from ..errors import InvalidArgument
from ..problem import Origin, SpikedRandomFeatures, flag, remainder
from ..saddle_point import Rows, TabulatedRows, norm_variance
from .one_step import GROUPS, readouts
from .row_samples import Kinds, first_effects
from .row_steps import row_steps
from .several_steps import features_after_steps
from .step import Step, check_is_step

MODELS = ("srf", "network")  # what the theory of a step may be that of
# Values that stand for a continuous readout at most, times biases, where the pencil has two indices
# for each: a second or three a point.
MOST_KINDS = 16


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
        check_is_step(self.step)
        flag("row_norms", self.row_norms)
        if reason := unsuited(self.step):
            raise InvalidArgument("model", "network", f"srf here: {reason}")

    @cached_property
    def published(self) -> SpikedRandomFeatures:
        """The published model of the same steps, of width beta = 1."""
        # to about the width of a line in a plot; it is the error of the rule before the one used
        return features_after_steps(self.step, tol=1e-4, most=_most_readouts(self.step))

    @property
    def tabulated(self) -> TabulatedRows:
        """The rows, where all neurons are of one kind.  docs/theory.md 18"""
        return _rows(self.step, self.row_norms)

    @cached_property
    def kinds(self) -> Kinds:
        """First-step readout and bias of each of the groups of ``published``."""
        return _kinds(self.step, np.size(self.published.r))

    @cached_property
    def all_groups(self) -> Rows:
        """The rows of all groups of ``published``.  docs/theory.md 17"""
        if _several_kinds(self.step):
            return rows_after(self.step, self.row_norms, self.kinds)
        return self.tabulated.rows

    @property
    def apart(self) -> Array:
        """Groups of ``published`` that differ in this have different rows: the readouts."""
        return self.kinds.readout

    @property
    def gamma(self) -> Any:
        """Cosines of u, the direction of the spike, with those of the target."""
        return self.all_groups.basis[0, : self.step.directions, None]

    @cached_property
    def v(self) -> float:
        """d times the variance of the squared row norms; 0 where it is not kept."""
        return norm_variance(self.all_groups) if self.row_norms else 0.0

    def covariance_of(self, groups: NDArray[np.int64]) -> Rows | TabulatedRows:
        """The rows of some of the groups of ``published``."""
        return self.all_groups.select(groups) if _several_kinds(self.step) else self.tabulated

    def agreeing(self, groups: NDArray[np.int64], slopes: Array) -> Array:
        """Numbers (G, n) in which those of the ``groups`` of ``published`` agree that are of one
        kind: what the step does to their rows, and the ``slopes`` (G, N) of their mean features in
        the norm.

        Of an odd student, opposite readouts make mirror images: there delta, and all that
        multiplies it, has the opposite sign.
        """
        even, odd = first_effects(self.step, self.kinds)
        odd = np.column_stack([odd[groups], slopes])
        size = np.abs(odd).max(axis=0)
        along = (odd / np.where(size > 0, size, 1.0)) @ np.random.default_rng(1).random(len(size))
        return np.column_stack([even[groups], odd * np.where(along < 0, -1.0, 1.0)[:, None]])


def Network(
    *, step: Step, beta: float = 1.0, dimension: float = np.inf, row_norms: bool = True
) -> SpikedRandomFeatures:
    """The network after its steps, with fresh readout data to fit: ``step.network(beta=...)``.

    Its spike and bulk variance are those of the sRF; its bulk has the covariance that the steps
    give it.  With several values of the first-step readout or of the biases, after a single step.
    docs/theory.md 15-18.  After a step at a large rate on few samples (alpha0 << 1) networks
    are as in this limit from a large dimension on alone: docs/network.md says which.

    Parameters
    ----------
    step : GradientStep
        The steps that its first layer makes.
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
    >>> from replica import GradientStep, Network, solve
    >>> step = GradientStep(student="relu", target="sin", alpha0=0.3, eta=3.0)
    >>> model = Network(step=step, beta=1.0)
    >>> round(solve(model, alpha=2.0, lam=0.1).test_error, 6)
    0.48236
    """
    rows = NetworkRows(step, row_norms)
    origin = Origin(step, rows.published, rows)
    return replace(rows.published, origin=origin, beta=beta, dimension=dimension)


def unsuited(step: Step) -> str:
    """Why the theory of the network does not cover ``step``; empty if it does."""
    if step.label_noise is not None and step.label_noise.kind == "student":
        what = "is for label noise with all its moments"
    elif step.train_bias:
        what = "is for biases that are not trained"
    elif step.readout.continuous and _most_readouts(step) < GROUPS[1]:
        what = "of a continuous readout is for two values of the bias at most"
    elif step.steps and _several_kinds(step):
        what = "of several readout values or biases is for a single step"
    else:
        return ""
    return f"the network's own theory {what}"


def _most_readouts(step: Step) -> int:
    """Values that stand for a continuous readout at most: of an odd student without biases neurons
    of opposite readout are of one kind."""
    symmetric = step.student.odd and not any(step.bias.values)
    return GROUPS[-1] if symmetric else MOST_KINDS // len(step.bias.values)


def _several_kinds(step: Step) -> bool:
    """Whether neurons differ in their bias or, if the step is made, in their first-step readout."""
    single = len(step.readout.values) == 1  # a continuous law has none
    return len(step.bias.values) > 1 or (step.made and not single)


def _kinds(step: Step, groups: int) -> Kinds:
    """So many kinds of neurons, a product of readouts and biases."""
    biases = step.bias.values
    values = readouts(step, groups // len(biases))[0]
    return Kinds(np.tile(values, len(biases)), np.repeat(biases, len(values)))


@lru_cache(maxsize=64)
def _rows(step: Step, norms: bool) -> TabulatedRows:
    """The rows after ``step``, of neurons of one kind."""
    step.student.slope_moments(step.bias.values[0])  # refuses a jump
    return TabulatedRows(rows_after(step, norms, _kinds(step, 1), features_after_steps(step).r))


def rows_after(step: Step, norms: bool, kinds: Kinds, r: float = 1.0) -> Rows:
    """The rows of ``kinds`` of neurons after ``step``, whose spikes have lengths of the sign of
    ``r``."""
    batches, spike = row_steps(step, kinds)
    basis = directions(spike, step.directions, r)
    # rows of N(0, I/d) start from squared norms of the variance 2/d
    initial = 2.0 if norms and step.initialisation == "gaussian" else 0.0
    return Rows(batches, basis, norms, initial)


def directions(spike: Array, K: int, r: float) -> Array:
    """u, along the spike r u, and zeta, what the target's K directions have beside it, in the
    special directions, of which the target's come first: (n, S)."""
    length = np.linalg.norm(spike)
    u = np.copysign(1 / length, r) * spike if length else np.eye(1, len(spike))[0]
    L = remainder(u[:K, None])
    if not L.any():  # nothing of the target is left: any direction serves
        return np.vstack([u, null_space(u[None])[:, 0]])
    return np.vstack([u, np.linalg.pinv(L) @ (np.eye(K, len(u)) - np.outer(u[:K], u))])
