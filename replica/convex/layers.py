"""Panels over kappa that close in on the layers of a solution, for one spike.

Given kappa the prediction is N(C, S^2).  Where C passes, in a stretch of kappa of width S / |C'|,
a value at which something jumps, averages given kappa change as fast: the class predicted where
C = 0, the score of a loss with kinks where the proximal map reaches one.  At large penalties, or
close to separable labels, S is small and no even spacing of nodes will do.
"""

from collections.abc import Callable, Sequence
from functools import lru_cache

import numpy as np
from scipy.optimize import elementwise

from solvers.results import Array
from solvers.rules import Rule, closing_in, gauss_legendre

from ..equivalence import Table, known_layers, tabulate
from ..problem import Model
from ..saddle_point import Overlaps, responses_of
from .field_of_overlaps import field_on
from .local_field import Field
from .losses import Loss

REACH = 9.0
SCAN = 400  # intervals in which a sign change is looked for
CURVED = 0.5  # change of a slope between cells, beyond which a line is not trusted
PRECISE = 1e-9  # position of a sign change
BESIDE = 1e-6  # from there to where its slope is taken
WIDE = 2.0  # layers that such panels resolve without help
THINNEST = 1e-8
LONGEST, SHORTEST = 2.5, 0.1  # panels
CHANGE = 2.0  # panel over the scale of a feature
TINY = 1e-300
BEND = 4.0  # from a bend to where rho' has changed

Levels = Callable[[Table, Field], Array]


def layers_near(
    model: Model, overlaps: Overlaps, levels: Levels, blur: float = 0.0
) -> list[tuple[float, float]]:
    """Layers (position, width) of one point: its ``overlaps`` have a leading axis of length 1.

    ``levels`` has the functions of kappa (I, n) whose zeros are centres of layers, as wide as
    what passes there spreads over their slope, or wider where what changes there is itself
    ``blur`` wide.  Layers of the features and of the target are among them.
    """
    return [*known_layers(model), *_zeros(model, overlaps, levels, blur)]


def panels(
    model: Model, layers: Sequence[tuple[float, float]], nodes: int, closing: float = 0.5
) -> Rule:
    """A rule over kappa with that many ``nodes`` a panel; ``closing`` is how fast panels close in
    on the ``layers``."""
    # a jump has no width at all
    thin = [(at, max(width, THINNEST)) for at, width in layers if width < WIDE]
    at, width = np.array(thin).reshape(-1, 2).T
    breaks = closing_in(at[None], width[None], REACH, closing=closing, longest=_longest(model))[0]
    return gauss_legendre(nodes, breaks, REACH, panel=2 * REACH)


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
            slopes = loss.derivative(bend + BEND * loss.width * np.array([-1.0, 1.0]))
            ends += [bend + V * slope for slope in slopes]
        return np.concatenate([x - end for x in t0 for end in ends])

    return levels


def _zeros(
    model: Model, overlaps: Overlaps, levels: Levels, blur: float
) -> list[tuple[float, float]]:
    """Zeros of ``levels`` whose layers wide panels would miss, with the width of each."""
    table, field = fields_on_grid(model, overlaps)
    kappa = table.kappa[0]
    values, sd = levels(table, field), _spread(model, table, field, blur)
    size = sd * (kappa[1] - kappa[0]) / (4 * WIDE)  # a smaller change makes no thin layer
    change = (values[:, :-1] > 0) != (values[:, 1:] > 0)
    function, cell = np.nonzero(change & (np.abs(np.diff(values)) > size[1:]))
    if not cell.size:
        return []
    spacing = kappa[1] - kappa[0]
    before, after = values[function, cell], values[function, cell + 1]
    root = kappa[cell] + before / (before - after) * spacing
    width = (sd[cell] + sd[cell + 1]) / 2 * spacing / np.abs(after - before)
    # where the functions bend, a line places a zero to an eighth of that share of the spacing
    bent = np.pad(np.abs(np.diff(values, 2)), ((0, 0), (1, 1)), constant_values=np.inf)
    bent = np.maximum(bent[function, cell], bent[function, cell + 1]) / np.abs(after - before)
    if (badly := bent > np.minimum(width / spacing, CURVED)).any():
        between = kappa[cell[badly]], kappa[cell[badly] + 1]
        found = _placed(model, overlaps, levels, blur, function[badly], between, root[badly])
        root[badly], width[badly] = found
    thin = width < WIDE
    return list(zip(root[thin], width[thin], strict=True))


def _placed(
    model: Model,
    overlaps: Overlaps,
    levels: Levels,
    blur: float,
    function: Array,
    between: tuple[Array, Array],
    rough: Array,
) -> tuple[Array, Array]:
    """Zeros (n,) of the named functions of ``levels``, each ``between`` two ends, and widths; those
    that come and go by rounding alone where they are ``rough``-ly."""

    def there(at: Array) -> tuple[Table, Field]:
        return fields_at(model, overlaps, at, target=not model.labels.binary)

    def along(at: Array, which: Array) -> Array:
        found = levels(*there(at.ravel()))
        return found[which.ravel(), np.arange(at.size)].reshape(at.shape)

    root = elementwise.find_root(
        along,
        between,
        args=(function,),
        tolerances=dict(xatol=PRECISE, xrtol=0, fatol=0, frtol=0),
    ).x
    root = np.where(np.isfinite(root), root, rough)
    beside = np.where(root < between[1] - BESIDE, BESIDE, -BESIDE)
    slope = (along(root + beside, function) - along(root, function)) / beside
    return root, _spread(model, *there(root), blur) / np.maximum(np.abs(slope), TINY)


def _spread(model: Model, table: Table, field: Field, blur: float) -> Array:
    """The standard deviation (n,) of what passes a level: of the prediction, or of a label less
    the prediction."""
    variance = field.power[0] + blur**2
    if not model.labels.binary:
        variance += table.spread - 2 * np.einsum("nk,kn->n", field.pull[0], table.g)
    return np.sqrt(variance)


def fields_at(
    model: Model, overlaps: Overlaps, kappa: Array, *, target: bool = False
) -> tuple[Table, Field]:
    """The table, with moments of the ``target`` or without, and the local fields of one point at
    ``kappa`` (n,)."""
    rule = Rule(kappa, np.full(kappa.size, 1 / kappa.size))
    table = tabulate(model, rule, target=target)
    return table, field_on(table, responses_of(table), overlaps)


def fields_on_grid(model: Model, overlaps: Overlaps) -> tuple[Table, Field]:
    """The same at even values of kappa, between which sign changes are looked for."""
    table = _on_grid(model)
    return table, field_on(table, responses_of(table), overlaps)


@lru_cache(maxsize=8)
def _on_grid(model: Model) -> Table:
    kappa = np.linspace(-REACH, REACH, SCAN + 1)
    rule = Rule(kappa, np.full(SCAN + 1, 1 / (SCAN + 1)))
    return tabulate(model, rule, target=not model.labels.binary)
