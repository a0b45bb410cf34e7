"""No false alarm: a theory that is exact is called so, of few draws and of outputs that are 0."""

from collections import Counter

import numpy as np
import pytest

from replica import GaussianMixture, GradientStep
from tests.problems import PUBLISHED
from validation import compare
from validation.comparisons.agreement_checks import Check, verdict

SHOWN = "disagree", "Too few draws for a verdict: take --seeds", ""  # "": close, or they agree


@pytest.mark.slow
def test_silent_networks_guess():
    """All relus are off for a third of these inputs, whose output is 0: half of them are wrong."""
    law = GaussianMixture(means=[[2.0], [-2.0]])
    classes = dict(student="relu", target="classes:1,-1", inputs=law)
    step = GradientStep(**classes, alpha0=2, eta=2.0)
    found = compare(step, alpha=2.0, lam=0.1, beta=1.0, dimension=200, seeds=8, rng=3)
    assert not found.disagrees, found.verdict
    assert found.checks["classification_error"].simulated.item() == pytest.approx(0.28, abs=0.03)


@pytest.mark.slow
@pytest.mark.parametrize("seeds", [2, 3, 4, 6])
def test_chance_is_seldom_called_disagreement(seeds):
    """The sRF is exact but for 1/d: of 20 comparisons at d = 200 none disagrees.  Three at most are
    called not equal: one in a hundred is, for each of three means that are judged."""
    found = [
        compare(PUBLISHED, alpha=[0.5, 1, 2, 3], lam=0.1, beta=1.0, dimension=200, seeds=seeds,
                simulated="srf", rng=k)
        for k in range(20)
    ]  # fmt: skip
    assert not any(one.disagrees for one in found)
    assert np.sum(["not equal" in one.verdict for one in found]) <= 3


def shares(errors, theory):
    """Share of each of SHOWN among verdicts on many means of ``errors`` (verdicts, draws)."""
    at = {"alpha": np.ones(1), "lam": np.ones(1)}
    found = Counter()
    for draws in errors[..., None, None]:
        check = {"test_error": Check.of_draws(np.full((1, 1), theory), draws)}
        _, said = verdict(check, at, allowance=0.0, size="d = 500", seeds=len(draws))
        found[next(one for one in SHOWN if one in said)] += 1
    return [found[one] / len(errors) for one in SHOWN]


@pytest.mark.parametrize("spread", [1.8, pytest.param(1.0, marks=pytest.mark.slow)])
@pytest.mark.parametrize("seeds", [4, 8, 32])
def test_rare_large_errors_are_no_disagreement(seeds, spread):
    """Log-normal errors of a known mean, as training errors are at small penalties (their logarithm
    spreads by up to 1.8 at lam = .001, n < p)."""
    errors = np.exp(spread * np.random.default_rng(0).standard_normal((1000, seeds)))
    disagree, too_few, _ = shares(errors, np.exp(spread**2 / 2))
    assert disagree <= (0.0 if seeds < 8 else 0.02)
    assert too_few <= 0.1


@pytest.mark.parametrize("side", [-1, pytest.param(1, marks=pytest.mark.slow)])
def test_true_differences_are_called_so(side):
    """Of 20 standard errors and 32 draws: Gaussian ones, and log-normal ones below which the
    theory lies.  Above it lies the tail, and mostly more draws are asked for."""
    normal = np.random.default_rng(1).standard_normal((500, 32))
    away = side * 20 / np.sqrt(32)
    assert shares(10 + normal, 10 + away)[0] == 1.0
    heavy, deviation = np.exp(normal), np.sqrt((np.e - 1) * np.e)
    disagree, too_few, _ = shares(10 + heavy, 10 + np.sqrt(np.e) + away * deviation)
    assert disagree + too_few >= 0.98
    assert disagree >= (0.99 if side < 0 else 0.3)
    assert shares(10 + normal[:, :4], 10 + 2 * away)[0] == 0.0  # of four draws nothing is
