"""Panels over kappa that close in on the layers of a solution, for one spike.

Given kappa the prediction is N(C, S^2).  Where C passes, in a stretch of kappa of width S / |C'|,
a value at which something jumps, averages given kappa change as fast: the class predicted where
C = 0, the score of a loss with kinks where the proximal map reaches one.  At large penalties, or
close to separable labels, S is small and no even spacing of nodes will do.
"""

from collections.abc import Callable, Sequence

import numpy as np

from solvers.quadrature import Rule, closing_in, gauss_legendre
from solvers.results import Array

from .equivalence import Table, known_layers, tabulate
from .fields import Field, field_on
from .losses import Loss
from .network import Model
from .overlaps import Overlaps
from .ridge import bulk_of

REACH = 9.0
SCAN = 400  # intervals in which a sign change is looked for
REFINE = 32  # parts that such an interval is cut into,
ROUNDS = 4  # and each of these again: positions to 1e-8,
PRECISE = 0.1  # or this part of the width of the layer
WIDE = 2.0  # layers that such panels resolve without help
THINNEST = 1e-8
LONGEST, SHORTEST = 2.5, 0.1  # panels
CHANGE = 2.0  # panel over the scale of a feature
TINY = 1e-300
BEND = 4.0  # from a bend to where rho' has changed

Levels = Callable[[Table, Field], Array]


def panels(
    model: Model,
    overlaps: Overlaps,
    levels: Levels,
    nodes: tuple[int, ...],
    blur: float = 0.0,
    others: Sequence[tuple[float, float]] = (),
    closing: float = 0.5,
) -> list[Rule]:
    """Rules over kappa, with each number of ``nodes`` a panel, for one point: its ``overlaps``
    have a leading axis of length 1.

    ``levels`` has the functions of kappa (I, n) whose zeros are centres of layers, as wide as
    what passes there spreads over their slope, or wider where what changes there is itself
    ``blur`` wide; ``others`` are further centres and widths.  Layers of the features and of the
    target are taken care of, too.  ``closing`` is how fast panels close in.
    """
    found = [*known_layers(model), *_zeros(model, overlaps, levels, blur), *others]
    # a jump has no width at all
    thin = [(at, max(width, THINNEST)) for at, width in found if width < WIDE]
    at, width = np.array(thin).reshape(-1, 2).T
    breaks = closing_in(at[None], width[None], REACH, closing=closing, longest=_longest(model))[0]
    return [gauss_legendre(n, breaks, REACH, panel=2 * REACH) for n in nodes]


def _longest(model: Model) -> float:
    """Of panels in which the features change little: they do so over 1 in a neuron's argument,
    which is r kappa and a Gaussian of variance c."""
    groups = model.geometry
    scale = np.sqrt(1 + groups.c) / np.maximum(np.abs(groups.r[:, 0]), TINY)
    return float(np.clip(CHANGE * scale.min(), SHORTEST, LONGEST))


def decision(table: Table, field: Field) -> Array:
    """C: zero where the class predicted changes."""
    return field.centre


def kinks_of(loss: Loss, binary: bool) -> Levels:
    """Distances in t0 from each kink and the ends of the stretch that the proximal map takes to
    it, or to the neighbourhood of a bend."""

    def levels(table: Table, field: Field) -> Array:
        if loss.kind == "margin":
            t0 = [field.centre, -field.centre]
        elif binary:
            t0 = [1 - field.centre, -1 - field.centre]
        else:
            t0 = [table.h - field.centre]
        V = field.response
        ends: list[Array | float] = [*loss.kinks]
        ends += [end for _, *both in loss.flats(V) for end in both]
        for bend in loss.bends:
            slopes = loss.derivative(bend + BEND * np.array([-1.0, 1.0]))
            ends += [bend + V * slope for slope in slopes]
        return np.concatenate([x - end for x in t0 for end in ends])

    return levels


def _zeros(
    model: Model, overlaps: Overlaps, levels: Levels, blur: float
) -> list[tuple[float, float]]:
    """Zeros of ``levels`` whose layers wide panels would miss, with the width of each."""
    kappa = np.linspace(-REACH, REACH, SCAN + 1)
    values, sd = _at(model, overlaps, levels, kappa, blur)
    size = sd * (kappa[1] - kappa[0]) / (4 * WIDE)  # a smaller change makes no thin layer
    change = (values[:, :-1] > 0) != (values[:, 1:] > 0)
    function, cell = np.nonzero(change & (np.abs(np.diff(values)) > size[1:]))
    if not cell.size:
        return []
    low, high, width = kappa[cell], kappa[cell + 1], sd[cell]
    rows = np.arange(cell.size)
    for _ in range(ROUNDS):
        grid = low[:, None] + (high - low)[:, None] * np.linspace(0, 1, REFINE + 1)
        values, sd = _at(model, overlaps, levels, grid.ravel(), blur)
        along = values.reshape(-1, *grid.shape)[function, rows]
        cell = np.argmax((along[:, :-1] > 0) != (along[:, 1:] > 0), axis=1)
        low, high = grid[rows, cell], grid[rows, cell + 1]
        slope = (along[rows, cell + 1] - along[rows, cell]) / (high - low)
        width = sd.reshape(grid.shape)[rows, cell] / np.abs(slope)
        if (high - low <= PRECISE * width).all():
            break
    thin = width < WIDE
    return list(zip(low[thin], width[thin], strict=True))


def _at(
    model: Model, overlaps: Overlaps, levels: Levels, kappa: Array, blur: float
) -> tuple[Array, Array]:
    """``levels`` (I, n) at the nodes ``kappa`` (n,), and the standard deviation there of what
    passes them (n,): of the prediction, or of a label less the prediction."""
    table, field = fields_at(model, overlaps, kappa, target=not model.binary)
    variance = field.power[0] + blur**2
    if not model.binary:
        variance += table.spread - 2 * np.einsum("nk,kn->n", field.pull[0], table.g)
    return levels(table, field), np.sqrt(variance)


def fields_at(
    model: Model, overlaps: Overlaps, kappa: Array, *, target: bool = False
) -> tuple[Table, Field]:
    """The features' table and the local fields of one point at ``kappa`` (n,)."""
    table = tabulate(model, Rule(kappa, np.full(kappa.size, 1 / kappa.size)), target=target)
    return table, field_on(table, bulk_of(table), overlaps)
