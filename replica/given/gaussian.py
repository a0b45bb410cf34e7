"""Strata in which features are Gaussian, from moments of a sample or of a population.

docs/theory.md 20
"""

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from solvers.arrays import like, namespace, to_host
from solvers.results import Array

from ..display import Described
from ..errors import InvalidArgument
from ..problem import GaussianMixture, assign, coarsest, flag, semidefinite, stacked
from .strata import Strata, Stratified, StratumLabels, labels_of

# How many axes each has beside that of the strata.
FEATURES = {"covariances": 2, "means": 1, "fractions": 0}
LABELS = {"label_means": 0, "label_covariances": 1, "label_variances": 0}


@dataclass(frozen=True)
class MomentStrata(Strata):
    """Few strata, whose moments are given.

    Attributes
    ----------
    shares : (N,)
    means, covariances : (N, p), (N, p, p)
    label_covariances : (P, N, p)
        With P labels.
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


def gaussian_strata(
    shares: Array,
    means: Array,
    joint: Array,
    *,
    binary: bool,
    intercept: bool,
    rows: int | None = None,
    labels: int = 1,
    outputs: int = 1,
    classes: bool = False,
) -> Stratified:
    """Strata of the ``shares`` (N,), with ``means`` (N, p + P) and ``joint`` covariances of the p
    features and, last, P ``labels``: those of so many ``rows``, or exact.

    With an ``intercept``, which takes up a shift of each, features are centred, and a constant is
    added.
    """
    p = means.shape[1] - labels
    mu, h = means[:, :p].copy(), means[:, p:].T
    S, e = joint[:, :p, :p].copy(), joint[:, p:, :p].swapaxes(0, 1).copy()
    if intercept:
        mu = np.pad(mu - shares @ mu, ((0, 0), (0, 1)), constant_values=1.0)
        S, e = (np.pad(x, ((0, 0), (0, pad), (0, 1))) for x, pad in ((S, 1), (e, 0)))
    spread = np.diagonal(joint, axis1=1, axis2=2)[:, p:].T
    moments = StratumLabels(shares, h, spread, 0.0, outputs)
    law = labels_of(h[0], [(0.0, 1.0)], binary=binary)
    strata = MomentStrata(shares, mu, S, e)
    return Stratified(strata, moments, law, rows=rows, intercept=intercept, classes=classes)


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class FeatureMoments(Described):
    """Features that are Gaussian in each of N strata, by the moments of their population.

    In stratum nu features and label are phi = mu + Z and y = h + t, with Cov Z = S, Cov (Z, t) = e
    and Var t = s: those of a Gaussian covariate model, of a kernel's eigenfunctions, or of classes.
    The equations are (20.2)-(20.7), in which nothing is measured on rows.

    Parameters
    ----------
    means : array (N, p), optional
        mu; 0 unless given.
    covariances : array (N, p, p)
        S, symmetric and positive semidefinite.
    fractions : array (N,), optional
        Shares of the strata, of any sum.  One stratum needs none.
    label_means : array (N,), optional
        h; 0 unless given.
    label_covariances : array (N, p), optional
        e; 0 unless given.
    label_variances : array (N,), optional
        s, noise included: needed with ``label_covariances``, else 0 unless given.  Where all are 0
        and ``label_means`` are +-1, labels are two classes.
    intercept : bool
        Whether the readout has one, which is not penalised.

    Any array without the axis of strata is that of every stratum; there is one where all are.

    Raises
    ------
    InvalidArgument
        If shapes do not fit each other, a number is not finite, shares are negative, or a
        covariance of features, or of features with the label, is not positive semidefinite: up to
        the rounding of the numbers as they are given, single precision too.

    Examples
    --------
    >>> from replica import FeatureMoments, solve
    >>> moments = FeatureMoments(
    ...     covariances=np.diag([1.0, 0.5]), label_covariances=[1.0, 0.0], label_variances=1.1
    ... )
    >>> moments
    FeatureMoments(features 2, strata 1)
    >>> round(solve(moments, samples=50, lam=0.1).test_error, 3)
    0.104
    """

    covariances: Any
    means: Any = None
    fractions: Any = None
    label_means: Any = None
    label_covariances: Any = None
    label_variances: Any = None
    intercept: bool = False
    law: GaussianMixture = field(init=False)  # of the features and, last, the label

    def __post_init__(self) -> None:
        if self.label_means is None and self.label_covariances is None:
            raise InvalidArgument("label_means", None, "given, or label_covariances: the labels")
        alike = {"fractions": 1.0} if self.fractions is None else {}
        axes = FEATURES | LABELS
        arrays = stacked({name: getattr(self, name) for name in axes} | alike, axes)
        if alike and len(arrays["means"]) > 1:
            raise InvalidArgument("fractions", None, f"given: of {len(arrays['means'])} strata")
        given = {name: getattr(self, name) for name in axes}
        epsilon = coarsest(**{name: x for name, x in given.items() if x is not None})
        features = {name: arrays[name] for name in FEATURES}
        law = GaussianMixture(**features | {"covariances": self.covariances})
        known = {"fractions": law.fractions, "covariances": law.each_covariance}
        assign(self, **arrays | known)
        assign(self, law=self._joint(epsilon))
        flag("intercept", self.intercept)

    @property
    def described(self) -> dict[str, Any]:
        """The moments in plain values: sizes in the place of numbers."""
        described: dict[str, Any] = {"features": self.width, "strata": len(self.fractions)}
        return described | ({"intercept": True} if self.intercept else {})

    @property
    def vary(self) -> bool:
        """Whether labels vary within a stratum of any share."""
        return bool(self.label_variances[self.fractions > 0].any())

    @property
    def binary(self) -> bool:
        """Whether labels are +-1."""
        return not self.vary and bool((np.abs(self.label_means[self.fractions > 0]) == 1).all())

    @property
    def outputs(self) -> int:
        """1: of several there is no theory of given moments."""
        return 1

    @property
    def width(self) -> int:
        """p."""
        return int(self.means.shape[1])

    def _joint(self, epsilon: float) -> GaussianMixture:
        """The law of features and label, of moments with the relative rounding ``epsilon``."""
        S, e, spread = self.covariances, self.label_covariances, self.label_variances
        joint = np.block([[S, e[..., None]], [e[:, None], spread[:, None, None]]])
        # correlations; of features of hardly any variance to the rounding of the others
        variances = np.diagonal(S, axis1=1, axis2=2)
        least = variances.max(axis=1, keepdims=True)
        scale = np.column_stack([np.maximum(variances, 1e-6 * least), spread])
        scale = np.sqrt(np.where(scale > 0, scale, 1e-30))
        scale = scale[:, :, None] * scale[:, None]
        means = np.column_stack([self.means, self.label_means])
        try:
            joint = semidefinite(joint / scale, epsilon) * scale
            return GaussianMixture(means=means, covariances=joint, fractions=self.fractions)
        except InvalidArgument:
            allowed = "at least e S^-1 e, which label_covariances e explain of the label"
            raise InvalidArgument("label_variances", spread.tolist(), allowed) from None

    def stratified(self, samples: float) -> Stratified:
        """The strata, whatever the ``samples`` of the readout."""
        law, own = self.law, self.fractions > 0
        shares, means, joint = (x[own] for x in (law.fractions, law.means, law.each_covariance))
        return gaussian_strata(shares, means, joint, binary=self.binary, intercept=self.intercept)
