"""Rules over several independent standard Gaussians, their panels split at given planes.

A function that bends or jumps where v.z = t is smooth on either side.  Integrals are nested: the
panels of the last coordinate end where a line along it crosses a plane.  What is left, a function
of the coordinates before, is smooth but where two planes cross, or where one is parallel to the
last axis: those are its planes, and so on down to one coordinate.
"""

from itertools import combinations

import numpy as np

from .results import Array
from .rules import Rule, gauss_legendre

PARALLEL = 1e-9  # cosine of a plane's normal with an axis, below which the plane is parallel to it


def split_at_planes(n: int, normals: Array, offsets: Array, turn: bool = True) -> Rule:
    """A rule with n nodes a panel, in coordinates in which no plane is steep; or, not to ``turn``
    them, in those that are given, where planes along the last axis take no panels of it.

    Parameters
    ----------
    n : int
    normals, offsets : (m, k), (..., m)
        Of the planes normals z = offsets, which may move with leading axes.

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
    axes = _rotation(normals) if turn else np.eye(normals.shape[1])
    rule = _nested(n, normals @ axes, offsets)
    return Rule(rule.nodes @ axes.T, rule.weights)


def _rotation(normals: Array) -> Array:
    """The orthogonal matrix (k, k), of some, whose last axis is furthest from along a plane that it
    is not exactly along: there the last integral would vary quickly."""
    k = normals.shape[1]
    draws = np.random.default_rng(0).standard_normal((200, k, k))
    turns = [np.eye(k), *np.linalg.qr(draws)[0]]
    unit = normals / np.linalg.norm(normals, axis=1, keepdims=True)
    cosines = np.abs(unit @ np.array(turns)[:, :, -1].T)
    least = np.where(cosines < PARALLEL, 1.0, cosines).min(axis=0, initial=1.0)
    return turns[int(least.argmax())]


def _nested(n: int, normals: Array, offsets: Array) -> Rule:
    """The rule, the last coordinate inside."""
    longest = 6.0  # panel: of several directions few nodes are left for each
    crossing = np.abs(normals[:, -1]) > PARALLEL * np.linalg.norm(normals, axis=1)
    inside, at = normals[crossing], offsets[..., crossing]
    if normals.shape[1] == 1:
        rule = gauss_legendre(n, at / inside[:, 0], panel=longest)
        return Rule(rule.nodes[..., None], rule.weights)
    planes = [(normals[i, :-1], offsets[..., i]) for i in np.flatnonzero(~crossing)]
    for i, j in combinations(range(len(inside)), 2):  # where both have the same last coordinate
        a, b = inside[j, -1], inside[i, -1]
        planes.append((a * inside[i, :-1] - b * inside[j, :-1], a * at[..., i] - b * at[..., j]))
    kept = _different(planes)
    across = np.array([v for v, _ in kept]).reshape(-1, normals.shape[1] - 1)
    shape = (*offsets.shape[:-1], 0)
    places = np.stack([t for _, t in kept], axis=-1) if kept else np.empty(shape)
    before = _nested(n, across, places)
    ends = (at[..., None, :] - before.nodes @ inside[:, :-1].T) / inside[:, -1]
    last = gauss_legendre(n, ends, panel=longest)
    count = last.nodes.shape[-1]
    nodes = np.concatenate(
        [np.repeat(before.nodes[..., None, :], count, axis=-2), last.nodes[..., None]], axis=-1
    )
    weights = before.weights[..., None] * last.weights
    shape = (*nodes.shape[:-3], -1)
    return Rule(nodes.reshape(*shape, nodes.shape[-1]), weights.reshape(shape))


def _different(planes: list[tuple[Array, Array]]) -> list[tuple[Array, Array]]:
    """The planes with normals of length 1, each once; those that are none are left out."""
    kept: list[tuple[Array, Array]] = []
    for v, t in planes:
        length = np.linalg.norm(v)
        if length < PARALLEL:
            continue
        v, t = v / length, t / length
        if not any(
            np.allclose(sign * v, w, atol=1e-12) and np.allclose(sign * t, s, atol=1e-12)
            for w, s in kept
            for sign in (1, -1)
        ):
            kept.append((v, t))
    return kept
