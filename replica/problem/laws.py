"""Laws of a first-step readout or of a bias: values and shares, or a distribution of scipy.

A continuous law is replaced by its Gauss rule in t = arcsinh(value / scale): n values and shares
that integrate polynomials in t up to degree 2n - 1 exactly.  A step changes rows by readout / scale
of their length, so averages vary with the readout on that scale near 0, and slowly far from it; in
t they are smooth.  12 values of t are as accurate as 48 Gauss-Hermite nodes.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from solvers.results import Array
from solvers.rules import Rule, composite_legendre, gauss_rule_of

from ..errors import InvalidArgument, hint
from .checks import MAX_NUMBER, plain_array

# Named laws: all 1, +-1, N(0, 1), and the uniform law on an interval with mean 0 and variance 1.
READOUT_LAWS = ("equal", "rademacher", "gaussian", "box")
NAMED_LAWS = "equal (every value 1), rademacher, gaussian or box (continuous on an interval)"
DISCRETE_LAWS = {"equal": ((1.0,), (1.0,)), "rademacher": ((-1.0, 1.0), (0.5, 0.5))}


@dataclass(frozen=True)
class Law:
    """A law on the real line.

    Attributes
    ----------
    values, fractions : tuple of float
        The values of a discrete law and their shares; empty for a continuous one.
    continuous : str or frozen scipy.stats distribution, optional
        The continuous law.
    """

    values: tuple[float, ...] = ()
    fractions: tuple[float, ...] = ()
    continuous: Any = None

    def discretise(self, count: int, scale: float = 1.0) -> tuple[Array, Array]:
        """Values and shares: all values of a discrete law, ``count`` (even) of a continuous one.

        The rule is accurate for functions that vary on the ``scale`` near 0, and slowly far away.
        """
        if self.continuous is None:
            return np.array(self.values), np.array(self.fractions)
        t, law_shares = gauss_rule_of(self._fine_rule(scale), count)
        if np.abs(t + t[::-1]).max() <= 1e-9 * np.abs(t).max():  # a symmetric law stays so exactly
            t, law_shares = (t - t[::-1]) / 2, (law_shares + law_shares[::-1]) / 2
        return scale * np.sinh(t), law_shares

    def _fine_rule(self, scale: float) -> Rule:
        """Fine rule for a continuous law in t, on short panels between quantiles.

        The density may be infinite at an end or have a kink in the middle.
        """
        scipy_law = self.distribution
        panel_logits = np.arange(41.0)  # the truncated tails have probability 4e-18 each
        law_quantiles = np.concatenate(
            [scipy_law.ppf(expit(-panel_logits[::-1])), scipy_law.isf(expit(-panel_logits[1:]))]
        )
        edges = np.arcsinh(law_quantiles / scale)
        edges = np.sort(np.append(edges, np.linspace(edges[0], edges[-1], len(panel_logits))))
        law_nodes, law_weights = (array.ravel() for array in composite_legendre(16, edges))
        law_density = np.asarray(scipy_law.pdf(scale * np.sinh(law_nodes)), dtype=float)
        law_density[np.isinf(law_density)] = 0.0  # at nodes that round to an end
        law_weights = law_weights * law_density * np.cosh(law_nodes)
        return Rule(law_nodes, law_weights / law_weights.sum())

    @property
    def mean(self) -> float:
        """Mean of the law."""
        if self.continuous is None:
            return float(np.array(self.values) @ self.fractions)
        return float(self.distribution.mean())

    @property
    def distribution(self) -> Any:
        """The continuous law as a frozen scipy.stats distribution."""
        import scipy.stats

        if self.continuous == "gaussian":
            return scipy.stats.norm()
        if self.continuous == "box":
            return scipy.stats.uniform(-np.sqrt(3), 2 * np.sqrt(3))
        return self.continuous


def law(name: str, spec: Any) -> Law:
    """The law of a readout or a bias specified by ``spec``.

    Parameters
    ----------
    name : str
        Name of the argument, for messages.
    spec : str, float, sequence or scipy.stats distribution
        A name, a value or values with equal shares, or (values, shares).

    Raises
    ------
    InvalidArgument

    Examples
    --------
    >>> from replica.problem import law
    >>> law("readout", [-1, 1]).fractions
    (0.5, 0.5)
    >>> values, shares = law("readout", "gaussian").discretise(24)
    >>> bool(abs(shares @ values**4 - 3) < 1e-4)
    True
    """
    if isinstance(spec, Law):
        return spec
    if isinstance(spec, str) and spec in READOUT_LAWS:
        return Law(*DISCRETE_LAWS[spec]) if spec in DISCRETE_LAWS else Law(continuous=spec)
    if hasattr(spec, "ppf") and hasattr(spec, "rvs"):
        if not hasattr(spec, "pdf") or not np.isfinite(spec.var()):
            raise InvalidArgument(name, spec, "a continuous law of finite variance")
        return Law(continuous=spec)
    try:
        is_nested = isinstance(spec, Sequence) and len(spec) == 2 and np.ndim(spec[0]) == 1
        law_values = np.atleast_1d(plain_array("values", spec[0] if is_nested else spec))
        equal_shares = np.full(law_values.shape, 1 / max(law_values.size, 1))
        law_fractions = plain_array("fractions", spec[1]) if is_nested else equal_shares
        if law_values.ndim != 1 or not law_values.size or law_fractions.shape != law_values.shape:
            raise ValueError
    except (TypeError, ValueError, InvalidArgument):
        allowed_laws = (
            f"{NAMED_LAWS}, a number up to {MAX_NUMBER:g}, a sequence of numbers, (values, "
            f"fractions), or a frozen scipy.stats distribution{hint(spec, READOUT_LAWS)}"
        )
        raise InvalidArgument(name, spec, allowed_laws) from None
    if not ((law_fractions >= 0).all() and abs(law_fractions.sum() - 1) < 1e-9):
        raise InvalidArgument(name, spec, "values, and fractions >= 0 of sum 1")
    total = law_fractions.sum()
    merged_shares: dict[float, float] = {}
    for value, law_share in zip(law_values.tolist(), (law_fractions / total).tolist(), strict=True):
        if law_share:  # equal values are merged
            merged_shares[value] = merged_shares.get(value, 0.0) + law_share
    return Law(tuple(merged_shares), tuple(merged_shares.values()))


def laws_by_name(name: str, values: Any) -> NDArray[np.str_]:
    """Names of laws as an array; InvalidArgument if one is not among ``READOUT_LAWS``."""
    law_names = np.atleast_1d(np.asarray(values, dtype=object))
    for law_name in law_names.ravel():
        if law_name not in READOUT_LAWS:
            raise InvalidArgument(
                name, law_name, f"{NAMED_LAWS}, on a grid{hint(law_name, READOUT_LAWS)}"
            )
    return law_names.ravel().astype(str)
