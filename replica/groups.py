"""The bulk of several groups of neurons.  THEORY 4.

Rows of group b are isotropic with variance c_b, and the groups share the inputs: their
responses couple through the A x A matrix G of (4.3).  Given the conjugates, (4.3)-(4.4) are
A equations for V2, solved by Newton; V1 and the linear response follow.
"""

import numpy as np
from numpy.typing import NDArray

from solvers.newton import newton
from solvers.results import Array

from .bulk import Bulk


class Groups(Bulk):
    """Any number of groups."""

    def overlaps(self, V_hat: Array, lam: Array) -> Array:
        """Eqs. (4.3)-(4.4)."""
        V1_hat, V2_hat = self.unpack(V_hat)
        level = lam[:, None] + V2_hat  # Lambda_b
        c, pi = self.table.c, self.table.fractions

        def system(V2: Array, rows: NDArray[np.int64]) -> tuple[Array, Array]:
            tau = self.beta * c * V2
            G = self._coupling(V1_hat[rows], tau)[0]
            total = level[rows] + c * np.diagonal(G, axis1=1, axis2=2)
            # d G_bb / d tau_a = -G_ab^2
            jacobian = -(c / total)[..., None] * G**2 * tau[:, None, :]
            jacobian[:, range(self.groups), range(self.groups)] += 1
            return np.log(V2 * total / pi), jacobian

        smallest = pi / (level + c * np.diagonal(V1_hat, axis1=1, axis2=2))
        # what is not a number stays so, without keeping the other points from their answer
        lost = ~np.all(np.isfinite(smallest) & (smallest > 0), axis=1)
        smallest[lost], level[lost], V1_hat[lost] = 1.0, 1.0, 0.0
        V2 = newton(system, smallest, tol=1e-14).value
        V2[lost] = np.nan
        tau = self.beta * c * V2
        _, P = self._coupling(V1_hat, tau)
        return self.pack(tau[..., None] * P / self.beta, V2)

    def response(self, V_hat: Array, lam: Array, X: Array) -> Array:
        """Eq. (4.10)."""
        V = self.overlaps(V_hat, lam)
        return self._response(V, V_hat, X[:, None])[:, 0]

    def balance(self, V: Array, alpha: Array, lam: Array) -> tuple[Array, Array]:
        """log V - log of its image under (4.2)-(4.4), or their difference where signed.

        NaN, which Newton steps back from, where a trial V1 is not positive semidefinite.
        """
        lost = np.any(self.resistance(V) <= 0, axis=1) | np.any(np.abs(V) > 1e150, axis=1)
        V = np.where(lost[:, None], np.where(self.signed, 0.0, 1.0), V)
        V_hat = self.conjugates(V, alpha)
        image = self.overlaps(V_hat, lam)
        before, after = self.size(V), self.size(image)
        residual = np.where(self.signed, V / before - image / after, np.log(before / after))
        residual[lost] = np.nan
        # From d image / d V to the coordinates log V and, where signed, V / size.
        slope = self._slope(image, V, V_hat, alpha)
        slope *= before[:, None, :] / after[..., None]
        for ab in np.flatnonzero(self.signed):
            aa, bb = (self.diagonal[group[ab]] for group in self.upper)
            slope[:, ab] -= (image / after)[:, ab, None] / 2 * (slope[:, aa] + slope[:, bb])
        for ab in np.flatnonzero(self.signed):
            half = (V / before)[:, ab, None] / 2 * slope[:, :, ab]
            for group in self.upper:
                slope[:, :, self.diagonal[group[ab]]] += half
        return residual, np.eye(V.shape[1]) - slope

    def respond(self, V: Array, alpha: Array, lam: Array, X: Array) -> Array:
        """Q = R (X + K Q): (1 - R K) Q = R X with the two responses R and K."""
        V_hat = self.conjugates(V, alpha)
        size = self.size(V)
        slope = self._slope(V, V, V_hat, alpha) * (size[:, None, :] / size[..., None])
        matrix = np.eye(V.shape[1]) - slope
        source = self._response(V, V_hat, X[:, None])[:, 0] / size
        return size * np.linalg.solve(matrix, source[..., None])[..., 0]

    def _slope(self, image: Array, V: Array, V_hat: Array, alpha: Array) -> Array:
        """R K, the derivative of (4.2)-(4.4) as a map of V, (P, D, D): K = -d Vh / d V at V,
        R = -d image / d Vh."""
        W = self.resistance(V, self.workspace(len(V)))
        W *= W
        W *= alpha[:, None] / self.beta * self.table.weights
        # row j of K: the change of all Vh under that of V_j
        K = (self.moments * W[:, None]) @ self.products.T
        return self._response(image, V_hat, K).transpose(0, 2, 1)

    def _coupling(self, V1_hat: Array, tau: Array) -> tuple[Array, Array]:
        """G = Vh1 (1 + tau Vh1)^-1 and (1 + Vh1 tau)^-1, (P, A, A) each.  Eq. (4.3)"""
        P = np.linalg.inv(np.eye(self.groups) + V1_hat * tau[:, None, :])
        return P @ V1_hat, P

    def _response(self, V: Array, V_hat: Array, X: Array) -> Array:
        """Eq. (4.10) for several sources X (P, S, D) at each point."""
        shape = X.shape
        V1, V2 = self.unpack(V)
        V1_hat, _ = self.unpack(V_hat)
        X1, X2 = self.unpack(X.reshape(-1, shape[-1]))
        X1 = X1.reshape(*shape[:2], self.groups, self.groups)
        X2 = X2.reshape(*shape[:2], self.groups)
        c, pi, beta = self.table.c, self.table.fractions, self.beta
        tau = beta * c * V2
        G, P = self._coupling(V1_hat, tau)
        P, V1 = P[:, None], V1[:, None]
        D = ((P @ X1) * P).sum(axis=-1)
        inner = np.eye(self.groups) - (V2**2 * c / pi)[..., None] * G**2 * (beta * c)
        source = (V2**2 / pi)[:, None] * (X2 + c * D)
        q2 = np.linalg.solve(inner, source.transpose(0, 2, 1)).transpose(0, 2, 1)
        middle = X1
        diagonal = range(self.groups)
        middle[..., diagonal, diagonal] += beta * c * q2 / tau[:, None] ** 2
        Q1 = beta * V1 @ middle @ V1
        flat = self.pack(Q1.reshape(-1, self.groups, self.groups), q2.reshape(-1, self.groups))
        return flat.reshape(shape)
