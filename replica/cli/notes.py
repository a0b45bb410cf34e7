"""Notes on the results of a command, on standard error: which theory they are of, how far
a network of d = 1000 is from a limit and the network itself from its sRF, best values at an end of
their range, errors no better than that of predicting 0, and points that did not converge.
"""

from collections.abc import Callable, Container, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Annotated, Any

import numpy as np
import typer
from numpy.typing import ArrayLike

from solvers.resources import TIME_LIMIT, deadline
from solvers.results import Array, ConvergenceError, Status

from .. import observables
from ..display import reasons_text, text
from ..observables import CHANGES, NOTED_SHIFT, NOTHING_LEARNED, SEARCHED_RANGES
from ..problem import LabelLaw, Problem, SpikedRandomFeatures
from ..spectra import Spectrum, spectrum
from ..steps import reason_not_covered
from .printing import rows_of, say, with_options

SECONDS_FOR_NOTE = 5.0  # for changes that were not asked for
Notes = Annotated[
    bool, typer.Option(help="Say how far d = 1000 is, and an sRF from its network, even if near.")
]
# What errors change to, and the sentence on the relative change, by its name as a column.
NOTED = {
    "finite_size_shift": (
        "d = 1000",
        "these are limits d -> inf; in the theory at d = 1000 the {error} at "
        "{place} differs by {change} (--dimension 1000; of networks "
        "docs/theory/23-a-network-at-its-own-dimension.md, of sRFs docs/readout.md)",
    ),
    "network_difference": (
        "the network itself",
        "these are of the published sRF; at {place} the {error} of the network "
        "itself differs by {change} (--theory network)",
    ),
}
TO_NETWORK = "network_difference"


def note_theory(model: SpikedRandomFeatures) -> None:
    """Write which theory of a step a model has, and that its network has one of its own."""
    dimension_text = f" at d = {model.dimension:g}" * bool(np.isfinite(model.dimension))
    if model.rows is not None:
        reuse_text = f", a share {model.reuse:g} of samples reused" * (model.reuse > 0)
        say(f"note: theory of the network itself{dimension_text}{reuse_text}")
    elif model.step is not None:
        has_network_theory = not reason_not_covered(model.step)
        network_hint = " (--theory network: of the network itself)" * has_network_theory
        say(f"note: theory of the sRF, the published equivalent{dimension_text}{network_hint}")


def print_notes(
    points: Sequence[dict[str, Any]],
    sentences: Sequence[str] = (),
    *,
    problem: Problem | None = None,
    edges: bool = True,
    time_limit: float,
) -> None:
    """Write the ``sentences`` on the points of a table, and what the points themselves show: best
    values at ``edges``, errors of a ``problem`` no better than that of predicting 0, and points
    that did not converge, with the reasons.  Points of a readout have no problem."""
    for sentence in sentences:
        say(f"note: {sentence}")
    if edges:
        note_edges(points)
    if problem is not None:
        note_worse_than_zero(problem, [point["test_error"] for point in points])
    failed_statuses = [point["status"] for point in points if not point["converged"]]
    if failed_statuses:
        failed_reasons = with_options(reasons_text(failed_statuses))
        time_option = f": try --time-limit {max(10 * time_limit, 10 * TIME_LIMIT):g}"
        time_hint = time_option * (str(Status.TIME) in failed_statuses)
        say(f"WARNING: {len(failed_statuses)} of {len(points)} points: {failed_reasons}{time_hint}")


def notes_of_curve(
    grid: observables.Grid,
    axes: Sequence[str],
    searched: Container[str],
    *,
    theory: str | None,
    asked: bool,
    **limits: Any,
) -> tuple[observables.Grid, list[str], float]:
    """Notes on the changes of the headline error to d = 1000 and to the network; the ``axes`` name
    the place of a point.  Returns the grid, with columns of the changes where they were ``asked``
    for; the notes; and the largest relative change to d = 1000 that is known.

    Where they are ``asked`` for they are of all points, and columns of the grid.  Otherwise they
    are of the ends and the middle of the axes, and those to the network are left out if a
    ``theory`` was named.
    """
    change_names = _noted_changes(theory if not asked else None)
    if asked:
        grid = grid.with_changes(change_names, **limits)
    with deadline(TIME_LIMIT if "eta" in searched else SECONDS_FOR_NOTE):
        noted_grid = grid if asked else grid.thinned().with_changes(change_names)
        points_per_model = len(noted_grid.columns["status"]) // len(noted_grid.models)
        noted_models = [model for model in noted_grid.models for _ in range(points_per_model)]
        shifts = noted_grid.columns["finite_size_shift"]
        of_limits = np.where(np.isinf([model.dimension for model in noted_models]), shifts, 0.0)
        noted_columns = noted_grid.columns | {"finite_size_shift": of_limits, "model": noted_models}
        noted_points = rows_of(noted_grid.axes, noted_columns)
        network_eta = partial(_network_eta, searched) if "eta" in searched else None
        error_name = observables.headline_error(grid.models[0])
        curve_sentences = [
            change_note(noted_points, axes, error_name, asked, network_eta),
            observables.few_products_note(noted_grid.models, grid.axes["alpha"]),
            observables.far_below_limit_note(noted_grid.models, shifts),
        ]
    curve_sentences += grid.notes_on_errors() + _price_notes(grid, asked)
    alpha_and_lam = ([point[name] for point in noted_points] for name in ("alpha", "lam"))
    curve_sentences.append(observables.large_penalty_note(grid.models[0].reuse, *alpha_and_lam))
    return grid, [*filter(None, curve_sentences)], float(of_limits[_farthest(of_limits)])


def notes_of_bounds(
    results: Sequence[tuple[dict[str, Any], Any, Sequence[Any]]], theory: str | None
) -> list[str]:
    """Notes on the changes of lower bounds to the network, unless a ``theory`` was named, and on
    those of the errors at the best penalties; without any, on that at alpha = 1 to d = 1000.

    The ``results``, of which the first, the middle and the last are looked at, have the place, the
    bounds and the optima of each learning rate.
    """
    names = _noted_changes(theory)
    bound_points, error_points = [], []
    with deadline(SECONDS_FOR_NOTE):
        for noted_rate in dict.fromkeys((0, len(results) // 2, len(results) - 1)):
            place, bounds, optima = results[noted_rate]
            if TO_NETWORK in names and bounds.lower > 1e-6 * bounds.upper:  # else it is rounding
                lower_bound = lambda model: observables.bounds(model).lower  # noqa: E731
                bound_change = CHANGES[TO_NETWORK].of(bounds.model, bounds.lower, lower_bound)
                bound_points.append({**place, "converged": True, TO_NETWORK: bound_change})
            error_names = names if optima else ["finite_size_shift"]
            with suppress(ConvergenceError):
                optima = optima or [observables.optimal_lambda(bounds.model, alpha=1.0)]
            for point in (best.point for best in optima):
                error_changes = {name: getattr(point, name) for name in error_names}
                error_points.append({**place, **point.place, "converged": True, **error_changes})
    error_name = observables.headline_error(results[0][1].model)
    rate_axes = [*results[0][0]]
    of_errors_note = change_note(error_points, [*rate_axes, "alpha", "lam"], error_name)
    of_errors_note = of_errors_note.replace("(--dimension", "(replica curve --dimension")
    return [*filter(None, [change_note(bound_points, rate_axes, "lower bound"), of_errors_note])]


def note_of_spectrum(found: Spectrum, theory: str | None) -> str:
    """Note on the change of the bulk's upper end from an sRF to its network, or that it is not
    known where that of the network is not sharp or not found in time; empty if a ``theory`` was
    named, or the sRF's end is not sharp."""

    def bulk_end(bulk: Spectrum) -> float:
        """The upper end if it is sharp; few draws reach the end of a tail."""
        return float(bulk.edges[-1, 1]) if bulk.converged and bulk.sharp[-1, 1] else np.nan

    if theory is not None or np.isnan(bulk_end(found)):
        return ""
    network_end = lambda network: bulk_end(spectrum(network, found.alpha))  # noqa: E731
    with deadline(SECONDS_FOR_NOTE):
        end_change = CHANGES[TO_NETWORK].of(found.model, bulk_end(found), network_end)
    if np.isnan(end_change):
        return (
            "the upper end of the network's bulk is not known here, and may be another "
            "(replica-validate spectrum simulates it)"
        )
    spectrum_point = {"alpha": found.alpha, "converged": True, TO_NETWORK: end_change}
    return change_note([spectrum_point], ["alpha"], "upper end of the bulk")


def _noted_changes(theory: str | None) -> list[str]:
    """Names of CHANGES to note: that to the network of an sRF for which nobody asked."""
    return [*NOTED] if theory is None else ["finite_size_shift"]


def change_note(
    points: Sequence[dict[str, Any]],
    axes: Sequence[str],
    error: str,
    asked: bool = False,
    network_eta: Callable[..., str] | None = None,
) -> str:
    """Note on the largest relative changes of the ``error`` over the points; empty for none.

    The points have columns of NOTED, and of the ``axes``, which name the place.  Changes that are
    small are noted only where ``asked``.  Where the best eta is searched,
    ``network_eta`` says of a point what that of the network is, which is noted if it is another.
    """
    points = [point for point in points if point["converged"]]  # others have a warning
    sentences = []
    for name, (other, note) in NOTED.items():
        noted_points = [point for point in points if name in point]
        changes = np.array([point[name] for point in noted_points], dtype=float)
        unknown = [point for point, x in zip(noted_points, changes, strict=True) if np.isnan(x)]
        unknown_count = sum(bool(one.get(error) != 0) for one in unknown)  # 0 has no change
        if unknown_count:
            where = f" at {unknown_count} of {changes.size} points" * (unknown_count < changes.size)
            tried = " tried" * bool(where and not asked)
            distance_text = f"how far these are from {other} is not known{where}{tried}"
            sentences.append(f"{distance_text}: no answer, or none in time")
        least = 0.0 if asked else CHANGES[name].noted
        if not np.isfinite(changes).any():
            continue
        point, shift = noted_points[_farthest(changes)], changes[_farthest(changes)]
        is_far, note_ending = bool(abs(shift) > least), ""
        if network_eta is not None:
            of_size = "; the best eta may be another, too: --dimension 1000 searches it there"
            note_ending = network_eta(point, is_far) if name == TO_NETWORK else of_size * is_far
        if is_far or note_ending:
            place = ", ".join(f"{axis} = {text(point[axis])}" for axis in axes) or "these steps"
            change = f"{shift:+.0%}" if abs(shift) > NOTED_SHIFT else f"{shift:+.1%}"
            if name != TO_NETWORK and abs(shift) > NOTED_SHIFT:
                change = observables.shift_text(shift)
            change = "less than 0.05%" if abs(shift) < 5e-4 else change
            sentence = note.format(error=error.replace("_", " "), place=place, change=change)
            sentences.append(sentence + note_ending)
    return "; and ".join(sentences)


def _farthest(changes: ArrayLike) -> int:
    """Index of the largest of the relative changes that are known."""
    return int(np.abs(np.nan_to_num(changes)).argmax())


def _network_eta(searched: Container[str], point: Mapping[str, Any], is_far: bool) -> str:
    """The best eta of the network in the place of an sRF at a point, and the error there, or that
    it may differ, if it is not found in time.  Empty where it differs by 20 % at most, unless the
    error ``is_far``, too."""
    srf_point = {"alpha": point["alpha"], "lam": None if "lam" in searched else point["lam"]}

    def network_optimum(network: SpikedRandomFeatures) -> Array:
        network_best = observables.optimal_eta(network, **srf_point)
        return np.array([network_best.eta, network_best.test_error])

    of_srf = np.array([point["eta"], point["test_error"]])
    with deadline(TIME_LIMIT if is_far else SECONDS_FOR_NOTE):
        eta, error = of_srf * (1 + CHANGES[TO_NETWORK].of(point["model"], of_srf, network_optimum))
    if not np.isfinite(eta):
        return ", whose best eta may differ"
    at_end = np.abs(np.log(np.divide(SEARCHED_RANGES["eta"], eta))).min() < 1e-6
    eta_text = f", whose best eta is {eta:.3g}" + ", an end of the range searched" * bool(at_end)
    eta_text += f", with a test error of {error:.4g} where the best of the sRF is {of_srf[1]:.4g}"
    return eta_text * bool(is_far or abs(eta / of_srf[0] - 1) > 0.2)


def _price_notes(grid: observables.Grid, asked: bool) -> list[str]:
    """Notes on what the theory at d = 1000, or at the models' own dimensions, leaves out: of losses
    other than the square and of networks at their own dimension also where nobody ``asked``."""
    prices = {
        observables.price_note(model, loss)
        for model in grid.models
        for loss in grid.losses
        if asked or not loss.is_square or (model.rows is not None and np.isfinite(model.dimension))
    }
    return sorted(prices)


def note_edges(points: Sequence[Mapping[str, Any]]) -> None:
    """Write a note where the best value of a parameter is at an end of the range searched, and
    where it is beside values that were not solved.

    Points have the best values, and the names ``at_edge`` of those that are the one or the other.
    """
    best_beside_unsolved = (
        "beside values that were not solved, at which the test error may be lower: replica curve "
        "or readout with --{option} 0.01:10:9:log says why"
    )
    best_at_range_end = (
        "at the edge of the range searched ({ranges}): beyond it the test error may fall in this "
        "theory, as replica curve or readout with values of --{option} there tells"
    )
    noted: dict[str, list[list[str]]] = {best_at_range_end: [], best_beside_unsolved: []}
    for point in points:
        best_names = str(point.get("at_edge", "")).split()
        distances = {x: np.abs(np.log(np.divide(SEARCHED_RANGES[x], point[x]))) for x in best_names}
        at_ends = [name for name in best_names if distances[name].min() < 1e-6]
        noted[best_at_range_end].append(at_ends)
        noted[best_beside_unsolved].append([name for name in best_names if name not in at_ends])
    for sentence, of_points in noted.items():
        if best_names := sorted({name for of_point in of_points for name in of_point}):
            ranges = ", ".join("{} {:g} to {:g}".format(x, *SEARCHED_RANGES[x]) for x in best_names)
            noted_where = f"at {sum(map(bool, of_points))} of {len(points)} points the best"
            note_ending = sentence.format(ranges=ranges, option=best_names[0])
            say(f"note: {noted_where} {' or '.join(best_names)} is {note_ending}")


def note_worse_than_zero(problem: Problem, errors: Sequence[float | None]) -> None:
    """Write a note where the test error is hardly below E sigma_*^2, the error of predicting 0."""
    known = [error for error in errors if error is not None and not np.isnan(error)]
    if not problem.labels.binary and known:
        zero = LabelLaw(problem.target).averages(problem.inputs).power
        count = sum(error > (1 - NOTHING_LEARNED) * zero for error in known)
        advice = "" if problem.intercept or problem.reuse else "--intercept or "
        if count:
            say(
                f"note: at {count} of {len(errors)} points the test error, up to {max(known):.4g}, "
                f"is hardly below {zero:.4g}, that of predicting 0, or above it: {advice}a larger "
                "--lam may help, unless the student cannot see the target (replica staircase "
                "--student)"
            )
