"""The saddle point at complex penalty: the resolvent of the features.
docs/theory.md 9, [C] App. F.

With lam = -(alpha/beta) z, (4.1)-(4.4) give the Stieltjes transform of Phi^T Phi / n at z,

    s(z) = (1/p) tr (Phi^T Phi / n - z)^-1 = (alpha/beta) sum_b V_2^b.            (9.1)

Of the many complex roots the right one is that of positive V at z < 0, where ``Responses.solve``
finds it, continued along an arc |z| = const through the upper half-plane: there s and every
V_2^b have a positive imaginary part, and down to the axis itself nothing singular happens but at
the edges of the spectrum.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from solvers.continuation import follow_root, newton_complex
from solvers.resources import check_time
from solvers.results import Array

from ..saddle_point import RESPONSE_TOLERANCE, Responses

AT_ONCE = 2**19  # derivatives, or averages over a batch, of several points


@dataclass(frozen=True, eq=False)
class Resolvent:
    """Solutions of one model at one alpha, in the coordinates U (P, D) of
    ``Responses.to_analytic``.

    Attributes
    ----------
    real : Responses
        On real kappa: for z < 0 and the signs of 1 + V.
    responses : Responses
        The same features where z is off the negative axis: on a contour where there is one.
    alpha : float
    """

    real: Responses
    responses: Responses
    alpha: float

    @property
    def ratio(self) -> float:
        """alpha / beta = n / p."""
        return self.alpha / self.real.beta

    def transform(self, U: Array) -> Array:
        """s (P,); the last coordinates are V_2.  Eq. (9.1)"""
        return np.asarray(self.ratio * U[:, -self.responses.groups :].sum(axis=1))

    def residual(self, U: Array, z: Array) -> tuple[Array, Array]:
        """Residuals (P, D) of (4.1)-(4.4) at z (P,), and their derivatives (P, D, D) in U.  Raises
        ``GivenUp`` past the deadline."""
        check_time()
        return self.responses.analytic_residual(U, np.full(len(z), self.alpha), -self.ratio * z)

    def admissible(self, U: Array) -> NDArray[np.bool_]:
        """Whether Im V_2 >= 0 in every group, up to rounding: a Stieltjes transform is a Herglotz
        function, whose imaginary part has the sign of that of z."""
        second = U[:, -self.responses.groups :]
        return np.asarray((second.imag >= -1e-9 * np.abs(second)).all(axis=1))

    def solve(self, z: Array) -> Array:
        """U (P, D) at z (P,) with Im z >= 0, z != 0; NaN where it is not found."""
        radius, angle = np.abs(z), np.angle(z)
        alpha = np.full(len(z), self.alpha)
        first = self.real.solve(alpha, self.ratio * radius, RESPONSE_TOLERANCE).value

        def path(t: Array, rows: NDArray[np.int64]) -> Array:
            """z on the arc, from the negative axis at t = 0 to the end at t = 1."""
            turned = radius[rows] * np.exp(1j * (np.pi + t * (angle[rows] - np.pi)))
            return np.where(t >= 1, z[rows], turned)

        return follow_root(
            self.residual,
            self.real.analytic.to_analytic(first, alpha).astype(complex),
            path,
            self.admissible,
            size=self.responses.magnitude,
        )

    def at(self, z: Array, start: Array | None = None) -> Array:
        """U (P, D) at z with Im z >= 0, from guesses where they serve; NaN where none is found.

        In blocks: matrices of derivatives, and what they are made of, take up to some 100 MB.
        """
        rows = self.responses.table.covariance
        nodes = 0 if rows is None else max(batch.t11.shape[1] for batch in rows.batches)
        most = max(1, AT_ONCE // max(len(self.real.signed) ** 2, nodes))
        if len(z) > most:
            blocks = np.split(np.arange(len(z)), range(most, len(z), most))
            starts = [None if start is None else start[block] for block in blocks]
            return np.concatenate([self.at(z[b], U) for b, U in zip(blocks, starts, strict=True)])
        if start is None:
            return self.solve(z)
        size = self.responses.magnitude
        value, settled, _ = newton_complex(
            lambda U, rows: self.residual(U, z[rows]), start, reach=0.3, size=size
        )
        settled &= np.isfinite(value).all(axis=1) & self.admissible(value)
        if not settled.all():
            value[~settled] = self.solve(z[~settled])
        return value

    def one_sign(self, U: Array) -> NDArray[np.bool_]:
        """Whether 1 + V(kappa) has one sign over all kappa, for real U (P, D).

        Outside the spectrum it has: where it changes sign, a sample of that kappa makes an
        eigenvalue of its own.
        """
        total = 1 + self.responses.from_analytic(U).real @ self.real.coefficients
        return np.asarray((total > 0).all(axis=1) | (total < 0).all(axis=1))

    def winding(self, U: Array) -> Array:
        """Zeros of 1 + V between the real line and the contour, (P,): none, or the contour is
        of no use at this z."""
        turns, V = [], self.responses.from_analytic(U)
        for responses in (self.real, self.responses):
            angle = np.unwrap(np.angle(1 + V @ responses.coefficients), axis=1)
            turns.append((angle[:, -1] - angle[:, 0]) / (2 * np.pi))
        return np.asarray(np.abs(turns[0] - turns[1]))
