"""Random points solved a second time, by code that shares nothing with the solver.

Ridge points by ``replica.reference`` in 20 digits, other losses by ``brute``, networks after one
step by section 16 of docs/theory.md as it stands.
"""

import numpy as np

import replica
from replica import reference
from replica.equivalence import table_of_size
from solvers.results import Array, ConvergenceError
from tests.oracles import equations_rows

from . import brute
from .random_points import Drawn

OFF = {"ridge": 1e-9, "losses": 1e-5, "networks": 1e-7}  # relative: further apart is an error
FUNCTIONS = {
    "tanh": np.tanh,
    "sin": np.sin,
    "relu": lambda x: np.maximum(x, 0),
    "linear": lambda x: x,
    "he2": lambda x: x * x - 1,
}


def distance(problem: Drawn, point: replica.Solution) -> tuple[float, bool] | None:
    """How far the test error, and of other losses the loss on a new sample, are from those of the
    second solution, relative to them, and whether that is too far; None where the second solver
    does not know the problem, or gives up."""
    second = {"ridge": by_reference, "losses": by_brute_force, "networks": as_it_stands}
    found = second[problem.kind](problem, point) if point.overlaps.V1.size == 1 else None
    if found is None:
        return None
    errors, own = found
    apart = np.abs(np.array([point.test_error, point.loss_error])[: len(errors)] / errors - 1)
    return float(apart.max()), bool((apart > OFF[problem.kind] + 5 * own).any())


def by_reference(problem: Drawn, point: replica.Solution) -> tuple[Array, Array] | None:
    """The errors, and their own relative accuracies: in 20 digits."""
    try:
        exact = reference.solve(point.model, alpha=problem.alpha, lam=problem.lam, digits=20)
    except (replica.InvalidArgument, ConvergenceError):
        return None
    return np.array([float(exact.test_error)]), np.zeros(1)


def as_it_stands(problem: Drawn, point: replica.Solution) -> tuple[Array, Array] | None:
    """As ``by_reference``, of a network after one step of equal neurons without a bias: by a plain
    iteration that starts at the point's V1 and V2."""
    step, start = point.model.step, (point.overlaps.V1.item(), point.overlaps.V2.item())
    if step.steps or np.any(step.bias.values) or step.readout.continuous is not None:
        return None
    drawn = {"gaussian": step.initialisation == "gaussian", "readout": step.readout.values[0]}
    try:
        rows = equations_rows.Rows(
            step.student, step.target, step.alpha0, step.eta, step.noise, **drawn
        )
        table = table_of_size(point.model, point.nodes)
        test, _ = equations_rows.solve(rows, table, problem.alpha, problem.lam, start=start)
    except (AssertionError, ValueError, np.linalg.LinAlgError):
        return None  # plain iteration did not settle
    return np.array([float(test)]), np.zeros(1)


def by_brute_force(problem: Drawn, point: replica.Solution) -> tuple[Array, Array] | None:
    """As ``by_reference``: on dense nodes, whose accuracy is the change from the last but one."""
    model, noise = point.model, str(problem.fields.get("label_noise"))
    known = isinstance(problem.loss, str) and problem.fields["student"] in FUNCTIONS
    if not known or noise.startswith(("student", "probit")) or model.train_bias:
        return None
    binary = model.labels.binary
    outliers = noise.startswith("outliers")
    of = brute.Problem(
        FUNCTIONS[problem.fields["student"]],
        None if binary else FUNCTIONS[problem.fields["target"]],
        binary,
        0.1 if noise.startswith("flip") else 0.0,
        ((0.9, model.noise), (0.1, model.noise + 9)) if outliers else ((1.0, model.noise),),
        float(model.r),
        float(model.c),
        float(model.gamma),
        model.beta,
        problem.alpha,
        problem.lam,
        problem.loss,
    )
    o = point.overlaps
    start = [float(np.ravel(part)[0]) for part in (o.V1, o.V2, o.m, o.theta, o.psi, o.Q1, o.q2)]
    found = brute.solve(of, start)
    if found is None:
        return None
    before, errors = (each[:2] for each in found)
    return errors, np.abs(errors / before - 1)
