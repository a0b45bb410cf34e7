"""Many small linear systems at once: square ones, and least-norm solutions of singular ones.

Systems may be complex where only the first order of the imaginary part matters: a complex step.
"""

import numpy as np

from .results import Array


def solve_rows(matrix: Array, rhs: Array) -> Array:
    """Solve a stack of small systems, (R, k, k) and (R, k).

    A singular one gives NaN or infinities, not an exception.  Two unknowns, the usual case,
    are solved by Cramer's rule: ten times faster than a call of LAPACK for each row.
    """
    if rhs.shape[1] == 2:
        a, b, c, d = matrix[:, 0, 0], matrix[:, 0, 1], matrix[:, 1, 0], matrix[:, 1, 1]
        u, v = rhs[:, 0], rhs[:, 1]
        found = np.empty_like(rhs, np.result_type(matrix, rhs))
        with np.errstate(divide="ignore", invalid="ignore"):
            found[:, 0] = d * u - b * v
            found[:, 1] = a * v - c * u
            found /= (a * d - b * c)[:, None]
        return found
    try:
        return np.linalg.solve(matrix, rhs[..., None])[..., 0]
    except np.linalg.LinAlgError:
        if len(rhs) == 1:
            return np.full_like(rhs, np.nan)
        return np.concatenate(
            [solve_rows(matrix[i : i + 1], rhs[i : i + 1]) for i in range(len(rhs))]
        )


def least_norm(gram: Array, moment: Array) -> Array:
    """Least-norm solutions of positive semidefinite systems (P, n, n), scaled to unit diagonal."""
    scale = np.sqrt(np.diagonal(gram, axis1=1, axis2=2).real)
    scale = np.where(scale > 0, scale, 1.0)
    scaled = gram / (scale[:, :, None] * scale[:, None, :])
    target = (moment / scale)[..., None]
    inverse = np.linalg.pinv(scaled.real, rcond=1e-15, hermitian=True)
    solution = inverse @ target.real
    # One refinement: the residual to rounding, and the whole of a complex step.
    solution = solution + inverse @ (target - scaled @ solution)
    return np.asarray(solution[..., 0] / scale)


def least_squares(design: Array, target: Array) -> Array:
    """Least-norm minimisers (P, n) of |target - design x|, from (P, N, n) and (P, N).

    Columns count as dependent where what is left of one, relative to its own size, is below
    1e-10.
    """
    scale = np.linalg.norm(design.real, axis=1)
    scale = np.where(scale > 0, scale, 1.0)
    scaled = design / scale[:, None]
    U, sigma, Vt = np.linalg.svd(scaled.real, full_matrices=False)
    kept = np.where(sigma > 1e-10 * sigma[:, :1], sigma, np.inf)
    along = (target.real[:, None] @ U)[:, 0] / kept
    solution = (along[:, None] @ Vt)[:, 0]
    if np.iscomplexobj(scaled):  # a complex step: its change of the normal equations
        gap = target - (scaled @ solution[..., None])[..., 0]
        change = (gap[:, None] @ scaled)[:, 0].imag
        along = (Vt @ change[..., None])[..., 0] / kept**2
        solution = solution + 1j * (along[:, None] @ Vt)[:, 0]
    return np.asarray(solution / scale)
