"""Equations (23.1)-(23.10) as they stand, on the tables C(q) of a network's rows: averages over
loadings by nodes, errors as derivatives of the training objective.  Slow, and shares nothing with
``replica.dimension``."""

from itertools import product

import numpy as np
from scipy.interpolate import CubicSpline


def gauss(n):
    x, w = np.polynomial.hermite_e.hermegauss(n)
    return x, w / w.sum()


def grid(sizes):
    """Nodes (k, N) and weights (N,) of a product of Gauss rules."""
    rules = [gauss(n) for n in sizes]
    nodes = np.array(list(product(*[x for x, _ in rules]))).T
    return nodes, np.array([np.prod(w) for w in product(*[w for _, w in rules])])


def root_of(matrix):
    values, vectors = np.linalg.eigh(matrix)
    return (vectors * np.sqrt(np.maximum(values, 0))) @ vectors.T


class Literal:
    """Network of one kind of neurons at a dimension d, or in the limit, with ``sizes`` of nodes
    along the labels' coordinates, e_perp and b, and ``loading`` nodes along as many directions.

    ``uncorrected`` equations are without (23.8)-(23.10), have special directions twice, in the bulk
    and among the loadings, in V1 and in V_s, and functions of all loadings, also
    where most of the rows' variance is noise."""

    def __init__(
        self, model, d, sizes=(12, 12, 6), loading=(7, 5, 5), with_b=True, uncorrected=False
    ):
        self.d, self.beta, self.rows = d, model.beta, model.rows.tabulated
        self.shortened = 0.0 if uncorrected else 1 - self.rows.rows.mean_row / self.rows.c
        self.uncorrected = uncorrected
        self.covariances(model, with_b)
        x, self.y = self.inputs(model, sizes)
        second = (x * self.w) @ x.T
        # b, one step of Lanczos' method from the leading direction t.  Eq. (23.2)
        F = np.delete(np.arange(len(self.C0)), 1)
        values, vectors = np.linalg.eig(second[:-1, :-1] @ self.C0[np.ix_(F, F)])
        t = np.zeros(len(self.C0))
        t[F] = vectors[:, np.argmax(values.real)].real
        on_labels = self.turned[: self.labels, :-1] @ t[F]
        self.of_labels = on_labels @ on_labels / (t @ t)
        size = t @ self.C1 @ t
        self.Fb, self.bb = self.C1 @ t / np.sqrt(size), t @ self.C2 @ t / size
        if not with_b:
            self.Fb, self.bb = 0 * self.Fb, self.rows.c
        C = np.zeros_like(second)
        C[:-1, :-1], C[-1, -1] = self.C0[np.ix_(F, F)], self.bb
        C[:-1, -1] = C[-1, :-1] = self.Fb[F]
        self.loadings = C
        self.moments(model, x, C, second, loading)

    def covariances(self, model, with_b):
        """C(0), -C'(0) and C''(0) / 2 on (u, delta, zeta), by a polynomial.  Eq. (23.1)"""
        q = 1e-3 * np.arange(9) / np.abs(self.C(0.0)).max()
        values = np.array([self.C(each) for each in q])
        fit = np.polynomial.polynomial.polyfit(q / q[-1], values.reshape(9, -1), 5)
        shape = values.shape[1:]
        self.C0, slope, half = (fit[k].reshape(shape) / q[-1] ** k for k in range(3))
        self.C1, self.C2 = -slope, half

    def C(self, q):
        return self.rows.special_covariance(np.array([q]))[0][0]

    def inputs(self, model, sizes):
        """Nodes (u, zeta, b), (n + 1, N), and labels."""
        basis = model.components.basis  # of E, in (u, zeta)
        D, n = basis.shape
        rest = np.linalg.svd(basis)[2][D:].T
        law = model.inputs
        means = np.zeros((1, D)) if law is None else law.means
        roots = [np.eye(D)] if law is None else [*map(np.linalg.cholesky, law.each_covariance)]
        shares = np.ones(1) if law is None else law.fractions
        z, w = grid([sizes[0]] * D + [sizes[1]] * (n - D) + [sizes[2]])
        E = np.hstack([m[:, None] + root @ z[:D] for m, root in zip(means, roots, strict=True)])
        others = np.tile(z[D:], len(shares))
        self.w = np.outer(shares, w).ravel()
        component = np.repeat(np.arange(len(shares)), len(w))
        target = model.target
        arguments = (component,) if hasattr(target, "values") else E[: target.dimension]
        x = np.vstack([basis.T @ E + rest @ others[:-1], others[-1:]])
        self.turned = np.zeros((n + 1, n + 1))  # from (u, zeta, b) to labels' coordinates, others
        self.turned[:D, :n], self.turned[D:n, :n], self.turned[n, n] = basis, rest.T, 1.0
        self.labels = D
        return x, np.asarray(target(*arguments), dtype=float)

    def moments(self, model, x, C, second, loading):
        """Averages over loadings, and the members' functions.  Eqs. (23.3)-(23.5)"""
        axes, kept = self.axes(C, second, len(loading))
        z, share = grid(loading)
        s = axes @ z / np.sqrt(self.d)
        r, c = float(np.ravel(model.r)[0]), float(np.ravel(model.c)[0])
        c -= 0 if self.uncorrected else ((len(x) - 1) * c + self.bb) / self.d
        at = r * x[0] + s.T @ x
        knots = np.linspace(at.min() - 0.1, at.max() + 0.1, 6000)
        found = model.student.moments(knots, c)
        square = found.mean**2 + found.first**2 + found.variance
        by_norm = model.student.second_hermite(knots, c) / (2 * c)
        columns = np.array([found.mean, found.first / np.sqrt(c), square, by_norm])
        mu0, mu1, square, by_norm = CubicSpline(knots, columns, axis=1)(at)
        self.mu1, mean = share @ mu1, share @ mu0
        # the others are averaged over; of these degree 1 alone is no noise
        shares = share.reshape(np.prod(loading[:kept]), -1)
        z_kept = z[:kept].reshape(kept, *shares.shape)[:, :, 0]
        of_labels, inner = shares.sum(axis=1), shares / shares.sum(axis=1)[:, None]
        known = np.einsum("ij,ijn->in", inner, mu0.reshape(*shares.shape, -1))
        square_of_others = (((z[kept:] * share) @ mu0) ** 2).sum(axis=0)
        self.mu2sq = share @ square - of_labels @ known**2 - square_of_others - c * self.mu1**2
        of_one = z_kept.T @ ((z_kept * of_labels) @ known)
        members = np.sqrt(of_labels)[:, None] * (known - mean - of_one)
        self.kernel = members  # K_2(x, x') = members(x) . members(x')
        special = np.insert(self.mu1 * x, 1, share @ by_norm, axis=0)
        if not np.isfinite(self.d):
            members = members[:0]
        else:  # functions that differ
            U, size, _ = np.linalg.svd(members * np.sqrt(self.w), full_matrices=False)
            members = U[:, size > 1e-7 * size[0]].T @ members
        self.phi, self.priced = np.vstack([mean, members, special]), 1 + len(members)
        self.taken = 0 if self.uncorrected else len(x)
        self.square = 2 * (c * (share @ by_norm)) ** 2  # of degree two in the bulk
        bulk, c = c, self.rows.c
        c_e = [self.rows.c_e(np.array([q / c]))[0][0] for q in (1e-6, 2e-6)]
        D = self.d * c**2 / (c**2 - (c_e[1] - c_e[0]) * c / 1e-6)
        self.products = np.inf if self.uncorrected else D**2 / 2
        sd = np.sqrt(2 * max(c**2 * self.d / D - self.bb**2 / self.d, bulk**2) / self.d)
        self.by_length = 0.0 * mean if self.uncorrected else sd * (share @ by_norm)
        self.noise = model.labels.variance

    def axes(self, C, second, count):
        """Roots of the loadings' covariance, (n + 1, ``count``), and the number of their columns
        of which functions are regressors: the first, which alone reach the labels' coordinates."""
        if self.uncorrected or self.of_labels > 0.6:
            root = root_of(C)
            leading = np.linalg.eigh(root @ second @ root)[1][:, ::-1][:, :count]
            return root @ leading, count
        D, C = self.labels, self.turned @ C @ self.turned.T
        second = self.turned @ second @ self.turned.T
        first = np.vstack([root_of(C[:D, :D]), C[D:, :D] @ np.linalg.inv(root_of(C[:D, :D]))])
        first = first @ np.linalg.eigh(first.T @ second @ first)[1][:, ::-1]
        others = np.zeros((len(C), len(C) - D))
        others[D:] = root_of(C[D:, D:] - first[D:] @ first[D:].T)
        return self.turned.T @ np.hstack([first, others]), D

    def data(self, W, with_leverage):
        """Averages of phi phi^T with weights W of the nodes, over the lengths of inputs as well,
        on which the mean feature depends.  Eq. (23.10)"""
        averages = (self.phi * W) @ self.phi.T
        averages[0, 0] += with_leverage * (W @ self.by_length**2)
        return averages

    def precision(self, V2, q, V1):
        """pr of (23.6): V2 C on special directions with b freed from the bulk, V2 d on others, of
        which the mean feature has the price (23.8)."""
        C = np.zeros((len(self.C0) + 1,) * 2)
        C[:-1, :-1] = self.C(q) + q * np.outer(self.Fb, self.Fb) / (1 + q * self.bb)
        C[-1, :-1] = C[:-1, -1] = self.Fb
        C[-1, -1] = self.bb
        precision = np.diag(np.full(len(self.phi), 1 / (V2 * self.d)))
        precision[0, 0] *= 1 - self.shortened * q * V1 / (self.beta * V2)
        n = self.priced
        precision[n:, n:] = np.linalg.pinv(C, rcond=1e-12) / V2
        return precision

    def state(self, alpha, lam, h, V, with_leverage):
        """V1, V2, V_s and pr, by iteration.  Eqs. (16.6), (23.6)"""
        V1, V2, Vs, k, d = *V, np.zeros_like(self.w), 0.0, self.d
        for _ in range(400):
            before = np.array([V1, V2, k])
            R = 1 / (1 + V1 * self.mu1**2 + V2 * self.mu2sq + Vs)
            W = self.w * (alpha * R + h)
            V1_hat, V2_hat = W @ self.mu1**2 / self.beta, W @ self.mu2sq / self.beta

            def p_of(V2, V1_hat=V1_hat):
                q = self.beta * V2 * V1_hat
                return 1 / (1 + q * self.rows.c_e(np.array([q]))[0][0])

            for _ in range(50):
                V2 = 1 / (lam + V2_hat + (1 - p_of(V2) + k / d) / (self.beta * V2))
            V1 = (1 - p_of(V2)) / (self.beta * V1_hat)
            precision = self.precision(V2, self.beta * V2 * V1_hat, V1)
            if with_leverage:
                inverse = np.linalg.inv(self.data(W, with_leverage) + precision)
                Vs = ((inverse @ self.phi) * self.phi).sum(axis=0) / d
                Vs += inverse[0, 0] * self.by_length**2 / d
                load = d / self.products * V2 * (W @ self.square)
                Vs = Vs - self.taken * V1 * self.mu1**2 / d - V2 * load / (1 + load) * self.square
                k = d * (W @ Vs)
            if np.abs(np.array([V1, V2, k]) / np.where(before, before, 1) - 1)[:2].max() < 1e-13:
                break
        return V1, V2, Vs

    def objective(self, alpha, lam, h=0.0, V=(1.0, 1.0), with_leverage=True):
        """Y of (23.7)."""
        V1, V2, Vs = self.state(alpha, lam, h, V, with_leverage)
        R = 1 / (1 + V1 * self.mu1**2 + V2 * self.mu2sq + Vs)
        W = self.w * (alpha * R + h)
        precision = self.precision(V2, V2 * (W @ self.mu1**2), V1)
        t = np.linalg.solve(self.data(W, with_leverage) + precision, self.phi @ (W * self.y))
        gap2 = (self.y - t @ self.phi) ** 2 + with_leverage * (t[0] * self.by_length) ** 2
        return W @ gap2 + alpha * self.noise * (self.w @ R) + t @ precision @ t

    def errors(self, alpha, lam, with_leverage=True):
        """Test and training error.  Eq. (23.7)"""
        V = self.state(alpha, lam, 0.0, (1.0, 1.0), with_leverage)[:2]

        def Y(h=0.0, log_lam=0.0):
            return self.objective(alpha, lam * np.exp(log_lam), h, V, with_leverage)

        step = 1e-3
        by_h = (Y(h=step) - Y(h=-step)) / (2 * step)
        by_log_lam = (Y(log_lam=step) - Y(log_lam=-step)) / (2 * step)
        return by_h, (Y() - by_log_lam) / alpha
