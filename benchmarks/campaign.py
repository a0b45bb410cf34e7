"""Random points over all the ranges that are promised: ``python -m benchmarks.campaign``.

Ridge regression, other losses, and networks, over lambda in [1e-12, 1e6], alpha in [1e-3, 1e3],
beta in [.05, 20] and eta in [0, 100], a part of them at alpha = beta.  Counted are what was raised,
what was flagged and why, what passed the limit of time, and what is NaN without a flag.  A tenth of
what converged is solved a second time by code that shares nothing with the solver: ridge points by
``replica.reference`` in 20 digits, other losses by ``brute``, networks after one step by section 16
of docs/theory.md as it stands.
"""

import argparse
import collections
import sys
import time
import warnings
from dataclasses import replace

import numpy as np

import replica
from replica import reference
from replica.equivalence import table_of_size
from solvers.results import ConvergenceError
from tests.oracles import equations_rows

from . import brute
from .random_points import KINKED_LOSS, LOG_COSH

SEED = 23
COUNTS = {"ridge": 1500, "losses": 400, "networks": 300}
STUDENTS = "tanh", "erf", "sin", "relu", "gelu", "softplus", "sigmoid"
TARGETS = "sin", "tanh", "relu", "linear", "sign"
READOUTS = 1.0, 1.0, 1.0, [-1.0, 1.0], "gaussian"
STEPS = 1, 1, 1, 2, 3  # of a network
REAL_NOISES = None, "outliers:0.1:9", "student:3:0.5"
REAL_LOSSES = "huber:0.5", "absolute", "quantile:0.3", LOG_COSH, KINKED_LOSS
MARGIN_LOSSES = "logistic", "hinge", "squared_hinge"
FUNCTIONS = {
    "tanh": np.tanh,
    "sin": np.sin,
    "relu": lambda x: np.maximum(x, 0),
    "linear": lambda x: x,
}
OFF = {"ridge": 1e-9, "losses": 1e-5, "networks": 1e-7}  # relative, of the second solution


def drawn(kind, draw):
    """A random problem: model, and the arguments of ``solve``."""
    # labels +-1 in half of the points of other losses; a plain target else
    binary = kind == "losses" and draw.random() < 0.5
    step = replica.GradientStep(
        student=str(draw.choice(STUDENTS)),
        target="sign" if binary else str(draw.choice(TARGETS[: 4 if kind == "losses" else 5])),
        alpha0=10 ** draw.uniform(-1.5, 2),
        eta=float(draw.choice([0.0, 1.0, 1.0, 1.0])) * 10 ** draw.uniform(-2, 2),
        noise=0.0 if binary else float(draw.choice([0.0, 0.1, 1.0])),
        readout=READOUTS[draw.integers(len(READOUTS))],
        label_noise=(
            (None, "flip:0.1")[draw.integers(2)]
            if binary
            else REAL_NOISES[draw.integers(3) if kind == "losses" else 0]
        ),
    )
    if kind == "networks" and (steps := STEPS[draw.integers(len(STEPS))]) > 1:
        schedule = [(step.alpha0, step.eta)] * steps
        step = replace(step, alpha0=None, eta=None, steps=schedule, readout=1.0)
    beta = 10 ** draw.uniform(np.log10(0.05), np.log10(20))
    alpha = beta if draw.random() < 0.1 else 10 ** draw.uniform(-3, 3)
    lam = 10 ** draw.uniform(-12, 6)
    losses = MARGIN_LOSSES if binary else REAL_LOSSES
    loss = losses[draw.integers(len(losses))] if kind == "losses" else "square"
    make = step.network if kind == "networks" else step.srf
    return make, beta, {"alpha": alpha, "lam": lam, "loss": loss}


def second(kind, model, asked, point):
    """Both errors of the point solved again, and how far its own nodes are from these; None where
    the second solver does not know the problem or gives up."""
    o = point.overlaps
    if o.V1.size > 1:
        return None
    if kind == "ridge":
        try:
            exact = reference.solve(model, alpha=asked["alpha"], lam=asked["lam"], digits=20)
        except (replica.InvalidArgument, ConvergenceError):
            return None
        return float(exact.test_error), 0.0
    if kind == "networks":
        return literal_network(model, asked, o)
    loss, noise = asked["loss"], model.label_noise
    if not isinstance(loss, str) or "student" in str(noise) or model.student.name not in FUNCTIONS:
        return None
    binary = model.labels.binary
    variances = ((1.0, model.noise),)
    if "outliers" in str(noise):
        variances = (0.9, model.noise), (0.1, model.noise + 9)
    problem = brute.Problem(
        FUNCTIONS[model.student.name],
        None if binary else FUNCTIONS[model.target.name],
        binary,
        0.1 if "flip" in str(noise) else 0.0,
        variances,
        float(model.r),
        float(model.c),
        float(model.gamma),
        model.beta,
        asked["alpha"],
        asked["lam"],
        loss,
    )
    start = [float(np.ravel(part)[0]) for part in (o.V1, o.V2, o.m, o.theta, o.psi, o.Q1, o.q2)]
    found = brute.solve(problem, start)
    return None if found is None else (found[1][0], abs(found[1][0] - found[0][0]))


def literal_network(model, asked, overlaps):
    """As ``second``, of a network after one step, from a plain iteration that starts at its V1 and
    V2."""
    step = model.rows.step
    if len(step.schedule) > 1:
        return None
    of = equations_rows.Rows(step.student, step.target, step.alpha0, step.eta, noise=step.noise)
    table = table_of_size(model, asked.pop("nodes"))
    start = float(overlaps.V1.item()), float(overlaps.V2.item())
    try:
        test, _ = equations_rows.solve(of, table, asked["alpha"], asked["lam"], start=start)
    except (AssertionError, ValueError, np.linalg.LinAlgError):
        return None  # plain iteration did not settle
    return float(test), 0.0


def log(line):
    """A line on standard error."""
    print(line, file=sys.stderr, flush=True)


def campaign(kind, count, again):
    """Solve ``count`` points of a kind and print what came of them."""
    draw = np.random.default_rng([SEED, list(COUNTS).index(kind)])
    outcomes, seconds = collections.Counter(), []
    compared, off = 0, 0
    for index in range(count):
        start = time.perf_counter()
        try:
            make, beta, asked = drawn(kind, draw)
            model = make(beta=beta)
            point = replica.solve(model, **asked)
        except Exception as error:
            outcomes[f"{type(error).__name__}"] += 1
            log(f"{kind} {index}: {type(error).__name__}: {error}")
            continue
        seconds.append(time.perf_counter() - start)
        outcome = point.status.name
        if point.converged != np.isfinite(point.test_error):
            outcome = "NaN without a flag"
        outcomes[outcome] += 1
        if seconds[-1] > 21 or not point.converged:
            log(f"{kind} {index}: {outcome} {seconds[-1]:.1f} s {model} {asked}")
        if point.converged and again and index % again == 0:
            checked = second(kind, model, asked | {"nodes": point.nodes}, point)
            if checked is None:
                continue
            compared += 1
            distance = abs(point.test_error / checked[0] - 1)
            if distance > OFF[kind] + 5 * checked[1] / abs(checked[0]):
                off += 1
                log(
                    f"{kind} {index}: OFF by {distance:.1e} (its own {checked[1]:.0e}) {model} "
                    f"{asked}"
                )
    converged = outcomes["CONVERGED"] / count
    middle, most = np.quantile(seconds, [0.5, 0.99])
    print(
        f"| {kind} | {count} | {converged:.1%} | {dict(outcomes)} | {middle:.3f} s | {most:.1f} s "
        f"| {max(seconds):.1f} s | {compared}, {off} off |",
        flush=True,
    )


def main():
    """Print the table; what was flagged goes to standard error."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kinds", default="ridge,losses,networks")
    parser.add_argument("--part", type=float, default=1.0, help="of the points")
    parser.add_argument("--again", type=int, default=10, help="solve each N-th a second time")
    chosen = parser.parse_args()
    warnings.simplefilter("ignore")
    print("| kind | points | converged | outcomes | median | 99 % | longest | solved again |")
    print("|---|---|---|---|---|---|---|---|")
    for kind in chosen.kinds.split(","):
        campaign(kind, round(COUNTS[kind] * chosen.part), chosen.again)


if __name__ == "__main__":
    main()
