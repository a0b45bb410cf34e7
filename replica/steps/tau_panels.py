"""Panels over what is left of the target's arguments at every kappa, those of one direction within
those of another.  docs/theory.md 16, 18"""

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from solvers.adaptive import NODES, Panels, halve_panels, panels_between
from solvers.quadrature import QuadratureError
from solvers.results import Array
from solvers.rules import gaussian_density

from ..problem import LabelLaw

SHORTEST = 1e-7  # part of a direction beside others: less is rounding
FIRST = np.array([-9.2, -6.0, -3.0, 0.0, 3.0, 6.0, 9.2])  # panels, to begin with
MOST_PANELS = 2**20  # of one of tau, of all places together: 100 MB
# Panels at once: whose numbers stay in the processor's cache, and that have others within.
INNER, OUTER = 2**10, 64

# Places (n,), in order, tau (q, n) and weights (n,) of nodes.
TauNodes = tuple[NDArray[np.int64], Array, Array]


class Nest(NamedTuple):
    """Averages (k, M) over tau about M places ``centre`` (T, M): on panels of the first of tau,
    those of the others within each of its nodes.

    Attributes
    ----------
    averages : callable (z (T, n, 15), owner (n,)) -> (k, n, 15)
        With kinks at the planes of the target of ``labels``.
    owner : (M,)
        What it is told of the places.
    L : (T, q)
        Slopes of z in tau.
    tol : (M,)
    """

    averages: Callable[[Array, NDArray[np.int64]], Array]
    labels: LabelLaw
    owner: NDArray[np.int64]
    centre: Array
    L: Array
    tol: Array

    def within(self, panels: Panels) -> "Nest":
        """Averages over the others at every node of panels of the first: to few digits where it
        weighs little."""
        at = np.repeat(panels.owner, NODES.size)
        centre = self.centre[:, at] + self.L[:, :1] * panels.nodes.ravel()
        tol = 0.01 * self.tol[at] / gaussian_density(panels.nodes.ravel())
        return self._replace(owner=self.owner[at], centre=centre, L=self.L[:, 1:], tol=tol)

    def adapted(self) -> tuple[Panels, Array]:
        """The panels of the first of tau, and the averages."""
        along, rest, centre = self.L[:, 0], self.L[:, 1:], self.centre

        def values(panels: Panels) -> Array:
            if rest.size:
                return self.within(panels).adapted()[1].reshape(-1, *panels.nodes.shape)
            z = centre[:, panels.owner, None] + along[:, None, None] * panels.nodes
            return self.averages(z, self.owner[panels.owner])

        breaks = np.broadcast_to(FIRST, (centre.shape[1], len(FIRST)))
        # planes that the others do not cross
        planes = [(np.array(v), t) for v, t in self.labels.combined_mean.planes]
        own = [(v, t) for v, t in planes if not (np.abs(v @ rest) > SHORTEST).any()]
        own = [(v, t) for v, t in own if abs(v @ along) > SHORTEST]
        places = [((t - v @ centre) / (v @ along))[:, None] for v, t in own]
        breaks = np.concatenate([breaks, *places], axis=1).clip(FIRST[0], FIRST[-1])
        first = panels_between(np.sort(breaks, axis=1))
        adapted = halve_panels(values, first, self.tol, MOST_PANELS, self.panels_at_once)
        if adapted is None:
            raise QuadratureError(
                f"the averages over the batch of a step: target {self.labels.target.name} less the "
                "network's output varies too quickly at these rates; the sRF (--model srf) needs "
                "no such averages"
            )
        return adapted

    def nodes(self, panels: Panels) -> Iterator[TauNodes]:
        """The nodes of Kronrod's rule on panels of the first of tau, and on those within."""
        weights, size = panels.weights, self.panels_at_once
        for some in (slice(k, k + size) for k in range(0, len(weights), size)):
            here = panels.select(some)
            at, tau = np.repeat(here.owner, NODES.size), here.nodes.ravel()
            more = weights[some].ravel()
            if self.L.shape[1] == 1:
                yield at, tau[None], more
                continue
            inner = self.within(here)
            for place, beside, weight in inner.nodes(inner.adapted()[0]):
                yield at[place], np.concatenate([tau[None, place], beside]), more[place] * weight

    @property
    def panels_at_once(self) -> int:
        """Of the first of tau."""
        return OUTER if self.L.shape[1] > 1 else INNER
