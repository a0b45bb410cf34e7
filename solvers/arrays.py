"""Arrays of any library that follows the array API standard, such as numpy or torch on a device.

A function that takes an array works in the library of that array, through its array namespace.
"""

from typing import Any

import numpy as np
from scipy.linalg.lapack import dpotrf, dpotri

from .results import Array


def namespace(array: Any) -> Any:
    """Array namespace of ``array``: the functions of the array API standard in its library."""
    if isinstance(array, np.ndarray):
        return np
    from array_api_compat import array_namespace

    return array_namespace(array)


def like(host_array: Array, library_array: Any) -> Any:
    """Numpy array ``host_array`` converted to the library and the device of ``library_array``."""
    if isinstance(library_array, np.ndarray):
        return host_array
    from array_api_compat import device

    return namespace(library_array).asarray(host_array, device=device(library_array))


def to_device(host_array: Array, device: str) -> Any:
    """Numpy array ``host_array`` moved to ``device`` in float64; unchanged for "cpu"."""
    if device == "cpu":
        return host_array
    from array_api_compat import torch

    return torch.asarray(host_array, dtype=torch.float64, device=device)


def to_host(device_array: Any) -> Array:
    """Array of any library converted to a numpy array; a tensor leaves its gradients."""
    if hasattr(device_array, "detach"):  # torch does not copy by itself, and has a bfloat16
        device_array = device_array.detach().cpu()
        device_array = device_array.double() if device_array.is_floating_point() else device_array
    return np.asarray(device_array)


def diagonal_view(matrix: Any) -> Any:
    """Writable view of the diagonal of a square matrix in C order.

    Examples
    --------
    >>> x = np.ones((2, 2))
    >>> diagonal_view(x)[:] += np.array([1.0, 2.0])
    >>> x.tolist()
    [[2.0, 1.0], [1.0, 3.0]]
    """
    flat_matrix = namespace(matrix).reshape(matrix, (-1,))
    return flat_matrix[:: matrix.shape[0] + 1]


def inverse(matrix: Any) -> Any:
    """Inverse of a symmetric positive definite matrix (p, p); NaN if it is not positive definite.

    For arrays of numpy and torch it is computed from the Cholesky factor.

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
    lower_inverse, _ = dpotri(factor, lower=1, overwrite_c=1)  # entries above the diagonal are zero
    whole_inverse = np.triu(lower_inverse.T, 1)
    whole_inverse += lower_inverse
    return whole_inverse
