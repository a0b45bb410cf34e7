"""One giant step at a finite dimension, on inputs whose structure grows with it.
docs/theory.md 12, 19

Where a mixture has directions of a variance that grows with the dimension n, or rows are so short
that the step moves them by as much as they are long there, a row's own overlaps with these
directions, E, are no small change of its bulk: every row has loadings of its own.  Groups of
neurons are then nodes of a Gaussian rule for these overlaps, w0, and of the law of the readout; the
step acts on each of them, on E and along one direction beside it, of the gradient's noise and the
rest of the target.  Equation (19.7).
"""

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from solvers.results import Array
from solvers.rules import gauss_hermite, tensor_rule

from ..errors import InvalidArgument
from ..problem import Components, GaussianMixture, SpikedRandomFeatures, number
from .several_steps import slope_statistics
from .step import Step

MOST_GROUPS = 500  # a minute a point
KAPPA_NODES = 40  # a direction of E, for averages over a batch


class _Batch(NamedTuple):
    """A sample of the step at N nodes: weights (N,), its coordinates on E (K, N), the mean label h
    and e^2 (N,), and the mean of the label times the coordinates beside E (K', N)."""

    weights: Array
    kappa: Array
    h: Array
    square: Array
    beside: Array


def features_at_dimension(
    step: Step, *, beta: float, dimension: float, row_nodes: int = 5, readout_nodes: int = 3
) -> SpikedRandomFeatures:
    """The sRF of a single step at a finite dimension n, with a group for every node of the rows'
    own overlaps with the structure of the inputs.  Eqs. (19.7)-(19.8)

    Rows are drawn from N(0, I / tr), tr being the trace of E x x^T of the inputs: such are those
    of Demir and Doğan, [M], whose scaling this is the closed form of.

    Parameters
    ----------
    step : GradientStep
        With ``inputs``, and a readout of mean 0, such as "gaussian".
    beta : float
        Width over dimension, k/n.
    dimension : float
        n.
    row_nodes, readout_nodes : int
        Of the rules for a row's overlap with each direction of the structure, and for a continuous
        law of the readout.

    Raises
    ------
    InvalidArgument
        If the step has no ``inputs``, several steps, biases, or a readout of another mean; or if
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
        raise InvalidArgument("inputs", None, "a GaussianMixture, whose structure is resolved")
    if step.steps or step.bias.values != (0.0,) or abs(step.readout.mean) > 1e-9:
        allowed = "a readout of mean 0, in a single step, without biases"
        raise InvalidArgument("readout", step.readout.values or step.readout.continuous, allowed)
    structure = structured_directions(step.inputs)
    D, K = step.known, structure.shape[1]
    directions = np.pad(structure, ((0, D - len(structure)), (0, 0)))
    gaussian = step.readout.continuous == "gaussian"
    discretise = gauss_hermite if gaussian else step.readout.discretise
    values, shares = discretise(readout_nodes)
    rows = tensor_rule(*[gauss_hermite(row_nodes)] * K)
    if len(rows.weights) * len(values) > MOST_GROUPS:
        allowed = f"fewer: {len(rows.weights)} times {len(values)} groups are too many"
        raise InvalidArgument("row_nodes", row_nodes, allowed)
    trace = n + float(np.trace(step.averages.second)) - len(step.averages.second)
    power = float(shares @ values**2) / (n * beta)
    batch = _batch(step, directions, power)
    moved = [
        _moved(step, batch, w0, step.eta * values, n / trace, (n - K) / trace)
        for w0 in rows.nodes / np.sqrt(trace)
    ]
    loadings, variances = (np.concatenate(part) for part in zip(*moved, strict=True))
    fractions = np.multiply.outer(rows.weights, shares).ravel()
    # the unit vector that what rows have beside E is along, but for little
    beside = loadings[:, K:]
    values, vectors = np.linalg.eigh((beside.T * fractions) @ beside)
    along = vectors[:, -1] * np.sign(vectors[0, -1] or 1.0)
    u = along if values[-1] > 0 else np.eye(len(along))[0]
    cosines = Components.of(step.inputs, directions, np.empty((0, 0))).basis[:, K:] @ u[1:]
    return replace(
        step.features(gamma=np.zeros(D), r=0.0, c=1.0),
        r=np.column_stack([loadings[:, :K], loadings[:, K:] @ u]),
        c=variances,
        fractions=fractions / fractions.sum(),
        gamma=np.column_stack([directions, cosines]),
        beta=beta,
        dimension=n,
        resolved=K,
    )


def structured_directions(law: GaussianMixture) -> Array:
    """Orthonormal columns (D, K) that span all that differs from N(0, I): the first is what the
    first coordinate has of it."""
    apart = [*law.means, *(law.each_covariance - np.eye(law.dimension)).reshape(-1, law.dimension)]
    vectors, sizes, _ = np.linalg.svd(np.array(apart).T, full_matrices=False)
    vectors = vectors[:, sizes > 1e-12 * max(sizes[0], 1e-300)]
    first = vectors @ vectors[:1].T  # of the first coordinate, where targets may have a kink
    if np.linalg.norm(first) > 1e-9:
        first = first / np.linalg.norm(first)
        others = np.linalg.svd(vectors - first @ (first.T @ vectors))[0][:, : vectors.shape[1] - 1]
        vectors = np.hstack([first, others])
    return np.asarray(vectors * np.where(vectors[0] < 0, -1.0, 1.0))


def _batch(step: Step, directions: Array, readout: float) -> _Batch:
    """The sample of the step given its coordinates on E, for a mean square ``readout`` over k."""
    K, labels = directions.shape[1], step.labels_at(0)
    of = Components.of(step.inputs, directions, labels.combinations)
    places, weights = of.on(tensor_rule(*[gauss_hermite(KAPPA_NODES if K < 3 else 16)] * K))
    h, g, spread = of.moments(labels.combined_mean, places)
    kappa, mean = np.split(of.special(places), [K])
    beside = mean * h + np.einsum("nkl,ln->kn", of.root[:, K:][places.component], g)
    # the first output, of random signs, is part of what the batch has for noise
    power = step.student.moments(0.0, 1.0)
    noise = float(power.mean**2 + power.first**2 + power.variance) * readout
    return _Batch(weights, kappa, h, h**2 + labels.conditional_variance(h, spread) + noise, beside)


def _moved(
    step: Step, of: _Batch, w0: Array, push: Array, b2: float, c0: float
) -> tuple[Array, Array]:
    """Loadings (V, K + 1 + K') of rows that start from ``w0`` on E, for V rates times readouts
    ``push``: on E, along the gradient's noise and beside E; and their bulk variances (V,).
    Eqs. (19.6)-(19.7)"""
    alpha0, kept, shift = step.alpha0, step.kept(0), w0 @ of.kappa
    g1 = step.student.slope_moments_at(shift, b2)[0]
    g2, variance = slope_statistics(step.student, shift, b2)
    w = of.weights
    noise = np.sqrt((of.square * g1**2) @ w / alpha0)
    spike = np.concatenate([(of.kappa * of.h * g1) @ w, [noise], (of.beside * g1) @ w])
    r = kept * np.pad(w0, (0, len(spike) - len(w0))) + np.multiply.outer(push, spike)
    stretch, own = (of.h * g2) @ w, (of.square * g2**2) @ w / alpha0
    fresh = (of.square * (variance - b2 * g2**2)) @ w / alpha0
    return r, c0 * ((kept + push * stretch) ** 2 + push**2 * own) + push**2 * fresh
