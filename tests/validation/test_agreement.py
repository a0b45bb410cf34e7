"""Theory and simulation agree: problems of every kind, laws of labels, losses, networks.

Every comparison is of `validation.compare`: within 4 standard errors and a finite-size
allowance, whose measured values its docstring gives (20/d relative for spiked random features;
networks without a theory of their own keep up to 6 % from their sRF at any size).
"""

from dataclasses import replace

import numpy as np
import pytest

from replica import GradientStep, MultiIndex, SpikedRandomFeatures
from replica.observables import solve_grid
from tests.problems import FLIPPED, OUTLIERS, PUBLISHED
from tests.validation.test_conditional_gaussian import MODEL as TWO_GROUPS
from validation import compare
from validation.comparisons.agreement_checks import ALLOWANCE

WIDE = SpikedRandomFeatures(
    student="tanh", target="sin", r=1.0, c=1.2, gamma=0.8, beta=1.5, noise=0.25
)
ONE_GROUP = {
    "wide": WIDE,
    "narrow": SpikedRandomFeatures(
        student="erf", target="tanh", r=1.5, c=1.0, gamma=0.6, beta=0.5, noise=0.1
    ),
    "random features": SpikedRandomFeatures(
        student="tanh", target="tanh", r=0, c=1.0, gamma=0, noise=0.1
    ),
    "not odd": SpikedRandomFeatures(student="relu", target="relu", r=0.7, c=1.1, gamma=0.8),
    "noisy features": replace(WIDE, student="softplus", feature_noise=0.3),
}

PLANE = MultiIndex(lambda a, b: a + np.sin(a * b), dimension=2, name="z1 + sin(z1 z2)")
TWO_SPIKES = SpikedRandomFeatures(
    student="tanh", target=PLANE, r=[[1, 0.5], [1, -0.5]], c=1.0, gamma=[[0.9, 0], [0, 0.8]]
)
TANH = dict(student="tanh", target="sin", alpha0=3, eta=1.5)
RELU = dict(student="relu", target="relu", alpha0=3)
STEPS = {
    "four readouts": GradientStep(**TANH, readout=[-1.5, -0.5, 0.5, 1.5]),
    "gaussian readout": GradientStep(**TANH, readout="gaussian"),
    "two signs": GradientStep(**TANH, readout="rademacher"),
    "biases": GradientStep(**RELU, eta=3.0, bias=[-1, 1]),  # |m| = 2; see compare on larger ones
    "intercept": GradientStep(student="tanh", target="softplus", alpha0=3, eta=1, intercept=True),
}
GENERAL = {name: step.srf(beta=1.0) for name, step in STEPS.items()} | {
    "two spikes": replace(TWO_SPIKES, r=[[1, 0.5], [1, -0.5], [-0.5, 1], [0.3, 0.3]])
}
TRAINED = {
    f"trained bias of {student}": GradientStep(
        student=student, target="softplus", alpha0=3, eta=1.0, train_bias=True
    ).srf(beta=1.0)
    for student in ("relu", "tanh")
}

SIGN = SpikedRandomFeatures(student="tanh", target="sign", r=1.5, c=1.3, gamma=0.8)
TEACHER = replace(SIGN, target="3*he1", c=1.0, label_noise="logistic", intercept=True)
STUDENT = GradientStep(
    student="tanh", target="sin", alpha0=5, eta=2.0, readout=[-1.5, 0.5], label_noise="student:3:.3"
).srf(beta=1.3)
CLEAN = replace(SIGN, target="sin", label_noise="outliers:0.1:9")  # no noise but the outliers
EVERY_LOSS = [
    (OUTLIERS, "huber:0.3"), (OUTLIERS, "absolute"), (OUTLIERS, "quantile:0.4"),
    (SIGN, "logistic"), (SIGN, "hinge"), (SIGN, "squared_hinge"), (CLEAN, "absolute"),
]  # fmt: skip
LAWS = [(STUDENT, "huber:0.5"), (SIGN, "square"), (FLIPPED, "logistic"), (TEACHER, "logistic")]


def runs(problems, slow=(), **options):
    """Of each problem one, with the same options."""
    marks = {name: [pytest.mark.slow] * (name in slow) for name in problems}
    return [pytest.param(problems[name], options, id=name, marks=marks[name]) for name in problems]


def with_losses(losses, **options):
    """Of each pair of model and loss one."""
    return [pytest.param(model, options | dict(loss=of), id=of) for model, of in losses]


GAUSSIAN = dict(
    alpha=[0.5, 2], lam=[0.02, 0.2], dimension=200, seeds=10, rng=0, simulated="gaussian"
)
RUNS = [
    # An allowance of 5 % and standard errors of 2 to 5 %; the biases of the test error that 100
    # seeds showed were up to 5 % at d = 200 and up to 3 % at d = 400.
    *runs(ONE_GROUP, alpha=[0.5, 2], lam=[0.01, 0.1], dimension=400, seeds=10, rng=0),
    # 6.7 %, and 1 to 3 %
    *runs(
        GENERAL, ("two spikes",), alpha=[0.6, 2.0], lam=[0.02, 0.2], dimension=300, seeds=8, rng=1
    ),
    # 13 %
    *with_losses(EVERY_LOSS + LAWS, alpha=[0.5, 2.0], lam=0.1, dimension=150, seeds=8, rng=1),
    # The conditional Gaussian model, (3.1): 10 %, and 2 to 5 %
    *runs(
        {"gaussian two groups": TWO_GROUPS, "gaussian wide": WIDE, "gaussian spikes": TWO_SPIKES,
         "gaussian intercept": replace(TWO_GROUPS, target="softplus", intercept=True)},
        ("gaussian spikes",), **GAUSSIAN,
    ),
    *runs({"gaussian step": GradientStep(**TANH)}, beta=1.0, **GAUSSIAN),
    *with_losses(
        [(FLIPPED, "logistic")],
        alpha=1.0, lam=0.1, dimension=120, seeds=8, rng=3, simulated="gaussian",
    ),
]  # fmt: skip
AT_SIZE = [
    # Thirty seeds know the errors as well as ten at twice the size, which takes over twice as long:
    # 2.5 %, as there.  With fewer than ten, standard errors are themselves too uncertain for 64 of
    # them to stay within 4.
    *with_losses(
        EVERY_LOSS, alpha=[0.5, 2.0], lam=0.05, dimension=400, seeds=30, rng=2, allowance=0.025
    ),
    # Groups with the price of m at that d.  At lam = 0.02 single draws spread by 15 % with a tail,
    # and five seeds can agree among each other on too low a mean.
    *runs(
        GENERAL, alpha=[0.6, 2.0], lam=[0.02, 0.2], dimension=400, seeds=30, rng=4, allowance=0.025
    ),
    # A bias common to all neurons, minimised over in theory and in every draw
    *runs(TRAINED, alpha=1.5, lam=0.1, dimension=200, seeds=6, rng=3),
]  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize(("problem", "options"), RUNS)
def test_theory_and_simulation_agree(problem, options):
    """Within what is allowed: training errors that are nearly 0 vary by a quarter of themselves."""
    found = compare(problem, **options)
    assert found.allowance == ALLOWANCE / options["dimension"]
    near = [check.within(found.allowance, options["seeds"]) for check in found.checks.values()]
    assert np.all(near), found.document()
    losses = {"loss_error", "train_loss"} if options.get("loss", "square") != "square" else set()
    signs = {"classification_error"} if problem.labels.binary else set()
    assert {*found.checks} == {"test_error", "train_error"} | losses | signs


@pytest.mark.slow
@pytest.mark.parametrize(("problem", "options"), AT_SIZE)
def test_theory_and_simulation_agree_at_size(problem, options):
    found = compare(problem, **options)
    assert not found.disagrees, found.document()  # training errors that all but vanish are apart


@pytest.mark.slow
@pytest.mark.parametrize(
    ("step", "points"),
    [
        (  # nearly dependent biases
            GradientStep(student="relu", target="tanh", alpha0=3, eta=1, bias=[-1, 1]),
            {"alpha": 2.0, "lam": [0.02, 0.2]},
        ),
        (
            GradientStep(student="tanh", target="he1+he3/2", alpha0=10, eta=3, readout="gaussian"),
            {"alpha": [0.5, 2.0], "lam": 0.1},
        ),
    ],
)
def test_large_overlaps_cost_at_finite_size(step, points):
    """Where m is large, the theory at the simulated dimension agrees and its limit does not."""
    size = dict(dimension=300, seeds=8, rng=7)
    model = step.srf(beta=1.0)
    found = compare(model, **points, **size)
    assert found.agrees
    limit = solve_grid(model, **points, grids={}).columns["test_error"]
    check = found.checks["test_error"]
    wrong = check._replace(theory=limit.reshape(check.theory.shape))
    assert not wrong.agrees(found.allowance, size["seeds"]).all()


# The network itself

NETWORK = dict(student="tanh", target="tanh", alpha0=0.5, eta=3.0)
SINE = NETWORK | dict(target="sin")
CONTAMINATED = GradientStep(**SINE | dict(alpha0=2.0, label_noise="outliers:0.1:4"))
MANY = dict(dimension=500, seeds=20, rng=0, beta=1.0, allowance=0.02)
READOUTS = dict(alpha=[0.6, 2.0], lam=0.1, dimension=400, seeds=12, rng=6, beta=1.0)
NOISY = dict(alpha=2.0, lam=0.1, dimension=500, seeds=12, rng=4, beta=1.0, allowance=0.03)


def several(alpha, lam, beta, **changes):
    """A step of several readouts or noises, and its point: theory at d = 500 without further
    allowance for its size than 1 %."""
    at = dict(alpha=alpha, lam=lam, beta=beta, dimension=500, seeds=10, rng=3)
    return GradientStep(**NETWORK | changes), at | dict(allowance=0.01)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("step", "options"),
    [
        # 2 % for finite size; twenty seeds know the errors to 1 to 4 %
        (PUBLISHED, MANY | dict(alpha=[0.2, 0.9, 1.6, 2.3, 3.0], lam=0.1)),
        # 2.5 %
        *((STEPS[name], READOUTS | dict(allowance=0.025))
          for name in ("four readouts", "gaussian readout", "two signs")),
        # no theory of its own: beside those, the network's difference from its sRF, up to 5 %
        (STEPS["biases"], READOUTS | dict(allowance=0.07)),
        (GradientStep(**RELU, eta=1.0), MANY | dict(alpha=[0.5, 1.5, 3.0], lam=0.1)),
        several(2.0, 0.05, 1.0, target="sin", alpha0=0.3, readout=[0.5, 1.5]),
        several(1.0, 0.1, 2.0, alpha0=0.3, eta=4.0, readout=[-1, 1]),
        several(2.0, 0.05, 0.5, target="sin", alpha0=0.3, step_noise=0.5, noise=0.1),
        several(3.0, 0.03, 2.0, student="erf", target="he1", alpha0=20.0, readout=[0.5, 1.5]),
        # The first batch sees the noise, too: outliers in it make large rows.  3 % for the size:
        # they are to the fourth power in the norms of the rows
        (CONTAMINATED, NOISY | dict(loss="huber:0.5")),
        (CONTAMINATED, NOISY),
        (GradientStep(**NETWORK | dict(alpha0=1.0, label_noise="flip:0.1")),
         NOISY | dict(loss="logistic")),
        (GradientStep(**NETWORK | dict(alpha0=2.0, target="3*he1", label_noise="logistic")), NOISY),
    ],
)  # fmt: skip
def test_networks_at_size(step, options):
    found = compare(step, **options)
    assert found.theories[0].published is not None  # it is the network's own
    assert found.agrees, found.verdict


@pytest.mark.slow
def test_network_agrees_with_its_own_theory_alone():
    """Within 4 standard errors of 1 to 3 %, without any allowance; the sRF is 9 to 10 % below."""
    step = GradientStep(**NETWORK | dict(alpha0=0.3, eta=6.0))
    points = {"alpha": [2.0, 3.0], "lam": 0.1, "beta": 0.5, "allowance": 0.0}
    own, srf = (
        compare(step, **points, dimension=300, seeds=8, rng=0, theory=theory)
        for theory in (None, "srf")
    )
    assert own.agrees, own.verdict
    assert not srf.agrees, srf.verdict
