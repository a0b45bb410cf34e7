"""Arguments of a finite-size experiment, as typed: sizes, seeds, memory and shards, checked."""

import math
import operator
import re
from typing import Any

import numpy as np
from numpy.random import Generator, SeedSequence

from replica.errors import InvalidArgument
from replica.problem import check_bytes, number

HUGE = 10**12  # samples or neurons: more than any memory or patience has room for


def whole_number(name: str, value: Any, low: int, meaning: str, high: int = HUGE) -> int:
    """``value`` as an int from ``low`` to ``high``, or InvalidArgument.

    Examples
    --------
    >>> whole_number("seeds", 2, 2, "a standard error needs two")
    2
    """
    allowed_count = f"an integer of at least {low} ({meaning})"
    try:
        whole = operator.index(value)
    except TypeError:
        raise InvalidArgument(name, value, allowed_count) from None
    if whole < low:
        raise InvalidArgument(name, value, allowed_count)
    if whole > high:
        raise InvalidArgument(name, value, f"{allowed_count}, at most {high:g}")
    return whole


def seed_count(seeds: Any, least: int = 1) -> int:
    """Number of independent draws, from ``least``, 1 or 2, to a million, or InvalidArgument."""
    seed_meaning = "independent draws" if least == 1 else "a standard error needs two draws"
    # a million: standard errors of a thousandth; each draw has a root of random numbers
    return whole_number("seeds", seeds, least, seed_meaning, 10**6)


def size(name: str, ratio: float, dimension: int) -> int:
    """round(ratio d): how many samples or neurons a ratio to the input dimension means, or
    InvalidArgument if that is none or too many.

    Examples
    --------
    >>> size("alpha", 1.5, 400)
    600
    """
    number(name, ratio, 0, np.inf, "a number of 0 or more", open_high=True)
    rounded_size = round(ratio * dimension)
    if rounded_size > HUGE:
        allowed_ratio = f"at most {HUGE / dimension:.2g} at dimension d = {dimension}"
        raise InvalidArgument(name, ratio, allowed_ratio)
    if rounded_size < 1:
        allowed_ratio = f"at least 1/d, to mean one or more at dimension d = {dimension}"
        raise InvalidArgument(name, ratio, allowed_ratio)
    return rounded_size


def byte_count(name: str, value: Any) -> float:
    """A number of bytes, given as such or with a unit, or InvalidArgument.

    Examples
    --------
    >>> byte_count("memory", "1.5 GB")
    1500000000.0
    """
    byte_text = str(value).strip().upper()
    bytes_and_unit = re.fullmatch(r"(\d+\.?\d*(?:E\+?\d+)?) *([KMGT]?B)?", byte_text)
    if not bytes_and_unit or not 0 < float(bytes_and_unit[1]) < math.inf:
        raise InvalidArgument(name, value, "a number of bytes, or such as 500MB or 2GB")
    unit_bytes = {"B": 1.0, "KB": 1e3, "MB": 1e6, "GB": 1e9, "TB": 1e12}
    return float(bytes_and_unit[1]) * unit_bytes[bytes_and_unit[2] or "B"]


def fraction(name: str, value: Any, most: int) -> tuple[int, int]:
    """i and N of "i/N", or of a pair: one part of N, counted from 1; or InvalidArgument.

    Examples
    --------
    >>> fraction("shard", "2/4", 10)
    (2, 4)
    """
    shard_and_count = value.split("/") if isinstance(value, str) else value
    try:
        shard, shards = map(int, shard_and_count)
    except (TypeError, ValueError):
        shard, shards = 0, 0
    if not 1 <= shard <= shards <= most:
        raise InvalidArgument(name, value, f"i/N with i from 1 to N and N at most {most} (seeds)")
    return shard, shards


def check_array(rows: int, columns: int) -> None:
    """Refuse, before it is made, an array that no memory of this machine holds: InvalidArgument."""
    drawn_bytes = 8.0 * rows * columns
    allowed = f"smaller: an array of {rows:.3g} x {columns:.3g} takes {drawn_bytes / 1e9:.2g} GB"
    check_bytes(drawn_bytes, "dimension, alpha or beta", None, allowed)


def seed_sequence(rng: Any) -> SeedSequence:
    """A root of random numbers, from None, an int, a SeedSequence or a Generator, or
    InvalidArgument.

    A SeedSequence is copied, so that spawning from the root leaves the caller's as it was;
    a Generator is asked for 128 bits.

    Examples
    --------
    >>> seed_sequence(7).entropy
    7
    """
    if isinstance(rng, SeedSequence):
        return SeedSequence(rng.entropy, spawn_key=rng.spawn_key)
    if isinstance(rng, Generator):
        return SeedSequence(rng.integers(2**32, size=4).tolist())
    try:
        return SeedSequence(rng)
    except (TypeError, ValueError):
        allowed_rng = "None, an integer of 0 or more, a SeedSequence or a Generator"
        raise InvalidArgument("rng", rng, allowed_rng) from None


def streams(rng: Any) -> list[SeedSequence]:
    """Seeds of the initial rows and of the steps' inputs and label noise: streams of their own, so
    that the data do not depend on how they come in blocks."""
    return seed_sequence(rng).spawn(3)
