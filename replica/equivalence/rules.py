"""Quadrature rules for the expectation over z, kappa where inputs are N(0, I), and where a table
may vary quickly in it: in any component of the inputs."""

from collections.abc import Iterator
from itertools import combinations, product

import numpy as np

from solvers.quadrature import TENSOR_SIZES, trapezoid_tensors
from solvers.rules import (
    Rule,
    gauss_hermite,
    gauss_legendre,
    graded_breaks,
    half_range,
    tensor_rule,
    trapezoid,
    trapezoid_tensor,
)

from ..problem import Model

# Of rules along spikes that act slowly, and along those of a kink: nodes, on finer levels.
SLOW, CUTS_END = 0.5, 8.0
SLOW_SIZES, CUT_SIZES = (5, 7, 9, 12, 16, 20, 24), (12, 16, 22, 30, 40, 50, 60)
LONG_SIZES = (120, 180, 270, 400, 600, 900)  # of the only direction that takes many nodes
# Panels end at +-11: the Gaussian weight there, 1e-27, makes up for functions that have grown.
PANELS_END = 11.0


def rules(model: Model) -> Iterator[Rule]:
    """Rules of growing size for the expectation over z that suit the model.

    For smooth functions of one z, trapezoidal sizes first.  Where there are layers much thinner
    than any such rule resolves (a steep student, a target nearly a function of kappa alone), panels
    that close in on the layers follow, with more and more nodes each; last, the long rules that a
    quickly oscillating student needs, or short panels where the target jumps.

    Yields
    ------
    Rule
        Nodes (N,) for one spike; for K of them a tensor product, nodes (N, K).

    Raises
    ------
    QuadratureError
        If there are more spikes than tensor products can serve.
    """
    spikes = model.geometry.r.shape[1]
    if spikes > 1:
        yield from _tensors(model)
        return
    # Panels close in on layers down to a width of 1e-6 or that of the thinnest.  One below 1e-15,
    # which rounding of z may miss, is a jump to all nodes of panels that are not as short.
    layers = known_layers(model)
    width = min([1e-6, *(width for _, width in layers if width > 1e-15)])
    places = sorted({0.0, *(place for place, _ in layers)})
    panels, smooth = graded_breaks(places, PANELS_END, width), not jumps(model)
    for n in (64, 128, 256, 512, 1024) if smooth else ():
        yield trapezoid(n, half_range(n))
    for n in (8, 12, 18, 27, 40):
        yield gauss_legendre(n, panels, PANELS_END)
    for n in (2048, 4096, 8192, 16384) if smooth else ():
        yield trapezoid(n, half_range(n))
    for length in (0.5, 0.2, 0.08, 0.03) if not smooth else ():
        yield gauss_legendre(20, panels, PANELS_END, length)


def _tensors(model: Model) -> Iterator[Rule]:
    """Tensor products for several spikes: of trapezoidal rules; along those on which all depends
    slowly, by less than the rest of their arguments blurs it, of Gauss's; and of panels along those
    that cross a kink of the target which nothing blurs."""
    groups, of, planes = model.geometry, model.components, model.labels.combined_mean.planes
    K, sharp = groups.r.shape[1], ~of.rest.any()
    steep = np.abs(groups.r @ of.slope[:, :K] / np.sqrt(groups.c)[:, None]).max(axis=(0, 1))
    blur = np.maximum(np.linalg.norm(of.rest, axis=2), 1e-9)[..., None]
    steep = np.maximum(steep, (np.abs(of.gamma) / blur).max(axis=(0, 1), initial=0.0))
    cuts: list[list[float]] = [[] for _ in range(K)]
    for (v, t), offset, gamma in product(planes if sharp else (), of.offset, of.gamma):
        normal = v @ gamma
        along = int(np.abs(normal).argmax())
        if np.abs(normal).sum() <= (1 + 1e-9) * abs(normal[along]):
            cuts[along].append(float((t - v @ offset) / normal[along]))
    next(trapezoid_tensors(K))  # refuses more directions than there are sizes for
    few, sizes = steep < SLOW, TENSOR_SIZES[K]
    if sum(not (few[k] or cuts[k]) for k in range(K)) == 1:  # along that one there may be many
        sizes = *sizes, *(n for n in LONG_SIZES if n > sizes[-1])
    for level, n in enumerate(sizes):
        slow, panel = (each[min(level, len(each) - 1)] for each in (SLOW_SIZES, CUT_SIZES))
        one = trapezoid_tensor(n, 1)
        axes = [Rule(one.nodes[:, 0], one.weights)] * K
        for k in range(K):
            if cuts[k]:
                cut = gauss_legendre(panel, sorted({*cuts[k]}), CUTS_END, CUTS_END)
                axes[k] = Rule(cut.nodes[cut.weights > 0], cut.weights[cut.weights > 0])
            elif few[k]:
                axes[k] = gauss_hermite(slow)
        yield tensor_rule(*axes)


def jumps(model: Model) -> bool:
    """Whether the target's kinks survive in h(z): it is a function of z alone there."""
    return any(width == 0 for _, width in target_layers(model))


def known_layers(model: Model) -> list[tuple[float, float]]:
    """Values of z, for one spike, at which a neuron or the target has a kink (a neuron its middle)
    for inputs of some component, each with the width to which the rest of the argument blurs it."""
    groups, of = model.geometry, model.components
    places = []
    with np.errstate(over="ignore"):  # a loading of next to nothing has layers of any width
        for mean, slope in zip(of.mean[:, 0], of.slope[:, 0, 0], strict=True):
            for r, bias, c in zip(groups.r[:, 0], groups.bias, groups.c, strict=True):
                there = [kink - bias - r * mean for kink in (0.0, *model.student.kinks)]
                steep = r * slope
                places += [(at / steep, np.sqrt(c) / abs(steep)) for at in there if steep]
        places += target_layers(model)
    return places


def target_layers(model: Model) -> list[tuple[float, float]]:
    """Values of z, for one spike, at which it meets a kink of the target, or a point where two of
    its kinks cross, each with the width to which the rest of the argument blurs it."""
    of, planes, found = model.components, model.labels.combined_mean.planes, []
    for offset, gamma, rest in zip(of.offset, of.gamma[..., 0], of.rest, strict=True):
        places = [(t - v @ offset, float(np.array(v) @ gamma), v @ rest) for v, t in planes]
        found += [
            (t / along, _width(float(np.linalg.norm(left)) / abs(along)))
            for t, along, left in places
            if along
        ]
        for (v, t), (w, s) in combinations(planes if gamma.size == 2 else (), 2):
            if abs(np.linalg.det([v, w])) > 1e-9:
                # z given that the arguments are those
                slope = gamma @ np.linalg.pinv(np.outer(gamma, gamma) + rest @ rest.T)
                place = slope @ (np.linalg.solve([v, w], [t, s]) - offset)
                found.append((float(place), _width(np.sqrt(max(0.0, 1 - slope @ gamma)))))
    return found


def _width(root: float) -> float:
    """A width, where it is more than the root of what rounding leaves of a difference of numbers up
    to 1."""
    return float(root) if root > 3e-7 else 0.0
