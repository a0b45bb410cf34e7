"""How many samples are asked for: their number n, or alpha = n/d."""

from typing import Any

from solvers.results import Array

from ..errors import InvalidArgument


def needs_alpha(alpha: Any, samples: Any) -> Any:
    """The alpha of a limit; refused are none, and a number of samples."""
    if samples is not None:
        allowed = "left out of a limit, whose dimension is infinite (give alpha, n/d)"
        raise InvalidArgument("samples", samples, allowed)
    if alpha is None:
        raise InvalidArgument("alpha", None, "given: readout samples over input dimension, n/d")
    return alpha


def asked(model: Any, alpha: Any, samples: Any) -> tuple[str, Any]:
    """Which of alpha and samples is given for the readout of a layer or of features, and its value.
    Features have no input dimension d, and so no alpha."""
    if not hasattr(model, "dimension") and alpha is not None:
        allowed = (
            "left out: given features have no dimension d (give samples, n; the penalty is lam, "
            "scikit-learn's alpha/p for p features)"
        )
        raise InvalidArgument("alpha", alpha, allowed)
    if alpha is not None and samples is not None:
        raise InvalidArgument("samples", samples, "left out where alpha is given: it is alpha d")
    if samples is not None:
        return "samples", samples
    if alpha is None:
        allowed = "given: the number n of the readout's samples"
        raise InvalidArgument("samples", None, allowed)
    return "alpha", alpha


def samples_of(model: Any, name: str, values: Array) -> Array:
    """Numbers of samples n, of alpha = n/d of a layer or of themselves."""
    return values * model.dimension if name == "alpha" else values
