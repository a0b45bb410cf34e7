"""The file of frozen numbers, one line a point; NaN is null."""

import json
from pathlib import Path
from typing import Any

import numpy as np

PATH = Path(__file__).with_name("numbers.json")
REPORTED = ("quadrature_error",)  # by the library of its own results: kept, not compared


def listed(numbers: dict[str, Any]) -> dict[str, Any]:
    """Numbers and arrays as json has them, truth values as 0 and 1."""
    return {
        name: _plain(np.asarray(value, dtype=float).tolist()) for name, value in numbers.items()
    }


def _plain(value: Any) -> Any:
    if isinstance(value, list):
        return [_plain(one) for one in value]
    return None if np.isnan(value) else value


def read() -> dict[str, Any]:
    """What is frozen, by the name of the point."""
    return json.loads(PATH.read_text())


def write(points: dict[str, Any]) -> None:
    """Replace the file."""
    lines = (f"{json.dumps(name)}: {json.dumps(point)}" for name, point in points.items())
    PATH.write_text("{\n" + ",\n".join(lines) + "\n}\n")
