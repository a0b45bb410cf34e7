"""The readout's saddle point over strata, for the square and any other convex loss.  Section 20.

The unknowns are the law of the local field omega, the output for a new input of stratum nu: its
mean C, its variance v and its response V.  The scores s of (6.1), averaged given the stratum, tell
what the samples ask of the readout:

    scores  ->  G, a-bar, T  (20.6)-(20.7)  ->  C, V, v.

For the square loss, s = (y - omega) / (1 + V), these are (20.2)-(20.4).  n samples, p features
over sqrt(p), and the penalty lambda of (1.2).  docs/theory.md 20
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from solvers.arrays import inverse, namespace
from solvers.results import Array

from ..saddle_point import Field, Scores
from .strata import Strata


@dataclass(frozen=True)
class Equations:
    """The saddle point of one readout.

    Attributes
    ----------
    strata : Strata
    samples : float
        n.
    lam : float
        lambda, positive.
    scores : callable, Field -> Scores
        E s, -E s' and E s^2 in every stratum, (1, N) each.
    """

    strata: Strata
    samples: float
    lam: float
    scores: Callable[[Field], Scores]

    def resolvent(self, slope: Array) -> Any:
        """G, (p, p), of scores with the slope -E s' (N,)."""
        # Eq. (20.2), (20.6)
        total = self.strata.mix(self.ratio * self.strata.shares * slope)
        total += self.lam * namespace(total).eye(self.strata.width)
        return inverse(total)

    def response(self, G: Any) -> Array:
        """V, (N,)."""
        # Eq. (20.2), (20.7)
        return self.strata.trace(G) / self.strata.width

    def readout(self, G: Any, mean: Array, slope: Array, centre: Array | float) -> Any:
        """The mean of the readout over sqrt(p), (p,), of scores with E s and -E s' (N,)."""
        shares = self.strata.shares
        # Eq. (20.3), (20.6)
        force = self.strata.mix_means(shares * (mean + slope * centre))
        force = force + self.strata.mix_along_labels(shares * slope)
        return G @ force * self.ratio

    def variance(self, G: Any, square: Array) -> Array:
        """tr (S + mu mu^T) T / p, (N,): what the readout's own variance adds to that of the field,
        for scores with E s^2 (N,)."""
        # Eq. (20.4), (20.7)
        T = G @ self.strata.mix(self.ratio * self.strata.shares * square) @ G
        return self.response(T)

    def mean_field(self, readout: Any) -> tuple[Array, Array, Array]:
        """C, the covariance of omega with the label, and the variance x S x of the mean readout's
        output, (N,) each."""
        of = self.strata
        return of.mean(readout), of.along_labels(readout), of.quadratic(readout)

    @property
    def ratio(self) -> float:
        """n / p."""
        return self.samples / self.strata.width

    def sweep(self, field: Field) -> Field:
        """Every unknown from its own equation, at the scores of ``field``."""
        mean, slope, square = (part[0] for part in self.scores(field)[:3])
        G = self.resolvent(slope)
        readout = self.readout(G, mean, slope, field.centre[0])
        parts = *self.mean_field(readout), self.variance(G, square), self.response(G)
        return self.assemble(*parts)

    @staticmethod
    def assemble(
        centre: Array, covariance: Array, own: Array, variance: Array, response: Array
    ) -> Field:
        """The law of omega, from its mean, its covariance with the label, the two parts of its
        variance, and its response."""
        rows = (part[None] for part in (centre, covariance[:, None], own + variance, response))
        return Field(*rows).resolved


def relative_change(after: Field, before: Field) -> float:
    """Largest change of an unknown: of V relative to itself, of C and v to E omega^2."""
    size = np.sqrt(before.centre**2 + before.power)
    changes = [
        (after.centre - before.centre) / size,
        (after.pull - before.pull)[..., 0] / size,
        (after.power - before.power) / size**2,
        after.response / before.response - 1,
    ]
    return float(np.max(np.abs(changes)))
