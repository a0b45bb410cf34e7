"""The two commands as tests call them, with a line of words."""

import json
import shlex

from replica.cli import run
from replica.cli.main import app as replica_app
from validation.cli.main import app as validation_app


def theory(line):
    """The status of ``replica LINE``."""
    return run(replica_app, shlex.split(line))


def validate(line):
    """The status of ``replica-validate LINE``."""
    return run(validation_app, shlex.split(line))


def document(capsys, line, command=theory, status=0):
    """What the command prints, as data."""
    assert command(f"{line} --json") == status
    return json.loads(capsys.readouterr().out)


def refusal(capsys, line, command=theory):
    """The one line in which the command refuses its input, with nothing printed beside it."""
    assert command(line) == 2
    out, err = capsys.readouterr()
    assert out == ""
    (message,) = err.splitlines()
    return message
