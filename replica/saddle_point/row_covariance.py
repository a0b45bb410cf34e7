"""The row covariance that one gradient step leaves in the bulk of the weights.  docs/theory.md 15.

For an odd student and uniform first-step readout, given the first batch (X0, y), the rows of
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
from numpy.typing import NDArray

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
        return float(self.effective(np.zeros(1))[0][0])

    @property
    def widest(self) -> float:
        """B has no eigenvalue above this."""
        return float(self.batch.y.max() ** 2) * (1 + self.alpha0**-0.5) ** 2

    @property
    def largest(self) -> float:
        """C has no eigenvalue above this."""
        return 1 + self.b * self.widest

    @property
    def basis(self) -> Array:
        """The rows u, k, zeta in terms of w_*, the noise in g, and k.  Eq. (15.4)"""
        rho = np.sqrt(max(0.0, 1 - self.gamma**2))
        return np.array([[self.gamma, rho, 0.0], [0.0, 0.0, 1.0], [rho, -self.gamma, 0.0]])

    def effective(self, x: Array) -> tuple[Array, Array]:
        """C_e (P,) and its derivative in x."""
        y2 = self.batch.y**2
        inverse = 1 / (1 + self.strength * x[:, None] * y2)
        w = self.batch.weights[0]
        value = 1 + self.b * (inverse @ (w * y2))
        inverse *= inverse
        return value, -self.b * self.strength * (inverse @ (w * y2**2))

    def at_share(self, share: Array) -> Array:
        """x (P,) with x C_e = share, in [0, 1).

        x C_e is concave and increasing: Newton's steps from x = share / c rise to the root.
        """
        x = share / self.c
        for _ in range(NEWTON):
            C, slope = self.effective(x)
            step = (share - x * C) / (C + x * slope)
            x = x + step
            moving = _moving(step, x)
            if not moving.any():
                break
        return np.where(moving, np.nan, x)

    def at_ratio(self, ratio: Array) -> tuple[Array, Array]:
        """x and C_e (P,) with C_e (1 - x C_e) = ratio; NaN above its largest value c.

        The left side falls and is convex: Newton's steps from x = 0 rise to the root.
        """
        x = np.where(ratio <= self.c * (1 + 1e-12), 0.0, np.nan)
        for _ in range(NEWTON):
            C, slope = self.effective(x)
            p = 1 - x * C
            step = (C * p - ratio) / (C * (C + x * slope) - slope * p)
            x = x + step
            moving = _moving(step, x)
            if not moving.any():
                break
        x = np.where(moving, np.nan, x)
        return x, self.effective(x)[0]

    @property
    def strength(self) -> float:
        """b / alpha0."""
        return self.b / self.alpha0

    @cached_property
    def _averaged(self) -> tuple[Array, Array]:
        """Columns (N, .) that 1/D and 1/D^2 average: y^2 {1, s^2}; then phi_a phi_b and
        phi_a phi_b y^2; then phi_a s y^2 and phi_a s y^4, for the sample parts phi of the
        noise in g and of k over sqrt(alpha0)."""
        y, (w, ws, wss) = self.batch.y, self.batch.weights
        y2 = y**2
        power = w @ y2
        root = np.sqrt(self.alpha0)
        phi = np.stack([y / np.sqrt(power), (self.k[0] * y + self.k[1] * y**3) / root])
        pairs = np.stack([phi[0] * phi[0], phi[0] * phi[1], phi[1] * phi[1]])
        first = [w * y2, wss * y2, w * pairs, w * pairs * y2, ws * phi * y2]
        second = [w * y2, wss * y2, w * y2**2, wss * y2**2, w * pairs, w * pairs * y2]
        second += [w * pairs * y2**2, ws * phi * y2, ws * phi * y2**2]
        return np.vstack(first).T, np.vstack(second).T

    def resolvent(self, x: Array, p: Array) -> Resolvent:
        """R and its relatives at x (P,) and p = 1 - x C_e, without further differences of
        nearly equal numbers."""
        b, a = self.b, self.strength
        first, second = self._averaged
        inverse = 1 / (1 + a * x[:, None] * self.batch.y**2)
        E = (inverse @ first).T
        inverse *= inverse
        E2 = (inverse @ second).T
        C, dC = 1 + b * E[0], -b * a * E2[2]
        dp = -(C + x * dC)
        rate = p / (p - x * dp)

        def square(pairs: Array) -> Array:
            """Pairs of sample parts (3, P) as matrices (P, 3, 3): w_* has none."""
            matrix = np.zeros((x.size, 3, 3))
            matrix[:, 1, 1], matrix[:, 2, 2] = pairs[0], pairs[2]
            matrix[:, 1, 2] = matrix[:, 2, 1] = pairs[1]
            return matrix

        def column(values: Array) -> Array:
            return np.concatenate([np.zeros((x.size, 1)), values.T], axis=1)

        def scale(values: Array) -> Array:
            return values[:, None, None]

        def outer(left: Array, right: Array) -> Array:
            return left[:, :, None] * right[:, None, :]

        # Components along w_*: A = A0 - x A1 of each vector, seen through 1/D.
        y, (_, ws, _) = self.batch.y, self.batch.weights
        A0 = np.array([1.0, 0.0, ws @ (self.k[0] * y + self.k[1] * y**3)])
        root = b / np.sqrt(self.alpha0)
        A1, dA1 = column(root * E[8:10]), column(-root * a * E2[15:17])
        A, dA = A0 - x[:, None] * A1, column(-root * E2[13:15])
        star, dstar = self._star(x, E, E2)
        # R = p rho, and C R = p S with S = (1 - R) / x.
        drho = square(E2[4:7]) + outer(A, A) * scale(star)
        drho += scale(x) * (scale(star) * (outer(A, dA) + outer(dA, A)))
        drho += scale(x * dstar) * outer(A, A)  # d (x rho) / dx
        rho = square(E[2:5]) + outer(A, A) * scale(star)
        along = (1 + b * E[1]) * star
        dalong = -b * a * E2[3] * star + (1 + b * E[1]) * dstar
        S = scale(C) * square(E[2:5]) + a * square(E[5:8])
        S += outer(A1, A0[None]) + outer(A, A1) + outer(A, A) * scale(along)
        dS = scale(dC) * square(E[2:5]) - a * scale(C) * square(E2[7:10])
        dS -= a**2 * square(E2[10:13])
        dS += outer(dA1, A0[None]) + outer(dA, A1) + outer(A, dA1)
        dS += scale(along) * (outer(dA, A) + outer(A, dA)) + scale(dalong) * outer(A, A)
        dxS = S + scale(x) * dS
        return Resolvent(
            q=x / p,
            R=scale(p) * rho,
            R2=scale(rate * p) * drho,
            CR=scale(p) * S,
            CR2=scale(rate * p) * dxS,
            CCR2=-scale(rate * p) * (scale(dp) * S + scale(p) * dS),
        )

    def _star(self, x: Array, E: Array, E2: Array) -> tuple[Array, Array]:
        """R_** / p = 1 / (1 + b x E[y^2 (s^2 - 1)/D]) and its derivative in x."""
        value = 1 / (1 + self.b * x * (E[1] - E[0]))
        return value, -(value**2) * self.b * (E2[1] - E2[0])


def _moving(step: Array, x: Array) -> NDArray[np.bool_]:
    """Whether Newton's last step leaves an error, quadratic in it, above rounding."""
    return np.abs(step) > np.maximum(1e-8 * np.abs(x), 1e-16)
