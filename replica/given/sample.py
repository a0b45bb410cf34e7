"""Given features, of a network of any depth or of data: N rows with labels.  docs/theory.md 20, 22

Every row is its own stratum where n of the N rows are to train.  For more samples than rows, or
where strata are given, strata are classes, or whatever tells inputs apart so that features are
nearly Gaussian in each: shares, means, covariances and labels are then empirical moments, and what
they differ by from those of the population is in the equations, (20.8).
"""

import re
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from scipy.linalg import qr

from solvers.resources import check_time
from solvers.results import Array

from ..display import Described
from ..errors import InvalidArgument
from ..problem import as_numbers, assign, finite_array, flag, one_a_row, without_gaps
from .classes import with_sums
from .gaussian import gaussian_strata
from .strata import Stratified

# Samples of a stratum over features: with fewer the small eigenvalues of an empirical covariance
# are far below those of the population.
ROWS_PER_FEATURE = 3.0
# Rows of a large sample that are taken, whose errors scatter by a percent or two; SPARE times as
# many as are to train, and twice as many where products for a matrix (p, p) are no more than WORK.
FEWEST_ROWS, MOST_ROWS, WORK, SPARE = 2000, 5000, 1e9, 1.1
# Part of a column that is left beside others on which it does not depend; rounding leaves less.
SPANNED = 1e-12


# names such as ID, customer_id, PassengerId
ID = re.compile(r"(?i:(?:^|[^a-z])(?:id|index)$)|[a-z]I[dD]$")


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class FeatureSample(Described):
    """Rows of features with labels, from which the readout's samples are drawn.

    The theory of n <= N samples is row by row, docs/theory.md 22: errors are the mean over all
    choices of n of the rows to train and of the others to test.  For more samples, or where
    ``strata`` are given, features are taken for Gaussian in each stratum, docs/theory.md 20.

    Parameters
    ----------
    features : array (N, p)
        Of a network of any depth, or data; True is 1, False 0; the readout gets them over sqrt(p).
    labels : array (N,) or (N, C)
        Real numbers, as the readout is trained on, or C of them for C outputs; or classes: names,
        whole numbers of an integer type, or 0 and 1.  Two classes are -1 and +1 in their order, as
        ``of_two`` says; of more there is an output for each, trained on 1 for its class and 0 for
        others.
    strata : array (N,), optional
        Stratum of each row, such that features are nearly Gaussian in each stratum.
    intercept : bool
        Whether the readout has one, which is not penalised.
    classes : sequence, optional
        Their names, in the order of outputs: the labels' own, sorted, unless given, which more than
        20 must be.  () says that labels are numbers: up to 20 whole numbers of type float, or 0 and
        one 1 in each row, may be either.  None where there are two, or none.

    Attributes
    ----------
    of_two : str
        Names of the classes -1 and +1 of two; empty where labels are given so.
    columns : tuple
        Names of the features: of pandas or of a table unless given; empty of an array.

    Raises
    ------
    InvalidArgument
        If shapes do not fit each other, a number is not finite, or labels may be classes and may be
        numbers.  That a stratum has too few samples for its covariance is said where that is first
        needed.
    """

    features: Array
    labels: Array
    strata: Any = None
    intercept: bool = False
    classes: Any = None
    of_two: str = field(init=False, default="")
    columns: tuple[Any, ...] = ()

    def __post_init__(self) -> None:
        features_shape = getattr(self.features, "shape", ())
        if len(features_shape) == 1 and getattr(self.labels, "ndim", 0) == 2:
            allowed = f"(N, p), of labels {tuple(self.labels.shape)}: swap features and labels"
            raise InvalidArgument("features", f"shape {tuple(features_shape)}", allowed)
        phi = finite_array("features", self.features, 2)
        typed_labels, of_two = one_a_row("labels", self.labels, phi.shape, self.features), ""
        labels, class_names = as_numbers(self.labels, self.classes)
        two_labels = labels.ndim == 1 and (np.abs(labels) == 1).all()
        if two_labels and not np.array_equal(typed_labels.ravel(), labels):
            negative, positive = (typed_labels.flat[i] for i in (labels.argmin(), labels.argmax()))
            of_two = f"{negative} -1, {positive} +1"
        strata = self.strata
        if strata is not None:
            one_a_row("strata", strata, phi.shape, self.features)
            strata = without_gaps("strata", strata)
        is_list = isinstance(self.columns, (list, tuple)) or getattr(self.columns, "ndim", 0) == 1
        if not is_list or len(self.columns) not in (0, phi.shape[1]):
            allowed_columns = f"the names of the {phi.shape[1]} features, or left out"
            raise InvalidArgument("columns", self.columns, allowed_columns)
        feature_names = tuple(self.columns) or tuple(getattr(self.features, "columns", ()))
        assign(
            self,
            columns=feature_names,
            features=phi,
            labels=labels,
            strata=strata,
            classes=class_names,
            of_two=of_two,
        )
        flag("intercept", self.intercept)

    @property
    def described(self) -> dict[str, Any]:
        """The sample in plain values: shapes in the place of numbers."""
        sample_facts: dict[str, Any] = {"features": " x ".join(map(str, self.features.shape))}
        if self.outputs > 1:
            sample_facts["classes" if self.classes else "outputs"] = self.outputs
        elif self.of_two:
            sample_facts["classes"] = self.of_two
        return sample_facts | ({"intercept": True} if self.intercept else {})

    @property
    def binary(self) -> bool:
        """True if labels are +-1."""
        return self.outputs == 1 and bool((np.abs(self.labels) == 1).all())

    @property
    def names(self) -> tuple[Any, ...]:
        """Names of the classes, in their order; of two, of -1 and of +1; empty where labels are
        numbers."""
        if self.of_two:
            return tuple(self.of_two.removesuffix(" +1").split(" -1, "))
        return ("-1", "+1") if self.binary else tuple(self.classes or ())

    @property
    def outputs(self) -> int:
        """C; 1 for two classes."""
        return 1 if self.labels.ndim == 1 else int(self.labels.shape[1])

    @property
    def width(self) -> int:
        """Number p of features."""
        return int(self.features.shape[1])

    @property
    def is_wide(self) -> bool:
        """True if rows, always taken all, are fewer than the features."""
        return len(self.labels) < self.width and len(self.labels) <= FEWEST_ROWS

    @cached_property
    def row_directions(self) -> Array | None:
        """Orthonormal basis (p, r) of the directions that rows span, centred where there is an
        intercept; None where features are independent, and of more than ``FEWEST_ROWS`` rows that
        are fewer than the features.

        Along other directions, as there are of one-hot columns beside an intercept, a readout's
        response is 1 / lambda, of which rounding would leave nothing.
        """
        row_count = len(self.labels)
        if row_count < self.width:
            return np.linalg.qr((self.features - self._centre).T)[0] if self.is_wide else None
        factor: Any = np.empty((0, self.width))  # R of QR: its columns have the norms of features
        for first_row in range(0, row_count, 4096):
            check_time()
            block = self.features[first_row : first_row + 4096] - self._centre
            factor = np.linalg.qr(np.r_[factor, block], mode="r")
        norms = np.linalg.norm(factor, axis=0)
        varies = norms > SPANNED * np.hypot(norms, row_count**0.5 * self._centre)
        units = np.where(varies, norms, np.inf)
        pivoted, order = qr(factor / units, mode="r", pivoting=True)[-2:]
        r = int((np.abs(np.diagonal(pivoted)) > SPANNED).sum())
        if r in (0, self.width):
            return None
        of_independent = np.empty((r, self.width))  # columns, of the r that are
        of_independent[:, order] = np.linalg.solve(pivoted[:r, :r], pivoted[:r])
        return np.linalg.qr((of_independent * np.where(varies, norms, 0.0)).T)[0]

    @cached_property
    def row_coordinates(self) -> Array:
        """Features along ``row_directions``, (N, r), or as they are where there are none."""
        if self.row_directions is None:
            return self.features
        return np.asarray((self.features - self._centre) @ self.row_directions)

    @cached_property
    def _centre(self) -> Array:
        """Means of the features where an intercept takes these; else 0."""
        return np.asarray(self.intercept * self.features.mean(axis=0))

    @property
    def class_of_row(self) -> Array:
        """Class of each row, (N,): its place in the order of classes, or for two its label +-1."""
        return self.labels.argmax(axis=1) if self.classes else self.labels

    @cached_property
    def repeated(self) -> int:
        """Number of rows that are copies: of the features and the label of an earlier row, other
        than 0.

        Rows of coarse features, such as rounded numbers, repeat by chance, and are then no copies.
        They are coarse where more than one in twenty of the features that repeat have several
        labels; or where no column has half as many values as there are different rows, or as
        twenty, unless every one of twenty rows or more is there as often.
        """
        rows = zip(self.features, self.labels, strict=True)
        row_hashes = np.array(
            [
                (of_row := hash((x + 0.0).tobytes()), hash((of_row, (y + 0.0).tobytes())))
                for x, y in rows
                if x.any()
            ]
        ).reshape(-1, 2)
        (_, of_features), (_, counts) = (
            np.unique(hashes, return_counts=True) for hashes in row_hashes.T
        )
        repeats = int(counts.sum()) - counts.size
        other_labels = counts.size - of_features.size
        if not repeats or 20 * other_labels > np.count_nonzero(of_features > 1):
            return 0
        as_often = counts.size >= 20 and np.gcd.reduce(counts) > 1
        most_values = max(np.unique(x).size for x in self.features.T)
        return repeats if as_often or 2 * most_values > max(counts.size, 20) else 0

    @cached_property
    def numbering_columns(self) -> list[int]:
        """Columns of features that number the rows, as an id does: whole numbers that rise in equal
        steps, or, of a column whose name ends in the word id or index, that all differ."""
        feature_names = [str(name) for name in self.columns] or [""] * self.width
        row_0, numbering = self.features[0], []
        for k in np.flatnonzero((row_0 == np.rint(row_0)) & (len(self.labels) > 2)).tolist():
            is_id, x = bool(ID.search(feature_names[k])), self.features[:, k]
            steps = np.diff(np.sort(x) if is_id else x)
            are_whole = bool(((steps >= 1) & (steps == np.rint(steps))).all())
            numbering += [k] * (are_whole and (is_id or bool(np.ptp(steps) == 0)))
        return numbering

    @cached_property
    def label_columns(self) -> list[int]:
        """Columns of features that are a function of the class, or a linear one of the label; in
        classes of three rows or more, which few columns are by chance."""
        _, label_of_row, counts = np.unique(
            self.labels, axis=0, return_inverse=True, return_counts=True
        )
        are_classes = self.binary or bool(self.classes)
        rows = counts[label_of_row] > 2 * are_classes
        labels, features = np.c_[np.ones(rows.sum()), self.labels[rows]], self.features[rows]
        if len(labels) < 2 * labels.shape[1] + 2 or (self.outputs > 1 and not are_classes):
            return []
        of_labels = labels @ (np.linalg.pinv(labels) @ features)
        power = np.square(features - features.mean(axis=0)).sum(axis=0)
        unexplained = np.square(features - of_labels).sum(axis=0)
        return np.flatnonzero(unexplained < 1e-12 * power).tolist()

    @property
    def most_by_rows(self) -> int:
        """Largest number of samples whose theory is row by row: for several outputs it is bounded,
        as their covariances take matrices between rows."""
        row_count = len(self.labels)
        return row_count if self.outputs == 1 else min(row_count, MOST_ROWS)

    def by_rows(self, samples: Any) -> Any:
        """True if every row is its own stratum for so many ``samples``, a number or an array."""
        return (self.strata is None) & (samples <= len(self.labels))

    def taken(self, samples: Any) -> Any:
        """Number of rows that are strata, the others left out to save time, for so many ``samples``
        of the readout, a number or an array."""
        rows_of_work = WORK / self.width**2
        output_rows = MOST_ROWS if self.outputs > 1 else 0  # covariances take matrices between rows
        most_rows = np.maximum(np.minimum(2 * samples, rows_of_work), SPARE * samples)
        rows_taken = np.maximum(most_rows, np.clip(rows_of_work / 2, FEWEST_ROWS, MOST_ROWS))
        return np.minimum(len(self.labels), output_rows or rows_taken).astype(int)

    def stratified(self, samples: float) -> Stratified:
        """Strata for so many ``samples`` of the readout: every row its own (a random part of them
        where there are more than needed); or, if samples exceed the rows or strata are given, one
        Gaussian per stratum or class, with its empirical mean and covariance.

        Raises
        ------
        InvalidArgument
            If a stratum has too few samples for its covariance, there are no strata, or there are
            too many samples for several outputs.

        Examples
        --------
        >>> features = np.array([[0.0], [1.0], [2.0], [4.0], [4.0], [7.0]])
        >>> sample = FeatureSample(features=features, labels=[1, 1, 1, -1, -1, -1])
        >>> sample.stratified(6).strata.features.shape
        (6, 1)
        >>> given = sample.stratified(7)
        >>> given.strata.means.tolist(), given.strata.covariances.round(3).tolist()
        ([[5.0], [1.0]], [[[2.0]], [[0.667]]])
        >>> given.moments.h.tolist()
        [[-1.0, 1.0]]
        """
        return self._row_strata(samples) if self.by_rows(samples) else self._moment_strata(samples)

    def _row_strata(self, samples: float) -> Stratified:
        """Strata of one row each: all rows, or a random part of ``taken`` rows."""
        phi, y, N = self.row_coordinates, self.labels, int(self.taken(samples))
        if samples > self.most_by_rows:
            allowed = f"at most {MOST_ROWS} for several classes or outputs, or with strata=labels"
            raise InvalidArgument("samples", samples, allowed)
        if len(y) > N:
            random_rows = np.random.default_rng(0).permutation(len(y))[:N]
            phi, y = phi[random_rows], y[random_rows]
        return gaussian_strata(self, np.full(N, 1 / N), phi, self._target_rows(y), rows=N)

    def _target_rows(self, labels: Array) -> Array:
        """Labels (N,) or (N, C) as the P targets of readouts (P, N): one row an output, and for
        classes a row for every sum of two outputs (``with_sums``).  Their mean, which an intercept
        takes, is subtracted: large labels would be rounded."""
        if self.intercept and not (self.binary or self.classes):
            labels = labels - self.labels.mean(axis=0)
        target_rows = np.atleast_2d(labels.T)
        return with_sums(target_rows) if self.classes else target_rows

    def _moment_strata(self, samples: float) -> Stratified:
        """Gaussian strata of the empirical moments of each of ``strata``, or of each class."""
        target_columns = self._target_rows(self.labels).T
        (N, p), r = self.features.shape, self.row_coordinates.shape[1]
        if self.strata is None and not (self.binary or self.classes):
            allowed_rows = f"at most the {N} rows, or given with strata (--strata s.npy): ids of "
            allowed_rows += "bins of the label, or np.zeros(N) for one"
            raise InvalidArgument("samples", samples, allowed_rows)
        stratum_of_row = self.class_of_row if self.strata is None else self.strata
        ids, sizes = np.unique(stratum_of_row, return_counts=True)
        needed_rows = int(ROWS_PER_FEATURE * p)
        if sizes.min() < needed_rows:
            quota = f"{needed_rows} rows of each, {ROWS_PER_FEATURE:g} for each of the {p} features"
            smallest, kind = sizes.argmin(), "in stratum" if self.strata is not None else "of class"
            got = f"{sizes.min()} {kind} {(self.names if self.strata is None else ids)[smallest]}"
            if fewer := int(sizes.min() / ROWS_PER_FEATURE):
                quota += (
                    f" (or {fewer} features, such as of sklearn.decomposition.PCA({fewer}): the "
                )
                quota += (
                    "errors are then of that smaller readout, at best an upper bound, and where "
                )
                quota += f"they level off those of all {p} features may still fall)"
            if self.strata is not None:
                raise InvalidArgument("features", got, f"enough in every stratum: {quota}")
            allowed_rows = f"at most the {N} rows here: beyond them features are Gaussian in each "
            allowed_rows += f"class, which takes {quota}, and there are {got}"
            raise InvalidArgument("samples", samples, allowed_rows)
        # of the features and, last, the labels
        features_and_targets = np.column_stack([self.row_coordinates, target_columns])
        stratum_rows = (features_and_targets[stratum_of_row == stratum] for stratum in ids)
        stratum_moments = ((x.mean(axis=0), np.cov(x.T, bias=True)) for x in stratum_rows)
        means, joint_cov = map(np.array, zip(*stratum_moments, strict=True))
        if self.classes and np.diagonal(joint_cov, axis1=1, axis2=2)[:, r:].any():
            raise InvalidArgument("strata", "ids of several classes", "ids of one class each")
        return gaussian_strata(self, sizes / N, means[:, :r], means[:, r:].T, joint_cov, N)
