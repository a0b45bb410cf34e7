"""What given layers, features, their moments and mixtures of inputs refuse, each in a sentence."""

import numpy as np
import pytest

import replica
from replica import (
    FeatureMoments,
    FeatureSample,
    FirstLayer,
    GaussianMixture,
    GradientStep,
    InvalidArgument,
)

CLASSES = GaussianMixture(means=[[1.5, 0], [-1.5, 0], [0.5, 1]], covariances=np.diag([0.5, 1]))
NAN = np.diag([1, 1, np.nan])
LAW = replica.SpikedRandomFeatures(student="tanh", target="sin", r=1, c=1, gamma=0.8)
TWO = GradientStep(student="relu", target="z1 + z1*z2", alpha0=2, eta=2).srf(beta=1.0)
FEATURES = np.random.default_rng(1).standard_normal((80, 20))


def layer(**change):
    given = dict(weights=np.eye(3), student="tanh", target="sin", directions=np.eye(3)[0])
    return FirstLayer(**given | change)


def of_classes(**change):
    weights = np.random.default_rng(0).standard_normal((6, 4))
    given = dict(weights=weights, student="relu", target="classes", inputs=CLASSES, intercept=True)
    return FirstLayer(**given | change)


def sample(**change):
    given = dict(features=FEATURES, labels=np.repeat([1.0, -1.0], 40))
    return FeatureSample(**given | change)


def of_three(**change):
    return sample(**dict(labels=np.arange(80) % 3) | change)


def moments(**change):
    return FeatureMoments(**dict(covariances=np.eye(3), label_means=1.0) | change)


def mixture(**change):
    return GaussianMixture(**{"means": [[0.0], [1.0]]} | change)


def solved(model, **options):
    return replica.solve(model, **dict(lam=0.1) | options)


def curve(model, **options):
    return replica.learning_curve(model, **dict(lam=0.1) | options)


def gradient(model, **options):
    return replica.gradient(model, lam=0.1, **options)


def learnability(direction, model=None, samples=9):
    model = moments() if model is None else model
    return replica.learnability(model, direction, samples=samples, lam=0.1)


def called(name, model, **options):
    return getattr(replica, name)(model, **options)


BOTH = [  # of a point and of a curve
    (dict(model=layer()), "samples must be given"),
    (dict(model=layer(), samples=100, alpha=2), "samples must be left out where alpha is given"),
    *((dict(model=layer(), samples=n), "samples must be positive") for n in (0, np.nan, np.inf)),
    (dict(model=layer(), samples="many"), "samples must be"),
    (dict(model=layer(), samples=100, loss="logistic"), "loss must be a regression loss"),
    (dict(model=LAW, alpha=1, loss="hinge"), "labels [+]-1: target sign, .* or classes:1,-1 on"),
    (dict(model=LAW, samples=100), "samples must be left out of a limit"),
    (dict(model=LAW), "alpha must be given"),
    (dict(model=sample(), alpha=1), "alpha must be left out: given features"),
]
STRATA = np.arange(80) % 2
PART_OF_ROWS = r"1 or more \(0.1 of the 80 rows are 8\)"
REALS = np.column_stack([np.arange(80) % 3] * 2) + 0.5
NO_THEORY = r"got FirstLayer\(weights 3 x 3"
REFUSED = {
    layer: [
        (dict(weights=NAN), "weights must be finite"),
        (dict(weights=np.ones(3)), "weights must be an array with 2 axes"),
        (dict(directions=None), r"directions must be of shape \(3, 1\): the unit vectors"),
        (dict(bias=np.ones(2)), r"bias must be of shape \(3,\), or a number"),
        (dict(directions=np.ones(4)), "directions must be of shape"),
        (dict(weights=np.ones((3, 5))), r"transposed, give weights.T, got 'shape \(3, 5\)'"),
        (dict(directions=np.ones(3)), "directions must be unit vectors"),
        (dict(student="sign"), "student must be continuous"),
        (dict(noise=-1), "noise must be 0 or more"),
        (dict(feature_noise=-1.0), "feature_noise must be a variance, 0 or more"),
        (dict(device="x"), "device must be cpu"),
        (dict(inputs=np.eye(3)), "inputs"),
        (dict(inputs=GaussianMixture(means=np.zeros((2, 61)))), "inputs"),
        (dict(target="classes:1,-1"), "target"),
        (dict(target="classes:1,x", inputs=GaussianMixture(means=np.eye(2))), "target"),
    ],
    of_classes: [
        (dict(noise=0.1), "noise must be left out for several classes"),
        (dict(label_noise="flip:0.1"), "noise must be left out for several classes"),
        (dict(inputs=None), "target must be given with inputs"),
        (dict(inputs=GaussianMixture(means=[[0.0]])), "target must be classes:y1"),
    ],
    sample: [
        (dict(labels=np.ones(3)), "labels must be one for each of the 80 rows"),
        (dict(strata=np.arange(3)), "strata must be one for each"),
    ],
    moments: [
        (dict(label_means=None), "label_means must be given, or label_covariances"),
        (dict(label_covariances=[1, 0, 0]), "label_variances must be at least"),
        (dict(label_covariances=[1, 0, 0], label_variances=0.99), "label_variances must be at"),
        (dict(covariances=np.diag([1, 1, 0]), label_covariances=[0, 0, 1e-3], label_variances=5.0),
         "label_variances must be at least"),
        (dict(label_variances=-1), "label_variances must be at least"),
        (dict(label_means=[1, -1]), "fractions must be given: of 2 strata"),
        (dict(label_means=[1, -1], fractions=[-1, 2]), "fractions must be 2 numbers of 0 or more"),
        (dict(label_means=[1, -1], fractions=[1, 1, 1]), "must be of shape"),
        (dict(label_means=[1, -1], fractions=[1, 2], means=np.zeros((2, 2))),
         r"means must be of shape \(2, 3\), or \(3,\) for all"),
        *((dict(covariances=of), "covariances must be of shape")
          for of in (np.ones((2, 3)), 1.0, np.zeros((0, 0)))),
        (dict(covariances=None), "covariances must be"),
        *((dict(covariances=of), "covariances must be symmetric")
          for of in (np.diag([1, 1, -1]), np.triu(np.ones((3, 3))))),
        (dict(covariances=NAN), "covariances must be finite"),
        (dict(covariances="x"), "covariances must be an array of numbers"),
        (dict(means=[0, np.inf, 0]), "means must be finite"),
        (dict(intercept=2), "intercept must be True or False"),
    ],
    mixture: [
        *((dict(means=of), "means")
          for of in ([1.0, 2.0], [[np.nan]], [], [[]], [[1.0], [1.0, 2.0]], [["x"]], [[1e308]])),
        *((dict(covariances=of), "covariances") for of in (np.eye(2), [[-1.0]])),
        (dict(means=[[0, 0]], covariances=[[1, 0.5], [0, 1]]), "covariances"),
        *((dict(fractions=of), "fractions") for of in ([0.5], [-1, 2])),
        (dict(fractions=[0.5, 0.6]), r"fractions must be of sum 1, not 1\.1, or relative"),
    ],
    solved: [
        *BOTH,
        (dict(model=sample(strata=STRATA), samples=20, loss="logistic"),
         "the square where labels vary within a stratum"),
        (dict(model=of_classes(), samples=40, loss="logistic"),
         r"the square for several.*classes:1,-1,-1"),
        (dict(model=of_three(), samples=40, loss="logistic"),
         r"square for several classes.*labels == c.*numpy"),
        *((dict(model=of_three(), samples=40, loss=of), r"multinomial loss .* labels == c")
          for of in ("multinomial", "softmax", "cross_entropy")),
        (dict(model=sample(labels=REALS), samples=81), "at most the 80 rows, or given with strata"),
        (dict(model=of_three(), samples=0.1), PART_OF_ROWS),
        (dict(model=moments(), alpha=1.0), "alpha must be left out"),
        (dict(model=moments(label_variances=1.0), samples=9, loss="huber:1"), "labels vary within"),
        (dict(model=moments(label_means=2.0), samples=9, loss="hinge"), "labels > 0, 1, -1"),
    ],
    curve: [
        *BOTH,
        (dict(model=layer(), samples=100, beta=[1, 2]), "a grid must be over samples"),
        (dict(model=of_three(), samples=0.1), PART_OF_ROWS),
    ],
    gradient: [
        (dict(model=layer(), samples=90, beta=1.0), "beta must be left out: only a GradientStep"),
        (dict(model=layer()), "samples must be given"),
        (dict(model=of_classes(), samples=40), "labels must be of one output for derivatives"),
        (dict(model=of_three(), samples=40), "labels must be of one output for derivatives"),
        *((dict(model=sample(), **at), "samples|alpha")
          for at in ({"alpha": 1.0}, {}, {"samples": "x"}, {"samples": [10, 20]})),
    ],
    learnability: [
        *((dict(direction=of), "direction must be")
          for of in (np.ones(2), np.ones((2, 3)), np.full(3, np.nan))),
        (dict(direction=np.ones(3), model=1.0), "model must be"),
        (dict(direction=np.ones(3), samples=None), "samples must be"),
    ],
    called: [
        *((dict(name=of, model=layer()), NO_THEORY) for of in ("bounds", "best_bounds")),
        (dict(name="optimal_eta", model=layer(), alpha=1.0), NO_THEORY),
        (dict(name="spectrum", model=moments(), alpha=1.0), "model must be"),
        (dict(name="spectrum", model=layer()), "samples must be given"),
        (dict(name="spectrum", model=layer(), alpha=2.0, samples=3), "samples must be left out"),
        (dict(name="spectrum", model=sample(), samples=20), "eigvalsh"),
        (dict(name="spectrum", model=LAW), "alpha must be given"),
        (dict(name="optimal_lambda", model=sample(), samples=[10, 20]), "samples must be .* one"),
        (dict(name="optimal_lambda", model=of_three(), samples=0.1), PART_OF_ROWS),
        (dict(name="learned_function", model=of_classes(), samples=40, lam=0.1), "must be"),
        (dict(name="learned_function", model=of_classes(target="classes:1,-1,1"), samples=4, lam=1),
         "inputs must be left out of a layer here"),
        (dict(name="learned_function", model=layer(), samples=30, lam=0.1, direction=[1.0]),
         "direction must be"),
        *((dict(name="learned_function", model=TWO, alpha=2.0, lam=0.1, direction=of),
           "direction must be") for of in ([1.0], [0.0, 0.0], [1.0, np.nan], "z1", [[1.0, 0.0]])),
    ],
}  # fmt: skip


@pytest.mark.parametrize(
    ("call", "given", "message"),
    [(call, given, message) for call, rows in REFUSED.items() for given, message in rows],
)
def test_refused(call, given, message):
    with pytest.raises(InvalidArgument, match=message):
        call(**given)


def test_a_step_has_no_several_classes():
    with pytest.raises(InvalidArgument, match="a FirstLayer has several outputs"):
        GradientStep(student="relu", target="classes", alpha0=1, eta=1, inputs=CLASSES)


def test_calibration_is_of_a_limit():
    point = replica.solve(sample(), samples=30, lam=0.1, loss="logistic")
    with pytest.raises(InvalidArgument, match="solution must be a Solution of a limit"):
        replica.calibration(point, [0.0, 1.0])
