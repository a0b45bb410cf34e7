"""The law of a label of the first batch, with the input's projection on the target direction.

Everything docs/theory.md 15 averages is a function of y times 1, s or s^2: even in y with 1 and
s^2, odd with s.  Here y = sigma_*(s) + sqrt(Delta) xi, Delta being random if there are outliers, or
+-1 of mean m(s).  A rule fine enough comes first; as the functions are smooth in log(1 + t y^2), a
few tens of Chebyshev points in it then carry the weights of all its nodes.
"""

from collections.abc import Iterable, Iterator
from functools import lru_cache, partial

import numpy as np
from numpy.polynomial.chebyshev import chebpts1, chebvander

from solvers.quadrature import QuadratureError
from solvers.results import Array
from solvers.rules import HALF_WIDTH, Rule, gauss_legendre, graded, interval, tensor, trapezoid
from solvers.settle import settle

from ..problem import LabelLaw, Target, zeros
from ..saddle_point import FirstBatch

PROBE_TOLERANCE = 1e-12  # of averages over y: several times the rounding of their sums
# Length in log(1 + t y^2) of the panels that Chebyshev points condense: t y^2 grows e^2-fold.
PANEL_LENGTH = 2.0
# Noise over the square of the scale on which functions of y vary, from which a rule for y itself
# needs fewer nodes than one for s and xi.
WIDE_NOISE = 20.0


@lru_cache(maxsize=64)
def first_batch(labels: LabelLaw, scale: float) -> FirstBatch:
    """Nodes fine enough for the functions 1 / (1 + x t y^2), 0 <= x <= 1, t being ``scale``.

    Raises
    ------
    QuadratureError
        If no rule is.
    """

    def change(before: tuple[Array, Array], now: tuple[Array, Array]) -> float:
        values, size = now
        # an average of something that is 0 at every node changes by exactly 0
        return float((np.abs(values - before[0]) / np.where(size > 0, size, 1.0)).max())

    batches = _candidates(labels, scale)
    settled = settle(batches, partial(probe, scale=scale), change, PROBE_TOLERANCE)
    if not settled.met:
        raise QuadratureError(
            f"target {labels.target!r}: E f(y) of the first batch does not settle"
        )
    return _condensed(settled.candidate, scale)


def probe(batch: FirstBatch, scale: float) -> tuple[Array, Array]:
    """Averages E f(y), E f(y) s^2 and E f(y) s of the kind that docs/theory.md 15 takes, and those
    of their moduli: two laws for which they agree serve alike."""
    y, weights = batch
    x = np.array([0.0, 0.01, 0.1, 0.4, 1.0])[:, None]
    inverse = 1 / (1 + scale * x * y**2) ** 2
    even = np.concatenate([power * inverse for power in (y**2, y**4, y**6)])
    odd = np.concatenate([power * inverse for power in (y, y**3)])
    values = (even @ weights[0], even @ weights[2], odd @ weights[1])
    sizes = (
        np.abs(even) @ np.abs(weights[0]),
        np.abs(even) @ np.abs(weights[2]),
        # f(y) s is of the size of f(y), however little it is correlated with s
        np.abs(odd) @ np.abs(weights[0]),
    )
    return np.concatenate(values), np.concatenate(sizes)


def _condensed(batch: FirstBatch, scale: float) -> FirstBatch:
    """The same averages on as few nodes as keep them, or on the old ones."""
    values, size = probe(batch, scale)
    y2, weights = batch.y**2, batch.weights.copy()
    weights[1] *= batch.y  # f(y) s = (f(y)/y) y s, even in y
    stretch = max(scale, 1 / max(float(y2.max()), 1e-300))
    u = np.log1p(stretch * y2)
    # panels, so that the rounding of large weights does not spoil the small ones of the tails
    panels = int(np.ceil(float(u.max()) / PANEL_LENGTH))
    index = np.minimum((u / PANEL_LENGTH).astype(int), panels - 1)
    for n in (10, 12, 14, 16, 20, 24):  # Chebyshev points a panel
        if n * panels >= y2.size:
            break
        places = chebpts1(n)
        basis = chebvander(2 * (u / PANEL_LENGTH - index) - 1, n - 1)
        basis = basis @ np.linalg.inv(chebvander(places, n - 1))
        carried = np.concatenate(
            [weights[:, index == k] @ basis[index == k] for k in range(panels)], axis=1
        )
        start = np.repeat(np.arange(panels), n)
        y = np.sqrt(np.expm1(PANEL_LENGTH * (start + np.tile((places + 1) / 2, panels))) / stretch)
        carried[1] /= y
        condensed = FirstBatch(y, carried)
        # where f(y)/y is large at small y, rounding costs a digit
        if np.all(np.abs(probe(condensed, scale)[0] - values) <= 10 * PROBE_TOLERANCE * size):
            return condensed
    return batch


def mixed(batches: Iterable[FirstBatch], shares: Iterable[float]) -> FirstBatch:
    """The law of a batch of which the given ``shares`` have the laws ``batches``."""
    y, weights = zip(*batches, strict=True)
    parts = [share * w for share, w in zip(shares, weights, strict=True)]
    return FirstBatch(np.concatenate(y), np.concatenate(parts, axis=1))


def powers(rule: Rule) -> Array:
    """The weights of a rule for s, times 1, s and s^2."""
    s, w = rule
    return np.stack([w, w * s, w * s**2])


def _candidates(labels: LabelLaw, scale: float) -> Iterator[FirstBatch]:
    """Laws of the first batch on ever finer nodes."""
    mean = labels.mean  # the target itself, but of a channel
    if labels.channel:
        layers = _layers(mean)
        for n in (12, 24, 48):
            rule = gauss_legendre(n, layers, interval(1024))
            weights = powers(rule)
            averages = weights.sum(axis=1)
            averages[1] = weights[1] @ mean(rule.nodes)
            yield FirstBatch(np.ones(1), averages[:, None])
        return
    variances, shares = zip(*labels.gaussians, strict=True)
    refinements = [list(_of_component(mean, noise, scale)) for noise in variances]
    for level in range(max(map(len, refinements))):
        yield mixed([batches[min(level, len(batches) - 1)] for batches in refinements], shares)


def _of_component(target: Target, noise: float, scale: float) -> Iterator[FirstBatch]:
    """The law of labels with Gaussian ``noise`` (a variance) on ever finer nodes: in s, closing in
    on the zeros of the target if need be, and in xi; or, with noise enough, in y."""
    layers = _layers(target)
    wide = noise * scale > WIDE_NOISE
    # 1 / (1 + scale y^2) has its poles at a distance 1 / sqrt(noise scale) from real xi
    count = 24 + 88 * np.sqrt(noise * scale)
    trapezoids = () if target.kinks or wide else (64, 128, 256, 512)
    rules = [trapezoid(n, interval(n)) for n in trapezoids]
    # the noise is as wide as this in s, for a steep target
    panel = float(np.clip(np.sqrt(noise) / 2, 0.1, 2.5)) if wide else 2.5
    sizes = (8, 12, 18, 27) if wide else (8, 12, 16, 24, 36, 48)
    rules += [gauss_legendre(n, layers, interval(1024), panel) for n in sizes]
    for index, rule in enumerate(rules):
        if wide:
            mean, reach = target(rule.nodes), HALF_WIDTH * np.sqrt(noise)
            root = np.sqrt(max(scale, 1 / noise))
            low, high = np.arcsinh(root * np.array([mean.min() - reach, mean.max() + reach]))
            u = np.linspace(low, high, 256 * 2**index)
            yield on_labels(mean, powers(rule), noise, root, u)
        elif noise:
            both = tensor(rule, trapezoid(int(count * (1 + index / 8))))
            s, xi = both.nodes.T
            yield FirstBatch(target(s) + np.sqrt(noise) * xi, powers(Rule(s, both.weights)))
        else:
            yield FirstBatch(target(rule.nodes), powers(rule))


def on_labels(
    mean: Array, weights: Array, noise: float, root: float, u: Array, turn: complex = 1.0
) -> FirstBatch:
    """The law of labels on nodes y = ``turn`` sinh(u) / ``root``, u evenly spaced: dense where
    1 / (1 + root^2 y^2) varies, weighed by the density of Gaussians of variance ``noise`` around
    ``mean`` (S,), which have the ``weights`` (3, S)."""
    y = turn * np.sinh(u) / root
    cell = turn * np.cosh(u) / root * (u[1] - u[0])
    density = np.exp(-((y[:, None] - mean) ** 2) / (2 * noise)) / np.sqrt(2 * np.pi * noise)
    return FirstBatch(y, (density @ weights.T).T * cell)


def _layers(target: Target) -> Array:
    """Breaks that close in on the kinks and zeros of the target."""
    near = [zero for zero in zeros(target) if abs(zero) < HALF_WIDTH]
    return graded([*target.kinks, *near], interval(1024))
