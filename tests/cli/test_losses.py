"""--loss and --label-noise on the command lines."""

import json

import pytest

from replica.cli.common import run
from replica.cli.main import app
from validation.cli.main import app as validation_app


def words(line):
    return line.split()


SIGN = words("--student tanh --target sign --r 1.5 --c 1.3 --gamma 0.8")
SINE = words("--student tanh --target sin --r 1.1 --c 1 --gamma 0.97 --noise 0.05")


def test_curve_of_labels(capsys):
    """docs/theory.md 13's point, with the columns that labels and a loss add."""
    options = words("--alpha 2 --lam 0.05 --loss logistic --json")
    assert run(app, ["curve", *SIGN, *options]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["problem"]["loss"] == "logistic"
    (point,) = document["points"]
    assert point["classification_error"] == pytest.approx(0.17203, abs=1e-4)
    assert point["converged"]
    assert 0 < point["train_loss"] < point["loss_error"]


def test_compare_under_outliers(capsys):
    options = words("--label-noise outliers:0.1:9 --loss huber:0.3 --alpha 1 --lam 0.1")
    size = words("--dimension 60 --seeds 4 --rng 0 --json")
    assert run(validation_app, ["compare", *SINE, *options, *size]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["problem"]["label_noise"] == "outliers:0.1:9"
    assert document["problem"]["loss"] == "huber:0.3"
    assert {"theory_loss_error", "simulated_loss_error", "z_loss_error"} <= set(
        document["points"][0]
    )
