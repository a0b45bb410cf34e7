"""What all tests share: random examples, and what is done once a machine."""

import importlib
import os
import time

import pytest
from hypothesis import settings

# On a server the same examples every time, so that a change is judged by itself; elsewhere new
# ones in every run.
settings.register_profile("ci", derandomize=True)
if os.environ.get("CI"):
    settings.load_profile("ci")


def pytest_collection_finish():
    """Do what a process, or a machine, does once, so that it is in no test's time: heavy
    imports, the list of fonts, and the compilation of the kernels, which is cached on disk."""
    for module in ("matplotlib.font_manager", "xarray", "h5netcdf", "mpmath"):
        importlib.import_module(module)
    import replica
    from replica.saddle_point import ridge

    ridge.calls_of_one_group[0] = 1000
    model = replica.SpikedRandomFeatures(student="tanh", target="sin", r=1.0, c=1.0, gamma=0.9)
    step = replica.GradientStep(student="tanh", target="sin", alpha0=3, eta=1.0)
    two = replica.GradientStep(student="tanh", target="z1*z2", alpha0=3, eta=1.0)
    for one in (model, *(make(beta=1.0) for make in (step.network, two.srf, two.network))):
        replica.solve(one, alpha=1.0, lam=0.1)


@pytest.fixture(autouse=True)
def patience(request, monkeypatch):
    """Give calls in slow tests four times their ``time_limit``: these pin answers, which a server
    at a third of the speed is to find, too.  Those of tests/robustness take what they say."""
    if request.node.get_closest_marker("slow") and "robustness" not in request.node.path.parts:
        monkeypatch.setattr("solvers.resources.monotonic", lambda: time.monotonic() / 4)
