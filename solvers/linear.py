"""Linear algebra: small systems, roots of singular matrices, and leading eigenvectors."""

from collections.abc import Callable
from typing import Any

import numpy as np

from .arrays import like, namespace, to_host
from .results import Array


def solve_rows(matrix: Array, rhs: Array) -> Array:
    """Solve a stack of small systems, ``matrix`` (R, k, k) and ``rhs`` (R, k), for x (R, k).

    A singular matrix gives NaN or infinities, not an exception.  Two unknowns, the usual case,
    are solved by Cramer's rule, which is ten times faster than a call of LAPACK for each row.

    Examples
    --------
    >>> solve_rows(np.array([[[2.0, 0.0], [1.0, 1.0]]]), np.array([[2.0, 3.0]])).tolist()
    [[1.0, 2.0]]
    """
    if rhs.shape[1] == 2:
        a, b = matrix[:, 0, 0], matrix[:, 0, 1]
        c, d = matrix[:, 1, 0], matrix[:, 1, 1]
        rhs1, rhs2 = rhs[:, 0], rhs[:, 1]
        row_solutions = np.empty_like(rhs, np.result_type(matrix, rhs))
        with np.errstate(divide="ignore", invalid="ignore"):
            row_solutions[:, 0] = d * rhs1 - b * rhs2
            row_solutions[:, 1] = a * rhs2 - c * rhs1
            row_solutions /= (a * d - b * c)[:, None]
        return row_solutions
    try:
        return np.linalg.solve(matrix, rhs[..., None])[..., 0]
    except np.linalg.LinAlgError:  # some matrix is singular: solve each alone
        if len(rhs) == 1:
            return np.full_like(rhs, np.nan)
        return np.concatenate(
            [solve_rows(matrix[row : row + 1], rhs[row : row + 1]) for row in range(len(rhs))]
        )


def least_squares(design: Array, target: Array) -> Array:
    """Least-norm minimisers x (P, n) of |target - design x|, for ``design`` (P, N, n) and
    ``target`` (P, N).

    The columns are scaled to norm 1 first, so that the least norm does not depend on their units.
    Columns count as dependent where a singular value is below 1e-10 of the largest.  A system that
    contains NaN has the solution NaN.  QR and SVD keep the digits of nearly dependent columns, half
    of which the Gram matrix would lose.

    Examples
    --------
    >>> least_squares(np.array([[[1.0], [1.0]]]), np.array([[1.0, 3.0]])).round(12).tolist()
    [[2.0]]
    """
    column_norms = np.linalg.norm(design, axis=1)
    column_norms = np.where(column_norms > 0, column_norms, 1.0)
    scaled_columns = design / column_norms[:, None]
    unknowns = design.shape[2]
    augmented = np.concatenate([scaled_columns, target[..., None]], axis=2)
    finite_system = np.isfinite(augmented).all(axis=(1, 2))
    R = np.asarray(np.linalg.qr(np.where(finite_system[:, None, None], augmented, 0.0), mode="r"))
    triangle = R[:, :unknowns, :unknowns]
    # nothing beside columns of length 1, but LAPACK's singular values may become NaN of it
    triangle = np.where(np.abs(triangle) < 1e-30, 0.0, triangle)
    left_vectors, sigma, Vt = np.linalg.svd(triangle, full_matrices=False)
    kept_singular_values = np.where(sigma > 1e-10 * sigma[:, :1], sigma, np.inf)
    projection = (R[:, None, :unknowns, unknowns] @ left_vectors)[:, 0] / kept_singular_values
    scaled_solution = np.where(finite_system[:, None], (projection[:, None] @ Vt)[:, 0], np.nan)
    return np.asarray(scaled_solution / column_norms)


def triangular_root(matrix: Array, size: float = 1.0) -> Array:
    """Cholesky factor L (T, K') with L L^T = ``matrix``, which may be singular.

    A pivot below the rounding of its diagonal entry, or of ``size``, has no column.

    Examples
    --------
    >>> triangular_root(np.array([[4.0, 2.0], [2.0, 1.0]])).tolist()
    [[2.0], [1.0]]
    """
    remaining_matrix, root_columns = np.array(matrix), []
    smallest_pivot = 1e-13 * np.maximum(size, np.diagonal(remaining_matrix))
    for t in range(len(remaining_matrix)):
        if remaining_matrix[t, t] > smallest_pivot[t]:
            root_columns.append(remaining_matrix[:, t] / np.sqrt(remaining_matrix[t, t]))
            remaining_matrix = remaining_matrix - np.outer(root_columns[-1], root_columns[-1])
    return np.stack(root_columns, axis=1) if root_columns else np.empty((len(remaining_matrix), 0))


def leading_eigenvectors(
    apply: Callable[[Any], Any], start: Any, rounds: int = 10
) -> tuple[Array, Any]:
    """Leading eigenvalues (k,), in decreasing order, and eigenvectors (n, k) of a symmetric
    positive matrix given as a map ``apply``, by subspace iteration from ``start`` (n, k).

    Eigenvalues that are close to each other come out some percent too small.

    Examples
    --------
    >>> start = np.random.default_rng(0).standard_normal((9, 3))
    >>> values, vectors = leading_eigenvectors(lambda x: np.arange(1, 10)[:, None] ** 4 * x, start)
    >>> values.round().tolist()
    [6561.0, 4096.0, 2401.0]
    """
    qr_decompose = namespace(start).linalg.qr
    eigenvector_basis = qr_decompose(start)[0]
    for _ in range(rounds):
        eigenvector_basis = qr_decompose(apply(eigenvector_basis))[0]
    eigenvalues, rotation = np.linalg.eigh(to_host(eigenvector_basis.T @ apply(eigenvector_basis)))
    return eigenvalues[::-1], eigenvector_basis @ like(rotation[:, ::-1].copy(), eigenvector_basis)
