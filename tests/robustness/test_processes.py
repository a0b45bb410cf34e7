"""Workers of Python's ``learning_curve``: Ctrl-C, exceptions and deaths in them."""

import subprocess
import time

import pytest

from tests.processes import python

SCRIPT = """
import os, signal, sys, threading, time
import numpy as np
import replica

MAIN = os.getpid()


def student(x):
    if os.getpid() != MAIN and sys.argv[-1] == "exception":
        raise RuntimeError("of the user")
    if os.getpid() != MAIN and sys.argv[-1] == "death":
        os.kill(os.getpid(), signal.SIGKILL)
    if os.getpid() != MAIN:
        time.sleep(0.05)
    return np.tanh(x)


if __name__ == "__main__":
    model = replica.GradientStep(student=student, target="sin", alpha0=4, eta=2.0).srf(beta=1.0)
    if sys.argv[-1] == "interrupt":
        signal.signal(signal.SIGINT, signal.default_int_handler)
        threading.Timer(4, lambda: os.kill(MAIN, signal.SIGINT)).start()
    try:
        replica.learning_curve(
            model, alpha=[0.5, 1.0], lam=0.1, workers=2, beta=np.linspace(0.5, 2, 40)
        )
    except BaseException as error:
        print(type(error).__name__, "::", error, flush=True)
    sys.exit(3)
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("case", "expected"),
    [
        ("interrupt", "KeyboardInterrupt :: "),
        ("exception", "RuntimeError :: of the user"),
        ("death", "WorkerDied :: "),
    ],
)
def test_what_happens_to_workers_reaches_the_caller(case, expected, tmp_path):
    """As an exception of its kind, soon, and no worker is left."""
    path = tmp_path / "mine.py"
    path.write_text(SCRIPT)
    start = time.monotonic()
    ended = python(path, case, timeout=100)
    assert ended.stdout.startswith(expected), ended.stderr
    assert ended.returncode == 3
    assert time.monotonic() - start < 60
    left = subprocess.run(["pgrep", "-f", str(path)], capture_output=True, text=True)
    assert left.stdout == ""
