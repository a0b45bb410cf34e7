"""Results of solvers: values, with the residual, the iterations and the status of each problem.

A solver works on many independent problems ("rows") at once and reports on each row.  ``residual``
is always the residual of the undamped equations over all unknowns, at the point that is returned.
"""

from dataclasses import dataclass
from enum import Enum
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]  # of float64, unless its description says otherwise
Scaled = tuple[Array, Array]  # a value, and the scale against which its change is measured
Indices = NDArray[np.int64]  # indices of problems that a solver works on


def largest_modulus(x: Array) -> Array:
    """Largest modulus in each row of x (rows, k), as an array (rows,)."""
    # a reduction over the first axis of the transpose: numpy is slow along short rows
    return np.asarray(np.ascontiguousarray(np.abs(x).T).max(axis=0))


_OTHERWISE = "(take a larger dimension, the limit, or replica-validate simulate)"


class Status(Enum):
    """Reason why a solver stopped; the value is the sentence shown to a user."""

    CONVERGED = "converged"
    SLOW = "not converged: the iteration contracts too slowly to be worth continuing"
    ITERATION_LIMIT = (
        "not converged: the iteration limit was reached (with a tiny lam take a larger one, up to "
        "1e-4 where features nearly depend on each other)"
    )
    NOT_FINITE = "not converged: a value became infinite or undefined"
    NO_PROGRESS = "not converged: no step reduced the residual"
    AT_EDGE = "not converged: the best bias is at an edge of those searched, or was not solved"
    QUADRATURE = (
        "not converged: the quadrature error is above its tolerance on the finest rule "
        "(a larger quadrature_tol accepts it)"
    )
    SPECIAL_DIRECTIONS = (
        "not converged: neurons share more special directions than can be taken (a larger "
        "quadrature_tol, up to some .03, accepts their error; a FeatureSample of the outputs on "
        "drawn inputs, with their labels, takes none)"
    )
    OUTPUTS = (
        "not converged: outputs are far from Gaussian in each class, and at drawn inputs the "
        "classification error differs by more than 6 % (take a FeatureSample of the outputs on "
        "drawn inputs, with their labels)"
    )
    ROUNDING = (
        "not converged: the error is lost in the rounding of what it is the difference of; "
        "subtract the mean of labels, if it is large"
    )
    NO_DERIVATIVE = "not converged: a derivative does not exist, or rounding hides it"
    TIME = "not converged: it took longer than it may (a larger time_limit gives it more seconds)"
    MEMORY = (
        "not converged: the nodes that resolve the point would take too much memory (a loss of "
        "your own needs its kinks=; replica-validate simulate draws networks)"
    )
    ALL_ROWS = (
        "not converged: all rows train, or nearly all, and too few are left to average over; take "
        "fewer samples, or for the square loss a larger lam"
    )
    GUESS = (
        "not converged: at all rows the error is no better than a guess, which tells nothing of "
        "more samples; take more rows"
    )
    ONE_SAMPLE = "not converged: an intercept alone fits one sample, and the theory needs more"
    FEW_DIRECTIONS = (
        f"not converged: the dimension is too small for rows of so few directions {_OTHERWISE}"
    )
    NOISY_ROWS = (
        "not converged: the dimension is too small for rows that vary most with noise (take the "
        "limit, without dimension=, a larger dimension, or replica-validate simulate)"
    )
    RARE_FEATURES = (
        "not converged: the dimension is too small for a student whose features are rarely very "
        "large, as a cube's (take a larger dimension, or replica-validate simulate: the limit may "
        "be as far off)"
    )
    FAR_FROM_LIMIT = (
        "not converged: at this dimension errors on reused samples are far from the limit, and by "
        f"how much is not known {_OTHERWISE}"
    )
    FAR_BELOW_LIMIT = (
        "not converged: at this dimension the error is less than half of its limit, and the theory "
        "too low by an amount that is not known (take a larger dimension, or replica-validate "
        "simulate)"
    )
    INTERRUPTED = "not converged: interrupted before it was solved"
    MASS = "not converged: part of the mass of the spectrum is missing"
    LABEL_NODES = (
        "not converged: nodes of a step's labels may each make a peak in the spectrum of a network "
        "after several steps, on a target of several directions, or with inputs= (theory='srf' has "
        "none; replica-validate spectrum simulates the eigenvalues)"
    )

    __hash__ = object.__hash__  # in C: there is a status for every point

    def __str__(self) -> str:
        """Sentence shown to a user."""
        return str(self.value)


@dataclass(frozen=True)
class Result:
    """Outcome of a batched solve of ``rows`` problems in ``k`` unknowns.

    Attributes
    ----------
    value : array (rows, k)
        The last point at which the residual was evaluated.
    residual : array (rows,)
        Largest relative change of an unknown under one undamped step from ``value``.
    iterations : int array (rows,)
        Number of evaluations of the equations.
    status : object array (rows,) of Status
    """

    value: Array
    residual: Array
    iterations: NDArray[np.int64]
    status: NDArray[np.object_]

    @property
    def converged(self) -> NDArray[np.bool_]:
        """Boolean array (rows,): True for rows that met the tolerance."""
        return np.asarray(self.status == Status.CONVERGED)


class ConvergenceError(RuntimeError):
    """Error raised on request when a result did not converge; ``result`` holds the result."""

    def __init__(self, message: str, result: Any) -> None:
        super().__init__(message)
        self.result = result
