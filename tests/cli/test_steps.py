"""Several steps on the command line and in its files."""

import json

from replica.cli.common import run
from replica.cli.main import app

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
