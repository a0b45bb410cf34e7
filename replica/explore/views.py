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
from . import computed, texts
from .computed import SIMULATION, SimulatedCurve, in_turn
from .texts import State, number_of, options_of, request_of

# Errors in the place of a figure: their messages are sentences.
REFUSALS = (InvalidArgument, ConvergenceError, QuadratureError, MemoryError)
SIDE = 24  # values of a map along each axis


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
    state: State, simulated: SimulatedCurve | None = None, earlier: State | None = None
) -> View:
    """Errors over alpha, with simulated ones, over the curve of an ``earlier`` state."""
    found = _curve(state)
    request, lam = request_of(state), number_of(state, "lam")
    typed = texts.command("replica curve", options_of(state))
    if simulated is None:
        ax = plotting.plot_curve(found)
    else:
        dots = simulated.points.assign_attrs(found.attrs)
        size = f"networks, d = {SIMULATION['dimension']}"
        ax = plotting.plot_comparison(dots, {"theory": found}, simulated=size)
        typed += f"\n{simulated.command}"
    refusal = "" if earlier is None else _draw_earlier(ax, state, earlier, found)
    _mark(ax, number_of(state, "at"))
    grid = texts.grid_code(state["alpha"])
    lines = [
        *texts.point_code(state),
        f"curve = replica.learning_curve(model, alpha={grid}, lam={lam}{texts.loss_code(state)})",
        "print(curve.test_error.values)",
    ]
    converged = found.converged.values
    note = _left_out(converged, found.alpha.size, request.alpha.size, "points of the curve")
    note = "; ".join(filter(None, [note, refusal]))
    program = texts.python(state, lines, "curve", "curve")
    return View(ax.figure, program, typed, note, partial(_csv, found))


def _curve(state: State) -> xr.Dataset:
    """The errors of a state over its alpha."""
    request, lam = request_of(state), number_of(state, "lam")
    return computed.curve(request.single_model(), tuple(request.alpha.tolist()), lam, request.loss)


def _draw_earlier(ax: Axes, state: State, earlier: State, now: xr.Dataset) -> str:
    """Draw the test error of an earlier state, dotted; the reason why it is not drawn, if any."""
    found = _curve(earlier)
    if ("classification_error" in found) != ("classification_error" in now):
        return "the curve that was kept is of another error, and not drawn"
    changes = [f"{name} {text}" for name, text in earlier.items() if text != state.get(name)]
    label = f"kept: {', '.join(changes)}" if changes else "kept"
    shown = "classification_error" if "classification_error" in found else "test_error"
    style: dict[str, Any] = {"color": "0.3", "linestyle": ":", "linewidth": 2}
    style |= plotting.marks_of(found[shown])
    ax.plot(found.alpha, found[shown], label=label.replace("$", r"\$"), **style)
    plotting.add_legend(ax, ax.figure.axes[1:])
    return ""


def map_view(state: State) -> View:
    """The error over rates of the step and samples of the readout: a phase diagram."""
    request, lam = request_of(state), number_of(state, "lam")
    spans = {"eta": f"0.1:20:{SIDE}:log", "alpha": texts.coarse(state["alpha"], SIDE)}
    rates, grid = (tuple(parse_grid(name, text).tolist()) for name, text in spans.items())
    found = computed.over_rates(request.single_model(), rates, grid, lam, request.loss)
    eta, alpha = (texts.grid_code(text) for text in spans.values())
    over = f"eta={eta}, alpha={alpha}, lam={lam}{texts.loss_code(state)}"
    lines = [
        f"curve = replica.learning_curve(model, {over})",
        "print(curve.test_error.values)",
    ]
    typed = texts.command("replica curve", options_of(state, without=("eta", "alpha")) | spans)
    figure = plotting.plot_curve(found).figure  # a single rate, of what takes long, is a line
    note = _left_out(found.converged.values, found.eta.size, len(rates), "learning rates")
    return View(
        figure, texts.python(state, lines, "curve", "map"), typed, note, partial(_csv, found)
    )


def bounds_view(state: State) -> View:
    """Bounds on the test error over the learning rate, and the functions that attain them."""
    span = "0.3:30:19:log"  # from hardly a step to one that saturates most students
    here, rates = computed.bounds(request_of(state).problem), parse_grid("eta", span)
    # over the rate they depend on neither that of the state nor the width
    fixed = request_of({**state, "eta": "1", "beta": "1"})
    found = computed.bounds_over(fixed.problem, tuple(rates.tolist()))
    left, right = (figure := Figure(figsize=(11, 4))).subplots(1, 2)
    plotting.plot_bounds(found.to_dataframe().to_dict("records"), found.linear, ax=left)
    _mark(left, number_of(state, "eta"))
    plotting.plot_functions(here, ax=right)
    figure.set_layout_engine("constrained")  # which takes long: once
    lines = [
        f"found = replica.bounds(model, eta={texts.grid_code(span)})",
        "print(found.lower, found.upper)",
    ]
    options = options_of(state, without=("alpha", "lam", "loss")) | {"eta": span}
    typed = texts.command("replica bounds", options)
    note = _left_out(np.isfinite(found.upper), found.eta.size, rates.size, "learning rates")
    return View(
        figure, texts.python(state, lines, "found", "bounds"), typed, note, partial(_csv, found)
    )


def spectrum_view(state: State) -> View:
    """Density of the eigenvalues of the features, and the outliers beyond it."""
    model, at = request_of(state).single_model(), number_of(state, "at")
    options = options_of(state, without=("lam", "loss")) | {"alpha": state["at"]}
    figure, note, more_time, table = None, "", "", None
    try:
        found = computed.spectrum(model, at)
        figure, table = plotting.plot_spectrum(found).figure, partial(_csv, found)
    except ConvergenceError as error:
        note = str(error)
        if error.result is None:  # it was not found in time
            note += "; the programs below have 600 seconds"
            more_time = ", time_limit=600.0"
            options["time-limit"] = "600"
    lines = [
        f"found = replica.spectrum(model, alpha={at}{more_time})",
        "print(found.edges, found.outliers)",
    ]
    program = texts.python(state, lines, "found", "spectrum")
    return View(figure, program, texts.command("replica spectrum", options), note, table)


def learned_view(state: State) -> View:
    """The mean output of the trained network over the projection on the spike.

    No command gives that function: the one shown is of the point's errors.
    """
    request = request_of(state)
    if not request.loss.is_square:
        raise InvalidArgument("loss", request.loss.name, "square for the learned function")
    at, lam = number_of(state, "at"), number_of(state, "lam")
    request.single_model().refuse_channel()
    learned = LearnedFunction(found := computed.point(state))
    if not found.converged:
        raise ConvergenceError(f"no learned function: {found.status.value}", found)
    lines = [
        *texts.point_code(state),
        f"learned = replica.learned_function(model, alpha={at}, lam={lam})",
        "print(learned.mean([-1.0, 0.0, 1.0]))",
    ]
    options = options_of(state) | {"alpha": state["at"]}
    figure, typed = plotting.plot_learned(learned).figure, texts.command("replica curve", options)
    program = texts.python(state, lines, "learned", "learned")
    x = np.linspace(-3, 3, 121)
    values = {"mean": learned.mean(x), "variance": learned.variance(x)}
    table = partial(_csv, xr.Dataset({k: ("kappa", v) for k, v in values.items()}, {"kappa": x}))
    return View(figure, program, typed, table=table)


VIEWS: dict[str, Callable[[State], View]] = {
    "learning curve": curve_view,
    "phase diagram": map_view,
    "bounds": bounds_view,
    "spectrum": spectrum_view,
    "learned function": learned_view,
}


def _csv(found: Any) -> bytes:
    """A result as CSV."""
    frame = found.to_dataframe()
    csv: str = frame.to_csv(index=frame.index.names != [None])  # a name is that of an axis
    return csv.encode()


def _left_out(converged: NDArray[np.bool_], computed: int, asked: int, what: str) -> str:
    """Sentence on points of a grid that are not drawn; empty if there are none."""
    sentences = []
    if computed < asked:
        of = f"{computed} of {asked} {what}"
        sentences.append(f"{of} are computed, to answer in time; the programs below compute all")
    if failed := int((~converged).sum()):
        sentences.append(f"{failed} did not converge")
    return "; ".join(sentences)


def _mark(ax: Axes, x: float) -> None:
    """Draw a thin line at the point of the state."""
    ax.axvline(x, color="0.7", linewidth=0.8, zorder=0)
