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

A ``student`` sees of g the degrees k for which E sigma^(k)(s x), x ~ N(0, 1), is not 0 at every
s: a neuron w of norm s turns by E[y sigma'(w.x) x], a sum over k of these numbers times
C_k[w, ..., w, .] / (k - 1)!.  They are 0 at every s where sigma^(k) is odd: where the part of sigma
that has the parity of k is a polynomial of a lower degree.  So an odd student sees the odd part of
g; relu and others that are x/2 and an even part see the even part and C_1; a polynomial sees
nothing above its own degree.  What is left of g is climbed as g is.  Equal neurons, of one readout,
turn in one direction a step: all of the range of M_1 takes them as many steps or more.
"""

from functools import partial, reduce
from typing import Any

import numpy as np
from numpy.polynomial import hermite_e
from scipy.special import factorial

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
        "z1 + z1*z2", or a function of one direction by name; with ``inputs`` also a label for each
        component, "classes:1,-1".
    inputs : GaussianMixture, optional
        The law of up to four first coordinates, in the place of N(0, I): the staircase of steps on
        n = Theta(d) samples, ``degree`` 1.
    student : str, callable or Activation, optional
        The activation, in the place of one that sees all degrees, with the bias of its neurons:
        "relu(x - 1)".  tanh, which is odd, never learns z1*z2; without a bias relu, gelu and
        softplus, x/2 and an even part, never learn the z3 of z1*z2*z3.  Not with ``inputs``: there
        :func:`replica.after_each_step` follows a student.
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
    if student is not None:
        student = activation(student, "student")
        seen = _seen(g, student)
        if seen is not g:
            now = given_known(seen, np.eye(r), 0)
            share = now.variance / at_start.variance
    known, error = np.empty((0, r)), max(at_start.error, now.error)
    stages: list[Stage] = []
    while len(known) < r:
        first = _first_connection(now, _resolution(threshold, error))
        if first is None:
            break
        leap, vectors, strengths = first
        new = _upright(vectors.T @ now.basis[len(known) :])
        known = np.concatenate([known, new])
        basis = np.concatenate([known, np.linalg.svd(known)[2][len(known) :]])
        now = given_known(seen, basis, len(known))
        error = max(error, now.error)
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


def _seen(g: Target, student: Activation) -> Target:
    """The part of a target that the neurons of a student see at some step: its even and its odd
    part, each as far as the student's is no polynomial of a lower degree."""
    highest = even, odd = [_degree(student, parity) for parity in (0, 1)]
    if even < 2 and odd < 1:
        raise InvalidArgument("student", student.name, "a function that is not constant")
    if even == odd == np.inf:
        return g
    ends = [-1 if end == np.inf else int(end) for end in highest]
    at = conditional_tensors(g, np.eye(g.dimension), 0, max(0, *ends))
    orders = np.indices(at.coefficients.shape)
    total = orders.sum(axis=0)
    kept = total <= np.where(total % 2, ends[1], ends[0])
    kept &= np.abs(at.coefficients) > 1e-13 * np.sqrt(at.variance)  # rounding
    series = np.where(kept, at.coefficients / factorial(orders).prod(axis=0), 0.0)

    def part(*z: Array) -> Array:
        powers = [hermite_e.hermevander(one, len(series) - 1) for one in z]
        values = np.zeros_like(z[0])
        for m in np.argwhere(series):
            one = (power[..., k] for power, k in zip(powers, m, strict=True))
            values = values + series[tuple(m)] * reduce(np.multiply, one)
        for parity in (0, 1):
            if highest[parity] == np.inf:
                values = values + (g(*z) + (-1) ** parity * g(*(-one for one in z))) / 2
        return values

    grid = np.random.default_rng(0).standard_normal((g.dimension, 400))
    if np.ptp(part(*grid)) <= 1e-9 * np.abs(g(*grid)).max():
        degrees = [
            f"{least}" if end == least else f"{kind} ones" + ("" if end == np.inf else f" to {end}")
            for kind, least, end in (("odd", 1, odd), ("even", 2, even))
            if end >= least
        ]
        allowed = f"one of Hermite degrees that {student.name} sees: {' and '.join(degrees)}"
        raise InvalidArgument("target", g.name, allowed)
    return MultiIndex(part, g.dimension, g.name)


def _degree(student: Activation, parity: int) -> float:
    """Degree of the even part of a student, parity 0, or of its odd part, 1: infinite unless it is
    a polynomial up to x^12, and below 0 where there is none."""
    x = np.linspace(0.01, 4, 400)
    ahead, behind = student(x), student(-x)
    part = (ahead + (-1) ** parity * behind) / 2
    scale = 1e-7 * np.abs([ahead, behind]).max()  # above what single precision rounds
    powers = np.vander(x / 4, 13, increasing=True)[:, parity::2]
    for count in range(powers.shape[1] + 1):
        fitted = powers[:, :count]
        if np.abs(part - fitted @ np.linalg.lstsq(fitted, part)[0]).max() <= scale:
            return parity + 2 * (count - 1)
    return np.inf


def _first_connection(
    now: ConditionalTensors, resolution: float
) -> tuple[int, Array, Array] | None:
    """Degree k of the first M_k that is not zero, the eigenvectors (columns) of those of its
    eigenvalues that count, and these; None where no M_k has any."""
    for k, moment in enumerate(now.moments, start=1):
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
