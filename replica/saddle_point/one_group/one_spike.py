"""Usual case, written out: one spike, row norms that may fluctuate, and one direction zeta.

Eqs. (4.5), (16.9)-(16.10)"""

from collections import namedtuple
from math import inf, sqrt
from typing import Any

from solvers.chebyshev import HalfLine

from ...equivalence import OneGroup
from .compilation import compiled, summed
from .records import Signal, Triple
from .responses import chebyshev_series, locate, solve_pair

# E[R {mu_0^2, mu_0 l, l^2, mu_0 h, l h, mu_1 g, k}] and E[R l' {mu_0, l, l', h}], where l and l'
# are the loadings of the spike and of the norms, minus their projections on mu_0
Signals = namedtuple("Signals", "g00 g01 g11 h0 h1 p_hat power g02 g12 g22 h2")
# a symmetric matrix on u, delta and zeta
Block = namedtuple("Block", "uu ud uz dd dz zz")


@compiled
def signal_of_spike(t: OneGroup, scale: float, V1: float, V2: float, q: float, C: Block) -> Signal:
    """Signal m and overlaps, by least squares with a unit penalty on phi.  Eqs. (4.5),
    (16.9)-(16.10)

    m is eliminated first, so that loadings are projected on the complement of mu_0.  ``scale`` is
    alpha V2, and

        theta = root phi + (term in p_hat),
        chi = tilt root phi + norm_root phi' + (term in p_hat).

    Isotropic rows have no chi, and no terms in p_hat.
    """
    penalty = 1 / (t.dimension * scale)  # on m, at a finite dimension
    E = signal_averages(t, t.rows, V1, V2, 0.0, 0.0)
    pivot = E.g00 + penalty if E.g00 > 0 else inf  # m = 0 if mu_0 = 0
    share, norm_share = E.g01 / pivot, E.g02 / pivot
    projected = signal_averages(t, t.rows, V1, V2, share, norm_share)
    # zeta is eliminated first, with a unit penalty: what remains is M' of (16.10)
    zeta = 1 / (1 + q * C.zz)
    uu, dd = C.uu - q * zeta * C.uz**2, C.dd - q * zeta * C.dz**2
    tilt = (C.ud - q * zeta * C.uz * C.dz) / uu
    rest = dd - tilt**2 * uu
    # if the norms do not fluctuate independently of u, rest is rounding
    root, norm_root = sqrt(scale * uu), sqrt(scale * rest) if rest > 1e-13 * dd else 0.0
    _, _, gram11, _, h1, p_hat, _, _, gram12, gram22, h2 = projected
    gram22 += penalty * norm_share**2
    gram12 += penalty * share * norm_share + tilt * gram22
    gram11 += penalty * share**2 + tilt * (2 * gram12 - tilt * gram22)
    theta, chi = scale * zeta * C.uz * p_hat, scale * zeta * C.dz * p_hat
    chi_rest = chi - tilt * theta
    h1 += tilt * h2 - gram11 * theta - gram12 * chi_rest
    h2 -= gram12 * theta + gram22 * chi_rest
    mixed = root * norm_root * gram12
    matrix = 1 + root**2 * gram11, mixed, mixed, 1 + norm_root**2 * gram22
    phi, norm_phi = solve_pair(matrix, (root * h1, norm_root * h2))
    theta += root * phi  # Eq. (4.5)
    chi += tilt * root * phi + norm_root * norm_phi
    chi_hat = norm_phi / norm_root if norm_root > 0 else h2 - gram12 * root * phi
    m = E.h0 / pivot - share * theta - norm_share * chi  # Eq. (4.5)
    theta_hat = phi / root - tilt * chi_hat
    psi_hat = zeta * (p_hat - q * (C.uz * theta_hat + C.dz * chi_hat))
    special_hat = theta_hat, chi_hat, psi_hat
    psi = scale * multiply_block(C, special_hat)[2]
    return Signal(m, penalty * m, (theta, chi, psi), special_hat)


@summed
def signal_averages(
    t: OneGroup, rows: HalfLine | None, V1: float, V2: float, share: float, norm_share: float
) -> Signals:
    """Averages ``Signals`` with l = kappa mu_1 - share mu_0 and l' = d mu_0 / d c - norm_share
    mu_0, or l' = 0 without ``rows``.  Eqs. (4.5), (4.6), (16.10)"""
    g00 = g01 = g11 = h0 = h1 = p_hat = power = g02 = g12 = g22 = h2 = 0.0
    for n in range(len(t.weights)):
        wR = t.weights[n] / (1 + V1 * t.a[n] + V2 * t.b[n])
        mu0, h = t.mu0[n], t.h[n]
        loading = t.loading[n] - share * mu0
        g00 += wR * mu0 * mu0
        g01 += wR * mu0 * loading
        g11 += wR * loading * loading
        h0 += wR * mu0 * h
        h1 += wR * loading * h
        p_hat += wR * t.mu1g[n]
        power += wR * (h * h + t.spread[n])
        if rows is not None:
            norm = t.norm[n] - norm_share * mu0
            g02 += wR * norm * mu0
            g12 += wR * norm * loading
            g22 += wR * norm * norm
            h2 += wR * norm * h
    return Signals(g00, g01, g11, h0, h1, p_hat, power, g02, g12, g22, h2)


@compiled
def special_of_spike(t: OneGroup, rows: HalfLine | None, q: float) -> tuple[Any, Any]:
    """Covariance C_e and its derivative at q on u, delta and zeta, as a ``Block`` each."""
    if rows is None:
        return Block(t.c, 0.0, 0.0, 0.0, 0.0, t.c), Block(0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
    panel, x, dx = locate(rows, q)
    c = rows.series[:, panel]
    uu, ud, uz = chebyshev_series(c[1], x), chebyshev_series(c[2], x), chebyshev_series(c[3], x)
    dd, dz, zz = chebyshev_series(c[4], x), chebyshev_series(c[5], x), chebyshev_series(c[6], x)
    value = Block(uu[0], ud[0], uz[0], dd[0], dz[0], zz[0])
    return value, Block(dx * uu[1], dx * ud[1], dx * uz[1], dx * dd[1], dx * dz[1], dx * zz[1])


@compiled
def multiply_block(C: Block, nu: Triple) -> Triple:
    """Product C nu."""
    u, d, z = nu
    return (
        C.uu * u + C.ud * d + C.uz * z,
        C.ud * u + C.dd * d + C.dz * z,
        C.uz * u + C.dz * d + C.zz * z,
    )


@compiled
def block_form(C: Block, nu: Triple) -> float:
    """Quadratic form nu^T C nu."""
    u, d, z = multiply_block(C, nu)
    return nu[0] * u + nu[1] * d + nu[2] * z
