"""Freeze the numbers of today's code: ``python -m tests.golden [NAME ...]``, all points or some.

Points that are no longer there are dropped; beside the numbers is what made them.
"""

import subprocess
import sys
from typing import Any

import replica

from . import frozen
from .points import METHODS, POINTS

LIBRARY = ("replica", "solvers")


def made_by() -> dict[str, str]:
    """The version of the library and the last commit that changed it."""

    def git(*command: str) -> str:
        return subprocess.run(
            ["git", *command, "--", *LIBRARY], check=True, capture_output=True, text=True
        ).stdout.strip()

    changed = " and changes" if git("status", "--porcelain") else ""
    return {"version": replica.__version__, "commit": git("log", "-1", "--format=%H") + changed}


def freeze(names: list[str]) -> None:
    """Write the numbers of the points ``names``, beside those that are known of the others."""
    source = made_by()
    known: dict[str, Any] = frozen.read() if frozen.PATH.exists() else {}
    for name in names:
        point = POINTS[name]
        numbers = frozen.listed(point.numbers())
        reported = {key: numbers.pop(key) for key in frozen.REPORTED if key in numbers}
        method = {"method": point.method, "accuracy": METHODS[point.method].accuracy}
        known[name] = method | reported | {"numbers": numbers, "made_by": source}
    frozen.write({name: known[name] for name in POINTS if name in known})


if __name__ == "__main__":
    freeze(sys.argv[1:] or list(POINTS))
