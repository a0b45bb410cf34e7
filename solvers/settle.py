"""Ever finer approximations of one thing, until two successive ones agree.

A quadrature rule, a table or a set of groups is fine enough once a finer one changes the answer
by no more than a tolerance.  That change is then the estimate of the error: of the coarser
answer, strictly, so that the finer one, which is returned, is usually better than it says.
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
    """The last answer of :func:`settle`, and whether it may be trusted.

    Attributes
    ----------
    value
        The answer of the last candidate that was tried.
    candidate
        That candidate.
    change : float
        Its distance from the answer before; infinite if there was only one candidate.
    met : bool
        Whether the change is within the tolerance.  If not, the candidates ran out.
    """

    value: Answer
    candidate: Candidate
    change: float
    met: bool


def settle(
    candidates: Iterable[Candidate],
    compute: Callable[[Candidate], Answer],
    distance: Callable[[Answer, Answer], float],
    tol: float,
) -> Settled[Candidate, Answer]:
    """Compute an answer on one candidate after another until it stands still.

    Candidates are taken one at a time, and none after the one that settles the answer: an
    iterator that builds them on demand builds no more than are needed.

    Parameters
    ----------
    candidates : iterable
        Rules, tables, numbers of nodes: the coarsest first.
    compute : callable, candidate -> answer
    distance : callable (answer before, answer now) -> float
        The change, in the units of ``tol``.  NaN counts as too large.
    tol : float
        Largest change at which the answer is taken.

    Returns
    -------
    Settled
        With ``met`` False where no two successive answers are that close; it is the caller
        who knows whether to raise then or to report the change.

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
    >>> round(float(pi.value), 3), pi.candidate, pi.met
    (3.139, 48, True)
    >>> settle([6, 12], circumference, gap, tol=0.01).met
    False
    """
    last: Settled[Candidate, Answer] | None = None
    for candidate in candidates:
        value = compute(candidate)
        change = np.inf if last is None else float(distance(last.value, value))
        last = Settled(value, candidate, change, last is not None and change <= tol)
        if last.met:
            return last
    if last is None:
        raise ValueError("there are no candidates to compute an answer on")
    return last


def largest_change(before: Array, now: Array) -> float:
    """The largest change of an entry, relative to the largest there is now."""
    return float(np.abs(now - before).max() / (np.abs(now).max() or 1.0))


def scaled_change(before: Scaled, now: Scaled) -> float:
    """The largest change of an entry of the values, relative to the scale it has now."""
    value, scale = now
    with np.errstate(invalid="ignore"):
        return float((np.abs(value - before[0]) / scale).max())
