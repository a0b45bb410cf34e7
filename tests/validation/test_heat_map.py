"""The heat map's shared draws against the plain way, and the exact generalisation error."""

import numpy as np
import pytest

from validation.mixtures import mixture, regression, relu_error, scaling, shared_draws, side_by_side

SIZES = dict(dimension=60, samples=80, width=70, lam=1e-3)


def test_exact_error_is_the_mean_over_test_samples():
    rng = np.random.default_rng(0)
    mixed = mixture(
        12, eigenvalues=[[5.0, 2.0]], spikes=2, alignment=0.3, proportions=[2, 1], rng=1
    )
    task = regression(mixed, rng=2)
    layer, a = rng.standard_normal((9, 12)), rng.standard_normal(9) / 9
    X, y = task.draw(300_000, np.random.default_rng(3))
    squares = (y - np.maximum(X @ layer.T, 0) @ a) ** 2 / 2
    scatter = squares.std() / np.sqrt(len(squares))
    assert relu_error(mixed, layer, a, task.direction) == pytest.approx(
        squares.mean(), abs=4 * scatter
    )
    # A network that is its target: no error, up to rounding.
    alone = relu_error(mixed, task.direction[None], np.ones(1), task.direction)
    assert alone == pytest.approx(0, abs=1e-15)


def test_a_cell_does_not_depend_on_the_others():
    pairs = [scaling(60, data_spread=b, split=a) for a in (0.2, 0.9) for b in (0.3, 0.8)]
    together = list(shared_draws(pairs, rng=4, **SIZES))
    for pair, error in zip(pairs, together, strict=True):
        assert list(shared_draws([pair], rng=4, **SIZES)) == [error]


@pytest.mark.parametrize("spread", [0.2, 0.9])
def test_cells_have_the_law_of_the_plain_way(spread):
    """Means of 30 fresh draws each, from independent code, within 3.5 standard errors."""
    pair = scaling(60, data_spread=spread, split=0.5)
    shared = np.array([next(shared_draws([pair], rng=seed, **SIZES)) for seed in range(30)])
    plain = []
    for seed in range(30):
        data, rest = np.random.SeedSequence((1, seed)).spawn(2)
        task = regression(mixture(60, eigenvalues=pair.theta, rng=data), aligned=True)
        found = side_by_side(
            task, students=["relu"], orders=[], width=70, samples=80, lam=1e-3, rate=pair.eta,
            test_samples=2000, rng=rest,
        )  # fmt: skip
        plain.append(found.generalisation[0, 0])
    scatter = np.hypot(shared.std(ddof=1), np.std(plain, ddof=1)) / np.sqrt(30)
    assert shared.mean() == pytest.approx(np.mean(plain), abs=3.5 * scatter)
