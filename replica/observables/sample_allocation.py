"""Allocation of N samples to the two layers: all for both at once, or some for each.

Samples that the step and the readout share are those of docs/theory.md 21, others those of 15-17.
Test errors are the theory's at its best ridge penalty, unless one is given, and at the step's
learning rate or the best one.
"""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from solvers.quadrature import QuadratureError
from solvers.resources import deadline
from solvers.results import ConvergenceError

from ..display import Displayed, Progress, progress_callback
from ..errors import InvalidArgument
from ..files import plain
from ..plotting import plot_allocation
from ..problem import MAX_NUMBER, LabelLaw, axis, check_call, check_step, describe, number
from .grid import computed
from .learning_curve import BEST
from .optimum import optimal_eta, optimal_lambda
from .solution import solve
from .theory_changes import NOTHING_LEARNED, large_penalty_note, ratio_note

if TYPE_CHECKING:
    from matplotlib.axes import Axes

SECONDS_A_USE = 60.0  # for a use


@dataclass(frozen=True)
class Plan:
    """Use of the samples: ``alpha0`` for the step and ``alpha`` for the readout, over the input
    dimension, of which a share ``reuse`` are the step's; learning rate ``eta``, penalty ``lam``,
    names of the parameters whose best value is ``at_edge`` of the range searched; errors, NaN where
    not solved."""

    use: str
    alpha0: float
    alpha: float
    reuse: float
    eta: float
    lam: float
    at_edge: str
    test_error: float
    train_error: float

    @property
    def ranked(self) -> float:
        """The test error, or if it is not known one larger than any: a search compares numbers."""
        return float(np.nan_to_num(self.test_error, nan=MAX_NUMBER))


@dataclass(frozen=True, eq=False, repr=False)
class SampleAllocation(Displayed):
    """Uses of N samples for the two layers of a network, the best first.

    Returned by :func:`replica.sample_allocation`.

    Attributes
    ----------
    budget : float
        All samples over the input dimension, N/d.
    plans : tuple of Plan
        Uses "all for both", "split" (samples of the step and of the readout apart), "best split"
        (the one that was searched), "part for the step" (all for the readout) and "part for the
        readout" (all for the step), by test error; those that could not be solved are last.
    described : dict
        The step, the width and the theory, in plain values.
    zero_error : float
        Test error of predicting 0, E sigma_*^2.
    """

    budget: float
    plans: tuple[Plan, ...]
    described: dict[str, Any]
    zero_error: float

    @property
    def best(self) -> Plan:
        """The use of the smallest test error."""
        return self.plans[0]

    @property
    def notes(self) -> list[str]:
        """Notes on uses that are not known, and on the best one: nothing learned, few samples of a
        layer, other uses that are as good, and a budget that may be meant for N."""
        best_use, use_notes = self.best, [ratio_note(self.budget, "budget")]
        if unsolved_n := sum(np.isnan(plan.test_error) for plan in self.plans):
            use_notes.append(
                f"{unsolved_n} of {len(self.plans)} uses were not solved, or not in time "
                "(a larger time_limit gives each more seconds)"
            )
        if best_use.test_error > (1 - NOTHING_LEARNED) * self.zero_error:
            solved = " that was solved" * bool(unsolved_n)
            use_notes.append(
                f"no use{solved} is better than predicting 0, of error {self.zero_error:.4g}: the "
                "student cannot learn this target in a step (replica staircase), or the budget is "
                "too small"
            )
            return [use_note for use_note in use_notes if use_note]
        fewest = min(best_use.alpha0, best_use.alpha)
        # a readout on .012 d samples has 5 at d = 400, and the limit is 40 % off there (simulated);
        # on .073 d samples it has 37 at d = 500, and is 4 % off, as much as the best uses differ by
        if fewest < 0.1:
            use_notes.append(
                f"a layer of the best use has only {fewest:.2g} d samples, {1000 * fewest:.0f} at "
                "d = 1000: networks of so few may be far from this limit (simulate them)"
            )
        penalty_notes = {
            plan.use: large_penalty_note(plan.reuse, plan.alpha, plan.lam) for plan in self.plans
        }
        if noted_uses := [use for use, penalty_note in penalty_notes.items() if penalty_note]:
            use_notes.append(f"{', '.join(noted_uses)}: {penalty_notes[noted_uses[0]]}")
        nearly_best = (1 + 2e-4) * best_use.test_error  # the search does not tell these apart
        if equal_uses := [plan.use for plan in self.plans[1:] if plan.test_error <= nearly_best]:
            use_notes.append(f"as good, as far as the search can tell: {', '.join(equal_uses)}")
        return [use_note for use_note in use_notes if use_note]

    @property
    def converged(self) -> bool:
        """True if every use could be solved."""
        return not np.isnan([plan.test_error for plan in self.plans]).any()

    @property
    def settings(self) -> dict[str, Any]:
        """Question in plain values: the step, and the budget of samples."""
        return self.described | {"budget": self.budget}

    def document(self) -> dict[str, Any]:
        """Plain values for JSON: problem, budget, points, the best first; None for NaN."""
        use_points = {"points": self._rows(), "notes": self.notes}
        return dict(plain({"problem": self.described, "budget": self.budget} | use_points))

    def plot(self, ax: "Axes | None" = None) -> "Axes":
        """The test error against the share of the samples that are used for one layer, the others
        or all being used for the other: :func:`replica.plotting.plot_allocation`."""
        return plot_allocation(self._rows(), ax, described=self.settings)

    def _facts(self) -> dict[str, Any]:
        best_use = self.best
        use_values = {name: getattr(best_use, name) for name in ("alpha0", "alpha", "eta", "lam")}
        use = f"{best_use.use}: " + ", ".join(f"{name} {x:.4g}" for name, x in use_values.items())
        errors = {plan.use: plan.test_error for plan in reversed(self.plans)}
        others = {use: x for use, x in errors.items() if use != best_use.use and not np.isnan(x)}
        unsolved_n = sum(np.isnan(plan.test_error) for plan in self.plans)
        unsolved_fact = {"not_solved": f"{unsolved_n} of {len(self.plans)}"} if unsolved_n else {}
        note = {"note": "; ".join(self.notes)} if self.notes else {}
        return {"best": use, "test_error": best_use.test_error} | others | unsolved_fact | note

    def _rows(self) -> list[dict[str, Any]]:
        return [asdict(plan) for plan in self.plans]


@check_call
def sample_allocation(
    step: Any,
    *,
    budget: float,
    beta: float = 1.0,
    lam: float | str = BEST,
    eta: str | None = None,
    parts: Sequence[float] = (0.5,),
    time_limit: float = SECONDS_A_USE,
    progress: bool | Progress = False,
) -> SampleAllocation:
    """The best use of N samples: the same ones for both layers, or some for each.

    The theory is of large d: at sizes people simulate, a use that leaves a layer a few samples, as
    the best split of few may, does worse than it says.

    Parameters
    ----------
    step : GradientStep
        A single step, or a model made by one; its own alpha0 does not matter, nor does its eta
        where the best is searched.
    budget : float
        All samples over the input dimension, N/d.
    beta : float
        Width over input dimension, p/d.
    lam : float or "best"
        The ridge penalty, or of every use its own best.
    eta : "best", optional
        The best learning rate of every use, instead of the step's own.
    parts : sequence of float
        Shares of the samples that are tried for a layer, between 0 and 1.  Between them the split
        of the smallest test error is searched.
    time_limit : float
        Seconds for each of the uses.
    progress : bool or callable
        Whether to draw a bar meanwhile; a function is called with (done, total).

    Returns
    -------
    SampleAllocation

    Raises
    ------
    InvalidArgument
        If an argument is out of range, or the theory of reused samples does not cover the step.

    Examples
    --------
    >>> from replica import GradientStep, sample_allocation
    >>> step = GradientStep(student="tanh", target="sin", alpha0=1, eta=3.0)
    >>> uses = sample_allocation(step, budget=4, parts=[0.5])
    >>> [(plan.use, round(plan.test_error, 3)) for plan in uses.plans][:2]
    [('all for both', 0.068), ('part for the readout', 0.083)]
    """
    from scipy.optimize import minimize_scalar

    check_step(step)
    step, samples_n = step.step, number("budget", budget)
    layer_shares = axis("parts", parts)
    if not ((layer_shares > 0) & (layer_shares < 1)).all():
        raise InvalidArgument("parts", parts, "shares between 0 and 1")
    if isinstance(lam, str) and lam != BEST:
        raise InvalidArgument("lam", lam, f'"{BEST}" or a number')
    use_penalty = None if isinstance(lam, str) else number("lam", lam)
    if not (eta is None or (isinstance(eta, str) and eta == BEST)):
        raise InvalidArgument("eta", eta, f"{BEST}, or left out: the step has its own")
    use_how: dict[str, Any] = {"time_limit": time_limit}
    search: Any = optimal_lambda
    if eta == BEST or use_penalty is not None:
        search, use_how = optimal_eta if eta == BEST else solve, use_how | {"lam": use_penalty}

    def plan(use: str, of_step: float, of_readout: float, reuse: float = 0.0) -> Plan:
        """A use of these shares of the samples."""
        planned_step, alpha = replace(step, alpha0=of_step * samples_n), of_readout * samples_n
        use_values: dict[str, Any] = dict.fromkeys(
            ("eta", "lam", "test_error", "train_error"), np.nan
        )
        at_edge = ""
        with suppress(ConvergenceError, QuadratureError), deadline(use_how["time_limit"]):
            found = search(planned_step.network(beta=beta, reuse=reuse), alpha=alpha, **use_how)
            point, at_edge = getattr(found, "point", found), " ".join(getattr(found, "at_edge", ()))
            use_errors = {name: getattr(point, name) for name in ("test_error", "train_error")}
            use_values = {"eta": point.model.step.eta, "lam": point.lam} | use_errors
        return Plan(use, planned_step.alpha0, alpha, reuse, at_edge=at_edge, **use_values)

    def split(share: float) -> float:
        """The test error of a split, which is kept."""
        tried_splits.append(plan("split", float(share), 1 - float(share)))
        return tried_splits[-1].ranked

    uses = [("all for both", 1.0, 1.0, 1.0)]
    for share in layer_shares.tolist():
        uses.append(("part for the step", share, 1.0, share))
        uses.append(("part for the readout", 1.0, share, 1.0))
        uses.append(("split", share, 1 - share, 0.0))
    with progress_callback(progress, "uses of the samples") as advance:
        plans = computed([partial(plan, *use) for use in uses], 1, advance)
    tried_splits = [tried_plan for tried_plan in plans if tried_plan.use == "split"]
    # the share of the step, to 0.01
    minimize_scalar(split, bounds=(0.02, 0.98), method="bounded", options={"xatol": 0.01})
    best_split = min(tried_splits, key=lambda one: one.ranked)
    plans = [tried_plan for tried_plan in plans if tried_plan is not best_split]
    plans.append(replace(best_split, use="best split"))
    unsaid = {"alpha0"} if eta is None else {"alpha0", "eta"}
    step_settings = {name: value for name, value in describe(step).items() if name not in unsaid}
    plans.sort(key=lambda one: one.ranked)
    zero_error = LabelLaw(step.target).averages().power
    step_settings |= {"beta": beta, "theory": "network"}
    return SampleAllocation(samples_n, tuple(plans), step_settings, zero_error)
