"""What hides a package of ours, and Ctrl-C while a command is starting."""

import os
import signal
import subprocess
import sys
import time

import pytest

from tests.places import ROOT
from tests.processes import python


@pytest.mark.parametrize("name", ["solvers.py", "solvers/__init__.py"])
def test_a_file_that_hides_solvers_is_named(name, tmp_path):
    (tmp_path / name).parent.mkdir(exist_ok=True)
    (tmp_path / name).write_text("1 / 0\n")  # and is not run
    (tmp_path / "mine.py").write_text("import replica\n")
    last = python("mine.py", cwd=tmp_path).stderr.splitlines()[-1]
    assert last.startswith("ImportError: ")
    assert str(tmp_path / name) in last
    assert "hides the package solvers" in last


@pytest.mark.slow
def test_a_file_that_hides_validation_is_named_and_does_no_harm(tmp_path):
    (tmp_path / "validation.py").write_text("own = 1\n")
    (tmp_path / "mine.py").write_text("import replica, validation\nprint(validation.own)\n")
    result = python("-W", "default", "mine.py", cwd=tmp_path)
    assert result.stdout == "1\n"
    assert "hides the package validation" in result.stderr


@pytest.mark.slow
@pytest.mark.parametrize("module", ["replica", "validation"])
@pytest.mark.parametrize("raised", ["", "ImportError('numpy._core failed to import')"])
def test_an_interrupted_start_is_one_line(module, raised, tmp_path):
    """Also where a module that is loading, as those of scipy do, makes another error of it."""
    load = "import time\nprint(1, flush=True)\ntry:\n    time.sleep(60)\n"
    (tmp_path / "typer.py").write_text(f"{load}except KeyboardInterrupt:\n    raise {raised}\n")
    # a background shell hands down SIGINT ignored, and Python would not raise on it
    script = "import signal, sys; signal.signal(signal.SIGINT, signal.default_int_handler); "
    with subprocess.Popen(
        [sys.executable, "-c", f"{script}sys.argv[0] = '-m'; import {module}.cli"],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": f"{tmp_path}{os.pathsep}{ROOT}"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        process.stdout.readline()
        time.sleep(0.1)
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=60)
    assert (err, process.returncode) == ("error: interrupted while starting\n", 130)


def test_a_false_variable_of_another_package_is_one_line(tmp_path):
    """numpy cannot be imported where SOURCE_DATE_EPOCH is no number."""
    nonsense = {"SOURCE_DATE_EPOCH": "nonsense"}
    ended = python("-m", "replica", "curve", "--help", variables=nonsense, cwd=tmp_path)
    if ended.returncode:  # as numpy 2.4 does
        assert ended.returncode == 1
        assert ended.stderr.startswith("error: could not start: ValueError: ")
        assert len(ended.stderr.splitlines()) == 1
