"""Which directions of a target a network learns, and with how many samples.  docs/theory.md 11, [D]

A target g(z) of r orthonormal directions has Hermite tensors C_k = E He_k(z) g(z).  A giant step
on n samples sees the first that is not zero: it learns the range of C_k if n is of order d^k, and
nothing if it is of a lower one.  Once directions U are known, the next step sees the tensors
conditionally on z_U,

    T_k(z_U) = E[He_k(P z) g(z) | z_U],   P the projection on the complement of U,

and with n = Theta(d^k), k the first degree at which T_k is not zero, it learns the range of
M_k = E T_k T_k^T (all indices but one contracted): a stage of the staircase, of leap k.  For
k = 1, M_1 = E v v^T with v(z_U) = E[P z g | z_U].

The eigenvalues of M_k / k! are the strengths of the connections: their sum is the part of E g^2
that is of degree k in the complement.  This holds for students all of whose Hermite coefficients
differ from zero and for a fresh batch at every step: what reusing a batch adds is not here.
"""

import itertools
from dataclasses import dataclass
from functools import reduce
from math import factorial, prod
from typing import Any, NamedTuple

import numpy as np
from numpy.polynomial import hermite_e

from solvers.quadrature import TENSOR_SIZES, QuadratureError
from solvers.results import Array
from solvers.rules import Rule, gauss_hermite, trapezoid_tensor

from ..errors import InvalidArgument
from ..problem import Activation, MultiIndex, imported
from ..problem import target as find_target

DEGREE = 4
HIGHEST = 12  # degree
THRESHOLD = 1e-6  # share of the variance below which a connection is not counted
MARGIN = 10.0  # times the quadrature error, likewise
TOLERANCE = 1e-11  # on the quadrature error, relative to the variance, at which to stop
ROUGHEST = 1e-2  # quadrature error, relative to the variance, at which to give up


@dataclass(frozen=True, eq=False)
class Stage:
    """The directions that one step adds.

    Attributes
    ----------
    leap : int
        Degree k in the unknown directions at which the target first depends on them: the step
        needs n = Theta(d^k) samples.
    directions : (m, r)
        New orthonormal directions, the strongest first.
    strengths : (m,)
        Their eigenvalues of M_k / k!, parts of E g^2.
    explained : float
        Share of the variance of g that functions of all directions learned so far can explain.
    """

    leap: int
    directions: Array
    strengths: Array
    explained: float


@dataclass(frozen=True, eq=False)
class Staircase:
    """What is learned of a target, stage by stage.

    Attributes
    ----------
    target : MultiIndex
    degree : int
        Highest degree looked at.
    mean, variance : float
        Of g(z).
    tensors : tuple of arrays (), (r,), (r, r), ...
        C_0 to C_degree.
    stages : tuple of Stage
        In the order they are learned; empty where the target is of a higher degree.
    error : float
        Estimated quadrature error of the averages, relative to the variance.
    resolution : float
        Share of the variance below which a connection cannot be told from zero: the larger of
        the threshold and 10 ``error``.
    """

    target: MultiIndex
    degree: int
    mean: float
    variance: float
    tensors: tuple[Array, ...]
    stages: tuple[Stage, ...]
    error: float
    resolution: float

    @property
    def powers(self) -> Array:
        """Share of the variance at each degree 0 (which has none) to ``degree``:
        the squared norm of C_k over k!."""
        norms = [float((C**2).sum()) / factorial(k) for k, C in enumerate(self.tensors)]
        return np.array([0.0, *norms[1:]]) / self.variance

    @property
    def leap(self) -> int | None:
        """Leap index, the first k >= 1 with C_k != 0; None above ``degree``.  For one direction
        this is the information exponent."""
        return self.stages[0].leap if self.stages else None

    @property
    def directions(self) -> Array:
        """All directions that the stages learn, (m, r) with orthonormal rows."""
        return _rows(self.stages, self.target.dimension)

    @property
    def linear_stages(self) -> int:
        """Stages reached with n = Theta(d) in every step."""
        return len(list(itertools.takewhile(lambda stage: stage.leap == 1, self.stages)))

    @property
    def learned(self) -> Array:
        """Directions learned with n = Theta(d) in every step, (m, r)."""
        return _rows(self.stages[: self.linear_stages], self.target.dimension)


def staircase(
    target: Any,
    *,
    dimension: int | None = None,
    degree: int = DEGREE,
    threshold: float = THRESHOLD,
) -> Staircase:
    """The staircase of a target.

    Parameters
    ----------
    target : MultiIndex, callable, str or Activation
        g, a numpy function of r arrays; as text an expression in z1 ... z4 such as
        "z1 + z1*z2", ``module:function``, or a function of one direction by name.
    dimension : int
        r, up to 4, for a plain function of several arguments.
    degree : int
        Highest degree of the tensors, up to 12.
    threshold : float
        Share of the variance below which a connection is not counted.

    Raises
    ------
    InvalidArgument
        If an argument is out of range or the target constant.
    QuadratureError
        If the averages cannot be integrated to 1 % of the variance.

    Examples
    --------
    >>> found = staircase("z1 + z1*z2 + z1*z2*z3")
    >>> [(stage.leap, np.abs(stage.directions).round(9).tolist()) for stage in found.stages]
    [(1, [[1.0, 0.0, 0.0]]), (1, [[0.0, 1.0, 0.0]]), (1, [[0.0, 0.0, 1.0]])]
    >>> weak = staircase("(4*z1 + z1**2 + z2)/2").stages[1]  # strength 16/289
    >>> weak.directions.round(3).tolist(), weak.strengths.round(6).tolist()
    ([[-0.243, 0.97]], [0.055363])
    """
    g = _multi_index(target, dimension)
    r = g.dimension
    if not 1 <= degree <= HIGHEST or int(degree) != degree:
        raise InvalidArgument("degree", degree, f"an integer from 1 to {HIGHEST}")
    if not 0 <= threshold < 1:
        raise InvalidArgument("threshold", threshold, "0 or more and below 1")
    start = _averages(g, np.eye(r), 0, int(degree))
    now, known, stages, error = start, np.empty((0, r)), [], start.error
    while len(known) < r:
        found = _next_stage(now, max(threshold, MARGIN * error))
        if found is None:
            break
        leap, vectors, strengths = found
        new = _upright(vectors.T @ now.basis[len(known) :])
        known = np.concatenate([known, new])
        now = _averages(g, _completed(known), len(known), int(degree))
        error = max(error, now.error)
        stages.append(Stage(leap, new, strengths, now.explained))
    return Staircase(
        target=g,
        degree=int(degree),
        mean=start.mean,
        variance=start.variance,
        tensors=_tensors(start.contracted, r, int(degree)),
        stages=tuple(stages),
        error=error,
        resolution=max(threshold, MARGIN * error),
    )


class _Averages(NamedTuple):
    """With U the first rows of ``basis`` (r, r): M_1 / 1!, M_2 / 2!, ... on its complement, the
    share of the variance that functions of z_U explain, and what all this was computed from."""

    basis: Array
    moments: list[Array]
    explained: float
    mean: float
    variance: float
    contracted: Array
    error: float


def _multi_index(spec: Any, dimension: int | None) -> MultiIndex:
    """The target as a function of r arrays, r at most what a tensor quadrature serves."""
    if dimension is not None and isinstance(spec, str) and ":" in spec:
        spec = imported(spec, "target")
    if dimension is not None and not isinstance(spec, (str, MultiIndex, Activation)):
        return MultiIndex(spec, dimension, getattr(spec, "__name__", "multi-index"))
    found = find_target(spec)
    found = found if isinstance(found, MultiIndex) else MultiIndex(found, 1, found.name)
    if dimension not in (None, found.dimension):
        raise InvalidArgument("dimension", dimension, f"{found.dimension} for {found.name}")
    return found


def _averages(g: MultiIndex, basis: Array, known: int, degree: int) -> _Averages:
    """The averages by the rules, of two families and of growing size, that settle them best."""
    best: _Averages | None = None
    previous: dict[str, _Averages] = {}
    for n in TENSOR_SIZES[g.dimension]:
        for family, rule in (("hermite", gauss_hermite(n)), ("trapezoid", _trapezoid(n))):
            found = _on_rule(g, rule, basis, known, degree)
            if found.variance <= 1e-24 * found.mean**2:
                raise InvalidArgument("target", g.name, "a function that is not constant")
            if family in previous:
                found = found._replace(error=_change(previous[family], found))
                if best is None or found.error < best.error:
                    best = found
                if best.error <= TOLERANCE:
                    return best
            previous[family] = found
    assert best is not None
    if not best.error <= ROUGHEST:
        raise QuadratureError(
            f"target {g.name}: averages over {g.dimension} Gaussian directions are known to "
            f"{best.error:.1g} of its variance only"
        )
    return best


def _change(coarse: _Averages, fine: _Averages) -> float:
    """Largest change of an average, relative to the variance."""
    pairs = zip(coarse.moments, fine.moments, strict=True)
    changes = [np.abs(a - b).max(initial=0.0) / fine.variance for a, b in pairs]
    changes += [abs(coarse.explained - fine.explained), abs(coarse.variance / fine.variance - 1)]
    return float(np.max(changes))


def _trapezoid(n: int) -> Rule:
    rule = trapezoid_tensor(n, 1)
    return Rule(rule.nodes[:, 0], rule.weights)


def _on_rule(g: MultiIndex, rule: Rule, basis: Array, known: int, degree: int) -> _Averages:
    """All averages on the tensor product of ``rule`` along the rows of ``basis``."""
    r, n = g.dimension, rule.weights.size
    y = np.stack(np.meshgrid(*[rule.nodes] * r, indexing="ij"))
    values = g(*np.tensordot(basis.T, y, axes=1))
    hermite = hermite_e.hermevander(rule.nodes, degree).T * rule.weights
    contracted = values
    for _ in range(r - known):  # axis after axis: nodes of y_i become degrees 0, 1, ... in it
        contracted = np.tensordot(contracted, hermite, axes=(known, 1))
    weights = reduce(np.multiply.outer, [rule.weights] * known, np.array(1.0)).ravel()
    at = contracted.reshape((n**known, *[degree + 1] * (r - known)))
    every = reduce(np.multiply.outer, [rule.weights] * r)
    mean = float((every * values).sum())
    variance = float((every * (values - mean) ** 2).sum())
    given = at.reshape(n**known, -1)[:, 0] - mean  # E[g | z_U] - E g
    explained = float(weights @ given**2) / (variance or 1.0)
    moments = [_moment(at, weights, k, r - known) for k in range(1, degree + 1)]
    return _Averages(basis, moments, explained, mean, variance, contracted, np.inf)


def _moment(at: Array, weights: Array, k: int, free: int) -> Array:
    """M_k / k!, (free, free), from E[prod_i He_{m_i}(y_i) g | z_U], (N, degree + 1, ...)."""
    total = np.zeros((free, free))
    for m in _multi_indices(free, k - 1):
        count = factorial(k - 1) / prod(map(factorial, m))  # entries of the tensor that are equal
        rows = [at[:, *np.add(m, unit)] for unit in np.eye(free, dtype=int)]
        T = np.array(rows).reshape(free, -1)
        total += count * (T * weights) @ T.T
    return total / factorial(k)


def _multi_indices(size: int, total: int) -> list[list[int]]:
    """All m >= 0 of ``size`` integers that sum to ``total``."""
    if not size:
        return []
    every = itertools.combinations_with_replacement(range(size), total)
    return [[chosen.count(i) for i in range(size)] for chosen in every]


def _tensors(contracted: Array, r: int, degree: int) -> tuple[Array, ...]:
    """C_0, ..., C_degree from the coefficients E prod_i He_{m_i}(z_i) g."""
    found = []
    for k in range(degree + 1):
        C = np.empty((r,) * k)
        for index in np.ndindex(C.shape):
            C[index] = contracted[tuple(np.bincount(np.array(index, dtype=int), minlength=r))]
        found.append(C)
    return tuple(found)


def _next_stage(now: _Averages, resolution: float) -> tuple[int, Array, Array] | None:
    """Leap, eigenvectors (columns) and eigenvalues of the first M_k that is not zero."""
    for k, moment in enumerate(now.moments, start=1):
        values, vectors = np.linalg.eigh(moment)
        kept = values > resolution * now.variance
        if kept.any():
            return k, vectors[:, kept][:, ::-1], values[kept][::-1]
    return None


def _upright(rows: Array) -> Array:
    """The rows with signs that make their largest entries positive."""
    largest = np.take_along_axis(rows, np.abs(rows).argmax(axis=1)[:, None], axis=1)
    return rows * np.sign(largest)


def _completed(rows: Array) -> Array:
    """An orthonormal basis whose first rows are ``rows``, (r, r)."""
    return np.concatenate([rows, np.linalg.svd(rows)[2][len(rows) :]])


def _rows(stages: tuple[Stage, ...], r: int) -> Array:
    return np.concatenate([np.empty((0, r)), *(stage.directions for stage in stages)])
