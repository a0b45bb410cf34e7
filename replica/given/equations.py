"""The readout's saddle point over strata, for the square and any other convex loss.

The readout, over the data it may be trained on, has a mean a-bar and a covariance T, and responds
to a sample by G.  The output for a new input of stratum nu, the local field omega, has then a mean
C, a variance v and a response V; and the scores s of (6.1), averaged given the stratum, tell what
the samples ask of the readout:

    C, v, V  ->  scores  ->  a-bar, T, G  ->  C, v, V.                                 (20.6)-(20.7)

For the square loss, s = (y - omega) / (1 + V), this is (20.2)-(20.4).  n samples, p features over
sqrt(p), and the penalty lambda of (1.2).  docs/theory.md 20
"""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from solvers.arrays import add_to_diagonal, inverse
from solvers.results import Array, Status

from ..convex import GivenUp
from ..saddle_point import Field, Scores
from .strata import Strata


class Posterior(NamedTuple):
    """The law of the readout over its training data.

    Attributes
    ----------
    response, covariance : (p, p)
        G and T.
    mean : (p,)
        a-bar over sqrt(p).
    """

    response: Any
    covariance: Any
    mean: Any


@dataclass(frozen=True)
class StrataEquations:
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
    deadline : float
        When solving is given up, as ``time.monotonic`` tells it: a matrix that is asked for later
        raises ``GivenUp``.
    """

    strata: Strata
    samples: float
    lam: float
    scores: Callable[[Field], Scores]
    deadline: float = np.inf

    def response(self, slope: Array) -> Any:
        """G, (p, p), of scores with -E s' (N,)."""
        # Eq. (20.2), (20.6)
        total = self._mix(slope)
        add_to_diagonal(total, self.lam)
        return inverse(total)

    def mean(self, G: Any, mean: Array, slope: Array, centre: Array | float) -> Any:
        """a-bar over sqrt(p), (p,), of scores with E s and -E s' (N,) at C (N,)."""
        shares = self.ratio * self.strata.shares
        # Eq. (20.3), (20.6)
        pull = self.strata.mix_means(shares * (mean + slope * centre))
        return G @ (pull + self.strata.mix_along_labels(shares * slope))

    def covariance(self, G: Any, square: Array) -> Any:
        """T, (p, p), of scores with E s^2 (N,)."""
        # Eq. (20.4), (20.7)
        return G @ self._mix(square) @ G

    def _mix(self, weights: Array) -> Any:
        """(n/p) sum_nu omega w (S + mu mu^T), before the deadline."""
        if time.monotonic() > self.deadline:
            raise GivenUp(Status.TIME)
        return self.strata.mix(self.ratio * self.strata.shares * weights)

    def trace(self, matrix: Any) -> Array:
        """tr (S + mu mu^T) X / p, (N,): V for G, and what T adds to v."""
        return self.strata.trace(matrix) / self.strata.width

    @property
    def ratio(self) -> float:
        """n / p."""
        return self.samples / self.strata.width

    def posterior(self, field: Field) -> Posterior:
        """The readout that the scores of a ``field`` make."""
        mean, slope, square = (part[0] for part in self.scores(field)[:3])
        G = self.response(slope)
        a = self.mean(G, mean, slope, field.centre[0])
        return Posterior(G, self.covariance(G, square), a)

    def field(self, posterior: Posterior) -> Field:
        """The law of omega, of N strata of one point; its ``pull`` is the covariance with the
        label."""
        G, T, a = posterior
        # Eq. (20.7)
        power = self.positive(self.strata.quadratic(a) + self.trace(T))
        response = self.positive(self.trace(G))
        rows = self.strata.mean(a), self.strata.along_labels(a)[:, None], power, response
        return Field(*(row[None] for row in rows))

    def positive(self, x: Array) -> Array:
        """What is positive (N,) where moments of low rank leave it so: in strata in which all
        features vanish they are off by rounding."""
        return np.maximum(x, 1e-10 * (self.strata.shares @ np.abs(x)))

    def sweep(self, field: Field) -> Field:
        """Every unknown from its own equation, at the scores of ``field``."""
        return self.field(self.posterior(field))

    def change(self, after: Field, before: Field) -> float:
        """Largest change of an unknown: of V relative to itself, of C and v to E omega^2, and to no
        less than a part of its mean over all strata."""
        size = np.sqrt(self.size2(before.centre, before.power))
        changes = [
            (after.centre - before.centre) / size,
            (after.pull - before.pull)[..., 0] / size,
            (after.power - before.power) / size**2,
            after.response / before.response - 1,
        ]
        return float(np.max(np.abs(changes)))

    def size2(self, centre: Array, power: Array) -> Array:
        """E omega^2, or some part of its mean over all strata where that is larger, (..., N)."""
        square = centre**2 + power
        return np.maximum(square, 1e-4 * (square @ self.strata.shares)[..., None])
