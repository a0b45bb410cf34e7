"""The learning curve as an estimator of scikit-learn: in its units, beside its own fits."""

import re
import warnings

import numpy as np
import pytest
from sklearn.base import is_classifier
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.linear_model import (
    LogisticRegression,
    Ridge,
    RidgeClassifier,
    RidgeClassifierCV,
    RidgeCV,
)
from sklearn.model_selection import cross_val_predict, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, LinearSVC
from sklearn.utils.estimator_checks import parametrize_with_checks

from replica import InvalidArgument
from replica.plotting import plot_curve
from replica.sklearn import ProbeCurve
from solvers.results import ConvergenceError
from tests.given.test_classes import classes_of
from tests.processes import python

ALPHAS = [0.1, 1.0, 10.0, 100.0]


def standardised(load, rows=None):
    X, y = load(return_X_y=True)
    return StandardScaler().fit_transform(X)[:rows], y[:rows]


# The small samples of these have labels at random, or no errors at all.
@pytest.mark.filterwarnings("ignore:.* than a guess:", "ignore:the errors are NaN")
@parametrize_with_checks([ProbeCurve(train_sizes=[1.0])])
def test_conventions(estimator, check):
    check(estimator)


@pytest.mark.parametrize("intercept", [True, False])
def test_best_alpha_is_that_of_cross_validation(intercept):
    """All N rows to train are leave-one-out, which RidgeCV has in closed form, too."""
    X, y = standardised(load_diabetes)
    options = dict(alphas=ALPHAS, fit_intercept=intercept)
    beside = RidgeCV(**options, store_cv_results=True).fit(X, y)
    curve = ProbeCurve(**options, train_sizes=[1.0]).fit(X, y)
    assert curve.best_alpha_ == beside.alpha_
    by_alpha = curve.validation_curve_.test_error.sel(samples=len(X))
    expected = beside.cv_results_.mean(axis=0)
    np.testing.assert_allclose(by_alpha, expected, rtol=1e-9)  # both are exact
    np.testing.assert_allclose(curve.predict(X), beside.predict(X), rtol=1e-9)
    assert curve.score(X, y) == pytest.approx(beside.score(X, y), rel=1e-9)
    assert curve.test_error_ == pytest.approx(expected.min(), rel=1e-9)


@pytest.mark.parametrize(("loss", "label"), [("square", "of Ridge"), ("logistic", "= 1/C$")])
def test_the_penalty_of_scikit_learn_has_its_own_label(loss, label):
    """Elsewhere alpha is n / d."""
    X, y = standardised(load_breast_cancer, 60)
    curve = ProbeCurve([1.0, 10.0], train_sizes=[30], loss=loss).fit(X, y).validation_curve_
    assert re.fullmatch(r"penalty \$\\alpha.*" + re.escape(label), plot_curve(curve).get_xlabel())


def test_several_classes_are_those_of_cross_validation():
    """Classes in the theory are 0 and 1, there -1 and 1: four times its errors."""
    X, number = standardised(load_iris)
    y = load_iris().target_names[number]
    beside = RidgeClassifierCV(ALPHAS, store_cv_results=True).fit(X, y)
    curve = ProbeCurve(ALPHAS, train_sizes=[1.0]).fit(X, y)
    assert curve.best_alpha_ == beside.alpha_
    expected = beside.cv_results_.sum(axis=1).mean(axis=0).min()
    assert curve.test_error_ == pytest.approx(expected / 4, rel=1e-9)
    assert curve.predict(X).tolist() == beside.predict(X).tolist()
    assert curve.classes_.tolist() == beside.classes_.tolist()
    diagonal = np.diag(curve.confusion_)  # the classes are of 50 each
    assert curve.classification_error_ == pytest.approx(1 - diagonal.mean(), rel=1e-12)


@pytest.mark.slow
def test_several_classes_without_an_intercept():
    """Outputs trained on -1 and 1 differ from those on 0 and 1 by one function for all classes."""
    X, y = standardised(load_iris)
    curve = ProbeCurve(10.0, fit_intercept=False, train_sizes=[1.0]).fit(X, y)
    chosen = [
        RidgeClassifier(alpha=10.0, fit_intercept=False)
        .fit(np.delete(X, i, axis=0), np.delete(y, i))
        .predict(X[[i]])[0]
        for i in range(len(X))
    ]
    assert curve.classification_error_ == pytest.approx(np.mean(chosen != y), abs=1e-12)


FITS = {
    ("square", True): lambda alpha: RidgeClassifier(alpha=alpha),
    ("square", False): lambda alpha: RidgeClassifier(alpha=alpha, fit_intercept=False),
    ("logistic", True): lambda alpha: LogisticRegression(C=1 / alpha),
    ("logistic", False): lambda alpha: LogisticRegression(C=1 / alpha, fit_intercept=False),
    ("hinge", True): lambda alpha: SVC(C=1 / alpha, kernel="linear"),
    ("hinge", False): lambda alpha: LinearSVC(
        C=1 / alpha, loss="hinge", fit_intercept=False, max_iter=100_000
    ),
}


def assert_as_refitted(curve, fit, X, y, times=40):
    """Assert that the share of errors on the rows that n do not train on is within two standard
    errors of the mean of so many fits, or 5 %."""
    for n in curve.samples.values.astype(int):
        rng, errors = np.random.default_rng(0), []
        for _ in range(times):
            rows = rng.permutation(len(X))
            own, other = rows[:n], rows[n:]
            errors.append(1 - fit.fit(X[own], y[own]).score(X[other], y[other]))
        mean, stderr = np.mean(errors), np.std(errors) / np.sqrt(times)
        error = float(curve.classification_error.sel(samples=n))
        assert abs(error - mean) < max(2 * stderr, 0.05 * mean), (n, error, mean, stderr)


@pytest.mark.parametrize(
    ("loss", "intercept"),
    [pytest.param(*of, marks=[pytest.mark.slow] * (of != ("square", True))) for of in FITS],
)
def test_curve_beside_fits(loss, intercept):
    """A mean of 40 fits is within two of its standard errors, or 5 %, which the theory is known to
    (docs/theory.md 22)."""
    X, y = standardised(load_breast_cancer)
    X = X[:, :8] + 0.3  # so that an intercept matters
    options = dict(loss=loss, fit_intercept=intercept, train_sizes=[60, 150, 400])
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", category=ConvergenceWarning)  # hinge, on all rows
        curve = ProbeCurve(alphas=20.0, **options).fit(X, y).learning_curve_
    assert curve.alpha.values.tolist() == [20.0] * 3
    assert_as_refitted(curve, FITS[loss, intercept](20.0), X, y)


@pytest.mark.slow
def test_in_a_pipeline_and_rows_needed():
    X, y = load_breast_cancer(return_X_y=True)
    probe = ProbeCurve(alphas=[1, 10, 100], train_sizes=[100, 300])
    fitted = make_pipeline(StandardScaler(), probe).fit(X, y)
    curve = fitted[-1]
    assert fitted.score(X, y) > 0.95
    # at best_alpha_, that of all rows
    alone = ProbeCurve(alphas=curve.best_alpha_, train_sizes=[300])
    alone.fit(StandardScaler().fit_transform(X), y)
    error = float(alone.learning_curve_.classification_error.item())
    needed = curve.samples_needed(error)
    assert needed.alpha == curve.best_alpha_ == pytest.approx(needed.lam * X.shape[1])
    assert "alpha" in repr(needed)
    assert "lam " not in repr(needed)
    assert needed.to_dataframe().alpha.item() == needed.alpha
    # between points a sixth of a decade apart it is straight
    assert needed.samples == pytest.approx(300, rel=0.05)
    assert curve.train_sizes_.tolist() == curve.learning_curve_.samples.values.tolist()


def test_a_training_size_that_is_too_large_takes_no_other_with_it():
    X, y = standardised(load_diabetes)
    with pytest.warns(ConvergenceWarning, match="NaN at 1 of 2 training sizes: .* the 442 rows"):
        curve = ProbeCurve(alphas=10.0, train_sizes=[100, 443]).fit(X, y)
    assert np.isnan(curve.learning_curve_.test_error.values).tolist() == [False, True]


def test_fractions_are_of_all_rows():
    X, y = standardised(load_diabetes)
    curve = ProbeCurve(alphas=10.0, train_sizes=[0.5, 1.0]).fit(X, y)
    assert curve.train_sizes_.tolist() == [221, 442]
    assert curve.learning_curve_.test_error.notnull().all()


@pytest.mark.slow
def test_classes_in_an_order_of_their_own():
    features, of = classes_of(200, 8, 3)
    names = np.array(["a", "b", "c"])
    plain = ProbeCurve(alphas=1.0, train_sizes=[1.0]).fit(features, names[of])
    turned = ProbeCurve(alphas=1.0, train_sizes=[1.0], classes=["c", "a", "b"])
    turned.fit(features, names[of])
    assert turned.classes_.tolist() == ["c", "a", "b"]
    order = [2, 0, 1]
    expected = plain.confusion_[np.ix_(order, order)]
    np.testing.assert_allclose(turned.confusion_, expected, atol=1e-12)
    assert turned.predict(features).tolist() == plain.predict(features).tolist()
    outputs = turned.decision_function(features)
    assert turned.classes_[outputs.argmax(axis=1)].tolist() == plain.predict(features).tolist()
    np.testing.assert_allclose(outputs, plain.decision_function(features)[:, order])
    two = ProbeCurve(alphas=1.0, train_sizes=[1.0]).fit(features, of == 1)
    assert ((two.decision_function(features) > 0) == two.predict(features)).all()
    assert not hasattr(ProbeCurve().fit(features, features[:, 0] + of), "decision_function")


@pytest.mark.parametrize(
    ("name", "meant"),
    [("alpha", "alphas"), ("lam", "alphas, p lam"), ("intercept", "fit_intercept")],
)
def test_a_name_that_it_does_not_have_is_answered(name, meant):
    words = rf"^ProbeCurve\(\) has no argument '{name}': did you mean {meant}\?$"
    with pytest.raises(TypeError, match=words):
        ProbeCurve(**{name: 1.0})


def test_an_accuracy_is_answered_with_the_error():
    X, y = standardised(load_breast_cancer, 60)
    curve = ProbeCurve(10.0, train_sizes=[30]).fit(X, y)
    with pytest.raises(TypeError, match=r"'accuracy': did you mean error, 1 - accuracy\?"):
        curve.samples_needed(accuracy=0.8)


def test_a_column_of_text_is_named():
    pandas = pytest.importorskip("pandas")
    X, y = standardised(load_iris, 60)
    table = pandas.DataFrame(X, columns=list("abcd")).assign(city="Rome")
    words = r"^X must be an array of numbers, as numpy.array\(X, dtype=float\) is \(leave out the "
    with pytest.raises(InvalidArgument, match=words + r".*=\['city'\]\)\), got .* column 'city'"):
        ProbeCurve().fit(table, y)


def test_progress_is_drawn_on_request(capsys):
    X, y = standardised(load_diabetes)
    ProbeCurve(alphas=10.0, train_sizes=[100], verbose=True).fit(X, y)
    assert capsys.readouterr().err


def test_what_is_not_known_is_nan_and_said():
    """Of the hinge loss there is no answer at n = N here; the best penalty is that of fewer."""
    X, y = standardised(load_breast_cancer)
    with pytest.warns(ConvergenceWarning, match="the errors are NaN at 1 of 2 training sizes"):
        curve = ProbeCurve(loss="hinge", alphas=10.0, train_sizes=[200, 569]).fit(X, y)
    assert np.isnan(curve.learning_curve_.alpha.values).tolist() == [False, True]
    assert np.isnan(curve.learning_curve_.test_error.values).tolist() == [False, True]
    assert np.isnan(curve.test_error_)
    assert curve.best_alpha_ == 10.0


def test_a_fit_without_a_readout_leaves_none_of_a_fit_before():
    """Of the hinge loss there is no answer at n = N here."""
    X, y = standardised(load_breast_cancer)
    curve = ProbeCurve(alphas=10.0, train_sizes=[1.0]).fit(X, y)
    assert curve.predict(X).shape == y.shape
    with pytest.warns(ConvergenceWarning, match="the errors are NaN at 1 of 1 training sizes"):
        curve.set_params(loss="hinge").fit(X, y)
    of_a_readout = ("estimator_", "test_error_", "classification_error_", "classes_")
    assert not [name for name in of_a_readout if hasattr(curve, name)]
    assert np.isnan(curve.best_alpha_)
    for asked in (lambda: curve.predict(X), lambda: curve.score(X, y)):
        with pytest.raises(ConvergenceError, match="there is no readout: the errors are NaN"):
            asked()
    with pytest.raises(ConvergenceError, match="there is no readout"):
        curve.samples_needed(0.1)


def test_a_fit_of_numbers_has_no_classes_of_a_fit_before():
    X, y = standardised(load_iris)
    curve = ProbeCurve(alphas=10.0, train_sizes=[1.0]).fit(X, y)
    assert curve.confusion_.shape == (3, 3)
    curve.fit(X, X[:, 0] + y)
    assert not hasattr(curve, "classes_")
    assert not hasattr(curve, "confusion_")
    assert not hasattr(curve, "classification_error_")
    with pytest.raises(InvalidArgument):
        curve.set_params(alphas=0.0).fit(X, y)
    with pytest.raises(NotFittedError):
        curve.predict(X)


@pytest.mark.slow
def test_best_alpha_is_not_of_more_than_all_rows():
    """There it is less, and the readout is trained on the rows."""
    X, y = standardised(load_breast_cancer)
    options = dict(alphas=np.geomspace(1, 10, 21))
    own = ProbeCurve(**options, train_sizes=[569]).fit(X, y)
    with pytest.warns(UserWarning, match="more samples than rows"):
        beyond = ProbeCurve(**options, train_sizes=[5000]).fit(X, y)
    assert beyond.best_alpha_ == own.best_alpha_
    assert beyond.test_error_ == pytest.approx(own.test_error_, rel=1e-9)
    assert beyond.learning_curve_.alpha.item() < own.best_alpha_


@pytest.mark.slow
def test_the_best_alpha_may_be_of_fits_alone():
    """The hinge loss of 500 of 569 rows is not solved at 1 and 10; SVC's, of 60 random parts, is
    .120 +- .011, .092 +- .007, .081 +- .005 and .119 +- .005."""
    X, y = standardised(load_breast_cancer)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of that size, and of all rows
        curve = ProbeCurve(alphas=[0.1, 1, 10, 100], loss="hinge", train_sizes=[500]).fit(X, y)
    solved = curve.validation_curve_.converged.values.ravel()
    assert solved.tolist() == [True, False, False, True]
    assert curve.learning_curve_.alpha.item() == 10
    assert np.isnan(curve.learning_curve_.loss_error.item())
    assert curve.learning_curve_.fitted_loss_error.item() == pytest.approx(0.081, abs=0.01)


def test_notes_are_warnings():
    X, y = standardised(load_breast_cancer)
    with pytest.warns(UserWarning, match="1 of 2 points, at samples 700, have more samples than"):
        ProbeCurve(alphas=10.0, train_sizes=[300, 700]).fit(X, y)
    (differ, *_) = said_of(X, y, alphas=1e-6, train_sizes=[31])
    assert differ.startswith("errors that are more than 5 %")


def said_of(X, y, **options):
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        ProbeCurve(**options).fit(X, y)
    return [str(one.message) for one in said]


def test_warnings_tell_all_rows_from_the_sizes_asked_for():
    X, y = standardised(load_breast_cancer)
    (sentence,) = said_of(X, y, loss="hinge", alphas=10.0, train_sizes=[200])
    assert sentence.startswith("test_error_, of 569 rows that train, is not known: not converged")
    sentences = said_of(X[:32], y[:32], alphas=1e-3, train_sizes=[28])
    guesses = [sentence for sentence in sentences if "not clearly better than a guess" in sentence]
    starts = ("", "test_error_, of 32 rows that train: ")
    for sentence, start in zip(guesses, starts, strict=True):
        assert sentence.startswith(f"{start}an error that")


REFUSED = {
    "alphas": (
        dict(alphas=[0.0, 1.0]),
        "positive, from .*, 4e-12 for the limit 0, or the smallest",
    ),
    "loss": (dict(loss="huber:1"), "loss must be square or logistic or hinge"),
    "classes": (dict(loss="logistic"), "square unless y has two classes, as y == c"),
    "sizes": (dict(train_sizes=[50.0]), "fractions above 0 and up to 1"),
    "size 0": (dict(train_sizes=[0, 50]), "train_sizes must be numbers of rows, integers such as"),
    "negative size": (dict(train_sizes=[-5]), "train_sizes must be numbers of rows"),
    "huge size": (dict(train_sizes=[10**40]), "train_sizes must be numbers of rows"),
    "no sizes": (dict(train_sizes=None), "train_sizes must be numbers of rows"),
    "fraction 0": (
        dict(train_sizes=[0.0, 1.0]),
        "fractions above 0 and up to 1, such as 0.1: floats",
    ),
    "infinite": (dict(alphas=[np.inf]), "alphas must be positive, from 4e-30 to 4e"),
    "huge": (dict(alphas=[1e40]), "alphas must be positive, from"),
    "nan": (dict(alphas=[1.0, np.nan]), "alphas must be positive, from"),
    "names": (dict(classes=[1, 2]), "classes must be those of y, each once"),
    "intercept": (dict(fit_intercept="no"), "fit_intercept must be True or False"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name):
    X, y = load_iris(return_X_y=True)
    options, sentence = REFUSED[name]
    with pytest.raises(InvalidArgument, match=sentence):
        ProbeCurve(**options).fit(X, y)


@pytest.mark.parametrize(
    ("sizes", "y", "sentence"),
    [
        ([1.0], np.arange(70), r"y must be given with classes=np.unique\(y\) .*more than 20"),
        ([100], np.arange(8) % 2, "train_sizes must be at most the 8 rows here: .* 6 rows of each"),
        ([100], np.arange(8) / 3, "train_sizes must be at most the 8 rows, got"),
        ([5500], np.arange(6000) % 3, "train_sizes must be at most 5000 for several classes"),
    ],
)
def test_refused_of_its_labels(sizes, y, sentence):
    X = np.random.default_rng(0).standard_normal((len(y), 2))
    with pytest.raises(InvalidArgument, match=sentence):
        ProbeCurve(train_sizes=sizes).fit(X, y)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*fits to random rows:UserWarning")  # of two classes in a fold
def test_folds_keep_the_shares_of_classes_where_these_are_known():
    """Labels sorted by class have whole classes in folds that do not."""
    X, y = standardised(load_iris)
    for options, said in (
        ({}, False),
        (dict(classes=()), False),
        (dict(classes=np.unique(y)), True),
        (dict(loss="hinge"), True),
    ):
        assert is_classifier(ProbeCurve(**options)) == said
    own, beside = (
        cross_val_score(one, X, y, cv=3)
        for one in (
            ProbeCurve(10.0, train_sizes=[40], classes=np.unique(y)),
            RidgeClassifier(10.0),
        )
    )
    np.testing.assert_allclose(own, beside)
    with pytest.warns(UserWarning, match=r"classes of y that no row had in fit: [012] \(in folds"):
        plain = cross_val_score(ProbeCurve(10.0, train_sizes=[40]), X, y, cv=3)
    assert plain.max() < 0.1


def test_classes_of_one_hot_labels_are_asked_for_by_their_argument():
    X, y = standardised(load_iris)
    with pytest.raises(InvalidArgument, match=r"given with ProbeCurve\(classes=range\(3\)\) if"):
        ProbeCurve().fit(X, np.eye(3)[y])


def test_not_fitted():
    with pytest.raises(NotFittedError):
        ProbeCurve().samples_needed(0.1)


def test_scikit_learn_is_optional():
    """One sentence without it; and it is not imported unless asked for."""
    code = "import sys, replica; print('sklearn' in sys.modules); sys.modules['sklearn'] = None\n"
    code += "try:\n    import replica.sklearn\nexcept ImportError as error:\n    print(error)"
    found = python("-c", code, check=True)
    sentence = "needs scikit-learn: python3 -m pip install '.[sklearn]' in the clone"
    assert found.stdout.splitlines() == ["False", f"replica.sklearn {sentence}"]


@pytest.mark.parametrize("names", [["no", "yes"], ["cat", "dog", "emu"], [1, 2, 3], [0, 2]])
def test_outputs_of_cross_validation(names):
    """scikit-learn has codes in the place of names there, of which ``classes`` are none."""
    rng = np.random.default_rng(0)
    y = rng.choice(names, 90)
    X = rng.standard_normal((90, 5)) + 2 * (y == names[-1])[:, None]
    probe = ProbeCurve(alphas=[1.0], train_sizes=[72], classes=np.unique(y))
    found, expected = (
        cross_val_predict(one, X, y, cv=5, method="decision_function")
        for one in (probe, RidgeClassifier(alpha=1.0))
    )
    np.testing.assert_allclose(found, expected, rtol=1e-9)  # the same estimator


@pytest.mark.parametrize("outputs", [1, 2])
def test_the_score_of_several_outputs_is_that_of_ridge(outputs):
    """The R squared, also in folds."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((300, 10))
    Y = X @ rng.standard_normal((10, outputs)) + rng.standard_normal((300, outputs))
    curve, plain = ProbeCurve(10.0, train_sizes=[100]), Ridge(alpha=10.0)
    assert curve.fit(X, Y).score(X, Y) == pytest.approx(plain.fit(X, Y).score(X, Y), rel=1e-9)
    scores = (cross_val_score(one, X, Y, cv=3) for one in (curve, plain))
    assert next(scores) == pytest.approx(next(scores), rel=1e-9)
