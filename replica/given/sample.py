"""Moments of given features: a network of any depth, real data.  docs/theory.md 20

Strata are classes, or whatever tells inputs apart so that features are nearly Gaussian in each.
Shares, means, covariances and labels are the sample's empirical moments; what they differ by from
those of the population is in the equations, (20.8).
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from solvers.arrays import like, namespace, to_host
from solvers.results import Array

from ..display import in_words
from ..errors import InvalidArgument
from ..problem import assign, finite_array, flag
from .strata import Strata, Stratified, StratumLabels, labels_of

# Samples of a stratum over features: with fewer the small eigenvalues of an empirical covariance
# are far below those of the population.
FEWEST = 3.0


@dataclass(frozen=True)
class MomentStrata(Strata):
    """Few strata, whose moments are given.

    Attributes
    ----------
    shares : (N,)
    means, covariances : (N, p), (N, p, p)
    label_covariances : (N, p)
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
        variance = (self.covariances @ x) @ x
        return to_host(self.means @ x), to_host(self.label_covariances @ x), to_host(variance)

    def mix_vectors(self, of_means: Array, of_labels: Array) -> Any:
        of_means, of_labels = like(of_means, self.means), like(of_labels, self.means)
        return of_means @ self.means + of_labels @ self.label_covariances


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class FeatureSample:
    """Given features, of which samples are drawn for the readout.  docs/theory.md 20

    Parameters
    ----------
    features : array (N, p)
        Of a network of any depth, or data; the readout gets them over sqrt(p).
    labels : array (N,)
        Of the samples, as the readout is trained on.
    strata : array (N,), optional
        What tells apart inputs so that features are nearly Gaussian in each stratum: classes of
        labels +-1 unless given.
    intercept : bool
        Whether the readout has one, which is not penalised.

    Raises
    ------
    InvalidArgument
        If shapes do not fit each other, a number is not finite, labels are not +-1 and no strata
        are given.  That a stratum has too few samples for its covariance is said where that is
        first needed.
    """

    features: Array
    labels: Array
    strata: Any = None
    intercept: bool = False

    def __post_init__(self) -> None:
        features = finite_array("features", self.features, 2)
        labels = finite_array("labels", self.labels, 1)
        try:
            strata = labels if self.strata is None else np.asarray(self.strata)
            if strata.dtype.kind == "O":
                np.unique(strata)
            if np.ma.is_masked(self.strata) or (
                strata.dtype.kind != "f" and np.any(strata != strata)
            ):
                raise ValueError  # such as NaT
        except (TypeError, ValueError):
            allowed = "ids that can be compared, all numbers or all text, none missing"
            raise InvalidArgument("strata", self.strata, allowed) from None
        for name, each in (("labels", labels), ("strata", strata)):
            if each.shape != features.shape[:1]:
                allowed = f"one for each of the {len(features)} rows of features"
                raise InvalidArgument(name, f"shape {each.shape}", allowed)
        assign(self, features=features, labels=labels, strata=strata)
        if strata is labels and not self.binary:
            allowed = "given where labels are not +-1: bins of the label, or classes"
            raise InvalidArgument("strata", None, allowed)
        if strata.dtype.kind == "f":
            finite_array("strata", strata, 1)
        flag("intercept", self.intercept)

    def __repr__(self) -> str:
        return f"FeatureSample({in_words(self.described)})"

    @property
    def described(self) -> dict[str, Any]:
        """The sample in plain values: shapes in the place of numbers."""
        described: dict[str, Any] = {"features": " x ".join(map(str, self.features.shape))}
        return described | ({"intercept": True} if self.intercept else {})

    @property
    def binary(self) -> bool:
        """Whether labels are +-1."""
        return bool((np.abs(self.labels) == 1).all())

    @property
    def width(self) -> int:
        """p."""
        return int(self.features.shape[1])

    def stratified(self, level: int) -> Stratified | None:
        """The strata, of which there is one level, with the empirical moments of each.

        Raises
        ------
        InvalidArgument
            If a stratum has too few samples for its covariance.

        Examples
        --------
        >>> features = np.array([[0.0], [1.0], [2.0], [4.0], [4.0], [7.0]])
        >>> given = FeatureSample(features=features, labels=[1, 1, 1, -1, -1, -1]).stratified(0)
        >>> given.strata.means.tolist(), given.strata.covariances.round(3).tolist()
        ([[5.0], [1.0]], [[[2.0]], [[0.667]]])
        >>> given.moments.h.tolist()
        [-1.0, 1.0]
        """
        if level:
            return None
        features = self.features
        if self.intercept:  # which takes up a shift of all features
            features = features - features.mean(axis=0)
            features = np.column_stack([features, np.ones(len(features))])
        rows, p = features.shape
        ids, counts = np.unique(self.strata, return_counts=True)
        fewest = int(np.argmin(counts))
        if counts[fewest] < FEWEST * p:
            raise InvalidArgument(
                "features",
                f"{counts[fewest]} in stratum {ids[fewest]}",
                f"at least {int(FEWEST * p)} samples in every stratum, {FEWEST:g} for each of the "
                f"{p} features (take fewer strata, or fewer features)",
            )
        # of the features and, last, the label
        means, joint = np.empty((len(ids), p + 1)), np.empty((len(ids), p + 1, p + 1))
        for i, own in enumerate(self.strata == one for one in ids):
            part = np.column_stack([features[own], self.labels[own]])
            means[i] = part.mean(axis=0)
            part -= means[i]
            joint[i] = part.T @ part / len(part)
        shares, covariances = counts / rows, joint[:, :p, :p].copy()
        strata = MomentStrata(shares, means[:, :p].copy(), covariances, joint[:, p, :p].copy())
        moments = StratumLabels(shares, means[:, p], joint[:, p, p], 0.0)
        labels = labels_of(moments.h, [(0.0, 1.0)], binary=self.binary)
        return Stratified(strata, moments, labels, rows=rows, intercept=self.intercept)
