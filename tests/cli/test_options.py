"""The options are the problems' own fields: their help, their defaults, what is refused."""

from dataclasses import fields

import pytest

from replica import GradientStep, SpikedRandomFeatures
from replica.cli.options import GRIDS, HELP, parse_request
from tests.cli.commands import refusal

STEP = {"student": "tanh", "target": "sin", "alpha0": "20", "eta": "3"}
SRF = {"student": "tanh", "target": "sin", "r": "1", "c": "1", "gamma": ".5"}


@pytest.mark.parametrize("kind", [GradientStep, SpikedRandomFeatures])
def test_a_number_says_what_it_is_unless_given(kind):
    for f in fields(kind):
        if f.name in HELP and isinstance(f.default, float):
            assert HELP[f.name].endswith(f" ({f.default:g} unless given).")


def test_grids_are_options():
    assert set(GRIDS) <= HELP.keys()


@pytest.mark.parametrize(("options", "kind"), [(STEP, GradientStep), (SRF, SpikedRandomFeatures)])
def test_what_is_not_given_is_the_constructors_default(options, kind):
    problem = parse_request(options, required=()).problem
    numbers = {k: float(v) for k, v in options.items() if k not in ("student", "target")}
    assert problem == kind(student="tanh", target="sin", **numbers)


def test_the_first_value_of_a_grid_is_the_problems():
    request = parse_request(STEP | {"eta": "3,1", "alpha": "1:2:3", "beta": "2,4"}, ("alpha",))
    assert request.problem.eta == 3
    assert list(request.grids) == ["eta", "beta"]
    assert (request.alpha.size, request.lam.size) == (3, 0)


@pytest.mark.parametrize(
    ("groups", "mistake"),
    [
        ("r = [1, 2]\nc = 1\n", "groups: Field required"),
        ("r = [1, 2]\nc = 1\ngamma = 0.5\nfraction = [0.5, 0.5]\n", "groups: Extra inputs"),
        ("r = ['x', 2]\nc = 1\ngamma = 0.5\n", "--r must be a finite number"),
    ],
)
def test_mistakes_in_groups(groups, mistake, tmp_path, capsys):
    path = tmp_path / "problem.toml"
    path.write_text(f"student = 'tanh'\ntarget = 'sin'\nalpha = 1\nlam = 1\n[groups]\n{groups}")
    assert mistake in refusal(capsys, f"curve --config {path}")
