"""Calibration: the mean stated probability of the label 1, beside its frequency.

Of the logistic loss the network states P(y = 1) = 1 / (1 + exp(-f)): its mean given kappa is a
Gaussian integral, to be set beside the frequency P(y = 1 | kappa) of the labels.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import expit

from solvers.results import Array

from ..errors import InvalidArgument
from ..given import Given
from ..problem import check_call, plain_array
from .learned_function import LearnedFunction, value_rows
from .solution import AtPoint, Solution


@dataclass(frozen=True, eq=False, repr=False)
class Calibration(AtPoint):
    """Mean stated probability of the label 1, and its frequency, of :func:`replica.calibration`.

    Attributes
    ----------
    kappa : (N,) or (K, N)
        Projections of the input on the spikes.
    predicted, frequency : (N,)
    point : Solution
    """

    kappa: Array
    predicted: Array
    frequency: Array
    point: Solution

    def _facts(self) -> dict[str, Any]:
        return {column: getattr(self, column) for column in ("kappa", "predicted", "frequency")}

    def _rows(self) -> list[dict[str, Any]]:
        kappas = self.kappa.reshape(-1, self.predicted.size)
        columns = {f"kappa{k}" if len(kappas) > 1 else "kappa": x for k, x in enumerate(kappas, 1)}
        return value_rows(columns | {"predicted": self.predicted, "frequency": self.frequency})


@check_call
def calibration(solution: Solution, kappa: ArrayLike) -> Calibration:
    """Mean stated probability and frequency of the label 1 given the projection on the spike.

    Parameters
    ----------
    solution : Solution
        A point of the logistic loss.
    kappa : array (N,)
        Projections of the input on the spike; (K, N) on K spikes.

    Raises
    ------
    InvalidArgument
        If the loss is another, the point did not converge, or it is of a given layer.

    Examples
    --------
    >>> from replica import SpikedRandomFeatures, calibration, solve
    >>> model = SpikedRandomFeatures(student="tanh", target="sign", r=1.5, c=1.3, gamma=0.8)
    >>> point = solve(model, alpha=2.0, lam=0.05, loss="logistic")
    >>> at = calibration(point, [0.0, 1.0])
    >>> at.predicted.round(3).tolist(), at.frequency.round(3).tolist()
    ([0.5, 0.922], [0.5, 0.909])
    """
    if not isinstance(solution, Solution) or isinstance(solution.model, Given):
        allowed_solution = "a Solution of a limit, not of a given layer"
        raise InvalidArgument("solution", type(solution).__name__, allowed_solution)
    if solution.loss.name != "logistic" or not solution.converged:
        raise InvalidArgument("solution", solution.loss.name, "a converged one, of logistic loss")
    learned, kappa_nodes = LearnedFunction(solution), np.atleast_1d(plain_array("kappa", kappa))
    predicted = learned.expected(expit, kappa_nodes)
    frequency = (1 + learned.target_mean(kappa_nodes)) / 2
    return Calibration(kappa_nodes, predicted, frequency, solution)
