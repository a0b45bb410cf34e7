"""Random points of convex losses: ``python -m benchmarks.random_points``.

Prints how long they take, tables included, and how many are flagged, by the kind of problem: median
and quantiles in seconds, and over a point of the literal ridge baseline (``literal.py``) timed in
the same run, which is what to compare machines by.
"""

import time
import warnings
from dataclasses import replace
from itertools import cycle, islice

import numpy as np

import replica

from . import literal
from .benchmarks import MODEL, SHIFTS

POINTS_SEED = 20
LOG_COSH = replica.Loss(
    value=lambda t: np.logaddexp(t, -t) - np.log(2),
    derivative=np.tanh,
    curvature=lambda t: 1 / np.cosh(np.clip(t, -300, 300)) ** 2,
    name="log cosh",
)
# kinked, and not piecewise quadratic
KINKED_LOSS = replica.Loss(
    value=lambda t: np.abs(t) + 0.3 * np.sqrt(1 + t * t),
    derivative=lambda t: np.sign(t) + 0.3 * t / np.sqrt(1 + t * t),
    curvature=lambda t: 0.3 * (1 + t * t) ** -1.5,
    kinks=(0.0,),
    name="kinked",
)
DRAWN_STUDENTS = "relu", "tanh", "erf", "softplus", "gelu"
SIGN_PROBLEMS = ("sign",), (None, "flip:0.1")
REAL_PROBLEMS = (
    ("sin", "relu", "he2", "tanh"),
    (None, "outliers:0.1:9", "student:3:0.5", "student:5:0.05"),
)
# Of each kind: losses, (targets, label noise), how many points, whether a bias is trained.
POINT_KINDS = {
    "logistic": (("logistic",), SIGN_PROBLEMS, 60, False),
    "hinge, squared hinge": (("hinge", "squared_hinge"), SIGN_PROBLEMS, 60, False),
    "Huber, absolute, quantile": (
        ("huber:0.5", "absolute", "quantile:0.3"),
        REAL_PROBLEMS,
        60,
        False,
    ),
    "users' own": ((LOG_COSH, KINKED_LOSS), REAL_PROBLEMS, 60, False),
    "trained bias, labels": (("logistic", "hinge", "squared_hinge"), SIGN_PROBLEMS, 30, True),
    "trained bias, real": (("huber:0.5", "absolute", "quantile:0.3"), REAL_PROBLEMS, 30, True),
}


def points(losses, problems, count, train_bias):
    """Random points of one kind: loss, model, alpha, lam."""
    draw = np.random.default_rng(POINTS_SEED)
    targets, noises = problems
    for loss in islice(cycle(losses), count):
        model = replica.SpikedRandomFeatures(
            student=str(draw.choice(DRAWN_STUDENTS)),
            target=str(draw.choice(targets)),
            label_noise=noises[draw.integers(len(noises))],
            noise=0.0 if targets == ("sign",) else float(draw.choice([0.0, 0.1])),
            r=draw.uniform(0.3, 4.0),
            c=draw.uniform(1.0, 1.6),
            gamma=draw.uniform(0.3, 0.98),
            beta=10 ** draw.uniform(-0.7, 0.7),
            train_bias=train_bias,
        )
        yield loss, model, 10 ** draw.uniform(-0.7, 1.0), 10 ** draw.uniform(-4.0, 2.0)


def timed(loss, model, alpha, lam):
    """Seconds, and whether the point converged."""
    model = replace(model, r=model.r + next(SHIFTS))  # without tables
    start = time.perf_counter()
    point = replica.solve(model, alpha=alpha, lam=lam, loss=loss)
    return time.perf_counter() - start, point.converged


def main():
    """Print the table."""
    warnings.simplefilter("ignore")
    eigenvalues = literal.spectrum(MODEL.c, MODEL.beta)
    start = time.perf_counter()
    literal.solve(MODEL, alpha=0.9, lam=0.1, eigenvalues=eigenvalues)
    unit = time.perf_counter() - start
    print(f"A literal point takes {unit:.2f} s.\n")
    print(
        "| kind | points | flagged | median | 90 % | 99 % | longest | 99 % over a literal point |"
    )
    print("|---|---|---|---|---|---|---|---|")
    for name, kind in POINT_KINDS.items():
        each = list(points(*kind))
        for warm in each[:3]:
            timed(*warm)  # imports and rules
        seconds, converged = np.array([timed(*one) for one in each]).T
        middle, most, nearly = np.quantile(seconds, [0.5, 0.9, 0.99])
        flagged = int((converged == 0).sum())
        print(
            f"| {name} | {len(each)} | {flagged} | {middle:.3f} s | {most:.3f} s | {nearly:.3f} s "
            f"| {seconds.max():.3f} s | {nearly / unit:.2f} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
