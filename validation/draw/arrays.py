"""Dense linear algebra of symmetric systems, on the host or on a device.

A numpy array is handled by LAPACK in place; an array of another library (a torch tensor on a
GPU) by the functions of its own array namespace.  Only lower triangles are read or written on
the host: matrices are in Fortran order, as LAPACK has them.
"""

from typing import Any

import numpy as np
from scipy.linalg import LinAlgError, blas, eigh, lapack

from replica.errors import InvalidArgument
from replica.problem import Activation
from solvers.results import Array

EPS = np.finfo(float).eps
SINGULAR = "larger for these features, whose Gram matrix is singular in double precision"


def check_device(device: str) -> str:
    """``device`` if arrays can be put there.

    Raises
    ------
    InvalidArgument
        If it is not "cpu", and torch or the device is missing.
    """
    if device == "cpu":
        return device
    try:
        import torch

        torch.empty(1, device=device)
    except ImportError:
        allowed = "cpu where torch is not installed (pip install 'replica-srf[gpu]')"
        raise InvalidArgument("device", device, allowed) from None
    except (RuntimeError, AssertionError) as error:
        allowed = f"cpu or a device that torch has ({str(error).splitlines()[0]})"
        raise InvalidArgument("device", device, allowed) from None
    return device


def namespace(x: Any) -> Any:
    """The functions of the array standard for arrays like ``x``."""
    if isinstance(x, np.ndarray):
        return np
    from array_api_compat import array_namespace

    return array_namespace(x)


def to_device(x: Array, device: str) -> Any:
    """A host array in float64 on ``device``; itself on "cpu"."""
    if device == "cpu":
        return x
    from array_api_compat import torch

    return torch.asarray(x, dtype=torch.float64, device=device)


def like(x: Array, other: Any) -> Any:
    """The host array ``x`` as an array of the library, and on the device, of ``other``."""
    if isinstance(other, np.ndarray):
        return x
    from array_api_compat import device

    return namespace(other).asarray(x, device=device(other))


def to_host(x: Any) -> Array:
    """The numbers of an array of any library as a numpy array."""
    return np.asarray(x.cpu() if hasattr(x, "cpu") else x)  # torch does not copy by itself


def apply(function: Activation, x: Any) -> Any:
    """sigma(x): by a function of the array's own library where there is one."""
    if isinstance(x, np.ndarray):
        return function(x)
    xp = namespace(x)
    if function.name in ("tanh", "sin"):
        return getattr(xp, function.name)(x)
    if function.name == "relu":
        return xp.where(x > 0, x, xp.zeros_like(x))
    if function.name == "erf" and hasattr(xp, "erf"):
        return xp.erf(x)
    return like(function(to_host(x)), x)


def zeros(size: int, other: Any) -> Any:
    """A square matrix of zeros, of the library and on the device of ``other``."""
    if isinstance(other, np.ndarray):
        return np.zeros((size, size), order="F")
    return like(np.zeros((size, size)), other)


def add_gram(total: Any, a: Any, scale: float, *, rows: bool) -> Any:
    """``total`` + scale a a^T (of the rows), or scale a^T a; ``total`` is used up."""
    if isinstance(a, np.ndarray):
        return blas.dsyrk(scale, a.T, beta=1, c=total, trans=rows, lower=1, overwrite_c=1)
    total += scale * (a @ a.T if rows else a.T @ a)
    return total


def subtract_outer(total: Any, x: Any, scale: float) -> Any:
    """``total`` - scale x x^T; ``total`` is used up."""
    if isinstance(x, np.ndarray):
        return blas.dsyr(-scale, x, a=total, lower=1, overwrite_a=1)
    total -= scale * x[:, None] * x[None, :]
    return total


def cholesky(gram: Any, shift: float, *, overwrite: bool = False) -> Any:
    """The lower factor of gram + shift I, for a symmetric ``gram`` >= 0.

    Raises
    ------
    InvalidArgument
        If the matrix is singular in double precision.
    """
    if not isinstance(gram, np.ndarray):
        return _device_cholesky(gram, shift)
    system = gram if overwrite else gram.copy(order="F")
    diagonal = np.einsum("ii->i", system)
    diagonal += shift
    # the upper triangle holds zeros
    norm = float(np.sqrt(2 * np.linalg.norm(system) ** 2 - diagonal @ diagonal))
    factor, failed = lapack.dpotrf(system, lower=1, clean=0, overwrite_a=1)
    # The test scipy.linalg.solve makes: beyond it no digit of the solution is certain.
    if failed or not lapack.dpocon(factor, norm, uplo="L")[0] > EPS:
        raise InvalidArgument("lam", float(shift), SINGULAR)
    return factor


def _device_cholesky(gram: Any, shift: float) -> Any:
    xp = namespace(gram)
    try:
        factor = xp.linalg.cholesky(gram + like(shift * np.eye(gram.shape[0]), gram))
    except (RuntimeError, LinAlgError):  # torch's own error is a RuntimeError
        raise InvalidArgument("lam", shift, SINGULAR) from None
    diagonal = to_host(xp.linalg.diagonal(factor))
    if not diagonal.min() ** 2 > EPS * diagonal.max() ** 2:
        raise InvalidArgument("lam", shift, SINGULAR)
    return factor


def solve_lower(factor: Any, b: Any, *, transposed: bool) -> Any:
    """L^-1 b, or L^-T b, (n, k)."""
    if isinstance(factor, np.ndarray):
        return blas.dtrsm(1, factor, b, lower=1, trans_a=transposed)
    xp = namespace(factor)
    matrix = factor.T if transposed else factor
    if hasattr(xp.linalg, "solve_triangular"):  # torch's, not of the array standard
        return xp.linalg.solve_triangular(matrix, b, upper=transposed)
    return xp.linalg.solve(matrix, b)


def eigen(gram: Any) -> tuple[Array, Any]:
    """Eigenvalues, on the host, and eigenvectors of a symmetric matrix >= 0; it is used up."""
    if isinstance(gram, np.ndarray):
        values, vectors = eigh(gram, lower=True, driver="evd", overwrite_a=True, check_finite=False)
    else:
        values, vectors = namespace(gram).linalg.eigh(gram)
    return np.maximum(to_host(values), 0.0), vectors


def check_shifts(values: Array, shifts: Array) -> None:
    """Refuse a shift too small beside the eigenvalues it is added to.

    Raises
    ------
    InvalidArgument
    """
    for shift in shifts:
        if not values.min() + shift > EPS * (values.max() + shift):
            raise InvalidArgument("lam", float(shift), SINGULAR)


def copy(a: Any) -> Any:
    """A copy of a matrix, in the order of this module."""
    return a.copy(order="F") if isinstance(a, np.ndarray) else namespace(a).asarray(a, copy=True)
