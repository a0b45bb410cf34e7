"""Quadrature rules for the expectation over z, and the thin layers of a model in z.

For inputs N(0, I), z is kappa.  A layer is an interval of z in which a table varies quickly, for
inputs of any component.
"""

from collections.abc import Iterator
from itertools import product

import numpy as np

from solvers.quadrature import NODES_PER_AXIS, trapezoid_tensors
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

# Below this steepness a spike acts slowly; range of rules along spikes that cross a kink; and the
# numbers of nodes along either, by level.
SLOW, KINKS_END = 0.5, 8.0
SLOW_SIZES, KINK_SIZES = (5, 7, 9, 12, 16, 20, 24), (12, 16, 22, 30, 40, 50, 60)
LONG_SIZES = (120, 180, 270, 400, 600, 900)  # for the only direction that needs many nodes


def rules(model: Model) -> Iterator[Rule]:
    """Iterate over quadrature rules of growing size for the expectation over z of a model.

    For smooth functions of one z, trapezoidal rules come first.  They do not resolve thin layers,
    as of a steep student or of a target that is nearly a function of kappa alone.  Panels that
    shrink towards the layers follow, with more and more nodes each.  The last rules are long ones,
    for quickly oscillating students, or short panels where the target jumps.

    Yields
    ------
    Rule
        Nodes (N,) for one spike; for K spikes a tensor product with nodes (N, K).

    Raises
    ------
    QuadratureError
        If there are too many spikes for a tensor product.
    """
    # Panels end at +-11, where the Gaussian weight 1e-27 suppresses growing functions.
    panels_end = 11.0
    spike_count = model.geometry.r.shape[1]
    if spike_count > 1:
        yield from _tensor_rules(model)
        return
    # Panels shrink towards layers, down to a width of 1e-6 or the width of the thinnest.  A layer
    # thinner than 1e-15, the rounding of z, is a jump.
    thin_layers = known_layers(model)
    width = min([1e-6, *(width for _, width in thin_layers if width > 1e-15)])
    layer_places = sorted({0.0, *(layer_place for layer_place, _ in thin_layers)})
    layer_panels, smooth = graded_breaks(layer_places, panels_end, width), not target_jumps(model)
    for node_count in (64, 128, 256, 512, 1024) if smooth else ():
        yield trapezoid(node_count, half_range(node_count))
    for node_count in (8, 12, 18, 27, 40):
        yield gauss_legendre(node_count, layer_panels, panels_end)
    for node_count in (2048, 4096, 8192, 16384) if smooth else ():
        yield trapezoid(node_count, half_range(node_count))
    for panel_length in (0.5, 0.2, 0.08, 0.03) if not smooth else ():
        yield gauss_legendre(20, layer_panels, panels_end, panel_length)


def _tensor_rules(model: Model) -> Iterator[Rule]:
    """Iterate over tensor products of growing size for several spikes.

    The rule along a spike is Gauss's where all functions depend slowly on it, less than the rest of
    their argument blurs.  It consists of panels where the spike crosses a kink of the target that
    nothing blurs, and is trapezoidal otherwise.
    """
    groups, law, planes = model.geometry, model.components, model.labels.combined_mean.planes
    K, is_sharp = groups.r.shape[1], ~law.tau_slopes.any()
    steep = np.abs(groups.r @ law.slope[:, :K] / np.sqrt(groups.c)[:, None]).max(axis=(0, 1))
    target_width = np.maximum(np.linalg.norm(law.tau_slopes, axis=2), 1e-9)[..., None]
    steep = np.maximum(steep, (np.abs(law.z_slopes) / target_width).max(axis=(0, 1), initial=0.0))
    spike_kinks: list[list[float]] = [[] for _ in range(K)]
    target_arguments = law.argument_offsets, law.z_slopes
    for (v, t), argument_offset, gamma in product(planes if is_sharp else (), *target_arguments):
        kink_normal = v @ gamma
        kink_axis = int(np.abs(kink_normal).argmax())
        if np.abs(kink_normal).sum() <= (1 + 1e-9) * abs(kink_normal[kink_axis]):
            spike_kinks[kink_axis].append(float((t - v @ argument_offset) / kink_normal[kink_axis]))
    next(trapezoid_tensors(K))  # raises an error if there are too many directions
    is_slow, axis_sizes = steep < SLOW, NODES_PER_AXIS[K]
    # a single fast spike may take many nodes
    if sum(not (is_slow[k] or spike_kinks[k]) for k in range(K)) == 1:
        axis_sizes = *axis_sizes, *(size for size in LONG_SIZES if size > axis_sizes[-1])
    for level, axis_size in enumerate(axis_sizes):
        slow_nodes, panel = (each[min(level, len(each) - 1)] for each in (SLOW_SIZES, KINK_SIZES))
        trapezoid_rule = trapezoid_tensor(axis_size, 1)
        axes = [Rule(trapezoid_rule.nodes[:, 0], trapezoid_rule.weights)] * K
        for k in range(K):
            if spike_kinks[k]:
                panels = gauss_legendre(panel, sorted({*spike_kinks[k]}), KINKS_END, KINKS_END)
                axes[k] = Rule(panels.nodes[panels.weights > 0], panels.weights[panels.weights > 0])
            elif is_slow[k]:
                axes[k] = gauss_hermite(slow_nodes)
        yield tensor_rule(*axes)


def target_jumps(model: Model) -> bool:
    """True if h(z) has the target's kinks: the target is a function of z alone there."""
    return any(width == 0 for _, width in target_layers(model))


def known_layers(model: Model) -> list[tuple[float, float]]:
    """Layers (z, width) of a model with one spike, for inputs of every component.

    A layer is where a neuron has a kink or its middle, or the target a kink.  The rest of the
    argument blurs it over the width.
    """
    groups, model_inputs = model.geometry, model.components
    model_layers = []
    with np.errstate(over="ignore"):  # a tiny loading overflows the width
        for z_mean, slope in zip(model_inputs.mean[:, 0], model_inputs.slope[:, 0, 0], strict=True):
            for r, group_bias, c in zip(groups.r[:, 0], groups.bias, groups.c, strict=True):
                gaps = [kink - group_bias - r * z_mean for kink in (0.0, *model.student.kinks)]
                z_rate = r * slope
                model_layers += [(gap / z_rate, np.sqrt(c) / abs(z_rate)) for gap in gaps if z_rate]
        model_layers += target_layers(model)
    return model_layers


def target_layers(model: Model) -> list[tuple[float, float]]:
    """Layers (z, width) of the target, for one spike: its kinks.
    The rest of the argument blurs them over the width."""
    inputs, target_planes, kink_layers = model.components, model.labels.combined_mean.planes, []
    for offset, gamma, rest in zip(
        inputs.argument_offsets, inputs.z_slopes[..., 0], inputs.tau_slopes, strict=True
    ):
        # a kink is where slope_in_z * z, blurred by the rest of the argument, is its distance
        z_kinks = [(t - v @ offset, float(np.array(v) @ gamma), v @ rest) for v, t in target_planes]
        kink_layers += [
            (distance / slope_in_z, float(np.linalg.norm(blur)) / abs(slope_in_z))
            for distance, slope_in_z, blur in z_kinks
            if slope_in_z
        ]
    # the root of a difference of numbers up to 1 has an error of 3e-7: such a width is rounding
    return [(layer_place, width if width > 3e-7 else 0.0) for layer_place, width in kink_layers]
