"""Quadrature nodes for the samples of a step: their components along the target, and labels.

docs/theory.md 21
"""

import numpy as np

from solvers.resources import GivenUp
from solvers.results import Array, Status
from solvers.rules import Rule, gauss_hermite, gauss_legendre, tensor_rule

from ..steps import Step


def sample_nodes(
    step: Step, nodes: int, noise_nodes: int, most: float
) -> tuple[Array, Array, Array]:
    """Nodes (D, N) of the target's directions, labels there (N,), and weights (N,); GivenUp where
    there are more than ``most``."""
    labels, D = step.labels_at(0), step.directions
    each = 2 if labels.channel else sum(noise_nodes if v else 1 for v, _ in labels.gaussians)
    if nodes_along(nodes, D) ** D * each > most:
        raise GivenUp(Status.MEMORY)
    kinks: list[list[float]] = [[] for _ in range(D)]
    for v, t in labels.mean.planes:  # of a kink across an axis
        if np.count_nonzero(v) == 1:
            axis = int(np.flatnonzero(v)[0])
            kinks[axis].append(t / v[axis])
    grid = tensor_rule(*(gaussian_rule(nodes_along(nodes, D), each) for each in kinks))
    s, target = grid.nodes.T, labels.target(*grid.nodes.T)
    if labels.channel and labels.added is not None:
        up = labels.added.probability(target)
        y, w = np.array([np.ones_like(up), -np.ones_like(up)]), np.array([up, 1 - up])
    else:
        xi, weights = gauss_hermite(noise_nodes)
        parts = [
            (np.sqrt(v) * xi, share * weights) if v else (np.zeros(1), np.array([share]))
            for v, share in labels.gaussians
        ]
        noise, w = (np.concatenate(each) for each in zip(*parts, strict=True))
        y, w = target + noise[:, None], np.broadcast_to(w[:, None], (len(w), len(target)))
    weights = (w * grid.weights).ravel()
    return np.tile(s, len(y)), y.ravel(), weights


def nodes_along(nodes: int, directions: int) -> int:
    """Number of nodes along each of the ``directions``: ``nodes`` for a single one, two thirds of
    it for several."""
    return nodes if directions == 1 else 2 * nodes // 3


def gaussian_rule(nodes: int, kinks: list[float]) -> Rule:
    """Rule for a standard Gaussian, on panels between ``kinks`` where there are any."""
    if not kinks:
        return gauss_hermite(nodes)
    rule = gauss_legendre(nodes // 4, kinks, 8.6, 4.3)
    counted = rule.weights > 0
    return Rule(rule.nodes[counted], rule.weights[counted])
