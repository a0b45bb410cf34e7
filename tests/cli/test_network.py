"""The network's own theory through the commands: asked for, refused, put beside simulations."""

import json
from dataclasses import replace

import numpy as np
import pytest

import replica
from tests.cli.commands import document, refusal, theory, validate
from validation.figures import figure

NETWORK = "theory of the network itself"
STEP = {"student": "tanh", "target": "tanh", "alpha0": 0.5, "eta": 3.0}
ONE = "--alpha0 .5 --eta 3"
LINE = f"--student tanh --target tanh {ONE} --alpha 1 --lam .1"
TRAINED = "the network's own theory does not cover trained biases"
SMALL = "--dimension 60 --seeds 2 --rng 0"


def test_curve_of_the_network(capsys):
    """The command gives the library's number, and says which model it is of."""
    found = document(capsys, f"curve {LINE} --theory network")
    assert found["problem"]["theory"] == "network"
    point = replica.solve(replica.GradientStep(**STEP).network(beta=1.0), alpha=1, lam=0.1)
    assert found["points"][0]["test_error"] == point.test_error
    srf = document(capsys, f"curve {LINE}")
    assert srf["problem"]["theory"] == "srf"
    assert srf["srf"] == found["srf"]
    assert srf == document(capsys, f"curve {LINE} --theory srf")


def test_curve_over_fields_of_the_step_and_the_width(capsys):
    line = LINE.replace("--eta 3", "--eta 0,3")
    points = document(capsys, f"curve {line} --beta .5,1 --theory network")["points"]
    assert [(p["eta"], p["beta"]) for p in points] == [(0, 0.5), (0, 1), (3, 0.5), (3, 1)]
    model = replica.GradientStep(**STEP).network(beta=0.5)
    assert points[2]["test_error"] == replica.solve(model, alpha=1, lam=0.1).test_error


@pytest.mark.parametrize("theory", ["srf", "network"])
def test_curve_at_a_dimension(theory, capsys):
    found = document(capsys, f"curve {LINE} --theory {theory} --dimension 300,inf")["points"]
    step = replica.GradientStep(**STEP)
    errors = [
        replica.solve(getattr(step, theory)(beta=1.0, dimension=d), alpha=1, lam=0.1).test_error
        for d in (300, np.inf)
    ]
    assert [point["test_error"] for point in found] == pytest.approx(errors, rel=1e-12)
    assert errors[0] != errors[1]


def test_a_file_has_the_dimension_of_theory_and_simulation(tmp_path, capsys):
    path = tmp_path / "problem.toml"
    path.write_text("dimension = 60\n")
    at = dict(alpha=1, lam=0.1)
    (point,) = document(capsys, f"curve {LINE} --theory network --config {path}")["points"]
    model = replica.GradientStep(**STEP).network(beta=1.0, dimension=60)
    assert point["test_error"] == replica.solve(model, **at).test_error
    found = document(capsys, f"compare {LINE} --config {path} --seeds 2 --rng 0", validate)
    assert found["dimension"] == 60


@pytest.mark.parametrize(
    ("line", "model", "reason"),
    [
        (f"{LINE} --bias=0,1".replace(ONE, "--steps .5:3,.5:3"), "network", "single step"),
        (f"{LINE} --train-bias", "network", "does not cover trained biases"),
        (LINE.replace(ONE, "--r 1 --c 1 --gamma .5"), "network", "the latter with a step"),
        (LINE, "both", "--theory must be srf or network"),
    ],
)
def test_refused_in_one_line(line, model, reason, capsys):
    for command, name in ((theory, "curve"), (validate, "compare")):
        message = refusal(capsys, f"{name} {line} --theory {model}", command)
        assert message.startswith("error: --theory must be srf")
        assert reason in message


def test_the_former_name_of_the_theory_says_the_new_one(tmp_path, capsys):
    assert "did you mean theory?" in refusal(capsys, f"curve {LINE} --model network")
    path = tmp_path / "problem.toml"
    path.write_text('model = "network"\n')
    assert "without model, which is no option (did you mean theory?)" in refusal(
        capsys, f"curve --config {path}"
    )


def test_keys_of_a_problem_file(tmp_path, capsys):
    path = tmp_path / "problem.toml"
    keys = 'student = "tanh"\ntarget = "tanh"\nalpha0 = 0.5\neta = 3\nalpha = 1\nlam = 0.1\n'
    path.write_text(keys + 'theory = "network"\nstep_noise = "0,0.4"\n')
    found = document(capsys, f"curve --config {path}")
    typed = document(capsys, f"curve {LINE} --theory network --step-noise 0,.4")
    assert found == typed
    assert [point["step_noise"] for point in found["points"]] == [0, 0.4]
    # what is typed comes first
    found = document(capsys, f"curve --config {path} --theory srf")
    assert found["problem"]["theory"] == "srf"
    path.write_text(keys + 'theory = "both"\n')
    assert "--theory must be srf or network" in refusal(capsys, f"curve --config {path}")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("line", "note"),
    [
        (LINE, NETWORK),
        (f"{LINE} --theory network", NETWORK),
        (f"{LINE} --theory srf", "theory of the sRF, as asked"),
        (f"{LINE} --simulated srf", "theory of the sRF, which is what is simulated"),
        (f"{LINE} --bias 1", NETWORK),
        (f"{LINE} --train-bias", f"theory of the sRF, the published equivalent: {TRAINED}"),
    ],
)
def test_a_comparison_says_which_theory_it_is(line, note, capsys):
    status = validate(f"compare {line} {SMALL}")
    theory, verdict = capsys.readouterr().out.splitlines()[-2:]
    assert theory.startswith(f"Compared with the {note}")
    assert status == (1 if "disagree" in verdict else 0)
    found = document(capsys, f"compare {line} {SMALL}", validate, status)
    assert found["theory"].startswith(note)
    trained = "--train-bias" in line
    step = replica.GradientStep(**STEP, bias=float("--bias" in line), train_bias=trained)
    model = step.network(beta=1.0) if note == NETWORK else step.srf(beta=1.0)
    there = replace(model, dimension=60)
    assert found["points"][0]["test_error"] == replica.solve(there, alpha=1, lam=0.1).test_error


@pytest.mark.slow
def test_figure(tmp_path):
    """The quick version: one theory leaves the sRF for the covariance, one for the norms."""
    picture, values = tmp_path / "a.svg", tmp_path / "a.json"
    assert validate(f"figure network --quick --plot {picture} --out {values}") == 0
    assert picture.stat().st_size > 5000
    found = json.loads(values.read_text())
    for name, curve in zip(("covariance", "norms"), np.ravel(found["panels"]), strict=True):
        errors = curve["test_error"]
        srf, equal, network = (np.array(errors[kind]) for kind in ("srf", "equal", "theory"))
        covariance, norms = equal / srf - 1, network / equal - 1
        strong, weak = (covariance, norms) if name == "covariance" else (norms, covariance)
        # measured from eta = 2 on: 9 to 16 % against .4 %, and 21 to 37 % against 3 %
        fast = np.array(curve["x"]) >= 2
        assert np.abs(strong[fast]).min() > 0.08
        assert np.abs(weak[fast]).max() < 0.04
        # At smaller rates lengths of inputs (docs/theory.md 23.10) add up to 8 % (eta = .72), as m
        # is large and an sRF at this dimension has its price alone: at eta = .5, 1.125 theory is
        # .1 +- .6, 2.8 +- 1.1 % below networks, and without these lengths 10.6 % at .5.
        assert np.abs(weak).max() < 0.085
        assert len(errors["simulated"]) == len(curve["simulated_at"]) == 3
    (below,) = figure("network").draw(found).legends
    labels = [text.get_text() for text in below.get_texts()]
    assert labels[:2] == ["theory of the network at this $d$", "theory of equal row norms"]


@pytest.mark.slow
def test_figure_of_students(tmp_path):
    """The sRF of relu networks is off in the published direction, and the network is not."""
    picture, values = tmp_path / "a.png", tmp_path / "a.json"
    assert validate(f"figure network-students --quick --plot {picture} --out {values}") == 0
    found = json.loads(values.read_text())
    off = {}
    cases = [(target, alpha0) for target in ("relu", "sin") for alpha0 in (0.3, 1.0, 3.0)]
    for case, curve in zip(cases, np.ravel(found["panels"]), strict=True):
        network, srf = np.array(curve["test_error"]["theory"]), np.array(curve["test_error"]["srf"])
        assert network[0] == pytest.approx(srf[0], rel=1e-9)  # no step
        off[case] = (srf / network)[curve["x"].index(3.0)] - 1
        assert len(curve["test_error"]["simulated"]) == len(curve["simulated_at"])
    # simulated networks over the sRF: +12 % at alpha0 = .3 and 1, +6.6 % at 3 (relu target);
    # +9.6 % at .3, -3.9 % at 3 (sin); within 2 %
    expected = {("relu", 0.3): -0.12, ("relu", 3.0): -0.062, ("sin", 0.3): -0.088}
    for case, share in (expected | {("sin", 3.0): 0.04}).items():
        assert off[case] == pytest.approx(share, abs=0.02)
