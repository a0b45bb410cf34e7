"""A store answers for the same problem and for no other: what a cell's name is made of."""

from dataclasses import replace
from functools import partial

import numpy as np
import pytest

from replica import Activation, InvalidArgument, Loss, MultiIndex, SpikedRandomFeatures
from tests.processes import python
from validation import simulate
from validation.run.cells import CELL_METHOD
from validation.run.store import describe_cells, fingerprint

MODEL = SpikedRandomFeatures(student="tanh", target="sin", r=1.0, c=1.2, gamma=0.8)
OPTIONS = dict(alpha=[0.5, 1.5], lam=[0.01, 1.0], dimension=30, seeds=2, rng=3)


class Clipped:
    def __init__(self, level):
        self.level = level

    def __call__(self, x):
        return np.clip(x, -7, self.level)


@pytest.mark.parametrize(
    "make",
    [
        lambda level: lambda x: np.clip(x, -7, level),
        lambda level: partial(np.clip, a_min=-7, a_max=level),
        lambda level: np.vectorize(lambda x: float(max(min(x, level), -7))),
        Clipped,
    ],
)
def test_functions_that_differ_far_out_differ(make):
    """Beyond 6 deviations, where only a large step leads."""
    parts = [
        lambda f: Activation(f),
        lambda f: Activation(np.arctan, derivative=f),
        lambda f: MultiIndex(f, dimension=1),
        lambda f: Loss(f, np.ones_like, kinks=[0]),
        lambda f: Loss(np.abs, np.sign, kinks=[0], curvature=f),
    ]
    for part in parts:
        one, same, other = (fingerprint(part(make(level))) for level in (7, 7, 8))
        assert one == same != other


SAME_IN_EVERY_PROCESS = """
import numpy as np, scipy.stats
from scipy.interpolate import CubicSpline
from replica import GradientStep, SpikedRandomFeatures
from validation import simulate
from validation.run.store import describe_cells
x = np.linspace(-9, 9, 30)
law = scipy.stats.norm(0, 2)
law.rvs()
at = dict(alpha=1, lam=1, dimension=9, rng=0, simulated="srf", test_samples=9, seeds=2)
made = dict(target="z1+z1*z2", r=1, c=1, gamma=[.5, .1])
for f in ("he1+he2/3", CubicSpline(x, np.tanh(x)), lambda x: x):
    model = SpikedRandomFeatures(student=f, **made)
    print(describe_cells(simulate(model, **at).experiment, [0]))
step = GradientStep(student="tanh", target="sin", alpha0=2, eta=1, readout=law)
print(describe_cells(simulate(step, beta=1, **at).experiment, [0]))
"""


@pytest.mark.slow
def test_names_are_the_same_in_every_process():
    """Sets and the state of random numbers have no part in them."""
    found = [
        python("-c", SAME_IN_EVERY_PROCESS, variables={"PYTHONHASHSEED": seed}).stdout.splitlines()
        for seed in ("1", "2")
    ]
    assert found[0] == found[1]
    assert len(set(found[0])) == len(found[0]) == 4


def test_a_function_that_is_never_the_same_asks_for_a_key(tmp_path):
    rng = np.random.default_rng(0)
    model = replace(MODEL, student=Activation(lambda x: np.tanh(x) + 1e-6 * rng.random()))
    with pytest.raises(InvalidArgument, match="student does not return the same twice") as caught:
        simulate(model, store=tmp_path, **OPTIONS)
    assert caught.value.name == "key"
    assert not list(tmp_path.glob("*.json"))
    simulate(model, **OPTIONS)  # needed for a store alone
    names = [
        simulate(model, store=tmp_path, key=key, **OPTIONS) and len(list(tmp_path.glob("*.json")))
        for key in ("first", "first", "second")
    ]
    assert names == [2, 2, 4]


def test_the_method_has_the_numbers_of_its_version():
    """Cells of some problems to 9 digits.  Where these move, raise CELL_METHOD, and freeze them
    again: stores of users have numbers of the old one under its number."""
    cells = {
        "srf": simulate(MODEL, **OPTIONS),
        "gaussian": simulate(MODEL, simulated="gaussian", **OPTIONS),
        "huber": simulate(MODEL, loss="huber:0.5", **OPTIONS),
    }
    found = {name: one.errors["test_error"][1, 1, 1] for name, one in cells.items()}
    assert describe_cells(cells["srf"].experiment, [0])[0]["method"] == CELL_METHOD == 2
    assert found == pytest.approx(FROZEN, rel=1e-9)  # the last digits differ between libraries


FROZEN = {"srf": 0.15622170542044822, "gaussian": 0.14912296555960242, "huber": 0.15994342272373938}
