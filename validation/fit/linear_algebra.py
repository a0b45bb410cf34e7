"""Dense linear algebra of symmetric systems, on the host or on a device.

A numpy array is handled by LAPACK in place; an array of another library (a torch tensor on a
GPU) by the functions of its own array namespace.  Only lower triangles are read or written on
the host: matrices are in Fortran order, as LAPACK has them.
"""

from typing import Any

import numpy as np
from scipy.linalg import LinAlgError, blas, lapack

from replica.errors import InvalidArgument

from ..draws import arrays

EPS = np.finfo(float).eps  # a system whose reciprocal condition is below has no certain digit
SINGULAR = "larger for these features, whose Gram matrix is singular in double precision"


def zeros(size: int, other: Any) -> Any:
    """A square matrix of zeros, of the library and on the device of ``other``."""
    if isinstance(other, np.ndarray):
        return np.zeros((size, size), order="F")
    return arrays.like(np.zeros((size, size)), other)


def add_gram(total: Any, a: Any, scale: float, *, rows: bool) -> Any:
    """``total`` + scale a a^T (``rows``), or + scale a^T a; ``total`` is overwritten."""
    if isinstance(a, np.ndarray):
        return blas.dsyrk(scale, a.T, beta=1, c=total, trans=rows, lower=1, overwrite_c=1)
    total += scale * (a @ a.T if rows else a.T @ a)
    return total


def subtract_outer(total: Any, x: Any, scale: float) -> Any:
    """``total`` - scale x x^T; ``total`` is overwritten."""
    if isinstance(x, np.ndarray):
        return blas.dsyr(-scale, x, a=total, lower=1, overwrite_a=1)
    total -= scale * x[:, None] * x[None, :]
    return total


def cholesky(gram: Any, shift: float, *, overwrite: bool = False) -> Any:
    """The lower factor of gram + shift I, for a symmetric ``gram`` >= 0, or InvalidArgument if that
    is singular in double precision."""
    if not isinstance(gram, np.ndarray):
        return _device_cholesky(gram, shift)
    system = gram if overwrite else gram.copy(order="F")
    diagonal = np.einsum("ii->i", system)
    diagonal += shift
    # the upper triangle holds zeros
    norm = float(np.sqrt(2 * np.linalg.norm(system) ** 2 - diagonal @ diagonal))
    factor, failed = lapack.dpotrf(system, lower=1, clean=0, overwrite_a=1)
    # the test that scipy.linalg.solve makes
    if failed or not lapack.dpocon(factor, norm, uplo="L")[0] > EPS:
        raise InvalidArgument("lam", float(shift), SINGULAR)
    return factor


def _device_cholesky(gram: Any, shift: float) -> Any:
    """``cholesky`` by the array's own library; the factor's diagonal bounds the condition."""
    xp = arrays.namespace(gram)
    try:
        factor = xp.linalg.cholesky(gram + arrays.like(shift * np.eye(gram.shape[0]), gram))
    except (RuntimeError, LinAlgError):  # torch's own error is a RuntimeError
        raise InvalidArgument("lam", shift, SINGULAR) from None
    diagonal = arrays.to_host(xp.linalg.diagonal(factor))
    if not diagonal.min() ** 2 > EPS * diagonal.max() ** 2:
        raise InvalidArgument("lam", shift, SINGULAR)
    return factor


def solve_lower(factor: Any, b: Any, *, transposed: bool) -> Any:
    """L^-1 b, or L^-T b, (n, k)."""
    if isinstance(factor, np.ndarray):
        return blas.dtrsm(1, factor, b, lower=1, trans_a=transposed)
    xp = arrays.namespace(factor)
    matrix = factor.T if transposed else factor
    if hasattr(xp.linalg, "solve_triangular"):  # torch's, not of the array standard
        return xp.linalg.solve_triangular(matrix, b, upper=transposed)
    return xp.linalg.solve(matrix, b)


def copy(a: Any) -> Any:
    """A copy of a matrix, in the order of this module."""
    if isinstance(a, np.ndarray):
        return a.copy(order="F")
    return arrays.namespace(a).asarray(a, copy=True)
