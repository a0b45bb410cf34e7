"""The trial of random models: ``python -m tests.robustness.trial_models [COUNT [FIRST]]`` asks
each public function about them, each call in a process of its own, says what failed, and records
time and memory.  A model, and what is asked of it, follow from a number."""

import collections
import os
import pickle
import signal
import sys
import traceback
import warnings
from typing import Any, NamedTuple

import numpy as np

import replica
from benchmarks.random_points import BIASES, READOUTS, STUDENTS, TARGETS
from replica.errors import InvalidArgument
from solvers.quadrature import QuadratureError
from solvers.results import ConvergenceError, Status
from tests.given.drawn import drawn_layer

SEED = 41
ODD = "tanh", "erf", "sin", "linear"
SEVERAL = "z1*z2", "z1 + he2(z2)", "sin(.6*z1+.8*z2)", "abs(z1)*z2", "tanh(z1)*z2*z3"
BINARY = "sign", "sign(z1 - z2)", "sign(z1)*sign(z2 + 1)"
LABEL_NOISES = "outliers:0.1:9", "student:3:0.5"
CHANNELS = "flip:0.1", "probit", "logistic"
EXTREMES = 0.0, 1e-300, 1e-30, 1e-12, 1e8, 1e30, -1.0, np.inf, np.nan
MIXTURES = (
    dict(means=[[0.7], [-0.7]], covariances=[[[0.5]], [[1.5]]], fractions=[0.4, 0.6]),
    dict(means=[[1.0, 0.0], [-1.0, 0.0]]),
    dict(means=[[0.0, 0.0]], covariances=[[[4.0, 0.5], [0.5, 0.2]]]),
    dict(means=[[0.0], [0.0], [2.0]], covariances=[[[1e-13]], [[1.0]], [[30.0]]]),
)
MEMORY = 1000  # MB that a call may take
ACTIONS = (
    *("solve", "solve", "curve", "curve", "gradient", "bounds", "over eta", "optimal lambda"),
    *("optimal eta", "learned", "spectrum", "staircase", "best bounds", "loss", "calibration"),
)
OF_GIVEN = "solve", "curve", "gradient", "optimal lambda", "learned", "spectrum", "loss"


class Question(NamedTuple):
    """What is asked: of a model of that ``kind`` and those ``fields``, an ``action`` at numbers."""

    kind: str
    fields: dict[str, Any]
    action: str
    alpha: float
    beta: float
    lam: float
    loss: str
    accuracy: dict[str, float]


def drawn(number: int) -> Question:
    """The question of that number."""
    draw = np.random.default_rng([SEED, number])

    def one_of(values):
        return values[draw.integers(len(values))]

    def usual(value):
        return one_of(EXTREMES) if draw.random() < 0.03 else value

    kind = one_of(["srf", "srf", "network", "network", "layer", "layer", "features"])
    binary = draw.random() < 0.25
    fields = dict(student=one_of(STUDENTS), target=one_of(TARGETS[:-1]))
    fields["noise"] = usual(one_of([0.0, 0.1, 1.0]))
    if draw.random() < 0.25:
        fields["target"] = one_of(SEVERAL)
    if binary:
        fields |= dict(target=one_of(BINARY), noise=usual(0.0))
    if draw.random() < 0.25:
        fields["label_noise"] = one_of(CHANNELS if binary else LABEL_NOISES)
    if draw.random() < 0.2:
        fields["inputs"] = replica.GaussianMixture(**one_of(MIXTURES))
        if draw.random() < 0.3:
            fields["target"] = "classes:" + ",".join(
                ["1", "-1", "1"][: len(fields["inputs"].means)]
            )
    if kind in ("layer", "features"):
        fields |= given_fields(kind, draw, one_of, usual)
    else:
        fields |= step_fields(kind, fields, draw, one_of, usual)
    action = one_of(OF_GIVEN if kind in ("layer", "features") else ACTIONS)
    beta, alpha = usual(10 ** draw.uniform(-1.3, 1.3)), usual(10 ** draw.uniform(-3, 3))
    lam = usual(10 ** draw.uniform(-12, 6))
    loss = one_of(["logistic", "hinge"] if binary else ["huber:0.5", "absolute", "quantile:0.3"])
    accuracy = {"quadrature_tol": 10 ** draw.uniform(-8, -2)} if draw.random() < 0.1 else {}
    if draw.random() < 0.1:
        accuracy["time_limit"] = one_of([1e-3, 1.0, 5.0])
    return Question(kind, fields, action, alpha, beta, lam, loss, accuracy)


def step_fields(kind, known, draw, one_of, usual):
    """What a step takes beside the labels."""
    fields = dict(readout=one_of(READOUTS), initialisation=one_of(["sphere", "gaussian"]))
    schedule = [(usual(10 ** draw.uniform(-1.5, 2)), usual(10 ** draw.uniform(-2, 2)))]
    if draw.random() < 0.25:  # two spikes or three
        schedule *= one_of([2, 3])
        fields["readout"] = one_of([1.0, 1.0, [-1.0, 1.0]])
    if draw.random() < 0.25:
        fields["bias"], fields["intercept"] = one_of(BIASES), bool(draw.integers(2))
    if draw.random() < 0.1 and kind == "srf":
        fields["train_bias"] = True
    fields["steps"] = schedule
    if fields["readout"] == "gaussian" and (known["student"] not in ODD or len(schedule) > 1):
        fields["readout"] = 1.0
    return fields


def given_fields(kind, draw, one_of, usual):
    """What a given layer, or a sample of features, takes: each of the kinds of ``KINDS``."""
    layer, *_ = drawn_layer(int(draw.integers(10**6)))
    fields = dict(intercept=bool(draw.integers(2)))
    if kind == "layer":
        fields |= dict(weights=usual(1.0) * layer.weights, bias=layer.bias)
        return fields | dict(feature_noise=usual(one_of([0.0, 0.0, 0.1])))
    X = draw.standard_normal((int(draw.integers(30, 400)), layer.dimension))
    features = usual(1.0) * layer.student(X @ layer.weights.T + layer.bias)
    return fields | dict(features=features, X=X)


def made(question: Question) -> Any:
    """The model, or a step, of a question."""
    fields = dict(question.fields)
    if question.kind in ("layer", "features"):
        law = replica.problem.target(fields["target"]) if ":" not in fields["target"] else None
        count = 0 if law is None else law.dimension
        if question.kind == "features":
            z = fields["X"][:, : max(count, 1)].T
            labels = np.sign(z[0]) if law is None else law(*z)
            return replica.FeatureSample(
                features=fields["features"], labels=labels, intercept=fields["intercept"]
            )
        fields["directions"] = np.eye(fields["weights"].shape[1])[:, :count]
        return replica.FirstLayer(**fields)
    if len(fields["steps"]) == 1:
        (fields["alpha0"], fields["eta"]), fields["steps"] = fields["steps"][0], ()
    return replica.GradientStep(**fields)


def ask(number: int) -> str:
    """What is wrong with the answer to the question of that number; empty if nothing is."""
    question = drawn(number)
    kind, _, action, alpha, beta, lam, loss, accuracy = question
    step = made(question)
    if action in ("over eta", "optimal eta", "staircase", "best bounds") and not step.steps:
        match action:
            case "over eta":
                replica.bounds(step, eta=np.geomspace(0.1, 10, 7))
            case "optimal eta":
                return fine(replica.optimal_eta(step, alpha=alpha, beta=beta, lam=lam))
            case "staircase":
                replica.staircase(step.target)
            case "best bounds":
                replica.best_bounds(step)
        return ""
    given = kind in ("layer", "features")
    model = step if given else getattr(step, kind)(beta=beta)
    n = {"samples": alpha * model.width} if given else {"alpha": alpha}
    at = n | dict(lam=lam)
    match action:
        case "curve":
            ((name, value),) = n.items()
            axes = {name: value * np.geomspace(0.1, 10, 10), "lam": lam}
            found = replica.learning_curve(model, **axes, **accuracy)
            right = np.isfinite(found.test_error.values) == found.converged.values
            negative = (found.test_error < 0) | (found.train_error < 0)
            if negative.any():
                return f"negative errors {found.test_error.values} {found.train_error.values}"
            return "" if right.all() else "a curve with NaN and no flag"
        case "gradient":
            found = replica.gradient(model, **at, **accuracy)
            values = [*found.test_error.values(), *found.train_error.values()]
            if found.status is Status.CONVERGED and not np.isfinite(values).all():
                return "NaN in a gradient that is converged"
            return fine(found.point)
        case "bounds" | "over eta" | "best bounds":
            found = replica.bounds(model)
            right = not found.converged or 0 - 1e-9 <= found.lower <= found.upper + 1e-9
            return "" if right else f"bounds {found.lower} {found.upper}"
        case "optimal lambda" | "optimal eta":
            n = {"samples": alpha * model.width} if given else {"alpha": alpha}
            found = replica.optimal_lambda(model, **n)
            if found.converged and not found.at_edge and not given:
                upper = replica.bounds(model).upper
                if found.test_error > upper + 1e-6:
                    return f"optimum {found.test_error} above U {upper} at {found.lam}"
            return fine(found)
        case "learned":
            found = replica.learned_function(model, **at)
            K = model.directions.shape[1] if given else model.geometry.r.shape[1]
            kappa = np.linspace(-2, 2, 5) if K == 1 else np.tile(np.linspace(-2, 2, 5), (K, 1))
            values = found.mean(kappa), found.variance(kappa)
            if (values[1] < 0).any():
                return f"a variance below 0: {values[1]}"
            good = np.isfinite(values).all() == found.point.converged
            return "" if good else "learned function NaN where the point converged"
        case "spectrum" | "staircase":
            replica.spectrum(model, **n)
            return ""
        case "loss":
            return fine(replica.solve(model, **at, loss=loss, **accuracy))
        case "calibration":
            replica.calibration(replica.solve(model, **at), 0.5)
            return ""
    return fine(replica.solve(model, **at, **accuracy))


def fine(found):
    """Empty, if errors are numbers, none below 0, exactly where it converged."""
    names = "test_error", "train_error", "loss_error", "train_loss", "readout_variance"
    values = np.array([getattr(found, name) for name in names if hasattr(found, name)])
    negative = values[: 2 if getattr(found, "loss", None) is None else None] < 0
    right = np.isfinite(found.test_error) == found.converged and not negative.any()
    return "" if right else f"errors {values}, converged {found.converged}"


def answered(number):
    """What came of the question of that number: ``(outcome, fault)``."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", "[0-9]+ groups stand for")  # says how far they do
        try:
            fault = ask(number)
            return "answered", fault
        except InvalidArgument as error:
            return "refused", "" if str(error) else "no sentence"
        except (ConvergenceError, QuadratureError) as error:
            return "not converged", "" if str(error) else "no sentence"
        except Exception:
            return "fault", traceback.format_exc(limit=-3)


def apart(number):
    """The same in a process of its own, with its seconds of processor time, which other work on
    the machine does not change, and MB: ``(outcome, fault, s, MB)``."""
    patience = 15.0 + allowed(number)
    read, write = os.pipe()
    child = os.fork()
    if not child:
        signal.setitimer(signal.ITIMER_PROF, patience)
        os.write(write, pickle.dumps(answered(number)))
        os._exit(0)
    os.close(write)
    with open(read, "rb") as pipe:
        content = pipe.read()
    _, status, used = os.wait4(child, 0)
    seconds, memory = used.ru_utime + used.ru_stime, used.ru_maxrss / 1024
    outcome, fault = pickle.loads(content) if content else ("killed", f"wait status {status}")
    if not fault and seconds > allowed(number):
        fault = "too long"
    if not fault and memory > MEMORY:
        fault = "too large"
    return outcome, fault, seconds, memory


def allowed(number):
    """Seconds that the call of that number may take: the time limit of 20 s, for each point of a
    curve, and one more until the clock is looked at."""
    points = {"curve": 10, "over eta": 7}
    return 20 * points.get(drawn(number).action, 1) + 1


def summary(question):
    """A question in a line: shapes in the place of arrays."""
    shown = {key: getattr(x, "shape", x) for key, x in question.fields.items()}
    return question._replace(fields=shown)


def main(count=800, first=0):
    """Ask ``count`` questions; how many failed."""
    outcomes, failed, slowest, largest = collections.Counter(), 0, (0.0, -1), (0.0, -1)
    for number in range(first, first + count):
        outcome, fault, seconds, memory = apart(number)
        outcomes[outcome] += 1
        slowest, largest = max(slowest, (seconds, number)), max(largest, (memory, number))
        if fault:
            failed += 1
            print(
                number,
                *summary(drawn(number)),
                f"{seconds:.1f} s, {memory:.0f} MB:",
                fault,
                flush=True,
            )
    print(dict(outcomes), f"{failed} failed of {count}")
    print(f"slowest {slowest[0]:.1f} s ({slowest[1]}), largest {largest[0]:.0f} MB ({largest[1]})")
    return failed


if __name__ == "__main__":
    sys.exit(bool(main(*map(int, sys.argv[1:]))))
