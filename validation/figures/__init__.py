"""Figures of the papers and of the documentation, each by its name.

A figure has a function of a :class:`Run`, which computes plain values for JSON, and one that makes
the picture of them.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np

import replica
from replica.errors import InvalidArgument
from replica.problem import Problem
from solvers.results import Array

from ..run import simulate
from ..run import store as cells

FIGURE_METHOD = 1  # to be raised with every change that moves the numbers of a cell
Values = dict[str, Any]
Item = TypeVar("Item")


@dataclass(frozen=True)
class Run:
    """Computation of a figure: in a ``quick`` version, which takes seconds, or the full one;
    ``progress`` is told what is done, of how much; and finished cells of the simulations are kept
    in the folder ``store``, and read from there."""

    quick: bool
    progress: Callable[[int, int], None] | None = None
    store: Path | None = None

    def advance(self, done: int, total: int) -> None:
        """Report progress."""
        if self.progress is not None:
            self.progress(done, total)

    def tracked(
        self, items: Sequence[Item], before: int = 0, total: int | None = None
    ) -> Iterator[Item]:
        """The items, one after the other; each is reported when it is done with: of a ``total``,
        ``before`` of which were done before."""
        for items_done, figure_item in enumerate(items, start=before + 1):
            yield figure_item
            self.advance(items_done, len(items) if total is None else total)

    def simulated(self, problem: Problem, **how: Any) -> Array:
        """Test errors simulated at one lam, from the seed 0: means and standard errors, (A, 2)."""
        figure_simulation = simulate(problem, rng=0, store=self.store, **how)
        return np.hstack([figure_simulation.test_error, figure_simulation.test_error_stderr])

    def stored(self, cell: Values, compute: Callable[[], Array], shape: tuple[int, ...]) -> Array:
        """The numbers of ``cell``, of ``shape``: read from the store, or computed and written
        there; only computed without one."""
        if self.store is None:
            return compute()
        cell = {"version": replica.__version__, "method": FIGURE_METHOD} | cell
        figure_cells = cells.read(self.store, {0: cell}, shape)
        if not figure_cells:
            self.store.mkdir(parents=True, exist_ok=True)
            cells.check_writable(self.store, 1)
            figure_cells[0] = compute()
            cells.write(self.store, cell, figure_cells[0])
        return figure_cells[0]


class Entry(NamedTuple):
    """Module of a figure, a line on its content, and the seconds of its quick version on two
    ordinary cores, some times as many on busy ones.

    In the ``module`` "file:name" they are ``name_values`` and ``draw_name``; in "file" ``data``,
    which takes first the figure, by what follows the paper, and ``draw``.
    """

    module: str
    text: str
    seconds: int


FIGURES = {
    "cui/1": Entry(
        "learnable:learned", "The function learned along the target, with and without step.", 7
    ),
    "cui/2": Entry("curves", "Test error against alpha, at several alpha0.", 6),
    "cui/3": Entry("learnable:bounds", "Bounds on the test error against the learning rate.", 4),
    "cui/4": Entry("curves", "What the spike does: with it, without, by its length.", 4),
    "cui/5": Entry("curves", "Test error against alpha, at several widths.", 5),
    "cui/6": Entry("curves", "What variability of the first-step readout buys.", 12),
    "cui/7": Entry("learnable:functions", "The functions that attain the bounds.", 4),
    "cui/8": Entry("learnable:spectra", "Eigenvalues of the features' covariance.", 12),
    "dandi/sample-exponent": Entry("directions:exponents", "One giant step on n = d^x samples.", 6),
    "dandi/staircase": Entry(
        "directions:staircase", "Which directions the neurons learn, step by step.", 6
    ),
    "mixtures/1a": Entry("mixtures", "Network and Hermite model against the width.", 8),
    "mixtures/1b": Entry("mixtures", "The same against alpha_s, the split of the spread.", 8),
    "mixtures/1c": Entry("mixtures", "The same against beta_s, the spread of the data.", 9),
    "mixtures/2a": Entry("mixtures", "The same against the alignment of two spikes.", 8),
    "mixtures/2b": Entry("mixtures", "The same against the share of the first component.", 6),
    "mixtures/2c": Entry("mixtures", "The same against the number of spikes of each.", 8),
    "mixtures/3": Entry("mixtures", "The same on two classes of images (--images).", 24),
    "mixtures/4": Entry("mixtures", "Generalisation error over alpha_s and beta_s.", 1),
    "mixtures/5": Entry("mixtures", "Slices of that heat map, with three activations.", 14),
    "mixtures/6": Entry("mixtures", "Training errors against the width.", 8),
    "budget": Entry("samples", "How to spend samples on the two layers.", 10),
    "classification": Entry("curves", "Logistic, hinge and square loss on labels.", 5),
    "dimension": Entry("dimension:approach", "Networks on the way to their limit, over 1/d.", 12),
    "digits": Entry("samples:digits", "How many labels a linear probe of digits needs.", 6),
    "inputs": Entry("curves", "What structure in the inputs buys networks.", 5),
    "ladder": Entry("dimension:ladder", "How simulations approach the theory as they grow.", 3),
    "network": Entry("curves", "The network itself beside the sRF, over the rate.", 4),
    "network-steps": Entry("curves", "Several giant steps of the network itself.", 5),
    "network-students": Entry("curves", "relu networks beside their sRF.", 4),
    "reuse": Entry("samples", "Both layers on the same samples, and on fresh ones.", 20),
    "robust-losses": Entry("curves", "Ridge, Huber and absolute loss, wild labels.", 3),
    "steps": Entry("curves", "Several giant steps: test error, and the spike.", 3),
}


class Figure(NamedTuple):
    """Functions that compute the values of a figure, of a :class:`Run`, and draw them."""

    values: Callable[..., Values]
    draw: Callable[[Values], Any]


def figure(name: str) -> Figure:
    """The figure ``name``.

    Raises
    ------
    InvalidArgument
        If there is no such figure.

    Examples
    --------
    >>> figure("cui/6").draw.__module__
    'validation.figures.curves'
    """
    if name not in FIGURES:
        raise InvalidArgument("the name of a figure", name or None, f"one of {', '.join(FIGURES)}")
    module_file, _, own_name = FIGURES[name].module.partition(":")
    module = import_module(f"{__name__}.{module_file}")
    if own_name:
        return Figure(getattr(module, f"{own_name}_values"), getattr(module, f"draw_{own_name}"))
    return Figure(partial(module.data, name.rpartition("/")[2]), module.draw)
