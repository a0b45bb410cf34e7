"""Checks of the arguments that only a finite-size experiment has: sizes, seeds, limits."""

import math
import operator
import re
from typing import Any

from numpy.random import Generator, SeedSequence

from replica.errors import InvalidArgument


def whole(name: str, value: Any, low: int, meaning: str) -> int:
    """``value`` as an int of at least ``low``, or InvalidArgument.

    Examples
    --------
    >>> whole("seeds", 2, 2, "a standard error needs two")
    2
    """
    allowed = f"an integer of at least {low} ({meaning})"
    try:
        found = operator.index(value)
    except TypeError:
        raise InvalidArgument(name, value, allowed) from None
    if found < low:
        raise InvalidArgument(name, value, allowed)
    return found


def size(name: str, ratio: float, dimension: int) -> int:
    """round(ratio d): how many samples or neurons a ratio to the input dimension means.

    Raises
    ------
    InvalidArgument
        If that is none.

    Examples
    --------
    >>> size("alpha", 1.5, 400)
    600
    """
    found = round(ratio * dimension)
    if found < 1:
        raise InvalidArgument(
            name, ratio, f"at least 1/d, to mean one or more at dimension d = {dimension}"
        )
    return found


def seed_sequence(rng: Any) -> SeedSequence:
    """A root of random numbers, from None, an int, a SeedSequence or a Generator.

    A SeedSequence is copied, so that spawning from the root leaves the caller's as it was;
    a Generator is asked for 128 bits.

    Raises
    ------
    InvalidArgument

    Examples
    --------
    >>> seed_sequence(7).entropy
    7
    """
    if isinstance(rng, SeedSequence):
        return SeedSequence(rng.entropy, spawn_key=rng.spawn_key, pool_size=rng.pool_size)
    if isinstance(rng, Generator):
        return SeedSequence(rng.integers(2**32, size=4).tolist())
    try:
        return SeedSequence(rng)
    except (TypeError, ValueError):
        allowed = "None, an integer of 0 or more, a SeedSequence or a Generator"
        raise InvalidArgument("rng", rng, allowed) from None


UNITS = {"B": 1.0, "KB": 1e3, "MB": 1e6, "GB": 1e9, "TB": 1e12}


def byte_count(name: str, value: Any) -> float:
    """A number of bytes, given as such or with a unit.

    Raises
    ------
    InvalidArgument

    Examples
    --------
    >>> byte_count("memory", "1.5 GB")
    1500000000.0
    """
    text = str(value).strip().upper()
    found = re.fullmatch(r"(\d+\.?\d*(?:E\+?\d+)?) *([KMGT]?B)?", text)
    if not found or not 0 < float(found[1]) < math.inf:
        raise InvalidArgument(name, value, "a number of bytes, or such as 500MB or 2GB")
    return float(found[1]) * UNITS[found[2] or "B"]


def fraction(name: str, value: Any, most: int) -> tuple[int, int]:
    """i and N of "i/N", or of a pair: one part of N, counted from 1.

    Raises
    ------
    InvalidArgument

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
