"""Simulated networks beside the theory of the explorer."""

import json
import shlex
import subprocess
import sys
import time
from contextlib import suppress
from typing import Any, NamedTuple

import pandas
import xarray as xr

from ..cli import ALONE, OPEN, parse_grid
from ..errors import InvalidArgument
from .computed import some
from .texts import State, command, options_of, request_of

SIMULATION = {"dimension": "300", "seeds": "4", "rng": "1"}  # seconds on a laptop
PATIENCE = 120.0  # seconds


class SimulatedCurve(NamedTuple):
    """Errors of simulated networks over alpha, and the command that gives them."""

    points: xr.Dataset
    command: str


def simulate(state: State, session: str | None = None) -> SimulatedCurve:
    """Simulate a few small networks, by the command that is shown for it.

    One simulation runs at a time, and ends when the page of its ``session`` is closed.

    Raises
    ------
    InvalidArgument
        Where the command refuses, in its words, takes too long, or another is running.
    """
    request_of(state)
    typed = simulation_command(state)
    if not ALONE.acquire(blocking=False):
        raise InvalidArgument("the simulation", None, "alone: another page's is running")
    try:
        known = session if OPEN else None
        done = finished([*shlex.split(typed)[1:], "--json", "--workers", "1"], known)
    finally:
        ALONE.release()
    if done.returncode:
        messages = done.stderr.strip().splitlines() or [f"status {done.returncode}"]
        raise InvalidArgument("the simulation", messages[-1], "possible")
    points = pandas.DataFrame(json.loads(done.stdout)["points"], dtype=float)
    return SimulatedCurve(points.set_index(["alpha", "lam"]).to_xarray(), typed)


def finished(arguments: list[str], session: str | None) -> subprocess.CompletedProcess[str]:
    """A command of ``validation`` in a process of its own, killed when it takes too long, or when
    its page is closed: an InvalidArgument."""
    program, end = [sys.executable, "-m", "validation", *arguments], time.monotonic() + PATIENCE
    pipes: dict[str, Any] = dict.fromkeys(("stdout", "stderr"), subprocess.PIPE)
    with subprocess.Popen(program, stdin=subprocess.DEVNULL, text=True, **pipes) as process:
        try:
            while time.monotonic() < end and (session is None or session in OPEN):
                with suppress(subprocess.TimeoutExpired):
                    output = process.communicate(timeout=0.2)
                    return subprocess.CompletedProcess(program, process.returncode, *output)
        finally:
            process.kill()
    raise InvalidArgument("the simulation", None, f"done in {PATIENCE:g} s, its page open")


def simulation_command(state: State) -> str:
    """The command of the Monte Carlo: five points of the curve, small networks."""
    few = {"alpha": ",".join(f"{x:.6g}" for x in some(parse_grid("alpha", state["alpha"]), 5))}
    options = options_of(state, without=("theory",)) | few | SIMULATION
    return command("replica-validate simulate", options)
