"""Every bad input of ``inputs`` is refused in a sentence; a few of each kind in an ordinary run."""

import sys
from pathlib import Path

import pytest

from replica.cli import run
from replica.cli.main import app as replica_app
from validation.cli.main import app as validation_app

from .inputs import all_inputs

PROGRAMS = {"replica": replica_app, "replica-validate": validation_app}
INPUTS = list(all_inputs())
EACH = 67  # of the inputs one is tried in an ordinary run
LINES, CHARACTERS = 4, 1000  # of standard error, at most: a person reads them


@pytest.fixture
def faults(tmp_path, monkeypatch, capsys):
    """What is wrong with the answers to inputs, each in a folder that holds its files alone."""
    # pytest's debugger, which takes the place of Python's, would wait for somebody
    monkeypatch.setattr(sys, "breakpointhook", sys.__breakpointhook__)
    monkeypatch.setenv("PYTHONBREAKPOINT", "0")
    monkeypatch.setenv("REPLICA_TRACEBACK", "1")  # what nobody foresaw is raised

    def judge(inputs):
        for number, given in enumerate(inputs):
            folder = tmp_path / str(number)
            folder.mkdir()
            monkeypatch.chdir(folder)
            for name, content in given.files.items():
                Path(name).write_bytes(content)
            program, *words = given.arguments
            status = run(PROGRAMS[program], words)
            err = capsys.readouterr().err
            right = status in ((2,) if given.refused else (0, 1, 2))
            right &= len(err.splitlines()) <= LINES and len(err) <= CHARACTERS
            if not right or (status == 2 and "error: " not in err):
                yield f"{describe(given)}: status {status} ({err[-300:]!r})"

    return judge


def describe(given):
    return f"{given.theme}: {' '.join(given.arguments)[:120]}"


@pytest.mark.parametrize("given", INPUTS[::EACH], ids=describe)
def test_a_bad_input_is_refused(given, faults):
    assert not list(faults([given]))


@pytest.mark.slow
@pytest.mark.parametrize("theme", sorted({given.theme for given in INPUTS}))
def test_all_of_a_theme_are_refused(theme, faults):
    assert not list(faults(given for given in INPUTS if given.theme == theme))
