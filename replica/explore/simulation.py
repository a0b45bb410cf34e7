"""Simulated networks beside the theory of the explorer."""

import json
import shlex
import subprocess
import sys
from typing import NamedTuple

import numpy as np
import xarray as xr

from ..cli import parse_grid
from ..errors import InvalidArgument
from .computed import some
from .texts import State, command, options_of, request_of

SIMULATION = {"dimension": "300", "seeds": "4", "rng": "1"}  # seconds on a laptop


class SimulatedCurve(NamedTuple):
    """Errors of simulated networks over alpha, and the command that gives them."""

    points: xr.Dataset
    command: str


def simulate(state: State) -> SimulatedCurve:
    """A small Monte Carlo of the network, by the command that is shown for it.

    Raises
    ------
    InvalidArgument
        Where the command refuses, in its words, or takes too long.
    """
    request_of(state)
    typed = simulation_command(state)
    patience = 120  # seconds
    program = [sys.executable, "-m", "validation", *shlex.split(typed)[1:], "--json"]
    try:
        done = subprocess.run(
            program, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=patience
        )
    except subprocess.TimeoutExpired:
        raise InvalidArgument("the simulation", None, f"done in {patience} s") from None
    if done.returncode:
        said = done.stderr.strip().splitlines() or [f"status {done.returncode}"]
        raise InvalidArgument("the simulation", said[-1], "possible")
    points = json.loads(done.stdout)["points"]
    columns = {name: np.array([one[name] for one in points], float) for name in points[0]}
    alpha, lam = columns.pop("alpha"), columns.pop("lam")[:1]
    errors = {name: (("alpha", "lam"), column[:, None]) for name, column in columns.items()}
    return SimulatedCurve(xr.Dataset(errors, {"alpha": alpha, "lam": lam}), typed)


def simulation_command(state: State) -> str:
    """The command of the Monte Carlo: five points of the curve, small networks."""
    few = {"alpha": ",".join(f"{x:.6g}" for x in some(parse_grid("alpha", state["alpha"]), 5))}
    options = options_of(state, without=("model",)) | few | SIMULATION
    return command("replica-validate simulate", options)
