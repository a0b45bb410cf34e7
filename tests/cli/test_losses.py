"""--loss, --label-noise and --steps on the command lines and in files."""

import pytest

from tests.cli.commands import document, validate

SIGN = "--student tanh --target sign --r 1.5 --c 1.3 --gamma 0.8"
SINE = "--student tanh --target sin --r 1.1 --c 1 --gamma 0.97 --noise 0.05"


def test_curve_of_labels(capsys):
    """docs/theory.md 13's point, with the columns that labels and a loss add."""
    found = document(capsys, f"curve {SIGN} --alpha 2 --lam 0.05 --loss logistic")
    assert found["problem"]["loss"] == "logistic"
    (point,) = found["points"]
    assert point["classification_error"] == pytest.approx(0.17203, abs=1e-4)
    assert point["converged"]
    assert 0 < point["train_loss"] < point["loss_error"]


def test_compare_under_outliers(capsys):
    options = "--label-noise outliers:0.1:9 --loss huber:0.3 --alpha 1 --lam 0.1"
    line = f"compare {SINE} {options} --dimension 60 --seeds 4 --rng 0"
    found = document(capsys, line, validate)
    assert found["problem"]["label_noise"] == "outliers:0.1:9"
    assert found["problem"]["loss"] == "huber:0.3"
    assert {"theory_loss_error", "simulated_loss_error", "z_loss_error"} <= set(found["points"][0])


def test_several_steps(capsys, tmp_path):
    """docs/theory.md 13, last row."""
    line = "curve --student tanh --target sin --alpha 1 --lam .05"
    found = document(capsys, f"{line} --steps 2:1,2:1,2:1")
    assert round(found["points"][0]["test_error"], 4) == 0.0759
    assert [round(step["gamma"][0], 4) for step in found["steps"]] == [0.7937, 0.9096, 0.9538]
    assert found["problem"]["steps"] == [[2, 1]] * 3
    config = tmp_path / "problem.toml"
    config.write_text("steps = [[2, 1], [2, 1], [2, 1]]\n")
    assert document(capsys, f"{line} --config {config}") == found
