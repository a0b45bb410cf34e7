"""The samples of one cell, in blocks: drawn, or rows of given features."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
from numpy.random import SeedSequence, default_rng

from replica.given import FeatureSample
from solvers.results import Array

from ..draws import INPUT_BLOCK, Instance, arrays
from ..fit import Blocks


@dataclass(frozen=True, eq=False)
class Samples:
    """Samples of a drawn layer, in blocks that come out the same every time they are asked for.

    The seeds are those of the inputs, of features that are noisy, and of the label noise; without
    the last, labels are noiseless.  Features and labels are put on the ``device``.  A share
    ``reuse`` of the samples, in any number of the first ones, are the first of ``seen``.
    """

    layer: Instance
    count: int
    inputs: SeedSequence
    features: SeedSequence
    noise: SeedSequence | None
    device: str
    seen: "Samples | None" = None
    reuse: float = 0.0

    def blocks(self, bias: float = 0.0) -> Iterator[tuple[Any, Any]]:
        """Features (b, p) with ``bias`` added to all neurons, and labels (b,) or (b, C)."""
        own = default_rng(self.features)
        layer = self.layer
        if self.device != "cpu":
            layer = replace(layer, W=arrays.to_device(layer.W, self.device))
        for X, y in self.drawn():
            moved = arrays.to_device(X, self.device)
            yield layer.features(moved, bias, own), arrays.to_device(y, self.device)

    def drawn(self) -> Iterator[tuple[Array, Array]]:
        """Inputs (b, d) and labels (b,)."""
        noise = None if self.noise is None else default_rng(self.noise)
        pairs = (zip(*block, strict=True) for block in self.seen.drawn()) if self.seen else ()
        seen, place = chain.from_iterable(pairs), 0
        for X, component in self.layer.draw_inputs(self.count, default_rng(self.inputs)):
            if noise is None:
                y = self.layer.targets(X, component)
            else:
                y = self.layer.labels(X, noise, component=component)
            before = reused_of(np.arange(place, place + len(X) + 1), self.reuse)
            for row in np.flatnonzero(np.diff(before)):
                X[row], y[row] = next(seen)
            place += len(X)
            yield X, y


def reused_of(n: Any, reuse: float) -> Any:
    """How many of the first ``n`` samples are those of the step: never more than it has."""
    return np.floor(n * reuse + 1e-9).astype(int)  # but for rounding


class DrawnRows(NamedTuple):
    """``features`` (n, p) and ``labels`` (n,), drawn from their moments."""

    features: Array
    labels: Array


@dataclass(frozen=True, eq=False)
class Rows:
    """Some ``rows`` (n,) of given features, in blocks, on the ``device``."""

    sample: FeatureSample | DrawnRows
    rows: Array
    device: str

    @property
    def count(self) -> int:
        """n."""
        return len(self.rows)

    def blocks(self, bias: float = 0.0) -> Iterator[tuple[Any, Any]]:
        """Features (b, p) and labels (b,) or (b, C); no ``bias`` is trained here."""
        most = max(1, INPUT_BLOCK // self.sample.features.shape[1])
        for start in range(0, self.count, most):
            rows = self.rows[start : start + most]
            parts = self.sample.features[rows], self.sample.labels[rows]
            yield arrays.to_device(parts[0], self.device), arrays.to_device(parts[1], self.device)


def repeatable(samples: Samples | Rows, keep: bool) -> Callable[[float], Blocks]:
    """The blocks of samples as a function of the bias, to be gone through again and again.

    Kept in memory, or else made anew each time; the numbers are the same to the last bit.
    """
    if not keep:
        return lambda bias: lambda: samples.blocks(bias)

    def kept(bias: float) -> Blocks:
        blocks = list(samples.blocks(bias))
        return lambda: blocks

    return kept
