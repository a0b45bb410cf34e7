"""The learning curve of a linear probe as an estimator of scikit-learn, in its conventions.

docs/theory.md 22
"""

import re
import warnings
from dataclasses import replace
from typing import Any

import numpy as np

from .display import progress_callback, reasons_text
from .errors import InvalidArgument, install

try:
    from sklearn.base import BaseEstimator
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.linear_model import LogisticRegression, Ridge, RidgeClassifier
    from sklearn.svm import SVC, LinearSVC
    from sklearn.utils import ClassifierTags
    from sklearn.utils.metaestimators import available_if
    from sklearn.utils.validation import check_is_fitted, validate_data
except ImportError:
    raise ImportError(f"replica.sklearn needs scikit-learn: {install('sklearn')}") from None

from solvers.results import ConvergenceError

from . import observables
from .given import FeatureSample, has_classes
from .problem import MAX_NUMBER, axis, check_call, choice, flag

__all__ = ["ProbeCurve"]


class ProbeCurve(BaseEstimator):  # type: ignore[misc]
    """The errors that a linear readout has on new rows, at every training size and penalty, from
    one set of rows and without a split; and the readout of the best penalty, fitted.

    The curve is :func:`replica.learning_curve` of a :class:`replica.FeatureSample`: the mean over
    all ways to choose the rows to train and to test.

    Parameters
    ----------
    alphas : float or sequence
        Penalties, in the units of ``Ridge(alpha=...)``; of the other losses 1 / C.
    loss : str
        square, as Ridge or RidgeClassifier have it; of two classes logistic (LogisticRegression)
        or hinge (linear SVC), too.
    fit_intercept : bool
        Whether there is an intercept, which is not penalised.
    train_sizes : sequence
        Numbers of rows that train; or, if they are floats, fractions of all rows, of several
        classes or outputs of 5 000 at most.
    classes : sequence, optional
        Names of classes, if they are more than 20, or () for numbers, as in
        :class:`replica.FeatureSample`.  Without them scikit-learn takes the estimator of the square
        loss for no classifier, and its folds do not keep the shares of classes: give
        ``classes=np.unique(y)``, or ``cv=StratifiedKFold(5)`` to ``cross_val_score``.  ``score``
        warns of classes that a fold did not train on.
    verbose : bool
        Whether ``fit`` draws a bar of the points that it has solved.

    Attributes
    ----------
    learning_curve_ : xarray.Dataset
        The errors at every training size, over ``samples``, each at its best ``alpha``: test_error,
        the mean square on new rows, classification_error of classes, their standard errors, and
        converged.  What is not is NaN.
    validation_curve_ : xarray.Dataset
        The errors at all ``samples`` and ``alpha``.
    train_sizes_ : array
        Numbers of rows that train.
    best_alpha_ : float
        Best of the alphas, of the smallest loss on new rows (for the square, of the smallest test
        error), by fits where the theory has none.  It is of readouts trained on all rows, of
        several classes or outputs on 5 000 at most; where their errors are NaN, of the largest of
        ``train_sizes`` below that has one.  NaN if none has: then there is no readout, and none of
        the attributes of one.  At an end of the alphas, more of them may have a better one.
    test_error_, classification_error_ : float
        The errors at ``best_alpha_`` of readouts trained on all rows, of several classes or outputs
        on 5 000 at most; the latter of classes.
    confusion_ : array (C, C)
        Shares of the answers, of the rows of each class.
    estimator_ : Ridge, RidgeClassifier, LogisticRegression, SVC or LinearSVC
        Fitted on all rows with ``best_alpha_``.
    classes_ : array
        Names of the classes, in the order of ``confusion_``.
    sample_ : FeatureSample
        The rows, for other functions of the library.
    n_features_in_ : int
    feature_names_in_ : array
        Where X has names.

    Examples
    --------
    >>> import numpy as np
    >>> from replica.sklearn import ProbeCurve
    >>> rng = np.random.default_rng(0)
    >>> y = rng.choice(["cat", "dog"], 300)
    >>> X = rng.standard_normal((300, 10)) + 0.5 * (y == "dog")[:, None]
    >>> curve = ProbeCurve(alphas=[1, 10, 100], train_sizes=[30, 100, 300]).fit(X, y)
    >>> curve.learning_curve_.classification_error.values.round(2).tolist()
    [0.32, 0.27, 0.25]
    >>> curve.predict(X[:3]).tolist(), y[:3].tolist()
    (['dog', 'dog', 'dog'], ['dog', 'dog', 'dog'])
    """

    @check_call
    def __init__(
        self,
        alphas: Any = (0.1, 1.0, 10.0, 100.0, 1000.0),
        *,
        loss: str = "square",
        fit_intercept: bool = True,
        train_sizes: Any = (0.1, 0.2, 0.4, 0.7, 1.0),
        classes: Any = None,
        verbose: bool = False,
    ) -> None:
        self.alphas = alphas
        self.loss = loss
        self.fit_intercept = fit_intercept
        self.train_sizes = train_sizes
        self.classes = classes
        self.verbose = verbose

    def fit(self, X: Any, y: Any) -> "ProbeCurve":
        """Compute the curves of features X (N, p) and fit the readout.  Of y, names, whole numbers
        and True and False are classes, and so are floats that are all 0 or 1, or -1 or 1.  Of
        other floats that are all whole, of few values, ``classes`` must tell: () are numbers.

        Warns
        -----
        ConvergenceWarning
            Where errors are not known, and NaN.
        UserWarning
            Where errors may be off by more than 5 %, or are taken beyond the rows.
        """
        for fitted_name in [attribute for attribute in vars(self) if attribute.endswith("_")]:
            delattr(self, fitted_name)  # of a fit before
        data_options = {"dtype": np.float64, "multi_output": True, "ensure_min_samples": 2}
        intercept = flag("fit_intercept", self.fit_intercept)
        try:
            X, y = validate_data(self, X, y, **data_options)
        except ValueError:
            if hasattr(X, "columns") and y is not None:
                _sample(X, y, intercept, self.classes)  # a refusal names the column
            raise
        choice("loss", self.loss, ("square", "logistic", "hinge"))
        sample = _sample(X, y, intercept, self.classes)
        if self.loss != "square" and not sample.binary:
            raise InvalidArgument("loss", self.loss, "square unless y has two classes, as y == c")
        alphas = np.unique(axis("alphas", self.alphas))
        lam = alphas / X.shape[1]
        if not ((lam >= 1 / MAX_NUMBER) & (lam <= MAX_NUMBER)).all():  # NaN too
            range_ends = f"from {X.shape[1] / MAX_NUMBER:g} to {X.shape[1] * MAX_NUMBER:g}"
            limit = f"{X.shape[1] * 1e-12:g} for the limit 0, or the smallest that is solved"
            raise InvalidArgument("alphas", self.alphas, f"positive, {range_ends}, {limit}")
        most_rows = sample.most_by_rows
        sizes = self._sizes(most_rows)
        points_at: dict[str, Any] = {"samples": np.union1d(sizes, [most_rows]), "lam": lam}
        try:
            sample.stratified(float(sizes.min()))  # refused where even the fewest are too many
            with progress_callback(bool(self.verbose), "points") as progress:
                solve_settings: dict[str, Any] = {"loss": self.loss, "progress": progress}
                # its notes: below
                grid = observables.solve_grid(sample, **points_at, **solve_settings).dataset()
        except InvalidArgument as refused:
            if refused.name != "samples":
                raise
            allowed_sizes = refused.allowed.partition(", or given with strata")[0]
            raise InvalidArgument("train_sizes", self.train_sizes, allowed_sizes) from None
        of_ridge = self.loss == "square"
        label = r"penalty $\alpha$ of Ridge" if of_ridge else r"penalty $\alpha = 1/C$"
        grid = grid.rename(lam="alpha").assign_coords(alpha=("alpha", alphas, {"long_name": label}))
        error_name = "test_error" if of_ridge else "loss_error"
        point_error = grid[error_name]
        if f"fitted_{error_name}" in grid:  # of alphas that are not solved
            point_error = point_error.fillna(grid[f"fitted_{error_name}"])
        best = grid.isel(alpha=point_error.fillna(np.inf).argmin("alpha")).reset_coords("alpha")
        best["alpha"] = best.alpha.where(point_error.notnull().any("alpha"))
        self.train_sizes_, self.sample_ = sizes, sample
        self.validation_curve_ = grid.sel(samples=sizes)
        self.learning_curve_ = best.sel(samples=sizes)
        _warn(sample, self.learning_curve_, "the errors are NaN at {} training sizes")
        if most_rows not in sizes:
            of_all = f"test_error_, of {most_rows} rows that train"
            _warn(sample, best.sel(samples=[most_rows]), f"{of_all}, is not known", f"{of_all}: ")
        solved_alphas = best.alpha.sel(samples=slice(None, most_rows)).dropna("samples").values
        self.best_alpha_ = float(solved_alphas[-1]) if solved_alphas.size else np.nan
        if solved_alphas.size:
            self._fit_best(X, y, float(most_rows))
        return self

    def predict(self, X: Any) -> Any:
        """The answers of the readout with ``best_alpha_``: classes or numbers.

        Raises
        ------
        ConvergenceError
            Here, in ``score`` and in ``samples_needed``: if no training size has a best alpha.
        """
        self._check_readout()
        return self.estimator_.predict(validate_data(self, X, reset=False, dtype=np.float64))

    @available_if(lambda self: hasattr(self, "classes_"))  # type: ignore[untyped-decorator]
    def decision_function(self, X: Any) -> Any:
        """The outputs of the readout of classes, (N,) of two and (N, C) of C, in the order of
        ``classes_``."""
        X = validate_data(self, X, reset=False, dtype=np.float64)
        readout_outputs = self.estimator_.decision_function(X)
        class_order = np.searchsorted(self.estimator_.classes_, self.classes_)
        return readout_outputs if readout_outputs.ndim == 1 else readout_outputs[:, class_order]

    def score(self, X: Any, y: Any) -> float:
        """The accuracy of these answers; the R squared of numbers.

        Warns
        -----
        UserWarning
            Where y has classes that no row had in ``fit``, as in folds of rows sorted by class.
        """
        self._check_readout()
        X = validate_data(self, X, reset=False, dtype=np.float64)
        readout_score = float(self.estimator_.score(X, y))
        if not hasattr(self, "classes_"):  # of numbers, also of several outputs
            return readout_score
        if unknown := {*np.unique(y).tolist()}.difference(self.classes_.tolist()):
            folds = "in folds of sorted rows give classes=np.unique(y), or cv=StratifiedKFold(5)"
            words = f"classes of y that no row had in fit: {', '.join(map(str, sorted(unknown)))}"
            warnings.warn(f"{words} ({folds})", UserWarning, stacklevel=2)
        return readout_score

    @check_call
    def samples_needed(self, error: float, most: float | None = None) -> observables.SamplesNeeded:
        """Number of training rows for an ``error``, of classes the classification error, all with
        ``best_alpha_``, which is not searched again: see :func:`replica.samples_needed`."""
        self._check_readout()
        name = "classification_error" if has_classes(self.sample_) else "test_error"
        wanted: dict[str, Any] = {name: error, "lam": self.best_alpha_ / self.n_features_in_}
        most = self.sample_.most_by_rows if most is None else most
        needed = observables.samples_needed(self.sample_, **wanted, loss=self.loss, most=most)
        return replace(needed, alpha=self.best_alpha_)

    def _check_readout(self) -> None:
        """Raise unless there is a readout."""
        check_is_fitted(self, "best_alpha_")
        if np.isnan(self.best_alpha_):
            nan_reason = "the errors are NaN for all alphas at all training sizes up to all rows"
            raise ConvergenceError(f"there is no readout: {nan_reason}", self.learning_curve_)

    def _fit_best(self, X: Any, y: Any, most: float) -> None:
        """The errors of readouts trained on ``most`` rows, and the one trained on all."""
        alpha, lam = self.best_alpha_, self.best_alpha_ / X.shape[1]
        best_point, _ = observables.solve_layer(self.sample_, samples=most, lam=lam, loss=self.loss)
        self.test_error_ = best_point.test_error
        same: dict[str, Any] = {"fit_intercept": self.fit_intercept}
        if self.loss == "logistic":
            self.estimator_ = LogisticRegression(C=1 / alpha, max_iter=10_000, **same)
        elif self.loss == "hinge" and self.fit_intercept:  # a LinearSVC penalises its intercept
            self.estimator_ = SVC(kernel="linear", C=1 / alpha)
        elif self.loss == "hinge":
            self.estimator_ = LinearSVC(loss="hinge", C=1 / alpha, max_iter=100_000, **same)
        else:
            estimator_type = RidgeClassifier if has_classes(self.sample_) else Ridge
            self.estimator_ = estimator_type(alpha=alpha, **same)
        several = bool(self.sample_.classes)
        class_names = np.array(self.sample_.classes)
        self.estimator_.fit(X, class_names[self.sample_.labels.argmax(axis=1)] if several else y)
        if has_classes(self.sample_):
            self.classification_error_ = best_point.classification_error
            self.classes_ = class_names if several else self.estimator_.classes_
            self.confusion_ = best_point.confusion

    def _sizes(self, most: int) -> Any:
        """Numbers of rows that train, from ``train_sizes``."""
        train_sizes = axis("train_sizes", self.train_sizes)
        if np.asarray(self.train_sizes).dtype.kind == "f":
            valid_sizes = (train_sizes > 0) & (train_sizes <= 1)
            train_rows = np.maximum(np.rint(train_sizes * most), 1)
        else:
            valid_sizes, train_rows = (train_sizes >= 1) & (train_sizes < 2**53), train_sizes
        if not valid_sizes.all():  # NaN too
            allowed_text = "numbers of rows, integers such as 100, or fractions above 0 and up to 1"
            allowed_text += ", such as 0.1: floats are fractions"
            raise InvalidArgument("train_sizes", self.train_sizes, allowed_text)
        return np.unique(train_rows.astype(int))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.target_tags.multi_output = True
        if self.loss != "square" or (self.classes is not None and len(self.classes)):
            tags.estimator_type, tags.classifier_tags = "classifier", ClassifierTags()
        return tags


def _sample(X: Any, y: Any, intercept: bool, classes: Any) -> FeatureSample:
    """The rows, or a refusal of X, y or classes."""
    codes, names = np.asarray(y), np.asarray([] if classes is None else classes)
    are_codes = codes.ndim == names.ndim == 1 and codes.dtype.kind in "iu"
    are_codes = are_codes and not np.isin(codes, names).all()
    order = classes
    if are_codes and np.array_equal(np.unique(codes), np.arange(names.size)):
        order = range(names.size)  # of cross_val_predict, which codes names
    try:
        return FeatureSample(features=X, labels=y, intercept=intercept, classes=order)
    except InvalidArgument as error:
        sklearn_name = {"features": "X", "labels": "y"}.get(error.name, error.name)
        allowed_y = error.allowed.replace("the labels", "y").replace("labels", "y")
        allowed_y = re.sub(r"\(features\b", "(X", allowed_y)
        allowed_y = re.sub(r"with (classes=\w*\([^()]*\))", r"with ProbeCurve(\1)", allowed_y)
        raise InvalidArgument(sklearn_name, error.value, allowed_y) from None


def _warn(sample: FeatureSample, best: Any, unknown: str, of: str = "") -> None:
    """Warn that ``best`` errors are ``unknown``, with the reasons, and of notes on the sample, each
    after the words ``of``."""
    failed_points = ~best.converged.values
    if failed_points.any():
        unknown_text = unknown.format(f"{failed_points.sum()} of {failed_points.size}")
        failed_reasons = reasons_text(best.status.values[failed_points])
        warnings.warn(f"{unknown_text}: {failed_reasons}", ConvergenceWarning, stacklevel=3)
    for sample_note in observables.notes_on(sample, best):
        if observables.UNCENTRED not in sample_note:  # fit_intercept=False is meant
            here = sample_note.replace("fitted in Python, --wide", "fitted in learning_curve_")
            warnings.warn(f"{of}{here}", UserWarning, stacklevel=3)
