"""Progress and stored cells of figures that compute, and the models that they show."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

import replica
from replica import GradientStep
from replica.problem import Problem
from solvers.results import Array

from ..run import simulate
from ..run import store as cells

FIGURE_METHOD = 1  # to be raised with every change that moves the numbers of a cell
Progress = Callable[[int, int], None] | None
One = TypeVar("One")


def tracked(
    items: Sequence[One], progress: Progress, before: int = 0, total: int | None = None
) -> Iterator[One]:
    """The items, one after the other; ``progress`` is told when each is done with: of a ``total``,
    ``before`` of which were done before."""
    for done, item in enumerate(items, start=before + 1):
        yield item
        if progress is not None:
            progress(done, len(items) if total is None else total)


def model_of(kind: str, problem: Any, beta: float = 1.0, dimension: float = np.inf) -> Any:
    """Model of a step for a theory of THEORIES, or an sRF, at a ``dimension``; in the limit for the
    kind "limit"."""
    model = problem
    if isinstance(problem, GradientStep):
        of_step = {"srf": problem.srf, "limit": problem.srf, "equal": problem.network}
        how: dict[str, Any] = {"row_norms": False} if kind == "equal" else {}
        model = of_step.get(kind, problem.network)(beta=beta, **how)
    return replace(model, dimension=np.inf if kind == "limit" else dimension)


def simulated(problem: Problem, **how: Any) -> Array:
    """Test errors simulated at one lam, from the seed 0: means and standard errors, (A, 2)."""
    found = simulate(problem, rng=0, **how)
    return np.hstack([found.test_error, found.test_error_stderr])


def stored(
    store: Path | None, cell: dict[str, Any], compute: Callable[[], Array], shape: tuple[int, ...]
) -> Array:
    """The numbers of ``cell``, of ``shape``: read from the folder ``store``, or
    computed and written there; only computed without a folder."""
    if store is None:
        return compute()
    cell = {"version": replica.__version__, "method": FIGURE_METHOD} | cell
    found = cells.read(store, {0: cell}, shape)
    if not found:
        store.mkdir(parents=True, exist_ok=True)
        cells.check_writable(store, 1)
        found[0] = compute()
        cells.write(store, cell, found[0])
    return found[0]
