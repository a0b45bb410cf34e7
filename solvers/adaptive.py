"""Adaptive quadrature of many one-dimensional integrals at once.

Every integral has panels of its own, each with the 15 nodes of Kronrod's rule, which hold the 7 of
Gauss's.  Where the two disagree by more than is tolerated, panels are halved.  What is returned are
the panels, too: rules on them can be used again, with other integrands of the same shape.  Over two
Gaussian variables, the inner averages are integrands of the outer, each with a tolerance of its
own.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from .resources import check_time
from .results import Array
from .rules import Rule, gaussian_density, gaussian_weights

# Kronrod's extension of Gauss's rule of 7 nodes (QUADPACK's qk15): nodes from the end to the middle
# of [-1, 1], their weights, and those that Gauss's rule gives every second of them.
_OUTER = (
    (0.991455371120812639, 0.022935322010529224, 0.0),
    (0.949107912342758524, 0.063092092629978553, 0.129484966168869693),
    (0.864864423359769072, 0.104790010322250183, 0.0),
    (0.741531185599394439, 0.140653259715525918, 0.279705391489276668),
    (0.586087235467691130, 0.169004726639267902, 0.0),
    (0.405845151377397166, 0.190350578064785409, 0.381830050505118945),
    (0.207784955007898467, 0.204432940075298892, 0.0),
)
_MIDDLE = (0.0, 0.209482141084727828, 0.417959183673469388)
NODES, WEIGHTS, GAUSS_WEIGHTS = np.array(
    [*((-x, w, g) for x, w, g in _OUTER), _MIDDLE, *_OUTER[::-1]]
).T


class Panels(NamedTuple):
    """n panels, each of the integral ``owner`` (n,), from ``low`` (n,) to ``high`` (n,)."""

    owner: NDArray[np.int64]
    low: Array
    high: Array

    def at(self, rows: Array | slice) -> "Panels":
        """Some of the panels."""
        return Panels(*(part[rows] for part in self))

    @property
    def half(self) -> Array:
        """Half the lengths, (n, 1)."""
        return ((self.high - self.low) / 2)[:, None]

    @property
    def nodes(self) -> Array:
        """Kronrod's nodes, (n, 15)."""
        return ((self.low + self.high) / 2)[:, None] + self.half * NODES

    @property
    def weights(self) -> Array:
        """Those of the nodes for a standard Gaussian, (n, 15), of sum 1 for each integral."""
        weights = self.half * WEIGHTS * gaussian_density(self.nodes)
        return weights / np.bincount(self.owner, weights.sum(axis=1))[self.owner, None]

    def gaussian(self, weights: Array = WEIGHTS) -> Rule:
        """Kronrod's rule, or Gauss's with its ``weights``, on the panels of each integral, in
        order, for a standard Gaussian: (m, l).  Where one has fewer panels than others the rest
        weigh nothing."""
        count, some = np.bincount(self.owner), weights > 0
        place = np.arange(len(self.owner)) - np.repeat(np.cumsum(count) - count, count)
        both = np.zeros((2, len(count), count.max(), np.count_nonzero(some)))
        both[:, self.owner, place] = self.nodes[:, some], self.half * weights[some]
        return gaussian_weights(*both.reshape(2, len(count), -1))


def between(breaks: Array) -> Panels:
    """Panels between successive ``breaks`` (m, b + 1) of m integrals, those of no length left out.

    Examples
    --------
    >>> panels = between(np.array([[0.0, 1.0, 1.0], [0.0, 2.0, 3.0]]))
    >>> panels.owner.tolist(), panels.high.tolist()
    ([0, 1, 1], [1.0, 2.0, 3.0])
    """
    low, high = breaks[:, :-1], breaks[:, 1:]
    owner = np.broadcast_to(np.arange(len(breaks))[:, None], low.shape)
    some = high > low
    return Panels(owner[some], low[some], high[some])


def adapt(
    values: Callable[[Panels], Array],
    panels: Panels,
    tol: Array | float,
    most: int,
    at_once: int = 2**16,
) -> tuple[Panels, Array] | None:
    """Panels halved until the two rules agree on every average over a standard Gaussian variable.

    Parameters
    ----------
    values : callable, Panels -> array (k, n, 15)
        k functions at the nodes of panels, in units in which one tolerance serves all.
    panels : Panels
        To begin with, at least one of each of m averages.
    tol : float or array (m,)
        Largest sum, over the panels of an average, of the largest difference of the two rules.
    most : int
        Panels, of all averages together.
    at_once : int
        Panels whose ``values`` are computed together.

    Returns
    -------
    (Panels, array (k, m)) or None
        Ordered by owner and place, and the averages by Kronrod's rule; None where ``most`` would
        not do.

    Examples
    --------
    >>> start = between(np.array([[-9.0, 9.0]]))
    >>> _, size = adapt(lambda panels: np.abs(panels.nodes)[None], start, 1e-9, 100)
    >>> abs(size.item() ** 2 - 2 / np.pi) < 1e-9
    True
    """
    parts, error = _by_both_rules(values, panels, at_once)
    tol = np.broadcast_to(tol, panels.owner.max() + 1)
    while True:
        total, count = np.bincount(panels.owner, error), np.bincount(panels.owner)
        # not (x <= tol), rather than x > tol: an undefined difference is not a small one
        marked = ~(total <= tol)[panels.owner] & ~(error * count[panels.owner] <= tol[panels.owner])
        if not marked.any():
            averages = np.stack([np.bincount(panels.owner, each) for each in parts])
            return panels.at(np.lexsort((panels.low, panels.owner))), averages
        if len(error) + np.count_nonzero(marked) > most:
            return None
        owner, low, high = panels.at(marked)
        middle = (low + high) / 2
        ends = np.append(low, middle), np.append(middle, high)
        halves = Panels(np.append(owner, owner), *ends)
        more, differences = _by_both_rules(values, halves, at_once)
        panels = Panels(*map(np.append, panels.at(~marked), halves))
        parts = np.concatenate([parts[:, ~marked], more], axis=1)
        error = np.append(error[~marked], differences)


def _by_both_rules(
    values: Callable[[Panels], Array], panels: Panels, at_once: int
) -> tuple[Array, Array]:
    """What each panel adds to the averages by Kronrod's rule, (k, n), and by how much Gauss's rule
    differs most, (n,).  Raises ``GivenUp`` past the deadline."""
    rules, each = np.stack([WEIGHTS, WEIGHTS - GAUSS_WEIGHTS], axis=1), []
    for start in range(0, len(panels.low), at_once):
        check_time()
        some = panels.at(slice(start, start + at_once)) if len(panels.low) > at_once else panels
        both = (values(some) * gaussian_density(some.nodes)) @ rules
        each.append(both * some.half)
    parts, differences = np.moveaxis(np.concatenate(each, axis=1), 2, 0)
    return parts, np.abs(differences).max(axis=0)
