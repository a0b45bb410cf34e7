"""Given features, of a network of any depth or of data: N rows with labels.  docs/theory.md 20, 22

Every row is its own stratum where n of the N rows are to train.  For more samples than rows, or
where strata are given, strata are classes, or whatever tells inputs apart so that features are
nearly Gaussian in each: shares, means, covariances and labels are then empirical moments, and what
they differ by from those of the population is in the equations, (20.8).
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from solvers.arrays import like, namespace, to_host
from solvers.results import Array

from ..display import in_words
from ..errors import InvalidArgument
from ..problem import assign, finite_array, flag
from .outputs import with_sums
from .rows import RowStrata
from .strata import Strata, Stratified, StratumLabels, labels_of

# Samples of a stratum over features: with fewer the small eigenvalues of an empirical covariance
# are far below those of the population.
FEWEST = 3.0
# Rows of a large sample that are taken, unless more are to train: these numbers are far below the
# scatter of errors with the rows, and WORK is that of a second.
FEWEST_ROWS, MOST_ROWS, WORK = 2000, 5000, 5e8
MOST_CLASSES = 20  # that whole numbers are taken for


@dataclass(frozen=True)
class MomentStrata(Strata):
    """Few strata, whose moments are given.

    Attributes
    ----------
    shares : (N,)
    means, covariances : (N, p), (N, p, p)
    label_covariances : (N, p), or (P, N, p) with P labels
    """

    shares: Array
    means: Any
    covariances: Any
    label_covariances: Any

    @property
    def width(self) -> int:
        return int(self.means.shape[1])

    def mix(self, weights: Array) -> Any:
        xp, w = namespace(self.means), like(weights, self.means)
        return xp.tensordot(w, self.covariances, axes=1) + (self.means.T * w) @ self.means

    def trace(self, matrix: Any) -> Array:
        xp = namespace(matrix)
        means = xp.sum((self.means @ matrix) * self.means, axis=1)
        return to_host(xp.tensordot(self.covariances, matrix, axes=2) + means) / self.width

    def along(self, x: Any) -> tuple[Array, Array, Array]:
        xp = namespace(x)
        variance = xp.sum((x @ self.covariances) * x, axis=-1)
        label = (self.label_covariances @ x[..., None])[..., 0]
        return to_host(x @ self.means.T), to_host(label), to_host(variance).T

    def mix_vectors(self, of_means: Array, of_labels: Array) -> Any:
        of_means, of_labels = like(of_means, self.means), like(of_labels, self.means)
        labels = namespace(of_labels).sum(of_labels[..., None] * self.label_covariances, axis=-2)
        return of_means @ self.means + labels


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class FeatureSample:
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
        whole numbers of an integer type, or 0 and 1.  Two classes are -1 and +1 in their order; of
        more there is an output for each, trained on 1 for its class and 0 for others.
    strata : array (N,), optional
        What tells apart inputs so that features are nearly Gaussian in each stratum.
    intercept : bool
        Whether the readout has one, which is not penalised.
    classes : sequence, optional
        Their names, in the order of outputs: as the labels have them unless given, which more than
        20 must be.  None where there are two, or none.

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

    def __post_init__(self) -> None:
        features = finite_array("features", self.features, 2)
        (labels, classes), strata = _as_numbers(self.labels, self.classes), self.strata
        if strata is not None:
            try:
                strata = np.asarray(strata)
                if strata.dtype.kind == "O":
                    np.unique(strata)
                if np.ma.is_masked(self.strata) or (
                    strata.dtype.kind != "f" and np.any(strata != strata)
                ):
                    raise ValueError  # such as NaT
            except (TypeError, ValueError):
                allowed = "ids that can be compared, all numbers or all text, none missing"
                raise InvalidArgument("strata", self.strata, allowed) from None
        shapes = {"labels": labels.shape[:1]} | ({} if strata is None else {"strata": strata.shape})
        for name, shape in shapes.items():
            if shape != features.shape[:1]:
                allowed = f"one for each of the {len(features)} rows of features"
                raise InvalidArgument(name, f"shape {shape}", allowed)
        assign(self, features=features, labels=labels, strata=strata, classes=classes)
        if strata is not None and strata.dtype.kind == "f":
            finite_array("strata", strata, 1)
        flag("intercept", self.intercept)

    def __repr__(self) -> str:
        return f"FeatureSample({in_words(self.described)})"

    @property
    def described(self) -> dict[str, Any]:
        """The sample in plain values: shapes in the place of numbers."""
        described: dict[str, Any] = {"features": " x ".join(map(str, self.features.shape))}
        if self.outputs > 1:
            described["outputs" if self.classes is None else "classes"] = self.outputs
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
        return self.labels if self.classes is None else self.labels.argmax(axis=1)

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
        N = len(labels)
        shares, h = np.full(N, 1 / N), self._targets(labels)
        return self._stratified(RowStrata(shares, features), h, np.zeros_like(h), N)

    def _targets(self, labels: Array) -> Array:
        """Labels (N,) or (N, C) as equations ask for them, (P, N)."""
        columns = np.atleast_2d(labels.T)
        return columns if self.classes is None else with_sums(columns)

    def _stratified(self, strata: Strata, h: Array, spread: Array, rows: int) -> Stratified:
        """Strata of so many rows whose labels have the means ``h`` and variances (P, N)."""
        moments = StratumLabels(strata.shares, h, spread, 0.0, self.outputs)
        law = labels_of(h[0], [(0.0, 1.0)], binary=self.binary)
        return Stratified(
            strata,
            moments,
            law,
            rows=rows,
            intercept=self.intercept,
            classes=self.classes is not None,
        )

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
                f"at most the {len(self.labels)} rows, or given with strata: bins of the label"
            )
            raise InvalidArgument("samples", samples, allowed)
        features, of = self._columns, self.class_of_row if self.strata is None else self.strata
        rows, p = features.shape
        ids, counts = np.unique(of, return_counts=True)
        fewest = int(np.argmin(counts))
        if counts[fewest] < FEWEST * p:
            raise InvalidArgument(
                "features",
                f"{counts[fewest]} in stratum {ids[fewest]}",
                f"at least {int(FEWEST * p)} samples in every stratum, {FEWEST:g} for each of the "
                f"{p} features (take fewer strata, or fewer features)",
            )
        # of the features and, last, the labels
        both = p + targets.shape[1]
        means, joint = np.empty((len(ids), both)), np.empty((len(ids), both, both))
        for i, own in enumerate(of == one for one in ids):
            part = np.column_stack([features[own], targets[own]])
            means[i] = part.mean(axis=0)
            part -= means[i]
            joint[i] = part.T @ part / len(part)
        spread = np.diagonal(joint, axis1=1, axis2=2)[:, p:].T
        if self.classes is not None and spread.any():
            raise InvalidArgument("strata", "ids of several classes", "ids of one class each")
        with_label = joint[:, p:, :p].swapaxes(0, 1).copy()
        covariances = joint[:, :p, :p].copy()
        strata = MomentStrata(counts / rows, means[:, :p].copy(), covariances, with_label)
        return self._stratified(strata, means[:, p:].T, spread, rows)


def _as_numbers(labels: Any, classes: Any = None) -> tuple[Array, Any]:
    """Real labels as they are, (N,) or (N, C); two classes as -1 and +1, more as (N, C) of 0 and 1;
    and the classes, if these are more than two.

    >>> _as_numbers([True, False])[0].tolist(), _as_numbers(["cat", "dog"])[0].tolist()
    ([1.0, -1.0], [-1.0, 1.0])
    >>> _as_numbers([2, 0, 1])
    (array([[0., 0., 1.],
           [1., 0., 0.],
           [0., 1., 0.]]), (0, 1, 2))
    """
    named = None if classes is None else _names(classes)
    try:
        array = np.asarray(labels)
    except ValueError:  # rows of several lengths
        return finite_array("labels", labels, 1), None
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    if array.ndim == 2:  # real vectors
        array = finite_array("labels", labels, 2)
        one_hot = np.isin(array, [0, 1]).all() and (array.sum(axis=1) == 1).all()
        if named is not None and not (one_hot and array.sum(axis=0).all()):
            allowed = (
                "left out unless labels (N, C) are 1 of a class and 0 of others, each with rows"
            )
            raise InvalidArgument("classes", classes, allowed)
        if named is not None and len(named) != array.shape[1]:
            raise InvalidArgument("classes", classes, f"{array.shape[1]} names")
        return array, None if named is None else tuple(named.tolist())
    if array.ndim != 1 or np.ma.is_masked(labels) or array.dtype.kind not in "biufUSO":
        return finite_array("labels", labels, 1), None
    if array.dtype.kind in "USO":
        each = np.ravel(np.array(labels, dtype=object)).tolist()
        if not all(isinstance(one, str) for one in each):  # numbers as objects, or a label lacks
            return _as_numbers(finite_array("labels", each, 1), classes)
        array = np.array(each)
    found = np.unique(array)
    if named is not None:
        alike = array.dtype.kind == named.dtype.kind or {array.dtype.kind, named.dtype.kind} <= {
            *"iu"
        }
        if not alike or not np.array_equal(np.sort(named), found):
            allowed = "those of the labels, each once and of their type (left out they are found)"
            raise InvalidArgument("classes", classes, allowed)
        found = named
    elif array.dtype.kind == "f" and found.tolist() != [0, 1]:
        return finite_array("labels", array, 1), None
    elif len(found) > MOST_CLASSES:
        raise InvalidArgument(
            "labels",
            f"{len(found)} names or whole numbers, from {found[0]} to {found[-1]}",
            f"of at most {MOST_CLASSES} values (classes=np.unique(labels) says that these are "
            "classes, labels.astype(float) that they are numbers)",
        )
    if len(found) == 2:
        return np.where(array == found[1], 1.0, -1.0), None
    if len(found) > 2:
        return np.asarray(array[:, None] == found, float), tuple(found.tolist())
    return finite_array("labels", array, 1), None


def _names(classes: Any) -> Array:
    """Names of classes, all text or all whole numbers, each once."""
    try:
        each = [] if np.ma.is_masked(classes) else list(classes)
        named = np.array(each)
    except (TypeError, ValueError):
        each, named = [], np.empty(0)
    text = all(isinstance(one, str) for one in each)
    if (
        named.ndim != 1
        or not (text or named.dtype.kind in "biu")
        or len({*each}) < max(len(each), 2)
    ):
        raise InvalidArgument("classes", classes, "names or whole numbers, two or more, each once")
    return named
