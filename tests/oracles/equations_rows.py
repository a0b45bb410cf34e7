"""Section 16 of docs/theory.md typed as it stands, one point at a time: one step of any student,
with (17.1) for Gaussian rows.

Its way is another than that of the library: a 2 x 2 pencil and vectors in (16.5), where the library
conditions on the noise vector of the batch (18.10).
"""

import numpy as np
from scipy.optimize import brentq, root


def gauss(breaks, panels=60, n=20, end=10.0):
    """Nodes and weights of the standard Gaussian, on panels that end at the breaks."""
    x, w = np.polynomial.legendre.leggauss(n)
    edges = np.unique(np.concatenate([np.linspace(-end, end, panels), breaks]))
    half, middle = np.diff(edges)[:, None] / 2, (edges[1:] + edges[:-1])[:, None] / 2
    z = (middle + half * x).ravel()
    w = (half * w).ravel() * np.exp(-(z**2) / 2)
    return z, w / w.sum()


class Rows:
    """What (16.1)-(16.8) need of a step of rate ``eta`` on ``alpha0`` d samples, of neurons that
    all have the same first-step ``readout``: their rate is readout eta, their mean output readout
    times that of the student."""

    def __init__(
        self, student, target, alpha0, eta, noise=0.0, gaussian=False, norms=True, readout=1.0
    ):
        self.norms, eta = norms, readout * eta
        z, w = gauss(student.kinks)
        slope = student.slope(z)
        h1, h2 = w @ slope, w @ (z * slope)
        st = slope - h1 - h2 * z

        def m(j, k):
            return w @ (z**j * st**k)

        check = m(0, 2)
        t2, t3 = m(2, 1), m(3, 1)
        s1, s22, k2, s3, s13, s4 = m(1, 2), m(2, 2), m(2, 2) - check, m(0, 3), m(1, 3), m(0, 4)
        s, ws = gauss(target.kinks, panels=30)
        xi, wx = np.linspace(-8.5, 8.5, 60), np.ones(1)
        xi, wx = (xi, np.exp(-(xi**2) / 2)) if noise else (np.zeros(1), wx)
        wx = wx / wx.sum()
        e = (target(s)[:, None] + np.sqrt(noise) * xi - readout * (w @ student(z))).ravel()
        s, W = np.repeat(s, len(xi)), (ws[:, None] * wx).ravel()
        E = lambda f: W @ f  # noqa: E731
        self.e, self.s, self.W, self.alpha0 = e, s, W, alpha0
        self.N = np.sqrt(E(e * s) ** 2 + E(e * e) / alpha0)
        self.gamma, self.r = E(e * s) / self.N, eta * h1 * self.N
        self.a, self.b = eta * h2, eta**2 * check / alpha0
        a, e1, e2 = self.a, E(e), E(e * e)
        q1 = 1 + a * (e1 + e / alpha0)
        p2 = 1 + 2 * a * (e1 + e / alpha0)
        p2 += a**2 * (e2 / alpha0 + e1**2 + 2 * e1 * e / alpha0 + (e / alpha0) ** 2)
        pi2 = 1 + 2 * a * e1 + a**2 * (e2 / alpha0 + e1**2)
        c1, c2, c3, c4 = (E(e**j) / alpha0 ** (j - 1) for j in (1, 2, 3, 4))
        M3 = c3 + 3 * c1 * c2 + c1**3
        M4 = c4 + 4 * c1 * c3 + 2 * c2**2 + 6 * c1**2 * c2 + c1**4
        pi4 = 1 + 4 * a * c1 + 6 * a**2 * (c2 + c1**2) + 4 * a**3 * M3 + a**4 * M4
        self.c = pi2 + self.b * e2
        u = eta**2 / alpha0
        self.L = 2 * eta * t2 * e * q1 + u * s1 * e**2  # (16.7)
        self.F = eta * t2 * e * (p2 - pi2) + 2 * u * s1 * e**2 * q1 + u * eta / alpha0 * s3 * e**3
        self.l2 = E(s * self.L) ** 2 + E(self.L**2) / alpha0
        v = 2 * (pi4 - pi2**2) + 4 * eta * t3 * E(e * q1 * (p2 - pi2))  # (16.8)
        v += 2 * u * k2 * E(e**2 * (p2 - pi2))
        v += 4 * u * E(e**2 * (q1**2 * (s22 - t2**2) + (p2 - q1**2) * check))
        v += u**2 / alpha0 * E(e**4) * (s4 - check**2 - s1**2) + 2 * (u * check * e2) ** 2
        self.v = v + 4 * u * eta / alpha0 * E(e**3 * q1) * (s13 - t2 * s1) + self.l2
        self.last = 0.0, np.zeros(3)
        # (17.1) on (u, delta, zeta)
        omega = [eta * t2 * self.N / 2, pi2 + eta * t3 * E(e * q1) + u / 2 * k2 * e2, 0.0]
        self.initial = 2 * np.outer(omega, omega) if gaussian else np.zeros((3, 3))

    def T(self, q):
        e, a, b = self.e, self.a, self.b
        T = np.zeros((len(e), 2, 2))
        T[:, 0, 0], T[:, 0, 1] = q * b * e**2, np.sqrt(q) * a * e
        T[:, 1, 0] = T[:, 0, 1]
        return np.array([[1, np.sqrt(q)], [np.sqrt(q), -1]]), T

    def G(self, q):
        """(16.3), from q = 0 upwards, or from the last q asked for if that is near."""
        last, found = self.last
        path = [q]
        if not last / 2 < q < 2 * last:
            found = np.array([1.0, 0.0, -1.0])
            path = np.append(np.geomspace(1e-3 * q, q, 8)[:-1], q) if q else []
        for at in path:
            T0, T = self.T(at)

            def gap(g, T0=T0, T=T):
                G = np.array([[g[0], g[1]], [g[1], g[2]]])
                inner = T @ np.linalg.inv(np.eye(2) + G @ T / self.alpha0)
                return (G @ (T0 + np.tensordot(self.W, inner, 1)) - np.eye(2)).ravel()[[0, 1, 3]]

            found = root(gap, found, tol=1e-14).x
        self.last = q, found
        return np.array([[found[0], found[1]], [found[1], found[2]]])

    def p(self, q):
        return self.G(q)[0, 0]

    def blocks(self, q):
        """R on (u, zeta), Rk there, k^T R k, by (16.4)-(16.7)."""
        G, (T0, T) = self.G(q), self.T(q)
        W, s, e, alpha0, N = self.W, self.s, self.e, self.alpha0, self.N
        inner = T @ np.linalg.inv(np.eye(2) + G @ T / alpha0)
        star = np.linalg.inv(T0 + np.tensordot(W * s**2, inner, 1))
        K = np.linalg.inv(np.eye(2) + T @ G / alpha0)

        def vector(first, second, w):
            f = np.stack([first * np.ones_like(e), second * np.ones_like(e)], axis=1)
            return f, np.array(w) + np.einsum("m,mij,mj->i", W * s, K, f)

        def product(left, right):
            (f, pi), (g, rho) = left, right
            return np.einsum("m,mi,ij,mjk,mk", W, f, G, K, g) / alpha0 + pi @ star @ rho

        zero, rho = np.zeros_like(e), np.sqrt(1 - self.gamma**2)
        u, w = vector(e / N, zero, [0, 0]), vector(zero, zero, [1, 0])
        zeta = tuple((x - self.gamma * y) / rho for x, y in zip(w, u, strict=True))
        F, L = vector(self.F, zero, [0, 0]), vector(zero, self.L, [0, 0])
        R = np.array([[product(x, y) for y in (u, zeta)] for x in (u, zeta)])
        root_q = np.sqrt(q)
        Rk = np.array([product(x, F) + product(x, L) / root_q for x in (u, zeta)])
        kRk = product(F, F) + 2 * product(F, L) / root_q + (product(L, L) + self.l2) / q
        return R, Rk, kRk

    def V2(self, beta, V1_hat, Lam):
        """(16.6)"""

        def gap(V2):
            return V2 * Lam + (1 - self.p(beta * V2 * V1_hat)) / beta - 1

        return brentq(gap, 1e-12, 1 / Lam, xtol=1e-300, rtol=1e-14)

    def M(self, beta, V1_hat, Lam):
        """M' of (16.9) on (u, delta, zeta)."""
        tau = beta * self.V2(beta, V1_hat, Lam)
        R, Rk, kRk = self.blocks(tau * V1_hat)
        M = np.empty((3, 3))
        M[::2, ::2] = (np.eye(2) - R) / V1_hat
        M[1, ::2] = M[::2, 1] = tau * Rk
        M[1, 1] = tau * (self.v - tau * V1_hat * kRk)
        M = M + V1_hat * np.outer(M[0], M[0]) / (1 - V1_hat * M[0, 0])
        return M + tau * self.initial


def derivative(f, x):
    """Central difference of fourth order."""
    h = 1e-3 * x
    return (8 * (f(x + h) - f(x - h)) - (f(x + 2 * h) - f(x - 2 * h))) / (12 * h)


def resolvent(of, beta, V1_hat, Lam):
    """V1, V2 of (16.6)."""
    V2 = of.V2(beta, V1_hat, Lam)
    return (1 - of.p(beta * V2 * V1_hat)) / (beta * V1_hat), V2


def solve(of, table, alpha, lam, start=(1.0, 1.0), V=resolvent, M=Rows.M):
    """Test and training error, with V1 and V2 found by plain iteration.  (4.7), (16.10), (15.8)"""
    t, beta = table, table.beta
    w, m1, m2 = t.weights, t.mu1[0], t.mu2sq[0]
    V1, V2 = start
    for _ in range(3000):
        R = 1 / (1 + m1**2 * V1 + m2 * V2)
        V1_hat, Lam = alpha / beta * (w @ (m1**2 * R)), lam + alpha / beta * (w @ (m2 * R))
        new = V(of, beta, V1_hat, Lam)
        change = abs(new[0] / V1 - 1) + abs(new[1] / V2 - 1)
        V1, V2 = new
        if change < 1e-13:
            break
    assert change < 1e-11
    W = w / (1 + m1**2 * V1 + m2 * V2)
    F, free = np.concatenate([t.offsets, t.loadings[0]]), len(t.offsets)
    p_hat = W @ (m1 * t.g[0])
    block = alpha / beta * M(of, beta, V1_hat, Lam)
    # E[F (h - C) / (1 + V)] = (0, theta_hat), C = m F_0 + theta . F_1, theta by (15.7)
    gram, moment = (F * W) @ F.T, (F * W) @ t.h
    system = gram.copy()
    system[:, free:] = gram[:, free:] @ block[:-1, :-1]
    system[free:, free:] += np.eye(len(F) - free)
    found = np.linalg.solve(system, moment - gram[:, free:] @ block[:-1, -1] * p_hat)
    m, nu = found[:free], np.append(found[free:], p_hat)
    overlaps = block @ nu
    C = m @ t.offsets + overlaps[:-1] @ F[free:]
    error = (t.h - C) ** 2 + t.spread + t.noise - 2 * overlaps[-1] * m1 * t.g[0]
    products = np.stack([m1**2, m2])
    by_hat, by_lam = (
        derivative(lambda x: np.array(V(of, beta, x, Lam)), V1_hat),
        derivative(lambda x: np.array(V(of, beta, V1_hat, x)), Lam),
    )
    response = -np.stack([by_hat, by_lam], axis=1)
    direct = -((alpha / beta) ** 2) * np.array(
        [
            derivative(lambda x: nu @ M(of, beta, x, Lam) @ nu, V1_hat),
            derivative(lambda x: nu @ M(of, beta, V1_hat, x) @ nu, Lam),
        ]
    )
    W2 = alpha / beta * w / (1 + m1**2 * V1 + m2 * V2) ** 2
    feedback = (products * W2) @ products.T
    Q = np.linalg.solve(
        np.eye(2) - response @ feedback, response @ ((products * W2) @ error) + direct
    )
    error = error + Q @ products
    return w @ error - t.noise, beta / alpha * (W2 @ error)
