"""Arrays on the host (numpy) or on a device (torch): moved, converted, and activations of them.

The functions that take an array work in its own library, through its array namespace.
"""

from typing import Any

import numpy as np

from replica.errors import InvalidArgument
from replica.problem import Activation
from solvers.arrays import like, namespace, to_host
from solvers.results import Array

__all__ = ["apply", "check_device", "like", "namespace", "to_device", "to_host"]


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


def to_device(x: Array, device: str) -> Any:
    """A host array in float64 on ``device``; itself on "cpu"."""
    if device == "cpu":
        return x
    from array_api_compat import torch

    return torch.asarray(x, dtype=torch.float64, device=device)


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
