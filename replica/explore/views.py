"""Figures that the explorer shows of a state, each with the Python and the command line that give
its numbers again."""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure, FigureBase
from numpy.typing import NDArray

from solvers.quadrature import QuadratureError
from solvers.results import ConvergenceError

from .. import plotting
from ..cli import parse_grid
from ..errors import InvalidArgument
from ..observables import LearnedFunction
from ..problem import refuse_options
from . import cached_results, texts
from .cached_results import SIMULATION, in_turn, simulation_command
from .texts import State, number_of, options_of, request_of

# Errors in the place of a figure: their messages are sentences.
REFUSALS = (InvalidArgument, ConvergenceError, QuadratureError, MemoryError)


def picture(figure: Any, kind: str) -> bytes:
    """A figure as a file, drawn in turn."""
    return in_turn(plotting.picture, figure, kind)


class View(NamedTuple):
    """Figure, None where it took too long; programs that give its numbers again; note on points
    left out; numbers as CSV."""

    figure: FigureBase | None
    python: str
    command: str
    note: str = ""
    table: Callable[[], bytes] | None = None


def curve_view(
    state: State, simulated: xr.Dataset | None = None, earlier: State | None = None
) -> View:
    """Errors over alpha, with simulated ones, over the curve of an ``earlier`` state."""
    curve_errors = _curve(state)
    request, lam = request_of(state), number_of(state, "lam")
    command_line = texts.command("replica curve", options_of(state))
    if simulated is None:
        axes = plotting.plot_curve(curve_errors)
    else:
        dots = simulated.assign_attrs(curve_errors.attrs)
        simulated_size = f"networks, d = {SIMULATION['dimension']}"
        axes = plotting.plot_comparison(dots, {"theory": curve_errors}, simulated=simulated_size)
        command_line += f"\n{simulation_command(state)}"
    earlier_not_drawn = "" if earlier is None else _draw_earlier(axes, state, earlier, curve_errors)
    _mark_state_point(axes, number_of(state, "at"))
    grid = texts.grid_code(state["alpha"])
    program_lines = [
        *texts.point_code(state),
        f"curve = replica.learning_curve(model, alpha={grid}, lam={lam}{texts.loss_code(state)})",
        "print(curve.test_error.values)",
    ]
    converged = curve_errors.converged.values
    note = _left_out(converged, curve_errors.alpha.size, request.alpha.size, "points of the curve")
    note = "; ".join(filter(None, [note, earlier_not_drawn]))
    python_code = texts.python(state, program_lines, "curve", "curve")
    return View(axes.figure, python_code, command_line, note, partial(_csv, curve_errors))


def _curve(state: State) -> xr.Dataset:
    """The errors of a state over its alpha."""
    curve_request, lam = request_of(state), number_of(state, "lam")
    return cached_results.curve(
        curve_request.single_model(), lam, curve_request.loss, tuple(curve_request.alpha.tolist())
    )


def _draw_earlier(ax: Axes, state: State, earlier: State, errors_now: xr.Dataset) -> str:
    """Draw the test error of an earlier state, dotted; the reason why it is not drawn, if any."""
    earlier_errors = _curve(earlier)
    if ("classification_error" in earlier_errors) != ("classification_error" in errors_now):
        return "the curve that was kept is of another error, and not drawn"
    state_changes = [f"{name} {text}" for name, text in earlier.items() if text != state.get(name)]
    label = f"kept: {', '.join(state_changes)}" if state_changes else "kept"
    shown = "classification_error" if "classification_error" in earlier_errors else "test_error"
    dotted: dict[str, Any] = {"color": "0.3", "linestyle": ":", "linewidth": 2}
    dotted |= plotting.marks_of(earlier_errors[shown])
    ax.plot(earlier_errors.alpha, earlier_errors[shown], label=label.replace("$", r"\$"), **dotted)
    plotting.add_legend(ax, ax.figure.axes[1:])
    return ""


def map_view(state: State) -> View:
    """The error over rates of the step and samples of the readout: a phase diagram."""
    map_side = 24  # values of a map along each axis
    request, lam = request_of(state), number_of(state, "lam")
    axis_texts = {"eta": f"0.1:20:{map_side}:log", "alpha": texts.coarse(state["alpha"], map_side)}
    rates, alphas = (tuple(parse_grid(name, text).tolist()) for name, text in axis_texts.items())
    map_errors = cached_results.curve(request.single_model(), lam, request.loss, alphas, rates)
    eta, alpha = (texts.grid_code(text) for text in axis_texts.values())
    call_arguments = f"eta={eta}, alpha={alpha}, lam={lam}{texts.loss_code(state)}"
    lines = [
        f"curve = replica.learning_curve(model, {call_arguments})",
        "print(curve.test_error.values)",
    ]
    typed = texts.command("replica curve", options_of(state, without=("eta", "alpha")) | axis_texts)
    figure = plotting.plot_curve(map_errors).figure  # a single rate, of what takes long, is a line
    note = _left_out(map_errors.converged.values, map_errors.eta.size, len(rates), "learning rates")
    return View(
        figure, texts.python(state, lines, "curve", "map"), typed, note, partial(_csv, map_errors)
    )


def bounds_view(state: State) -> View:
    """Bounds on the test error over the learning rate, and the functions that attain them."""
    rate_text = "0.3:30:19:log"  # from hardly a step to one that saturates most students
    state_bounds = cached_results.bounds(request_of(state).problem)
    bound_rates = parse_grid("eta", rate_text)
    # over the rate they depend on neither that of the state nor the width
    fixed_request = request_of({**state, "eta": "1", "beta": "1"})
    found = cached_results.bounds_over(fixed_request.problem, tuple(bound_rates.tolist()))
    bounds_axes, function_axes = (figure := Figure(figsize=(11, 4))).subplots(1, 2)
    plotting.plot_bounds(found.to_dataframe().to_dict("records"), found.linear, ax=bounds_axes)
    _mark_state_point(bounds_axes, number_of(state, "eta"))
    plotting.plot_functions(state_bounds, ax=function_axes)
    figure.set_layout_engine("constrained")  # which takes long: once
    lines = [
        f"found = replica.bounds(model, eta={texts.grid_code(rate_text)})",
        "print(found.lower, found.upper)",
    ]
    bounds_options = options_of(state, without=("alpha", "lam", "loss")) | {"eta": rate_text}
    typed = texts.command("replica bounds", bounds_options)
    note = _left_out(np.isfinite(found.upper), found.eta.size, bound_rates.size, "learning rates")
    return View(
        figure, texts.python(state, lines, "found", "bounds"), typed, note, partial(_csv, found)
    )


def spectrum_view(state: State) -> View:
    """Density of the eigenvalues of the features, and the outliers beyond it."""
    model, spectrum_alpha = request_of(state).single_model(), number_of(state, "at")
    options = options_of(state, without=("lam", "loss")) | {"alpha": state["at"]}
    figure, note_text, time_limit_code, table = None, "", "", None
    try:
        spectrum_found = cached_results.spectrum(model, spectrum_alpha)
        figure, table = plotting.plot_spectrum(spectrum_found).figure, partial(_csv, spectrum_found)
    except ConvergenceError as error:
        note_text = f"{error}; the programs below have 600 seconds"
        time_limit_code, options["time-limit"] = ", time_limit=600.0", "600"
    program_lines = [
        f"found = replica.spectrum(model, alpha={spectrum_alpha}{time_limit_code})",
        "print(found.edges, found.outliers)",
    ]
    python_code = texts.python(state, program_lines, "found", "spectrum")
    return View(figure, python_code, texts.command("replica spectrum", options), note_text, table)


def learned_view(state: State) -> View:
    """The mean output of the trained network over the projection on the spike.

    No command gives that function: the one shown is of the point's errors.
    """
    state_request = request_of(state)
    if not state_request.loss.is_square:
        raise InvalidArgument("loss", state_request.loss.name, "square for the learned function")
    alpha, lam = number_of(state, "at"), number_of(state, "lam")
    refuse_options(state_request.single_model(), "label_noise")
    learned = LearnedFunction(learned_point := cached_results.point(state))
    if not learned_point.converged:
        raise ConvergenceError(f"no learned function: {learned_point.status.value}", learned_point)
    program_lines = [
        *texts.point_code(state),
        f"learned = replica.learned_function(model, alpha={alpha}, lam={lam})",
        "print(learned.mean([-1.0, 0.0, 1.0]))",
    ]
    options = options_of(state) | {"alpha": state["at"]}
    figure, typed = plotting.plot_learned(learned).figure, texts.command("replica curve", options)
    python_code = texts.python(state, program_lines, "learned", "learned")
    x = np.linspace(-3, 3, 121)
    curves = {"mean": learned.mean(x), "variance": learned.variance(x)}
    table = partial(_csv, xr.Dataset({k: ("kappa", v) for k, v in curves.items()}, {"kappa": x}))
    return View(figure, python_code, typed, table=table)


VIEWS: dict[str, Callable[[State], View]] = {
    "learning curve": curve_view,
    "phase diagram": map_view,
    "bounds": bounds_view,
    "spectrum": spectrum_view,
    "learned function": learned_view,
}


def _csv(shown_result: Any) -> bytes:
    """A result as CSV."""
    frame = shown_result.to_dataframe()
    csv_text: str = frame.to_csv(index=frame.index.names != [None])  # a name is that of an axis
    return csv_text.encode()


def _left_out(converged: NDArray[np.bool_], computed: int, points_asked: int, named: str) -> str:
    """Sentence on points of a grid that are not drawn; empty if there are none."""
    not_drawn = []
    if computed < points_asked:
        of = f"{computed} of {points_asked} {named}"
        not_drawn.append(f"{of} are computed, to answer in time; the programs below compute all")
    if points_failed := int((~converged).sum()):
        not_drawn.append(f"{points_failed} did not converge")
    return "; ".join(not_drawn)


def _mark_state_point(view_axes: Axes, state_point: float) -> None:
    """Draw a thin line at the point of the state."""
    view_axes.axvline(state_point, color="0.7", linewidth=0.8, zorder=0)
