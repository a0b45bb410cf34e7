"""``replica init``: a commented problem file to begin with."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import typer

from ..documents import check_writable
from ..errors import InvalidArgument
from .common import file_name
from .options import HELP, HELP_PANELS
from .output import save
from .values import GRID_FORMS


def init(
    path: Annotated[Path, typer.Argument(parser=file_name, metavar="PATH", help="The new file.")],
) -> None:
    """Write a commented problem file, problem.toml say, to be changed and read by --config.

    Examples
    --------
    replica init problem.toml

    replica curve --config problem.toml --plot curve.png
    """
    check_writable("the new file", path, (".toml",))
    if path.exists():
        raise InvalidArgument("the new file", str(path), "one that is not there yet")
    save(path, "\n".join(lines()).encode())


def lines() -> Iterator[str]:
    """The lines of the file: of every option what it means, and a value."""
    given: dict[str, Any] = {
        "student": "tanh", "target": "sin", "alpha0": 20, "eta": 3, "beta": 1, "noise": 0,
        "alpha": "0.2:3:15", "lam": [0.01, 0.1],
    }  # fmt: skip
    commented: dict[str, Any] = {
        "kinks": [-1, 1], "rate": 3, "steps": "2:1,2:1", "step_noise": 0.1,
        "step_target": "z1", "decay": 0.1, "readout": "gaussian",
        "bias": [-1, 1], "initialisation": "gaussian", "theory": "network", "r": 1.1, "c": 1,
        "gamma": 0.97, "loss": "huber:0.2", "label_noise": "flip:0.1", "intercept": True,
        "train_bias": True, "weights": "W.npy", "directions": "D.npy", "inputs": "inputs.toml",
        "features": "F.npy", "labels": "y.npy", "strata": "s.npy", "classes": ["cat", "dog", "owl"],
        "samples": "100:3000:12:log",
    }  # fmt: skip
    yield "# A problem, for the commands of replica and replica-validate: --config and this file."
    yield f"# Numbers: {GRID_FORMS}, or a list."
    yield "# What is typed on the command line takes the place of what stands here."
    for panel, names in HELP_PANELS.items():
        yield f"\n# {panel}\n"
        for name in names:
            sign, value = ("", given[name]) if name in given else ("# ", commented[name])
            yield f"# {HELP[name]}"
            yield f"{sign}{name} = {json.dumps(value)}"
    yield ""
