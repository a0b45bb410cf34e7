"""Hermite coefficients of an activation, and the polynomial that stands for it.

For data of spread n^beta_s, features sigma(x) of pre-activations x = b z + (spikes) act like

    sigma_l(x) = sum_{j<l} (h_j / j!) He_j(x / b) + h_l* z,  z ~ N(0, 1) fresh,         (12.1)
    h_j = E He_j(z) sigma(b z),  (h_l*)^2 = E sigma(b z)^2 - sum_{j<l} h_j^2 / j!,

where the order l is the one with (l-2)/(l-1) < beta_s < (l-1)/l: polynomials of degree below l.
He_j are the probabilists' polynomials, b^2 is the variance of the bulk of x.  Coefficients are
computed with He_j / sqrt(j!), of unit norm, and the residual as a variance, so that degree 20 has
as many digits as degree 2.
"""

import warnings
from dataclasses import dataclass

import numpy as np
from numpy.polynomial import hermite_e
from numpy.typing import ArrayLike
from scipy.special import factorial

from replica.errors import InvalidArgument
from replica.problem import FINITE, Activation, activation, number
from solvers.quadrature import expectation
from solvers.results import Array
from solvers.rules import Rule

MAX_ORDER = 21  # up to degree 20 coefficients keep their digits
ON_BOUNDARY = 1e-9  # how near a boundary a data spread counts as being on it


class EquivalenceWarning(UserWarning):
    """The data spread is not inside the open interval in which the equivalence is proved."""


@dataclass(frozen=True, eq=False)
class HermiteExpansion:
    """The polynomial part of (12.1) and the size of its noise.

    Attributes
    ----------
    activation : Activation
        sigma.
    b : float
        Standard deviation of the bulk of the pre-activation.
    coefficients : (l,)
        h_j, of degrees 0 to l - 1.
    residual : float
        h_l*, the standard deviation of what the polynomial leaves of sigma(b z).
    quadrature_error : float
        Change of the coefficients at the last refinement, relative to the norm of sigma(b z).
    """

    activation: Activation
    b: float
    coefficients: Array
    residual: float
    quadrature_error: float

    @property
    def order(self) -> int:
        """l: the polynomial has degree l - 1."""
        return len(self.coefficients)

    def polynomial(self, x: ArrayLike) -> Array:
        """sum_{j<l} (h_j / j!) He_j(x / b), elementwise."""
        series = self.coefficients / factorial(np.arange(self.order))
        return np.asarray(hermite_e.hermeval(np.asarray(x, dtype=float) / self.b, series))

    @property
    def student(self) -> Activation:
        """The polynomial as an activation: of features that have noise of (h_l*)^2 besides."""
        return Activation(self.polynomial, name=f"{self.activation.name} of order {self.order}")


def expand(student: str | Activation, *, order: int, b: float = 1.0) -> HermiteExpansion:
    """The Hermite expansion of an activation.  Eq. (12.1)

    Parameters
    ----------
    student : str or Activation
        sigma.
    order : int
        l, from 1 to 21: polynomials of degree below it.
    b : float
        Standard deviation of the bulk of the pre-activation, above 0.

    Returns
    -------
    HermiteExpansion

    Raises
    ------
    InvalidArgument
        If an argument is out of range.
    QuadratureError
        If a coefficient does not settle, as where kinks are not declared.

    Examples
    --------
    >>> from validation.mixtures import expand
    >>> relu = expand("relu", order=4)
    >>> (relu.coefficients.round(6) + 0.0).tolist(), round(relu.residual, 6)
    ([0.398942, 0.5, 0.398942, 0.0], 0.106149)
    """
    sigma = activation(student)
    if isinstance(order, bool) or order not in range(1, MAX_ORDER + 1):
        raise InvalidArgument("order", order, f"an integer from 1 to {MAX_ORDER}")
    b = number("b", b, 0, FINITE, "a finite number above 0", open_low=True)

    norms = np.sqrt(factorial(np.arange(order)))

    def compute(rule: Rule) -> tuple[Array, Array]:
        """Coefficients h_j / sqrt(j!) and (h_l*)^2 by one rule, and the sizes to which their errors
        are relative."""
        z, w = rule
        f = sigma(b * z)
        basis = hermite_e.hermevander(z, order - 1).T / norms[:, None]
        unit = basis @ (w * f)
        rest = f - unit @ basis
        power = max(float(w @ f**2), 1e-300)
        scale = np.append(np.full(order, np.sqrt(power)), power)
        return np.append(unit, w @ rest**2), scale

    # of the rules for smooth functions, the first is exact for polynomials
    rules = "gauss-legendre" if sigma.kinks else "gauss-hermite, trapezoid, gauss-legendre"
    breaks = np.asarray(sigma.kinks) / b
    integral = expectation(compute, breaks, rule=rules, tol=1e-13)
    h = integral.value[:-1] * norms
    return HermiteExpansion(sigma, b, h, float(np.sqrt(integral.value[-1])), integral.error)


def proved(data_spread: float, *, largest: int = MAX_ORDER) -> bool:
    """True if a data spread is inside the open interval of some order, up to the ``largest``.

    Examples
    --------
    >>> from validation.mixtures import proved
    >>> proved(0.74), proved(0.74, largest=3), proved(0.75), proved(0.0), proved(1.0)
    (True, False, False, False, False)
    """
    beta = float(data_spread)
    if not 0 < beta < 1 - ON_BOUNDARY:
        return False
    order = 1 / (1 - beta)  # beta = (l-1)/l  <=>  l = 1/(1-beta)
    nearest = round(order)
    return order <= largest and abs(beta - (nearest - 1) / nearest) > ON_BOUNDARY


def needed_order(data_spread: float, *, largest: int = MAX_ORDER) -> int:
    """The order l with (l-2)/(l-1) < beta_s < (l-1)/l, that a data spread needs.

    It suffices in the limit; at finite size, or for an activation whose coefficient h_{l-1} is
    0, a lower one may do.

    Parameters
    ----------
    data_spread : float
        beta_s, from 0 to 1.
    largest : int
        A larger order is cut down to this one.

    Raises
    ------
    InvalidArgument
        If the data spread is outside [0, 1].

    Warns
    -----
    EquivalenceWarning
        If the data spread is on a boundary (0, 1/2, 2/3, 3/4, ..., 1) or needs an order above
        ``largest``: no equivalence is then proved for the order that is returned.

    Examples
    --------
    >>> from validation.mixtures import needed_order
    >>> [needed_order(beta) for beta in (0.3, 0.6, 0.74, 0.76)]
    [2, 3, 4, 5]
    """
    beta = float(data_spread)
    if not 0 <= beta <= 1:
        raise InvalidArgument("data_spread", data_spread, "between 0 and 1")
    if not proved(beta, largest=largest):
        warnings.warn(
            f"data_spread = {beta:g} is inside no interval (l-2)/(l-1) < beta_s < (l-1)/l of an "
            f"order l up to {largest}: the equivalence with a Hermite model is not proved there",
            EquivalenceWarning,
            stacklevel=2,
        )
    return (
        largest if beta == 1 else min(largest, max(2, int(np.ceil(1 / (1 - beta) - ON_BOUNDARY))))
    )
