"""Random points over all the ranges that are promised, and what a solution of one must keep to.

lambda in [1e-12, 1e6], alpha in [1e-3, 1e3], beta in [.05, 20] and eta in [0, 100], a tenth of them
at alpha = beta: ridge regression and other losses on the sRF after a step, and ridge regression on
the network itself after one step or several.  A point follows from its kind and a number.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

import replica

KINDS = "ridge", "losses", "networks"
SEED = 23
STUDENTS = "tanh", "erf", "sin", "relu", "gelu", "softplus", "sigmoid", "linear"
ODD_STUDENTS = "tanh", "erf", "sin", "linear"
TARGETS = "sin", "tanh", "relu", "linear", "he2", "sign"
READOUTS = 1.0, 1.0, 1.0, 1.0, -1.0, [-1.0, 1.0], [0.5, 1.5], [-1.0, 0.0, 2.0], "gaussian"
BIASES = 0.0, 0.0, 0.0, 1.0, [-0.5, 0.5]
STEPS = 1, 1, 1, 2, 3  # of a network
NOISES = 0.0, 1e-3, 0.1, 2.0
BINARY_NOISES = None, "flip:0.1", "probit"
REAL_NOISES = None, "outliers:0.1:9", "student:3:0.5"
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
REAL_LOSSES = "huber:0.5", "absolute", "quantile:0.3", LOG_COSH, KINKED_LOSS
MARGIN_LOSSES = "logistic", "hinge", "squared_hinge"
RESIDUALS = {"ridge": 1e-10, "losses": 1e-8, "networks": 1e-10}  # of what is said to converge
QUADRATURE_ERRORS = {"ridge": 1e-10, "losses": 1e-6, "networks": 1e-10}


@dataclass(frozen=True)
class Drawn:
    """A problem and a point of it."""

    kind: str
    fields: dict[str, Any]  # of the step
    beta: float
    alpha: float
    lam: float
    loss: Any

    def model(self) -> replica.SpikedRandomFeatures:
        """The model after the step."""
        step = replica.GradientStep(**self.fields)
        make = step.network if self.kind == "networks" else step.srf
        return make(beta=self.beta)

    def solve(self, model: replica.SpikedRandomFeatures, **options: Any) -> replica.Solution:
        """The point, solved by the library."""
        return replica.solve(model, alpha=self.alpha, lam=self.lam, loss=self.loss, **options)


def drawn(kind: str, number: int) -> Drawn:
    """The random problem and point of this kind and number."""
    draw = np.random.default_rng([SEED, KINDS.index(kind), number])

    def one_of(values: Any) -> Any:
        return values[draw.integers(len(values))]

    binary = kind == "losses" and draw.random() < 0.5  # labels +-1
    fields = dict(student=one_of(STUDENTS), noise=one_of(NOISES), readout=one_of(READOUTS))
    fields |= dict(alpha0=10 ** draw.uniform(-1.5, 2), eta=one_of([0, 1, 1, 1]))
    fields["eta"] *= 10 ** draw.uniform(-2, 2)
    loss = "square"
    if binary:
        fields |= dict(target="sign", noise=0.0, label_noise=one_of(BINARY_NOISES))
        loss = one_of(MARGIN_LOSSES)
    elif kind == "losses":
        fields |= dict(target=one_of(TARGETS[:-1]), label_noise=one_of(REAL_NOISES))
        loss = one_of(REAL_LOSSES)
    else:
        fields["target"] = one_of(TARGETS)
    if kind == "networks":
        fields |= network_fields(fields, one_of)
    elif kind == "losses":
        fields["train_bias"] = draw.random() < 0.05
    beta = 10 ** draw.uniform(np.log10(0.05), np.log10(20))
    alpha = beta if draw.random() < 0.1 else 10 ** draw.uniform(-3, 3)
    return Drawn(kind, fields, beta, alpha, 10 ** draw.uniform(-12, 6), loss)


def network_fields(fields: dict[str, Any], one_of: Any) -> dict[str, Any]:
    """What else is drawn of a network: several steps, of neurons of one kind; or biases, and values
    of the readout, of which only odd students without a bias may have a continuous law."""
    changed = dict(initialisation=one_of(["sphere", "sphere", "gaussian"]))
    steps, bias = one_of(STEPS), one_of(BIASES)
    if steps > 1:
        schedule = [(fields["alpha0"], fields["eta"])] * steps
        return changed | dict(alpha0=None, eta=None, steps=schedule, readout=1.0)
    if fields["readout"] == "gaussian" and (bias or fields["student"] not in ODD_STUDENTS):
        changed["readout"] = 1.0
    return changed | dict(bias=bias)


def broken(kind: str, point: replica.Solution) -> str:
    """What a solution does not keep to of what is promised: a checked answer, or NaN and a reason.
    Empty if it keeps to all."""
    errors = [point.test_error, point.train_error, point.loss_error, point.train_loss]
    if not point.converged:
        reason = point.status.value.startswith("not converged")
        return "" if reason and np.isnan(errors).all() else "an error without convergence"
    if not np.isfinite([*errors, *np.concatenate([part.ravel() for part in point.overlaps])]).all():
        return "NaN without a flag"
    if point.residual > RESIDUALS[kind] or point.quadrature_error > QUADRATURE_ERRORS[kind]:
        return "residual or quadrature error above its tolerance"
    binary = kind == "losses" and point.model.labels.binary
    sound = (
        point.test_error >= -1e-10,  # what a residual may leave of an exact zero
        point.train_error >= (0 if kind == "networks" else -1e-12),  # rounding of an exact zero
        -1e-9 <= point.train_loss <= point.loss_error + 1e-6,
        (point.overlaps.q2 >= 0).all(),
        not binary or 0 <= point.classification_error <= 1,
    )
    return "" if all(sound) else "an error or an overlap out of its range"
