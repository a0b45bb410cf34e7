"""Directions of a target that a network learns, and the samples each takes.  docs/theory.md 11, [D]

A target g(z) of r orthonormal directions has Hermite tensors C_k = E He_k(z) g(z).  Let C_k be the
first nonzero one.  A giant step learns the range of C_k if its n samples are of order d^k, and
nothing if they are of a lower order.  Once directions U are known, the next step depends on the
tensors T_k conditional on z_U (11.1).  With n = Theta(d^k), k the first degree with T_k != 0, it
learns the range of M_k = E T_k T_k^T: a stage of the staircase, of leap k.  For k = 1,
M_1 = E v v^T with v(z_U) = E[P z g | z_U], P the projection on the complement of U.

The eigenvalues of M_k / k! are the strengths of the connections: their sum is the part of E g^2
of degree k in the complement.  This holds for students whose Hermite coefficients are all nonzero
and for a fresh batch at every step; reused batches are not covered.

For ``inputs`` with another law P only steps on n = Theta(d) samples are covered.  The residual of a
step is the label less the network's output, a function of z_U.  Whatever the output, the step
learns directions in the range of

    M_1 = E v v^T + E[g^2] E u u^T,  v = E_P[P z g | z_U],  u = E_P[P z | z_U],

including directions that correlate with known ones.  Networks with different outputs learn the
whole range together; a single one may take more steps.  For N(0, I), u = 0.

A ``student`` can learn the degrees k of g for which E sigma^(k)(s x), x ~ N(0, 1), is not 0 at
every s: the gradient of a neuron w of norm s is E[y sigma'(w.x) x], a sum over k of these numbers
times C_k[w, ..., w, .] / (k - 1)!.  They are 0 at every s if sigma^(k) is odd: if the part of sigma
with the parity of k is a polynomial of a lower degree.  So an odd student learns the odd part of g;
relu, and other sums of x/2 and an even function, learn the even part and C_1; a polynomial learns
nothing above its own degree.  With a bias b it is sigma(b + x) that counts, and of several biases
each degree that one of them sees.  The staircase is that of the learnable part of g.  Neurons with
equal readout all move in one direction a step: they need as many steps as M_1 has directions, or
more.
"""

import itertools
from dataclasses import dataclass
from functools import partial, reduce
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.polynomial import hermite_e
from scipy.special import factorial

from solvers.results import Array

from ..display import Displayed
from ..errors import InvalidArgument
from ..plotting import plot_staircase
from ..problem import (
    Activation,
    GaussianMixture,
    MultiIndex,
    Target,
    activation,
    check_call,
    multi_index,
    number,
    parse_target,
)
from .conditional_tensors import ConditionalTensors, conditional_means, conditional_tensors
from .step_fields import law_of_biases

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@dataclass(frozen=True, eq=False)
class Stage:
    """Directions learned in one step, one of the ``stages`` of :func:`replica.staircase`.

    Attributes
    ----------
    leap : int
        Degree k in the unknown directions at which the target first depends on them: the step
        needs n = Theta(d^k) samples.
    directions : (m, r)
        New orthonormal directions, the strongest first; of equal strengths a basis of their span,
        of which every other is as good.
    strengths : (m,)
        Eigenvalues of M_k / k! for these directions, contributions to E g^2.
    explained : float
        Share of the variance of g that functions of all directions learned so far explain.
    """

    leap: int
    directions: Array
    strengths: Array
    explained: float


@dataclass(frozen=True, eq=False, repr=False)
class Staircase(Displayed):
    """The staircase of a target: the directions learned, stage by stage.

    Returned by :func:`replica.staircase`.

    Attributes
    ----------
    target : MultiIndex, Activation or ClassLabels
    inputs : GaussianMixture or None
        Law of the inputs; None stands for N(0, I).
    student : Activation or None
        Activation of the neurons; None stands for one with all Hermite degrees.
    bias : tuple of float
        The values of their biases.
    degree : int
        Highest degree of the tensors.
    mean, variance : float
        Mean and variance of g(z).
    tensors : tuple of arrays (), (r,), (r, r), ...
        C_0 to C_degree; with ``inputs``, E g and E z g.
    stages : tuple of Stage
        Stages in the order they are learned; empty if the leap of the target is above ``degree``.
    error : float
        Estimated quadrature error of the averages, relative to the variance.
    resolution : float
        Share of the variance below which a connection counts as zero: the larger of the threshold
        and 10 ``error``.
    """

    target: Target
    inputs: GaussianMixture | None
    student: Activation | None
    bias: tuple[float, ...]
    degree: int
    mean: float
    variance: float
    tensors: tuple[Array, ...]
    stages: tuple[Stage, ...]
    error: float
    resolution: float

    @property
    def settings(self) -> dict[str, Any]:
        """Student, biases, target, inputs and highest degree, in plain values."""
        of_student: dict[str, Any] = {} if self.student is None else {"student": self.student.name}
        if any(self.bias):
            of_student["bias"] = self.bias[0] if len(self.bias) == 1 else list(self.bias)
        input_settings = {} if self.inputs is None else {"inputs": self.inputs.described}
        return of_student | {"target": self.target.name} | input_settings | {"degree": self.degree}

    @property
    def dimension(self) -> int:
        """The number r of directions of the target or, if given, of the law of the inputs."""
        return len(self.tensors[1])

    def plot(self, ax: "Axes | None" = None) -> "Axes":
        """Plot of the stages, by :func:`replica.plotting.plot_staircase`."""
        return plot_staircase(self, ax)

    def _facts(self) -> dict[str, Any]:
        stages = [f"n ~ d^{stage.leap}: {stage.explained:.3g}" for stage in self.stages]
        learned = f"{len(self.directions)} of {self.dimension} directions"
        return {"leap": self.leap, "explained": "; then ".join(stages) or "nothing", "met": learned}

    def _rows(self) -> list[dict[str, Any]]:
        return [
            {"step": step, "leap": stage.leap, "strength": strength, "explained": stage.explained}
            | {f"z{i}": coordinate for i, coordinate in enumerate(direction.tolist(), start=1)}
            for step, stage in enumerate(self.stages, start=1)
            for direction, strength in zip(stage.directions, stage.strengths.tolist(), strict=True)
        ]

    @property
    def powers(self) -> Array:
        """Share of the variance at each Hermite degree, 0 to ``degree``: |C_k|^2 / k!.

        The share of degree 0 is 0.  NaN if ``inputs`` are given.
        """
        if self.inputs is not None:
            return np.full(self.degree + 1, np.nan)
        hermite_powers = [float((C**2).sum()) / factorial(k) for k, C in enumerate(self.tensors)]
        return np.array([0.0, *hermite_powers[1:]]) / self.variance

    @property
    def leap(self) -> int | None:
        """Leap index, the first k >= 1 with C_k != 0; None above ``degree``.

        For one direction it is the information exponent.
        """
        return self.stages[0].leap if self.stages else None

    @property
    def directions(self) -> Array:
        """Directions of all stages, orthonormal rows (m, r)."""
        return _stacked_directions(self.stages, self.dimension)

    @property
    def linear_stages(self) -> int:
        """Number of stages reached with n = Theta(d) samples in every step."""
        return len(list(itertools.takewhile(lambda stage: stage.leap == 1, self.stages)))

    @property
    def learned(self) -> Array:
        """Directions (m, r) learned with n = Theta(d) samples in every step."""
        return _stacked_directions(self.stages[: self.linear_stages], self.dimension)


def _stacked_directions(stages: tuple[Stage, ...], direction_count: int) -> Array:
    """Directions of the ``stages`` as rows (m, r)."""
    return np.concatenate([np.empty((0, direction_count)), *(stage.directions for stage in stages)])


THRESHOLD = 1e-6  # default share of the variance: far above rounding, far below simulation noise


@check_call
def staircase(
    target: Any,
    *,
    inputs: Any = None,
    student: Any = None,
    bias: Any = 0.0,
    dimension: int | None = None,
    degree: int | None = None,
    threshold: float = THRESHOLD,
) -> Staircase:
    """The staircase of a target: the directions that giant steps learn, in order.
    docs/theory.md 11

    Parameters
    ----------
    target : MultiIndex, callable, str or Activation
        The function g: a numpy function of r arrays; an expression in z1 ... z4 such as
        "z1 + z1*z2"; the name of a function of one direction; with ``inputs`` also
        "classes:1,-1", a label for each component.
    inputs : GaussianMixture, optional
        Law of the first coordinates, at most four, instead of N(0, I).  The steps are then on
        n = Theta(d) samples, and ``degree`` is 1.
    student : str, callable or Activation, optional
        The activation.  Without it, all degrees can be learned.  tanh, which is odd, never learns
        z1*z2; without a bias relu, gelu and softplus, sums of x/2 and an even function, never learn
        the z3 of z1*z2*z3.  Not with ``inputs``: use :func:`replica.after_each_step` there.
    bias : float or list of them
        Biases of the student's neurons, which see what those of any value see.
    dimension : int
        Number r of arguments, up to 4, of a plain function of several.
    degree : int
        Highest degree of the tensors, up to 12; the default is 4, and 1 with ``inputs``.
    threshold : float
        Share of the variance below which a connection is not counted.

    Raises
    ------
    InvalidArgument
        If an argument is out of range, or the part of the target that the student can learn is
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
    >>> relu = dict(target="z1 + z1*z2 + z1*z2*z3", student="relu")
    >>> len(staircase(**relu).stages), len(staircase(**relu, bias=0.7).stages)
    (2, 3)
    >>> weak = staircase("(4*z1 + z1**2 + z2)/2").stages[1]  # strength 16/289
    >>> weak.directions.round(3).tolist(), weak.strengths.round(6).tolist()
    ([[-0.243, 0.97]], [0.055363])

    On correlated inputs a second step adds a direction, closer to the target:

    >>> law = GaussianMixture(means=[[0, 0]], covariances=[[1.0, 0.5], [0.5, 1.0]])
    >>> staircase("sin(z1)", inputs=law).directions.round(3).tolist()
    [[0.894, 0.447], [-0.447, 0.894]]
    """
    highest, allowed = (12, "an integer from 1 to 12") if inputs is None else (1, "1 with inputs")
    if degree is None:
        degree = min(4, highest)  # a leap of 5 would need n = Theta(d^5) samples
    if int(number("degree", degree, 1, highest, allowed)) != degree:
        raise InvalidArgument("degree", degree, allowed)
    threshold = number("threshold", threshold, 0, 1, "0 or more and below 1", open_high=True)
    if not (inputs is None or student is None):
        raise InvalidArgument("student", student, "left out where inputs are not N(0, I)")
    student_biases = law_of_biases(bias).values
    if student is None and any(student_biases):
        raise InvalidArgument("bias", bias, "left out without a student, which sees every degree")
    target_function = target if dimension is None else multi_index(target, dimension)
    staircase_target, inputs = parse_target(target_function, inputs)
    direction_count, degree = staircase_target.dimension, int(degree)
    tensors_given: Any = partial(conditional_tensors, degree=degree)
    if inputs is not None:
        direction_count, tensors_given = inputs.dimension, partial(conditional_means, inputs=inputs)
    initial_tensors = tensors = tensors_given(staircase_target, np.eye(direction_count), 0)
    learnable, learnable_share = staircase_target, 1.0
    if student is not None:
        student = activation(student, "student")
        learnable = _learnable_part(staircase_target, student, student_biases)
        if learnable is not staircase_target:
            tensors = tensors_given(learnable, np.eye(direction_count), 0)
            learnable_share = tensors.variance / initial_tensors.variance
    learned_rows, error = np.empty((0, direction_count)), max(initial_tensors.error, tensors.error)
    stages: list[Stage] = []
    while len(learned_rows) < direction_count:
        next_stage = _first_nonzero_moment(tensors, _resolution(threshold, error))
        if next_stage is None:
            break
        leap_k, moment_axes, strengths = next_stage
        new_directions = _with_positive_signs(moment_axes.T @ tensors.basis[len(learned_rows) :])
        learned_rows = np.concatenate([learned_rows, new_directions])
        basis = np.concatenate([learned_rows, np.linalg.svd(learned_rows)[2][len(learned_rows) :]])
        tensors = tensors_given(learnable, basis, len(learned_rows))
        error = max(error, tensors.error)
        stages.append(Stage(leap_k, new_directions, strengths, learnable_share * tensors.explained))
    return Staircase(
        target=staircase_target,
        inputs=inputs,
        student=student,
        bias=student_biases,
        degree=degree,
        mean=initial_tensors.mean,
        variance=initial_tensors.variance,
        tensors=tuple(map(initial_tensors.tensor, range(degree + 1))),
        stages=tuple(stages),
        error=error,
        resolution=_resolution(threshold, error),
    )


def _resolution(threshold: float, error: float) -> float:
    """Share of the variance above which a connection counts: at least ten quadrature errors, and
    above rounding."""
    return max(threshold, 10.0 * error, 1e-12)


def _learnable_part(g: Target, student: Activation, biases: tuple[float, ...]) -> Target:
    """The part of a target that neurons of a student with one of the ``biases`` can learn.

    Its even and its odd part are cut at the degree of the student's part of the same parity, if
    that is a polynomial; at the highest of all biases.
    """
    highest_degrees = even_degree, odd_degree = [
        max(_polynomial_degree(student, bias, parity) for bias in biases) for parity in (0, 1)
    ]
    if even_degree < 2 and odd_degree < 1:
        raise InvalidArgument("student", student.name, "a function that is not constant")
    if even_degree == odd_degree == np.inf:
        return g
    cutoffs = [-1 if cutoff == np.inf else int(cutoff) for cutoff in highest_degrees]
    tensors = conditional_tensors(g, np.eye(g.dimension), 0, max(0, *cutoffs))
    orders = np.indices(tensors.coefficients.shape)
    total_degree = orders.sum(axis=0)
    in_series = total_degree <= np.where(total_degree % 2, cutoffs[1], cutoffs[0])
    in_series &= np.abs(tensors.coefficients) > 1e-13 * np.sqrt(tensors.variance)  # rounding
    hermite_series = np.where(in_series, tensors.coefficients / factorial(orders).prod(axis=0), 0.0)

    def learnable(*z: Array) -> Array:
        hermite_values = [hermite_e.hermevander(z_i, len(hermite_series) - 1) for z_i in z]
        g_learned = np.zeros_like(z[0])
        for m in np.argwhere(hermite_series):
            hermite_factors = (power[..., k] for power, k in zip(hermite_values, m, strict=True))
            g_learned = g_learned + hermite_series[tuple(m)] * reduce(np.multiply, hermite_factors)
        for parity in (0, 1):
            if highest_degrees[parity] == np.inf:
                g_learned = g_learned + (g(*z) + (-1) ** parity * g(*(-z_i for z_i in z))) / 2
        return g_learned

    test_points = np.random.default_rng(0).standard_normal((g.dimension, 400))
    if np.ptp(learnable(*test_points)) <= 1e-9 * np.abs(g(*test_points)).max():
        degrees = f"odd ones up to {max(odd_degree, 0):g}, even ones up to {max(even_degree, 0):g}"
        allowed = f"of Hermite degrees that {student.name} can learn: {degrees}"
        raise InvalidArgument("target", g.name, allowed)
    kink_planes = [(v, sign * t) for v, t in g.planes for sign in (1, -1)]
    return MultiIndex(learnable, g.dimension, g.name, kink_planes)


def _polynomial_degree(student: Activation, bias: float, parity: int) -> float:
    """Degree of the even part (parity 0) or odd part (parity 1) of a student at x + bias.

    Infinite unless the part is a polynomial up to x^12, beyond all kinks and x = -bias, where a
    smooth student turns; negative if it vanishes.
    """
    range_of_x = max([4.0 + abs(bias), *(1.5 * abs(kink - bias) for kink in student.kinks)])
    student_x = np.linspace(0.0025 * range_of_x, range_of_x, 400)
    student_at_x, at_minus_x = student(bias + student_x), student(bias - student_x)
    parity_part = (student_at_x + (-1) ** parity * at_minus_x) / 2
    zero_tol = 1e-7 * np.abs([student_at_x, at_minus_x]).max()  # above rounding in single precision
    monomials = np.vander(student_x / range_of_x, 13, increasing=True)[:, parity::2]
    for term_count in range(monomials.shape[1] + 1):
        basis = monomials[:, :term_count]
        if np.abs(parity_part - basis @ np.linalg.lstsq(basis, parity_part)[0]).max() <= zero_tol:
            return parity + 2 * (term_count - 1)
    return np.inf


def _first_nonzero_moment(
    tensors: ConditionalTensors, moment_resolution: float
) -> tuple[int, Array, Array] | None:
    """Degree k of the first nonzero M_k, with its nonzero eigenvectors (columns) and eigenvalues.

    None if every M_k is zero.  Eigenvalues below ``moment_resolution`` count as zero.
    """
    for hermite_degree, hermite_moment in enumerate(tensors.moments, start=1):
        moment_strengths, moment_axes = np.linalg.eigh(hermite_moment)
        nonzero = moment_strengths > moment_resolution * tensors.variance
        if nonzero.any():
            return hermite_degree, moment_axes[:, nonzero][:, ::-1], moment_strengths[nonzero][::-1]
    return None


def _with_positive_signs(rows: Array) -> Array:
    """The ``rows`` with the signs that make the largest entry of each positive."""
    largest_entry = np.take_along_axis(rows, np.abs(rows).argmax(axis=1)[:, None], axis=1)
    return rows * np.sign(largest_entry)
