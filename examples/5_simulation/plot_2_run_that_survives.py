r"""
A run that survives a kill
==========================

With ``store`` every finished seed is a file, and the same call goes on where it was stopped: after
a kill, on another machine, or as one of many jobs. Here the first run is cut off after three of
eight seeds; the second computes the other five, and its numbers are those of a run without
interruption, to the last bit.
"""

import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

import replica
from validation import simulate

step = replica.GradientStep(student="tanh", target="sin", alpha0=4, eta=2.0)
run = dict(alpha=[0.5, 1, 2], lam=0.1, beta=1.0, dimension=150, seeds=8, rng=0, workers=1)


def cut_off(done, total):
    """Called as seeds finish: what a scheduler may do to a job."""
    print(f"{done} of {total} seeds")
    if done == 3:
        raise KeyboardInterrupt


folder = Path(tempfile.mkdtemp())
try:
    simulate(step, store=folder, progress=cut_off, **run)
except KeyboardInterrupt:
    print("stopped;", len(list(folder.glob("*"))), "files in the store")

resumed = simulate(step, store=folder, **run)
whole = simulate(step, **run)
print("the same to the last bit:", np.array_equal(resumed.test_error, whole.test_error))

plt.plot(run["alpha"], resumed.errors["test_error"][:, :, 0].T, "o", color="0.6", mfc="none")
plt.errorbar(run["alpha"], resumed.test_error[:, 0], 2 * resumed.test_error_stderr[:, 0], fmt="ks")
plt.title("eight seeds, killed and resumed")
plt.xlabel(r"$\alpha = n/d$")
plt.ylabel("test error of each seed, and the mean")
