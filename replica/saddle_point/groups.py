"""The responses of several groups of neurons.  docs/theory.md 4

The groups share the inputs, so that their responses couple.  Rows of group b have covariance
C_b/d.  With K = sqrt(tau) V1_hat sqrt(tau), tau_b = beta V2_b, and an effective covariance C
(A x A), (4.3)-(4.4) are

    W = (1 + K C)^-1,    S = C W,
    Lambda_b V2_b + (K S)_bb / beta = pi_b,    V1 = sqrt(tau) S sqrt(tau) / beta.      (17.2)

Of an sRF C is diag(c_b), and these are A equations for V2, given the conjugates.  With
T = diag(c_b tau_b), the diagonal matrix of (4.3), K C is sqrt(tau) (V1_hat T) / sqrt(tau), so that
(K S)_bb = (V1_hat T (1 + V1_hat T)^-1)_bb = G_bb T_bb, and V1 = T (1 + V1_hat T)^-1 / beta: (4.4).
(4.10) is the derivative of the same equations: ``_second_moments`` moves V1_hat and Lambda with
speeds X and solves for d log V2, of which Q1 = -dV1 and q2 = -dV2 follow.

Of a network, C is a function of n averages x over the first batch, which depend on K in turn:
``correlated`` adds n equations.  Newton's method solves all at once; the linear response is one
more linear system with the same matrix.
"""

import numpy as np

from solvers.fixed_point import fixed_point
from solvers.newton import newton
from solvers.results import Array, Rows

from .pencil import GroupResolvent, PencilEquations
from .responses import MANY, MEMORY, Responses


class Groups(Responses):
    """Any number of groups."""

    def image(self, V_hat: Array, lam: Array, near: Array | None = None) -> Array:
        """(x, V1, V2) from the conjugates: x and V2 by one Newton, from below unless there is a
        guess (x, V1, V2) or (V1, V2), then V1.  Eq. (17.2)"""
        V1_hat, V2_hat = self.unpack(V_hat)
        Lam, pi = lam[:, None] + V2_hat, self.table.fractions  # Lambda_b
        smallest = pi / (Lam + self.table.c * np.diagonal(V1_hat, axis1=1, axis2=2))
        # what is not a number stays so, without keeping the other points from their answer
        invalid = ~np.all(np.isfinite(smallest) & (smallest > 0), axis=1)
        smallest[invalid], Lam[invalid], V1_hat[invalid] = 1.0, 1.0, 0.0
        guess = smallest if near is None else self.unpack(self.from_analytic(near))[1]
        V2 = np.where(np.isfinite(guess) & (guess > 0), guess, smallest)
        x = None if near is None else self.averages_in(near)
        if x is None or not x.shape[1]:
            x = self.averages_at(self.scale(V2) * V1_hat)
        n = x.shape[1]
        invalid |= ~np.isfinite(x).all(axis=1)
        x = np.where(invalid[:, None], 0.0, x)

        def system(U: Array, rows: Rows) -> tuple[Array, Array]:
            V2, size = U[:, n:], self._size(U[:, :n])
            K, x = self.scale(V2) * V1_hat[rows], U[:, :n]
            if near is None:  # far away linear steps lead x out of its branch
                x = self.averages_at(K, x)
            at = self.resolvent(K, x)
            of, level = self.averages(at), V2 * Lam[rows]
            total = level + self._trace(at)
            with np.errstate(invalid="ignore"):  # where Newton may try, the total may be negative
                off = np.concatenate([of.rest / size, np.log(total / pi)], axis=1)
            slope = self._slope(at, of, level) / np.concatenate([size, total], axis=1)[..., None]
            slope[:, :, :n] *= size[:, None]
            return off, slope

        def size(U: Array) -> Array:
            return np.concatenate([self._size(U[:, :n]), U[:, n:]], axis=1)

        signed = np.arange(n + self.groups) < n
        start = np.concatenate([x, V2], axis=1)
        found = newton(system, start, size=size, signed=signed, tol=1e-14)
        x, V2 = found.value[:, :n], found.value[:, n:]
        scale = self.scale(V2)
        if near is None:
            x = self.averages_at(scale * V1_hat, x)
        V = self.pack(scale * self.resolvent(scale * V1_hat, x).S / self.beta, V2)
        U = np.concatenate([x, V], axis=1)
        U[invalid | ~(found.residual < 1e-10)] = np.nan  # more than rounding
        return U

    def second_moments_at(self, V_hat: Array, lam: Array, X: Array, near: Array) -> Array:
        """(Q1, q2) at fixed conjugates.  Eq. (4.10)"""
        U = self.image(V_hat, lam, near)
        return self.from_analytic(self._second_moments(U, V_hat, X[:, None])[:, 0])

    def log_residual(self, U: Array, alpha: Array, lam: Array) -> tuple[Array, Array]:
        """``analytic_residual`` at real U = (x, V).

        NaN, which Newton steps back from, where a trial V1 is not positive semidefinite.
        """
        x, V, n = self.averages_in(U), self.from_analytic(U), U.shape[1] - len(self.signed)
        invalid = np.any(self.shrinkage(V) <= 0, axis=1) | np.any(np.abs(V) > 1e150, axis=1)
        V = np.where(invalid[:, None], np.where(self.signed, 0.0, 1.0), V)
        U = np.concatenate([x, V], axis=1)
        residual, slope = self.analytic_residual(U, alpha, lam)
        residual[invalid] = np.nan
        by_log = slope * self.magnitude(U)[:, None]
        for ab in np.flatnonzero(self.signed):  # V / magnitude is held while that changes
            half = V[:, ab, None] / 2 * slope[:, :, n + ab]
            for group in self.upper:
                by_log[:, :, n + self.diagonal[group[ab]]] += half
        return residual, by_log

    def magnitude(self, V: Array) -> Array:
        """What errors of each unknown are compared with: of (x, V), of x 1 and its largest."""
        size = self._size(self.averages_in(V))
        return np.concatenate([size, super().magnitude(self.from_analytic(V))], axis=1)

    def _size(self, x: Array) -> Array:
        """Of the averages x (P, n), the same for all."""
        return np.broadcast_to(1 + np.abs(x).max(axis=1, keepdims=True, initial=0.0), x.shape)

    def to_analytic(self, V: Array, alpha: Array) -> Array:
        """(x, V)."""
        V1_hat = self.unpack(self.conjugates(V, alpha))[0]
        K = self.scale(self.unpack(V)[1]) * V1_hat
        return np.concatenate([self.averages_at(K), V], axis=1)

    def from_analytic(self, U: Array) -> Array:
        """V, the last of the coordinates."""
        return U[:, -len(self.signed) :]

    def averages_in(self, U: Array) -> Array:
        """x, the first of the coordinates: (P, 0) of isotropic rows, or of V alone."""
        return U[:, : -len(self.signed)]

    def analytic_residual(self, U: Array, alpha: Array, lam: Array) -> tuple[Array, Array]:
        """The equations for x; V1 against its image; and V2 Lambda + diag(V1_hat V1) = pi, which is
        (17.2) again.  U = (x, V), without the inner solve of ``image``."""
        x, V, groups = self.averages_in(U), self.from_analytic(U), self.groups
        n = x.shape[1]
        V_hat = self.conjugates(V, alpha)
        V1, V2 = self.unpack(V)
        V1_hat, V2_hat = self.unpack(V_hat)
        scale = self.scale(V2)
        at = self.resolvent(scale * V1_hat, x)
        of, pi = self.averages(at), self.table.fractions
        Lam = lam[:, None] + V2_hat
        trace = (V2 * Lam + np.einsum("pab,pba->pa", V1_hat, V1)) / pi - 1
        size = self.magnitude(V)[:, :-groups]
        off = (V1 - scale * at.S / self.beta)[:, *self.upper] / size
        # How the residual changes with each unknown j: V_hat by -K_j of ``_conjugate_slope``.
        unknowns = V.shape[1]
        dV1, dV2 = self.unpack(np.eye(unknowns))
        K1, K2 = self.unpack(self._conjugate_slope(V, alpha))
        scale = scale[:, None]
        dK = -scale * K1
        e = dV2 / V2[:, None]
        d_image = scale / self.beta * self._slope_of_S(at, dK, e)
        dK = dK + (e[..., :, None] + e[..., None, :]) / 2 * at.K[:, None]
        d_trace = dV2 * Lam[:, None] - V2[:, None] * K2
        d_trace += np.einsum("pab,jba->pja", V1_hat, dV1)
        d_trace -= np.einsum("pjab,pba->pja", K1, V1)
        slope = np.zeros((len(V), n + unknowns, n + unknowns), np.result_type(off, d_trace))
        slope[:, :n, :n] = of.by_x
        slope[:, :n, n:] = np.einsum("pnab,pjab->pnj", of.by_K, dK)
        by_x = (scale / self.beta * of.of_S)[:, :, *self.upper] / size[:, None]
        slope[:, n:-groups, :n] = -by_x.swapaxes(1, 2)
        by_V = (dV1 - d_image)[:, :, *self.upper] / size[:, None]
        slope[:, n:-groups, n:] = by_V.swapaxes(1, 2)
        slope[:, -groups:, n:] = (d_trace / pi).swapaxes(1, 2)
        return np.concatenate([of.rest, off, trace], axis=1), slope

    def second_moments(self, V: Array, alpha: Array, lam: Array, X: Array) -> Array:
        """Q = R (X + K Q): (1 - R K) Q = R X with the two responses R and K."""
        V_hat, U = self.conjugates(V, alpha), self.to_analytic(V, alpha)
        size, n = self.magnitude(V), U.shape[1] - V.shape[1]
        first = self._second_moments(U, V_hat, X[:, None])[:, 0, n:]
        if V.shape[1] > MANY:
            return self._answer(V, alpha, first)
        both = self._second_moments(U, V_hat, self._conjugate_slope(V, alpha))[..., n:]
        matrix = np.eye(V.shape[1]) - both.swapaxes(1, 2) * (size[:, None, :] / size[..., None])
        return size * np.linalg.solve(matrix, (first / size)[..., None])[..., 0]

    def distance(self, V: Array, alpha: Array, lam: Array) -> Array:
        """As of few groups by Newton's matrix; of many the same step without it."""
        if V.shape[1] <= MANY:
            return super().distance(V, alpha, lam)
        left = self.from_conjugates(self.conjugates(V, alpha), lam, V) - V
        return self._answer(V, alpha, left) / self.magnitude(V)

    def _answer(self, V: Array, alpha: Array, first: Array) -> Array:
        """Q = first + R K Q (P, D) about V, R and K being both responses: by Anderson's method."""
        V_hat, U, size = self.conjugates(V, alpha), self.to_analytic(V, alpha), self.magnitude(V)
        W = self.shrinkage(V) ** 2 * (alpha[:, None] / self.beta * self.table.weights)
        first = first / size

        def image(Q: Array, rows: Rows) -> Array:
            KQ = self.moments(self.at_nodes(size[rows] * Q) * W[rows])
            RKQ = self._second_moments(U[rows], V_hat[rows], KQ[:, None])[:, 0, -V.shape[1] :]
            return first[rows] + RKQ / size[rows]

        def largest(Q: Array) -> Array:
            return np.broadcast_to(np.abs(Q).max(axis=1, keepdims=True), Q.shape)

        past = np.zeros((len(V), 2 * MEMORY, 2, V.shape[1]))
        return size * fixed_point(image, first, size=largest, history=past).value

    def _conjugate_slope(self, V: Array, alpha: Array) -> Array:
        """K = -d V_hat / d V of (4.2), (P, D, D): row j holds how all V_hat change with V_j."""
        W = self.shrinkage(V) ** 2
        W = W * (alpha[:, None] / self.beta * self.table.weights)
        return np.asarray((self.coefficients * W[:, None]) @ self.products.T)

    def averages_at(self, K: Array, near: Array | None = None) -> Array:
        """The averages x (P, n) that real K implies, from a guess; of isotropic rows there are
        none."""
        return np.empty((len(K), 0))

    def effective(self, x: Array) -> tuple[Array, Array]:
        """C, and o (P, m, A) with dC = o^T dx o."""
        C = np.broadcast_to(np.diag(self.table.c), (len(x), self.groups, self.groups))
        return C, C

    def averages(self, at: GroupResolvent) -> PencilEquations:
        """The equations for x."""
        none = np.empty((len(at.x), 0, self.groups, self.groups))
        return PencilEquations(at.x, none[..., 0, :0], none, none)

    def scale(self, V2: Array) -> Array:
        """sqrt(tau_a tau_b), (P, A, A)."""
        return np.asarray(self.beta * geometric_means(V2))

    def resolvent(self, K: Array, x: Array | None = None) -> GroupResolvent:
        """What (17.2) is made of, for averages x or those that K implies."""
        x = self.averages_at(K) if x is None else x
        C, outer = self.effective(x)
        W = np.linalg.inv(np.eye(self.groups) + K @ C)
        N = W @ K
        return GroupResolvent(x, K, C, W, C @ W, (N + N.swapaxes(1, 2)) / 2, outer)

    def _trace(self, at: GroupResolvent) -> Array:
        """(K S)_bb / beta, (P, A)."""
        return np.diagonal(at.K @ at.S, axis1=1, axis2=2) / self.beta

    def _slope(self, at: GroupResolvent, of: PencilEquations, level: Array) -> Array:
        """Derivatives (P, n + A, n + A) in x and in log V2, where dK_ab = K_ab / 2 from either
        side, of what the equations for x lack and of V2 Lambda + (K S)_bb / beta; V2 Lambda is the
        ``level`` (P, A)."""
        by_x = np.einsum("pbc,pncb->pbn", at.K, of.of_S) / self.beta
        # d(K S) = W dK S + K dS
        by_V2 = (at.W * (at.K @ at.S).swapaxes(1, 2) + at.N * at.S) / (2 * self.beta)
        by_V2[:, range(self.groups), range(self.groups)] += level
        above = np.concatenate([of.by_x, np.einsum("pnab,pab->pna", of.by_K, at.K)], axis=2)
        return np.concatenate([above, np.concatenate([by_x, by_V2], axis=2)], axis=1)

    def _slope_of_S(self, at: GroupResolvent, dK: Array, e: Array) -> Array:
        """How sqrt(tau) S sqrt(tau), over sqrt(tau) on both sides, changes at fixed x with V1_hat,
        sqrt(tau) dV1_hat sqrt(tau) = ``dK`` (P, J, A, A), and with log V2, ``e`` (P, J, A)."""
        Ce = (e[..., :, None] + e[..., None, :]) / 2 * at.C[:, None]
        W, S = at.W[:, None], at.S[:, None]
        return W.swapaxes(-1, -2) @ Ce @ W - S @ dK @ S

    def _second_moments(self, U: Array, V_hat: Array, X: Array) -> Array:
        """Eq. (4.10) for several sources X (P, J, D) at each point (x, V); before (Q1, q2), what
        x loses by them, (P, J, n + D)."""
        V2, V1_hat = self.unpack(self.from_analytic(U))[1], self.unpack(V_hat)[0]
        X1, X2 = self.unpack(X)
        scale = self.scale(V2)
        at = self.resolvent(scale * V1_hat, self.averages_in(U))
        of = self.averages(at)
        matrix = self._slope(at, of, self.table.fractions - self._trace(at))
        dK = scale[:, None] * X1
        moved = np.einsum("pab,pjbc,pca->pja", at.W, dK, at.S)
        first = np.einsum("pnab,pjab->pnj", of.by_K, dK)
        second = (V2[:, None] * X2 + moved / self.beta).swapaxes(1, 2)
        change = np.linalg.solve(matrix, -np.concatenate([first, second], axis=1)).swapaxes(1, 2)
        dx, e = change[..., : at.x.shape[1]], change[..., at.x.shape[1] :]
        dS = self._slope_of_S(at, dK, e) + np.einsum("pjn,pnab->pjab", dx, of.of_S)
        Q1 = -scale[:, None] * dS / self.beta
        q2 = -V2[:, None] * e
        return np.concatenate([-dx, self.pack(Q1, q2)], axis=2)


def geometric_means(V2: Array) -> Array:
    """sqrt(V2_a V2_b), (P, A, A)."""
    root = np.sqrt(V2)
    if np.iscomplexobj(V2):  # Im V2 >= 0 up to rounding: continuous there, as sqrt is not
        root = np.where(V2.real < 0, 1j * np.sqrt(-V2), root)
    return np.asarray(root[:, :, None] * root[:, None])
