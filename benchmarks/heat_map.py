"""The heat map of splits and spreads: shared draws beside everything recomputed for every cell.

    python -m benchmarks.heat_map

n = 400, m = k = 500, 16 cells of the 30 x 30, CPU seconds of one draw of a cell, of three ways:

shared   ``validation.mixtures.shared_draws``, as the figure is made;
lean     fresh draws for every cell by ``hermite_model`` beside it, with its spikes of rank one;
plain    the formulas as they stand: orthogonal n x n matrices of both components, dense covariances
         and square roots, everything drawn for every cell, 5 m test samples, a k x k solve.

The last column extrapolates to 900 cells and 20 draws.
"""

import statistics
import time

import numpy as np

from validation.mixtures import (
    Scaling,
    mixture,
    regression,
    scaling,
    shared_draws,
    side_by_side,
)

n, m, k, lam = 400, 500, 500, 1e-4
MAP_AXIS = (0.1, 0.4, 0.7, 1.0)


def shared(pairs: list[Scaling], seed: int) -> list[float]:
    """One set of draws for all pairs."""
    return list(shared_draws(pairs, dimension=n, samples=m, width=k, lam=lam, rng=seed))


def lean(pairs: list[Scaling], seed: int) -> list[float]:
    """Fresh draws for every pair."""
    errors = []
    for i, (theta, eta) in enumerate(pairs):
        spikes, rest = np.random.SeedSequence((seed, i)).spawn(2)
        task = regression(mixture(n, eigenvalues=theta, rng=spikes), aligned=True)
        pair = side_by_side(
            task, students=["relu"], orders=[], width=k, samples=m, rate=eta, lam=lam, rng=rest
        )
        errors.append(float(pair.generalisation[0, 0]))
    return errors


def plain(pairs: list[Scaling], seed: int) -> list[float]:
    """Every formula typed once, with dense matrices."""
    return [_plain(theta, eta, np.random.default_rng((seed, i))) for i, (theta, eta) in
            enumerate(pairs)]  # fmt: skip


def _plain(theta: float, eta: float, rng: np.random.Generator) -> float:
    """The generalisation error of one draw of a cell."""
    spikes = [np.linalg.qr(rng.standard_normal((n, n)))[0][:, :1] for _ in range(2)]
    covariances = [np.eye(n) + theta * g @ g.T for g in spikes]
    roots = [np.eye(n) + (np.sqrt(1 + theta) - 1) * g @ g.T for g in spikes]
    xi = (spikes[0] + spikes[1])[:, 0]
    xi /= np.linalg.norm(xi) * np.sqrt(np.linalg.norm(sum(covariances) / 2, 2))
    trace = np.trace(covariances[0])

    def draw(count: int) -> tuple[np.ndarray, np.ndarray]:
        """Inputs (count, n), half of each component, and their labels."""
        X = np.concatenate([rng.standard_normal((count // 2, n)) @ root for root in roots])
        return X, np.maximum(X @ xi, 0)

    F, w = rng.standard_normal((k, n)) / np.sqrt(trace), rng.standard_normal(k) / np.sqrt(k)
    X, y = draw(m)
    fields = F @ X.T
    G = (np.outer(w, y - w @ np.maximum(fields, 0) / np.sqrt(k)) * (fields > 0)) @ X / m
    F = F + eta * G / np.sqrt(k)
    X, y = draw(m)
    R = np.maximum(F @ X.T, 0) / np.sqrt(k)
    a = np.linalg.solve(R @ R.T + lam * m * np.eye(k), R @ y)
    X, y = draw(5 * m)
    return float(((y - a @ np.maximum(F @ X.T, 0) / np.sqrt(k)) ** 2).mean() / 2)


def main() -> None:
    """Print CPU seconds a cell, the ratio to the shared draws, and hours of the whole map."""
    pairs = [scaling(n, data_spread=b, split=a) for b in MAP_AXIS for a in MAP_AXIS]
    seconds: dict[str, list[float]] = {way.__name__: [] for way in (shared, lean, plain)}
    means: dict[str, list[float]] = {name: [] for name in seconds}
    for seed in range(3):
        for way in (shared, lean, plain):  # in turn, so that other work on the machine hits all
            start = time.process_time()
            means[way.__name__].append(float(np.mean(way(pairs, seed))))
            seconds[way.__name__].append((time.process_time() - start) / len(pairs))
    base = statistics.median(seconds["shared"])
    print(f"{'way':8}{'s a cell':>10}{'ratio':>8}{'min a map':>11}{'mean error':>12}")
    for name, values in seconds.items():
        one = statistics.median(values)
        error = statistics.mean(means[name])
        print(f"{name:8}{one:10.4f}{one / base:8.1f}{one * 900 * 20 / 60:11.1f}{error:12.4f}")


if __name__ == "__main__":
    main()
