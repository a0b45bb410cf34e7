"""The row covariance that one gradient step leaves in the bulk of the weights.  docs/theory.md 15.

For an odd student and equal first-step readout, given the first batch (X0, y), the rows of
W minus their common spike are independent with covariance C/d,

    C = I + b B,  B = (1/n0) sum_mu y_mu^2 x_mu x_mu^T,  b = eta^2 h_check / alpha0,      (15.1)

which is correlated with the spike u and the target direction.  The sphere the rows start
from also makes their squared norms c_i fluctuate, by O(1/sqrt d): a neuron's norm changes its
mean feature by (d mu_0 / d c) delta_i, as its component along u changes it by kappa mu_1.  To
leading order, with s_mu = w_i . x_mu and sigma~ = sigma' - h_1,

    delta_i = (2 eta / n0) sum_mu y_mu s_mu sigma~(s_mu)
            + (eta / n0)^2 sum_mu,nu y_mu y_nu sigma~(s_mu) sigma~(s_nu) x_mu . x_nu - mean,

so that delta has with the rows the covariance k/d and with itself v/d, where

    k = (1/n0) sum_mu f(y_mu) x_mu,  f(y) = 2 eta h_3 y + eta^3 E[sigma~^3] y^3 / alpha0^2,
    v = 4 eta^2 (h_3^2 N^2 + E[y^2] (E[s^2 sigma~^2] - h_3^2) / alpha0)
      + eta^4 (E[y^4] Var[sigma~^2] / alpha0^3 + 2 (h_check E[y^2] / alpha0)^2).

The rest of the theory needs R = (I + q C)^-1 on w_*, u and k.  Written in x, where
x C_e = q C_e / (1 + q C_e) is the share of the bulk that is resolved, everything is explicit:

    D = 1 + (b/alpha0) x y^2,  C_e = 1 + b E[y^2/D],  p = 1 - x C_e,  q = x/p,
    tr R / d = p,  R_** = p / (1 + b x E[y^2 (s^2 - 1)/D]),

kappa_t, T of (15.2)-(15.3) being kappa_t = p + x and T = (1 + q) R at t = q b / (1 + q).
"""

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from solvers.results import Array

NEWTON = 60  # steps at most; a handful are usual


class FirstBatch(NamedTuple):
    """y (N,), 0 or more, and weights (3, N): of E[f(y)] and E[f(y) s^2] for even f, and between
    them of E[f(y) s] for odd f."""

    y: Array
    weights: Array


class Resolvent(NamedTuple):
    """What the equations need of R = (I + q C)^-1 at P points: on the vectors w_*, the noise
    in g = (1/n0) sum y x (both of length 1), and k; matrices are (P, 3, 3).

    q : (P,)
    R : R itself
    R2 : R^2
    CR : C R
    CR2 : C R^2
    CCR2 : C^2 R^2
    """

    q: Array
    R: Array
    R2: Array
    CR: Array
    CR2: Array
    CCR2: Array


@dataclass(frozen=True, eq=False)
class RowCovariance:
    """Eq. (15.1), and the fluctuation of the row norms.

    Attributes
    ----------
    batch : FirstBatch
        Law of the labels y with the projection s on the target direction.
    b : float
        Strength of B.
    alpha0 : float
    gamma : float
        Cosine of u with w_*.
    k : (2,)
        k = (k[0] (1/n0) sum y x + k[1] (1/n0) sum y^3 x) in the notation above.
    v_odd, v_even : float
        d times the variance of the row norms: of the parts odd and even in the row.
    """

    batch: FirstBatch
    b: float
    alpha0: float
    gamma: float
    k: Array
    v_odd: float
    v_even: float

    @property
    def v(self) -> float:
        """d times the variance of the row norms."""
        return self.v_odd + self.v_even

    @cached_property
    def c(self) -> float:
        """tr C / d, the bulk variance of Eq. (2.3)."""
        return float(self.effective(np.zeros(1))[0][0, 0])

    @property
    def widest(self) -> float:
        """B has no eigenvalue above this."""
        return float(self.batch.y.max() ** 2) * (1 + self.alpha0**-0.5) ** 2

    @property
    def largest(self) -> float:
        """C has no eigenvalue above this."""
        return 1 + self.b * self.widest

    @property
    def strength(self) -> float:
        """b / alpha0."""
        return self.b / self.alpha0

    @property
    def basis(self) -> Array:
        """The rows u, k, zeta in terms of w_*, the noise in g, and k.  Eq. (15.4)"""
        rho = np.sqrt(max(0.0, 1 - self.gamma**2))
        return np.array([[self.gamma, rho, 0.0], [0.0, 0.0, 1.0], [rho, -self.gamma, 0.0]])

    def effective(self, x: Array) -> tuple[Array, Array]:
        """C_e and p = 1 - x C_e, and their derivatives in x: (2, P) each."""
        y2 = self.batch.y**2
        inverse = 1 / (1 + self.strength * x[:, None] * y2)
        power = self.batch.weights[0] * y2
        C = 1 + self.b * (inverse @ power)
        inverse *= inverse
        slope = -self.b * self.strength * (inverse @ (power * y2))
        return np.array([C, 1 - x * C]), np.array([slope, -(C + x * slope)])

    def at_ratio(self, ratio: Array) -> tuple[Array, Array]:
        """x and C_e (P,) with C_e p = ratio; NaN above its largest value c.

        The left side falls and is convex: Newton's steps from x = 0 rise to the root.
        """
        x = np.where(ratio <= self.c * (1 + 1e-12), 0.0, np.nan)
        for _ in range(NEWTON):
            (C, p), (dC, dp) = self.effective(x)
            step = (ratio - C * p) / (dC * p + C * dp)
            x = x + step
            # The error that a step leaves is quadratic in it: this one's is below rounding; near
            # x = 0, steps are a few times that of ratio / c^2.
            moving = np.abs(step) > np.maximum(1e-8 * np.abs(x), 1e-15 / self.c)
            if not moving.any():
                break
        x = np.where(moving, np.nan, x)
        return x, self.effective(x)[0][0]

    @cached_property
    def _averaged(self) -> tuple[Array, Array]:
        """What 1/D averages, as columns (N, 23): y^2, y^2 s^2, phi_i phi_j, phi_i phi_j y^2 and
        phi_i s y^2 for the parts phi of the three vectors that are sums over the samples; and the
        components (3,) of the vectors along w_*."""
        y, (w, ws, wss) = self.batch.y, self.batch.weights
        y2 = y**2
        f = self.k[0] * y + self.k[1] * y**3
        phi = np.stack([np.zeros_like(y), y / np.sqrt(w @ y2), f / np.sqrt(self.alpha0)])
        pairs = w * (phi[:, None] * phi).reshape(9, -1)
        blocks = [[w * y2], [wss * y2], pairs, pairs * y2, ws * phi * y2]
        return np.vstack(blocks).T, np.array([1.0, 0.0, ws @ f])

    def resolvent(self, x: Array, p: Array) -> Resolvent:
        """R and its relatives at x (P,) and p = 1 - x C_e, without further differences of
        nearly equal numbers."""
        b, a, P = self.b, self.strength, len(x)
        columns, A0 = self._averaged
        y2 = self.batch.y[:, None] ** 2
        inverse = 1 / (1 + a * x[:, None] * y2.T)
        E = inverse @ columns
        inverse *= inverse
        by_x = inverse @ columns  # d(x E)/dx, as d(x/D)/dx = 1/D^2
        E = np.stack([E, -a * (inverse @ (columns * y2))])  # and dE/dx

        # Below, functions of x with their derivatives: (2, P, 1, 1) or (2, P, 3, 3).
        def times(left: Array, right: Array) -> Array:
            return np.stack([left[0] * right[0], left[1] * right[0] + left[0] * right[1]])

        C, C_star = (b * E[..., i, None, None] for i in (0, 1))  # 1 + b E[y^2 {1, s^2}/D]
        C[0] += 1
        C_star[0] += 1
        star = 1 / (1 + b * x * (E[0, :, 1] - E[0, :, 0]))  # R_** / p
        star = np.stack([star, -(star**2) * b * (by_x[:, 1] - by_x[:, 0])])[..., None, None]
        pairs, weighted = E[..., 2:11].reshape(2, P, 3, 3), E[..., 11:20].reshape(2, P, 3, 3)
        # Components along w_*, seen through 1/D: A = A0 - x A1 of each vector.
        root = b / np.sqrt(self.alpha0)
        A1 = root * E[..., 20:, None]
        A = np.stack([A0 - x[:, None] * A1[0, ..., 0], -root * by_x[:, 20:]])[..., None]
        A_t, A1_t = A.swapaxes(-1, -2), A1.swapaxes(-1, -2)
        AA = times(star, times(A, A_t))
        # R = p rho, and C R = p S with S = (1 - R) / x.
        rho = pairs[0] + AA[0]
        x = x[:, None, None]
        by_x_rho = by_x[:, 2:11].reshape(P, 3, 3) + AA[0] + x * AA[1]  # d(x rho)/dx
        S = times(C, pairs) + a * weighted + A1 * A0 + times(A, A1_t) + times(C_star, AA)
        p = p[:, None, None]
        dp = -(C[0] + x * C[1])
        rate = p / (p - x * dp)
        return Resolvent(
            q=(x / p)[:, 0, 0],
            R=p * rho,
            R2=rate * p * by_x_rho,
            CR=p * S[0],
            CR2=rate * p * (S[0] + x * S[1]),
            CCR2=-rate * p * (dp * S[0] + p * S[1]),
        )
