"""The points: what is computed, by the public interface alone, and how far it must agree.

A point is a way of measuring, the problem that it is measured on and the arguments; its numbers
are a dictionary of floats, lists and truth values.  Problems are made when they are asked for.
"""

from collections.abc import Callable
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


def given(student: Any, target: Any, **fields: Any) -> Callable[[], SpikedRandomFeatures]:
    """Spiked random features as they are."""
    return lambda: SpikedRandomFeatures(student=student, target=target, **fields)


def step(student: Any, target: Any, **fields: Any) -> Callable[[], GradientStep]:
    """A step itself."""
    return lambda: GradientStep(student=student, target=target, **fields)


def srf(*names: Any, beta: float = 1.0, **fields: Any) -> Callable[[], SpikedRandomFeatures]:
    """The spiked random features of a step."""
    return lambda: step(*names, **fields)().srf(beta=beta)


def network(
    *names: Any, beta: float = 1.0, row_norms: bool = True, **fields: Any
) -> Callable[[], Any]:
    """The network of a step."""
    return lambda: step(*names, **fields)().network(beta=beta, row_norms=row_norms)


def plain(spec: Any) -> Callable[[], Any]:
    """What is no problem but a name, or several."""
    return lambda: spec


LEAKY = Activation(lambda x: np.where(x > 0, x, 0.1 * x), kinks=[0.0], name="leaky")
STEEP = Activation(lambda x: np.tanh(3 * x), name="steep")
CURVED = replica.hermite([0, 1, 0.5, -0.2])
PLANE = MultiIndex(lambda a, b: a + np.sin(a * b), dimension=2)
LOG_COSH = Loss(lambda t: np.logaddexp(t, -t), np.tanh, name="log-cosh")
KINKED = Loss(  # and not piecewise quadratic
    lambda t: np.abs(t) + 0.3 * np.sqrt(1 + t * t),
    lambda t: np.sign(t) + 0.3 * t / np.sqrt(1 + t * t),
    curvature=lambda t: 0.3 * (1 + t * t) ** -1.5,
    kinks=[0.0],
    name="kinked",
)
ROUNDED = Loss(  # bends within .01
    lambda t: 1e-4 * (np.hypot(1, 100 * t) - 1), lambda t: t / np.hypot(1, 100 * t), name="rounded"
)

PUBLISHED = dict(student="tanh", target="sin", alpha0=20, eta=3.0)
THREE = dict(student="tanh", target="sin", steps=[(2, 1)] * 3)
SINE = dict(student="tanh", target="sin", r=1.1, c=1.0, gamma=0.97)
WAVE = dict(student="tanh", target="sin", r=1.5, c=1.3, gamma=0.8)
SIGN = WAVE | dict(target="sign")
FLIPPED = SIGN | dict(label_noise="flip:0.1")
OUTLIERS = SINE | dict(noise=0.05, label_noise="outliers:0.1:9")
STUDENT = SINE | dict(beta=1.5, label_noise="student:3:0.3")
TEACHER = dict(student="relu", target="3*he1", r=0.8, c=1.0, gamma=0.8, label_noise="logistic")
GELU = dict(student="gelu", target="relu", r=0.75, c=1.3, gamma=0.58, beta=0.25)
BIASED = dict(
    student="erf", target="relu", r=0.11669, c=1.58311, gamma=0.584988, beta=2.0, train_bias=True
)
RAGGED = dict(
    student="sigmoid", target="sin", r=[0.3, 1.2, -0.7], c=[1.0, 0.6, 2.0], bias=[0, -1, 0.5],
    fractions=[0.2, 0.5, 0.3], gamma=0.7, beta=1.3, noise=0.1,
)  # fmt: skip
SPIKES = dict(
    student="tanh", target=PLANE, r=[[1, 0.5], [1, -0.5]], c=1.0, gamma=[[0.9, 0], [0, 1.0]],
    noise=0.1,
)  # fmt: skip

# Of (problem, alpha, lam).  Those of docs/theory.md 13, 15 and 17 are named by section.
RIDGE = {
    **{f"13 curve {alpha}": (srf(**PUBLISHED), alpha, 0.1) for alpha in (0.2, 0.9, 1.6, 2.3, 3.0)},
    # the ends of the range
    **{f"threshold {beta}": (given(**SINE, beta=beta), beta, 1e-12) for beta in (0.5, 1.0, 2.0)},
    "small penalty": (given(**SINE, beta=0.5, noise=0.2), 0.3, 1e-4),
    "large penalty": (given(**SINE, beta=2.0, noise=0.2), 3.0, 1e4),
    "many samples": (given("sin", "tanh", r=1.2, c=1.1, gamma=1.0), 1e3, 1e6),
    "few samples": (given("tanh", "sign", r=1.2, c=1.1, gamma=0.99, beta=20.0), 1e-3, 1e-3),
    "population step": (srf(**PUBLISHED | dict(alpha0=np.inf)), 1.0, 0.01),
    "random features": (srf("relu", "relu", alpha0=3, eta=0.0), 2.0, 0.1),
    "no spike": (given(**SINE | dict(r=0.0, gamma=0.0)), 1.5, 0.1),
    "no cosine": (given(**SINE | dict(gamma=0.0)), 1.5, 0.1),
    "cosine 1": (given("erf", "sign", r=1.3, c=1.1, gamma=1.0, beta=1.2, noise=0.1), 1.4, 0.05),
    "nearly 1": (given("erf", "relu", r=1.3, c=1.1, gamma=1 - 1e-9, beta=1.2), 1.4, 0.05),
    # students and targets
    "relu-relu": (srf("relu", "relu", alpha0=3, eta=1.0), 2.0, 0.1),
    "relu-tanh": (given("relu", "tanh", r=8.0, c=5.0, gamma=0.8), 0.9, 1e-8),
    "erf-tanh": (given("erf", "tanh", r=0.6, c=1.4, gamma=0.5, beta=1.7, noise=0.2), 0.9, 0.05),
    "sigmoid-sign": (given("sigmoid", "sign", r=2.0, c=0.7, gamma=-0.6, beta=2.5), 4.0, 0.02),
    "softplus-relu": (srf("softplus", "relu", alpha0=2, eta=1.0), 0.7, 0.01),
    "gelu-sin": (srf("gelu", "sin", beta=0.5, alpha0=0.5, eta=4.0), 3.0, 0.03),
    "sin-hermite": (srf("sin", "he1+he2/2", alpha0=5, eta=1.0, noise=0.1), 1.2, 0.3),
    "linear": (given("linear", "linear", r=0.5, c=1, gamma=0.6, noise=0.25), 1.7, 0.3),
    "hermite-tanh": (given(CURVED, "tanh", r=0.7, c=0.9, gamma=0.6), 1.1, 0.05),
    "own functions": (given(LEAKY, STEEP, r=1.0, c=1.2, gamma=0.7, noise=0.1), 1.5, 0.05),
    "outliers": (given(**OUTLIERS), 2.0, 17.3),
    # groups and spikes
    "three readouts": (
        srf(**PUBLISHED | dict(alpha0=3, eta=1.0, noise=0.1, readout=[-1, 0.5, 2])), 2.0, 0.01),
    "four readouts": (srf(**PUBLISHED, readout=[-1.5, -0.5, 0.5, 1.5]), 0.9, 0.1),
    "opposite readouts": (srf(**PUBLISHED, readout=[-1, 1]), 0.9, 0.1),
    "rademacher": (srf("relu", "sin", alpha0=2, eta=1.0, readout="rademacher"), 1.5, 0.05),
    "shares": (srf("sigmoid", "tanh", alpha0=2, eta=3.0, readout=([2, -1], [0.3, 0.7])), 1.5, 0.01),
    "gaussian readout": (srf(**PUBLISHED, readout="gaussian"), 0.9, 0.1),
    "ragged groups": (given(**RAGGED), 0.9, 0.1),
    "biases, intercept": (
        srf("sigmoid", "relu", beta=1.2, alpha0=2, eta=2.0, bias=[-1, 1], intercept=True),
        1.5, 0.05),
    "finite dimension": (
        given("relu", "tanh", r=[0.3713] * 2, c=[0.7531, 0.9], gamma=0.8157, bias=[-1, 1],
              dimension=300.0),
        2.0, 0.02),
    "two spikes": (given(**SPIKES), 1.3, 0.02),
    "expression": (srf("relu", "z1 + z1*z2", alpha0=2, eta=1.0, noise=0.1), 1.5, 0.1),
    "13 two steps": (srf(**THREE | dict(steps=[(2, 1)] * 2)), 1.0, 0.05),
    "13 three steps": (srf(**THREE), 1.0, 0.05),
    # the network itself
    **{
        f"15 {target} {eta}": (
            network("tanh", target, row_norms=False, alpha0=alpha0, eta=eta), alpha, lam)
        for target, alpha0, eta, alpha, lam in [
            ("sin", 0.3, 6.0, 2.0, 0.01), ("tanh", 0.3, 6.0, 1.0, 0.1),
            ("tanh", 0.5, 1.0, 3.0, 0.01), ("sin", 0.3, 3.0, 1.0, 0.01),
            ("tanh", 0.5, 20.0, 2.0, 0.01),
        ]
    },
    "16 row norms": (network("erf", "he1", beta=2.0, alpha0=20, eta=3.0), 3.0, 0.03),
    "network": (network(**PUBLISHED), 0.9, 0.1),
    "network of no noise": (network(**PUBLISHED | dict(alpha0=np.inf, eta=4.0)), 5.0, 0.01),
    "17 network readouts": (
        network("tanh", "sin", beta=1.5, row_norms=False, alpha0=0.5, eta=2.0, readout=[-1.5, 0.5]),
        2.0, 0.05),
    "network readouts": (network(**PUBLISHED | dict(alpha0=0.3, readout=[0.5, 1.5])), 2.0, 0.05),
}  # fmt: skip

# Of (problem, alpha, lam, loss)
CONVEX = {
    # labels +-1
    "13 logistic": (given(**SIGN), 2.0, 0.05, "logistic"),
    "hinge": (given(**SIGN), 2.0, 0.05, "hinge"),
    "squared hinge": (given(**SIGN), 2.0, 0.05, "squared_hinge"),
    "absolute of signs": (given(**SIGN), 0.9, 0.05, "absolute"),
    "square flipped": (given(**FLIPPED), 2.0, 0.05, "square"),
    "logistic flipped": (given(**FLIPPED, beta=0.6), 0.9, 0.05, "logistic"),
    "logistic teacher": (given(**TEACHER), 2.0, 10.0, "logistic"),
    "wide predictions": (given(**TEACHER), 2.0, 1e-4, "logistic"),
    "hinge of a teacher": (given(**TEACHER), 0.9, 0.05, "hinge"),
    "probit": (
        given(**TEACHER | dict(student="erf", label_noise="probit")), 1.5, 0.2, "squared_hinge"),
    "separable hinge": (given(**SIGN), 2.0, 1e-6, "hinge"),
    "separable logistic": (given(**SIGN), 0.5, 1e-8, "logistic"),
    "hinge, large penalty": (given(**SIGN), 2.0, 1e5, "hinge"),
    "two sides": (
        given("tanh", "he2", r=1.1, c=1.0, gamma=0.8, label_noise="flip:0"), 0.53, 9.1256, "hinge"),
    "spike nearly decides": (given(**SIGN | dict(gamma=0.999)), 2.0, 0.05, "logistic"),
    "spike decides": (given(**FLIPPED | dict(gamma=1.0)), 2.0, 10.0, "hinge"),
    "vanishing features": (given("relu", "sign", r=12.0, c=1.2, gamma=0.8), 1.5, 0.1, "huber:0.5"),
    "hinge of groups": (
        srf("erf", "sign", alpha0=5.0, eta=1.5, readout=[0.5, 1.0, 1.5], intercept=True),
        1.0, 0.1, "squared_hinge"),
    # real labels
    "huber outliers": (given(**OUTLIERS), 0.9, 0.05, "huber:0.5"),
    "absolute outliers": (given(**OUTLIERS), 0.9, 0.05, "absolute"),
    "quantile outliers": (given(**OUTLIERS), 0.9, 0.05, "quantile:0.3"),
    "quiet huber": (given(**WAVE), 2.0, 1.0, "huber:0.5"),
    "quiet absolute": (given(**WAVE), 2.0, 10.0, "absolute"),
    "plateau huber": (given(**GELU), 0.3, 80.0, "huber:0.5"),
    "plateau absolute": (given(**GELU), 0.3, 1e3, "absolute"),
    "plateau steep": (given(**GELU | dict(target=STEEP)), 0.3, 1e3, "huber:0.5"),
    "huber of groups": (
        given("relu", "relu", r=[0.8, -0.4, 1.2], c=[1, 1.2, 0.9], gamma=0.7, noise=0.1),
        0.9, 0.05, "huber:0.5"),
    "absolute, intercept": (
        given("relu", "softplus", r=0.5, c=1.0, gamma=0.9, noise=0.1, intercept=True),
        0.9, 0.05, "absolute"),
    "huber, finite dimension": (given(**SINE, noise=0.05, dimension=300.0), 0.9, 0.05, "huber:0.5"),
    "huber student": (given(**STUDENT), 0.9, 0.05, "huber:0.5"),
    "quantile student": (given(**STUDENT), 2.0, 1.0, "quantile:0.3"),
    "log-cosh": (given(**OUTLIERS), 2.0, 0.1, LOG_COSH),
    "log-cosh student": (given(**STUDENT), 0.9, 0.05, LOG_COSH),
    "rounded": (given(**WAVE), 5.0, 3.0, ROUNDED),
    "kinked": (given("tanh", "tanh", r=3.2, c=1.3, gamma=0.75, noise=0.1), 0.44, 2e-4, KINKED),
    # the network itself
    "huber of a network": (
        network("tanh", "sin", alpha0=0.5, eta=2.0, noise=0.1), 0.9, 0.05, "huber:0.5"),
    "logistic of a network": (
        network("tanh", "sign", alpha0=0.5, eta=2.0, label_noise="flip:0.1"), 2.0, 0.1, "logistic"),
}  # fmt: skip

KAPPA = [-1.0, 0.3, 2.0]
X = [0.02, 0.1, 0.3, 1.0, 3.0]
OTHERS = {
    # Less well known, or slow
    "threshold with noise": Point(
        "stiff ridge", solved, given(**SINE, beta=2.0, noise=0.5), dict(alpha=1.0, lam=1e-12)),
    "steep": Point(
        "stiff ridge", solved, given("sin", "sign", r=8.0, c=5.0, gamma=0.8, beta=1.3, noise=0.1),
        dict(alpha=0.9, lam=1e-8)),
    "threshold of groups": Point("stiff ridge", solved, given(**RAGGED), dict(alpha=1.3, lam=1e-9)),
    "gaussian readout of relu": Point(
        "ridge", solved, srf("relu", "relu", alpha0=5, eta=1.5, readout="gaussian", intercept=True),
        dict(alpha=1.5, lam=0.1), slow=True),
    "network with noise": Point(
        "noisy step", solved,
        network("tanh", "sin", beta=0.5, alpha0=0.3, eta=3.0, noise=0.1, step_noise=0.5,
                intercept=True),
        dict(alpha=0.3, lam=0.01), slow=True),
    "huber of spikes": Point(
        "convex spikes", solved, given(**SPIKES),
        dict(alpha=0.9, lam=0.05, loss="huber:0.5", quadrature_tol=1e-5)),
    "huber of a gaussian readout": Point(
        "convex groups", solved, srf("tanh", "sign", alpha0=1.0, eta=1.5, readout="gaussian"),
        dict(alpha=2.0, lam=1.0, loss="huber:0.5"), slow=True),
    # A trained bias
    "trained bias": Point("bias", solved, given(**BIASED), dict(alpha=2.231, lam=0.089)),
    "trained bias of relu": Point(
        "bias", solved, srf("relu", "tanh", alpha0=3, eta=1.0, train_bias=True),
        dict(alpha=1.5, lam=0.1), slow=True),
    "trained bias, logistic": Point(
        "convex bias", solved, given("relu", "sign", r=1.5, c=1.3, gamma=0.8, train_bias=True),
        dict(alpha=2.0, lam=0.1, loss="logistic"), slow=True),
    # Not converged
    "flagged quadrature": Point(
        "ridge", solved, srf(**PUBLISHED), dict(alpha=1.0, lam=0.1, quadrature_tol=1e-20)),
    "flagged bias": Point(
        "bias", solved, given("softplus", "linear", r=1, c=1, gamma=0.9, train_bias=True),
        dict(alpha=2.0, lam=0.1)),
    # Curves
    "curve of samples": Point(
        "ridge", curve, srf(**PUBLISHED), dict(alpha=[0.2, 0.9, 3.0], lam=[1e-3, 0.1])),
    "curve of rates": Point(
        "ridge", curve, step(**PUBLISHED),
        dict(alpha=[1.0], lam=[0.1], beta=[0.5, 1.0], eta=[0, 1, 6])),
    "curve of penalties": Point(
        "convex", curve, given(**SIGN), dict(alpha=[1.0, 2.0], lam=[0.03, 0.1], loss="logistic")),
    # After the steps: docs/theory.md 13
    **{
        f"13 features {student}-{target}": Point(
            "ridge", parameters, srf(student, target, alpha0=alpha0, eta=eta), {})
        for student, target, alpha0, eta in [
            ("tanh", "sin", 20, 3.0), ("tanh", "tanh", 0.5, 1.0), ("relu", "relu", 3, 1.0),
            ("relu", "tanh", 3, 1.0),
        ]
    },
    "features of flipped signs": Point(
        "ridge", parameters, srf("gelu", "sign", alpha0=2, eta=1.5, label_noise="flip:0.1"), {}),
    "13 steps": Point("steps", rows, step(**THREE), {}),
    "steps of two directions": Point(
        "steps", rows, step("relu", "z1 + z1*z2", steps=[(2, 1), (2, 1)], noise=0.1), {}),
    # What can be learned, and what is
    "bounds": Point("ridge", bounded, srf(**PUBLISHED), dict(kappa=KAPPA)),
    "bounds of rates": Point("ridge", bounded, step(**PUBLISHED), dict(eta=[1.0, 3.0, 10.0])),
    "bounds of groups": Point(
        "ridge", bounded, srf(**PUBLISHED, readout=[-1, 0.5, 2], intercept=True),
        dict(kappa=KAPPA)),
    "bounds of a network": Point("ridge", bounded, network(**PUBLISHED), {}),
    "best bounds": Point("optimum", best_bounded, step(**PUBLISHED), {}),
    "best penalty": Point("optimum", best_lambda, srf(**PUBLISHED), dict(alpha=1.0)),
    "best penalty, flipped": Point(
        "optimum", best_lambda, given(**FLIPPED), dict(alpha=1.0, lam=(1e-2, 1e3)), slow=True),
    "best rate": Point("optimum", best_eta, step(**PUBLISHED), dict(alpha=1.0, beta=1.0)),
    "best rate of a network": Point(
        "optimum", best_eta, network(**PUBLISHED), dict(alpha=1.0, lam=0.1)),
    "gradient": Point(
        "gradient", derivatives, step(**PUBLISHED), dict(alpha=0.9, lam=0.1, beta=1.0)),
    "gradient of groups": Point(
        "gradient", derivatives,
        step("sigmoid", "relu", alpha0=2, eta=2.0, bias=[-1, 1], intercept=True),
        dict(alpha=1.5, lam=0.05, beta=1.2)),
    "gradient of an sRF": Point(
        "gradient", derivatives, given(**SINE, noise=0.2), dict(alpha=1.0, lam=1e-3)),
    "learned": Point("ridge", learned, srf(**PUBLISHED), dict(alpha=1.0, lam=0.1, kappa=KAPPA)),
    "learned by groups": Point(
        "ridge", learned, srf(beta=1.3, **PUBLISHED | dict(alpha0=1.0, readout=[-1, 0.5, 2])),
        dict(alpha=1.0, lam=0.1, kappa=KAPPA)),
    "calibration": Point(
        "convex", calibrated, given(**SIGN), dict(alpha=2.0, lam=0.05, kappa=KAPPA)),
    # Eigenvalues
    "spectrum": Point("spectrum", eigenvalues, srf(beta=2.0, **PUBLISHED), dict(alpha=3.0, x=X)),
    "spectrum of two bulks": Point(
        "spectrum", eigenvalues, srf(beta=2.0, **PUBLISHED | dict(eta=0.0)), dict(alpha=3.0, x=X)),
    "spectrum with tails": Point(
        "spectrum", eigenvalues, given("gelu", "sin", r=0.45, c=1.04, gamma=0.9, beta=3.2),
        dict(alpha=0.24, x=X), slow=True),
    "spectrum of groups": Point(
        "spectrum", eigenvalues, srf(**PUBLISHED | dict(eta=2.0, readout=[-1, 0.5, 1.5])),
        dict(alpha=2.0, x=X), slow=True),
    "spectrum of a network": Point(
        "spectrum", eigenvalues, network("tanh", "sign", beta=0.77, alpha0=0.26, eta=0.6),
        dict(alpha=1.4, x=X)),
    # Which directions are learned
    **{
        f"staircase {target}": Point("staircase", climbed, plain(target), {})
        for target in (
            "z1 + z1*z2 + z1*z2*z3", "he2(z1) + 0*z2", "(4*z1 + z1**2 + z2)/2",
            "z1 + z1*he2(z2) + z1*z2*he3(z3)/6", "tanh(z1)*tanh(z2)",
        )
    },
    # Functions
    "moments": Point(
        "ridge", moments,
        plain("tanh erf sin relu sign sigmoid gelu softplus he1+he3/6"),
        dict(s=[-2.0, 0.0, 0.7], c=1.3)),
    "losses": Point(
        "ridge", proximal,
        plain("square huber:0.5 absolute quantile:0.3 logistic hinge squared_hinge"),
        dict(t0=[-3.1, -0.2, 0.4, 2.3], V=0.7)),
}  # fmt: skip

SLOW = ("plateau absolute", "plateau steep", "hinge, large penalty")  # followed along a path

POINTS = OTHERS | {
    name: Point(
        method, solved, problem, dict(zip(("alpha", "lam", "loss"), at, strict=False)), name in SLOW
    )
    for method, table in (("ridge", RIDGE), ("convex", CONVEX))
    for name, (problem, *at) in table.items()
}
