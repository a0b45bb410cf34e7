"""Quadrature rules over several independent standard Gaussians, with panels split at planes.

A function with a kink or a jump on the plane v.z = t is smooth on either side.  The integrals are
nested: the panels of the last coordinate end where a line along it crosses a plane.  The inner
integral is a smooth function of the other coordinates, except where two planes cross or where a
plane is parallel to the last axis.  These places are planes in one dimension less, and so on down
to one coordinate.
"""

from itertools import combinations

import numpy as np

from .results import Array
from .rules import Rule, gauss_legendre

PARALLEL = 1e-9  # a plane is parallel to an axis if its normal has a smaller cosine with it


def split_at_planes(n: int, normals: Array, offsets: Array, rotate: bool = True) -> Rule:
    """Nested Gauss-Legendre rule with n nodes a panel, split at planes.

    Parameters
    ----------
    n : int
    normals, offsets : (m, k), (..., m)
        The planes normals z = offsets, which may depend on leading axes.
    rotate : bool
        Rotate coordinates such that no plane is nearly parallel to the last axis.  Otherwise the
        coordinates are used as they are; planes parallel to the last axis do not split its panels.

    Returns
    -------
    Rule
        Nodes (..., M, k) and weights (..., M).

    Examples
    --------
    >>> corner = split_at_planes(14, np.eye(2), np.zeros(2))  # E relu(z1) relu(z2)
    >>> round(float(np.maximum(corner.nodes, 0).prod(axis=-1) @ corner.weights), 12)
    0.159154943092
    """
    rotated_axes = _rotation(normals) if rotate else np.eye(normals.shape[1])
    nodes, weights = nested_rule(n, normals @ rotated_axes, offsets)
    shape = (*offsets.shape[:-1], -1)
    return Rule(nodes.reshape(*shape, len(rotated_axes)) @ rotated_axes.T, weights.reshape(shape))


def _rotation(normals: Array) -> Array:
    """Orthogonal matrix (k, k) whose last axis makes a large angle with all planes.

    It is the best of some random matrices.  Planes exactly parallel to the axis do not count; near
    a nearly parallel plane the last integral would vary quickly.
    """
    axis_count = normals.shape[1]
    random_matrices = np.random.default_rng(0).standard_normal((200, axis_count, axis_count))
    candidate_rotations = [np.eye(axis_count), *np.linalg.qr(random_matrices)[0]]
    unit_normals = normals / np.linalg.norm(normals, axis=1, keepdims=True)
    cosines = np.abs(unit_normals @ np.array(candidate_rotations)[:, :, -1].T)
    smallest_cosines = np.where(cosines < PARALLEL, 1.0, cosines).min(axis=0, initial=1.0)
    return candidate_rotations[int(smallest_cosines.argmax())]


def nested_rule(n: int, normals: Array, offsets: Array) -> Rule:
    """Nested rule in the given coordinates, with the integral over the last one inside.

    Parameters
    ----------
    n, normals, offsets
        As for :func:`split_at_planes`.

    Returns
    -------
    Rule
        Nodes (..., M_1, ..., M_k, k) and weights (..., M_1, ..., M_k): coordinate i depends on the
        first i indices of the M alone.

    Examples
    --------
    >>> diagonal = nested_rule(18, np.array([[1.0, -1.0]]), np.zeros(1))
    >>> round(float((np.abs(np.diff(diagonal.nodes))[..., 0] * diagonal.weights).sum()), 9)
    1.128379167
    """
    longest_panel = 6.0  # longest panel: in several directions, few nodes are left for each
    crosses_last_axis = np.abs(normals[:, -1]) > PARALLEL * np.linalg.norm(normals, axis=1)
    v, t = normals[crosses_last_axis], offsets[..., crosses_last_axis]  # planes v.z = t
    if normals.shape[1] == 1:
        line_rule = gauss_legendre(n, t / v[:, 0], panel=longest_panel)
        return Rule(line_rule.nodes[..., None], line_rule.weights)
    outer_planes = [(normals[i, :-1], offsets[..., i]) for i in np.flatnonzero(~crosses_last_axis)]
    # two planes meet where both give the same last coordinate
    for i, j in combinations(range(len(v)), 2):
        a, b = v[j, -1], v[i, -1]
        outer_planes.append((a * v[i, :-1] - b * v[j, :-1], a * t[..., i] - b * t[..., j]))
    distinct = _distinct_planes(outer_planes)
    outer_normals = np.array([normal for normal, _ in distinct]).reshape(-1, normals.shape[1] - 1)
    shape = (*offsets.shape[:-1], 0)
    outer_offsets = np.stack([x for _, x in distinct], axis=-1) if distinct else np.empty(shape)
    outer_rule = nested_rule(n, outer_normals, outer_offsets)
    t = np.expand_dims(t, tuple(range(-normals.shape[1], -1)))  # an axis for each outer coordinate
    plane_crossings = (t - outer_rule.nodes @ v[:, :-1].T) / v[:, -1]
    inner = gauss_legendre(n, plane_crossings, panel=longest_panel)
    inner_count = inner.nodes.shape[-1]
    nested_nodes = np.concatenate(
        [np.repeat(outer_rule.nodes[..., None, :], inner_count, axis=-2), inner.nodes[..., None]],
        axis=-1,
    )
    return Rule(nested_nodes, outer_rule.weights[..., None] * inner.weights)


def _distinct_planes(planes: list[tuple[Array, Array]]) -> list[tuple[Array, Array]]:
    """Planes with unit normals, without duplicates and without planes of normal 0."""
    distinct_planes: list[tuple[Array, Array]] = []
    for plane_normal, t in planes:
        normal_length = np.linalg.norm(plane_normal)
        if normal_length < PARALLEL:
            continue
        plane_normal, t = plane_normal / normal_length, t / normal_length
        if not any(
            np.allclose(sign * plane_normal, w, atol=1e-12) and np.allclose(sign * t, s, atol=1e-12)
            for w, s in distinct_planes
            for sign in (1, -1)
        ):
            distinct_planes.append((plane_normal, t))
    return distinct_planes
