"""The points: what is computed, by the public interface alone, and how far it must agree.

A point is a way of measuring, the problem that it is measured on and the arguments, of which
``points.toml`` has all; its numbers are a dictionary of floats, lists and truth values.  Problems
are made when they are asked for.
"""

import tomllib
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import replica
from replica import Activation, GradientStep, Loss, MultiIndex, SpikedRandomFeatures

Numbers = dict[str, Any]


class Method(NamedTuple):
    """How far results agree, relative to the largest entry of each quantity.

    ``tolerance`` is what the same method reproduces on another processor.  Runs and numbers of
    threads are equal to the bit; instructions without AVX-512, and without AVX2, which change the
    order of sums, moved what a method has by a third of this or less.  ``accuracy`` is what the
    numbers are known to, whatever the method.  ``compare`` says which of the two holds:
    "accuracy" once the method is another than that of the frozen numbers.
    """

    tolerance: float
    accuracy: float
    compare: str = "tolerance"


METHODS = {
    # linear algebra on one table; 1e-10 of a 30-digit solution of the equations
    "ridge": Method(1e-12, 1e-10),
    # the same where the equations are nearly singular: thresholds, vanishing predictions
    "stiff ridge": Method(1e-11, 1e-10, "accuracy"),  # frozen before one group was compiled
    # the same of noisy labels of a step, whose law another rule integrates than when it was frozen:
    # averages over a batch settle to 1e-10, and change by some 1e-12
    "noisy step": Method(1e-12, 1e-10, "accuracy"),
    # iterated until the distance left is small; the tolerance of the quadrature
    "convex": Method(1e-10, 1e-6, "accuracy"),
    # of dozens of groups, which few steps are spent on
    "convex groups": Method(1e-8, 1e-6, "accuracy"),
    # on tensors of few nodes a spike, at the tolerance that these can meet
    "convex spikes": Method(1e-10, 1e-5, "accuracy"),
    # the bottom of a minimum, found by its slope: to 1e-9 where these were frozen
    "bias": Method(1e-10, 1e-8, "accuracy"),
    "convex bias": Method(1e-10, 1e-5, "accuracy"),
    # parameters where the slope of an interpolated curve vanishes, to about ten digits
    "optimum": Method(1e-11, 1e-8, "accuracy"),
    # implicit, but for differences of order eight of the tables
    "gradient": Method(1e-9, 1e-8),
    # continued in the complex plane; edges to rounding, x times the density to 1e-8
    "spectrum": Method(1e-11, 1e-8),
    # averages refined until they change by 1e-11
    "steps": Method(1e-12, 1e-10),
    "staircase": Method(1e-12, 1e-10),
}


class Point(NamedTuple):
    """``measure`` of what ``problem`` makes, with ``arguments``; slow takes more than a second."""

    method: str
    measure: Callable[..., Numbers]
    problem: Callable[[], Any]
    arguments: dict[str, Any]
    slow: bool = False

    def numbers(self) -> Numbers:
        """Those of today's code."""
        return self.measure(self.problem(), **self.arguments)


# Ways of measuring


def members(found: Any, *names: str) -> Numbers:
    """Some attributes of a result."""
    return {name: getattr(found, name) for name in names}


def solved(model: Any, **at: Any) -> Numbers:
    """Errors and losses of a point; for up to four groups the overlaps as well.

    m, theta and psi are coefficients of one fit, and known relative to the largest of them.
    """
    point = replica.solve(model, **at)
    names = ("test_error", "train_error", "loss_error", "train_loss")
    found = members(point, *names, "quadrature_error", "converged")
    if model.labels.binary:
        found["classification_error"] = point.classification_error
    if model.train_bias:
        found["trained_bias"] = point.trained_bias
    o = point.overlaps
    if point.converged and len(o.V2) <= 4:
        fit = np.concatenate([o.m, o.theta.ravel(), o.psi.ravel()])
        found |= {"V1": o.V1, "V2": o.V2, "Q1": o.Q1, "q2": o.q2, "coefficients": vanishing(fit)}
    return found


def curve(problem: Any, **grid: Any) -> Numbers:
    """Both errors over a grid."""
    found = replica.learning_curve(problem, **grid)
    return {name: found[name].values for name in ("test_error", "train_error")}


def parameters(model: Any) -> Numbers:
    """Spike and bulk after the step."""
    return members(model, "r", "c", "gamma")


def learned(model: Any, *, kappa: Any, **at: Any) -> Numbers:
    """The learned function and the target's at some kappa."""
    found = replica.learned_function(model, **at)
    names = ("mean", "variance", "target_mean", "target_variance")
    return {name: vanishing(getattr(found, name)(kappa)) for name in names}


def derivatives(problem: Any, **at: Any) -> Numbers:
    """Of both errors, in every parameter."""
    found = replica.gradient(problem, **at)
    sides = {"test": found.test_error, "train": found.train_error}
    return {f"{side} {name}": value for side, of in sides.items() for name, value in of.items()}


def bounded(problem: Any, *, kappa: Any = (), **options: Any) -> Numbers:
    """Bounds, and the functions that attain them at some kappa."""
    found = replica.bounds(problem, **options)
    numbers = members(found, "lower", "upper", "linear")
    if len(kappa):
        numbers["lower_function"] = found.lower_function(kappa)
        numbers["upper_function"] = found.upper_function(kappa)
    return numbers


def best_bounded(step: GradientStep) -> Numbers:
    """Bounds at the best rates."""
    return members(replica.best_bounds(step), "lower", "upper", "eta_lower", "eta_upper")


def best_lambda(model: Any, **at: Any) -> Numbers:
    """The best penalty."""
    return members(replica.optimal_lambda(model, **at), "lam", "test_error")


def best_eta(step: Any, **at: Any) -> Numbers:
    """The best rate, and the penalty that goes with it."""
    return members(replica.optimal_eta(step, **at), "lam", "eta", "test_error")


def eigenvalues(model: Any, *, alpha: float, x: Any) -> Numbers:
    """Sharp edges, atom, outliers and moments; the density at x, and both transforms."""
    found = replica.spectrum(model, alpha)
    s = found.stieltjes(np.array([0.3 + 0.2j, 2.0 + 1e-3j, -1.0]))
    numbers = members(found, "sharp", "atom", "outliers", "quadrature_error", "converged")
    numbers |= {"edges": found.edges[found.sharp], "density": found.density(x)}
    numbers |= {"stieltjes": vanishing([s.real, s.imag]), "companion": found.companion(-1.0).real}
    return numbers | {"moments": [found.moment(k) for k in range(3)]}


def calibrated(model: Any, *, kappa: Any, **at: Any) -> Numbers:
    """Stated probabilities and frequencies at some kappa."""
    point = replica.solve(model, loss="logistic", **at)
    return members(replica.calibration(point, kappa), "predicted", "frequency")


def rows(step: GradientStep) -> Numbers:
    """The rows after each of several steps."""
    names = ("r", "c", "gamma", "weight_cosines", "gradient_cosines")
    after = replica.after_each_step(step)
    return {name: vanishing([getattr(one, name) for one in after]) for name in names}


def climbed(target: str) -> Numbers:
    """The staircase of a target; directions up to their signs."""
    found = replica.staircase(target)
    return {
        "leaps": [stage.leap for stage in found.stages],
        "strengths": [x for stage in found.stages for x in stage.strengths],
        "explained": [stage.explained for stage in found.stages],
        "directions": vanishing(np.abs(found.directions)),
        "powers": vanishing(found.powers),
        "variance": found.variance,
    }


def moments(names: str, *, s: Any, c: float) -> Numbers:
    """Of activations: E sigma, E z sigma and the variance of the rest."""
    each = {name: replica.activation(name).moments(s, c)._asdict() for name in names.split()}
    return {f"{name} {k}": vanishing(x) for name, of in each.items() for k, x in of.items()}


def proximal(names: str, *, t0: Any, V: float) -> Numbers:
    """Of losses: values, proximal maps, scores and their slopes."""
    found, t0 = {}, np.asarray(t0)
    for name in names.split():
        of = replica.loss(name)
        score, slope, t = of.score(t0, np.full_like(t0, V))
        parts = {"value": of(np.ones_like(t0), t0), "proximal": t, "score": score, "slope": slope}
        found |= {f"{name} {part}": vanishing(x) for part, x in parts.items()}
    return found


def vanishing(values: Any) -> Any:
    """Zeros in the place of what is rounding of zero."""
    values = np.asarray(values, dtype=float)
    return np.where(np.abs(values) < 1e-13, 0.0, values)


# Problems


def srf(beta: float = 1.0, **fields: Any) -> SpikedRandomFeatures:
    """The spiked random features of a step."""
    return GradientStep(**fields).srf(beta=beta)


def network(beta: float = 1.0, row_norms: bool = True, **fields: Any) -> SpikedRandomFeatures:
    """The network of a step."""
    return GradientStep(**fields).network(beta=beta, row_norms=row_norms)


OWN = {  # functions of these names
    "leaky": Activation(lambda x: np.where(x > 0, x, 0.1 * x), kinks=[0.0], name="leaky"),
    "steep": Activation(lambda x: np.tanh(3 * x), name="steep"),
    "curved": replica.hermite([0, 1, 0.5, -0.2]),
    "plane": MultiIndex(lambda a, b: a + np.sin(a * b), dimension=2),
    "log_cosh": Loss(lambda t: np.logaddexp(t, -t), np.tanh, name="log-cosh"),
    "kinked": Loss(  # and not piecewise quadratic
        lambda t: np.abs(t) + 0.3 * np.sqrt(1 + t * t),
        lambda t: np.sign(t) + 0.3 * t / np.sqrt(1 + t * t),
        curvature=lambda t: 0.3 * (1 + t * t) ** -1.5,
        kinks=[0.0],
        name="kinked",
    ),
    "rounded": Loss(  # bends within .01
        lambda t: 1e-4 * (np.hypot(1, 100 * t) - 1),
        lambda t: t / np.hypot(1, 100 * t),
        name="rounded",
    ),
}
MAKERS = {
    "given": SpikedRandomFeatures, "step": GradientStep, "srf": srf, "network": network,
    "plain": lambda spec: spec,
}  # fmt: skip
MEASURES = {
    of.__name__: of
    for of in (
        *(solved, curve, parameters, learned, derivatives, bounded, best_bounded, best_lambda),
        *(best_eta, eigenvalues, calibrated, rows, climbed, moments, proximal),
    )
}


def own(fields: dict[str, Any]) -> dict[str, Any]:
    """Fields of the file, with functions in the place of their names."""
    return {name: OWN.get(x, x) if isinstance(x, str) else x for name, x in fields.items()}


def point(
    method: str, measure: str = "solved", at: Any = (), slow: bool = False, **problem: Any
) -> Point:
    """A point of the file."""
    ((kind, fields),) = problem.items()
    make = partial(MAKERS[kind], **own(fields))
    return Point(method, MEASURES[measure], make, own(dict(at)), slow)


POINTS = {
    name: point(**({} if method == "others" else {"method": method}) | entry)
    for method, entries in tomllib.loads(Path(__file__).with_suffix(".toml").read_text()).items()
    for name, entry in entries.items()
}
