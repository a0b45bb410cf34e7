"""Which directions of a target a network learns, and with how many samples.  docs/theory.md 11, [D]

A target g(z) of r orthonormal directions has Hermite tensors C_k = E He_k(z) g(z).  A giant step
on n samples sees the first that is not zero: it learns the range of C_k if n is of order d^k, and
nothing if it is of a lower one.  Once directions U are known, the next step sees the tensors T_k
conditionally on z_U (11.1), and with n = Theta(d^k), k the first degree at which T_k is not zero,
it learns the range of M_k = E T_k T_k^T: a stage of the staircase, of leap k.  For k = 1,
M_1 = E v v^T with v(z_U) = E[P z g | z_U], P the projection on the complement of U.

The eigenvalues of M_k / k! are the strengths of the connections: their sum is the part of E g^2
that is of degree k in the complement.  This holds for students all of whose Hermite coefficients
differ from zero and for a fresh batch at every step: what reusing a batch adds is not here.

Of ``inputs`` with another law P only steps on n = Theta(d) samples are followed.  A step sees
labels less what the network says already, a function of z_U.  Whatever that is, it learns
directions in the range of

    M_1 = E v v^T + E[g^2] E u u^T,  v = E_P[P z g | z_U],  u = E_P[P z | z_U],

those that correlate with known ones among them.  Networks that say different things learn all of
the range; one of them may take more steps.  Of N(0, I), u = 0.

Of a ``student`` two things are known.  One that is odd, up to a constant, sees the odd part of g at
every step, since it stays odd, and an even one the even part.  And the gradient of the first step
is the sum of h_k C_k[w, ..., w], so it sees no degree at which the student's h_k is 0; no step sees
one above that of a polynomial, whose derivatives of that order are 0.
"""

from functools import partial
from typing import Any

import numpy as np

from solvers.results import Array

from ..errors import InvalidArgument
from ..problem import Activation, MultiIndex, Target, activation, multi_index, number, on_inputs
from .conditional_tensors import (
    ConditionalTensors,
    conditional_means,
    conditional_tensors,
)
from .stages import Stage, Staircase

# Defaults of ``staircase``.
DEGREE = 4  # of the tensors at most: a leap of 5 would need n = Theta(d^5) samples
THRESHOLD = 1e-6  # share of the variance: far above rounding, far below what a simulation shows


def staircase(
    target: Any,
    *,
    inputs: Any = None,
    student: Any = None,
    dimension: int | None = None,
    degree: int | None = None,
    threshold: float = THRESHOLD,
) -> Staircase:
    """The staircase of a target: what giant steps learn of it, in turn.  docs/theory.md 11

    Parameters
    ----------
    target : MultiIndex, callable, str or Activation
        g, a numpy function of r arrays; as text an expression in z1 ... z4 such as
        "z1 + z1*z2", ``module:function``, or a function of one direction by name; with ``inputs``
        also a label for each component, "classes:1,-1".
    inputs : GaussianMixture, optional
        The law of up to four first coordinates, in the place of N(0, I): the staircase of steps on
        n = Theta(d) samples, ``degree`` 1.
    student : str, callable or Activation, optional
        The activation, in the place of one that sees all degrees.  tanh, which is odd, never learns
        z1*z2.  Not with ``inputs``: there :func:`replica.after_each_step` follows a student.
    dimension : int
        r, up to 4, for a plain function of several arguments.
    degree : int
        Highest degree of the tensors, up to 12, and 4 unless given; with ``inputs`` 1.
    threshold : float
        Share of the variance below which a connection is not counted.

    Raises
    ------
    InvalidArgument
        If an argument is out of range, or the target, or the part of it that the student sees,
        constant.
    QuadratureError
        If the averages cannot be integrated to 1 % of the variance.

    Examples
    --------
    >>> import numpy as np
    >>> from replica import GaussianMixture, staircase
    >>> stairs = staircase("z1 + z1*z2 + z1*z2*z3")
    >>> [(stage.leap, np.abs(stage.directions).round(9).tolist()) for stage in stairs.stages]
    [(1, [[1.0, 0.0, 0.0]]), (1, [[0.0, 1.0, 0.0]]), (1, [[0.0, 0.0, 1.0]])]
    >>> weak = staircase("(4*z1 + z1**2 + z2)/2").stages[1]  # strength 16/289
    >>> weak.directions.round(3).tolist(), weak.strengths.round(6).tolist()
    ([[-0.243, 0.97]], [0.055363])

    On correlated inputs a second step comes closer to the target, one direction of them:

    >>> law = GaussianMixture(means=[[0, 0]], covariances=[[1.0, 0.5], [0.5, 1.0]])
    >>> staircase("sin(z1)", inputs=law).directions.round(3).tolist()
    [[0.894, 0.447], [-0.447, 0.894]]
    """
    highest, allowed = (12, "an integer from 1 to 12") if inputs is None else (1, "1 with inputs")
    if degree is None:
        degree = min(DEGREE, highest)
    if int(number("degree", degree, 1, highest, allowed)) != degree:
        raise InvalidArgument("degree", degree, allowed)
    threshold = number("threshold", threshold, 0, 1, "0 or more and below 1", open_high=True)
    if not (inputs is None or student is None):
        raise InvalidArgument("student", student, "left out where inputs are not N(0, I)")
    of = target if dimension is None else multi_index(target, dimension)
    g, inputs = on_inputs(of, inputs)
    r, degree = g.dimension, int(degree)
    given_known: Any = partial(conditional_tensors, degree=degree)
    if inputs is not None:
        r, given_known = inputs.dimension, partial(conditional_means, inputs=inputs)
    at_start = now = given_known(g, np.eye(r), 0)
    seen, share = g, 1.0
    unseen = later = np.zeros(degree, dtype=bool)
    if student is not None:
        student = activation(student, "student")
        unseen, later = _blindness(student, degree, threshold)
        seen = _seen(g, student)
        if seen is not g:
            now = given_known(seen, np.eye(r), 0)
            share = now.variance / at_start.variance
    known, error = np.empty((0, r)), now.error
    stages: list[Stage] = []
    while len(known) < r:
        first = _first_connection(now, _resolution(threshold, error), unseen)
        if first is None:
            break
        leap, vectors, strengths = first
        new = _upright(vectors.T @ now.basis[len(known) :])
        known = np.concatenate([known, new])
        basis = np.concatenate([known, np.linalg.svd(known)[2][len(known) :]])
        now = given_known(seen, basis, len(known))
        error, unseen = max(error, now.error), later
        stages.append(Stage(leap, new, strengths, share * now.explained))
    return Staircase(
        target=g,
        inputs=inputs,
        student=student,
        degree=degree,
        mean=at_start.mean,
        variance=at_start.variance,
        tensors=tuple(map(at_start.tensor, range(degree + 1))),
        stages=tuple(stages),
        error=error,
        resolution=_resolution(threshold, error),
    )


def _resolution(threshold: float, error: float) -> float:
    """Share of the variance from which a connection counts: ten quadrature errors or more, and
    more than rounding."""
    return max(threshold, 10.0 * error, 1e-12)


def _blindness(student: Activation, degree: int, threshold: float) -> tuple[Array, Array]:
    """Which of the degrees 1, 2, ... a student's first step does not see, and later ones: those
    above the degree of a polynomial, (degree,) each."""
    try:
        own = staircase(student, degree=degree, threshold=threshold)
    except InvalidArgument:
        raise InvalidArgument("student", student.name, "a function that is not constant") from None
    powers = own.powers
    return powers[1:] <= own.resolution, 1 - np.cumsum(powers)[:-1] <= own.resolution


def _seen(g: Target, student: Activation) -> Target:
    """The part of a target that the neurons of a student see at any step."""
    x = np.linspace(0.01, 4, 400)
    ahead, behind = student(x), student(-x)
    scale = 1e-12 * np.abs([ahead, behind]).max()
    if np.ptp(ahead + behind) <= scale:
        sign = -1.0
    elif np.abs(ahead - behind).max() <= scale:
        sign = 1.0
    else:
        return g

    def part(*z: Array) -> Array:
        return (g(*z) + sign * g(*(-one for one in z))) / 2

    grid = np.random.default_rng(0).standard_normal((g.dimension, 400))
    values, whole = part(*grid), g(*grid)
    if np.ptp(values) <= 1e-12 * np.abs(whole).max():
        kind = "odd" if sign < 0 else "even"
        allowed = f"one with an {kind} part: an {kind} student, {student.name}, sees no other"
        raise InvalidArgument("target", g.name, allowed)
    return MultiIndex(part, g.dimension, g.name)


def _first_connection(
    now: ConditionalTensors, resolution: float, unseen: Array
) -> tuple[int, Array, Array] | None:
    """Degree k, of those that are not ``unseen``, of the first M_k that is not zero, the
    eigenvectors (columns) of those of its eigenvalues that count, and these; None where no M_k has
    any."""
    for k, moment in enumerate(now.moments, start=1):
        if unseen[k - 1]:
            continue
        values, vectors = np.linalg.eigh(moment)
        kept = values > resolution * now.variance
        if kept.any():
            return k, vectors[:, kept][:, ::-1], values[kept][::-1]
    return None


def _upright(rows: Array) -> Array:
    """The ``rows`` with signs that make the largest entry of each positive: eigenvectors have
    either sign."""
    largest = np.take_along_axis(rows, np.abs(rows).argmax(axis=1)[:, None], axis=1)
    return rows * np.sign(largest)
