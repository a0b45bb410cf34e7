"""Given features, of a network of any depth or of data: N rows with labels.  docs/theory.md 20, 22

Every row is its own stratum where n of the N rows are to train.  For more samples than rows, or
where strata are given, strata are classes, or whatever tells inputs apart so that features are
nearly Gaussian in each: shares, means, covariances and labels are then empirical moments, and what
they differ by from those of the population is in the equations, (20.8).
"""

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from solvers.results import Array

from ..display import Described
from ..errors import InvalidArgument
from ..problem import any_array, assign, finite_array, flag
from .class_labels import as_numbers
from .gaussian import gaussian_strata
from .outputs import with_sums
from .rows import RowStrata
from .strata import Stratified, StratumLabels, labels_of

# Samples of a stratum over features: with fewer the small eigenvalues of an empirical covariance
# are far below those of the population.
FEWEST_OF_STRATUM = 3.0
# Rows of a large sample that are taken, unless more are to train: these numbers are far below the
# scatter of errors with the rows, and WORK is that of a second.
FEWEST_ROWS, MOST_ROWS, WORK = 2000, 5000, 5e8


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class FeatureSample(Described):
    """Rows of features with labels, from which the readout's samples are drawn.

    The theory of n <= N samples is row by row, docs/theory.md 22: errors are the mean over all
    choices of n of the rows to train and of the others to test.  For more samples, or where
    ``strata`` are given, features are taken for Gaussian in each stratum, docs/theory.md 20.

    Parameters
    ----------
    features : array (N, p)
        Of a network of any depth, or data; the readout gets them over sqrt(p).
    labels : array (N,) or (N, C)
        Real numbers, as the readout is trained on, or C of them for C outputs; or classes: names,
        whole numbers of an integer type, or 0 and 1.  Two classes are -1 and +1 in their order, as
        ``of_two`` says; of more there is an output for each, trained on 1 for its class and 0 for
        others.
    strata : array (N,), optional
        What tells apart inputs so that features are nearly Gaussian in each stratum.
    intercept : bool
        Whether the readout has one, which is not penalised.
    classes : sequence, optional
        Their names, in the order of outputs: the labels' own, sorted, unless given, which more than
        20 must be.  () says that labels are numbers: up to 20 whole numbers of type float, or 0 and
        one 1 in each row, may be either.  None where there are two, or none.

    Attributes
    ----------
    of_two : str
        Of two classes, which is -1 and which +1; empty where labels are given so.

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

    def __post_init__(self) -> None:
        features = finite_array("features", self.features, 2)
        (labels, classes), strata = as_numbers(self.labels, self.classes), self.strata
        if strata is not None:
            try:
                strata = any_array("strata", strata)
                if strata.dtype.kind == "O":
                    np.unique(strata)
                if np.ma.is_masked(self.strata) or (
                    strata.dtype.kind != "f" and np.any(strata != strata)
                ):
                    raise ValueError  # such as NaT
            except (TypeError, ValueError):
                allowed = "ids that can be compared, all numbers or all text, none missing"
                raise InvalidArgument("strata", self.strata, allowed) from None
        given, of_two = any_array("labels", self.labels).ravel(), ""
        if labels.ndim == 1 and not np.array_equal(given, labels):
            first, second = (given[i] for i in (labels.argmin(), labels.argmax()))
            of_two = f"{first} -1, {second} +1"
        shapes = {"labels": labels.shape[:1]} | ({} if strata is None else {"strata": strata.shape})
        for name, shape in shapes.items():
            if shape != features.shape[:1]:
                allowed = f"one for each of the {len(features)} rows of features"
                raise InvalidArgument(name, f"shape {shape}", allowed)
        read = dict(labels=labels, classes=classes, of_two=of_two)
        assign(self, features=features, strata=strata, **read)
        if strata is not None and strata.dtype.kind == "f":
            finite_array("strata", strata, 1)
        flag("intercept", self.intercept)

    @property
    def described(self) -> dict[str, Any]:
        """The sample in plain values: shapes in the place of numbers."""
        described: dict[str, Any] = {"features": " x ".join(map(str, self.features.shape))}
        if self.outputs > 1:
            described["classes" if self.classes else "outputs"] = self.outputs
        elif self.of_two:
            described["classes"] = self.of_two
        return described | ({"intercept": True} if self.intercept else {})

    @property
    def binary(self) -> bool:
        """Whether labels are +-1."""
        return self.outputs == 1 and bool((np.abs(self.labels) == 1).all())

    @property
    def outputs(self) -> int:
        """C; 1 for two classes."""
        return 1 if self.labels.ndim == 1 else int(self.labels.shape[1])

    @property
    def width(self) -> int:
        """p."""
        return int(self.features.shape[1])

    @property
    def class_of_row(self) -> Array:
        """Of classes: the place of each row's class in their order, or its label +-1."""
        return self.labels.argmax(axis=1) if self.classes else self.labels

    @property
    def most_by_rows(self) -> int:
        """The largest number of samples that goes row by row: covariances of several outputs take
        matrices between rows."""
        rows = len(self.labels)
        return rows if self.outputs == 1 else min(rows, MOST_ROWS)

    def by_rows(self, samples: Any) -> Any:
        """Whether every row is its own stratum for so many ``samples``, a number or an array."""
        return (self.strata is None) & (samples <= len(self.labels))

    def stratified(self, samples: float) -> Stratified:
        """The strata for so many ``samples`` of the readout: the rows; or where there are fewer
        rows, or strata are given, Gaussian strata with the empirical moments of each.

        Raises
        ------
        InvalidArgument
            If a stratum has too few samples for its covariance, or there are no strata.

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
        return self._rows(samples) if self.by_rows(samples) else self._gaussian(samples)

    def _rows(self, samples: float) -> Stratified:
        """The rows, or so many of them that the matrices of a point take a second: at random, and
        twice as many as there are ``samples``."""
        features, labels = self._columns, self.labels
        fewest = max(FEWEST_ROWS, 2 * samples, min(MOST_ROWS, WORK / features.shape[1] ** 2))
        if self.outputs > 1:  # whose covariances take matrices between rows
            fewest = MOST_ROWS
            if samples > fewest:
                allowed = f"at most {fewest} for several classes or outputs"
                raise InvalidArgument("samples", samples, allowed)
        if fewest < len(labels):
            chosen = np.random.default_rng(0).permutation(len(labels))[: int(fewest)]
            features, labels = features[chosen], labels[chosen]
        N, h = len(labels), self._targets(labels)
        shares = np.full(N, 1 / N)
        return Stratified(
            RowStrata(shares, features),
            StratumLabels(shares, h, np.zeros_like(h), 0.0, self.outputs),
            labels_of(h[0], [(0.0, 1.0)], binary=self.binary),
            rows=N,
            intercept=self.intercept,
            classes=bool(self.classes),
        )

    def _targets(self, labels: Array) -> Array:
        """Labels (N,) or (N, C) as equations ask for them, (P, N)."""
        columns = np.atleast_2d(labels.T)
        return with_sums(columns) if self.classes else columns

    @property
    def _columns(self) -> Array:
        """The features; with an intercept, which takes up a shift of each, centred, and a
        constant."""
        if not self.intercept:
            return self.features
        centred = self.features - self.features.mean(axis=0)
        return np.column_stack([centred, np.ones(len(centred))])

    def _gaussian(self, samples: float) -> Stratified:
        """The strata of empirical moments."""
        targets = self._targets(self.labels).T
        if self.strata is None and not (self.binary or self.classes):
            allowed = (
                f"at most the {len(self.labels)} rows, or given with strata: ids of bins of the "
                "label, or np.zeros(N) for one"
            )
            raise InvalidArgument("samples", samples, allowed)
        of = self.class_of_row if self.strata is None else self.strata
        rows, p = self.features.shape
        ids, counts = np.unique(of, return_counts=True)
        fewest = int(np.argmin(counts))
        needed = int(FEWEST_OF_STRATUM * p)
        if counts[fewest] < needed and self.strata is None:
            allowed = (
                f"at most the {rows} rows here: beyond them features are Gaussian in each class, "
                f"which takes {needed} rows of each, {FEWEST_OF_STRATUM:g} for each of the {p} "
                f"features, and the smallest has {counts[fewest]}"
            )
            raise InvalidArgument("samples", samples, allowed)
        if counts[fewest] < needed:
            raise InvalidArgument(
                "features",
                f"{counts[fewest]} in stratum {ids[fewest]}",
                f"at least {needed} rows in every stratum, {FEWEST_OF_STRATUM:g} for each of the "
                f"{p} features (take fewer strata, or fewer features)",
            )
        # of the features and, last, the labels
        both = p + targets.shape[1]
        means, joint = np.empty((len(ids), both)), np.empty((len(ids), both, both))
        for i, own in enumerate(of == one for one in ids):
            part = np.column_stack([self.features[own], targets[own]])
            means[i] = part.mean(axis=0)
            part -= means[i]
            joint[i] = part.T @ part / len(part)
        if self.classes and np.diagonal(joint, axis1=1, axis2=2)[:, p:].any():
            raise InvalidArgument("strata", "ids of several classes", "ids of one class each")
        return gaussian_strata(
            counts / rows,
            means,
            joint,
            binary=self.binary,
            intercept=self.intercept,
            rows=rows,
            labels=targets.shape[1],
            outputs=self.outputs,
            classes=bool(self.classes),
        )
