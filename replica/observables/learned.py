"""The function that the trained network implements along the spikes.  docs/theory.md 4, [C] Fig. 1.

Given the projection kappa of an input on the spikes, the output of the network is Gaussian over
the rest of the input, with

    mean      C(kappa) = mu_0.m + sum_b mu_1^b kappa.theta_b,                      (4.5)
    variance  m_1^T Q_1 m_1 + m_2.q_2,                                             (4.7)

while the target has the mean h(kappa) and the variance k - h^2 (3.3): what of it the spikes do
not tell.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from solvers.resources import TIME_LIMIT
from solvers.results import Array
from solvers.rules import gauss_hermite, tensor, trapezoid

from ..equivalence import Table, at_points, average, projections, tabulate_at
from ..errors import InvalidArgument
from ..given import FirstLayer, HermiteStrata, Posterior, needs_alpha
from ..plotting import plot_learned
from ..problem import Components, SpikedRandomFeatures, check_model, plain_array
from ..saddle_point import Field, Overlaps, field_on, ridge
from .given_layers import solve_given
from .solution import Solution, solve

if TYPE_CHECKING:
    from matplotlib.axes import Axes


NODES = {1: 128, 2: 24, 3: 16, 4: 12}  # of z along each of the spikes, given a direction

# What averages over all that kappa does not tell, and mean and variance of each part of it, (M N,).
Conditional = tuple[Callable[[Array], Array], Array, Array]


@dataclass(frozen=True, eq=False)
class LearnedFunction:
    """Outputs of trained network and target given kappa, of :func:`replica.learned_function`.

    The methods take kappa of any shape (...) or, with K spikes, (K, ...), and return (...); the
    network's are NaN where the point did not converge.

    Attributes
    ----------
    point : Solution
    """

    point: Solution

    @property
    def settings(self) -> dict[str, Any]:
        """The problem and the point, in plain values."""
        return self.point.settings

    def plot(self, ax: "Axes | None" = None) -> "Axes":
        """Mean and deviation of the output, :func:`replica.plotting.plot_learned`."""
        return plot_learned(self, ax)

    def mean(self, kappa: ArrayLike) -> Array:
        """The mean output C(kappa).  Eq. (4.5)"""
        return self._moments(kappa)[0]

    def variance(self, kappa: ArrayLike) -> Array:
        """Variance of the output over the inputs of projection kappa.  Eq. (4.7)"""
        return self._moments(kappa)[1]

    def expected(self, function: Callable[[Array], Array], kappa: ArrayLike) -> Array:
        """E f(output) over the inputs of projection kappa, of a smooth ``function`` f, elementwise
        in arrays."""
        averaged, centre, power = self._output(kappa)
        z, w = trapezoid(128)
        return averaged(function(centre[:, None] + np.sqrt(power[:, None]) * z) @ w)

    def target_mean(self, kappa: ArrayLike) -> Array:
        """The conditional mean h(kappa) of the target.  Eq. (3.3)"""
        averaged, h, _ = self._target(kappa)
        return averaged(h)

    def target_variance(self, kappa: ArrayLike) -> Array:
        """k - h^2, without the label noise.  Eq. (3.3)"""
        return _mixed(*self._target(kappa))[1]

    def _moments(self, kappa: ArrayLike) -> tuple[Array, Array]:
        """Mean and variance of the output."""
        return _mixed(*self._output(kappa))

    @property
    def _model(self) -> SpikedRandomFeatures:
        """With the trained bias, where there is one."""
        return self.point.model.with_bias(float(np.nan_to_num(self.point.trained_bias)))

    def _target(self, kappa: ArrayLike) -> Conditional:
        """Mean and variance of the target given kappa and the component of the input."""
        table, averaged = at_points(self._model, kappa)
        return averaged, table.h, table.spread

    def _output(self, kappa: ArrayLike) -> Conditional:
        """The same of the output, which is Gaussian; NaN if not converged."""
        table, averaged = at_points(self._model, kappa)
        field = self._field(table)
        return averaged, field.centre[0], field.power[0]

    def _field(self, table: Table) -> Field:
        """The law of the output at the nodes of a table."""
        # what groups contribute, summed over those of a kind
        member = np.equal.outer(np.arange(len(table.c)), table.classes)
        o, kinds = self.point.overlaps, np.where(self.point.converged, member, np.nan)
        special = kinds @ (table.signs * o.special)
        theta, psi = np.split(special, [table.loadings.shape[1]], axis=1)
        first, second = (kinds @ each @ kinds.T for each in (o.V1, o.Q1))
        of_kinds = first, kinds @ o.V2, o.m, theta, psi, second, kinds @ o.q2
        overlaps = Overlaps(*(part[None] for part in of_kinds))
        return field_on(ridge.responses_of(table), overlaps)


@dataclass(frozen=True, eq=False)
class LearnedAlong(LearnedFunction):
    """The same given the projection kappa on one ``direction`` of the input's coordinates, (D,)."""

    direction: Array

    def _target(self, kappa: ArrayLike) -> Conditional:
        model, (t, shape) = self._model, projections(kappa, 1)
        alone = Components.of(model.inputs, self.direction[:, None], model.labels.target.dimension)
        places, chance = alone.given(t)
        found = alone.moments(model.labels.mean, places)
        return partial(average, chance, shape), found.h, found.spread

    def _output(self, kappa: ArrayLike) -> Conditional:
        model, (t, shape) = self._model, projections(kappa, 1)
        inputs = model.components
        spikes = inputs.slope.shape[2]
        nodes, weights = tensor(*[gauss_hermite(NODES[spikes])] * spikes)
        found = inputs.along(self.direction, t[0], nodes)
        parts = len(found.chance) * len(weights)
        weights = (found.chance[:, None] * weights[:, None]).reshape(parts, t.size)
        field = self._field(tabulate_at(model, found.places, weights.ravel(), target=False))
        pull = (field.pull[0] * found.unit).sum(axis=1)
        centre = field.centre[0] + pull * found.depth
        return partial(average, weights, shape), centre, field.power[0] - pull**2


def _mixed(averaged: Callable[[Array], Array], mean: Array, variance: Array) -> tuple[Array, Array]:
    """Mean and variance of a mixture whose parts have these, (M N,)."""
    whole = averaged(mean)
    apart = mean - np.tile(whole.ravel(), mean.size // max(whole.size, 1))
    return whole, averaged(variance + apart**2)


@dataclass(frozen=True, eq=False)
class LearnedByReadout(LearnedFunction):
    """The same of a given layer: of its mean readout, and with what its samples change, given the
    projections kappa on the target's directions.

    Attributes
    ----------
    point : ReadoutSolution
    readout : Posterior
    """

    point: Any
    readout: Posterior | None

    def mean(self, kappa: ArrayLike) -> Array:
        """The mean output C(kappa), of inputs and readouts.  Eq. (20.3)"""
        return self._of_readout(kappa, lambda strata, readout: strata.mean(readout.mean))

    def variance(self, kappa: ArrayLike) -> Array:
        """Variance of the output over the inputs of projection kappa, and over readouts.
        Eq. (20.7)"""

        def total(strata: HermiteStrata, readout: Posterior) -> Array:
            return strata.quadratic(readout.mean) + strata.trace(readout.covariance) / strata.width

        return self._of_readout(kappa, total)

    def target_mean(self, kappa: ArrayLike) -> Array:
        """E[y | kappa]."""
        places, shape = self._places(kappa)
        return np.asarray(self.point.model.law.mean(*places)).reshape(shape)

    def target_variance(self, kappa: ArrayLike) -> Array:
        """0: the target is a function of kappa."""
        return np.zeros(self._places(kappa)[1])

    def _of_readout(
        self, kappa: ArrayLike, made: Callable[[HermiteStrata, Posterior], Array]
    ) -> Array:
        """What is ``made`` of the features at kappa and the readout; NaN where it is not known."""
        places, shape = self._places(kappa)
        strata = self.point.model.along_target(places)
        if self.readout is None or not self.point.converged:
            return np.full(shape, np.nan)
        return made(strata, self.readout).reshape(shape)

    def _places(self, kappa: ArrayLike) -> tuple[Array, tuple[int, ...]]:
        """kappa as (T, N), and the shape (...)."""
        T, places = self.point.model.directions.shape[1], np.asarray(kappa, dtype=float)
        shape = places.shape if T == 1 else places.shape[1:]
        if T > 1 and places.shape[:1] != (T,):
            allowed = f"of shape ({T}, ...), as the target has {T} directions"
            raise InvalidArgument("kappa", f"shape {places.shape}", allowed)
        return places.reshape(T, -1), shape


def learned_function(
    model: SpikedRandomFeatures | FirstLayer,
    *,
    alpha: float | None = None,
    samples: float | None = None,
    lam: float,
    direction: ArrayLike | None = None,
    quadrature_tol: float | None = None,
    time_limit: float = TIME_LIMIT,
) -> LearnedFunction:
    """What the network has learned along the spikes, or along a direction, at one point.

    Parameters
    ----------
    model : SpikedRandomFeatures or FirstLayer
        Of the latter along the target's directions, on inputs N(0, I).
    alpha, samples, lam, quadrature_tol, time_limit : float
        As in :func:`replica.solve`.
    direction : (D,) array, optional
        In the coordinates of the target's arguments or, with ``inputs``, of these; of any length
        but 0.  kappa is then the projection on it, one number.  Not of a FirstLayer.

    Raises
    ------
    InvalidArgument
        If an argument is missing or out of range, or labels are +-1 at random.

    Examples
    --------
    >>> from replica import GradientStep, learned_function
    >>> model = GradientStep(student="tanh", target="sin", alpha0=20, eta=3.0).srf(beta=1.0)
    >>> learned = learned_function(model, alpha=1.0, lam=0.1)
    >>> learned.mean([0.0, 1.0]).round(4).tolist(), learned.variance(1.0).round(4).tolist()
    ([0.0, 0.6931], 0.0124)
    >>> two = GradientStep(student="relu", target="z1 + z1*z2", alpha0=2, eta=2).srf(beta=1.0)
    >>> along = learned_function(two, alpha=2.0, lam=0.1, direction=[0, 1])
    >>> along.mean([-1.0, 1.0]).round(4).tolist()
    [0.1424, 0.3901]
    """
    if isinstance(model, FirstLayer):
        if direction is not None:
            allowed = "left out of a given layer: kappa has the target's directions"
            raise InvalidArgument("direction", direction, allowed)
        limits = quadrature_tol, time_limit
        point, points = solve_given(model, alpha, samples, lam, "square", *limits)
        return LearnedByReadout(point, points.last)
    check_model(model)
    model.refuse_channel()
    alpha = needs_alpha(alpha, samples)
    accuracy: dict[str, Any] = {"quadrature_tol": quadrature_tol, "time_limit": time_limit}
    if direction is None:
        return LearnedFunction(solve(model, alpha=alpha, lam=lam, **accuracy))
    along, D = plain_array("direction", direction), len(model.components.basis)
    if along.shape != (D,) or not (np.isfinite(along).all() and along.any()):
        raise InvalidArgument("direction", direction, f"{D} finite numbers that are not all 0")
    along = along / np.linalg.norm(along)
    return LearnedAlong(solve(model, alpha=alpha, lam=lam, **accuracy), along)
