"""Saddle point of a readout over strata, or over rows, for any loss; degrees of freedom.

The readout, over the data it may be trained on, has a mean a-bar and a covariance T, and responds
to a sample by G.  The output for a new input of stratum nu, the local field omega, has then a mean
C, a variance v and a response V; and the scores s of (6.1), averaged given the stratum, tell what
the samples ask of the readout:

    C, v, V  ->  scores  ->  a-bar, T, G  ->  C, v, V.                                 (20.6)-(20.7)

For the square loss, s = (y - omega) / (1 + V), this is (20.2)-(20.4).  Where strata are known from
N rows of a sample, of which n are to train, each row has pulled the readout towards itself, by its
leverage H = (n/N) (-E s') V, and is left out: residuals of rows are 1 - H of those of new inputs,
and weights larger by 1 / (1 - H) make the response of all inputs.  Eqs. (20.8), (22.1)-(22.2).  n
samples, p features over sqrt(p), and the penalty lambda of (1.2).

Strata may be the N rows phi_i of a sample themselves, without Gaussian features.  The readout is
then trained on n of them, drawn without replacement, and tested on the others.  Only its law, over
which n they are, is Gaussian: a row j is drawn or not, which is worth the variance z_j of what it
asks of the readout, and reaches another row by

    R_ij = phi_i.G phi_j / (p (1 - H_i) (1 - H_j)).                                          (22.3)

At n = N the variances vanish, and outputs of ridge regression are its leave-one-out predictions.
docs/theory.md 20, 22
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg.blas import dtrmm

from solvers.arrays import diagonal_view, inverse, like, namespace
from solvers.resources import CACHE_NUMBERS, check_time
from solvers.results import Array

from ..saddle_point import Field, Scores
from .strata import Posterior, Strata, StratumLabels

# T as a function, its part of the variance of omega, and the variance of the prediction
Varied = tuple[Callable[[], Any], Array, Array]
Variances = Callable[[Array, Array, Array], Varied]


class Freedom(NamedTuple):
    """Degrees of freedom of a fit.  Eqs. (20.15), (20.16); docs/theory.md 22 of rows

    Attributes
    ----------
    degrees_of_freedom, degrees_of_freedom_2 : float
        df_1 = tr A G and df_2 = tr A G A G of the population, for 1/G = A + lambda; the second is
        NaN of rows, which do not tell it.
    kappa : float
        The effective penalty.
    residual_degrees : float
        n less the samples that are lost, by the spread of V: of these there are df_2, of the
        empirical A where moments are those of a sample, and df_1 of rows.
    """

    degrees_of_freedom: float
    degrees_of_freedom_2: float
    kappa: float
    residual_degrees: float


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
    drawn : float
        n / N, the share of the rows that strata are known from; 0 where these are exact.
    of_square : bool
        Whether the loss is the square, of ridge regression.
    """

    strata: Strata
    samples: float
    lam: Array
    labels: StratumLabels
    scores: Callable[[Field], Scores]
    drawn: float = 0.0
    of_square: bool = True

    def left(self, slope: Array, V: Array) -> Array:
        """Share 1 - H of a new input's residual that a row of the training set keeps, (N,), for
        scores of slope -E s' (N,) at the responses V (N,); 1 where moments are exact."""
        if self.of_square:  # whose slope is 1 / (1 + V): nothing cancels where V is large
            return slope * (1 + (1 - self.drawn) * V)
        return 1 - self.drawn * slope * V

    def response(self, slope: Array, V: Array) -> tuple[Any, Array]:
        """Response G of the readout, (p, p), and V (1 - H) of every stratum that follows from it,
        (N,), for scores of slope -E s' (N,) at V."""
        G = inverse(self._inverse_response(slope, V))
        return G, self.strata.positive(self.strata.trace(G))

    def _inverse_response(self, slope: Array, V: Array) -> Any:
        """1/G, (p, p).  Eq. (20.2), (20.6), (22.1)"""
        inverse_response = self._second_moments(slope / self.left(slope, V))
        diagonal_view(inverse_response)[:] += like(self.lam, inverse_response)
        return inverse_response

    def rounding(self, G: Any, slope: Array, V: Array) -> float:
        """Relative change of V by a step of Newton's iteration for the inverse G, which tells what
        rounding leaves of it, for the square loss; 0 where 1 - H is large."""
        if self.left(slope, V).min() > 1e-3:
            return 0.0
        inverse_response = self._inverse_response(slope, V)
        refined_G = G + G @ (np.eye(len(G)) - inverse_response @ G)
        refined_t = self.strata.trace((refined_G + refined_G.T) / 2)
        refined_V = self.response_of_square(self.strata.positive(refined_t))
        return float(np.abs(np.log(refined_V / V)).max())

    def response_of_square(self, t: Array) -> Array:
        """V of the square loss, whose -E s' is 1 / (1 + V), from V (1 - H)."""
        # Eq. (22.4), by the form of the root in which nothing cancels
        left_out = 1 - self.drawn
        root_sum, is_small = np.abs(1 - t) + np.sqrt((1 - t) ** 2 + 4 * left_out * t), t <= 1
        return np.where(is_small, 2 * t, root_sum) / np.where(is_small, root_sum, 2 * left_out)

    def mean(self, G: Any, score_at_zero: Array, slope: Array, V: Array) -> tuple[Any, Field]:
        """Mean readout a-bar over sqrt(p), (P, p), and the law of omega under it alone, with V.

        Average scores are linear in C here: ``score_at_zero``, E s - C E s' (P, N), with the
        slope -E s' (N,).
        """
        kept_residual, label_spread = self.left(slope, V), self.labels.spread
        sample_weights = self.ratio * self.strata.shares / kept_residual
        # Eq. (20.3), (20.6), (22.2), (22.8), (22.13)
        a_bar = self.strata.mix_vectors(sample_weights * score_at_zero, sample_weights * slope) @ G
        H, (stratum_mean, label_covariance, variance) = 1 - kept_residual, self.strata.along(a_bar)
        omega_mean = (stratum_mean - self.drawn * V * score_at_zero) / kept_residual
        tau_slope = (label_covariance - H * label_spread) / kept_residual
        variance = (variance - 2 * H * label_covariance + H**2 * label_spread) / kept_residual**2
        return a_bar, Field(omega_mean, tau_slope[..., None], variance, V[None])

    def variances(self, G: Any, slope: Array, V: Array) -> Variances:
        """Map to the readout's covariance T over its samples, for scores of slope -E s' at V.

        The map takes E s, E s^2 and the part of the variance of omega that is due to T, (P, N)
        each.  It returns a function that computes T (p, p) of the first label, the new part (P, N),
        and the average variance of the prediction over the samples (P,).
        """

        def varied(score_mean: Array, score_square: Array, covariance_part: Array) -> Varied:
            covariances = [self.covariance(G, label_square) for label_square in score_square]
            v_of_T = self.strata.positive(np.array([self.strata.trace(T) for T in covariances]))
            return lambda: covariances[0], v_of_T, v_of_T @ self.strata.shares

        return varied

    def covariance(self, G: Any, square: Array) -> Any:
        """Covariance T of the readout over its samples, (p, p), for scores of mean square E s^2
        (N,)."""
        # Eq. (20.4), (20.7)
        return G @ self._second_moments(square) @ G

    def freedom(self, G: Any, slope: Array, V: Array) -> Freedom:
        """Degrees of freedom and effective penalty for scores of slope -E s' (N,) at V."""
        xp, fit_matrix = namespace(G), -G * like(self.lam, G)
        diagonal_view(fit_matrix)[:] += 1.0
        df_1 = float(xp.sum(xp.linalg.diagonal(fit_matrix)))
        df_2, lost = self._second(df_1, float(xp.sum(fit_matrix * fit_matrix.T)), G, slope, V)
        strata_shares = self.strata.shares
        kappa = float(self.lam.max() / (self.ratio * (strata_shares @ slope)))
        residual_degrees = (self.samples - lost) * (strata_shares @ V) ** 2 / (strata_shares @ V**2)
        return Freedom(df_1, df_2, kappa, float(residual_degrees))

    def _second(self, df_1: float, df_2: float, *response_slope_V: Any) -> tuple[float, float]:
        """Degrees of freedom df_2 of the population, and the degrees of freedom that the fit takes
        from the samples, given tr A G (``df_1``) and tr A G A G (``df_2``) of the strata."""
        return df_2, df_2

    def _second_moments(self, stratum_weights: Array) -> Any:
        """Sum of second moments of the strata, each weighted by its samples, (n/p) sum_nu omega w
        (S + mu mu^T) for ``stratum_weights`` w; raises ``GivenUp`` past the deadline."""
        check_time()
        return self.strata.mix(self.ratio * self.strata.shares * stratum_weights)

    @property
    def ratio(self) -> float:
        """Samples over width, n / p."""
        return self.samples / self.strata.width

    def one_pass(self, field: Field) -> tuple[Field, Posterior, float]:
        """Field after an iteration, by the readout's law from the scores of ``field``; the law; and
        the variance of the prediction over the readout's samples, on average over strata."""
        scores, V = self.scores(field), field.response[0]
        slope = scores.slope[0]
        response_G, t = self.response(slope, V)
        mean_readout, under = self.mean(response_G, scores.mean + slope * field.centre, slope, V)
        varied_by = self.variances(response_G, slope, V)
        T, v_of_T, variance = varied_by(scores.mean, scores.square, field.variance - under.variance)
        output_variance = self.strata.blurred(under.centre, under.variance + v_of_T)
        updated = under._replace(variance=output_variance, response=(t / self.left(slope, V))[None])
        return updated, Posterior(response_G, T(), mean_readout), variance[0]

    def size2(self, centre: Array, variance: Array) -> Array:
        """Mean square E omega^2 in every stratum, (..., N), bounded below by a part of its mean
        over strata: the scale by which changes are measured."""
        omega_square = centre**2 + variance
        return np.maximum(omega_square, 1e-4 * (omega_square @ self.strata.shares)[..., None])


class SampledEquations(StrataEquations):
    """The saddle point where the moments of few strata are those of a sample of N rows.

    The empirical readout a-hat has the noise of the rows: what that makes of v, scores being those
    of the mean readout, is taken from it.  Eq. (20.8)
    """

    def variances(self, G: Any, slope: Array, V: Array) -> Variances:
        coupling, stratum_shares = self._strata_coupling(G, slope, V), self.strata.shares

        def varied(score_mean: Array, square: Array, covariance_part: Array) -> Varied:
            sampling_squares = self.drawn * (square - slope**2 * covariance_part)
            new = (square - sampling_squares) @ coupling.T  # Eq. (22.10), (22.13)
            return partial(self.covariance, G, square[0]), new, square @ coupling.T @ stratum_shares

        return varied

    def _second(self, df_1: float, df_2: float, *slope_and_V: Any) -> tuple[float, float]:
        slope = slope_and_V[1]
        fit_degrees = (self.strata.shares * slope) @ self._strata_coupling(*slope_and_V) @ slope
        return self.samples * float(fit_degrees), df_2

    def _strata_coupling(self, G: Any, slope: Array, V: Array) -> Array:
        """tr (S + mu mu^T) T / p of the population for scores of E s^2 = 1 in each stratum, (N, N).

        With kappa_nu = (n/p) omega (-E s') for what the population's moments have in 1/G, it is
        D (n/p) omega, D = -dV / d kappa.  The empirical one, D-hat = -d V-hat / d kappa-hat, has
        V-hat = (1 - H) V and kappa = (1 - H) kappa-hat in it.
        """
        kept = self.left(slope, V)
        stratum_weights = self.ratio * self.strata.shares
        unit_scores = np.eye(len(V))
        D_hat = [self.strata.trace(G @ self.strata.mix(stratum) @ G) for stratum in unit_scores]
        # of kappa-hat and c = (n/N) w: c / kappa-hat = p / (N omega)
        row_ratio = self.drawn / stratum_weights
        Q = np.array(D_hat).T / np.outer(kept**2, kept**2) - np.diag(V**2 * row_ratio / kept**2)
        row_noise = stratum_weights * slope * self.drawn * slope  # (1 - H)^2 kappa-hat c
        return np.asarray(Q @ np.linalg.inv(unit_scores + row_noise[:, None] * Q) * stratum_weights)


@dataclass(frozen=True)
class RowStrata(Strata):
    """The rows.

    Attributes
    ----------
    shares : (N,)
        1 / N.
    features : (N, p), or (N, r)
        Of rows that span r directions at most, coordinates along these, in any basis.
    feature_count : int
        p.
    """

    shares: Array
    features: Array
    feature_count: int

    @property
    def width(self) -> int:
        return self.feature_count

    @property
    def coordinates(self) -> int:
        return int(self.features.shape[1])

    def mix(self, weights: Array) -> Any:
        if (weights < 0).any():
            return (self.features.T * weights) @ self.features
        weighted_rows = self.features * np.sqrt(weights)[:, None]
        return weighted_rows.T @ weighted_rows  # symmetric, of which half is computed

    def trace(self, matrix: Any) -> Array:
        half_X = matrix - np.diag(np.diagonal(matrix) / 2)  # of which the upper triangle is read
        row_products = dtrmm(2.0, half_X, self.features.T).T
        return np.asarray(np.vecdot(row_products, self.features)) / self.width

    def along(self, x: Any) -> tuple[Array, Array, Array]:
        row_outputs = x @ self.features.T
        return row_outputs, np.zeros_like(row_outputs), np.zeros_like(row_outputs)

    def mix_vectors(self, of_means: Array, of_labels: Array) -> Any:
        return of_means @ self.features

    def positive(self, x: Array) -> Array:
        """Variances or responses x, bounded above 0 for rows whose features all vanish: their exact
        value is 0, without rounding."""
        return np.maximum(x, 1e-300)


class RowEquations(StrataEquations):
    """The saddle point of n rows of N, whose variances are those given the rows."""

    strata: RowStrata

    def variances(self, G: Any, slope: Array, V: Array) -> Variances:
        f, share, strata = self.drawn, self.left(slope, V), self.strata
        R_diagonal = V / share  # R_ii
        once = f * (1 - f)
        g, R_squares, N = once * slope**2, None, len(V)
        # up to 4 rows a feature R itself takes less time than its products; 5000 rows take 400 MB
        if self.labels.outputs > 1 or min(4 * strata.width, 5000) >= N:
            scaled_rows = strata.features / share[:, None]
            R_squares = scaled_rows @ (G / strata.width) @ scaled_rows.T  # R
            R_squares *= R_squares
            R_fourth = np.einsum("ij,ij,j->i", R_squares, R_squares, g) - R_diagonal**4 * g
        else:
            R_fourth = self._fourth_powers(G, share, g, R_diagonal)

        def varied(mean: Array, score_square: Array, part: Array) -> Varied:
            def averaged(x: Array) -> Array:
                return x.reshape(len(score_square), -1, N).mean(axis=1)

            # Eq. (22.3): a row has nothing of itself
            z = f * score_square - averaged((f * mean) ** 2) - (f * slope) ** 2 * part
            row_covariance = cache(partial(self.covariance, G, z[0] / (f * share**2)))
            spread = (
                strata.trace(row_covariance()) / share**2 if R_squares is None else z @ R_squares
            )
            # Eq. (22.5), for n rows and not n on average
            asked = strata.mix_vectors(mean / share, mean) @ G
            u = averaged((strata.along(asked)[0] / (strata.width * share) - R_diagonal * mean) ** 2)
            # Eq. (22.7): what a row makes of v_j is not in what row j makes of it
            rest = spread - R_diagonal**2 * z - once * strata.shares * u - R_fourth * (z - g * part)
            v_of_T = strata.positive(rest / (1 + R_fourth * g))
            # of several labels it is not asked for
            T_of_rows = (
                row_covariance if self.labels.outputs == 1 else partial(np.multiply, np.nan, G)
            )
            return T_of_rows, v_of_T, v_of_T @ strata.shares

        return varied

    def _second(self, df_1: float, df_2: float, *response_slope_V: Any) -> tuple[float, float]:
        return np.nan, df_1

    def _fourth_powers(self, G: Any, kept_residual: Array, g: Array, R_diagonal: Array) -> Array:
        """Sums over all other rows j of R_ij^4 g_j, (N,); of very many rows they are estimated from
        a random part of the j."""
        features: Any = self.strata.features / kept_residual[:, None]
        rows_times_G, (N, p) = features @ (G / self.strata.width), features.shape
        if N > 1000:  # each is a small part of a variance: single precision is enough
            features, rows_times_G, g = (x.astype(np.float32) for x in (features, rows_times_G, g))
        step = int(np.ceil(N**2 * p / 2.5e9))  # beyond as many products, from some rows
        sampled_rows = np.random.default_rng(0).permutation(N)[::step] if step > 1 else slice(None)
        other_rows, row_block = features[sampled_rows], max(1, CACHE_NUMBERS * step // N)
        power_sums = np.zeros(N)
        for first_row in range(0, N, row_block):
            check_time()
            row_slice = slice(first_row, first_row + row_block)
            row_response = rows_times_G[row_slice] @ other_rows.T
            row_response *= row_response
            row_response *= row_response
            power_sums[row_slice] = row_response @ g[sampled_rows]
        power_sums[sampled_rows] -= R_diagonal[sampled_rows] ** 4 * g[sampled_rows]
        return power_sums * step
