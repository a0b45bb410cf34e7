"""Extrapolation in 1/d: exact on lines, honest error bars, and the theory as its limit."""

from dataclasses import replace

import numpy as np
import pytest
from matplotlib.figure import Figure

from replica import GradientStep, SpikedRandomFeatures
from tests.cli.commands import document, validate
from validation import ladder
from validation.comparisons import extrapolate
from validation.comparisons.theory import theory_at

MODEL = SpikedRandomFeatures(student="tanh", target="sin", r=1.0, c=1.2, gamma=0.8, noise=0.1)
SIZES = np.array([50, 100, 200, 400])
SEEDS = np.array([40, 20, 10, 5])


def test_a_line_is_found_exactly():
    limits, slopes = np.array([[1.0, -2.0]]), np.array([[30.0, 0.0]])
    means = limits + slopes / SIZES[:, None, None]
    line = extrapolate(SIZES, means, np.full(means.shape, 0.1), SEEDS)
    np.testing.assert_allclose(line.limit, limits, rtol=1e-12)
    np.testing.assert_allclose(line.slope, slopes, rtol=1e-12, atol=1e-10)
    np.testing.assert_allclose(line.p_value, 1.0)


def test_error_bars_of_the_limit():
    """10 000 repeated experiments: the limit scatters by its standard error around the truth."""
    rng = np.random.default_rng(0)
    spread = 0.3 / np.sqrt(SIZES * SEEDS)
    means = 1 + 20 / SIZES[:, None] + spread[:, None] * rng.standard_normal((4, 10_000))
    line = extrapolate(SIZES, means, np.broadcast_to(spread[:, None], means.shape), SEEDS)
    # Standard deviations of 10 000 values are known to 0.7 %; five of these.
    assert line.limit.std() == pytest.approx(line.stderr[0], rel=0.035)
    assert line.limit.mean() == pytest.approx(1, abs=5 * line.stderr[0] / 100)
    # p values are uniform: their mean is 1/2 with a standard error of 0.003; five of these.
    assert line.p_value.mean() == pytest.approx(0.5, abs=0.015)


def test_curvature_shows_in_the_p_value():
    means = 1 + 20 / SIZES + 5e4 / SIZES**2
    line = extrapolate(SIZES, means, np.full(4, 0.1), SEEDS)
    assert line.p_value < 1e-3
    two = extrapolate(SIZES[:2], means[:2], np.full(2, 0.1), SEEDS[:2])
    assert np.isnan(two.p_value)


@pytest.mark.slow
def test_the_limit_is_the_theory():
    """Within 4 standard errors and (20/80)^2 = 6 %: at d = 80 the bias itself is up to 12 %."""
    found = ladder(
        MODEL, alpha=[0.5, 2], lam=[0.05, 0.5], dimensions=[320, 80, 160], seeds=12, rng=0,
    )  # fmt: skip
    assert [one.dimension for one in found.simulations] == [80, 160, 320]
    assert [one.seeds for one in found.simulations] == [48, 24, 12]
    assert found.agrees, found.document()
    # A wrong theory is found out.
    wrong = SpikedRandomFeatures(student="tanh", target="sin", r=1.0, c=1.2, gamma=0.5, noise=0.1)
    theory, _ = theory_at(wrong, found.simulations[-1])
    checks = {name: of._replace(theory=theory[name]) for name, of in found.checks.items()}
    other = replace(found, checks=checks)
    assert not other.agrees
    assert "disagree" in other.verdict
    assert "48/24/12 seeds" in found.plot(Figure().subplots()).get_title()
    # So are means that no line in 1/d fits.
    assert "line in 1/d" not in found.verdict
    bent = found.lines["test_error"]._replace(p_value=np.array([[0.5, 0.5], [0.5, 1e-4]]))
    verdict = replace(found, lines=found.lines | {"test_error": bent}).verdict
    assert (
        "The means of 1 of 8 errors do not lie on a line in 1/d (p_value down to 0.0001)" in verdict
    )


def test_progress_counts_the_draws_of_all_sizes():
    calls = []
    ladder(
        MODEL, alpha=1, lam=0.1, dimensions=[30, 60], seeds=2, rng=0,
        progress=lambda done, total: calls.append((done, total)),
    )  # fmt: skip
    # four at d = 30, two at d = 60, each from none on
    assert calls == [(done, 6) for done in (0, 1, 2, 3, 4, 4, 5, 6)]


LINE = (
    "compare --student tanh --target sin --r 1 --c 1.2 --gamma .8 --alpha .5,2 --lam .1 --rng 0 "
    "--ladder 40,80,160 --seeds 4"
)


@pytest.mark.slow
def test_command(tmp_path, capsys):
    line = f"{LINE} --plot {tmp_path / 'a.png'} --out {tmp_path / 'a.csv'} --store {tmp_path / 's'}"
    assert validate(line) == 0
    out, err = capsys.readouterr()
    assert "Theory and simulation agree" in out
    assert "p_value is the chance of means as far off their line" in err
    assert (tmp_path / "a.png").stat().st_size > 5000
    assert len(list((tmp_path / "s").glob("*.json"))) == 16 + 8 + 4
    found = document(capsys, line, validate)
    assert found["dimension"] == "inf"
    assert found["seeds"] == [16, 8, 4]
    assert [one["dimension"] for one in found["ladder"]] == [40, 80, 160]
    theory, point = found["points"][2:4]
    assert (theory["source"], point["source"]) == ("theory", "simulation")
    expected = (point["test_error"] - theory["test_error"]) / point["test_error_stderr"]
    assert point["test_error_z"] == pytest.approx(expected, rel=1e-12)
    lines = {f"{name}_error_{of}" for name in ("test", "train") for of in ("slope", "p_value")}
    assert lines <= set(point)


@pytest.mark.slow
@pytest.mark.parametrize("simulated", ["srf", "gaussian"])
def test_published_setting(simulated):
    """tanh/sin, alpha0 = 20, eta = 3, lam = .1: the limit of four sizes up to d = 600."""
    step = GradientStep(student="tanh", target="sin", alpha0=20, eta=3.0)
    found = ladder(
        step, alpha=[0.2, 0.9, 1.6, 2.3, 3.0], lam=0.1, dimensions=[75, 150, 300, 600], seeds=12,
        rng=0, beta=1.0, simulated=simulated,
    )  # fmt: skip
    assert found.agrees, found.document()
