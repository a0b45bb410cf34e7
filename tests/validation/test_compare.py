"""Theory beside simulation: agreement, verdicts, documents."""

import json
from dataclasses import replace

import numpy as np
import pytest

from replica import GradientStep, SpikedRandomFeatures, solve
from replica.observables import sweep
from validation import compare, simulate
from validation.comparisons import dense, plot_comparison
from validation.comparisons.checks import Check, theory_at

MODEL = SpikedRandomFeatures(student="tanh", target="sin", r=1.0, c=1.2, gamma=0.8, beta=1.5)


# Theory and simulation


@pytest.fixture(scope="module")
def noisy_comparison():
    return compare(
        replace(MODEL, noise=0.25), alpha=[0.5, 2], lam=[0.01, 0.1], dimension=300, seeds=10, rng=1
    )


@pytest.mark.parametrize(
    "change", [{"gamma": 0.6}, {"r": 2.0}, {"c": 2.0}, {"beta": 1.0}, {"noise": 0.5}]
)
def test_a_wrong_theory_is_found_out(noisy_comparison, change):
    """Each of these changes some error by more than the tolerance allows."""
    assert noisy_comparison.agrees
    simulation = noisy_comparison.simulation
    wrong = theory_at(replace(simulation.problem, **change), simulation)
    test, train = (
        replace(getattr(noisy_comparison, name), theory=wrong[f"{name}_error"])
        for name in ("test", "train")
    )
    assert not replace(noisy_comparison, test=test, train=train).agrees


def test_tolerance():
    """4 standard errors, scaled up where the simulation is below, and the allowance."""
    check = Check(
        theory=np.array([1.0, 1.0, 2.0, 2.0, np.nan, 0.0]),
        simulated=np.array([1.45, 1.55, 1.1, 0.5, 1.0, 0.0]),
        stderr=np.array([0.1, 0.1, 0.1, 0.05, 0.1, 0.0]),
    )
    assert check.agrees(0.1).tolist() == [True, False, True, False, False, True]
    np.testing.assert_allclose(check.z, [-4.5, -5.5, 9, 30, np.nan, np.nan])


def test_document_is_json_with_null_for_unknown():
    step = GradientStep(student="tanh", target="sin", alpha0=2, eta=1.0)
    comparison = compare(step, alpha=[0.5, 1], lam=[0.1, 1], dimension=60, seeds=3, rng=0, beta=0.5)
    unknown = replace(comparison.test, theory=np.full((2, 2), np.nan))
    assert not replace(comparison, test=unknown).agrees
    document = replace(comparison, test=unknown).document()
    assert json.loads(json.dumps(document, allow_nan=False)) == document
    assert (document["dimension"], document["seeds"]) == (60, 3)
    assert document["problem"]["student"] == "tanh"
    assert document["problem"]["beta"] == 0.5
    points = [(p["alpha"], p["lam"]) for p in document["points"]]
    assert points == [(0.5, 0.1), (0.5, 1), (1, 0.1), (1, 1)]
    point = document["points"][1]
    assert list(point) == [
        *("alpha", "lam", "theory_test", "simulated_test", "stderr_test", "z"),
        *("theory_train", "simulated_train", "stderr_train", "z_train"),
    ]
    assert point["theory_test"] is None
    assert point["z"] is None
    assert point["simulated_train"] == comparison.simulation.train_mean[0, 1]
    assert point["z_train"] == comparison.train.z[0, 1]


def test_dataset_says_what_it_holds(tmp_path):
    """Through NetCDF and back: dimensions, units, problem, seeds and versions."""
    import xarray

    step = GradientStep(student="tanh", target="sin", alpha0=2, eta=1.0, readout=[-1, 2])
    simulation = simulate(
        step, alpha=[0.5, 1], lam=[0.1, 1, 2], dimension=30, seeds=4, rng=7, beta=0.5
    )
    simulation.dataset().to_netcdf(tmp_path / "a.nc", engine="h5netcdf")
    with xarray.open_dataset(tmp_path / "a.nc", engine="h5netcdf") as found:
        assert dict(found.sizes) == {"seed": 4, "alpha": 2, "lam": 3}
        np.testing.assert_array_equal(found.test_error, simulation.test_error)
        np.testing.assert_array_equal(found.test_variance, simulation.test_variance)
        np.testing.assert_array_equal(found.train_stderr, simulation.train_stderr)
        np.testing.assert_array_equal(found.lam, [0.1, 1, 2])
        assert found.test_error.attrs["units"] == "mean squared error"
        assert found.attrs["student"] == "tanh"
        assert found.attrs["readout"] == "[[-1.0, 2.0], [0.5, 0.5]]"
        assert (found.attrs["dimension"], found.attrs["beta"]) == (30, 0.5)
        assert (found.attrs["simulated"], found.attrs["entropy"]) == ("network", "7")
        assert "replica-srf 0.1.0, numpy" in found.attrs["versions"]


def test_verdict_counts():
    comparison = compare(MODEL, alpha=1, lam=[0.1, 1], dimension=60, seeds=3, rng=0)
    ones = np.ones((1, 2))
    spread = replace(
        comparison,
        test=Check(ones, np.array([[1.1, 1.3]]), 0.1 * ones),
        train=Check(ones, ones, 0.1 * ones),
        allowance=0.0,
    )
    assert spread.share_within_two == 0.75
    # P(|t| <= 2) with two degrees of freedom is sqrt(2 / 3) = 82 %.
    assert spread.verdict == (
        "theory and simulation agree to within 4 standard errors and 0 of the theory for finite "
        "size; 75% of the errors are within 2 standard errors, where 82% are expected of 3 seeds "
        "without such a bias (the points of a seed share its draw, and miss together); theory of "
        "the sRF, which is what is simulated; the price of m at d = 60 included"
    )
    apart = replace(spread, train=Check(ones, 2 * ones, 0.1 * ones))
    assert "disagree" in apart.verdict
    assert "25%" in apart.verdict


def test_noise_of_the_step_alone():
    """Noise in the first batch and none in the second: within 4 standard errors of its theory,
    and of no other division of the noise."""
    step = GradientStep(
        student="tanh", target="tanh", alpha0=0.5, eta=3.0, noise=0.0, step_noise=0.5
    )
    points = {"alpha": [2.0, 3.0], "lam": 0.1, "beta": 0.5, "allowance": 0.0}
    found = compare(step, **points, dimension=300, seeds=8, rng=0)
    assert found.agrees, found.verdict
    for other in ({"step_noise": 0.0}, {"noise": 0.5}):
        theory = [
            solve(replace(step, **other).network(beta=0.5), alpha=alpha, lam=0.1)
            for alpha in points["alpha"]
        ]
        errors = np.array([[point.test_error] for point in theory])
        assert not replace(found.test, theory=errors).agrees(0.0).any()


@pytest.mark.parametrize(("which", "thin"), [("network", 2), ("srf", 0)])
def test_the_picture_shows_the_srf_as_thinner_lines(which, thin):
    step = GradientStep(student="tanh", target="tanh", alpha0=0.5, eta=3.0)
    found = compare(
        step, alpha=[0.5, 2.0], lam=0.1, beta=1.0, model=which, dimension=60, seeds=2, rng=0
    )
    theory = found.theory
    line, published = (
        None if of is None else sweep(of, alpha=dense(found.alpha), lam=found.lam, grids={})
        for of in (theory.model, theory.published)
    )
    beside = {} if published is None else {"sRF": published}
    lines = plot_comparison(found, line, beside).get_lines()
    own = [one for one in lines if "theory" in str(one.get_label())]
    others = [one for one in lines if "sRF" in str(one.get_label())]
    assert (len(own), len(others)) == (2, thin)
    model = step.network(beta=1.0) if which == "network" else step.srf(beta=1.0)
    # solved with the curve's other points, which rounds differently
    of = model, step.srf(beta=1.0)
    point, srf = (solve(replace(each, dimension=60), alpha=2, lam=0.1) for each in of)
    assert own[0].get_ydata()[-1] == pytest.approx(point.test_error, rel=1e-12)
    for one, value in zip(others, (srf.test_error, srf.train_error), strict=False):
        assert one.get_linewidth() < own[0].get_linewidth()
        assert one.get_ydata()[-1] == pytest.approx(value, rel=1e-12)
