"""Refinement of an approximation until two successive answers agree.

A quadrature rule, a table or a set of groups is fine enough once a finer one changes the answer by
no more than a tolerance.  This change is the error estimate.  Strictly, it estimates the error of
the coarser answer, so that the finer answer, which is returned, is usually more accurate.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Generic, TypeVar

import numpy as np

from .results import Array, Scaled

Candidate = TypeVar("Candidate")
Answer = TypeVar("Answer")


@dataclass(frozen=True)
class Settled(Generic[Candidate, Answer]):
    """Last answer of :func:`settle`, and whether it met the tolerance.

    Attributes
    ----------
    value
        The answer of the last candidate that was tried.
    candidate
        The last candidate that was tried.
    change : float
        Distance from the previous answer; infinite if there was only one candidate.
    converged : bool
        Whether the change is within the tolerance.  If not, the candidates ran out.
    """

    value: Answer
    candidate: Candidate
    change: float
    converged: bool


def settle(
    candidates: Iterable[Candidate],
    compute: Callable[[Candidate], Answer],
    distance: Callable[[Answer, Answer], float],
    tol: float,
) -> Settled[Candidate, Answer]:
    """Compute an answer on one candidate after another until it stops changing.

    Candidates are taken one at a time, and none after the answer has settled, so that an iterator
    builds no more of them than are needed.

    Parameters
    ----------
    candidates : iterable
        Rules, tables, numbers of nodes: the coarsest first.
    compute : callable, candidate -> answer
    distance : callable (previous answer, answer) -> float
        The change, in the units of ``tol``.  NaN counts as too large.
    tol : float
        Largest change at which the answer is accepted.

    Returns
    -------
    Settled
        ``converged`` is False if no two successive answers are that close.  The caller decides
        whether to raise an error then or to report the change.

    Raises
    ------
    ValueError
        If there are no candidates.

    Examples
    --------
    >>> def circumference(sides):
    ...     return sides * np.sin(np.pi / sides)
    >>> def gap(before, now):
    ...     return abs(now - before)
    >>> pi = settle([6, 12, 24, 48, 96], circumference, gap, tol=0.01)
    >>> round(float(pi.value), 3), pi.candidate, pi.converged
    (3.139, 48, True)
    >>> settle([6, 12], circumference, gap, tol=0.01).converged
    False
    """
    last: Settled[Candidate, Answer] | None = None
    for candidate in candidates:
        candidate_answer = compute(candidate)
        change = np.inf if last is None else float(distance(last.value, candidate_answer))
        last = Settled(candidate_answer, candidate, change, last is not None and change <= tol)
        if last.converged:
            return last
    if last is None:
        raise ValueError("there are no candidates to compute an answer on")
    return last


def largest_change(answer_before: Array, answer_now: Array) -> float:
    """Largest change of an entry, relative to the largest entry after the change."""
    return float(np.abs(answer_now - answer_before).max() / (np.abs(answer_now).max() or 1.0))


def scaled_change(answer_before: Scaled, answer_now: Scaled) -> float:
    """Largest change of an entry of the values, relative to its scale after the change."""
    value_now, scale_now = answer_now
    with np.errstate(invalid="ignore"):
        return float((np.abs(value_now - answer_before[0]) / scale_now).max())
