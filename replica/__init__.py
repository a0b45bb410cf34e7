"""Exact high-dimensional theory of two-layer networks after giant gradient steps.

Problem objects (``GradientStep``, ``SpikedRandomFeatures``), or weights and features
of your own (``FirstLayer``, ``FeatureSample``), go in; learning curves come out (``solve``,
``learning_curve``), with an account of how far they can be trusted: of problems in their limit to
machine precision.
"""

from importlib import import_module as _import_module
from typing import TYPE_CHECKING as _TYPE_CHECKING
from warnings import warn as _warn

from . import interrupts as _interrupts  # noqa: F401, before all that takes time to load

# isort: split
from solvers.results import ConvergenceError

from .convex import Loss, loss
from .errors import InvalidArgument
from .errors import meant as _meant
from .given import FeatureMoments, FeatureSample, FirstLayer
from .observables import (
    Calibration,
    Solution,
    best_bounds,
    bounds,
    calibration,
    gradient,
    learnability,
    learned_function,
    learning_curve,
    optimal_eta,
    optimal_lambda,
    sample_allocation,
    samples_needed,
    solve,
)
from .problem import (
    Activation,
    GaussianMixture,
    MultiIndex,
    SpikedRandomFeatures,
    activation,
    hermite,
)
from .spectra import spectrum
from .steps import AfterStep, GradientStep, Staircase, after_each_step, staircase

__version__ = "0.2.0"
__all__ = [
    "Activation",
    "AfterStep",
    "Calibration",
    "ConvergenceError",
    "FeatureMoments",
    "FeatureSample",
    "FirstLayer",
    "GaussianMixture",
    "GradientStep",
    "InvalidArgument",
    "Loss",
    "MultiIndex",
    "Solution",
    "SpikedRandomFeatures",
    "Staircase",
    "activation",
    "after_each_step",
    "best_bounds",
    "bounds",
    "calibration",
    "gradient",
    "hermite",
    "learnability",
    "learned_function",
    "learning_curve",
    "loss",
    "optimal_eta",
    "optimal_lambda",
    "sample_allocation",
    "samples_needed",
    "solve",
    "spectrum",
    "staircase",
]


if not _TYPE_CHECKING:  # to a type checker it would say that every name is there

    def __getattr__(name: str) -> object:
        """Modules that need matplotlib, mpmath or scikit-learn, imported where first named."""
        if name == "ReadoutSolution":
            _warn("ReadoutSolution is now Solution", FutureWarning, stacklevel=2)
            return Solution
        if name in ("plotting", "reference", "sklearn"):
            return _import_module(f"{__name__}.{name}")
        if name == "Network":
            raise AttributeError("replica.Network is gone: take step.network(beta=...)")
        if name.startswith("plot_"):
            raise AttributeError(
                f"module {__name__!r} has no attribute {name!r}: it is {__name__}.plotting.{name}"
            )
        close = f": did you mean {one}?" if (one := _meant(name, __all__)) in __all__ else ""
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}{close}")


def __dir__() -> list[str]:
    """Names that completion offers: the public ones."""
    return [*__all__, "plotting", "reference"]
