"""Inputs that are mixtures of Gaussians: docs/theory.md 19."""

import numpy as np
import pytest

import replica
from replica import GaussianMixture, GradientStep, InvalidArgument, SpikedRandomFeatures, solve
from replica.problem import LabelLaw
from tests.marks import slow
from tests.steps.structured import (
    ERRORS,
    GAUSSIAN_ROWS,
    LOGISTIC,
    READOUTS,
    SEVERAL_STEPS,
    SPIKES,
    mixture,
    setting,
)
from validation import first_layer


def errors(model, at, names=("test_error", "train_error"), **options):
    """Of a point that has converged."""
    point = solve(model, **at, **options)
    assert point.converged
    return [getattr(point, name) for name in names]


@pytest.mark.parametrize("number", ERRORS)
def test_errors(number):
    step, at, beta = setting(number)
    srf, network = ERRORS[number]
    assert errors(step.srf(beta=beta), at) == pytest.approx(srf, abs=2e-8)
    # those of networks were integrated to 1e-7
    assert errors(step.network(beta=beta), at) == pytest.approx(network, rel=2e-7)


@pytest.mark.parametrize("number", SPIKES)
def test_the_first_step(number):
    (*known, noise), c = SPIKES[number]
    step, _, beta = setting(number)
    model = step.srf(beta=beta)
    gamma = np.ravel(model.gamma)
    rest = abs(model.r) * np.sqrt(1 - gamma @ gamma)
    assert model.r * gamma == pytest.approx(known, abs=1e-6)
    assert [rest, model.c] == pytest.approx([noise, c], abs=1e-6)


@pytest.mark.parametrize("number", GAUSSIAN_ROWS)
def test_gaussian_rows(number):
    step, at, beta = setting(number, initialisation="gaussian")
    assert errors(step.network(beta=beta), at) == pytest.approx(GAUSSIAN_ROWS[number], rel=2e-7)


@pytest.mark.parametrize(("number", "samples", "network", "srf"), SEVERAL_STEPS)
def test_several_steps(number, samples, network, srf):
    step, at, beta = setting(number, steps=[(alpha0, 1) for alpha0 in samples])
    # printed to 7 and 5 digits, the former integrated to 1e-6
    assert errors(step.network(beta=beta), at) == pytest.approx(network, rel=2e-6)
    assert errors(step.srf(beta=beta), at)[0] == pytest.approx(srf, abs=6e-6)


@pytest.mark.parametrize(("number", "alpha0", "eta", "lam", "srf", "network"), LOGISTIC)
def test_logistic_loss_on_classes(number, alpha0, eta, lam, srf, network):
    step, at, beta = setting(number, alpha0=alpha0, eta=eta)
    names = ("classification_error", "train_loss")
    for model, expected in ((step.srf(beta=beta), srf), (step.network(beta=beta), network)):
        found = errors(model, at | {"lam": lam}, names, loss="logistic")
        assert found == pytest.approx(expected, abs=1e-7)


def test_the_error_of_classes_that_overlap_is_against_their_labels():
    step, at, beta = setting(6)
    test_error, loss_error = errors(step.srf(beta=beta), at, ("test_error", "loss_error"))
    assert test_error == pytest.approx(2 * loss_error, rel=1e-9)


@pytest.mark.parametrize(("number", "values", "shares", "srf"), READOUTS)
def test_several_readouts(number, values, shares, srf):
    """Of networks there is no other program; simulated at d = 500, 1.1 standard errors of 1 %."""
    step, at, beta = setting(number, readout=(values, shares))
    assert errors(step.srf(beta=beta), at) == pytest.approx(srf, abs=6e-6)
    errors(step.network(beta=beta), at)


STEPS = {
    "one": dict(alpha0=1.0, eta=2.0),
    "two": dict(steps=[(1.0, 1.0), (2.0, 1.5)]),
    "biases": dict(alpha0=1.0, eta=2.0, bias=[-0.5, 0.5], intercept=True),
}
TARGETS = {1: "sin(z1) + z1**2/3", 2: "z1 + z1*z2", 3: "z1 + z2*z3"}


@pytest.mark.parametrize(
    ("dimension", "name", "loss"),
    [
        (1, "biases", "square"),
        (2, "two", "square"),
        (1, "one", "huber:1"),
        *slow(
            (1, "one", "square"),
            (1, "two", "square"),
            (2, "one", "square"),
            (2, "biases", "square"),
            (1, "biases", "huber:1"),
            *((3, name, "square") for name in STEPS),
        ),
    ],
)
def test_one_normal_component_is_no_mixture(dimension, name, loss):
    """N(0, I) as a law: not the code of isotropic inputs, but its answers."""
    at = dict(alpha=1.5, lam=0.1, loss=loss)
    of = dict(student="relu", target=TARGETS[dimension], noise=0.1, **STEPS[name])
    law = GaussianMixture(means=np.zeros((1, dimension)))
    plain, mixed = GradientStep(**of), GradientStep(**of, inputs=law)
    for kind in ("srf", "network"):
        if (kind, name, dimension) == ("network", "two", 3):
            continue  # no rule has enough nodes, of either
        one, other = (getattr(step, kind)(beta=0.7) for step in (plain, mixed))
        # averages over a batch are settled to 1e-10, those of losses to 1e-7
        tol = 1e-6 if loss != "square" else 1e-11 if kind == "srf" else 1e-9
        assert errors(other, at) == pytest.approx(errors(one, at), rel=tol)


@pytest.mark.parametrize("number", [1, 2, 6])
def test_a_component_in_two_parts(number):
    step, at, beta = setting(number)
    law = step.inputs
    covariances = np.concatenate([law.each_covariance, law.each_covariance[:1]])
    share = law.fractions[0] * np.array([0.3, 0.7])
    split = GaussianMixture(
        means=np.concatenate([law.means, law.means[:1]]),
        covariances=covariances,
        fractions=np.concatenate([share[:1], law.fractions[1:], share[1:]]),
    )
    target = "classes:1,-1,1" if number != 2 else step.target
    again, _, _ = setting(number, inputs=split, target=target)
    for kind in ("srf", "network"):
        one, other = (errors(getattr(x, kind)(beta=beta), at) for x in (step, again))
        assert other == pytest.approx(one, rel=1e-12 if kind == "srf" else 1e-10)


def test_a_step_that_knows_fewer_coordinates():
    """Of N(0, I): the second step sees one of them; beside the same law given as a mixture."""
    of = dict(
        student="tanh", target="z1 + tanh(z2)", step_target=["z1 + tanh(z2)", "sin(z1)"],
        steps=[(3, 1.5)] * 2,
    )  # fmt: skip
    law = GaussianMixture(means=np.zeros((1, 2)))
    at = dict(alpha=1.5, lam=0.1)
    for kind in ("srf", "network"):
        one, other = (
            getattr(GradientStep(**of, inputs=inputs), kind)(beta=1.0) for inputs in (None, law)
        )
        assert np.ravel(one.gamma) == pytest.approx(np.ravel(other.gamma), rel=1e-9)
        assert errors(one, at) == pytest.approx(errors(other, at), rel=1e-8)


def test_a_component_that_is_known_along_the_spike():
    """Of no variance: its chance at other places is 0."""
    law = mixture([[1.0], [0.0]], [[0.0], [2.0]])
    model = SpikedRandomFeatures(student="relu", target="sin", inputs=law, r=1.5, c=1.0, gamma=1.0)
    learned = replica.learned_function(model, alpha=1.0, lam=0.1)
    assert np.isfinite(learned.mean([0.0, 0.5, 1.0])).all()
    assert learned.target_mean(0.5) == pytest.approx(np.sin(0.5), rel=1e-9)


def test_rotated_coordinates():
    """Means, covariances and target in other coordinates of the same plane."""
    step, at, beta = setting(7)
    law, cosine = step.inputs, 0.8
    turn = np.array([[cosine, -0.6], [0.6, cosine]])
    plus = turn @ [1, 1] / np.sqrt(2)
    rotated = GaussianMixture(
        means=law.means @ turn.T,
        covariances=turn @ law.covariances @ turn.T,
        fractions=law.fractions,
    )
    target = replica.MultiIndex(lambda a, b: np.sin(plus[0] * a + plus[1] * b), 2, "turned")
    again, _, _ = setting(7, inputs=rotated, target=target)
    for kind in ("srf", "network"):
        one, other = (errors(getattr(x, kind)(beta=beta), at) for x in (step, again))
        assert other == pytest.approx(one, rel=1e-9)


@pytest.mark.slow
def test_coordinates_that_nothing_depends_on():
    """More coordinates, standard normal, and one more component of no share."""
    step, at, beta = setting(6)
    one = errors(step.network(beta=beta), at)
    for d in (3, 60):  # of 60 the products of all pairs of directions took minutes
        wider, _, _ = setting(6, inputs=step.inputs.within(d))
        assert errors(wider.network(beta=beta), at) == pytest.approx(one, rel=1e-10)
    assert "(120 values)" in repr(replica.solve(wider.srf(beta=beta), **at))
    law = mixture([*step.inputs.means.tolist(), [3, 3]], [[3, 1], [1, 1.5], [1, 1]], [0.3, 0.7, 0])
    more, _, _ = setting(6, inputs=law, target="classes:1,-1,5")
    assert errors(more.network(beta=beta), at) == pytest.approx(one, rel=1e-10)


@pytest.mark.parametrize("number", [1, 3])
def test_huber_of_small_residuals_is_the_square(number):
    step, at, beta = setting(number)
    if number == 3:
        step, _, _ = setting(3, target="tanh", inputs=mixture([[0], [0]], [[6], [1]]))
    model = step.srf(beta=beta)
    assert errors(model, at, loss="huber:50") == pytest.approx(errors(model, at), rel=1e-6)


def test_the_law_of_labels_and_inputs():
    """By hand: two components, y = z1 + z2**2."""
    law = mixture([[1, 0], [-2, 1]], [[1, 1], [2, 3]], [0.25, 0.75])
    found = LabelLaw(replica.MultiIndex(lambda a, b: a + b**2, 2), 0.5).averages(law)
    assert found.mean == pytest.approx(0.25 * (1 + 1) + 0.75 * (-2 + 3 + 1), rel=1e-9)
    assert found.inputs == pytest.approx([0.25 - 1.5, 0.75], rel=1e-12)
    # of the first component E x1 y = E x1^2 + E x1 E x2^2 = 2 + 1, of the second 6 - 8
    assert found.first[0] == pytest.approx(0.25 * 3 + 0.75 * -2, rel=1e-9)


def test_bounds_and_optima():
    """Errors lie between the bounds for every penalty, and reach the lower one with data."""
    step, at, beta = setting(2)
    model = step.srf(beta=beta)
    bounds = replica.bounds(model)
    grid = [errors(model, {"alpha": alpha, "lam": 1e-3})[0] for alpha in (1e2, 1e4, 1e6)]
    assert (np.array(grid) >= bounds.lower - 1e-9).all()
    # E (y - prediction)^2 approaches the bound of infinitely many features and samples
    wide = step.srf(beta=1e5)
    assert errors(wide, {"alpha": 1e5, "lam": 1e2})[0] == pytest.approx(bounds.lower, abs=1e-4)
    # and the upper one without a norm
    no_norm = errors(model, {"alpha": 1e3, "lam": 1e5})[0]
    assert no_norm == pytest.approx(bounds.upper, rel=0.01)
    best = replica.optimal_lambda(model, alpha=at["alpha"])
    assert bounds.lower <= best.test_error <= min(bounds.upper, errors(model, at)[0]) + 1e-9


def test_the_linear_predictor_of_correlated_inputs():
    """Of y = z1 + he2(z2): E y^2 less what a linear function explains, by hand."""
    law = GaussianMixture(means=[[1.0, 0.0]], covariances=[[2.0, 1.0], [1.0, 2.0]])
    step = GradientStep(student="relu", target="z1 + z2**2", alpha0=1, eta=1, inputs=law)
    # Var z2^2 = 2 * 4, uncorrelated with z1 and z2
    assert replica.bounds(step.srf(beta=1)).linear == pytest.approx(8, rel=1e-9)


def test_the_learned_function():
    """E over the components given kappa: averaged over kappa it has the mean of the output."""
    law = mixture([[1.5], [-1.0]], [[1.0], [0.3]], [0.4, 0.6])
    step = GradientStep(student="relu", target="erf", alpha0=2, eta=1.5, inputs=law)
    model, at = step.srf(beta=1), dict(alpha=2, lam=0.05)
    learned, gamma = replica.learned_function(model, **at), model.gamma
    rng = np.random.default_rng(0)
    x, _ = law.draw(20_000, rng)
    kappa = gamma * x[:, 0] + np.sqrt(1 - gamma**2) * rng.standard_normal(len(x))
    y = step.target(x[:, 0])
    slack = 3 * y.std() / np.sqrt(len(y))  # standard errors
    assert learned.target_mean(kappa).mean() == pytest.approx(y.mean(), abs=slack)
    total = learned.target_variance(kappa).mean() + learned.target_mean(kappa).var()
    assert total == pytest.approx(y.var(), rel=0.02)
    of_spike = (learned.mean(kappa) - learned.target_mean(kappa)) ** 2
    test, _ = errors(model, at)
    # the rest of the error: what outputs and targets vary by, given kappa, and this together
    assert 0 < test - of_spike.mean() < learned.variance(kappa).mean() + y.var()
    one = learned.expected(lambda f: f, 0.3), learned.expected(np.square, 0.3)
    assert one[0] == pytest.approx(learned.mean(0.3), rel=1e-12)
    assert one[1] - one[0] ** 2 == pytest.approx(learned.variance(0.3), rel=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("number", [2, 6])
def test_drawn_layers(number):
    """The theory of the very layer that a network has at d = 2000, beside that of the limit."""
    step, at, beta = setting(number)
    layer = first_layer(step, dimension=2000, beta=beta, rng=0)
    # matrices of 2000 take 20 to 30 s here, strata included
    found = errors(layer, at, quadrature_tol=1e-3, time_limit=100)
    assert found == pytest.approx(errors(step.network(beta=beta), at), rel=0.01)


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("inputs", {"inputs": "gaussian"}),
        ("target", {"target": "classes:1,-1,1"}),
        ("target", {"inputs": None}),
        ("decay", {"decay": 1}),
        ("decay", {"decay": [0.1, 0.2]}),
        ("step_target", {"step_target": ["sin", "cos", "sin"]}),
    ],
)
def test_what_is_refused(name, change):
    with pytest.raises(InvalidArgument) as error:
        setting(1, **change)
    assert error.value.name == name


def test_a_model_of_mixed_inputs_by_hand():
    """The sRF of a step, given by its numbers."""
    step, at, beta = setting(6)
    made = step.srf(beta=beta)
    given = SpikedRandomFeatures(
        student="relu", target="classes:1,-1", inputs=step.inputs, r=made.r, c=made.c,
        gamma=np.ravel(made.gamma).tolist(), beta=beta,
    )  # fmt: skip
    assert errors(given, at) == errors(made, at)
