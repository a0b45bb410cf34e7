"""The function that the trained network implements along the spikes.  docs/theory.md 4, [C] Fig. 1.

Given the projection kappa of an input on the spikes, the output of the network is Gaussian over
the rest of the input, with

    mean      C(kappa) = mu_0.m + sum_b mu_1^b kappa.theta_b,                      (4.5)
    variance  m_1^T Q_1 m_1 + m_2.q_2,                                             (4.7)

while the target has the mean h(kappa) and the variance k - h^2 (3.3): what of it the spikes do
not tell.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from solvers.results import Array

from ..equivalence import at_points, table_of_size
from ..problem import SpikedRandomFeatures
from ..saddle_point import ridge
from .evaluate import QUADRATURE_TOLERANCE
from .solution import Solution, solve


@dataclass(frozen=True, eq=False)
class LearnedFunction:
    """Output of the trained network and of the target, given kappa.

    The methods take kappa of any shape (...) or, with K spikes, (K, ...), and return (...);
    NaN where the point did not converge.

    Attributes
    ----------
    point : Solution
    coefficients : (G + A K,) or (G + 1 + A K,)
        m and theta, for the A kinds of neurons of ``equivalence.Table``.
    second_moments : (D,)
        Q1 and q2, packed into one axis as the responses V1 and V2 are.
    """

    point: Solution
    coefficients: Array
    second_moments: Array

    @property
    def _model(self) -> SpikedRandomFeatures:
        """The model with its trained bias, if it has one, in it."""
        return self.point.model.with_bias(float(np.nan_to_num(self.point.trained_bias)))

    def mean(self, kappa: ArrayLike) -> Array:
        """C(kappa), the mean output.  Eq. (4.5)"""
        table, shape = at_points(self._model, kappa)
        return (self.coefficients @ table.regressors).reshape(shape)

    def variance(self, kappa: ArrayLike) -> Array:
        """Variance of the output over the inputs of projection kappa.  Eq. (4.7)"""
        table, shape = at_points(self._model, kappa)
        return (self.second_moments @ ridge.responses_of(table).coefficients).reshape(shape)

    def target_mean(self, kappa: ArrayLike) -> Array:
        """h(kappa).  Eq. (3.3)"""
        table, shape = at_points(self._model, kappa)
        return table.h.reshape(shape)

    def target_variance(self, kappa: ArrayLike) -> Array:
        """k - h^2, without the label noise.  Eq. (3.3)"""
        table, shape = at_points(self._model, kappa)
        return table.spread.reshape(shape)


def learned_function(
    model: SpikedRandomFeatures,
    *,
    alpha: float,
    lam: float,
    quadrature_tol: float = QUADRATURE_TOLERANCE,
) -> LearnedFunction:
    """What the network has learned along the spikes, at one point.

    Parameters
    ----------
    model : SpikedRandomFeatures
    alpha, lam : float
        As in :func:`replica.solve`.
    quadrature_tol : float
        As in :func:`replica.solve`.

    Raises
    ------
    InvalidArgument
        If alpha or lam is out of range, or labels are +-1 at random.

    Examples
    --------
    >>> from replica import GradientStep
    >>> model = GradientStep(student="tanh", target="sin", alpha0=20, eta=3.0).srf(beta=1.0)
    >>> learned = learned_function(model, alpha=1.0, lam=0.1)
    >>> learned.mean([0.0, 1.0]).round(4).tolist(), learned.variance(1.0).round(4).tolist()
    ([0.0, 0.6931], 0.0124)
    """
    model.refuse_channel()
    point = solve(model, alpha=alpha, lam=lam, quadrature_tol=quadrature_tol)
    table = table_of_size(model.with_bias(float(np.nan_to_num(point.trained_bias))), point.nodes)
    o = ridge.solve_points(table, np.array([float(alpha)]), np.array([float(lam)])).overlaps
    known = 1.0 if point.converged else np.nan
    coefficients = np.concatenate([o.m[0], o.theta[0].ravel()]) * known
    second = ridge.responses_of(table).pack(o.Q1, o.q2)[0] * known
    return LearnedFunction(point, coefficients, second)
