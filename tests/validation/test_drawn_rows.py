"""docs/theory.md 18: traces and quadratic forms of the pencil against matrices of drawn batches.

The recursion (18.2) is carried out on matrices of d + 1 rows, with the weights (18.5) that each
drawn sample has at its own kappa, by Gauss-Hermite sums of this file's own.
"""

import numpy as np
import pytest

import replica


def moments(sigma, slope, r, c, kappa):
    """mu_0 and (18.3) at kappa (n,)."""
    z, w = np.polynomial.hermite_e.hermegauss(80)
    z, w = np.sqrt(c) * z, w / w.sum()
    at = r * kappa[:, None] + z
    mu0, s = sigma(at) @ w, slope(at)
    mu1, m2, m3 = s @ w, s @ (w * z) / c, s @ (w * (z**2 - c)) / c**2
    m4 = s @ (w * (z**3 - 3 * c * z)) / c**3
    rest = s - mu1[:, None] - m2[:, None] * z
    powers = {(j, m): (rest**m) @ (w * z**j) for j in range(3) for m in range(1, 5)}
    return mu0, mu1, m2, m3, m4, powers


def after_step(step, alpha, eta, state, rng):
    """S (d,) and the extended covariance (d + 1, d + 1) after one more batch of that many d."""
    S, hat = state
    d = len(S)
    n, C, k, v = round(alpha * d), hat[:d, :d], hat[:d, d], hat[d, d]
    c, r = np.trace(C) / d, np.linalg.norm(S)
    X = rng.standard_normal((n, d))
    y = step.target(X[:, 0]) + np.sqrt(step.noise) * rng.standard_normal(n)
    kappa = X @ S / r if r else np.zeros(n)
    mu0, mu1, m2, m3, m4, s = moments(step.student, step.student.slope, r, c, kappa)
    rho = y - mu0
    t12, t11 = eta * rho * m2, eta**2 / alpha * rho**2 * s[0, 2]
    P = np.eye(d) + (X.T * t12) @ X / n
    B = (X.T * t11) @ X / n
    P2 = P @ P
    pi1, pi2, pi4 = (np.trace(M) / d for M in (P, P2, P2 @ P2))
    q1, D = pi1 + t12 / alpha, 2 * pi1 * t12 / alpha + (t12 / alpha) ** 2  # (18.4)
    lam = eta / 2 * rho * m3  # (18.5)
    L = 2 * eta * rho * q1 * c * m3 + eta**2 / alpha * rho**2 * s[1, 2] / c
    F = eta * rho * c**2 * D * m3 + 2 * eta**2 / alpha * rho**2 * q1 * s[1, 2]
    F += eta**3 / alpha**2 * rho**3 * s[0, 3]
    curved = (s[2, 2] - c * s[0, 2]) / c**2
    g = pi2 + eta * c * (rho * q1 * m4).mean() + eta**2 / (2 * alpha) * (rho**2 * curved).mean()
    vf = 2 * c**2 * (pi4 - pi2**2) + 4 * eta * c**3 * (rho * q1 * D * m4).mean()  # (18.7)
    vf += 2 * eta**2 / alpha * c**2 * (rho**2 * D * curved).mean()
    inner = q1**2 * (s[2, 2] - c**3 * m3**2) + c * (pi2 - pi1**2) * s[0, 2]
    vf += 4 * eta**2 / alpha * (rho**2 * inner).mean()
    vf += 4 * eta**3 / alpha**2 * (rho**3 * q1 * (s[1, 3] - c * m3 * s[1, 2])).mean()
    spread = s[0, 4] - s[0, 2] ** 2 - s[1, 2] ** 2 / c
    vf += eta**4 / alpha**3 * (rho**4 * spread).mean() + 2 * t11.mean() ** 2
    new = np.empty_like(hat)
    lx, Lx, f = X.T @ lam / n, X.T @ L / n, X.T @ F / n
    new[:d, :d] = P @ C @ P + np.outer(P @ k, lx) + np.outer(lx, P @ k) + v * np.outer(lx, lx) + B
    new[:d, d] = g * (P @ k) + g * v * lx + P @ C @ Lx + (Lx @ k) * lx + f
    new[d, :d] = new[:d, d]
    new[d, d] = g**2 * v + 2 * g * k @ Lx + Lx @ C @ Lx + vf
    return S + eta * X.T @ (rho * mu1) / n, new


def effective(S, hat, q):
    """c_e (Q,) and C_e (Q, 3, 3) on (u, delta, zeta), of which the resolvents at the scales ``q``
    (Q,) are those of the drawn covariance."""
    d = len(S)
    E = np.zeros((d + 1, 3))
    E[:d, 0], E[d, 1], E[0, 2] = S / np.linalg.norm(S), 1.0, 1.0
    E[:d, 2] -= E[0, 0] * E[:d, 0]
    E[:, 2] /= np.linalg.norm(E[:, 2])
    values, vectors = np.linalg.eigh(hat[:d, :d])
    p = (1 / (1 + q[:, None] * values)).mean(axis=1)
    # hat (1 + q Pi hat)^-1, with Pi = 1 on the rows and 0 on delta
    rows = np.concatenate([E[:d], hat[:d, d:]], axis=1).T @ vectors  # u, delta (0), zeta; and k
    blocks = []
    for scale in q:
        within = (rows * values / (1 + scale * values)) @ rows.T  # C (1 + q C)^-1
        shrunk = (rows / (1 + scale * values)) @ rows.T  # (1 + q C)^-1
        block = within[:3, :3].copy()
        block[1, :] = block[:, 1] = shrunk[3, :3]
        block[1, 1] = hat[d, d] - scale * shrunk[3, 3]
        blocks.append(block @ np.linalg.inv(np.eye(3) - scale * np.diag([1, 0, 1]) @ block))
    return (1 / p - 1) / q, np.array(blocks)


@pytest.mark.slow
@pytest.mark.parametrize("count", [1, 2])
def test_effective_covariances_of_drawn_batches(count):
    """gelu student, tanh target: c_e(q) and C_e(q) at d = 1000, twelve draws."""
    d, draws, q = 1000, 12, np.array([0.3, 3.0, 30.0])
    step = replica.GradientStep(
        student="gelu", target="tanh", steps=[(1.0, 2.0)] * count, noise=0.1
    )
    rows = step.network(beta=1.0).rows.tabulated
    found = []
    for seed in range(draws):
        rng = np.random.default_rng(seed)
        state = np.zeros(d), np.diag(np.append(np.ones(d), 0.0))
        for alpha, eta in step.schedule:
            state = after_step(step, alpha, eta, state, rng)
        c, blocks = effective(*state, q)
        found.append(np.column_stack([blocks[:, *np.triu_indices(3)], c]))
    block = rows.special_covariance(q)[0]
    sign = np.diag([1, 1, np.sign(rows.rows.basis[1, 0])])
    block = sign @ block @ sign
    expected = np.column_stack([block[:, *np.triu_indices(3)], rows.c_e(q)[0]])
    mean, error = np.mean(found, axis=0), np.std(found, axis=0, ddof=1) / np.sqrt(draws)
    size = np.sqrt(np.diagonal(block, axis1=1, axis2=2))
    size = (size[:, :, None] * size[:, None])[:, *np.triu_indices(3)]
    size = np.column_stack([size, expected[:, -1]])
    # one draw fluctuates by some sqrt(2/d) = 4 %; corrections are of the relative order of a few
    # 1/d: found, with six draws at d = 2000, 4e-3 of v and of the entry of u
    z = (mean - expected) / (error + 5 / d * size)
    assert (np.abs(z) <= 4).all()
    assert (error <= 0.04 * size).all()
