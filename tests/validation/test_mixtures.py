"""Mixtures and their alignment; the network and its Hermite models."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.marks import slow
from validation.mixtures import (
    classification,
    expand,
    in_theory,
    mixture,
    regression,
    scaling,
    side_by_side,
)
from validation.mixtures.hermite_model import fit_readout

# Mixtures


@settings(deadline=None, max_examples=40)
@given(st.integers(1, 5), st.integers(1, 4), st.floats(-1, 1) | st.sampled_from([-1.0, 0.0, 1.0]))
def test_alignment_is_met_exactly(components, spikes, alignment):
    if components > 2:  # possible between that many unit vectors
        alignment = max(alignment, -1 / (components - 1))
    found = mixture(40, eigenvalues=3.0, components=components, spikes=spikes, alignment=alignment)
    grams = np.einsum("jin,kmn->jkim", found.directions, found.directions)
    for j, k in np.ndindex(components, components):
        expected = np.eye(spikes) * (1.0 if j == k else alignment)
        # Rounding of sums of 20 products, and of roots of the alignment matrix near its edge.
        np.testing.assert_allclose(grams[j, k], expected, atol=1e-12)


def test_an_alignment_of_each_pair():
    own = np.array([[1, 0.5, 0], [0.5, 1, -0.5], [0, -0.5, 1]])
    found = mixture(20, eigenvalues=1.0, components=3, alignment=own).directions[:, 0]
    np.testing.assert_allclose(found @ found.T, own, atol=1e-13)


def test_covariance_and_shares_of_a_draw():
    found = mixture(6, eigenvalues=[[4.0, 1.0]], spikes=2, alignment=0.3, proportions=[3, 1])
    X, y = classification(found).draw(200_000, np.random.default_rng(1))
    assert (y == 1).mean() == pytest.approx(0.75, abs=0.004)  # standard error 0.001
    whole = np.zeros((6, 6))
    rows = zip((1, -1), found.directions, found.eigenvalues, found.proportions, strict=True)
    for label, directions, theta, share in rows:
        own, spikes = X[y == label], np.pad(directions, ((0, 0), (0, 2)))
        expected = np.eye(6) + (spikes.T * theta) @ spikes
        # Standard errors of a covariance of 5e4 samples: 5 sqrt(2 / 5e4) = 0.03 at most.
        np.testing.assert_allclose(own.T @ own / len(own), expected, atol=0.12)
        whole += share * expected
    assert found.norm == pytest.approx(np.linalg.eigvalsh(whole)[-1], rel=1e-12)
    assert found.trace == pytest.approx(np.trace(whole), rel=1e-12)


def test_equal_traces_with_drawn_eigenvalues_and_different_ranks():
    found = mixture(
        50, eigenvalues=8.0, components=3, spikes=[3, 1, 2], alignment=0.2, drawn=True, rng=3
    )
    sums = found.eigenvalues.sum(axis=1)
    np.testing.assert_allclose(sums, sums[0], rtol=1e-14)
    assert (found.eigenvalues > 0).sum(axis=1).tolist() == [3, 1, 2]
    assert found.eigenvalues[0].max() < 8
    assert not mixture(50, eigenvalues=0.0, drawn=True, rng=3).eigenvalues.any()


def test_scalings_multiply_to_the_data_spread():
    for split in (0.0, 0.3, 1.0):
        theta, eta = scaling(1000, data_spread=0.74, split=split)
        assert theta * eta == pytest.approx(1000**0.74, rel=1e-13)
    assert scaling(1000, data_spread=0.74, split=1.0).theta == 1.0


def test_labels():
    mixed = mixture(400, eigenvalues=20.0)
    task = regression(mixed, target="tanh", aligned=True, noise=0.5, rng=1)
    X, y = task.draw(20_000, np.random.default_rng(2))
    rest = y - np.tanh(X @ task.directions[:, 0] / np.sqrt(mixed.norm))
    assert rest.var() == pytest.approx(0.5, abs=0.02)  # standard error 0.005
    assert task.directions[:, 0].nonzero()[0].tolist() == [0, 1]  # where both spikes are
    assert set(classification(mixed).draw(10, np.random.default_rng(0))[1]) == {1.0, -1.0}


# The network and its Hermite models


def test_errors_are_the_papers():
    """Every formula typed once, from the documented streams."""
    task = regression(mixture(20, eigenvalues=4.0), rng=1)
    k, m, lam, rate = 15, 25, 1e-2, 3.0
    found = side_by_side(
        task, students=["tanh"], orders=[3], width=k, samples=m, lam=lam, rate=rate, rng=7
    )
    root, *streams = np.random.SeedSequence(7).spawn(4)
    streams = [*root.spawn(2), *streams]
    layer, first, second, test, fresh = map(np.random.default_rng, streams)
    F = layer.standard_normal((k, 20)) / np.sqrt(24)
    w = layer.standard_normal(k) / np.sqrt(k)
    X0, y0 = task.draw(m, first)
    X, y = task.draw(m, second)
    Xt, yt = task.draw(5 * m, test)
    slope = 1 - np.tanh(F @ X0.T) ** 2
    G = (np.outer(w, y0 - w @ np.tanh(F @ X0.T) / np.sqrt(k)) * slope) @ X0 / m / np.sqrt(k)
    after = F + rate * G
    model = expand("tanh", order=3, b=np.sqrt(20 / 24))

    def noisy(x):
        return model.polynomial(x) + model.residual * fresh.standard_normal(x.shape)

    for i, features in enumerate((np.tanh, noisy)):
        R = features(X @ after.T) / np.sqrt(k)
        a = np.linalg.solve(R.T @ R + lam * m * np.eye(k), R.T @ y)
        training = ((y - R @ a) ** 2).mean() / 2 + lam / 2 * a @ a
        assert found.training[0, i] == pytest.approx(training, rel=1e-10)
        test_error = ((yt - features(Xt @ after.T) @ a / np.sqrt(k)) ** 2).mean() / 2
        assert found.generalisation[0, i] == pytest.approx(test_error, rel=1e-10)
    assert np.isnan(found.misclassification).all()


def test_a_classification_is_better_than_chance():
    """Sign errors, on components that differ in their covariance alone."""
    options = dict(students=["relu"], orders=[3], width=30, samples=40, lam=1e-3, rate=2.0, rng=5)
    task = classification(mixture(50, eigenvalues=30.0))
    assert (side_by_side(task, **options).misclassification < 0.5).all()


def test_readouts_of_singular_gram_matrices():
    """Features with a Gram matrix of condition 1e17: against longdouble normal equations."""
    rng = np.random.default_rng(0)
    Phi, y = rng.standard_normal((12, 4)) * [1e9, 1e7, 1.0, 2.0], rng.standard_normal(12)
    R = (Phi / 2).astype(np.longdouble)
    A, b = R.T @ R + 1e-2 * np.eye(4, dtype=np.longdouble), R.T @ y
    for i in range(4):  # Gauss-Jordan: numpy's solvers have no long doubles
        A[i], b[i] = A[i] / A[i, i], b[i] / A[i, i]
        for j in set(range(4)) - {i}:
            b[j] -= A[j, i] * b[i]
            A[j] = A[j] - A[j, i] * A[i]
    # Condition 1e9 of the features times rounding.
    np.testing.assert_allclose(fit_readout(Phi, y, 1e-2), b.astype(float), rtol=1e-6)


def test_a_polynomial_activation_is_its_own_hermite_model():
    """Order above its degree: no residual, the same features, the same errors."""
    task = regression(mixture(60, eigenvalues=10.0), rng=1)
    found = side_by_side(
        task, students=["he1+he2/4"], orders=[3, 4], width=50, samples=70, lam=1e-2, rate=5.0, rng=2
    )
    for errors in (found.training, found.generalisation):
        # Noise of 1e-8: the square root of a variance that is 0 up to rounding.
        np.testing.assert_allclose(errors, errors[0, 0], rtol=1e-5)


@pytest.mark.parametrize(
    ("n", "students"), [(60, ["relu"]), pytest.param(200, ["relu", "tanh"], marks=pytest.mark.slow)]
)
@pytest.mark.parametrize(
    ("of", "split", "ratio"),
    [
        *slow(
            ("classes", 0.5, 1),
            ("random", 0.5, 0.5),
            ("random", 0.5, 2),
            ("aligned", 0, 1),
            ("aligned", 1, 1),
        ),
    ],
)
def test_theory_given_the_first_layer(of, split, ratio, n, students):
    """All errors of network and Hermite model, simulated on the very layers that the theory is
    given: means of 10 draws within 3.5 standard errors, and 3 / n."""
    theta, eta = scaling(n, data_spread=0.74, split=split)
    mixed, differences, means = mixture(n, eigenvalues=theta), [], []
    for seed in range(10):
        task = regression(mixed, aligned=of == "aligned", rng=seed)
        task = classification(mixed) if of == "classes" else task
        options = dict(students=students, orders=[4], width=round(n * ratio), samples=n)
        options |= dict(rate=eta, lam=1e-4, rng=seed)
        theory = np.array(in_theory(task, **options))
        differences.append(np.array(side_by_side(task, **options)) - theory)
        means.append(theory)
    known = slice(3 if of == "classes" else 2)
    mean, scatter = np.mean(differences, axis=0)[known], np.std(differences, axis=0, ddof=1)[known]
    allowed = 3.5 * scatter / np.sqrt(10) + 3 / n * np.mean(means, axis=0)[known]
    assert (np.abs(mean) <= allowed).all()


def draws(width, *, seeds, rate=1.0, aligned=True, target="relu", **options):
    """Training and generalisation errors (2, seeds, students, models) at n = m = 1000,
    lam = 1e-4, beta_s = .74, alpha_s = 1/2; the rate is that of the scaling times ``rate``."""
    theta, eta = scaling(1000, data_spread=0.74, split=0.5)
    found = []
    for seed in range(seeds):
        labels, rest = np.random.SeedSequence(seed).spawn(2)
        mixed = mixture(1000, eigenvalues=theta)
        task = regression(mixed, target=target, aligned=aligned, rng=labels)
        sizes = {"width": width, "samples": 1000, "rate": rate * eta, "lam": 1e-4}
        found.append(side_by_side(task, rng=rest, **sizes, **options)[:2])
    return np.array(found).swapaxes(0, 1)


def distance(errors):
    """How many times 3 standard errors of their difference, or 3 % of the network's error if that
    is more, the means over seeds of network and every Hermite model are apart; (2, students,
    orders).  Both have the same draws, so the difference is known better than either."""
    mean, difference = errors.mean(axis=1), errors[..., 1:] - errors[..., :1]
    allowed = 3 * difference.std(axis=1, ddof=1) / np.sqrt(errors.shape[1])
    return np.abs(difference.mean(axis=1)) / np.maximum(allowed, 0.03 * mean[..., :1])


@pytest.mark.slow
@pytest.mark.parametrize("ratio", [0.5, 1, 2])
def test_they_agree_on_random_directions(ratio):
    """The setting of the paper's first figure, xi random."""
    students = ["tanh", "sigmoid", "relu"]
    errors = draws(round(1000 * ratio), seeds=4, aligned=False, students=students, orders=[4])
    assert (distance(errors) <= 1).all()


@pytest.mark.slow
@pytest.mark.parametrize("ratio", [0.5, 2])  # fewer neurons than samples, and more
@pytest.mark.parametrize(
    ("student", "target", "constant", "too_low"),
    [("tanh", "tanh", 4, 3), ("sigmoid", "tanh", 16, 3), ("relu", "relu", 4, 2)],
)
def test_they_agree_at_the_order_needed_only(student, target, constant, too_low, ratio):
    """beta_s = .74 needs order 4; with the last polynomial that the activation has taken away -
    degree 3, and degree 2 for relu, whose h_3 is 0 - the generalisation error is visibly wrong.

    The scaling fixes the power of n alone.  At n = 1000 that polynomial shows in the mean once
    the step is a few times n^(beta_s alpha_s), more for a small h_1; and as an entry of the
    gradient falls as 1 / k, the rate grows with k.
    """
    assert abs(expand("relu", order=4).coefficients[3]) < 1e-14
    of = dict(target=target, students=[student], orders=[4, too_low], test_samples=3000)
    errors = draws(round(1000 * ratio), seeds=12, rate=constant * ratio, **of)
    apart = distance(errors)[:, 0]
    assert (apart[:, 0] <= 1).all(), apart
    assert apart[1, 1] > 1, apart
