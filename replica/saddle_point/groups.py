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
        least_V2 = pi / (Lam + self.table.c * np.diagonal(V1_hat, axis1=1, axis2=2))
        # points with NaN are replaced by valid numbers here, and set to NaN at the end
        invalid_points = ~np.all(np.isfinite(least_V2) & (least_V2 > 0), axis=1)
        least_V2[invalid_points], Lam[invalid_points], V1_hat[invalid_points] = 1.0, 1.0, 0.0
        V2_guess = least_V2 if guess is None else self.unpack(self.from_analytic(guess))[1]
        V2 = np.where(np.isfinite(V2_guess) & (V2_guess > 0), V2_guess, least_V2)
        x = None if guess is None else self.averages_in(guess)
        if x is None or not x.shape[1]:
            x = self.averages_at(self.scale(V2) * V1_hat)
        n_x = x.shape[1]
        invalid_points |= ~np.isfinite(x).all(axis=1)
        x = np.where(invalid_points[:, None], 0.0, x)

        def system(U: Array, rows: Indices) -> tuple[Array, Array]:
            V2, x_size = U[:, n_x:], self._scale_of_x(U[:, :n_x])
            K, x = self.scale(V2) * V1_hat[rows], U[:, :n_x]
            if guess is None:  # far from the solution, linear steps would leave the branch of x
                x = self.averages_at(K, x)
            resolvent = self.resolvent(K, x)
            eqs, V2_level = self.pencil_equations(resolvent), V2 * Lam[rows]
            group_total = V2_level + self._traces(resolvent)
            with np.errstate(invalid="ignore"):  # the total may be negative at a trial point
                residual = np.concatenate([eqs.residual / x_size, np.log(group_total / pi)], axis=1)
            group_slope = self._newton_matrix(resolvent, eqs, V2_level)
            group_slope /= np.concatenate([x_size, group_total], axis=1)[..., None]
            group_slope[:, :, :n_x] *= x_size[:, None]
            return residual, group_slope

        def size(U: Array) -> Array:
            return np.concatenate([self._scale_of_x(U[:, :n_x]), U[:, n_x:]], axis=1)

        signed_unknowns = np.arange(n_x + self.groups) < n_x
        group_start = np.concatenate([x, V2], axis=1)
        group_solution = newton(system, group_start, size=size, signed=signed_unknowns, tol=1e-14)
        x, V2 = group_solution.value[:, :n_x], group_solution.value[:, n_x:]
        root_tau = self.scale(V2)
        if guess is None:
            x = self.averages_at(root_tau * V1_hat, x)
        V = self.pack(root_tau * self.resolvent(root_tau * V1_hat, x).S / self.beta, V2)
        U = np.concatenate([x, V], axis=1)
        U[invalid_points | ~(group_solution.residual < 1e-10)] = np.nan  # a residual above rounding
        return U

    def second_moments_at(self, V_hat: Array, lam: Array, X: Array, guess: Array) -> Array:
        """Second moments (Q1, q2) at fixed conjugates.  Eq. (4.10)"""
        U = self.image(V_hat, lam, guess)
        return self.from_analytic(self._second_moments(U, V_hat, X[:, None])[:, 0])

    def log_residual(self, U: Array, alpha: Array, lam: Array) -> tuple[Array, Array]:
        """Residuals of ``analytic_residual`` at real U = (x, V), with derivatives in logarithms.

        They are NaN where a trial V1 is not positive semidefinite, so that Newton steps back.
        """
        x, V = self.averages_in(U), self.from_analytic(U)
        averages_count = U.shape[1] - len(self.signed)
        invalid_groups = np.any(self.shrinkage(V) <= 0, axis=1) | np.any(np.abs(V) > 1e150, axis=1)
        V = np.where(invalid_groups[:, None], np.where(self.signed, 0.0, 1.0), V)
        U = np.concatenate([x, V], axis=1)
        residual, slope = self.analytic_residual(U, alpha, lam)
        residual[invalid_groups] = np.nan
        log_slope = slope * self.magnitude(U)[:, None]
        for group_pair in np.flatnonzero(self.signed):  # V / magnitude is kept constant
            half_slope = V[:, group_pair, None] / 2 * slope[:, :, averages_count + group_pair]
            for group in self.upper:
                log_slope[:, :, averages_count + self.diagonal[group[group_pair]]] += half_slope
        return residual, log_slope

    def magnitude(self, V: Array) -> Array:
        """Scale of the error of each unknown in (x, V); for x it is 1 plus its largest modulus."""
        scale_of_x = self._scale_of_x(self.averages_in(V))
        return np.concatenate([scale_of_x, super().magnitude(self.from_analytic(V))], axis=1)

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
        root_tau = self.scale(V2)
        resolvent = self.resolvent(root_tau * V1_hat, x)
        pencil, pi = self.pencil_equations(resolvent), self.table.fractions
        Lam = lam[:, None] + V2_hat
        trace_residual = (V2 * Lam + np.einsum("pab,pba->pa", V1_hat, V1)) / pi - 1
        V1_scale = self.magnitude(V)[:, :-groups]
        V1_residual = (V1 - root_tau * resolvent.S / self.beta)[:, *self.upper] / V1_scale
        # derivatives of the residuals in each unknown j, with dV_hat = -K_j of ``_conjugate_slope``
        unknowns = V.shape[1]
        dV1, dV2 = self.unpack(np.eye(unknowns))
        K1, K2 = self.unpack(self._conjugate_slope(V, alpha))
        root_tau = root_tau[:, None]
        dK = -root_tau * K1
        d_log_V2 = dV2 / V2[:, None]
        d_image = root_tau / self.beta * self._change_of_S(resolvent, dK, d_log_V2)
        dK = dK + (d_log_V2[..., :, None] + d_log_V2[..., None, :]) / 2 * resolvent.K[:, None]
        d_trace = dV2 * Lam[:, None] - V2[:, None] * K2
        d_trace += np.einsum("pab,jba->pja", V1_hat, dV1)
        d_trace -= np.einsum("pjab,pba->pja", K1, V1)
        slope = np.zeros((len(V), n + unknowns, n + unknowns), np.result_type(V1_residual, d_trace))
        slope[:, :n, :n] = pencil.by_x
        slope[:, :n, n:] = np.einsum("pnab,pjab->pnj", pencil.by_K, dK)
        S_by_x = (root_tau / self.beta * pencil.S_by_x)[:, :, *self.upper] / V1_scale[:, None]
        slope[:, n:-groups, :n] = -S_by_x.swapaxes(1, 2)
        V1_by_V = (dV1 - d_image)[:, :, *self.upper] / V1_scale[:, None]
        slope[:, n:-groups, n:] = V1_by_V.swapaxes(1, 2)
        slope[:, -groups:, n:] = (d_trace / pi).swapaxes(1, 2)
        return np.concatenate([pencil.residual, V1_residual, trace_residual], axis=1), slope

    def second_moments(self, V: Array, alpha: Array, lam: Array, X: Array) -> Array:
        """Second moments Q = R (X + K Q), by (1 - R K) Q = R X with the two responses R and K."""
        V_hat, U = self.conjugates(V, alpha), self.to_analytic(V, alpha)
        V_scale, averages_count = self.magnitude(V), U.shape[1] - V.shape[1]
        RX = self._second_moments(U, V_hat, X[:, None])[:, 0, averages_count:]
        if V.shape[1] > LARGEST_MATRIX:
            return self._iterate_response(V, alpha, RX)
        RK = self._second_moments(U, V_hat, self._conjugate_slope(V, alpha))[..., averages_count:]
        matrix = np.eye(V.shape[1]) - RK.swapaxes(1, 2) * (V_scale[:, None, :] / V_scale[..., None])
        return V_scale * np.linalg.solve(matrix, (RX / V_scale)[..., None])[..., 0]

    def newton_distance(self, V: Array, alpha: Array, lam: Array) -> Array:
        """Newton's relative step, by its matrix or, for many groups, by iteration."""
        if V.shape[1] <= LARGEST_MATRIX:
            return super().newton_distance(V, alpha, lam)
        group_residual = self.from_conjugates(self.conjugates(V, alpha), lam, V) - V
        return self._iterate_response(V, alpha, group_residual) / self.magnitude(V)

    def _iterate_response(self, V: Array, alpha: Array, source: Array) -> Array:
        """Solve Q = source + R K Q for Q (P, D), with the responses R and K at V, by Anderson's
        method."""
        V_hat, U, V_scale = self.conjugates(V, alpha), self.to_analytic(V, alpha), self.magnitude(V)
        RR = self.shrinkage(V) ** 2
        source = source / V_scale

        def image(Q: Array, rows: Indices) -> Array:
            KQ = self.conjugates_from(self.at_nodes(V_scale[rows] * Q) * RR[rows], alpha[rows])
            RKQ = self._second_moments(U[rows], V_hat[rows], KQ[:, None])[:, 0, -V.shape[1] :]
            return source[rows] + RKQ / V_scale[rows]

        def Q_scale(Q: Array) -> Array:
            return np.broadcast_to(np.abs(Q).max(axis=1, keepdims=True), Q.shape)

        response_history = np.zeros((len(V), 2 * COMBINED, 2, V.shape[1]))
        return V_scale * fixed_point(image, source, size=Q_scale, history=response_history).value

    def _conjugate_slope(self, V: Array, alpha: Array) -> Array:
        """Matrix K = -d V_hat / d V of (4.2), (P, D, D), with the derivatives in V_j in row j."""
        RR = self.shrinkage(V) ** 2
        wRR = RR * (alpha[:, None] / self.beta * self.table.weights)
        return np.asarray(
            (self.table.response_coefficients * wRR[:, None]) @ self.table.response_products.T
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
        no_averages = np.empty((len(res.x), 0, self.groups, self.groups))
        return PencilEquations(res.x, no_averages[..., 0, :0], no_averages, no_averages)

    def scale(self, V2: Array) -> Array:
        """Matrix sqrt(tau_a tau_b), (P, A, A)."""
        return np.asarray(self.beta * geometric_means(V2))

    def resolvent(self, K: Array, x: Array | None = None) -> GroupResolvent:
        """Matrices C, W, S = C W and N = W K of (17.2) for averages x of the rows; without x, for
        the averages that K implies."""
        x = self.averages_at(K) if x is None else x
        C, outer_factor = self.effective_covariance(x)
        W = np.linalg.inv(np.eye(self.groups) + K @ C)
        N = W @ K
        return GroupResolvent(x, K, C, W, C @ W, (N + N.swapaxes(1, 2)) / 2, outer_factor)

    def _traces(self, res: GroupResolvent) -> Array:
        """Traces (K S)_bb / beta of every group b, (P, A).  Eq. (17.2)"""
        return np.diagonal(res.K @ res.S, axis1=1, axis2=2) / self.beta

    def _newton_matrix(self, res: GroupResolvent, eqs: PencilEquations, V2_level: Array) -> Array:
        """Newton's matrix (P, n + A, n + A): derivatives in x and log V2 of the residual for x and
        of V2 Lambda + (K S)_bb / beta.

        V2 Lambda is the ``V2_level`` (P, A).  K changes with log V2 by dK_ab = K_ab / 2 from each
        side.
        """
        group_by_x = np.einsum("pbc,pncb->pbn", res.K, eqs.S_by_x) / self.beta
        # d(K S) = W dK S + K dS
        group_by_V2 = (res.W * (res.K @ res.S).swapaxes(1, 2) + res.N * res.S) / (2 * self.beta)
        group_by_V2[:, range(self.groups), range(self.groups)] += V2_level
        x_rows = np.concatenate([eqs.by_x, np.einsum("pnab,pab->pna", eqs.by_K, res.K)], axis=2)
        return np.concatenate([x_rows, np.concatenate([group_by_x, group_by_V2], axis=2)], axis=1)

    def _change_of_S(self, resolvent: GroupResolvent, dK: Array, log_V2_change: Array) -> Array:
        """Change of sqrt(tau) S sqrt(tau) at fixed x, over sqrt(tau) on both sides.

        V1_hat changes by sqrt(tau) dV1_hat sqrt(tau) = ``dK`` (P, J, A, A), and log V2 by
        ``log_V2_change`` (P, J, A).
        """
        Ce = (log_V2_change[..., :, None] + log_V2_change[..., None, :]) / 2 * resolvent.C[:, None]
        W, S = resolvent.W[:, None], resolvent.S[:, None]
        return W.swapaxes(-1, -2) @ Ce @ W - S @ dK @ S

    def _second_moments(self, U: Array, V_hat: Array, X: Array) -> Array:
        """Linear response (4.10) to several sources X (P, J, D) at each point (x, V): minus the
        changes of (x, V1, V2), (P, J, n + D), of which the last are (Q1, q2)."""
        V2, V1_hat = self.unpack(self.from_analytic(U))[1], self.unpack(V_hat)[0]
        X1, X2 = self.unpack(X)
        root_tau = self.scale(V2)
        res = self.resolvent(root_tau * V1_hat, self.averages_in(U))
        eqs = self.pencil_equations(res)
        newton_matrix = self._newton_matrix(res, eqs, self.table.fractions - self._traces(res))
        dK = root_tau[:, None] * X1
        trace_change = np.einsum("pab,pjbc,pca->pja", res.W, dK, res.S)
        x_source = np.einsum("pnab,pjab->pnj", eqs.by_K, dK)
        V2_source = (V2[:, None] * X2 + trace_change / self.beta).swapaxes(1, 2)
        U_change = np.linalg.solve(
            newton_matrix, -np.concatenate([x_source, V2_source], axis=1)
        ).swapaxes(1, 2)
        dx, log_V2_change = U_change[..., : res.x.shape[1]], U_change[..., res.x.shape[1] :]
        dS = self._change_of_S(res, dK, log_V2_change) + np.einsum("pjn,pnab->pjab", dx, eqs.S_by_x)
        Q1 = -root_tau[:, None] * dS / self.beta
        q2 = -V2[:, None] * log_V2_change
        return np.concatenate([-dx, self.pack(Q1, q2)], axis=2)


def geometric_means(V2: Array) -> Array:
    """Geometric means sqrt(V2_a V2_b), (P, A, A)."""
    root_V2 = np.sqrt(V2)
    if np.iscomplexobj(V2):  # Im V2 >= 0 up to rounding: this root is continuous there
        root_V2 = np.where(V2.real < 0, 1j * np.sqrt(-V2), root_V2)
    return np.asarray(root_V2[:, :, None] * root_V2[:, None])
