"""A giant step at a finite dimension, on inputs whose structure grows with it.
docs/theory.md 12, 19

E is the span of the directions in which the inputs differ from N(0, I).  Where variances in E grow
with the dimension n, or the step changes a row in E by as much as its length there, the initial
overlaps w0 of a row with E are not small.  Every row then has loadings of its own.  Groups of
neurons are nodes of a Gaussian rule for w0, times values of the readout.  The step acts on each
group: on E, and along one more direction, of the gradient's noise and the rest of the target.
Equation (19.7).
"""

from dataclasses import replace

import numpy as np

from solvers.results import Array
from solvers.rules import gauss_hermite, tensor_rule

from ..equivalence import Table, tabulate
from ..errors import InvalidArgument
from ..problem import Components, GaussianMixture, SpikedRandomFeatures, number
from .several_steps import rows_as_model, slope_statistics
from .step_fields import Step


def features_at_dimension(
    step: Step, *, beta: float, dimension: float, row_nodes: int = 5, readout_nodes: int = 3
) -> SpikedRandomFeatures:
    """The sRF after a single step at a finite dimension n.  Eqs. (19.7)-(19.8)

    It has a group of neurons for every node of a row's initial overlaps with the structured
    directions of the inputs.  Rows are drawn from N(0, I / tr), with tr the trace of E x x^T: the
    scaling of Demir and Doğan, [M].

    Parameters
    ----------
    step : GradientStep
        A step with ``inputs``, and a readout of mean 0, such as "gaussian".
    beta : float
        Width over dimension, k/n.
    dimension : float
        Input dimension n.
    row_nodes, readout_nodes : int
        Nodes of the rules for a row's overlap with each structured direction, and for a continuous
        law of the readout.

    Raises
    ------
    InvalidArgument
        If there are no ``inputs``, several steps, biases, or a readout whose mean is not 0; or if
        there would be more than 500 groups.

    Examples
    --------
    >>> import numpy as np
    >>> from replica import GaussianMixture, GradientStep, solve
    >>> from replica.steps import features_at_dimension
    >>> law = GaussianMixture(means=np.zeros((1, 1)), covariances=[[20.0]])
    >>> step = GradientStep(
    ...     student="tanh", target="relu", inputs=law, alpha0=1, eta=0.01, readout="gaussian"
    ... )
    >>> model = features_at_dimension(step, beta=1.0, dimension=1000)
    >>> len(model.geometry.c), model.resolved, solve(model, alpha=1, lam=0.1).converged
    (15, 1, True)
    """
    n = number("dimension", dimension, 1, 1e12, "1 or more")
    if step.inputs is None:
        allowed = "given: a GaussianMixture, whose means and covariances a finite dimension follows"
        raise InvalidArgument("inputs", None, allowed)
    if step.steps or step.bias.values != (0.0,) or abs(step.readout.mean) > 1e-9:
        allowed = "of mean 0, in a single step without biases"
        raise InvalidArgument("readout", step.readout.values or step.readout.continuous, allowed)
    input_structure = structured_directions(step.inputs)
    known_dimension, K = step.known_dimension, input_structure.shape[1]
    axes_in_E = np.pad(input_structure, ((0, known_dimension - len(input_structure)), (0, 0)))
    is_gaussian_readout = step.readout.continuous == "gaussian"
    discretise_readout = gauss_hermite if is_gaussian_readout else step.readout.discretise
    readout_values, readout_shares = discretise_readout(readout_nodes)
    row_rule = tensor_rule(*[gauss_hermite(row_nodes)] * K)
    if len(row_rule.weights) * len(readout_values) > 500:  # one point takes a minute
        allowed = f"fewer: {len(row_rule.weights)} times {len(readout_values)} groups are too many"
        raise InvalidArgument("row_nodes", row_nodes, allowed)
    trace = n + float(np.trace(step.averages.second)) - len(step.averages.second)
    readout_power = float(readout_shares @ readout_values**2) / (n * beta)
    batch = _averaged_batch(step, axes_in_E, readout_power)
    updated_rows = [
        _rows_after_step(step, batch, w0, step.eta * readout_values, n / trace, (n - K) / trace)
        for w0 in row_rule.nodes / np.sqrt(trace)
    ]
    row_loadings, variances = (np.concatenate(arrays) for arrays in zip(*updated_rows, strict=True))
    group_fractions = np.multiply.outer(row_rule.weights, readout_shares).ravel()
    # leading direction of the loadings outside E: the rest is small
    outside_part = row_loadings[:, K:]
    outside_powers, loading_axes = np.linalg.eigh((outside_part.T * group_fractions) @ outside_part)
    outside_direction = loading_axes[:, -1] * np.sign(loading_axes[0, -1] or 1.0)
    u = outside_direction if outside_powers[-1] > 0 else np.eye(len(outside_direction))[0]
    u_cosines = Components.from_law(step.inputs, axes_in_E, np.empty((0, 0))).basis[:, K:] @ u[1:]
    return replace(
        step.features(gamma=np.zeros(known_dimension), r=0.0, c=1.0),
        r=np.column_stack([row_loadings[:, :K], row_loadings[:, K:] @ u]),
        c=variances,
        fractions=group_fractions / group_fractions.sum(),
        gamma=np.column_stack([axes_in_E, u_cosines]),
        beta=beta,
        dimension=n,
        resolved=K,
    )


def structured_directions(law: GaussianMixture) -> Array:
    """Orthonormal columns (D, K) that span the directions in which a ``law`` differs from N(0, I).

    The first is the projection of the first coordinate, along which targets may have a kink.
    """
    span = [*law.means, *(law.each_covariance - np.eye(law.dimension)).reshape(-1, law.dimension)]
    axes, structure_sizes, _ = np.linalg.svd(np.array(span).T, full_matrices=False)
    axes = axes[:, structure_sizes > 1e-12 * max(structure_sizes[0], 1e-300)]
    structured_axis = axes @ axes[:1].T  # projection of the first coordinate
    if np.linalg.norm(structured_axis) > 1e-9:
        structured_axis = structured_axis / np.linalg.norm(structured_axis)
        other_axes = np.linalg.svd(axes - structured_axis @ (structured_axis.T @ axes))[0][
            :, : axes.shape[1] - 1
        ]
        axes = np.hstack([structured_axis, other_axes])
    return np.asarray(axes * np.where(axes[0] < 0, -1.0, 1.0))


def _averaged_batch(
    step: Step, directions: Array, readout_power: float
) -> tuple[Table, Array, Array]:
    """Table of the step's samples at N nodes of their coordinates on E, ``directions`` (D, K); the
    mean square of the residual there, (N,); and the mean of the label times the coordinates outside
    E, (K', N).

    ``readout_power`` is the mean square of the readout, over the width k.
    """
    K, label_law = directions.shape[1], step.labels_at(0)
    kappa_rule = tensor_rule(*[gauss_hermite(40 if K < 3 else 16)] * K)  # in each direction of E
    table = tabulate(rows_as_model(step, label_law, np.zeros((1, K)), 1.0, directions), kappa_rule)
    outside_means = table.mean * table.h + np.einsum("kln,ln->kn", table.root, table.g)
    # the initial output, of random sign, acts as label noise
    moments = step.student.moments(0.0, 1.0)
    output_noise = float(moments.mean**2 + moments.first**2 + moments.variance) * readout_power
    label_variance = label_law.conditional_variance(table.h, table.spread)
    return table, table.h**2 + label_variance + output_noise, outside_means


def _rows_after_step(
    step: Step,
    batch: tuple[Table, Array, Array],
    w0: Array,
    push: Array,
    outside_variance: float,
    c0: float,
) -> tuple[Array, Array]:
    """Loadings (V, K + 1 + K') and bulk variances (V,) of rows that start from ``w0`` on E.

    The V values of ``push`` are learning rates times readouts.  Loadings are on E, along the
    gradient's noise, and outside E.  Variances of the initial bulk are ``outside_variance``, with
    means over E, and ``c0``.  Eqs. (19.6)-(19.7)
    """
    (table, rho2, outside_means), alpha0, decay_factor = batch, step.alpha0, step.decay_factor(0)
    w, initial_field = table.weights, w0 @ table.kappa
    g1 = step.student.slope_moments_at(initial_field, outside_variance)[0]
    g2, slope_variance = slope_statistics(step.student, initial_field, outside_variance)
    noise = np.sqrt((rho2 * g1**2) @ w / alpha0)
    spike = np.concatenate([(table.kappa * table.h * g1) @ w, [noise], (outside_means * g1) @ w])
    r = decay_factor * np.pad(w0, (0, len(spike) - len(w0))) + np.multiply.outer(push, spike)
    mean_bulk_stretch, common_bulk_noise = (table.h * g2) @ w, (rho2 * g2**2) @ w / alpha0
    independent_variance = (rho2 * (slope_variance - outside_variance * g2**2)) @ w / alpha0
    bulk_scale = (decay_factor + push * mean_bulk_stretch) ** 2 + push**2 * common_bulk_noise
    return r, c0 * bulk_scale + push**2 * independent_variance
