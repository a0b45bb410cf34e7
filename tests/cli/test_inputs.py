"""The law of inputs, the step's own target and weight decay through the commands."""

import json
from dataclasses import replace

import pytest

import replica
from tests.cli.commands import document, refusal

MEANS = [[1.0, 0.5], [-1.0, 0.5]]
STEP = "--student relu --alpha0 1 --eta 2 --alpha 1 --lam .1"
TABLE = """
student = "relu"
target = "z1 + z2"
step_target = "classes:1,-1"
alpha0 = 1
eta = 2
alpha = 1
lam = 0.1
decay = [0, 0.3]

[inputs]
means = [[1.0, 0.5], [-1.0, 0.5]]
fractions = [1, 3]
"""


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "inputs.toml"
    path.write_text(f"means = {json.dumps(MEANS)}\n")
    return path


@pytest.mark.parametrize("model", ["srf", "network"])
def test_curve_on_a_mixture(file, model, capsys):
    line = f"curve {STEP} --target classes:1,-1 --inputs {file} --theory {model}"
    found = document(capsys, line)
    law = replica.GaussianMixture(means=MEANS)
    step = replica.GradientStep(student="relu", target="classes:1,-1", alpha0=1, eta=2, inputs=law)
    made = step.network(beta=1.0) if model == "network" else step.srf(beta=1.0)
    assert found["points"][0]["test_error"] == replica.solve(made, alpha=1, lam=0.1).test_error
    assert found["problem"]["inputs"]["means"] == MEANS


def test_a_problem_file_with_its_law(tmp_path, capsys):
    path = tmp_path / "problem.toml"
    path.write_text(TABLE)
    points = document(capsys, f"curve --config {path}")["points"]
    assert [point["decay"] for point in points] == [0, 0.3]
    law = replica.GaussianMixture(means=MEANS, fractions=[1, 3])
    step = replica.GradientStep(
        student="relu", target="z1 + z2", step_target="classes:1,-1", alpha0=1, eta=2,
        decay=0.3, inputs=law,
    )  # fmt: skip
    expected = replica.solve(step.srf(beta=1.0), alpha=1, lam=0.1).test_error
    assert points[1]["test_error"] == expected


TABLE_OF = "--inputs must be a table of means, covariances, fractions, the first given: means"
REFUSED = {
    "--target classes:1,-1": "--target must be given with inputs",
    "--target classes:1,-1,2 --inputs FILE": "a number for each of 2 components",
    "--target sin --inputs nowhere.toml": "--inputs must be a readable TOML file",
    "--target sin --inputs gaussian": "--inputs must be a readable TOML file",
    "--target sin --decay 1": "--decay must be 0 or more and less than 1",
    "--target sin --separation 3": "given with inputs",
    "--target sin --separation 1,3": "given with inputs",
    "--target classes:1,-1 --inputs FILE --separation=-1": "0 or more",
    "--config problem.toml": TABLE_OF,
}
REFUSED |= {
    f"--target classes:1,-1 --inputs '{given}'": said
    for given, said in {
        "{means=[[1,0]}": "--inputs must be readable TOML",
        "{means=[[1,0]], means=[[1,0]]}": "--inputs must be readable TOML",
        "[[1,0],[-1,0]]": TABLE_OF,
        "{mean=[[1,0]]}": f"{TABLE_OF} = [[1, 0], [-1, 0]], or typed",
        "{fractions=[1]}": TABLE_OF,
        "{means=[[1,0]], fraction=[1]}": "; not fraction (did you mean fractions?), got",
        "{means=[[1,0]], covariance=1}": "; not covariance (did you mean covariances?), got",
        "{means=[1,0]}": "means are an array with 2 axes and numbers in it",
        "{means=[[1,0],[1]]}": "whose means are an array of numbers, all rows of one length",
        "{means=[[1,0]], covariances=[[[1,0],[0,1]],[[1]]]}": "whose covariances are an array of n",
    }.items()
}


@pytest.mark.parametrize("line", REFUSED)
def test_refused_in_one_line(line, file, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "problem.toml").write_text(TABLE.replace("fractions", "shares"))
    assert REFUSED[line] in refusal(capsys, f"curve {STEP} {line.replace('FILE', str(file))}")


TWO = "--student erf --target classes:1,-1 --alpha0 1 --eta 2 --alpha 2 --lam .1"


def test_a_mixture_in_the_line(capsys, tmp_path):
    """The numbers of a file, for every command that takes inputs."""
    law = "means = [[1.5, 0.5], [-1.5, 0]]"
    (tmp_path / "law.toml").write_text(law)
    for line in (f"curve {TWO}", "staircase --target sin(z1)"):
        read, typed = (
            document(capsys, f"{line} --inputs {given}")
            for given in (tmp_path / "law.toml", f"'{{{law}}}'")
        )
        assert read == typed


def test_separations_multiply_the_means(capsys, tmp_path):
    inputs = "--inputs '{means=[[1,0],[-1,0]]}'"
    found = document(capsys, f"curve {TWO} {inputs} --separation .5,3")
    assert [point["separation"] for point in found["points"]] == [0.5, 3.0]
    law = replica.GaussianMixture(means=[[3, 0], [-3, 0]])
    alone = replica.GradientStep(student="erf", target="classes:1,-1", inputs=law, alpha0=1, eta=2)
    expected = replica.solve(alone, beta=1.0, alpha=2.0, lam=0.1).classification_error
    assert found["points"][1]["classification_error"] == pytest.approx(expected, rel=1e-12)
    (one,) = document(capsys, f"curve {TWO} {inputs} --separation 3")["points"]
    assert one["classification_error"] == pytest.approx(expected, rel=1e-12)
    half = replace(alone, inputs=replace(law, means=law.means / 6))
    curve = replica.learning_curve(half, beta=1.0, separation=[1, 6], alpha=2.0, lam=0.1)
    assert curve.classification_error.values[1] == pytest.approx(expected, rel=1e-12)
