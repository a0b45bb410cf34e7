"""Arrays of any library that follows the array standard: numpy's, torch's on a device.

Functions that take an array work in its own library, through its array namespace.
"""

from typing import Any

import numpy as np
from scipy.linalg.lapack import dpotrf, dpotri

from .results import Array


def namespace(x: Any) -> Any:
    """The functions of the array standard for arrays like ``x``."""
    if isinstance(x, np.ndarray):
        return np
    from array_api_compat import array_namespace

    return array_namespace(x)


def like(x: Array, other: Any) -> Any:
    """The host array ``x`` as an array of the library, and on the device, of ``other``."""
    if isinstance(other, np.ndarray):
        return x
    from array_api_compat import device

    return namespace(other).asarray(x, device=device(other))


def to_device(x: Array, device: str) -> Any:
    """A host array in float64 on ``device``; itself on "cpu"."""
    if device == "cpu":
        return x
    from array_api_compat import torch

    return torch.asarray(x, dtype=torch.float64, device=device)


def to_host(x: Any) -> Array:
    """The numbers of an array of any library as a numpy array; a tensor leaves its gradients."""
    if hasattr(x, "detach"):  # torch does not copy by itself, and has a bfloat16
        x = x.detach().cpu()
        x = x.double() if x.is_floating_point() else x
    return np.asarray(x)


def diagonal_view(matrix: Any) -> Any:
    """The diagonal of a square matrix in C order, as a view that can be written to.

    Examples
    --------
    >>> x = np.ones((2, 2))
    >>> diagonal_view(x)[:] += np.array([1.0, 2.0])
    >>> x.tolist()
    [[2.0, 1.0], [1.0, 3.0]]
    """
    flat = namespace(matrix).reshape(matrix, (-1,))
    return flat[:: matrix.shape[0] + 1]


def inverse(matrix: Any) -> Any:
    """The inverse of a symmetric positive matrix (p, p), by Cholesky's factor where arrays are
    numpy's or torch's; NaN where it is not positive.

    Examples
    --------
    >>> inverse(np.array([[2.0, 1.0], [1.0, 1.0]])).round(12).tolist()
    [[1.0, -1.0], [-1.0, 2.0]]
    """
    if hasattr(matrix, "cpu"):
        import torch

        factor, failed = torch.linalg.cholesky_ex(matrix)
        return torch.cholesky_inverse(factor) if not failed else torch.full_like(matrix, torch.nan)
    if not isinstance(matrix, np.ndarray):
        return namespace(matrix).linalg.inv(matrix)
    factor, failed = dpotrf(matrix, lower=1)
    if failed:
        return np.full_like(matrix, np.nan)
    lower, _ = dpotri(factor, lower=1, overwrite_c=1)  # above the diagonal there are zeros
    upper = np.triu(lower.T, 1)
    upper += lower
    return upper
