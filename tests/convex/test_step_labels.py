"""Labels that are steps of tau, given kappa in closed form: against sums over the local field."""

import numpy as np
import pytest
from scipy import stats
from scipy.special import ndtr

import replica
from replica.convex.averages import losses, scores
from replica.convex.label_tables import ConditionalLabels, Steps
from replica.saddle_point import Field
from solvers.rules import composite_legendre

ONE = np.ones((1, 1))
BINARY, REAL = (-0.9, 0.8, 0.3), (-1.0, 2.0, -1.0)


def labels_at(edges, values, binary, variances=(0.0,), shares=(1.0,)):
    """Labels at one kappa, without nodes of tau."""
    mixed = np.array(variances), np.array(shares)
    steps = Steps(np.array([edges]), np.array(values))
    return ConditionalLabels(ONE[..., None], ONE, ONE, *mixed, binary, 9, steps=steps)


def by_panels(labels, of, C, P, power, V):
    """E s, -E s', E s^2, E tau s, E rho(t), E (y - f)^2 after training and E rho(t0): for each
    label and component of the noise, over omega, where tau is a known Gaussian."""
    (edges,), values = labels.steps
    total = np.zeros(7)
    for variance, share in zip(labels.variances, labels.shares, strict=True):
        sd, rest = np.sqrt(power + variance), np.sqrt(power - P**2 + variance)
        for y in (1.0, -1.0) if labels.binary else np.unique(values):
            chance = (1 + y * values) / 2 if labels.binary else (values == y) * 1.0
            o, mean = (y, y * C) if of.kind == "margin" else (-1.0, y - C)
            r = o * P / sd
            # panels that end at the kinks and close in on the steps
            ends = np.ravel([(kink, *both) for kink, *both in of.flats(np.array(V))])
            places, widths = [(ends - mean) / sd], np.linspace(-9, 9, 37)
            if r:
                places += [(edge + widths * rest / sd) / r for edge in edges]
            panels = np.unique(np.clip(np.concatenate([widths, *places]), -9, 9))
            z, length = composite_legendre(12, panels)
            u = (r * z - edges[:, None]) * sd / rest
            p = chance[0] + np.diff(chance) @ ndtr(u)
            tau = r * z * p + rest / sd * np.diff(chance) @ stats.norm.pdf(u)
            t0 = mean + sd * z
            score, slope, t = of.score(t0, np.full_like(t0, V))
            squares = (1 - t) ** 2 if of.kind == "margin" else t**2
            parts = o * score * p, -slope * p, score**2 * p, o * score * tau
            parts += of.value(t) * p, squares * p, of.value(t0) * p
            total += share * (np.array(parts) @ (length * stats.norm.pdf(z)))
    return total


@pytest.mark.parametrize(
    ("C", "P", "power", "V", "edges"),
    [
        (0.3, 0.5, 0.5, 1.3, (0.4, 1.1)),
        (0.3, 0.0, 0.5, 1.3, (0.4, 1.1)),
        (0.3, -0.3, 0.5, 1.3, (0.0, 0.1)),  # Owen's function at 0
        (0.3, 0.5, 0.5, 1.3, (-1e-308, 0.1)),  # and next to it
        (0.3, 0.5, 0.25 * (1 + 1e-10), 1.3, (-0.4, 1.1)),  # correlations of 1 and -1
        (-0.9, -0.5, 0.25 * (1 + 1e-10), 0.2, (-1.4, 0.2)),
        (0.999, 5e-7, 5e-13, 1.3, (0.4, 1.1)),  # hardly a spread
        (0.3, 0.5, 0.5, 1.3, (-40.0, 40.0)),  # steps that are not seen
        (0.3, 0.5, 0.5, 1e-5, (0.4, 1.4)),  # responses small and large
        (0.3, 0.5, 0.5, 1e9, (0.4, 1.4)),
    ],
)
@pytest.mark.parametrize(
    ("name", "noise"),
    [("hinge", None), ("squared_hinge", None), ("absolute", None), ("huber:0.3", None),
     ("absolute", [0.0]), ("huber:0.3", [0.1, 25.0])],
)  # fmt: skip
def test_closed_form(name, noise, C, P, power, V, edges):
    """To 1e-10, the rounding of panels beside steps 1e-5 wide."""
    of = replica.loss(name)
    if noise is None:
        labels = labels_at(edges, BINARY, True)
    else:
        labels = labels_at(edges, REAL, False, noise, np.full(len(noise), 1 / len(noise)))
    field = Field(C * ONE, P * ONE[..., None], power * ONE, V * ONE)
    found = [*scores(labels, of, field), *losses(labels, np.ones(1), of, field).values()]
    exact = by_panels(labels, of, C, P, power, V)
    size = np.maximum(np.abs(exact), 1e-3)
    assert np.array([float(x.squeeze()) for x in found]) / size == pytest.approx(
        exact / size, rel=1e-10, abs=1e-10
    )
