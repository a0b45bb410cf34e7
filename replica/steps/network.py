"""The law of the rows of a network after its giant steps.  docs/theory.md 15-18"""

from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import null_space

from solvers.results import Array

from ..errors import InvalidArgument
from ..problem import SpikedRandomFeatures, complement_root, flag, number
from ..saddle_point import TabulatedRows, TrainedRows, norm_variance
from .row_samples import Kinds, first_step_coefficients
from .row_steps import row_steps
from .several_steps import GROUPS, features_after_steps, readout_values
from .step_fields import Step, check_is_step

THEORIES = ("srf", "network")  # of a step


@dataclass(frozen=True)
class NetworkRows:
    """Law of the rows of a network after its steps: covariance, and fluctuation of the norms.

    Attributes
    ----------
    step : GradientStep
    row_norms : bool
        Whether the fluctuation of the rows' norms is included.
    reuse : float
        Share of the readout's samples that are samples of the step.

    Raises
    ------
    InvalidArgument
        If this theory does not cover the step.
    """

    step: Step
    row_norms: bool = True
    reuse: float = 0.0

    def __post_init__(self) -> None:
        check_is_step(self.step)
        flag("row_norms", self.row_norms)
        number("reuse", self.reuse, 0, 1, "a share from 0 to 1")
        if self.reuse and (reason := reason_not_reused(self.step)):
            raise InvalidArgument("reuse", self.reuse, f"0, fresh samples: {reason}")
        if reason := reason_not_covered(self.step):
            raise InvalidArgument("theory", "network", f"srf here: {reason}")

    @cached_property
    def published(self) -> SpikedRandomFeatures:
        """The sRF of the same steps, the published theory, with width beta = 1."""
        # tol is met by the rule before the one used: the error is below the width of a plotted line
        return features_after_steps(self.step, tol=1e-4, most=_most_readouts(self.step))

    @property
    def tabulated(self) -> TabulatedRows:
        """Tabulated rows of a single kind of neurons.  docs/theory.md 18"""
        return _tabulated_rows(self.step, self.row_norms)

    @cached_property
    def kinds(self) -> Kinds:
        """First-step readout and bias of every group of ``published``."""
        return _kinds_of_groups(self.step, np.size(self.published.r))

    @cached_property
    def all_groups(self) -> TrainedRows:
        """Rows of all groups of ``published``.  docs/theory.md 17"""
        if _several_kinds(self.step):
            return rows_after(self.step, self.row_norms, self.kinds)
        return self.tabulated.rows

    @property
    def gamma(self) -> Any:
        """Cosines of the spike's direction u with the directions of the target."""
        return self.all_groups.basis[0, : self.step.directions, None]

    @cached_property
    def v(self) -> float:
        """d times the variance of the squared row norms; 0 if it is not included."""
        return norm_variance(self.all_groups) if self.row_norms else 0.0

    @property
    def one_kind(self) -> bool:
        """True if all neurons have one bias and one first-step readout, or with an odd student and
        no bias opposite ones: their features are then opposite, and their errors the same."""
        return not _several_kinds(self.step) or self.one_sign

    @property
    def one_sign(self) -> bool:
        """True if neurons differ in the sign of their readout alone, and have an odd student."""
        step = self.step
        is_odd = step.student.odd and not any(step.bias.values)
        return is_odd and _several_kinds(step) and len({abs(a) for a in step.readout.values}) == 1

    def covariance_of(self, groups: NDArray[np.int64]) -> TrainedRows | TabulatedRows:
        """Rows of the given ``groups`` of ``published``."""
        return self.all_groups.select(groups) if _several_kinds(self.step) else self.tabulated

    def kind_invariants(self, groups: NDArray[np.int64], slopes: Array) -> Array:
        """Invariants (G, n) of ``groups`` of ``published``, equal for groups of one kind.

        They are the coefficients of the step for the rows, and the ``slopes`` (G, N) of the mean
        features in the row norm.  With an odd student, groups of opposite readout are of one kind:
        delta and its coefficients then have opposite signs.
        """
        even, odd = first_step_coefficients(self.step, self.kinds)
        odd = np.column_stack([odd[groups], slopes])
        coefficient_size = np.abs(odd).max(axis=0)
        sign_weights = np.random.default_rng(1).random(len(coefficient_size))
        projection = (odd / np.where(coefficient_size > 0, coefficient_size, 1.0)) @ sign_weights
        return np.column_stack([even[groups], odd * np.where(projection < 0, -1.0, 1.0)[:, None]])


def reason_not_covered(step: Step) -> str:
    """The reason why the network's theory does not cover ``step``; empty if it does."""
    if step.label_noise is not None and step.label_noise.kind == "student":
        network_coverage = "needs label noise with all its moments"
    elif step.train_bias:
        network_coverage = "does not cover trained biases"
    elif step.readout.continuous and _most_readouts(step) < GROUPS[1]:
        network_coverage = "covers a continuous readout with two values of the bias at most"
    elif step.steps and _several_kinds(step):
        network_coverage = "covers several readout values or biases for a single step only"
    else:
        return ""
    return f"the network's own theory {network_coverage}"


def reason_not_reused(step: Step) -> str:
    """The reason why the theory of reused samples does not cover ``step``; empty if it does."""
    uncovered_steps = {
        "several steps (leave reuse out, or take one step: alpha0 and eta, not steps)": step.steps,
        "inputs that are not N(0, I)": step.inputs is not None,
        "an output intercept": step.intercept,
        "weight decay": step.decay,
        "another target or noise of the step": (step.step_target, step.step_noise) != (None, None),
        "the population gradient, alpha0 = inf": step.alpha0 == np.inf,
        "a step of eta = 0": not step.eta,
        "a continuous readout": step.readout.continuous is not None,
    }
    not_covered = [step_option for step_option, is_set in uncovered_steps.items() if is_set]
    return f"the theory of reused samples does not cover {not_covered[0]}" if not_covered else ""


def _most_readouts(step: Step) -> int:
    """Largest number of values for a continuous readout.

    With an odd student without biases, neurons of opposite readout are of one kind.
    """
    symmetric_student = step.student.odd and not any(step.bias.values)
    # 16 kinds of neurons, readout values times biases: the pencil has two indices for each, and a
    # point takes one to three seconds
    return GROUPS[-1] if symmetric_student else 16 // len(step.bias.values)


def _several_kinds(step: Step) -> bool:
    """True if neurons differ in their bias or, after a step, in their first-step readout."""
    single_readout = len(step.readout.values) == 1  # a continuous law has no values
    return len(step.bias.values) > 1 or (step.takes_step and not single_readout)


def _kinds_of_groups(step: Step, group_count: int) -> Kinds:
    """Kinds of neurons of the ``group_count``: the product of readouts and biases."""
    biases = step.bias.values
    first_readouts = readout_values(step, group_count // len(biases))[0]
    return Kinds(np.tile(first_readouts, len(biases)), np.repeat(biases, len(first_readouts)))


@lru_cache(maxsize=64)
def _tabulated_rows(step: Step, row_norms: bool) -> TabulatedRows:
    """Tabulated rows after ``step``, of neurons of one kind."""
    step.student.slope_moments(step.bias.values[0])  # refuses a jump
    neuron_kinds = _kinds_of_groups(step, 1)
    return TabulatedRows(rows_after(step, row_norms, neuron_kinds, features_after_steps(step).r))


def rows_after(step: Step, norms: bool, kinds: Kinds, spike_loading: float = 1.0) -> TrainedRows:
    """Rows of ``kinds`` of neurons after ``step``; u has the sign of ``spike_loading``."""
    step_batches, row_state = row_steps(step, kinds)
    row_basis = special_basis(row_state.spike, step.directions, spike_loading)
    # squared norms of rows from N(0, I/d) have variance 2/d
    initial_norm_variance = 2.0 if norms and step.initialisation == "gaussian" else 0.0
    return TrainedRows(step_batches, row_basis, norms, initial_norm_variance, row_state.mean_row)


def special_basis(spike: Array, K: int, r: float) -> Array:
    """Coordinates (n, S) of u and zeta in the special directions, the target's K first.

    u is along the ``spike`` r u; zeta spans the parts of the target's directions orthogonal to u.
    """
    spike_length = np.linalg.norm(spike)
    u = np.copysign(1 / spike_length, r) * spike if spike_length else np.eye(1, len(spike))[0]
    L = complement_root(u[:K, None])
    if not L.any():  # the target depends on u alone: zeta is any other direction
        return np.vstack([u, null_space(u[None])[:, 0]])
    return np.vstack([u, np.linalg.pinv(L) @ (np.eye(K, len(u)) - np.outer(u[:K], u))])
