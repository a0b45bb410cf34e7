"""Refinement along one axis of the quadrature at a time.

kappa, tau, a mixture of Gaussians and the proximal map have rules of their own, and what one of
them leaves is seldom what the others do: nodes are a product, so that to refine all of them for
the sake of one would cost many times as much.
"""

from collections.abc import Callable

from .label_tables import Level

SHARE = 0.2  # of the tolerance, that what is left along one axis may take


class Refinement:
    """Levels to go on to, for a tolerance."""

    def __init__(self, axes: list[str], tol: float) -> None:
        self.axes, self.tol = axes, tol
        self.doubtful = axes

    def after(self, level: Level, distance: Callable[[Level], float]) -> Level:
        """The level after this one, where ``distance`` tells how far the solution is from that
        at another: further along axes that matter, of those that mattered last."""
        apart = {name: distance(level.along(name, by=-1)) for name in self.doubtful}
        # an undefined distance is not a small one
        large = [name for name, size in apart.items() if not size <= SHARE * self.tol]
        self.doubtful = large or self.axes
        return level.along(*self.doubtful)
