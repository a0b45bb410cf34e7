"""The options are the problems' own fields: their help, their defaults, what is refused."""

import re
from dataclasses import fields
from importlib import import_module
from inspect import getdoc, signature

import pytest

import replica
from replica import GradientStep, SpikedRandomFeatures
from replica.cli import parse_request
from replica.cli.option_table import HELP, read_config
from tests.cli.commands import document, refusal, theory, validate

STEP = {"student": "tanh", "target": "sin", "alpha0": "20", "eta": "3"}
SRF = {"student": "tanh", "target": "sin", "r": "1", "c": "1", "gamma": ".5"}


@pytest.mark.parametrize("kind", [GradientStep, SpikedRandomFeatures])
def test_a_number_says_what_it_is_unless_given(kind):
    for f in fields(kind):
        if f.name in HELP and isinstance(f.default, float):
            assert HELP[f.name].endswith(f" ({f.default:g} unless given).")


@pytest.mark.parametrize(("options", "kind"), [(STEP, GradientStep), (SRF, SpikedRandomFeatures)])
def test_what_is_not_given_is_the_constructors_default(options, kind):
    problem = parse_request(options, required=()).problem
    numbers = {k: float(v) for k, v in options.items() if k not in ("student", "target")}
    assert problem == kind(student="tanh", target="sin", **numbers)


@pytest.mark.parametrize(
    ("groups", "mistake"),
    [
        ("r = [1, 2]\nc = 1", "--groups must be a table of r, c, gamma"),
        ("r = [1, 2]\nc = 1\ngamma = 0\nfraction = 1", "--groups must be a table of r, c, gamma"),
        ("r = ['x', 2]\nc = 1\ngamma = 0.5", "--r must be a finite number"),
    ],
)
def test_mistakes_in_groups(groups, mistake, tmp_path, capsys):
    path = tmp_path / "problem.toml"
    path.write_text(f"student = 'tanh'\ntarget = 'sin'\nalpha = 1\nlam = 1\n[groups]\n{groups}")
    assert mistake in refusal(capsys, f"curve --config {path}")


def test_a_new_problem_file_is_read_back(tmp_path, capsys):
    """As it is written, and with any single line of it that is a comment made a setting."""
    path = tmp_path / "problem.toml"
    assert theory(f"init {path}") == 0
    capsys.readouterr()
    assert refusal(capsys, f"init {path}").startswith("error: the new file must be one that is not")
    assert len(document(capsys, f"curve --config {path}")["points"]) == 30
    lines = path.read_text().splitlines()
    known = [line.partition(" = ")[0].removeprefix("# ") for line in lines]
    assert {name for name in known if name in HELP} == set(HELP)
    for i, name in enumerate(known):
        if name in HELP:
            path.write_text(lines[i].removeprefix("# "))
            assert list(read_config(path)) == [name]


def test_the_help_offers_no_student_that_a_step_refuses():
    assert "sign (of an sRF alone)" in HELP["student"]


@pytest.mark.parametrize("command", [theory, validate])
def test_version(command, capsys):
    assert command("--version") == 0
    assert capsys.readouterr().out.strip() == replica.__version__


def test_the_help_of_optimum_has_the_ranges_searched(capsys):
    """Those that Python's functions have unless given others."""
    theory("optimum --help")
    text = " ".join(capsys.readouterr().out.split())
    known = signature(replica.optimal_eta).parameters
    for name, of in (("lam", "lam_range"), ("eta", "eta")):
        (found,) = re.findall(rf"\b{name} from ([\d.e-]+) to ([\d.e]+\d)", text)
        assert tuple(map(float, found)) == known[of].default


@pytest.mark.slow
@pytest.mark.parametrize("name", ["init", "curve", "bounds", "optimum", "spectrum", "staircase"])
def test_every_example_of_the_help_runs(name, tmp_path, monkeypatch):
    """Those of replica; the simulations of replica-validate take their time."""
    monkeypatch.chdir(tmp_path)
    about = getdoc(getattr(import_module("replica.cli.main"), name))  # without its indentation
    lines = about.partition("Examples\n--------\n")[2].split("\n\n")
    assert len(lines) == 2
    for line in lines:
        assert theory(line.strip().removeprefix("replica ")) == 0, line
