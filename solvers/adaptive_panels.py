"""Adaptive quadrature of many one-dimensional integrals at once.

Every integral has its own panels, each with the 15 nodes of Kronrod's rule, which contain the 7
nodes of Gauss's rule.  A panel is halved where the two rules disagree by more than the tolerance.
The panels are returned too: a quadrature rule on them also serves other integrands of the same
shape.  For an integral over two Gaussian variables, the inner averages are the integrands of the
outer integral.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from .resources import check_time
from .results import Array
from .rules import Rule, gaussian_density, gaussian_rule

# Kronrod's extension of Gauss's rule of 7 nodes (QUADPACK's qk15): nodes from the end to the middle
# of [-1, 1], their weights, and the weights in Gauss's rule, which uses every second node.
_POSITIVE_NODES = (
    (0.991455371120812639, 0.022935322010529224, 0.0),
    (0.949107912342758524, 0.063092092629978553, 0.129484966168869693),
    (0.864864423359769072, 0.104790010322250183, 0.0),
    (0.741531185599394439, 0.140653259715525918, 0.279705391489276668),
    (0.586087235467691130, 0.169004726639267902, 0.0),
    (0.405845151377397166, 0.190350578064785409, 0.381830050505118945),
    (0.207784955007898467, 0.204432940075298892, 0.0),
)
_MIDDLE_NODE = (0.0, 0.209482141084727828, 0.417959183673469388)
KRONROD_NODES, KRONROD_WEIGHTS, GAUSS_WEIGHTS = np.array(
    [*((-x, w, g) for x, w, g in _POSITIVE_NODES), _MIDDLE_NODE, *_POSITIVE_NODES[::-1]]
).T


class Panels(NamedTuple):
    """n panels from ``low`` (n,) to ``high`` (n,); ``owner`` (n,) is the integral of each."""

    owner: NDArray[np.int64]
    low: Array
    high: Array

    def select(self, indices: Array | slice) -> "Panels":
        """The panels with these indices."""
        return Panels(*(column[indices] for column in self))

    @property
    def half_width(self) -> Array:
        """Half the length of each panel, (n, 1)."""
        return ((self.high - self.low) / 2)[:, None]

    @property
    def nodes(self) -> Array:
        """Kronrod's nodes on each panel, (n, 15)."""
        return ((self.low + self.high) / 2)[:, None] + self.half_width * KRONROD_NODES

    @property
    def weights(self) -> Array:
        """Kronrod's weights for a standard Gaussian, (n, 15), of sum 1 for each integral."""
        panel_weights = self.half_width * KRONROD_WEIGHTS * gaussian_density(self.nodes)
        return panel_weights / np.bincount(self.owner, panel_weights.sum(axis=1))[self.owner, None]

    def rule(self, weights: Array = KRONROD_WEIGHTS) -> Rule:
        """Rule (m, l) for a standard Gaussian on the panels of each of m integrals, in order.

        It is Kronrod's rule, or Gauss's if ``weights`` are Gauss's.  Integrals with fewer panels
        than others are padded with nodes of weight 0.
        """
        counts, rule_nodes = np.bincount(self.owner), weights > 0
        panel_place = np.arange(len(self.owner)) - np.repeat(np.cumsum(counts) - counts, counts)
        padded_panels = np.zeros((2, len(counts), counts.max(), np.count_nonzero(rule_nodes)))
        padded_panels[0, self.owner, panel_place] = self.nodes[:, rule_nodes]
        padded_panels[1, self.owner, panel_place] = self.half_width * weights[rule_nodes]
        return gaussian_rule(*padded_panels.reshape(2, len(counts), -1))


def panels_between(breaks: Array) -> Panels:
    """Panels between successive ``breaks`` (m, b + 1) of m integrals, without empty panels.

    Examples
    --------
    >>> panels = panels_between(np.array([[0.0, 1.0, 1.0], [0.0, 2.0, 3.0]]))
    >>> panels.owner.tolist(), panels.high.tolist()
    ([0, 1, 1], [1.0, 2.0, 3.0])
    """
    panel_low, panel_high = breaks[:, :-1], breaks[:, 1:]
    panel_owner = np.broadcast_to(np.arange(len(breaks))[:, None], panel_low.shape)
    not_empty = panel_high > panel_low
    return Panels(panel_owner[not_empty], panel_low[not_empty], panel_high[not_empty])


def halve_panels(
    values: Callable[[Panels], Array],
    panels: Panels,
    tol: Array | float,
    max_panels: int,
    batch_size: int = 2**16,
) -> tuple[Panels, Array] | None:
    """Halve panels until the two rules agree on every average over a standard Gaussian variable.

    Parameters
    ----------
    values : callable, Panels -> array (k, n, 15)
        k functions at the nodes of panels, scaled so that one tolerance suits all of them.
    panels : Panels
        The first panels: at least one for each of m averages.
    tol : float or array (m,)
        Bound on the error estimate of an average: the sum over its panels of the largest
        difference between the two rules.
    max_panels : int
        Largest number of panels of all averages together.
    batch_size : int
        Number of panels for which ``values`` is called at once.

    Returns
    -------
    (Panels, array (k, m)) or None
        The panels in order of owner and position, and the averages by Kronrod's rule.  None if
        more than ``max_panels`` would be needed.

    Examples
    --------
    >>> start = panels_between(np.array([[-9.0, 9.0]]))
    >>> _, size = halve_panels(lambda panels: np.abs(panels.nodes)[None], start, 1e-9, 100)
    >>> abs(size.item() ** 2 - 2 / np.pi) < 1e-9
    True
    """
    panel_sums, errors = _panel_contributions(values, panels, batch_size)
    tol = np.broadcast_to(tol, panels.owner.max() + 1)
    while True:
        total, count = np.bincount(panels.owner, errors), np.bincount(panels.owner)
        # not (x <= tol), rather than x > tol: an undefined difference is not a small one
        wide = ~(total <= tol)[panels.owner] & ~(errors * count[panels.owner] <= tol[panels.owner])
        if not wide.any():
            kronrod_averages = np.stack([np.bincount(panels.owner, row) for row in panel_sums])
            return panels.select(np.lexsort((panels.low, panels.owner))), kronrod_averages
        if len(errors) + np.count_nonzero(wide) > max_panels:
            return None
        halved_owner, panel_low, panel_high = panels.select(wide)
        panel_middle = (panel_low + panel_high) / 2
        ends_of_halves = np.append(panel_low, panel_middle), np.append(panel_middle, panel_high)
        halves = Panels(np.append(halved_owner, halved_owner), *ends_of_halves)
        half_sums, half_errors = _panel_contributions(values, halves, batch_size)
        panels = Panels(*map(np.append, panels.select(~wide), halves))
        panel_sums = np.concatenate([panel_sums[:, ~wide], half_sums], axis=1)
        errors = np.append(errors[~wide], half_errors)


def _panel_contributions(
    values: Callable[[Panels], Array], panels: Panels, size: int
) -> tuple[Array, Array]:
    """Contribution of each panel to the averages by Kronrod's rule, (k, n), and its largest
    difference from Gauss's rule, (n,).  Raises ``GivenUp`` past the deadline."""
    rule_pair, panel_sums = np.stack([KRONROD_WEIGHTS, KRONROD_WEIGHTS - GAUSS_WEIGHTS], axis=1), []
    for start in range(0, len(panels.low), size):
        check_time()
        panels_now = panels.select(slice(start, start + size)) if len(panels.low) > size else panels
        rule_sums = (values(panels_now) * gaussian_density(panels_now.nodes)) @ rule_pair
        panel_sums.append(rule_sums * panels_now.half_width)
    kronrod_sums, gauss_differences = np.moveaxis(np.concatenate(panel_sums, axis=1), 2, 0)
    return kronrod_sums, np.abs(gauss_differences).max(axis=0)
