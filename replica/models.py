"""Problem objects: what is trained, on what.  Frozen, and checked when they are made.

``GradientStep`` is a network at initialisation with one giant step ahead of it;
``SpikedRandomFeatures`` (sRF) is what THEORY 2 turns it into: first-layer rows
sqrt(c) w_i + r u, w_i uniform on the sphere, u a unit vector with u . w* = gamma.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from .activations import Activation
from .errors import InvalidArgument
from .named import activation


def number(
    name: str, value: Any, low: float, high: float, allowed: str, *, open_low: bool = False
) -> float:
    """``value`` as a float in [low, high] (or (low, high]), or InvalidArgument."""
    try:
        x = float(value)
    except (TypeError, ValueError):
        raise InvalidArgument(name, value, allowed) from None
    if not low <= x <= high or (open_low and x == low):  # catches NaN too
        raise InvalidArgument(name, value, allowed)
    return x


FINITE = np.finfo(float).max


@dataclass(frozen=True, kw_only=True)
class SpikedRandomFeatures:
    """Spiked random features: the network after its step, with fresh readout data to fit.

    Parameters
    ----------
    student, target : str, callable or Activation
        sigma and sigma_*; see :func:`replica.activation`.
    r : float
        Length of the spike in every row (0: random features).
    c : float
        Bulk variance |w_i|^2 - r^2, positive.
    gamma : float in [-1, 1]
        Cosine between the spike and the target direction.
    beta : float
        Width over input dimension, p/d.
    noise : float
        Variance Delta of the label noise.

    Raises
    ------
    InvalidArgument

    Examples
    --------
    >>> SpikedRandomFeatures(student="tanh", target="sin", r=1.0, c=1.0, gamma=0.9).beta
    1.0
    """

    student: Activation | Any
    target: Activation | Any
    r: float
    c: float
    gamma: float
    beta: float = 1.0
    noise: float = 0.0

    def __post_init__(self) -> None:
        checked = {
            "student": activation(self.student, "student"),
            "target": activation(self.target, "target"),
            "r": number("r", self.r, -FINITE, FINITE, "a finite number"),
            "c": number("c", self.c, 0, FINITE, "positive (a variance)", open_low=True),
            "gamma": number("gamma", self.gamma, -1, 1, "a cosine in [-1, 1]"),
            "beta": number("beta", self.beta, 0, FINITE, "positive (p/d)", open_low=True),
            "noise": number("noise", self.noise, 0, FINITE, "0 or more (a variance)"),
        }
        for name, value in checked.items():
            object.__setattr__(self, name, value)


@dataclass(frozen=True, kw_only=True)
class GradientStep:
    """A network with uniform readout before one giant gradient step.  Eq. (1.1)

    Parameters
    ----------
    student, target : str, callable or Activation
        sigma and sigma_*; see :func:`replica.activation`.
    alpha0 : float
        Samples of the step over input dimension, n0/d; ``inf`` for the population gradient.
    eta : float
        Learning rate over width, eta~ = eta/p; 0 leaves random features.
    noise : float
        Variance Delta of the label noise, in the step and in the readout's data.

    Raises
    ------
    InvalidArgument

    Examples
    --------
    >>> step = GradientStep(student="tanh", target="sin", alpha0=20, eta=3.0)
    >>> model = step.srf(beta=1.0)
    >>> round(model.r, 7), round(model.c, 7), round(model.gamma, 7)
    (1.1340555, 1.0189732, 0.9718544)
    """

    student: Activation | Any
    target: Activation | Any
    alpha0: float
    eta: float
    noise: float = 0.0

    def __post_init__(self) -> None:
        checked = {
            "student": activation(self.student, "student"),
            "target": activation(self.target, "target"),
            "alpha0": number(
                "alpha0", self.alpha0, 0, np.inf, "positive or inf (n0/d)", open_low=True
            ),
            "eta": number("eta", self.eta, 0, FINITE, "0 or more"),
            "noise": number("noise", self.noise, 0, FINITE, "0 or more (a variance)"),
        }
        for name, value in checked.items():
            object.__setattr__(self, name, value)

    def srf(self, *, beta: float) -> SpikedRandomFeatures:
        """The spiked random feature model of width p = beta d after the step.  Eqs. (2.1)-(2.3)

        Raises
        ------
        InvalidArgument
            If beta is not positive, or the student has a jump (no gradient).
        """
        from .gradient_step import spiked_parameters

        r, c, gamma = spiked_parameters(self)
        return SpikedRandomFeatures(
            student=self.student,
            target=self.target,
            r=r,
            c=c,
            gamma=gamma,
            beta=beta,
            noise=self.noise,
        )
