"""Arrays on the host (numpy) or on a device (torch): moved, converted, and activations of them.

The functions that take an array work in its own library, through its array namespace.
"""

from typing import Any

import numpy as np

from replica.problem import Activation
from solvers.arrays import like, namespace, to_device, to_host

__all__ = ["apply", "like", "namespace", "to_device", "to_host"]


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
