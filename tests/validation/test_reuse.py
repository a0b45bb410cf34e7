"""Simulations whose readout is trained on samples of the step."""

from dataclasses import replace

import numpy as np
import pytest

from replica import GradientStep, solve
from validation import compare, simulate
from validation.draws import gradient_step, spread, streams
from validation.draws.first_layers import sphere_rows
from validation.run.cells import DrawnSamples, draw_layer, draw_samples, layer_seed, reused_of

STEP = GradientStep(student="tanh", target="sin", alpha0=2, eta=1, noise=0.3)
FLIPPED = GradientStep(
    student="relu", target="sign", alpha0=1.5, eta=2, label_noise="flip:0.1", readout=[0.5, 1.5]
)
AT = dict(lam=0.05, dimension=60, seeds=2, rng=3)


def experiment(step, alpha=1.5, **reuse):
    return simulate(step.network(beta=1.0, **reuse), alpha=alpha, **AT).experiment


def drawn(samples: DrawnSamples):
    return tuple(np.concatenate(part) for part in zip(*samples.drawn(), strict=True))


@pytest.mark.parametrize("step", [STEP, FLIPPED], ids=["noise", "flips"])
def test_the_step_on_the_samples_of_the_readout_gives_its_layer(step):
    """To the last bit; on fresh samples it gives another one."""
    for reuse, same in ((1.0, True), (0.0, False)):
        of = experiment(step, step.alpha0, reuse=reuse)
        rows = np.random.default_rng(streams(layer_seed(of, 0))[0])
        W = sphere_rows(of.width, of.dimension, rows)
        readout = spread(step.readout, of.width)
        batch = draw_samples(of, 0)[0].drawn()
        after = gradient_step(W, batch, student=step.student, eta=step.eta, readout=readout)
        assert np.array_equal(after, draw_layer(of, 0).W) == same


@pytest.mark.parametrize("reuse", [0.3, 1 / 3, 0.5, 0.75])
def test_any_number_of_first_samples_has_its_share_of_the_step_s(reuse):
    part, every = (draw_samples(experiment(STEP, reuse=r), 0)[0] for r in (reuse, 1.0))
    fresh = draw_samples(experiment(STEP), 0)[0]
    (X, y), (X1, y1), (X0, y0) = map(drawn, (part, every, fresh))
    n = np.arange(len(X) + 1)
    before = reused_of(n, reuse)
    # a sample less than its share at most, and none of what it cannot have: rounding apart
    assert (before <= reuse * n + 1e-9).all()
    assert (before > reuse * n - 1).all()
    old = np.diff(before) == 1
    np.testing.assert_array_equal(X[old], X1[: old.sum()])
    np.testing.assert_array_equal(y[old], y1[: old.sum()])
    np.testing.assert_array_equal(X[~old], X0[~old])
    np.testing.assert_array_equal(y[~old], y0[~old])


def test_a_step_on_as_many_samples_at_every_alpha():
    """Each alpha is drawn as alone, with a step of its own, of the network and of its sRF."""
    following = replace(STEP, alpha0="alpha")
    for model, alone in (
        (following.network(beta=1.0, reuse=1.0), STEP.network(beta=1.0, reuse=1.0)),
        (following.srf(beta=1.0), STEP.srf(beta=1.0)),
    ):
        both = compare(model, alpha=[1.5, 2], **AT)
        one = compare(alone, alpha=2, test_samples=both.simulation.experiment.test_samples, **AT)
        for name in ("test_error", "train_error"):
            assert both.columns[name][1].tolist() == one.columns[name][0].tolist()
    assert compare(following.srf(beta=1.0), alpha=2, **AT).columns["test_error"][0].tolist() == (
        compare(STEP.srf(beta=1.0), alpha=2, **AT).columns["test_error"][0].tolist()
    )


def test_samples_are_the_same_in_blocks_of_any_size(monkeypatch):
    samples = draw_samples(experiment(STEP, reuse=0.5), 0)[0]
    whole = drawn(samples)
    monkeypatch.setattr("validation.draws.features.INPUT_BLOCK", 7 * 60)
    for one, other in zip(
        whole, drawn(draw_samples(experiment(STEP, reuse=0.5), 0)[0]), strict=True
    ):
        np.testing.assert_array_equal(one, other)


def test_a_network_without_reuse_is_its_step(tmp_path):
    """Draws and stored cells are those of the step."""
    options = dict(alpha=[0.5, 1.5], store=tmp_path, **AT)
    first = simulate(STEP, beta=0.5, **options)
    kept = set(tmp_path.iterdir())
    again = simulate(STEP.network(beta=0.5), **options)
    assert set(tmp_path.iterdir()) == kept
    np.testing.assert_array_equal(first.test_error, again.test_error)
    reused = [simulate(STEP.network(beta=0.5, reuse=1.0), **options) for _ in range(2)]
    assert len(set(tmp_path.iterdir())) == 2 * len(kept)
    assert (reused[0].test_error != first.test_error).all()
    np.testing.assert_array_equal(reused[0].test_error, reused[1].test_error)
    assert reused[0].settings["reuse"] == 1.0


@pytest.mark.slow
@pytest.mark.parametrize("reuse", [1.0, 0.5])
def test_agrees_with_theory(reuse):
    step = GradientStep(student="tanh", target="sin", alpha0=2, eta=1)
    at = dict(alpha=2.0, lam=0.05)
    size = dict(dimension=200, seeds=40, rng=0)
    found = compare(step.network(beta=1.0, reuse=reuse), **at, **size)
    assert found.agrees, found.verdict
    assert f"a share {reuse:g} of samples reused" in found.note
    fresh = compare(step.network(beta=1.0), **at, **size)
    # of the same layers: what fresh samples change has no noise of the layers
    for name in ("test_error", "train_error"):
        parts = [one.simulation.errors[name].ravel() for one in (found, fresh)]
        change = parts[0] - parts[1]
        expected = found.checks[name].theory.item() - fresh.checks[name].theory.item()
        stderr = change.std(ddof=1) / np.sqrt(len(change))
        assert abs(change.mean() - expected) < 4 * stderr
        if reuse == 1.0 and name == "train_error":
            assert change.mean() < -10 * stderr  # the layers' noise would hide it


@pytest.mark.slow
@pytest.mark.parametrize(
    ("reuse", "of"),
    [
        (1.0, dict(student="tanh", target="sign", eta=2)),
        (0.5, dict(student="relu", target="sign", eta=1, label_noise="flip:0.1")),
        (1.0, dict(student="relu", target="sin", eta=2, label_noise="flip:0.1", readout=[1.5, 1])),
        (1.0, dict(student="tanh", target="sign", eta=1, label_noise="logistic",
                   initialisation="gaussian")),
    ],
)  # fmt: skip
def test_classification_errors_agree_with_theory(reuse, of):
    """Their theory on fresh samples would be off by more than two standard errors."""
    d = 300
    step = GradientStep(alpha0=2, **of)
    models = [step.network(beta=1.0, reuse=share, dimension=d) for share in (reuse, 0.0)]
    theory, fresh = (solve(one, alpha=2.0, lam=0.1).classification_error for one in models)
    found = simulate(models[0], alpha=2.0, lam=0.1, dimension=d, seeds=32, rng=0)
    stderr = found.classification_error_stderr.item()
    assert abs(found.classification_error.item() - theory) < 3 * stderr
    assert abs(theory - fresh) > 2 * stderr
