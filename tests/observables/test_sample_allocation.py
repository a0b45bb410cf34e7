"""How to spend samples on the two layers."""

import json
from dataclasses import replace

import numpy as np
import pytest
from matplotlib.figure import Figure

import replica
from replica import GradientStep, InvalidArgument, sample_allocation
from tests.cli.commands import theory

STEP = GradientStep(student="tanh", target="sin", alpha0=1, eta=3)


@pytest.fixture(scope="module")
def uses():
    return sample_allocation(STEP, budget=4)


def test_the_uses_of_four_samples_a_dimension(uses):
    """Numbers of a prototype that shares no code with this one, to its last digit."""
    found = {(one.use, round(one.alpha0, 9)): one.test_error for one in uses.plans}
    assert [one.use for one in uses.plans].count("best split") == 1
    expected = {
        ("all for both", 4.0): 0.0684,
        ("split", 2.0): 0.1229,
        ("part for the step", 2.0): 0.1064,
        ("part for the readout", 4.0): 0.0834,
    }
    assert {place: found[place] for place in expected} == pytest.approx(expected, abs=1e-4)
    assert uses.best.use == "all for both"
    assert [one.test_error for one in uses.plans] == sorted(found.values())
    assert uses.converged
    assert "all for both: alpha0 4, alpha 4, eta 3" in repr(uses)
    assert json.loads(json.dumps(uses.document()))["points"][0]["use"] == "all for both"
    assert len(uses.to_dataframe()) == len(uses.plans)
    ax = uses.plot()
    assert ax.get_xlabel() == r"one layer's share of the $N = 4\,d$ samples"
    assert ax.get_ylabel().endswith(r" at the best $\lambda$")
    lines = ax.lines
    assert len(lines) == 5
    # alternatives, between which there is nothing
    assert {line.get_linestyle() for line in lines} == {"None"}
    assert len({line.get_marker() for line in lines}) == 5


def test_every_use_is_at_its_best_penalty(uses):
    for one in uses.plans:
        model = replace(STEP, alpha0=one.alpha0).network(beta=1.0, reuse=one.reuse)
        lam = one.lam * np.array([0.8, 1.0, 1.25])
        curve = replica.learning_curve(model, alpha=one.alpha, lam=lam)
        errors = curve.test_error.values.ravel()
        assert errors[1] == pytest.approx(one.test_error, rel=1e-4)  # its quadrature
        assert errors[1] < errors[0]
        assert errors[1] < errors[2]
        assert one.alpha0 + one.alpha * (1 - one.reuse) == pytest.approx(4)  # nothing is left


def test_the_best_split_is_between_others(uses):
    best = next(one for one in uses.plans if one.use == "best split")
    for change in (-0.2, 0.2):
        step = replace(STEP, alpha0=best.alpha0 + change)
        other = replica.optimal_lambda(step.network(beta=1.0), alpha=best.alpha - change)
        assert other.test_error > best.test_error


@pytest.mark.slow
def test_a_penalty_may_be_given():
    uses = sample_allocation(STEP, budget=2, lam=0.1)
    assert {one.lam for one in uses.plans} == {0.1}
    model = replace(STEP, alpha0=2).network(beta=1.0, reuse=1.0)
    both = next(one for one in uses.plans if one.use == "all for both")
    point = replica.solve(model, alpha=2, lam=0.1)
    assert both.test_error == pytest.approx(point.test_error, rel=1e-4)


def test_few_samples_of_a_layer_and_equal_uses_are_noted(uses):
    assert not uses.notes
    few = replace(uses.best, alpha=0.012, lam=0.01)
    equal = replace(uses.plans[1], test_error=few.test_error * (1 + 1e-5))
    noted = replace(uses, plans=(few, equal))
    assert "has only 0.012 d samples, 12 at d = 1000" in noted.notes[0]
    assert noted.notes[1] == f"as good, as far as the search can tell: {equal.use}"
    assert noted.document()["notes"] == noted.notes
    (note,) = replace(uses, plans=(replace(uses.best, lam=9.0),)).notes
    assert note.startswith("all for both: lam is above alpha on reused samples")
    assert replace(uses, budget=300.0).notes[0].startswith("budget = 300 is n/d, samples over")
    assert "has only 0.012 d samples" in " ".join(repr(noted).split())


def test_what_is_not_solved_is_flagged():
    uses = sample_allocation(STEP, budget=2, time_limit=1e-6)
    assert not uses.converged
    assert np.isnan([one.test_error for one in uses.plans]).all()
    assert uses.document()["points"][-1]["test_error"] is None
    assert "not_solved" in repr(uses)
    (note,) = uses.notes
    assert note.startswith("4 of 4 uses were not solved, or not in time (a larger time_limit")
    _, (in_figure,) = uses.plot(Figure().subplots()).get_legend_handles_labels()
    assert in_figure.startswith("not solved: all for both, part for the step")


@pytest.mark.slow
def test_all_uses_of_a_steep_target_are_solved():
    """In numpy 12 networks of d = 500 have .4053 +- .0028, of d = 1000 .4009 +- .0030."""
    step = replace(STEP, target="tanh(3*z1)", eta=1)
    uses = sample_allocation(step, budget=1.2)
    assert uses.converged
    assert (uses.best.use, round(uses.best.test_error, 3)) == ("all for both", 0.398)


@pytest.mark.slow
def test_the_best_rate_of_every_use(capsys):
    """At another rate, with the penalty held, any use does worse."""
    line = "plan --student tanh --target sin --eta best --lam 0.05 --budget 4"
    assert theory(f"{line} --json") == 0
    document = json.loads(capsys.readouterr().out)
    assert "eta" not in document["problem"]
    for one in document["points"]:
        assert one["at_edge"] == ""
        step = replace(STEP, alpha0=one["alpha0"])
        errors = [
            replica.solve(
                replace(step, eta=rate * one["eta"]).network(beta=1.0, reuse=one["reuse"]),
                alpha=one["alpha"],
                lam=0.05,
            ).test_error
            for rate in (0.9, 1.0, 1.1)
        ]
        assert errors[1] == pytest.approx(one["test_error"], rel=1e-9)
        assert errors[1] < min(errors[0], errors[2])


@pytest.mark.parametrize(
    ("name", "of"),
    [
        ("budget", dict(budget=0)),
        ("eta", dict(budget=1, eta=2.0)),
        ("parts", dict(budget=1, parts=[0.5, 1])),
        ("lam", dict(budget=1, lam=-1)),
        ("beta", dict(budget=1, beta=0)),
        ("step", dict(step=None, budget=1)),
        ("reuse", dict(step=replace(STEP, intercept=True), budget=1)),
    ],
)
def test_bad_arguments(name, of):
    with pytest.raises(InvalidArgument, match=f"^{name}"):
        sample_allocation(**({"step": STEP} | of))


@pytest.mark.slow
def test_the_command(capsys, tmp_path, uses):
    line = "plan --student tanh --target sin --eta 3 --budget 4"
    files = f"--out {tmp_path / 'a.csv'} --plot {tmp_path / 'a.png'}"
    assert theory(f"{line.replace('4', '2')} --lam 0.1 {files}") == 0
    assert "Best in the limit: all for both." in capsys.readouterr().out
    assert (tmp_path / "a.csv").read_text().startswith("use,alpha0,alpha,reuse,eta,lam")
    assert theory(f"{line} --json") == 0
    assert json.loads(capsys.readouterr().out) == json.loads(json.dumps(uses.document()))
    for typed, said in (
        ("plan --student tanh --target sin --budget 4", "--eta"),
        (f"{line} --decay 0.1", "--decay"),
        (f"{line} --parts 2", "--parts"),
        (f"{line.replace('4', '1,2')}", "--budget"),
        (f"{line} --alpha 1", "--alpha"),
    ):
        assert theory(typed) == 2
        assert said in capsys.readouterr().err
