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
from replica.given import Given
from replica.problem import Problem
from solvers.results import Array

from ..run import simulate
from ..run import store as cells

FIGURE_METHOD = 2  # to be raised with every change that moves the numbers of a cell
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

    def tracked(self, items: Sequence[Item]) -> Iterator[Item]:
        """The items, one after the other; each is reported when it is done with."""
        for items_done, figure_item in enumerate(items, start=1):
            yield figure_item
            if self.progress is not None:
                self.progress(items_done, len(items))

    def size(self, full: tuple[int, int], small: tuple[int, int] = (100, 2)) -> dict[str, int]:
        """The dimension and the draws of a simulation, ``full`` or ``small``."""
        return dict(zip(("dimension", "seeds"), small if self.quick else full, strict=True))

    def simulated(
        self, problem: Problem | Given, errors: Sequence[str] = ("test_error",), **how: Any
    ) -> Array:
        """Means and standard errors of E ``errors`` at P simulated points of the seed 0,
        (E, P, 2)."""
        columns = simulate(problem, rng=0, store=self.store, **how).columns
        names = [[error, f"{error}_stderr"] for error in errors]
        return np.array([[columns[name].ravel() for name in pair] for pair in names]).swapaxes(1, 2)

    def stored(self, cell: Values, compute: Callable[[], Array], shape: tuple[int, ...]) -> Array:
        """The numbers of ``cell``, of ``shape``: read from the store, or computed and written
        there; only computed without one."""
        if self.store is None:
            return compute()
        cell = {"version": replica.__version__, "method": FIGURE_METHOD} | cell
        figure_cells = cells.read(self.store, {0: cell}, shape)
        if not figure_cells:
            figure_cells[0] = compute()
            cells.write(self.store, cell, figure_cells[0])
        return figure_cells[0]


class Entry(NamedTuple):
    """Module of a figure, and a line on its content.

    In the ``module`` "file:name" they are ``name_values`` and ``draw_name``; in "file" ``data``,
    which takes first the figure, by what follows the paper, and ``draw``.
    """

    module: str
    text: str


FIGURES = {
    "cui/1": Entry(
        "learnable:learned", "The function learned along the target, with and without step."
    ),
    "cui/2": Entry("curves", "Test error against alpha, at several alpha0."),
    "cui/3": Entry("learnable:bounds", "Bounds on the test error against the learning rate."),
    "cui/4": Entry("curves", "What the spike does: with it, without, by its length."),
    "cui/5": Entry("curves", "Test error against alpha, at several widths."),
    "cui/6": Entry("curves", "What variability of the first-step readout buys."),
    "cui/7": Entry("learnable:functions", "The functions that attain the bounds."),
    "cui/8": Entry("learnable:spectra", "Eigenvalues of the features' covariance."),
    "dandi/sample-exponent": Entry("directions:exponents", "One giant step on n = d^x samples."),
    "dandi/staircase": Entry(
        "directions:staircase", "Which directions the neurons learn, step by step."
    ),
    "mixtures/1a": Entry("mixtures", "Network and Hermite model against the width."),
    "mixtures/1b": Entry("mixtures", "The same against alpha_s, the split of the spread."),
    "mixtures/1c": Entry("mixtures", "The same against beta_s, the spread of the data."),
    "mixtures/2a": Entry("mixtures", "The same against the alignment of two spikes."),
    "mixtures/2b": Entry("mixtures", "The same against the share of the first component."),
    "mixtures/2c": Entry("mixtures", "The same against the number of spikes of each."),
    "mixtures/3": Entry("mixtures", "The same on two classes of images (--images)."),
    "mixtures/4": Entry("mixtures", "Generalisation error over alpha_s and beta_s."),
    "mixtures/5": Entry("mixtures", "Slices of that heat map, with three activations."),
    "mixtures/6": Entry("mixtures", "Training errors against the width."),
    "budget": Entry("samples", "How to spend samples on the two layers."),
    "classification": Entry("curves", "Logistic, hinge and square loss on labels."),
    "dimension": Entry("dimension:approach", "Networks on the way to their limit, over 1/d."),
    "digits": Entry("samples:digits", "How many labels a linear probe of digits needs."),
    "inputs": Entry("curves", "What structure in the inputs buys networks."),
    "ladder": Entry("dimension:ladder", "How simulations approach the theory as they grow."),
    "network": Entry("curves", "The network itself beside the sRF, over the rate."),
    "network-steps": Entry("curves", "Several giant steps of the network itself."),
    "network-students": Entry("curves", "relu networks beside their sRF."),
    "reuse": Entry("samples", "Both layers on the same samples, and on fresh ones."),
    "robust-losses": Entry("curves", "Ridge, Huber and absolute loss, wild labels."),
    "steps": Entry("curves", "Several giant steps: test error, and the spike."),
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
