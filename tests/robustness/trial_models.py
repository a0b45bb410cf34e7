"""The trial of random models: ``python -m tests.robustness.trial_models [COUNT [FIRST]]`` asks
each public function about them, each call in a process of its own, says what failed, and records
time and memory.  A model, and what is asked of it, follow from a number."""

import collections
import os
import pickle
import signal
import sys
import time
import traceback
import warnings

import numpy as np

import replica
from benchmarks.random_points import BIASES, READOUTS, STUDENTS, TARGETS
from replica.errors import InvalidArgument
from solvers.quadrature import QuadratureError
from solvers.results import ConvergenceError

SEED = 41
ODD = "tanh", "erf", "sin", "linear"
SEVERAL = "z1*z2", "z1 + he2(z2)", "sin(.6*z1+.8*z2)", "abs(z1)*z2", "tanh(z1)*z2*z3"
MEMORY = 1000  # MB that a call may take
ACTIONS = (
    *("solve", "solve", "curve", "curve", "gradient", "bounds", "over eta", "optimal lambda"),
    *("optimal eta", "learned", "spectrum", "staircase", "best bounds", "loss", "calibration"),
)


def drawn(number):
    """The model of that number and what is asked of it, as ``(kind, fields, action, numbers)``."""
    draw = np.random.default_rng([SEED, number])

    def one_of(values):
        return values[draw.integers(len(values))]

    kind = one_of(["srf", "srf", "network"])
    fields = dict(student=one_of(STUDENTS), target=one_of(TARGETS[:-1]))
    fields |= dict(noise=one_of([0.0, 0.1, 1.0]), readout=one_of(READOUTS))
    fields["initialisation"] = one_of(["sphere", "gaussian"])
    schedule = [(10 ** draw.uniform(-1.5, 2), 10 ** draw.uniform(-2, 2))]
    if draw.random() < 0.25:  # two spikes or three
        schedule *= one_of([2, 3])
        fields["readout"] = one_of([1.0, 1.0, [-1.0, 1.0]])
    if draw.random() < 0.25:
        fields["target"] = one_of(SEVERAL)
    if draw.random() < 0.25:
        fields["bias"], fields["intercept"] = one_of(BIASES), bool(draw.integers(2))
    if draw.random() < 0.1 and kind == "srf":
        fields["train_bias"] = True
    if draw.random() < 0.15:
        fields["inputs"] = replica.GaussianMixture(
            means=[[0.7], [-0.7]], covariances=[[[0.5]], [[1.5]]], fractions=[0.4, 0.6]
        )
    fields["steps"] = schedule
    if fields["readout"] == "gaussian" and (fields["student"] not in ODD or len(schedule) > 1):
        fields["readout"] = 1.0
    beta, alpha = 10 ** draw.uniform(-1.3, 1.3), 10 ** draw.uniform(-3, 3)
    return kind, fields, one_of(ACTIONS), (alpha, beta, 10 ** draw.uniform(-12, 6))


def ask(number):
    """The answer to the question of that number, and the numbers in it that must be finite or
    flagged, by name."""
    kind, fields, action, (alpha, beta, lam) = drawn(number)
    if len(fields["steps"]) == 1:
        (fields["alpha0"], fields["eta"]), fields["steps"] = fields["steps"][0], ()
    step = replica.GradientStep(**fields)
    if action in ("over eta", "optimal eta", "staircase", "best bounds") and not fields["steps"]:
        match action:
            case "over eta":
                found = replica.bounds(step, eta=np.geomspace(0.1, 10, 7))
            case "optimal eta":
                return fine(replica.optimal_eta(step, alpha=alpha, beta=beta, lam=lam))
            case "staircase":
                found = replica.staircase(step.target)
                return ""
            case "best bounds":
                found = replica.best_bounds(step)
        return ""
    model = getattr(step, kind)(beta=beta)
    at = dict(alpha=alpha, lam=lam)
    match action:
        case "curve":
            found = replica.learning_curve(model, alpha=alpha * np.geomspace(0.1, 10, 10), lam=lam)
            right = np.isfinite(found.test_error.values) == found.converged.values
            return "" if right.all() else "a curve with NaN and no flag"
        case "gradient":
            found = replica.gradient(model, **at)
            values = [*found.test_error.values(), *found.train_error.values()]
            if found.point.converged and not np.isfinite(values).any():
                return "no slope where the point converged"
            return ""
        case "bounds" | "over eta" | "best bounds":
            found = replica.bounds(model)
            right = not found.converged or 0 - 1e-9 <= found.lower <= found.upper + 1e-9
            return "" if right else f"bounds {found.lower} {found.upper}"
        case "optimal lambda" | "optimal eta":
            found = replica.optimal_lambda(model, alpha=alpha)
            upper = replica.bounds(model).upper
            if found.converged and not found.at_edge and found.test_error > upper + 1e-6:
                return f"optimum {found.test_error} above U {upper} at {found.lam}"
            return fine(found)
        case "learned":
            found = replica.learned_function(model, **at)
            K = model.geometry.r.shape[1]
            kappa = np.linspace(-2, 2, 5) if K == 1 else np.tile(np.linspace(-2, 2, 5), (K, 1))
            values = found.mean(kappa), found.variance(kappa)
            good = np.isfinite(values).all() == found.point.converged
            return "" if good else "learned function NaN where the point converged"
        case "spectrum" | "staircase":
            found = replica.spectrum(model, alpha=alpha)
            return ""
        case "loss":
            return fine(replica.solve(model, **at, loss="huber:0.5"))
        case "calibration":
            replica.calibration(replica.solve(model, **at), 0.5)
            return ""
    return fine(replica.solve(model, **at))


def fine(found):
    """Empty, if the test error is a number exactly where it converged."""
    right = np.isfinite(found.test_error) == found.converged
    return "" if right else f"test error {found.test_error}, converged {found.converged}"


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


def apart(number, patience=120.0):
    """The same in a process of its own, with its seconds and MB: ``(outcome, fault, s, MB)``."""
    read, write = os.pipe()
    start = time.monotonic()
    child = os.fork()
    if not child:
        signal.setitimer(signal.ITIMER_REAL, patience)
        os.write(write, pickle.dumps(answered(number)))
        os._exit(0)
    os.close(write)
    with open(read, "rb") as pipe:
        content = pipe.read()
    _, status, used = os.wait4(child, 0)
    seconds, memory = time.monotonic() - start, used.ru_maxrss / 1024
    outcome, fault = pickle.loads(content) if content else ("killed", f"wait status {status}")
    if not fault and seconds > allowed(number):
        fault = "too long"
    if not fault and memory > MEMORY:
        fault = "too large"
    return outcome, fault, seconds, memory


def allowed(number):
    """Seconds that the call of that number may take: its ``time_limit``, as often as it is asked
    for, what it needs before it can look at the clock, and an import."""
    action = drawn(number)[2]
    one = {"spectrum": 30, "best bounds": 60, "optimal lambda": 80, "optimal eta": 80}
    return one.get(action, 7 * 20 if action == "over eta" else 20) + 15


def main(count=800, first=0):
    """Ask ``count`` questions; how many failed."""
    outcomes, failed, slowest, largest = collections.Counter(), 0, (0.0, -1), (0.0, -1)
    for number in range(first, first + count):
        outcome, fault, seconds, memory = apart(number)
        outcomes[outcome] += 1
        slowest, largest = max(slowest, (seconds, number)), max(largest, (memory, number))
        if fault:
            failed += 1
            print(number, *drawn(number), f"{seconds:.1f} s, {memory:.0f} MB:", fault, flush=True)
    print(dict(outcomes), f"{failed} failed of {count}")
    print(f"slowest {slowest[0]:.1f} s ({slowest[1]}), largest {largest[0]:.0f} MB ({largest[1]})")
    return failed


if __name__ == "__main__":
    sys.exit(bool(main(*map(int, sys.argv[1:]))))
