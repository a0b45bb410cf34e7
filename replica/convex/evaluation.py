"""The theory of one model at many points, as arrays that can be joined and overwritten in part."""

import time
from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

import numpy as np

from solvers.results import Array, Rows, Status

from ..equivalence import table_at
from ..problem import Model
from ..saddle_point import ridge
from .averages import Losses
from .label_tables import is_odd
from .losses import Loss

Record = TypeVar("Record")  # of arrays, or of records


class GivenUp(Exception):
    """Points take longer, or more nodes, than they may: with a ``Status`` that says which."""

    def __init__(self, status: Status) -> None:
        super().__init__(status.value)
        self.status = status


class Task(NamedTuple):
    """P points of one model to be solved: ``alpha`` and ``lam`` are arrays (P,), and ``deadline``
    is when they are given up, as ``time.monotonic`` tells it; ``tol`` is that of the quadrature."""

    model: Model
    loss: Loss
    alpha: Array
    lam: Array
    deadline: float = np.inf
    tol: float = 1e-6

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

    def ridge(self) -> ridge.Points:
        """Ridge regression at these points, on the first of its tables."""
        table = table_at(self.model, 0)
        assert table is not None
        return ridge.solve_points(table, self.alpha, self.lam)


class Evaluation(NamedTuple):
    """The theory of one model at P points: what ``Solution`` holds, as arrays over points.

    ``slope`` is that of the training objective in a common bias, where one is trained.
    """

    points: ridge.Points
    losses: Losses
    classification_error: Array
    quadrature_error: Array
    nodes: Array
    slope: Array
    bias: Array

    @property
    def converged(self) -> Any:
        """Boolean array (P,)."""
        return self.points.status == Status.CONVERGED

    @property
    def columns(self) -> dict[str, Array]:
        """What is known of each point, (P,), by the names that ``Solution`` has for it."""
        points, losses = self.points, self.losses
        return {
            "trained_bias": self.bias,
            "test_error": points.errors.test,
            "train_error": points.errors.train,
            "loss_error": losses.test,
            "train_loss": losses.train,
            "classification_error": self.classification_error,
            "converged": self.converged,
            "residual": points.residual,
            "quadrature_error": self.quadrature_error,
            "iterations": points.iterations,
            "nodes": self.nodes,
            "status": points.status,
        }

    def at(self, rows: Array) -> "Evaluation":
        """Some of the points, by a copy."""
        return _combine(lambda part: part[rows], self)


def concatenate(parts: list[Evaluation]) -> Evaluation:
    """Evaluations of consecutive points as one."""
    return _combine(lambda *arrays: np.concatenate(arrays), *parts)


def assign(into: Record, rows: Array, values: Record) -> Record:
    """``into``, an evaluation or a part of one, with its points ``rows`` overwritten in place by
    ``values``."""

    def put(a: Array, b: Array) -> Array:
        a[rows] = b
        return a

    found: Record = _combine(put, into, values)
    return found


def _combine(function: Callable[..., Array], *trees: Any) -> Any:
    """Apply ``function`` to corresponding arrays of records of records of arrays."""
    if isinstance(trees[0], tuple):
        return type(trees[0])(*(_combine(function, *parts) for parts in zip(*trees, strict=True)))
    return function(*trees)
