"""Layers drawn at random, of kinds whose features are alike, uncorrelated, repeated or 0."""

import numpy as np

from replica import FirstLayer

KINDS = "diagonal", "block", "repeated", "zero", "orthogonal", "low rank", "random"
STUDENTS = "linear", "tanh", "relu", "erf", "gelu", "sin"


def drawn_layer(number):
    """A layer of one of ``KINDS``, with rows from 1e-6 to 1e6 times those of its kind, and n."""
    rng, kind = np.random.default_rng([7, number]), KINDS[number % len(KINDS)]
    d = int(rng.integers(24, 48))
    p = d if kind in ("diagonal", "orthogonal") else int(rng.integers(24, 64))
    if kind == "diagonal":
        weights = np.diag(np.exp(rng.uniform(-2, 0, d)))
    elif kind == "block":
        weights = np.kron(np.eye(-(-p // 4), -(-d // 3)), np.ones((4, 3)))[:p, :d]
        weights *= rng.standard_normal((p, d))
    elif kind == "orthogonal":
        weights = np.linalg.qr(rng.standard_normal((d, d)))[0]
    elif kind == "low rank":
        weights = rng.standard_normal((p, 3)) @ rng.standard_normal((3, d)) / np.sqrt(3 * d)
    else:
        weights = rng.standard_normal((p, d)) / np.sqrt(d)
    if kind == "repeated":
        weights = weights[rng.integers(0, p // 2, p)]
    if kind == "zero":
        weights[rng.random(p) < 0.3] = 0.0
    student = STUDENTS[int(rng.integers(len(STUDENTS)))]
    scale = float(rng.choice([1e-6, 1, 1, 1, 1e6])) if student in ("linear", "relu") else 1.0
    bias = rng.choice([0.0, 0.5]) * rng.standard_normal(p)
    samples, lam = int(rng.integers(d, 4 * d)), float(10 ** rng.uniform(-2, 0))
    layer = FirstLayer(
        weights=scale * weights, bias=scale * bias, student=student, target="z1",
        directions=np.linalg.qr(rng.standard_normal((d, 1)))[0], noise=0.1,
    )  # fmt: skip
    return layer, samples, lam * scale**2, rng
