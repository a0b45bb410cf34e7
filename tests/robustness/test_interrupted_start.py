"""Ctrl-C while a command is being imported."""

import os
import signal
import subprocess
import sys
import time

import pytest

from tests.places import ROOT


@pytest.mark.skipif(os.name == "nt", reason="Ctrl-C is no signal on Windows")
@pytest.mark.parametrize("module", ["replica", "validation"])
@pytest.mark.parametrize("raised", ["", "ImportError('numpy._core failed to import')"])
def test_an_interrupted_start_has_the_status_of_an_interrupt(module, raised, tmp_path):
    """Also where a module that is loading, as those of scipy do, makes another error of it."""
    load = "import time\nprint(1, flush=True)\ntry:\n    time.sleep(60)\n"
    (tmp_path / "typer.py").write_text(f"{load}except KeyboardInterrupt:\n    raise {raised}\n")
    # a background shell hands down SIGINT ignored, and Python would not raise on it
    restore = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        process = subprocess.Popen(
            [sys.executable, "-m", module, "curve"],
            cwd=tmp_path,
            env=os.environ | {"PYTHONPATH": f"{tmp_path}{os.pathsep}{ROOT}"},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
    finally:
        signal.signal(signal.SIGINT, restore)
    with process:
        process.stdout.readline()
        time.sleep(0.1)
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=60)
    assert (err, process.returncode) == ("", -signal.SIGINT)
