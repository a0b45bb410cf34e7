"""The theory of one model at many points, as arrays that can be joined and overwritten in part."""

import time
from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any, NamedTuple

import numpy as np

from solvers.results import Array, Rows, Status

from ..problem import Model
from ..saddle_point import ridge
from .averages import Losses
from .equations import PointsOnTable
from .label_tables import LabelTable, is_odd
from .losses import Loss


class GivenUp(Exception):
    """Points take longer, or more nodes, than they may: with a ``Status`` that says which."""

    def __init__(self, status: Status) -> None:
        super().__init__(status.value)
        self.status = status


class Task(NamedTuple):
    """P points of one model to be solved: ``alpha`` and ``lam`` are arrays (P,), and ``deadline``
    is when they are given up, as ``time.monotonic`` tells it."""

    model: Model
    loss: Loss
    alpha: Array
    lam: Array
    deadline: float = np.inf

    def check_time(self) -> None:
        """Raise ``GivenUp`` past the deadline."""
        if time.monotonic() > self.deadline:
            raise GivenUp(Status.TIME)

    @property
    def folded(self) -> bool:
        """Whether all is the same at opposite kappa, so that half of them will do."""
        return self.loss.symmetric and is_odd(self.model)

    def at(self, rows: Rows) -> "Task":
        """Some of the points."""
        return self._replace(alpha=self.alpha[rows], lam=self.lam[rows])

    def on(self, label_table: LabelTable) -> PointsOnTable:
        """What is to be solved on one table."""
        return PointsOnTable(label_table, self.loss, self.alpha, self.lam)


@dataclass(frozen=True)
class Evaluation:
    """The theory of one model at P points: what ``Solution`` holds, as arrays over points.

    ``slope`` is that of the training objective in a common bias, where one is trained.
    """

    points: ridge.Points
    losses: Losses
    residual: Array
    quadrature_error: Array
    nodes: Array
    slope: Array
    bias: Array

    @property
    def converged(self) -> Any:
        """Boolean array (P,)."""
        return self.points.status == Status.CONVERGED

    def at(self, rows: Array) -> "Evaluation":
        """Some of the points, by a copy."""
        return _combine(lambda part: part[rows], self)


def concatenate(parts: list[Evaluation]) -> Evaluation:
    """Evaluations of consecutive points as one."""
    if len(parts) == 1:
        return parts[0]
    return _combine(lambda *arrays: np.concatenate(arrays), *parts)


def assign(into: Evaluation, rows: Array, values: Evaluation) -> Evaluation:
    """``into`` with its points ``rows`` overwritten in place by ``values``."""

    def put(a: Array, b: Array) -> Array:
        a[rows] = b
        return a

    return _combine(put, into, values)


def _combine(function: Callable[..., Array], *trees: Any) -> Any:
    """Apply ``function`` to corresponding arrays of records of records of arrays."""
    first = trees[0]
    if isinstance(first, Evaluation):
        return Evaluation(
            *(_combine(function, *(getattr(t, f.name) for t in trees)) for f in fields(first))
        )
    if isinstance(first, tuple):
        return type(first)(*(_combine(function, *parts) for parts in zip(*trees, strict=True)))
    return function(*trees)
