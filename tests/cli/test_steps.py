"""Several steps on the command line and in its files."""

import json

import pytest

from replica.cli.common import run
from replica.cli.main import app
from replica.cli.options import parse_steps

# The command line

LINE = "curve --student tanh --target sin --alpha 1 --lam .05"


def test_command_line_and_file(capsys, tmp_path):
    assert run(app, [*LINE.split(), "--steps", "2:1,2:1,2:1", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert round(document["points"][0]["test_error"], 4) == 0.0759
    assert [round(step["gamma"][0], 4) for step in document["steps"]] == [0.7937, 0.9096, 0.9538]
    assert document["problem"]["steps"] == [[2, 1]] * 3
    config = tmp_path / "problem.toml"
    config.write_text("steps = [[2, 1], [2, 1], [2, 1]]\n")
    assert run(app, [*LINE.split(), "--config", str(config), "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == document


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ("--steps 2:1,2", "--steps must be pairs alpha0:eta"),
        ("--steps 2:1,2:x", "--steps must be pairs alpha0:eta"),
        ("--steps 2:1,2:1 --eta 1", "--eta must be given without --steps"),
        ("--steps 2:1,2:1 --r 1", "given without"),
        ("--steps 2:1,2:1 --readout=-1,1", "--readout must be a single value"),
    ],
)
def test_mistakes_on_the_command_line(capsys, more, message):
    assert run(app, [*LINE.split(), *more.split()]) == 2
    assert message in capsys.readouterr().err


def test_parse_steps_leaves_a_file_s_pairs():
    assert parse_steps([[1, 2]]) == [[1, 2]]
