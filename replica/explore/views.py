"""What the explorer shows of a state: figures, each with the Python and the command line that give
its numbers again; the theory at one point; simulated networks."""

import json
import shlex
import subprocess
import sys
from collections.abc import Callable
from time import monotonic
from typing import NamedTuple, cast

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from solvers.quadrature import QuadratureError
from solvers.results import Array, ConvergenceError

from ..cli import Options, parse_grid
from ..errors import InvalidArgument
from ..observables import LearnedFunction, Solution, bounds, learning_curve, solve
from ..plotting import plot_bounds, plot_curve, plot_functions, plot_learned, plot_spectrum
from ..spectra import spectrum
from .texts import (
    State,
    command,
    grid_code,
    loss_code,
    number_of,
    options_of,
    point_code,
    python,
    request_of,
)

# What a state may be answered with in the place of a figure: their messages are sentences.
REFUSALS = (InvalidArgument, ConvergenceError, QuadratureError, MemoryError)
RATES = "0.1:30:31:log"  # of the bounds: from hardly a step to one that saturates most students
SIMULATION = {"dimension": "300", "seeds": "4", "rng": "1"}  # seconds on a laptop
WAIT = 5.0  # seconds for a figure, flagged or drawn with fewer points beyond: nobody waits longer
DOTS, PATIENCE = 5, 120  # simulated points of a curve, and the seconds they may take


class View(NamedTuple):
    """A figure, the texts that give its numbers again, and a sentence on what it leaves out."""

    figure: Figure
    python: str
    command: str
    note: str = ""


class Simulated(NamedTuple):
    """Test errors of simulated networks, all (n,), and the command that gives them."""

    alpha: Array
    test_error: Array
    standard_error: Array
    command: str


def point(state: State) -> Solution:
    """The theory at the one point."""
    request = request_of(state)
    at, lam = number_of(state, "at"), number_of(state, "lam")
    return solve(request.single_model(), alpha=at, lam=lam, loss=request.loss, time_limit=WAIT)


def curve_view(state: State, simulated: Simulated | None = None) -> View:
    """Errors over alpha, with what was simulated."""
    request, lam = request_of(state), number_of(state, "lam")
    model, loss = request.single_model(), request.loss

    def errors(alpha: Array) -> xr.Dataset:
        return learning_curve(model, alpha=alpha, lam=lam, loss=loss, time_limit=WAIT)

    alpha = _in_time(request.alpha, errors)
    curve = errors(alpha)
    ax = plot_curve(curve)
    _mark(ax, number_of(state, "at"))
    typed = command("replica curve", options_of(state))
    if simulated is not None:
        dots, error, spread, also = simulated
        label = f"networks, d = {SIMULATION['dimension']}, ± standard error"
        ax.errorbar(dots, error, spread, fmt="ko", markersize=4, capsize=2, label=label)
        ax.set_ylim(0, max(ax.get_ylim()[1], 1.05 * float((error + spread).max())))
        ax.legend(frameon=False, fontsize="small")
        typed += f"\n{also}"
    grid = grid_code(state["alpha"])
    lines = [
        *point_code(state),
        f"curve = replica.learning_curve(model, alpha={grid}, lam={lam}{loss_code(state)})",
        "print(curve.test_error.values.ravel())",
    ]
    note = _left_out(curve.converged.values.sum(), request.alpha, "points of the curve")
    return View(_figure(ax), python(state, lines), typed, note)


def bounds_view(state: State) -> View:
    """Bounds on the test error over the learning rate, and the functions that attain them."""
    problem, all_rates = request_of(state).problem, parse_grid("eta", RATES)
    rates = _in_time(all_rates, lambda some: bounds(problem, eta=some))
    found, here = bounds(problem, eta=rates), bounds(problem)
    left, right = Figure(figsize=(11, 4), layout="constrained").subplots(1, 2)
    rows = zip(found.eta, found.lower, found.upper, strict=True)
    points = [dict(zip(("eta", "lower", "upper"), row, strict=True)) for row in rows]
    plot_bounds(points, found.linear, ax=left)
    _mark(left, number_of(state, "eta"))
    plot_functions(here, ax=right)
    of = "step" if state["model"] == "srf" else "model"
    lines = [
        f"found = replica.bounds({of}, eta={grid_code(RATES)})",
        "print(found.lower, found.upper)",
    ]
    options = options_of(state, without=("alpha", "lam", "loss")) | {"eta": RATES}
    typed = command("replica bounds", options)
    note = _left_out(np.isfinite(found.upper).sum(), all_rates, "learning rates")
    return View(_figure(left), python(state, lines), typed, note)


def spectrum_view(state: State) -> View:
    """Density of the eigenvalues of the features, and the outliers beyond it."""
    at = number_of(state, "at")
    found = spectrum(request_of(state).single_model(), at, time_limit=WAIT)
    if not found.converged:
        raise ConvergenceError(f"no spectrum: {found.status.value}", found)
    lines = [
        f"found = replica.spectrum(model, alpha={at})",
        "print(found.edges, found.outliers)",
    ]
    options = options_of(state, without=("lam", "loss")) | {"alpha": state["at"]}
    figure = _figure(plot_spectrum(found))
    return View(figure, python(state, lines), command("replica spectrum", options))


def learned_view(state: State) -> View:
    """The mean output of the trained network over the projection on the spike.

    No command gives that function: the one shown is of the point's errors.
    """
    request = request_of(state)
    if not request.loss.is_square:
        raise InvalidArgument("loss", request.loss.name, "square for the learned function")
    at, lam = number_of(state, "at"), number_of(state, "lam")
    request.single_model().refuse_channel()
    learned = LearnedFunction(found := point(state))
    if not found.converged:
        raise ConvergenceError(f"no learned function: {found.status.value}", found)
    lines = [
        *point_code(state),
        f"learned = replica.learned_function(model, alpha={at}, lam={lam})",
        "print(learned.mean([-1.0, 0.0, 1.0]))",
    ]
    options = options_of(state) | {"alpha": state["at"]}
    figure = _figure(plot_learned(learned))
    return View(figure, python(state, lines), command("replica curve", options))


VIEWS: dict[str, Callable[[State], View]] = {
    "learning curve": curve_view,
    "bounds": bounds_view,
    "spectrum": spectrum_view,
    "learned function": learned_view,
}


def simulate(state: State) -> Simulated:
    """A small Monte Carlo of the network, by the command that is shown for it.

    Raises
    ------
    InvalidArgument
        Where the command refuses, in its words, or takes too long.
    """
    request_of(state)
    typed = command("replica-validate simulate", _simulation(state))
    program = [sys.executable, "-m", "validation", *shlex.split(typed)[1:], "--json"]
    try:
        done = subprocess.run(
            program, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=PATIENCE
        )
    except subprocess.TimeoutExpired:
        raise InvalidArgument("the simulation", None, f"done in {PATIENCE} s") from None
    if done.returncode:
        said = done.stderr.strip().splitlines() or [f"status {done.returncode}"]
        raise InvalidArgument("the simulation", said[-1], "possible")
    points = json.loads(done.stdout)["points"]
    names = ("alpha", "simulated_test", "stderr_test")
    alpha, error, spread = (np.array([one[name] for one in points], float) for name in names)
    return Simulated(alpha, error, spread, typed)


def _simulation(state: State) -> Options:
    """The options of the Monte Carlo: a few points of the curve, small networks."""
    few = {"alpha": ",".join(f"{x:.6g}" for x in _some(parse_grid("alpha", state["alpha"]), DOTS))}
    return options_of(state, without=("model",)) | few | SIMULATION


def _some(grid: Array, count: int) -> Array:
    """That many points of a grid, from one end to the other."""
    return grid[np.linspace(0, grid.size - 1, min(grid.size, count)).round().astype(int)]


def _in_time(grid: Array, compute: Callable[[Array], object]) -> Array:
    """As many points of a grid as can be waited for, by the seconds that its ends take; those
    between them may take twice as long."""
    ends, start = _some(grid, 2), monotonic()
    compute(ends)
    each = (monotonic() - start) / ends.size
    return _some(grid, max(2, int(WAIT / 2 / each)))


def _left_out(shown: int, grid: Array, what: str) -> str:
    """The sentence on points of a grid that are not drawn, if any."""
    if shown == grid.size:
        return ""
    return (
        f"{shown} of {grid.size} {what} are drawn: the others did not converge, or would take "
        f"longer than {WAIT:g} seconds; the programs below have more time"
    )


def _figure(ax: Axes) -> Figure:
    """The figure that has the axes."""
    return cast(Figure, ax.figure)


def _mark(ax: Axes, x: float) -> None:
    """A thin line where the one point is."""
    ax.axvline(x, color="0.7", linewidth=0.8, zorder=0)
