"""Nested adaptive panels over tau, the rest of the target's arguments at every kappa.
docs/theory.md 16, 18

Panels in the first coordinate of tau have, at each of their nodes, panels in the second, and so on.
"""

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from solvers.adaptive import NODES, Panels, halve_panels, panels_between
from solvers.quadrature import QuadratureError
from solvers.results import Array
from solvers.rules import gaussian_density

from ..problem import LabelLaw

SHORT = 1e-7  # shorter projections of unit vectors are rounding
FIRST_ENDS = np.array([-9.2, -6.0, -3.0, 0.0, 3.0, 6.0, 9.2])  # ends of the initial panels
MOST_PANELS = 2**20  # in one coordinate of tau, at all places together: 100 MB
# Panels in a block: of the innermost coordinate, to fit in the processor's cache, and of others.
INNER, OUTER = 2**10, 64

# Nodes: sorted places (n,), tau (q, n) and weights (n,).
TauNodes = tuple[NDArray[np.int64], Array, Array]


class NestedPanels(NamedTuple):
    """Averages (k, M) over tau at M places, on nested panels.

    Attributes
    ----------
    averages : callable (z (T, n, 15), owner (n,)) -> (k, n, 15)
        Function to average, with kinks at the planes of the target of ``labels``.
    owner : (M,)
        Indices of the places, passed to ``averages``.
    centre, L : (T, M), (T, q)
        The arguments of the target are z = centre + L tau.
    tol : (M,)
    """

    averages: Callable[[Array, NDArray[np.int64]], Array]
    labels: LabelLaw
    owner: NDArray[np.int64]
    centre: Array
    L: Array
    tol: Array

    def nested_at(self, panels: Panels) -> "NestedPanels":
        """Nested averages over the other coordinates at every node of ``panels`` of the first.

        The tolerance is inversely proportional to the Gaussian weight of the node.
        """
        node_owner = np.repeat(panels.owner, NODES.size)
        centre = self.centre[:, node_owner] + self.L[:, :1] * panels.nodes.ravel()
        tol = 0.01 * self.tol[node_owner] / gaussian_density(panels.nodes.ravel())
        return self._replace(owner=self.owner[node_owner], centre=centre, L=self.L[:, 1:], tol=tol)

    def adapted(self) -> tuple[Panels, Array]:
        """Adapted panels of the first coordinate of tau, and the averages."""
        slope, other_slopes, centre = self.L[:, 0], self.L[:, 1:], self.centre

        def values(panels: Panels) -> Array:
            if other_slopes.size:
                return self.nested_at(panels).adapted()[1].reshape(-1, *panels.nodes.shape)
            z = centre[:, panels.owner, None] + slope[:, None, None] * panels.nodes
            return self.averages(z, self.owner[panels.owner])

        breaks = np.broadcast_to(FIRST_ENDS, (centre.shape[1], len(FIRST_ENDS)))
        # planes whose position does not depend on the other coordinates
        planes = [(np.array(v), t) for v, t in self.labels.combined_mean.planes]
        crossed = [(v, t) for v, t in planes if not (np.abs(v @ other_slopes) > SHORT).any()]
        crossed = [(v, t) for v, t in crossed if abs(v @ slope) > SHORT]
        places = [((t - v @ centre) / (v @ slope))[:, None] for v, t in crossed]
        breaks = np.concatenate([breaks, *places], axis=1).clip(FIRST_ENDS[0], FIRST_ENDS[-1])
        initial = panels_between(np.sort(breaks, axis=1))
        adapted = halve_panels(values, initial, self.tol, MOST_PANELS, self.panels_at_once)
        if adapted is None:
            averages = f"the averages over the batch of a step: target {self.labels.target.name}"
            varies = "less the network's output varies too quickly to settle"
            raise QuadratureError(f"{averages} {varies}")
        return adapted

    def nodes(self, panels: Panels) -> Iterator[TauNodes]:
        """Nodes of Kronrod's rule on ``panels`` of the first coordinate and the panels within."""
        weights, size = panels.weights, self.panels_at_once
        for block in (slice(k, k + size) for k in range(0, len(weights), size)):
            block_panels = panels.select(block)
            node_owner, tau = np.repeat(block_panels.owner, NODES.size), block_panels.nodes.ravel()
            node_weights = weights[block].ravel()
            if self.L.shape[1] == 1:
                yield node_owner, tau[None], node_weights
                continue
            inner = self.nested_at(block_panels)
            for index, other_tau, weight in inner.nodes(inner.adapted()[0]):
                all_tau = np.concatenate([tau[None, index], other_tau])
                yield node_owner[index], all_tau, node_weights[index] * weight

    @property
    def panels_at_once(self) -> int:
        """Number of panels of the first coordinate in a block."""
        return OUTER if self.L.shape[1] > 1 else INNER
