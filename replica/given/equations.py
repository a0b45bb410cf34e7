"""The readout's saddle point over strata, for the square and any other convex loss.

The readout, over the data it may be trained on, has a mean a-bar and a covariance T, and responds
to a sample by G.  The output for a new input of stratum nu, the local field omega, has then a mean
C, a variance v and a response V; and the scores s of (6.1), averaged given the stratum, tell what
the samples ask of the readout:

    C, v, V  ->  scores  ->  a-bar, T, G  ->  C, v, V.                                 (20.6)-(20.7)

For the square loss, s = (y - omega) / (1 + V), this is (20.2)-(20.4); moments that a sample of N
rows tells are those of (20.8).  n samples, p features over sqrt(p), and the penalty lambda of
(1.2).  docs/theory.md 20
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from solvers.arrays import diagonal_view, inverse, like, namespace
from solvers.resources import check_time
from solvers.results import Array

from ..saddle_point import Field, Scores
from .strata import Posterior, Strata, StratumLabels


@dataclass(frozen=True)
class StrataEquations:
    """The saddle point of one readout.

    Attributes
    ----------
    strata : Strata
    samples : float
        n.
    lam : array (p,)
        lambda of every feature, positive; 0 of the constant one that is an intercept.
    labels : StratumLabels
    scores : callable, Field -> Scores
        E s, -E s' and E s^2 in every stratum, (1, N) each.
    """

    strata: Strata
    samples: float
    lam: Array
    labels: StratumLabels
    scores: Callable[[Field], Scores]

    def response(self, slope: Array) -> Any:
        """G, (p, p), of scores with -E s' (N,)."""
        # Eq. (20.2), (20.6)
        total = self._mix(slope)
        diagonal_view(total)[:] += like(self.lam, total)
        return inverse(total)

    def mean(self, G: Any, mean: Array, slope: Array, centre: Array | float) -> Any:
        """a-bar over sqrt(p), (p,), of scores with E s and -E s' (N,) at C (N,)."""
        shares = self.ratio * self.strata.shares
        # Eq. (20.3), (20.6)
        return G @ self.strata.mix_vectors(shares * (mean + slope * centre), shares * slope)

    def covariance(self, G: Any, square: Array) -> Any:
        """T, (p, p), of scores with E s^2 (N,)."""
        # Eq. (20.4), (20.7)
        return G @ self._mix(square) @ G

    def degrees_of_freedom(self, G: Any) -> tuple[float, float]:
        """df_1 = tr A G and df_2 = tr A G A G, for 1/G = A + lambda.  Eq. (20.15)"""
        xp, fitted = namespace(G), -G * like(self.lam, G)
        diagonal_view(fitted)[:] += 1.0
        return float(xp.sum(xp.linalg.diagonal(fitted))), float(xp.sum(fitted * fitted.T))

    def _mix(self, weights: Array) -> Any:
        """(n/p) sum_nu omega w (S + mu mu^T), before the deadline."""
        check_time()
        return self.strata.mix(self.ratio * self.strata.shares * weights)

    @property
    def ratio(self) -> float:
        """n / p."""
        return self.samples / self.strata.width

    def sweep(self, field: Field) -> tuple[Field, Posterior]:
        """Every unknown from its own equation, at the scores of ``field``."""
        mean, slope, square = (part[0] for part in self.scores(field)[:3])
        G = self.response(slope)
        a = self.mean(G, mean, slope, field.centre[0])
        posterior = Posterior(G, self.covariance(G, square), a)
        return self.strata.field(posterior), posterior

    def variance(self, field: Field, posterior: Posterior) -> float:
        """What T has in v, on average over strata."""
        *_, rest = self.strata.along(posterior.mean)
        return float(self.strata.shares @ (field.power[0] - rest))

    def size2(self, centre: Array, power: Array) -> Array:
        """E omega^2, or some part of its mean over all strata where that is larger, (..., N)."""
        square = centre**2 + power
        return np.maximum(square, 1e-4 * (square @ self.strata.shares)[..., None])


@dataclass(frozen=True, kw_only=True)
class SampledEquations(StrataEquations):
    """The same where the moments of few strata are those of a sample of features.

    A row of the sample has pulled the empirical readout a-hat towards itself, by its leverage
    H = (n/N) (-E s') V: residuals of rows are 1 - H of those of new inputs, and a-hat has the noise
    of N rows.  Weights that are larger by 1 / (1 - H) make the response of the population's
    moments; what rows have in C and v is taken from them.  Eq. (20.8)

    Attributes
    ----------
    rows : int
        N.
    """

    rows: int

    def sweep(self, field: Field) -> tuple[Field, Posterior]:
        mean, slope, square = (part[0] for part in self.scores(field)[:3])
        V, part, spread = field.response[0], self.samples / self.rows, self.labels.spread
        H = part * slope * V
        kept = 1 - H
        G = self.response(slope / kept)
        a = self.mean(G, mean / kept, slope / kept, field.centre[0])
        of_mean, label, variance = self.strata.along(a)
        power = (variance - 2 * H * label + H**2 * spread) / kept**2
        # less the noise of the rows, whose scores are those of the mean readout
        of_rows = part * (square - slope**2 * (field.power[0] - power))
        varied = self._coupling(G, slope, V) @ (square - of_rows)
        centre = of_mean - part * V * mean
        pull = ((label - H * spread) / kept)[:, None]
        response = self.strata.positive(self.strata.trace(G) / kept)
        new = centre, pull, self.strata.positive(power + varied), response
        return Field(*(row[None] for row in new)), Posterior(G, self.covariance(G, square), a)

    def variance(self, field: Field, posterior: Posterior) -> float:
        """What another sample of the readout would change, on average over strata."""
        _, slope, square = (part[0] for part in self.scores(field)[:3])
        coupling = self._coupling(posterior.response, slope, field.response[0])
        return float(self.strata.shares @ coupling @ square)

    def _coupling(self, G: Any, slope: Array, V: Array) -> Array:
        """tr (S + mu mu^T) T / p of the population for scores of E s^2 = 1 in each stratum, (N, N).

        With kappa_nu = (n/p) omega (-E s') for what the population's moments have in 1/G, it is
        D (n/p) omega, D = -dV / d kappa.  The empirical one, D-hat = -d V-hat / d kappa-hat, has
        V-hat = (1 - H) V and kappa = (1 - H) kappa-hat in it.
        """
        part = self.samples / self.rows
        kept = 1 - part * slope * V
        shares = self.ratio * self.strata.shares
        unit = np.eye(len(V))
        D_hat = [self.strata.trace(G @ self.strata.mix(one) @ G) for one in unit]
        # of kappa-hat and c = (n/N) w: c / kappa-hat = p / (N omega)
        ratio = part / shares
        Q = np.array(D_hat).T / np.outer(kept**2, kept**2) - np.diag(V**2 * ratio / kept**2)
        rest = shares * slope * part * slope  # (1 - H)^2 kappa-hat c
        return np.asarray(Q @ np.linalg.inv(unit + rest[:, None] * Q) * shares)
