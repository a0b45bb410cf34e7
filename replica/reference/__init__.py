"""The oracle: one point of ridge regression solved again, at 30 digits or more.

Eqs. (3.2)-(3.3) and (4.1)-(4.11) for one group of neurons, typed as they stand and evaluated
with mpmath: it shares no table, rule, moment or rearrangement with the rest of the library,
which lends only the point that Newton's iteration starts from.  Expectations are trapezoidal
sums on a wide interval; their steps are halved until the answer stands still, and the last
change is reported beside the residual of the equations.

Meant for tests: a point takes from one to ten seconds, less where its model was met before.
Importing this package imports mpmath, which ``import replica`` does not.
"""

from .oracle import ReferenceSolution, solve

__all__ = ["ReferenceSolution", "solve"]
