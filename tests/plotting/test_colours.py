"""Colours that every eye tells apart, in the order of what they stand for."""

import itertools

import numpy as np
import pytest
from matplotlib.colors import to_rgb

import replica
from replica import plotting
from tests.problems import PUBLISHED

MODEL = PUBLISHED.srf(beta=1.0)


# What those who lack one of the two cones see of linear red, green and blue (Machado, Oliveira and
# Fernandes 2009, Table 1, severity 1).
PROTANOPE = ".152286 1.052583 -.204868 .114503 .786281 .099216 -.003882 -.048116 1.051998"
DEUTERANOPE = ".367322 .860646 -.227968 .280085 .672501 .047413 -.011820 .042940 .968881"
TO_XYZ = ".433953 .376219 .189828 .212673 .715152 .072175 .017758 .109477 .872766"
ALL = "1 0 0 0 1 0 0 0 1"


def matrix(text):
    return np.array(text.split(), dtype=float).reshape(3, 3)


def lab(linear):
    """Linear sRGB, by XYZ over the white's, in CIELAB, where distances are what an eye sees."""
    x, y, z = np.cbrt(np.maximum(matrix(TO_XYZ) @ np.clip(linear, 0, 1), 0.008856))
    return np.array([116 * y, 500 * (x - y), 200 * (y - z)])


@pytest.mark.parametrize("eye", [ALL, PROTANOPE, DEUTERANOPE], ids=["all", "protan", "deutan"])
def test_colours_differ_for_every_eye(eye):
    """By 20 and more, where 2 can be seen; matplotlib's orange and green differ by 5."""
    srgb = np.array([to_rgb(colour) for colour in plotting.COLOURS])
    linear = np.where(srgb <= 0.04045, srgb / 12.92, ((srgb + 0.055) / 1.055) ** 2.4)
    seen = [lab(matrix(eye) @ one) for one in linear]
    assert min(np.linalg.norm(a - b) for a, b in itertools.combinations(seen, 2)) > 20


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
