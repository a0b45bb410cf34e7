"""Checks of the arguments that only a Monte Carlo has: its memory, its part of the seeds."""

import math
import re
from typing import Any

from replica.errors import InvalidArgument


def byte_count(name: str, value: Any) -> float:
    """A number of bytes, given as such or with a unit, or InvalidArgument.

    Examples
    --------
    >>> byte_count("memory", "1.5 GB")
    1500000000.0
    """
    text = str(value).strip().upper()
    parts = re.fullmatch(r"(\d+\.?\d*(?:E\+?\d+)?) *([KMGT]?B)?", text)
    if not parts or not 0 < float(parts[1]) < math.inf:
        raise InvalidArgument(name, value, "a number of bytes, or such as 500MB or 2GB")
    units = {"B": 1.0, "KB": 1e3, "MB": 1e6, "GB": 1e9, "TB": 1e12}
    return float(parts[1]) * units[parts[2] or "B"]


def fraction(name: str, value: Any, most: int) -> tuple[int, int]:
    """i and N of "i/N", or of a pair: one part of N, counted from 1; or InvalidArgument.

    Examples
    --------
    >>> fraction("shard", "2/4", 10)
    (2, 4)
    """
    parts = value.split("/") if isinstance(value, str) else value
    try:
        part, count = map(int, parts)
    except (TypeError, ValueError):
        part, count = 0, 0
    if not 1 <= part <= count <= most:
        raise InvalidArgument(name, value, f"i/N with i from 1 to N and N at most {most} (seeds)")
    return part, count
