"""Functions learned along spikes or a direction, by networks and by readouts of a given layer.
docs/theory.md 4, [C] Fig. 1

Given the projection kappa of an input on the spikes, the output of the network is Gaussian over
the rest of the input, with

    mean      C(kappa) = mu_0.m + sum_b mu_1^b kappa.theta_b,                      (4.5)
    variance  m_1^T Q_1 m_1 + m_2.q_2,                                             (4.7)

while the target has the mean h(kappa) and the variance k - h^2 (3.3), which the spikes do not
explain.
"""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from solvers.quadrature import NODES_PER_AXIS
from solvers.resources import TIME_LIMIT, GivenUp, check_time, deadline
from solvers.results import Array
from solvers.rules import trapezoid, trapezoid_tensor
from solvers.successive_refinement import largest_change, settle

from ..display import in_words
from ..equivalence import Table, average_components, flat_kappa, table_at_kappa, tabulate_at
from ..errors import InvalidArgument
from ..given import FirstLayer, Posterior
from ..plotting import drawn_kappa, plot_learned
from ..problem import Components, SpikedRandomFeatures, check_call, refuse_options, unit_vector
from ..saddle_point import Field, Overlaps, field_at_nodes, ridge
from ..steps import GradientStep, model_of
from .solution import AtPoint, Solution, solve, solve_layer

if TYPE_CHECKING:
    from matplotlib.axes import Axes


# Average over the components given kappa, and mean and variance in each of them, (M N,).
Conditional = tuple[Callable[[Array], Array], Array, Array]


@dataclass(frozen=True, eq=False, repr=False)
class LearnedFunction(AtPoint):
    """Outputs of trained network and target given kappa, of :func:`replica.learned_function`.

    The methods take kappa of any shape (...) or, with K spikes, (K, ...), and return (...); the
    network's are NaN where the point did not converge.

    Attributes
    ----------
    point : Solution
    """

    point: Solution

    def plot(self, ax: "Axes | None" = None) -> "Axes":
        """Mean and deviation of the output, :func:`replica.plotting.plot_learned`."""
        return plot_learned(self, ax)

    def _facts(self) -> dict[str, Any]:
        learned_names = "mean", "variance", "moments", "expected", "target_mean", "target_variance"
        point_facts = {"test_error": self.point.test_error, "status": self.point.status.value}
        return {"point": in_words(point_facts), "of kappa": ", ".join(learned_names)}

    def _rows(self) -> list[dict[str, Any]]:
        kappa = drawn_kappa()
        output_mean, output_variance = self.moments(kappa)
        columns = {"kappa": kappa, "mean": output_mean, "variance": output_variance}
        columns |= {name: getattr(self, name)(kappa) for name in ("target_mean", "target_variance")}
        return value_rows(columns)

    def mean(self, kappa: ArrayLike) -> Array:
        """The mean output C(kappa).  Eq. (4.5)"""
        return self.moments(kappa)[0]

    def variance(self, kappa: ArrayLike) -> Array:
        """Variance of the output over the inputs of projection kappa.  Eq. (4.7)"""
        return self.moments(kappa)[1]

    def moments(self, kappa: ArrayLike) -> Array:
        """Mean and variance, (2, ...)."""
        return self._average(kappa, _mixture_moments)

    def expected(self, function: Callable[[Array], Array], kappa: ArrayLike) -> Array:
        """E f(output) over the inputs of projection kappa, of a smooth ``function`` f, elementwise
        in arrays."""
        output_nodes, w = trapezoid(128)

        def mean_of_function(
            averaged: Callable[[Array], Array], centre: Array, power: Array, _: Any = None
        ) -> Array:
            return averaged(function(centre[:, None] + np.sqrt(power[:, None]) * output_nodes) @ w)

        return self._average(kappa, mean_of_function)

    def target_mean(self, kappa: ArrayLike) -> Array:
        """The conditional mean h(kappa) of the target.  Eq. (3.3)"""
        return _mixture_moments(*self._target(kappa))[0]

    def target_variance(self, kappa: ArrayLike) -> Array:
        """k - h^2, without the label noise.  Eq. (3.3)"""
        return _mixture_moments(*self._target(kappa))[1]

    def _average(self, kappa: ArrayLike, of_output_law: Callable[..., Array]) -> Array:
        """Values of ``of_output_law``, of the law of the output, (..., *shape of kappa)."""
        kappa_table, component_average = table_at_kappa(self._model, kappa, merged=False)
        unknown_output = np.full(kappa_table.weights.shape, np.nan)
        if not self.point.converged:
            return of_output_law(component_average, unknown_output, unknown_output)
        output_field = self._field(kappa_table)
        return of_output_law(component_average, output_field.centre[0], output_field.variance[0])

    @property
    def _model(self) -> SpikedRandomFeatures:
        """The model, with the trained bias where there is one."""
        return self.point.model.with_bias(float(np.nan_to_num(self.point.trained_bias)))

    def _target(self, kappa: ArrayLike) -> Conditional:
        """Mean and variance of the target given kappa and the component of the input."""
        kappa_table, kappa_average = table_at_kappa(self._model, kappa)
        return kappa_average, kappa_table.h, kappa_table.spread

    def _field(self, table: Table) -> Field:
        """The law of the output at the nodes of a table of all groups, none merged."""
        point_overlaps = Overlaps(*(overlap[None] for overlap in self.point.overlaps))
        return field_at_nodes(ridge.responses_of(table), point_overlaps)


def value_rows(columns: dict[str, Array]) -> list[dict[str, Any]]:
    """Rows of a table of the ``columns``, of one length."""
    value_lists = np.transpose([np.ravel(column) for column in columns.values()]).tolist()
    return [dict(zip(columns, row_values, strict=True)) for row_values in value_lists]


@dataclass(frozen=True, eq=False, repr=False)
class LearnedAlong(LearnedFunction):
    """Learned function given the projection kappa on one ``direction``, a unit vector (D,), of
    the input's coordinates; NaN also where the averages do not settle to 1e-5, or take longer
    than 20 s.

    Given kappa, the projections on the spikes and what the target has beside them are Gaussian in
    every component of the inputs; given the former, too, the output is linear in the latter, which
    leaves it Gaussian: its mean moves with the mean of these, and its variance loses what kappa
    tells of them.
    """

    direction: Array

    def moments(self, kappa: ArrayLike) -> Array:
        """Mean and variance, (2, ...); a variance with fewer than three digits left is NaN."""
        along_mean, variance, explained = self._average(kappa, _mixture_moments)
        variance_known = variance > 1e3 * 4 * np.finfo(float).eps * explained
        return np.stack([along_mean, np.where(variance_known | (explained == 0), variance, np.nan)])

    @property
    def settings(self) -> dict[str, Any]:
        """The problem and the point, in plain values, and the direction."""
        return super().settings | {"direction": self.direction.round(3).tolist()}

    def _target(self, kappa: ArrayLike) -> Conditional:
        model, (kappas, shape) = self._model, flat_kappa(kappa, 1)
        law = model.labels
        direction_law = Components.from_law(model.inputs, self.direction[:, None], law.combinations)
        kappa_places, component_chance = direction_law.places_of_kappa(kappas)
        target_t = direction_law.moments(law.combined_mean, kappa_places)
        return partial(average_components, component_chance, shape), target_t.h, target_t.spread

    def _average(self, kappa: ArrayLike, function_of_law: Callable[..., Array]) -> Array:
        places_per_block = 2**16  # some ten arrays of .5 MB for each group of neurons
        (t,), kappa_shape = flat_kappa(kappa, 1)
        input_components = self._model.components
        spikes_n, component_count = input_components.slope.shape[2], len(input_components.shares)
        rule_sizes = [n for n in NODES_PER_AXIS[spikes_n] if n**spikes_n <= 2 * places_per_block]
        plain, zeros = partial(average_components, np.ones((1, t.size)), t.shape), np.zeros(t.size)
        kappa_means = np.full_like(function_of_law(plain, zeros, zeros, zeros), np.nan)
        kappas = max(1, places_per_block // (component_count * rule_sizes[1] ** spikes_n))
        with suppress(GivenUp), deadline(TIME_LIMIT):
            kappas_known = t.size if self.point.converged else 0
            for block in (slice(start, start + kappas) for start in range(0, kappas_known, kappas)):
                values_on_rule = partial(self._on_nodes, t[block], function_of_law, spikes_n)
                # to 1e-5 of the largest value: finer than any line that is drawn
                rule_values = settle(rule_sizes, values_on_rule, largest_change, 1e-5)
                kappa_means[..., block] = rule_values.value if rule_values.converged else np.nan
        return kappa_means.reshape(kappa_means.shape[:-1] + kappa_shape)

    def _on_nodes(self, t: Array, of: Callable[..., Array], spikes: int, size: int) -> Array:
        """Values of the function ``of`` the law of the output at projections t (N,), on a rule of
        ``size`` nodes along each of the spikes."""
        check_time()
        model, rule = self._model, trapezoid_tensor(size, spikes)
        places, tau_on_direction, depth_along, component_chance = model.components.given_projection(
            self.direction, t, rule.nodes
        )
        weights = (component_chance[:, None] * rule.weights[:, None]).reshape(-1, t.size)
        field = self._field(tabulate_at(model, places, weights.ravel(), target=False, merged=False))
        pull_of_kappa = (field.tau_slope[0] * tau_on_direction).sum(axis=1)
        centre, explained = field.centre[0] + pull_of_kappa * depth_along, pull_of_kappa**2
        variance_left = np.maximum(field.variance[0] - explained, 0.0)
        return of(partial(average_components, weights, t.shape), centre, variance_left, explained)


def _mixture_moments(
    averaged: Callable[[Array], Array], mean: Array, variance: Array, explained: Array | None = None
) -> Array:
    """Mean and variance of a mixture of parts with ``mean`` and ``variance`` (M N,), (2, ...); and
    the average of the variances that kappa has ``explained``, (3, ...)."""
    mixture_mean = averaged(mean)
    mean_deviation = mean - np.tile(mixture_mean.ravel(), mean.size // max(mixture_mean.size, 1))
    moments = [mixture_mean, averaged(variance + mean_deviation**2)]
    return np.stack(moments if explained is None else [*moments, averaged(explained)])


@dataclass(frozen=True, eq=False, repr=False)
class LearnedByReadout(LearnedFunction):
    """Learned function of a given layer, given the projections kappa on the target's directions:
    mean over inputs of the mean readout, and variance over inputs and over samples of the readout.

    Attributes
    ----------
    point : Solution
    readout : Posterior
    """

    point: Any
    readout: Posterior | None

    def moments(self, kappa: ArrayLike) -> Array:
        """Mean and variance of the output (2, ...), over the inputs of projections kappa and over
        readouts.  Eqs. (20.3), (20.7)"""
        kappa_places, kappa_shape = self._places(kappa)
        if self.readout is None or not self.point.converged or not kappa_places.size:
            return np.full((2, *kappa_shape), np.nan)
        kappa_strata, mean_readout = self.point.model.along_target(kappa_places), self.readout.mean
        output_mean, _, output_variance = kappa_strata.along(mean_readout)
        output_variance = output_variance + kappa_strata.trace(self.readout.covariance)
        return np.stack([output_mean.reshape(kappa_shape), output_variance.reshape(kappa_shape)])

    def _target(self, kappa: ArrayLike) -> Conditional:
        """Law of the target given kappa, of which it is a function: its variance is 0."""
        kappa_places, kappa_shape = self._places(kappa)
        target_mean = np.asarray(self.point.model.law.mean(*kappa_places))
        return lambda values: values.reshape(kappa_shape), target_mean, np.zeros_like(target_mean)

    def _places(self, kappa: ArrayLike) -> tuple[Array, tuple[int, ...]]:
        """kappa as (T, N), and the shape (...)."""
        return flat_kappa(kappa, self.point.model.directions.shape[1])


@check_call
def learned_function(
    model: SpikedRandomFeatures | GradientStep | FirstLayer,
    *,
    alpha: float | None = None,
    samples: float | None = None,
    lam: float,
    beta: float | None = None,
    theory: str | None = None,
    direction: ArrayLike | None = None,
    quadrature_tol: float | None = None,
    time_limit: float = TIME_LIMIT,
) -> LearnedFunction:
    """Function that the network has learned along the spikes, or along a direction, at a point.

    Parameters
    ----------
    model : GradientStep, SpikedRandomFeatures or FirstLayer
        A FirstLayer is taken along the target's directions, on inputs N(0, I).
    alpha, samples, lam, beta, theory, quadrature_tol, time_limit
        As in :func:`replica.solve`.
    direction : (D,) array, optional
        Direction in the coordinates of the target's arguments or, with ``inputs``, of these; not
        of a FirstLayer.  kappa is then the projection on it, one number.

    Raises
    ------
    InvalidArgument
        If an argument is missing or out of range, or labels are +-1 at random.

    Examples
    --------
    >>> from replica import GradientStep, learned_function
    >>> step = GradientStep(student="tanh", target="sin", alpha0=20, eta=3.0)
    >>> learned = learned_function(step, alpha=1.0, lam=0.1, beta=1.0)
    >>> learned.mean([0.0, 1.0]).round(4).tolist(), learned.variance(1.0).round(4).tolist()
    ([0.0, 0.6931], 0.0124)
    >>> two = GradientStep(student="relu", target="z1 + z1*z2", alpha0=2, eta=2)
    >>> along = learned_function(two, alpha=2.0, lam=0.1, beta=1.0, direction=[0, 1])
    >>> along.mean([-1.0, 1.0]).round(4).tolist()
    [0.1424, 0.3901]
    """
    model = model_of(model, beta, theory, alpha, FirstLayer, samples)
    if isinstance(model, FirstLayer):
        if direction is not None:
            raise InvalidArgument("direction", direction, "left out: a layer has the target's")
        if model.inputs is not None:
            allowed_here = "left out of a layer here, where all its inputs are N(0, I)"
            raise InvalidArgument("inputs", model.inputs, allowed_here)
        layer_options = alpha, samples, lam, "square", quadrature_tol, time_limit
        layer_point, given_point = solve_layer(model, *layer_options)
        return LearnedByReadout(layer_point, given_point.last)
    refuse_options(model, "label_noise", "dimension")
    if model.reuse and (
        model.labels.target.dimension > 1 or model.step.initialisation == "gaussian"
    ):
        allowed_here = "0 here for targets of several directions and Gaussian rows"
        raise InvalidArgument("reuse", model.reuse, allowed_here)
    point_options: dict[str, Any] = {"quadrature_tol": quadrature_tol, "time_limit": time_limit}
    learned_point = solve(model, alpha=alpha, lam=lam, **point_options)
    if direction is None:
        return LearnedFunction(learned_point)
    coordinate_count = len(learned_point.model.components.basis)
    return LearnedAlong(learned_point, unit_vector("direction", direction, coordinate_count))
