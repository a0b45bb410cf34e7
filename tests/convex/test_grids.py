"""Points of a grid: each as it is alone, in time, and on half of kappa where the problem is odd."""

from dataclasses import replace

import numpy as np
import pytest

from replica import Loss, learning_curve, loss, solve
from replica.convex import LOSSES
from replica.convex.label_tables import is_odd, shared_table, shared_tables
from replica.equivalence import target_jumps
from replica.problem import activation
from solvers.results import ConvergenceError, Status
from tests.convex.problems import LOG_COSH, MODELS, SIGN, WAVE

SLOW = pytest.mark.slow
ERRORS = ("test_error", "train_error", "loss_error", "train_loss")


@pytest.mark.parametrize(
    ("model", "loss", "alpha", "lam"),
    [
        # the thinnest layers that shared nodes serve, and others
        pytest.param(SIGN, "logistic", [0.5, 2.0, 10.0], np.geomspace(1e-4, 1e3, 5), marks=SLOW),
        (MODELS["flipped"], "logistic", [0.5, 2.0, 10.0], [1.0, 10.0, 1e3]),
        pytest.param(MODELS["logistic teacher"], "logistic", [0.5, 2.0, 10.0], [1.0, 10.0, 1e3],
                     marks=SLOW),
        pytest.param(MODELS["outliers"], LOG_COSH, [0.5, 2.0], [1e-3, 0.1, 10.0], marks=SLOW),
        # on panels of their own
        pytest.param(SIGN, "hinge", [0.5, 2.0], [0.01, 10.0], marks=SLOW),
        pytest.param(WAVE, "absolute", [0.5, 2.0], [0.1, 10.0], marks=SLOW),
        pytest.param(WAVE, LOG_COSH, [0.5, 2.0], [1e-3, 10.0], marks=SLOW),
    ],
)  # fmt: skip
def test_a_point_depends_neither_on_its_grid_nor_on_its_direction(model, loss, alpha, lam):
    """Starting from what others found: 1e-6, the tolerance of each, of the errors, of which the
    training loss is known relative to .01 of that of new samples."""
    up = learning_curve(model, alpha=alpha, lam=lam, loss=loss)
    down = learning_curve(model, alpha=alpha[::-1], lam=lam[::-1], loss=loss)
    assert up.converged.all()
    assert down.converged.all()
    corner = dict(alpha=alpha[0], lam=lam[-1])
    alone = solve(model, **corner, loss=loss, raise_on_failure=True)
    for name in ERRORS:
        least = 1e-8 * up["loss_error" if "loss" in name else "test_error"].values.max()
        one, other = (curve[name].sel(alpha=alpha, lam=lam).values for curve in (up, down))
        assert one == pytest.approx(other, rel=1e-6, abs=least)
        assert getattr(alone, name) == pytest.approx(up[name].sel(corner).item(), rel=1e-6,
                                                     abs=least)  # fmt: skip


def test_too_long_a_point_is_flagged():
    """A sentence says so, and errors are NaN; others of the grid that need no time keep theirs."""
    point = solve(SIGN, alpha=2.0, lam=10.0, loss="hinge", time_limit=1e-9)
    assert point.status is Status.TIME
    assert "time_limit" in point.status.value
    assert np.isnan([getattr(point, name) for name in (*ERRORS, "classification_error")]).all()
    curve = learning_curve(SIGN, alpha=2.0, lam=[10.0, 20.0], loss="hinge", time_limit=1e-9)
    assert not curve.converged.any()
    with pytest.raises(ConvergenceError, match="longer than it may"):
        solve(SIGN, alpha=2.0, lam=10.0, loss="hinge", time_limit=1e-9, raise_on_failure=True)


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(MODELS))
def test_weights_of_every_shared_table_sum_to_1(name):
    """Of kappa alone, to rounding; of kappa and tau together, whose nodes beyond a radius of 8 are
    left out, up to the 4.2e-13 of four Gaussians that are there."""
    found = 0
    for folded in {False, is_odd(MODELS[name])}:
        for table, labels in shared_tables(MODELS[name], folded):
            assert table.weights.sum() == pytest.approx(1, abs=1e-13)
            both = table.weights * labels.weights.sum(axis=1)
            assert both.sum() == pytest.approx(1, abs=1e-12)
            found += 1
    assert found or target_jumps(MODELS[name])


@pytest.mark.parametrize("level", [1, 2, 3])
def test_weights_of_half_a_table_of_two_spikes_sum_to_1(level):
    """Tables of an odd number of nodes along a spike, 27, have nodes at kappa_1 = 0."""
    model = replace(MODELS["two spikes"], target="z1 + sin(z2)")
    assert is_odd(model)
    half, whole = (shared_table(model, level, folded).table for folded in (True, False))
    assert half.weights.sum() == pytest.approx(1, abs=1e-13)
    assert half.weights @ half.mu1[0] ** 2 == pytest.approx(whole.weights @ whole.mu1[0] ** 2)
    assert half.weights.size < 0.6 * whole.weights.size


@pytest.mark.slow
@pytest.mark.parametrize(
    ("model", "loss", "lam"),
    [
        (SIGN, "logistic", 0.05),
        (SIGN, "hinge", 10.0),
        (MODELS["flipped"], "absolute", 1.0),
        (MODELS["outliers"], "huber:0.5", 0.05),
        (MODELS["outliers"], "quantile:0.3", 0.05),
        (MODELS["student"], LOG_COSH, 0.1),
    ],
)
def test_odd_problems_on_half_of_kappa(model, loss, lam):
    """Beside all of kappa, which a bias of 1e-10 takes, and which moves errors by as much; the loss
    of quantiles is not symmetric, and takes all of kappa anyway."""
    tilted = replace(model, bias=1e-10)
    assert is_odd(model)
    assert not is_odd(tilted)
    half, whole = (
        solve(each, alpha=2.0, lam=lam, loss=loss, raise_on_failure=True)
        for each in (model, tilted)
    )
    for name in ERRORS:
        assert getattr(half, name) == pytest.approx(getattr(whole, name), rel=1e-6)
    if model.labels.binary:
        assert half.classification_error == pytest.approx(whole.classification_error, rel=1e-6)


def test_which_losses_are_symmetric():
    """Of residuals; those of the margin are, as labels and predictions change sign together."""
    far = Loss(
        lambda t: t**2 / 2 + np.where(t > 8, 3 * (t - 8) ** 2, 0),
        lambda t: t + np.where(t > 8, 6 * (t - 8), 0),
        kinks=[8.0],
    )
    assert not far.is_symmetric
    symmetric = [name for name in (*LOSSES, "quantile:0.3", "huber:2") if loss(name).is_symmetric]
    assert symmetric == [*LOSSES, "huber:2"]


def test_which_problems_are_odd():
    """Both activations, without a bias or a step that shifts them."""
    assert is_odd(MODELS["two spikes"]) is False  # z1 + sin(z1 z2) is not
    assert is_odd(replace(WAVE, gamma=1.0))
    for target in ("z1 + relu(z1-2)", "z1 + relu(z1-2.8)", "z1 + 1e-3*relu(z1-3.5)"):  # odd near 0
        assert not is_odd(replace(WAVE, target=target))
    tent = "relu({0} - 2) - 2*relu({0} - 2.002) + relu({0} - 2.004)"  # seen at its kinks alone
    assert not is_odd(replace(WAVE, target=f"z1 + {tent.format('z1')}"))
    assert not is_odd(replace(MODELS["two spikes"], target=f"z1 + z2 + {tent.format('(z1 - z2)')}"))
    assert not activation(f"x + {tent.format('(x - 0.01)')}").odd
    assert not is_odd(replace(WAVE, target="relu"))
    assert not is_odd(replace(WAVE, student="relu"))
    assert not is_odd(replace(WAVE, train_bias=True))
