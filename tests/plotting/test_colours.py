"""Colours that every eye tells apart, in the order of what they stand for."""

import numpy as np
from matplotlib.colors import to_rgb

import replica
from replica import plotting
from tests.problems import PUBLISHED

MODEL = PUBLISHED.srf(beta=1.0)


def test_ordered_values_have_ordered_colours():
    """From dark to light with the value, whatever the order of the lines."""
    lam = [0.1, 1e-3, 1.0, 0.01]
    curve = replica.learning_curve(MODEL, alpha=[0.5, 1.0, 2.0, 3.0, 4.0], lam=lam)
    lines = plotting.plot_curve(curve, train=False).get_lines()
    light = [sum(w * c for w, c in zip((0.3, 0.6, 0.1), to_rgb(line.get_color()), strict=True))
             for line in lines[:4]]  # fmt: skip
    assert np.argsort(light).tolist() == np.argsort(lam).tolist()
    assert min(np.diff(sorted(light))) > 0.1


def test_a_name_has_its_colour_in_every_figure():
    """Whatever else is drawn, and whoever draws it."""
    assert plotting.colours(["hinge", "square"]) == plotting.colours(["square", "hinge"])[::-1]
    assert len(set(plotting.colours([2.0, 2.1, 2.2]))) == 3  # where two would share it
