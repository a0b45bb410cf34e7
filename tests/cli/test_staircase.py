"""The command staircase: documents, files, one line for every mistake."""

from math import factorial

import numpy as np
import pytest

from replica import staircase
from replica.plotting import plot_staircase
from tests.cli.commands import document, refusal, theory


def test_command(capsys, tmp_path):
    found = document(capsys, "staircase --target z1+z1*z2+z1*z2*z3")
    assert (found["leap"], found["learned_linearly"]) == (1, 3)
    assert [(point["step"], point["samples"]) for point in found["points"]] == [
        (1, "d"), (2, "d"), (3, "d"),
    ]  # fmt: skip
    assert np.array(found["tensors"][3]).shape == (3, 3, 3)
    assert found["tensors"][3][0][1][2] == pytest.approx(1 / factorial(3) * 6)
    picture, table = tmp_path / "s.png", tmp_path / "s.csv"
    assert theory(f"staircase --target he2 --plot {picture} --out {table}") == 0
    shown = capsys.readouterr().out
    assert "information exponent 2; batches of n ~ d samples learn nothing" in shown
    assert picture.stat().st_size > 1000
    assert table.read_text().startswith("step,leap,samples,strength,direction,explained\n1,2,d^2,")


def test_command_with_a_bias(capsys):
    line = "staircase --student relu --target z1+z1*z2+z1*z2*z3"
    assert document(capsys, line)["learned_linearly"] == 2
    found = document(capsys, f"{line} --bias 0.7")
    assert (found["learned_linearly"], found["bias"]) == (3, 0.7)
    assert document(capsys, f"{line} --bias=0,-1")["learned_linearly"] == 3
    assert "--bias must be" in refusal(capsys, f"{line} --bias b.npy")


def test_command_on_a_function_of_a_module(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "stairs.py").write_text("def g(a, b):\n    return a + a * b\n")
    found = document(capsys, "staircase --target stairs:g --dimension 2")
    np.testing.assert_allclose(found["directions"], np.eye(2), atol=1e-12)


def test_command_on_other_inputs(capsys, tmp_path):
    law = tmp_path / "law.toml"
    law.write_text("means = [[0, 0]]\ncovariances = [[1.0, 0.5], [0.5, 1.0]]\n")
    found = document(capsys, f"staircase --target sin(z1) --inputs {law}")
    assert [point["samples"] for point in found["points"]] == ["d", "d"]
    assert found["powers"] == [None, None]
    assert theory(f"staircase --target z1*z2 --inputs {law}") == 0
    assert "no steps on n ~ d samples learn any direction" in capsys.readouterr().out


def test_what_it_holds_for_is_said(capsys):
    """Any student, or this one; the steps of neurons of which each turns as it will."""
    climb = "staircase --target z1+z1*z2+he2(z1)*z3"
    assert theory(climb) == 0
    assert "in 2 steps or more (fresh batches, a student that sees every" in capsys.readouterr().out
    assert theory(f"{climb} --student relu") == 0
    shown = capsys.readouterr().out
    assert "learn 2 of 3 directions, in 2 steps; 1 direction not met" in shown
    assert "not seen by this student (fresh batches; strengths" in shown
    assert "of the target alone: replica-validate alignment has how far neurons turn)" in shown


def test_nothing_found_is_said(capsys):
    assert theory("staircase --target he6") == 0
    assert "no tensor of degree 1 to 4 differs from zero" in capsys.readouterr().out
    assert not plot_staircase(staircase("he6")).lines
