"""Settings on structured inputs whose errors are known from two other programs.

The numbers, in ``structured.toml``, were computed before this library had the theory, by
trapezoidal rules and by tensor grids of points in all directions, which agree to the digits
printed; and they were simulated at d = 500 to 1200.
"""

import tomllib
from pathlib import Path

import numpy as np

import replica

PLUS = np.array([1, 1]) / np.sqrt(2)


def along(function, *weights):
    """A target that is a function of one combination of the coordinates."""
    name = f"{function.__name__} of {weights}"
    return replica.MultiIndex(
        lambda *z: function(sum(w * x for w, x in zip(weights, z, strict=True))), len(weights), name
    )


def mixture(means, covariances=None, fractions=None):
    """A mixture, of covariances given by their diagonals."""
    if covariances is not None:
        covariances = [np.diag(np.array(c, float)) for c in covariances]
    return replica.GaussianMixture(means=means, covariances=covariances, fractions=fractions)


CLASSES = "classes:1,-1"
# What is trained; alpha, lam, beta.
SETTINGS = {
    1: (dict(student="tanh", target=CLASSES, alpha0=1, eta=2, inputs=mixture([[1], [-1]])),
        (2, 0.05, 1)),
    2: (dict(student="relu", target=along(np.sin, *PLUS), alpha0=3, eta=1.5,
             inputs=mixture([[1.5, 0], [-1.5, 0]])), (1.5, 0.1, 1)),
    3: (dict(student="softplus", target=along(np.tanh, *PLUS), alpha0=2, eta=3,
             inputs=mixture(np.zeros((2, 2)), [[6, 1], [1, 6]])), (2, 0.02, 1)),
    4: (dict(student="relu", target=along(np.sin, 0.6, 0.0, 0.8), alpha0=0.5, eta=1.5,
             inputs=mixture(np.zeros((2, 3)), [[3, 1, 1], [1, 11, 1]], [0.3, 0.7])), (2, 0.1, 2)),
    5: (dict(student="tanh", target="relu", alpha0=20, eta=0.7, inputs=mixture([[0]], [[5]])),
        (1, 0.05, 0.5)),
    6: (dict(student="relu", target=CLASSES, alpha0=0.3, eta=3,
             inputs=mixture([[1.2, 0], [-0.4, 0.5]], [[3, 1], [1, 1.5]], [0.3, 0.7])),
        (2, 0.1, 1)),
    7: (dict(student="softplus", target=along(np.sin, *PLUS), alpha0=5, eta=2, noise=0.2,
             inputs=mixture([[2, 0], [-0.3, 0]], [[1, 1], [1, 4]], [0.25, 0.75])), (1, 0.03, 1)),
    8: (dict(student="relu", target=along(np.tanh, *PLUS), alpha0=0.3, eta=3,
             inputs=mixture([[0, 0]], [[7, 1]])), (1, 0.05, 2)),
    9: (dict(student="tanh", target=CLASSES, alpha0=0.3, eta=4,
             inputs=mixture([[0.7, 0], [0, -0.7]], [[4, 1], [1, 4]], [0.4, 0.6])), (3, 0.02, 1)),
    10: (dict(student="relu", target="relu", alpha0=3, eta=2, noise=0.1,
              inputs=mixture([[0], [0]], [[9], [1]])), (2, 0.1, 0.5)),
}  # fmt: skip
KNOWN = tomllib.loads(Path(__file__).with_suffix(".toml").read_text())
ERRORS, SPIKES, GAUSSIAN_ROWS = (
    {int(number): numbers for number, numbers in KNOWN[name].items()}
    for name in ("errors", "spikes", "gaussian_rows")
)
SEVERAL_STEPS, LOGISTIC, READOUTS = (
    KNOWN[name] for name in ("several_steps", "logistic", "readouts")
)


def setting(number, **changes):
    """The step of a setting, with other values of some fields; alpha and lam, and beta."""
    of, (alpha, lam, beta) = SETTINGS[number]
    fields = of | changes
    if "steps" in changes:
        fields = {name: value for name, value in fields.items() if name not in ("alpha0", "eta")}
    return replica.GradientStep(**fields), dict(alpha=alpha, lam=lam), beta
