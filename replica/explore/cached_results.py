"""Computations of the explorer, cached by their arguments, so that a slider that changes none of
them costs a drawing; and simulated networks.
"""

import json
import shlex
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from threading import Lock
from time import thread_time
from typing import Any, ParamSpec, TypeVar

import numpy as np
import pandas
import xarray as xr

from solvers.resources import deadline
from solvers.results import Array, ConvergenceError

from ..cli import parse_grid
from ..convex import Loss
from ..errors import InvalidArgument
from ..observables import Bounds, BoundsOverEta, Solution, learning_curve, solve
from ..observables import bounds as bounds_of
from ..problem import Problem, SpikedRandomFeatures
from ..spectra import Spectrum
from ..spectra import spectrum as spectrum_of
from .texts import State, command, number_of, options_of, request_of

P = ParamSpec("P")
T = TypeVar("T")
# The only thread that draws: matplotlib opens fonts anew in every thread, and keeps them.
PLOTTING_THREAD = ThreadPoolExecutor(1)
LINE_TIME = 0.5  # seconds of computing for a line: it has fewer points where all would take longer
WAIT = 10.0  # seconds for a point or a spectrum: beyond, they are flagged


def in_turn(function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Result of a function, called in the one thread of all pages, after calls of other pages."""
    return PLOTTING_THREAD.submit(function, *args, **kwargs).result()


def point(state: State) -> Solution:
    """Theory at the point of a state."""
    request = request_of(state)
    at, lam = number_of(state, "at"), number_of(state, "lam")
    state_solution = _cached_point(request.single_model(), at, lam, request.loss)
    if not state_solution.converged:  # it may in more time
        _cached_point.cache_clear()
    return state_solution


@lru_cache(maxsize=64)
def _cached_point(model: SpikedRandomFeatures, alpha: float, lam: float, loss: Loss) -> Solution:
    return solve(model, alpha=alpha, lam=lam, loss=loss, time_limit=WAIT)


@lru_cache(maxsize=64)
def curve(
    model: SpikedRandomFeatures, lam: float, loss: Loss, alpha: tuple[float, ...],
    eta: tuple[float, ...] = (),
) -> xr.Dataset:  # fmt: skip
    """Errors over as much of a grid of ``alpha`` as there is time for; or over all of it at as many
    of the learning rates ``eta`` as there is time for."""
    state_axes: dict[str, Any] = {"alpha": np.array(alpha)}

    def errors(some_values: Array) -> xr.Dataset:
        with deadline(WAIT):  # all of them
            some_axes = state_axes | {"eta" if eta else "alpha": some_values}
            return learning_curve(model, **some_axes, lam=lam, loss=loss, time_limit=WAIT)

    return _grid_in_time(np.array(eta or alpha), errors, 6.0 if eta else 1.0)  # longer for a map


@lru_cache(maxsize=64)
def bounds_over(problem: Problem, rates: tuple[float, ...]) -> BoundsOverEta:
    """Bounds at as many of the learning rates as there is time for."""
    return _grid_in_time(np.array(rates), lambda eta: bounds_of(problem, eta=eta))


@lru_cache(maxsize=64)
def bounds(problem: Problem) -> Bounds:
    """Bounds at the problem's own learning rate."""
    return bounds_of(problem, time_limit=WAIT)


@lru_cache(maxsize=64)
def spectrum(model: SpikedRandomFeatures, at: float) -> Spectrum:
    """The spectrum at one alpha.

    Raises
    ------
    ConvergenceError
        If it is not found in time, or not all of it.
    """
    groups = len(model.geometry.fractions)
    if groups > 6:  # of which 48 take far more than WAIT to be given up
        raise ConvergenceError(f"the spectrum of {groups} groups of neurons takes minutes", None)
    cached_spectrum = spectrum_of(model, at, time_limit=WAIT)
    if not cached_spectrum.converged:
        raise ConvergenceError(f"no spectrum: {cached_spectrum.status.value}", cached_spectrum)
    return cached_spectrum


def some(grid: Array, points: int) -> Array:
    """Evenly chosen points of a grid, ``points`` of them; its middle if that is 1."""
    points = min(grid.size, points)
    shown_at = np.linspace(0, grid.size - 1, points) if points > 1 else np.array([grid.size // 2])
    return grid[shown_at.round().astype(int)]


def _grid_in_time(grid: Array, compute_points: Callable[[Array], T], longer: float = 1.0) -> T:
    """Results at as many points of a grid as LINE_TIME seconds, or ``longer`` times these, allow.

    The seconds of one point, then of at most five, tell how many that are.
    """
    points_in_time = 1
    for most_points in (1, 5, grid.size):
        points_tried, start_time = min(points_in_time, most_points), thread_time()
        points_computed = compute_points(some(grid, points_tried))
        points_in_time = int(points_tried * longer * LINE_TIME / (thread_time() - start_time))
        if points_in_time <= points_tried:
            break
    return points_computed


SIMULATION = {"dimension": "300", "seeds": "4", "rng": "1"}  # seconds on a laptop
PATIENCE = 120.0  # seconds
ALONE = Lock()  # held while a page simulates: each takes a core


def simulate(state: State) -> xr.Dataset:
    """Errors of a few small networks over alpha, simulated by the command that is shown for it, in
    a process of its own.

    Raises
    ------
    InvalidArgument
        Where the command refuses, in its words, takes too long, or another is running.
    """
    request_of(state)
    arguments = [*shlex.split(simulation_command(state))[1:], "--json", "--workers", "1"]
    streams: dict[str, Any] = {"stdin": subprocess.DEVNULL, "capture_output": True, "text": True}
    if not ALONE.acquire(blocking=False):
        raise InvalidArgument("the simulation", None, "alone: another page's is running")
    try:
        finished_run = subprocess.run(
            [sys.executable, "-m", "validation", *arguments], timeout=PATIENCE, **streams
        )
    except subprocess.TimeoutExpired:
        raise InvalidArgument("the simulation", None, f"done in {PATIENCE:g} s") from None
    finally:
        ALONE.release()
    if finished_run.returncode:
        messages = finished_run.stderr.strip().splitlines() or [f"status {finished_run.returncode}"]
        raise InvalidArgument("the simulation", messages[-1], "possible")
    simulated_table = pandas.DataFrame(json.loads(finished_run.stdout)["points"], dtype=float)
    return simulated_table.set_index(["alpha", "lam"]).to_xarray()


def simulation_command(state: State) -> str:
    """The command of the Monte Carlo: five points of the curve, small networks."""
    alphas = {"alpha": ",".join(f"{x:.6g}" for x in some(parse_grid("alpha", state["alpha"]), 5))}
    simulation_options = options_of(state, without=("theory",)) | alphas | SIMULATION
    return command("replica-validate simulate", simulation_options)
