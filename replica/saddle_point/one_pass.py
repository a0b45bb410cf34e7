"""A pass of the saddle point: every unknown from its own equation.  docs/theory.md 4, 6

The loss enters through its score s alone, averaged given kappa: of the square, it is
(y - omega) / (1 + V).  Iterated, the pass solves a convex loss, and, damped, ridge regression as
papers do.  ``ridge.residual`` has the same equations for the square, where no score is needed.
"""

from collections.abc import Callable

from solvers.results import Array

from .overlaps import Conjugates, Field, Overlaps, Scores, field_at_nodes
from .responses import Responses, Susceptibility
from .ridge import Signal, unpacked

Score = Callable[[Field], Scores]
# From the averages, the local field and the susceptibility.
SignalStep = Callable[[Scores, Field, Susceptibility], Signal]


def one_pass(
    responses: Responses, alpha: Array, lam: Array, o: Overlaps, score: Score, step: SignalStep
) -> tuple[Overlaps, Conjugates, Scores]:
    """The overlaps that follow from overlaps ``o``, and on the way the conjugates and the scores.

    Parameters
    ----------
    responses : Responses
    alpha, lam : arrays (P,)
    o : Overlaps
    score : callable
        Averages of the score given kappa, for a local field.
    step : callable
        m, the overlaps with special directions and their conjugates, which solve (4.5) or (6.2) for
        these averages, or come nearer.
    """
    pass_field = field_at_nodes(responses, o)  # Eqs. (4.1), (6.1)
    pass_scores = score(pass_field)
    V_hat = responses.conjugates_from(pass_scores.slope, alpha)  # Eqs. (4.2), (6.2)
    V = responses.from_conjugates(V_hat, lam, responses.pack(o.V1, o.V2))  # Eqs. (4.3)-(4.4)
    susceptibility = responses.susceptibility(V, V_hat, alpha)
    signal = step(pass_scores, pass_field, susceptibility)  # Eqs. (4.5), (6.2)
    signal_hats = signal.m_hat, signal.special_hat
    signal_sources = responses.signal_sources(V, susceptibility, alpha, *signal_hats)
    X = responses.conjugates_from(pass_scores.square, alpha) + signal_sources.X  # Eqs. (4.8), (6.3)
    Q = responses.second_moments_at(V_hat, lam, X, V)  # Eq. (4.9)
    return *unpacked(responses, V, V_hat, signal, X, Q + signal_sources.Q), pass_scores
