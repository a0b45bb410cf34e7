"""Theory beside simulation: agreement, verdicts, documents."""

import json
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
import xarray
from matplotlib.figure import Figure

import replica
from replica import (
    GradientStep,
    learning_curve,
    solve,
)
from solvers.quadrature import QuadratureError
from tests.problems import MODEL
from validation import compare, first_layer, simulate
from validation.comparisons import compare_grid, theory_of
from validation.comparisons.agreement_checks import Check, leaning, too_large, verdict
from validation.comparisons.compare_simulations import checks_at, first_answer, with_others
from validation.comparisons.theory import curves, theory_at

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
    wrong, _ = theory_at(replace(simulation.problem, **change), simulation)
    checks = {
        name: check._replace(theory=wrong[name]) for name, check in noisy_comparison.checks.items()
    }
    assert not replace(noisy_comparison, checks=checks).agrees


def test_tolerance():
    """4 standard errors, scaled up where the simulation is below, and the allowance."""
    check = Check(
        theory=np.array([1.0, 1.0, 2.0, 2.0, np.nan, 0.0]),
        simulated=np.array([1.45, 1.55, 1.1, 0.5, 1.0, 0.0]),
        stderr=np.array([0.1, 0.1, 0.1, 0.05, 0.1, 0.0]),
        skewness=np.zeros(6),
    )
    assert check.within(0.1, 8).tolist() == [True, False, True, False, False, True]
    np.testing.assert_allclose(check.z, [4.5, 5.5, -9, -30, np.nan, np.nan])


@pytest.mark.slow
def test_the_theory_given_drawn_layers_leaves_out_their_noise():
    step = GradientStep(student="tanh", target="sin", alpha0=2, eta=2.0, noise=0.05)
    at = dict(beta=0.5, alpha=1.5, lam=0.1, dimension=160, seeds=6, rng=0)
    limit, given = (compare(step, theory=theory, **at) for theory in (None, "given"))
    assert given.agrees
    assert given.note == "theory given the first layer of every draw"
    assert given.allowance == 1 / 240
    simulated, theory = given.simulation.test_error, given.checks["test_error"]
    assert theory.simulated == limit.checks["test_error"].simulated == simulated.mean()
    assert theory.stderr < limit.checks["test_error"].stderr
    # of this size, where the layers' noise is a part of the readout's
    layers = [first_layer(step, dimension=160, beta=0.5, rng=seed) for seed in range(6)]
    errors = [solve(layer, samples=240, lam=0.1).test_error for layer in layers]
    assert abs(theory.theory - np.mean(errors)) < 4 * np.std(errors)


def test_document_is_json_with_null_for_unknown():
    step = GradientStep(student="tanh", target="sin", alpha0=2, eta=1.0)
    comparison = compare(step, alpha=[0.5, 1], lam=[0.1, 1], dimension=60, seeds=3, rng=0, beta=0.5)
    unknown = comparison.checks["test_error"]._replace(theory=np.full((2, 2), np.nan))
    of_unknown = replace(comparison, checks=comparison.checks | {"test_error": unknown})
    assert not of_unknown.agrees
    document = of_unknown.document()
    assert json.loads(json.dumps(document, allow_nan=False)) == document
    assert (document["dimension"], document["seeds"], document["problem"]["beta"]) == (60, 3, 0.5)
    points = [(p["alpha"], p["lam"]) for p in document["points"][::2]]
    assert points == [(0.5, 0.1), (0.5, 1), (1, 0.1), (1, 1)]
    theory, point = document["points"][2:4]
    assert (theory["source"], point["source"]) == ("theory", "simulation")
    assert (theory["test_error"], point["test_error_z"]) == (None, None)
    assert point["train_error"] == comparison.simulation.train_error[0, 1]
    assert point["train_error_z"] == comparison.checks["train_error"].z[0, 1]


def test_dataset_says_what_it_holds(tmp_path):
    """Through NetCDF and back: dimensions, labels, problem, seeds and versions."""
    step = GradientStep(student="tanh", target="sin", alpha0=2, eta=1.0, readout=[-1, 2])
    at = dict(alpha=[0.5, 1], lam=[0.1, 1, 2], dimension=30, beta=0.5)
    simulation = simulate(step, **at, seeds=4, rng=7)
    simulation.dataset().to_netcdf(tmp_path / "a.nc", engine="h5netcdf")
    with xarray.open_dataset(tmp_path / "a.nc", engine="h5netcdf") as found:
        assert dict(found.sizes) == {"seed": 4, "alpha": 2, "lam": 3}
        for name in ("test_error", "test_variance", "train_error_stderr", "lam"):
            np.testing.assert_array_equal(found[name], getattr(simulation, name))
        assert found.test_error.attrs["long_name"].startswith("test error")
        assert found.attrs["student"] == "tanh"
        assert found.attrs["readout"] == "[[-1.0, 2.0], [0.5, 0.5]]"
        assert (found.attrs["dimension"], found.attrs["beta"]) == (30, 0.5)
        assert (found.attrs["simulated"], found.attrs["rng"]) == ("network", "7")
        assert (found.attrs["seeds"], found.attrs["test_samples"]) == (4, 240)
        assert f"replica-srf {replica.__version__}, numpy" in found.attrs["versions"]


def test_a_comparison_can_be_run_again_from_its_attributes():
    """Those of the data set that NetCDF holds, and the values of its dimensions."""
    step = GradientStep(student="tanh", target="sin", alpha0=2, eta=1.0, noise=0.1)
    first = compare(step, alpha=[0.5, 1], lam=0.1, dimension=30, seeds=3, rng=7, beta=0.5)
    data = first.dataset()
    assert data.test_error.dims == ("alpha", "source")  # a number given stays one
    assert first.simulation.dataset().test_error.dims == ("alpha",)
    of = {name: data.attrs[name] for name in ("student", "target", "alpha0", "eta", "noise")}
    how = {name: data.attrs[name] for name in ("dimension", "seeds", "simulated", "test_samples")}
    again = compare(
        GradientStep(**of), alpha=data.alpha, lam=data.lam, beta=data.attrs["beta"],
        rng=int(data.attrs["rng"]), **how,
    )  # fmt: skip
    np.testing.assert_array_equal(
        again.checks["test_error"].simulated[:, 0], data.test_error.sel(source="simulation")
    )
    assert data.attrs["theory"] == again.note
    grid = compare_grid(step, grids={"eta": [1.0, 2.0]}, alpha=1, lam=0.1, beta=0.5, rng=7, **how)
    assert data.attrs.items() - {("eta", 1.0)} <= grid.dataset().attrs.items()


def test_the_theories_of_a_grid_are_told_apart():
    """At the simulated dimension for one model, at one of its own for another: wherever they are
    named."""
    grids = {"dimension": [np.inf, 300.0]}
    grid = compare_grid(MODEL, grids=grids, alpha=1, lam=0.1, seeds=2, rng=0, dimension=30)
    simulated, own = grid.note.split("; theory of the sRF")
    assert simulated.endswith("m alone (at 1 of 2 settings, the first dimension = inf)")
    assert own.endswith("(at 1 of 2 settings, the first dimension = 300)")
    assert grid.document()["theory"] == grid.dataset().attrs["theory"] == grid.note


@cache
def base():
    """A comparison at two penalties, whose checks are replaced."""
    return compare(MODEL, alpha=1, lam=[0.1, 1], dimension=60, seeds=10, rng=0)


def judged(z, off=0.0, allowance=0.0, train=None):
    """A comparison at two penalties whose test errors are ``z`` standard errors below a theory of
    1, by ``off``, and its training errors likewise."""
    checks = {}
    for name, scores in (("test_error", z), ("train_error", z if train is None else train)):
        scores = np.array([scores], dtype=float)
        stderr = np.full((1, 2), 0.1) if not off else np.abs(off / scores)
        checks[name] = Check(np.ones((1, 2)), 1 - scores * stderr, stderr, np.zeros((1, 2)))
    return replace(base(), checks=checks, allowance=allowance)


AGREE, CLOSE, APART = "agree: ", "are close but not equal: ", "are not equal: "
WITHIN = "within the 5.0% plus 4 standard errors allowed for d = 60"


@pytest.mark.parametrize(
    ("z", "train", "off", "kind", "parts"),
    [
        ([1.0, -1.5], None, 0, AGREE, ["half of them up to 12.1%", "the largest in the test error "
         "at alpha = 1, lam = 1 (1 in theory, 1.15 ± 0.1", "they differ by 13.0%, and by 1.5 "
         "standard errors); differences of 25% or more (test error), of 25% or more (training "]),
        ([0.0, 0.0], [0.0, -10.0], 0, "disagree", ["in 1 of 4 errors by more than the 4 standard "
         "errors allowed for d = 60", "most in the training error at alpha = 1, lam = 1",
         "they differ by 50.0%, and by 10.0 standard errors"]),
        ([8.0, -8.0], None, 0.02, CLOSE, [WITHIN, "the test error at alpha = 1, lam = 0.1"]),
        # scores above 3 that lie together: of both errors, of one of them, or of each to its side
        ([3.3, 3.5], [3.2, 3.4], 0.08, CLOSE, [WITHIN]),
        ([3.3, 3.5], [3.2, 3.4], 0.18, APART, ["differences of all errors lie to one side"]),
        ([-3.4, -3.4], [0.1, -0.1], 0.18, APART, ["differences of the test error lie to one side"]),
        ([3.4, 3.2], [-3.4, -3.3], 0.18, APART, ["and of the training error lie to one side each"]),
        ([-3.4, -3.4], [0.1, 4.1], 0.18, APART, ["seldom makes 1 of their 4 differences so large"]),
    ],
)  # fmt: skip
def test_verdict(z, train, off, kind, parts):
    """Which error is off, where, and by how much; agreement only where chance makes no more."""
    found = judged(z, off=off, train=train, allowance=0.05 * (off > 0))
    assert found.agrees == (kind != "disagree")
    assert f"Theory and simulation {kind}" in found.verdict
    assert all(part in found.verdict for part in parts), found.verdict


def test_verdict_on_a_grid():
    """The differences that may not show are those of the settings that agree."""
    settings = [judged([1.0, -1.5]), judged([8.0, -8.0], off=0.02, allowance=0.05)]
    found = replace(base(), axes={"eta": np.array([1.0, 2.0])} | base().axes, parts=settings)
    first, second = found.verdict.splitlines()
    below = "of 25% or more (test error), of 25% or more (training error) may not show, which tells"
    assert first.startswith(f"Theory and simulation agree at 1 of 2 settings; differences {below}")
    assert second.startswith("At eta = 2: Theory and simulation are close but not equal")


TOO_SMALL = "a verdict takes more draws or a larger size: take --seeds {}."


@pytest.mark.parametrize(
    ("theory", "simulated", "stderr", "seeds", "allowance", "equal", "part"),
    [
        # differences are relative to the simulated error
        (1.0, 0.8, 0.01, 8, 0.0, False, "they differ by 25.0%, and by 20.0"),
        (1.0, 0.0943, 0.01, 8, 0.0, False, "they differ by 960.4%, and by 90.6"),
        (0.0943, 1.0, 0.01, 8, 0.0, False, "they differ by 90.6%, and by 90.6"),
        (7e-5, 1e-13, 1e-14, 8, 0.0, False, "by a factor of 7e+08, and by 7e+09 standard errors"),
        (1.0, 0.0, 0.01, 8, 0.0, False, "they differ by 100.0%, and by 100.0"),
        (0.0, 0.0, 0.01, 8, 0.0, True, "they differ by 0.0%, and by 0.0"),
        # of wide standard errors or a wide allowance, errors far apart; half as far they agree
        (0.467, 0.371, 0.1, 8, 0.0, False, TOO_SMALL.format(32)),
        (0.467, 0.371, 0.01, 50, 0.4, False, TOO_SMALL.format(200)),
        (0.419, 0.371, 0.1, 8, 0.0, True, "of 25% or more (test error) may not show, which t"),
        (0.419, 0.371, 0.01, 8, 0.15, False, "are not equal: "),
        (0.375, 0.371, 0.01, 8, 0.0, True, "; differences up to 9.4% (test error) may not show."),
        (0.419, 0.371, 0.01, 50, 0.4, False, "are not equal: "),
        # 28 standard errors of two draws, which Student's law would allow
        (0.1529, 0.142, 0.00039, 2, 0.0, False, "Too few draws for a verdict: take --seeds 32."),
        (1.0, np.nan, np.nan, 3, 0.1, False, "The readout of a draw has no best bias"),
        (np.nan, 1.0, 0.1, 8, 0.1, False, "The theory did not converge everywhere"),
    ],
)  # fmt: skip
def test_verdict_on_one_error(theory, simulated, stderr, seeds, allowance, equal, part):
    check = Check(*np.reshape([theory, simulated, stderr, 0.0], (4, 1, 1)))
    at = {"samples": np.array([50.0]), "lam": np.array([0.1])}
    told = {"allowance": allowance, "size": "n = 50", "seeds": seeds}
    found, sentence = verdict({"test_error": check}, at, **told)
    assert found == equal
    assert part in sentence
    assert check.agrees(allowance, seeds).all() == (equal or theory == 0.419)  # by this check alone


def test_a_mean_that_is_too_small_has_its_standard_error_twice_at_most():
    """Means of .5 and of 1/7, 6.5 standard errors below 1: bad luck in the first, no luck in the
    second, whose relative error would have let it pass."""
    simulated = np.array([[0.5, 1 / 7]])
    stderr = np.array([[0.5, 6 / 7]]) / np.array([[6.5, 17.0]])
    check = Check(np.ones((1, 2)), simulated, stderr, np.zeros((1, 2)))
    assert check.within(0.0, 24).tolist() == [[True, False]]


def test_what_chance_makes_of_so_many_differences():
    """Student's t with seeds - 1 degrees of freedom, the largest of N in 99 of 100 cases: 2.94 of
    2 and 4 at most of many with 50 seeds; of fewer than eight what is as rare."""
    for z, seeds, known in (
        ([2.9, -0.1], 50, False),
        ([3.0, -0.1], 50, True),
        ([3.0, *[0.1] * 9], 50, False),
        ([3.9, -0.1], 3, False),
        ([4.1, *[-0.1] * 99], 50, True),
        ([4.1, *[-0.1] * 99], 3, False),
        ([15.0, *[-0.1] * 99], 3, True),
        ([np.nan, np.inf], 3, False),
    ):
        scores = np.array(z)[:, None, None]
        assert bool(leaning(scores, seeds) or too_large(scores, seeds)) is known


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
        assert not found.checks["test_error"]._replace(theory=errors).agrees(0.0, 8).any()


def test_results_show_themselves():
    """A data frame with a row for each point, a data set, axes given."""
    found = compare(MODEL, alpha=[0.5, 1], lam=[0.1, 1], dimension=60, seeds=3, rng=0)
    for result in (found, found.simulation):
        rows = result.to_dataframe()
        assert list(rows.lam[:: len(rows) // 4]) == [0.1, 1, 0.1, 1]
        ax = Figure().subplots()
        assert result.plot(ax) is ax
    assert found.verdict.split(":")[0] in " ".join(repr(found).split())
    rows = found.to_dataframe().set_index("source").loc["simulation"]
    np.testing.assert_array_equal(rows.test_error_z, found.checks["test_error"].z.ravel())


def test_what_its_theory_refuses_is_compared_with_another(monkeypatch):
    """The sRF where a batch's averages take too long, also over a grid and in a figure."""
    monkeypatch.setattr("replica.steps.row_steps.BATCH_TIME", 0.00005)
    of = GradientStep(student="erf", target="z1 + z1*z2", alpha0=1.3, eta=0.7)
    at = dict(alpha=[0.5, 1.0], lam=0.1, beta=1.0, dimension=40, seeds=3, rng=0)
    found = compare(of, **at)
    assert found.note.startswith("theory of the sRF, the published equivalent")
    assert "do not settle within 0.001 s, a part of time_limit" in found.note
    srf = replace(of.srf(beta=1.0), dimension=40)
    expected = learning_curve(srf, alpha=[0.5, 1.0], lam=0.1).test_error
    np.testing.assert_allclose(found.checks["test_error"].theory.ravel(), expected, rtol=1e-9)
    grid = compare_grid(of, grids={"eta": [0.7, 0.8]}, **at)
    assert grid.plot(Figure().subplots()).get_lines()
    with pytest.raises(QuadratureError, match="do not settle"):
        compare(of, **at, theory="network")


@pytest.mark.slow
def test_what_no_limit_answers_is_compared_with_the_layers_drawn():
    """Theories that are NaN or refuse are passed over, and the reason is told."""
    of = GradientStep(student="erf", target="sin", alpha0=2, eta=1.0)
    drawn = simulate(of, alpha=1.0, lam=0.1, beta=1.0, dimension=40, seeds=3, rng=0)

    def checks_of(theory):
        if theory.of_draws:
            return checks_at(theory, drawn)
        if theory.published is not None:
            raise QuadratureError("no average")
        nothing = np.full((1, 1), np.nan)
        return {"test_error": Check(nothing, nothing, nothing, nothing)}, []

    theories = with_others(theory_of(of, 1.0), drawn)
    taken, checks, _ = first_answer(theories, 40, checks_of)
    given = compare(of, alpha=1.0, lam=0.1, beta=1.0, dimension=40, seeds=3, rng=0, theory="given")
    assert checks["test_error"].theory == given.checks["test_error"].theory
    assert "no answer (no average)" in taken.reason
    assert "has no answer at any point" in taken.reason
    (line,) = taken.lines.values()  # of the first layer
    assert solve(line, alpha=1.0, lam=0.1).converged
    curve = curves([taken], {}, {"alpha": np.array([1.0]), "lam": np.array([0.1])}, drawn.loss)
    assert np.isfinite(next(iter(curve.values())).test_error.values).all()


@pytest.mark.slow
def test_a_tolerance_is_that_of_the_theory():
    """Averages over two directions of the target are known to 1e-5, not to 1e-6."""
    step = GradientStep(student="tanh", target="sin(z1)+z2/2", alpha0=1.2, eta=1.5)
    at = dict(beta=1, alpha=2, lam=1, loss="huber:0.5", dimension=60, seeds=2, rng=0)
    strict, rough = (compare(step, **at, quadrature_tol=tol) for tol in (None, 1e-3))
    assert strict.note.startswith("theory given the first layer of every draw")
    assert rough.note.startswith("theory of the network itself; taken at d = 60")
    assert np.isfinite(rough.checks["test_error"].theory).all()
