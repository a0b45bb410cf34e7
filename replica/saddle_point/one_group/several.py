"""Several special directions, and inputs that are not isotropic: section 4 with vectors and
matrices.

Eqs. (4.5), (19.3)"""

from math import sqrt

import numpy as np

from solvers.chebyshev import HalfLine
from solvers.results import Array

from ...equivalence import OneGroup, SpecialDirections
from .compilation import compiled, summed
from .records import Signal
from .responses import chebyshev_series, locate


@compiled
def signal_of_several(
    t: OneGroup, several: SpecialDirections, scale: float, V1: float, V2: float, C: Array
) -> Signal:
    """Signal m and overlaps with all special directions, by least squares.  Eqs. (4.5), (19.3)

    theta = root phi with the Cholesky factor root root^T = alpha V2 C; ``scale`` is alpha V2.
    """
    n, G, root = len(C), gram_of_several(t, several, V1, V2), cholesky(C, scale)
    matrix = congruence(G, root)  # for (m, phi), with the target as last row
    penalty = 1 / (t.dimension * scale)  # on m, at a finite dimension
    matrix[0, 0] += penalty
    for i in range(1, n + 1):
        matrix[i, i] += 1
    factor, phi, special_hat = cholesky(matrix, 1.0), np.zeros(n + 1), np.zeros(n)
    solve_transposed(factor, factor[n + 1], phi)  # the last row solves for the target already
    m, phi, special = phi[0], phi[1:], np.zeros(n)
    for i in range(n):
        special[i] = row_times(root, i, phi)
    for i in range(n):
        special_hat[i] = regressor_residual(G, m, special, i + 1)
    # root^T theta_hat = phi keeps more digits where the data outweigh the penalty
    solve_transposed(root, phi, special_hat)
    return Signal(m, penalty * m, special, special_hat)


@summed
def gram_of_several(t: OneGroup, several: SpecialDirections, V1: float, V2: float) -> Array:
    """Gram matrix E[R F F^T] of F = (mu_0, loadings, target), (n + 2, n + 2).  Eqs. (4.5),
    (19.3)"""
    N, size, row = len(t.weights), len(several.loadings) + 2, 0
    wR, G = np.empty(N), np.empty((size, size))
    for n in range(N):
        wR[n] = t.weights[n] / (1 + V1 * t.a[n] + V2 * t.b[n])
    for i in range(size):
        for j in range(i, size):
            total = 0.0
            for n in range(N):
                total += wR[n] * several.products[row, n]
            G[i, j] = G[j, i] = total
            row += 1
    return G


@summed
def errors_of_several(t: OneGroup, several: SpecialDirections, m: float, special: Array) -> Array:
    """Conditional error (4.7) at every node, without its terms in Q1, q2: the squared differences
    between output and target in the mean, and in the slope in every random zeta.  Eq. (19.3)"""
    n, parts, N = several.loadings.shape
    errors, gap = np.empty(N), np.empty(N)
    for i in range(N):
        errors[i] = several.unexplained[i] + t.noise
    for part in range(parts):
        for i in range(N):
            gap[i] = (m * t.mu0[i] if part == 0 else 0.0) - several.target[part, i]
        for k in range(n - several.zetas if part > 0 else 0, n):
            for i in range(N):
                gap[i] += special[k] * several.loadings[k, part, i]
        for i in range(N):
            errors[i] += gap[i] * gap[i]
    return errors


@compiled
def special_of_several(t: OneGroup, rows: HalfLine | None, n: int, q: float) -> tuple[Array, Array]:
    """Covariance C_e and its derivative at q on n special directions, (n, n) each."""
    C, slope, row = t.c * np.eye(n), np.zeros((n, n)), 1
    if rows is None:
        return C, slope
    panel, x, dx = locate(rows, q)
    for i in range(n):
        for j in range(i, n):
            value, change = chebyshev_series(rows.series[row, panel], x)
            C[i, j] = C[j, i] = value
            slope[i, j] = slope[j, i] = change * dx
            row += 1
    return C, slope


@compiled
def congruence(G: Array, root: Array) -> Array:
    """Congruence T^T G T, where T is 1 on mu_0 and the target, and the lower triangular ``root`` on
    the loadings between them."""
    n, GT, TGT = len(root), G.copy(), np.empty_like(G)
    for i in range(n + 2):
        for j in range(n):
            GT[i, j + 1] = 0.0
            for k in range(j, n):
                GT[i, j + 1] += G[i, k + 1] * root[k, j]
    for j in range(n + 2):
        TGT[0, j], TGT[n + 1, j] = GT[0, j], GT[n + 1, j]
        for i in range(n):
            TGT[i + 1, j] = 0.0
            for k in range(i, n):
                TGT[i + 1, j] += root[k, i] * GT[k + 1, j]
    return TGT


@compiled
def regressor_residual(G: Array, m: float, special: Array, i: int) -> float:
    """Average E[R F_i (target - output)] of the regressor i, mu_0 first.  Eqs. (4.5), (19.3)"""
    residual = G[i, -1] - m * G[i, 0]
    for k in range(len(special)):
        residual -= G[i, k + 1] * special[k]
    return residual


@compiled
def cholesky(matrix: Array, scale: float) -> Array:
    """Cholesky factor L with L L^T = scale matrix.  Columns of linearly dependent directions are
    0."""
    L = np.zeros_like(matrix)
    for i in range(len(L)):
        for j in range(i + 1):
            rest = scale * matrix[i, j]
            for k in range(j):
                rest -= L[i, k] * L[j, k]
            if i == j and not rest <= 1e-13 * scale * matrix[i, i]:
                L[i, i] = sqrt(rest)
            elif i != j and L[j, j] > 0:
                L[i, j] = rest / L[j, j]
    return L


@compiled
def solve_transposed(L: Array, y: Array, x: Array) -> None:
    """Solve L^T x = y in place; ``x`` is unchanged where L has a zero column."""
    for i in range(len(x) - 1, -1, -1):
        if L[i, i] != 0:
            x[i] = y[i]
            for k in range(i + 1, len(x)):
                x[i] -= L[k, i] * x[k]
            x[i] /= L[i, i]


@compiled
def row_times(C: Array, i: int, nu: Array) -> float:
    """Entry (C nu)_i of a product."""
    total = 0.0
    for k in range(len(nu)):
        total += C[i, k] * nu[k]
    return total


@compiled
def form_of_several(C: Array, nu: Array) -> float:
    """Quadratic form nu^T C nu."""
    total = 0.0
    for i in range(len(nu)):
        total += nu[i] * row_times(C, i, nu)
    return total
