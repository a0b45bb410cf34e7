"""What a point of ridge regression passes through, once its tables are there."""

import sys
from pathlib import Path

import numpy as np

import replica
import solvers
from replica import GradientStep, learning_curve, solve

FOLDERS = tuple(str(Path(package.__file__).parent) for package in (replica, solvers))


def test_few_functions_in_few_files():
    """A reader who follows a point opens so many once the compiled core is loaded, beside its own
    twelve functions in a file.  Before, numpy takes their place, in 74 functions and 19 files."""
    model = GradientStep(student="tanh", target="sin", alpha0=20, eta=3.0).srf(beta=1.0)
    learning_curve(model, alpha=np.linspace(0.2, 3, 60), lam=0.1)
    solve(model, alpha=0.9, lam=0.1)
    entered = set()

    def note(frame, event, _):
        if event == "call":
            entered.add(frame.f_code)

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        solve(model, alpha=1.1, lam=0.1)
    finally:
        sys.setprofile(before)
    own = [code for code in entered if code.co_filename.startswith(FOLDERS)]
    assert len(own) <= 57, sorted(code.co_qualname for code in own)
    assert len({code.co_filename for code in own}) <= 16
