"""Responses of several groups of neurons.  docs/theory.md 4

The groups have the same inputs, so that their responses are coupled.  Rows of group b have
covariance C_b/d.  With K = sqrt(tau) V1_hat sqrt(tau), tau_b = beta V2_b, and an effective
covariance C (A x A), (4.3)-(4.4) are

    W = (1 + K C)^-1,    S = C W,
    Lambda_b V2_b + (K S)_bb / beta = pi_b,    V1 = sqrt(tau) S sqrt(tau) / beta.      (17.2)

For an sRF C is diag(c_b), and these are A equations for V2, given the conjugates.  With
T = diag(c_b tau_b), the diagonal matrix of (4.3), K C is sqrt(tau) (V1_hat T) / sqrt(tau), so that
(K S)_bb = (V1_hat T (1 + V1_hat T)^-1)_bb = G_bb T_bb, and V1 = T (1 + V1_hat T)^-1 / beta: (4.4).
(4.10) is the derivative of these equations: ``_second_moments`` changes V1_hat and Lambda along X
and solves for d log V2, from which Q1 = -dV1 and q2 = -dV2 follow.

For a network C is a function of n averages x over the batches, which depend on K in turn:
``correlated`` adds n equations.  Newton's method solves all of them together.  The linear response
is one more linear system with the same matrix.
"""

import numpy as np

from solvers.fixed_point import COMBINED, fixed_point
from solvers.newton import newton
from solvers.results import Array, Indices

from .linear_pencil import GroupResolvent, PencilEquations
from .responses import LARGEST_MATRIX, Responses


class Groups(Responses):
    """Responses of any number of groups with isotropic rows."""

    def image(self, V_hat: Array, lam: Array, guess: Array | None = None) -> Array:
        """Coordinates (x, V1, V2) from the conjugates.  Eq. (17.2)

        Newton's method solves for x and V2 together, from below unless there is a guess (x, V1, V2)
        or (V1, V2).  V1 follows from them.
        """
        V1_hat, V2_hat = self.unpack(V_hat)
        Lam, pi = lam[:, None] + V2_hat, self.table.fractions  # Lambda_b
        smallest = pi / (Lam + self.table.c * np.diagonal(V1_hat, axis1=1, axis2=2))
        # points with NaN are replaced by valid numbers here, and set to NaN at the end
        invalid = ~np.all(np.isfinite(smallest) & (smallest > 0), axis=1)
        smallest[invalid], Lam[invalid], V1_hat[invalid] = 1.0, 1.0, 0.0
        V2_guess = smallest if guess is None else self.unpack(self.from_analytic(guess))[1]
        V2 = np.where(np.isfinite(V2_guess) & (V2_guess > 0), V2_guess, smallest)
        x = None if guess is None else self.averages_in(guess)
        if x is None or not x.shape[1]:
            x = self.averages_at(self.scale(V2) * V1_hat)
        n = x.shape[1]
        invalid |= ~np.isfinite(x).all(axis=1)
        x = np.where(invalid[:, None], 0.0, x)

        def system(U: Array, rows: Indices) -> tuple[Array, Array]:
            V2, size = U[:, n:], self._scale_of_x(U[:, :n])
            K, x = self.scale(V2) * V1_hat[rows], U[:, :n]
            if guess is None:  # far from the solution, linear steps would leave the branch of x
                x = self.averages_at(K, x)
            res = self.resolvent(K, x)
            eqs, level = self.pencil_equations(res), V2 * Lam[rows]
            total = level + self._traces(res)
            with np.errstate(invalid="ignore"):  # the total may be negative at a trial point
                residual = np.concatenate([eqs.residual / size, np.log(total / pi)], axis=1)
            slope = self._newton_matrix(res, eqs, level)
            slope /= np.concatenate([size, total], axis=1)[..., None]
            slope[:, :, :n] *= size[:, None]
            return residual, slope

        def size(U: Array) -> Array:
            return np.concatenate([self._scale_of_x(U[:, :n]), U[:, n:]], axis=1)

        signed = np.arange(n + self.groups) < n
        start = np.concatenate([x, V2], axis=1)
        found = newton(system, start, size=size, signed=signed, tol=1e-14)
        x, V2 = found.value[:, :n], found.value[:, n:]
        scale = self.scale(V2)
        if guess is None:
            x = self.averages_at(scale * V1_hat, x)
        V = self.pack(scale * self.resolvent(scale * V1_hat, x).S / self.beta, V2)
        U = np.concatenate([x, V], axis=1)
        U[invalid | ~(found.residual < 1e-10)] = np.nan  # a residual above rounding
        return U

    def second_moments_at(self, V_hat: Array, lam: Array, X: Array, guess: Array) -> Array:
        """Second moments (Q1, q2) at fixed conjugates.  Eq. (4.10)"""
        U = self.image(V_hat, lam, guess)
        return self.from_analytic(self._second_moments(U, V_hat, X[:, None])[:, 0])

    def log_residual(self, U: Array, alpha: Array, lam: Array) -> tuple[Array, Array]:
        """Residuals of ``analytic_residual`` at real U = (x, V), with derivatives in logarithms.

        They are NaN where a trial V1 is not positive semidefinite, so that Newton steps back.
        """
        x, V, n = self.averages_in(U), self.from_analytic(U), U.shape[1] - len(self.signed)
        invalid = np.any(self.shrinkage(V) <= 0, axis=1) | np.any(np.abs(V) > 1e150, axis=1)
        V = np.where(invalid[:, None], np.where(self.signed, 0.0, 1.0), V)
        U = np.concatenate([x, V], axis=1)
        residual, slope = self.analytic_residual(U, alpha, lam)
        residual[invalid] = np.nan
        by_log = slope * self.magnitude(U)[:, None]
        for ab in np.flatnonzero(self.signed):  # V / magnitude is kept constant
            half_slope = V[:, ab, None] / 2 * slope[:, :, n + ab]
            for group in self.upper:
                by_log[:, :, n + self.diagonal[group[ab]]] += half_slope
        return residual, by_log

    def magnitude(self, V: Array) -> Array:
        """Scale of the error of each unknown in (x, V); for x it is 1 plus its largest modulus."""
        size = self._scale_of_x(self.averages_in(V))
        return np.concatenate([size, super().magnitude(self.from_analytic(V))], axis=1)

    def _scale_of_x(self, x: Array) -> Array:
        """Scale of the averages x (P, n), the same for all of them."""
        return np.broadcast_to(1 + np.abs(x).max(axis=1, keepdims=True, initial=0.0), x.shape)

    def to_analytic(self, V: Array, alpha: Array) -> Array:
        """Coordinates (x, V), with the averages x that V implies."""
        V1_hat = self.unpack(self.conjugates(V, alpha))[0]
        K = self.scale(self.unpack(V)[1]) * V1_hat
        return np.concatenate([self.averages_at(K), V], axis=1)

    def from_analytic(self, U: Array) -> Array:
        """Packed V, the last of the coordinates U = (x, V)."""
        return U[:, -len(self.signed) :]

    def averages_in(self, U: Array) -> Array:
        """Averages x, the first of the coordinates U = (x, V); (P, 0) for isotropic rows or U =
        V."""
        return U[:, : -len(self.signed)]

    def analytic_residual(self, U: Array, alpha: Array, lam: Array) -> tuple[Array, Array]:
        """Residuals at U = (x, V), and their derivatives: the equations for x, V1 against its image
        by (17.2), and V2 Lambda + diag(V1_hat V1) = pi.  No inner solve, unlike ``image``."""
        x, V, groups = self.averages_in(U), self.from_analytic(U), self.groups
        n = x.shape[1]
        V_hat = self.conjugates(V, alpha)
        V1, V2 = self.unpack(V)
        V1_hat, V2_hat = self.unpack(V_hat)
        scale = self.scale(V2)
        res = self.resolvent(scale * V1_hat, x)
        eqs, pi = self.pencil_equations(res), self.table.fractions
        Lam = lam[:, None] + V2_hat
        trace_residual = (V2 * Lam + np.einsum("pab,pba->pa", V1_hat, V1)) / pi - 1
        size = self.magnitude(V)[:, :-groups]
        V1_residual = (V1 - scale * res.S / self.beta)[:, *self.upper] / size
        # derivatives of the residuals in each unknown j, with dV_hat = -K_j of ``_conjugate_slope``
        unknowns = V.shape[1]
        dV1, dV2 = self.unpack(np.eye(unknowns))
        K1, K2 = self.unpack(self._conjugate_slope(V, alpha))
        scale = scale[:, None]
        dK = -scale * K1
        e = dV2 / V2[:, None]
        d_image = scale / self.beta * self._change_of_S(res, dK, e)
        dK = dK + (e[..., :, None] + e[..., None, :]) / 2 * res.K[:, None]
        d_trace = dV2 * Lam[:, None] - V2[:, None] * K2
        d_trace += np.einsum("pab,jba->pja", V1_hat, dV1)
        d_trace -= np.einsum("pjab,pba->pja", K1, V1)
        slope = np.zeros((len(V), n + unknowns, n + unknowns), np.result_type(V1_residual, d_trace))
        slope[:, :n, :n] = eqs.by_x
        slope[:, :n, n:] = np.einsum("pnab,pjab->pnj", eqs.by_K, dK)
        by_x = (scale / self.beta * eqs.S_by_x)[:, :, *self.upper] / size[:, None]
        slope[:, n:-groups, :n] = -by_x.swapaxes(1, 2)
        by_V = (dV1 - d_image)[:, :, *self.upper] / size[:, None]
        slope[:, n:-groups, n:] = by_V.swapaxes(1, 2)
        slope[:, -groups:, n:] = (d_trace / pi).swapaxes(1, 2)
        return np.concatenate([eqs.residual, V1_residual, trace_residual], axis=1), slope

    def second_moments(self, V: Array, alpha: Array, lam: Array, X: Array) -> Array:
        """Second moments Q = R (X + K Q), by (1 - R K) Q = R X with the two responses R and K."""
        V_hat, U = self.conjugates(V, alpha), self.to_analytic(V, alpha)
        size, n = self.magnitude(V), U.shape[1] - V.shape[1]
        RX = self._second_moments(U, V_hat, X[:, None])[:, 0, n:]
        if V.shape[1] > LARGEST_MATRIX:
            return self._iterate_response(V, alpha, RX)
        RK = self._second_moments(U, V_hat, self._conjugate_slope(V, alpha))[..., n:]
        matrix = np.eye(V.shape[1]) - RK.swapaxes(1, 2) * (size[:, None, :] / size[..., None])
        return size * np.linalg.solve(matrix, (RX / size)[..., None])[..., 0]

    def newton_distance(self, V: Array, alpha: Array, lam: Array) -> Array:
        """Newton's relative step, by its matrix or, for many groups, by iteration."""
        if V.shape[1] <= LARGEST_MATRIX:
            return super().newton_distance(V, alpha, lam)
        residual = self.from_conjugates(self.conjugates(V, alpha), lam, V) - V
        return self._iterate_response(V, alpha, residual) / self.magnitude(V)

    def _iterate_response(self, V: Array, alpha: Array, source: Array) -> Array:
        """Solve Q = source + R K Q for Q (P, D), with the responses R and K at V, by Anderson's
        method."""
        V_hat, U, size = self.conjugates(V, alpha), self.to_analytic(V, alpha), self.magnitude(V)
        W = self.shrinkage(V) ** 2
        source = source / size

        def image(Q: Array, rows: Indices) -> Array:
            KQ = self.conjugates_from(self.at_nodes(size[rows] * Q) * W[rows], alpha[rows])
            RKQ = self._second_moments(U[rows], V_hat[rows], KQ[:, None])[:, 0, -V.shape[1] :]
            return source[rows] + RKQ / size[rows]

        def scale(Q: Array) -> Array:
            return np.broadcast_to(np.abs(Q).max(axis=1, keepdims=True), Q.shape)

        past = np.zeros((len(V), 2 * COMBINED, 2, V.shape[1]))
        return size * fixed_point(image, source, size=scale, history=past).value

    def _conjugate_slope(self, V: Array, alpha: Array) -> Array:
        """Matrix K = -d V_hat / d V of (4.2), (P, D, D), with the derivatives in V_j in row j."""
        W = self.shrinkage(V) ** 2
        W = W * (alpha[:, None] / self.beta * self.table.weights)
        return np.asarray(
            (self.table.response_coefficients * W[:, None]) @ self.table.response_products.T
        )

    def averages_at(self, K: Array, guess: Array | None = None) -> Array:
        """Averages x (P, n) that real K implies, from a guess; isotropic rows have none, n = 0."""
        return np.empty((len(K), 0))

    def effective_covariance(self, x: Array) -> tuple[Array, Array]:
        """Effective covariance C, and o (P, m, A) with dC = o^T dx o."""
        C = np.broadcast_to(np.diag(self.table.c), (len(x), self.groups, self.groups))
        return C, C

    def pencil_equations(self, res: GroupResolvent) -> PencilEquations:
        """Equations for the averages x; isotropic rows have none."""
        none = np.empty((len(res.x), 0, self.groups, self.groups))
        return PencilEquations(res.x, none[..., 0, :0], none, none)

    def scale(self, V2: Array) -> Array:
        """Matrix sqrt(tau_a tau_b), (P, A, A)."""
        return np.asarray(self.beta * geometric_means(V2))

    def resolvent(self, K: Array, x: Array | None = None) -> GroupResolvent:
        """Matrices C, W, S = C W and N = W K of (17.2) for averages x of the rows; without x, for
        the averages that K implies."""
        x = self.averages_at(K) if x is None else x
        C, outer = self.effective_covariance(x)
        W = np.linalg.inv(np.eye(self.groups) + K @ C)
        N = W @ K
        return GroupResolvent(x, K, C, W, C @ W, (N + N.swapaxes(1, 2)) / 2, outer)

    def _traces(self, res: GroupResolvent) -> Array:
        """Traces (K S)_bb / beta of every group b, (P, A).  Eq. (17.2)"""
        return np.diagonal(res.K @ res.S, axis1=1, axis2=2) / self.beta

    def _newton_matrix(self, res: GroupResolvent, eqs: PencilEquations, level: Array) -> Array:
        """Newton's matrix (P, n + A, n + A): derivatives in x and log V2 of the residual for x and
        of V2 Lambda + (K S)_bb / beta.

        V2 Lambda is the ``level`` (P, A).  K changes with log V2 by dK_ab = K_ab / 2 from each
        side.
        """
        by_x = np.einsum("pbc,pncb->pbn", res.K, eqs.S_by_x) / self.beta
        # d(K S) = W dK S + K dS
        by_V2 = (res.W * (res.K @ res.S).swapaxes(1, 2) + res.N * res.S) / (2 * self.beta)
        by_V2[:, range(self.groups), range(self.groups)] += level
        x_rows = np.concatenate([eqs.by_x, np.einsum("pnab,pab->pna", eqs.by_K, res.K)], axis=2)
        return np.concatenate([x_rows, np.concatenate([by_x, by_V2], axis=2)], axis=1)

    def _change_of_S(self, res: GroupResolvent, dK: Array, e: Array) -> Array:
        """Change of sqrt(tau) S sqrt(tau) at fixed x, over sqrt(tau) on both sides.

        V1_hat changes by sqrt(tau) dV1_hat sqrt(tau) = ``dK`` (P, J, A, A), and log V2 by ``e``
        (P, J, A).
        """
        Ce = (e[..., :, None] + e[..., None, :]) / 2 * res.C[:, None]
        W, S = res.W[:, None], res.S[:, None]
        return W.swapaxes(-1, -2) @ Ce @ W - S @ dK @ S

    def _second_moments(self, U: Array, V_hat: Array, X: Array) -> Array:
        """Linear response (4.10) to several sources X (P, J, D) at each point (x, V): minus the
        changes of (x, V1, V2), (P, J, n + D), of which the last are (Q1, q2)."""
        V2, V1_hat = self.unpack(self.from_analytic(U))[1], self.unpack(V_hat)[0]
        X1, X2 = self.unpack(X)
        scale = self.scale(V2)
        res = self.resolvent(scale * V1_hat, self.averages_in(U))
        eqs = self.pencil_equations(res)
        matrix = self._newton_matrix(res, eqs, self.table.fractions - self._traces(res))
        dK = scale[:, None] * X1
        trace_change = np.einsum("pab,pjbc,pca->pja", res.W, dK, res.S)
        x_source = np.einsum("pnab,pjab->pnj", eqs.by_K, dK)
        V2_source = (V2[:, None] * X2 + trace_change / self.beta).swapaxes(1, 2)
        change = np.linalg.solve(matrix, -np.concatenate([x_source, V2_source], axis=1)).swapaxes(
            1, 2
        )
        dx, e = change[..., : res.x.shape[1]], change[..., res.x.shape[1] :]
        dS = self._change_of_S(res, dK, e) + np.einsum("pjn,pnab->pjab", dx, eqs.S_by_x)
        Q1 = -scale[:, None] * dS / self.beta
        q2 = -V2[:, None] * e
        return np.concatenate([-dx, self.pack(Q1, q2)], axis=2)


def geometric_means(V2: Array) -> Array:
    """Geometric means sqrt(V2_a V2_b), (P, A, A)."""
    root = np.sqrt(V2)
    if np.iscomplexobj(V2):  # Im V2 >= 0 up to rounding: this root is continuous there
        root = np.where(V2.real < 0, 1j * np.sqrt(-V2), root)
    return np.asarray(root[:, :, None] * root[:, None])
