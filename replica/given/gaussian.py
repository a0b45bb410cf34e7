"""Strata in which features are Gaussian, from moments of a sample or of a population.

docs/theory.md 20
"""

from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from solvers.results import Array

from ..display import Described
from ..errors import InvalidArgument
from ..problem import GaussianMixture, assign, coarsest, flag, semidefinite
from .equations import RowStrata
from .strata import Strata, Stratified, StratumLabels, labels_of, stacked

# Number of axes of each array, beside the axis of the strata.
FEATURE_AXES = {"covariances": 2, "means": 1, "fractions": 0}
LABEL_AXES = {"label_means": 0, "label_covariances": 1, "label_variances": 0}


@dataclass(frozen=True)
class MomentStrata(Strata):
    """Few strata, whose moments are given.

    Attributes
    ----------
    shares : (N,)
    means, covariances : (N, p), (N, p, p)
        Here and below of r coordinates, where features span fewer directions.
    label_covariances : (P, N, p)
        Covariances of features with each of P labels.
    feature_count : int
        p.
    """

    shares: Array
    means: Array
    covariances: Array
    label_covariances: Array
    feature_count: int

    @property
    def width(self) -> int:
        return self.feature_count

    @property
    def coordinates(self) -> int:
        return int(self.means.shape[1])

    def mix(self, weights: Array) -> Any:
        stratum_cov = np.tensordot(weights, self.covariances, axes=1)
        return stratum_cov + (self.means.T * weights) @ self.means

    def trace(self, matrix: Any) -> Array:
        mean_forms = np.vecdot(self.means @ matrix, self.means)
        return np.asarray(np.tensordot(self.covariances, matrix, axes=2) + mean_forms) / self.width

    def along(self, x: Any) -> tuple[Array, Array, Array]:
        label_covariance = (self.label_covariances @ x[..., None])[..., 0]
        return x @ self.means.T, label_covariance, np.vecdot(x @ self.covariances, x).T

    def mix_vectors(self, of_means: Array, of_labels: Array) -> Any:
        label_sums = (of_labels[..., None] * self.label_covariances).sum(axis=-2)
        return of_means @ self.means + label_sums


def gaussian_strata(
    model: Any, shares: Array, mu: Array, h: Array, joint: Array | None = None, rows: Any = None
) -> Stratified:
    """Strata of a ``model`` with the ``shares`` (N,), means ``mu`` (N, p) of features and ``h``
    (P, N) of labels, and ``joint`` covariances (N, p + P, p + P) of both, unless each stratum is a
    row: from a sample of so many ``rows``, or exact.

    With an intercept, which takes up a shift of each, features are centred, and a constant is
    added.
    """
    pad = (0, int(model.intercept))
    (_, r), width = mu.shape, model.width + int(model.intercept)
    if model.intercept:
        mu = np.pad(mu - shares @ mu, ((0, 0), pad), constant_values=1.0)
    feature_strata: Strata = RowStrata(shares, mu, width)
    label_spread = np.zeros_like(h)
    if joint is not None:
        S, e = joint[:, :r, :r], joint[:, r:, :r].swapaxes(0, 1)
        label_spread = np.diagonal(joint, axis1=1, axis2=2)[:, r:].T
        padded_moments = (np.pad(S, ((0, 0), pad, pad)), np.pad(e, ((0, 0), (0, 0), pad)))
        feature_strata = MomentStrata(shares, mu, *padded_moments, width)
    label_moments = StratumLabels(shares, h, label_spread, 0.0, model.outputs)
    label_law = labels_of(h[0], [(0.0, 1.0)], binary=model.binary)
    readout_fields = rows, model.intercept, bool(model.classes)
    return Stratified(feature_strata, label_moments, label_law, False, *readout_fields)


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
        Shares of the strata, as of a GaussianMixture.  One stratum needs none.
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
    outputs: ClassVar[int] = 1  # of several there is no theory of given moments
    classes: ClassVar[None] = None

    def __post_init__(self) -> None:
        if self.label_means is None and self.label_covariances is None:
            raise InvalidArgument("label_means", None, "given, or label_covariances: the labels")
        moment_axes, one_stratum = FEATURE_AXES | LABEL_AXES, self.fractions is None
        given = {name: x for name in moment_axes if (x := getattr(self, name)) is not None}
        stacks = stacked({"covariances": self.covariances, "fractions": 1.0} | given, moment_axes)
        if one_stratum and len(stacks["means"]) > 1:
            raise InvalidArgument("fractions", None, f"given: of {len(stacks['means'])} strata")
        feature_moments = {name: stacks[name] for name in FEATURE_AXES}
        mixture = GaussianMixture(**feature_moments | {"covariances": self.covariances})
        law_fields = {"fractions": mixture.fractions, "covariances": mixture.each_covariance}
        assign(self, **stacks | law_fields)
        assign(self, law=self._joint_law(coarsest(**given)))
        flag("intercept", self.intercept)

    @property
    def described(self) -> dict[str, Any]:
        """The moments in plain values: sizes in the place of numbers."""
        moment_facts: dict[str, Any] = {"features": self.width, "strata": len(self.fractions)}
        return moment_facts | ({"intercept": True} if self.intercept else {})

    @property
    def vary(self) -> bool:
        """True if labels vary within a stratum of any share."""
        return bool(self.label_variances[self.fractions > 0].any())

    @property
    def binary(self) -> bool:
        """True if labels are +-1."""
        return not self.vary and bool((np.abs(self.label_means[self.fractions > 0]) == 1).all())

    @property
    def width(self) -> int:
        """Number p of features."""
        return int(self.means.shape[1])

    def _joint_law(self, epsilon: float) -> GaussianMixture:
        """The law of features and label, of moments with the relative rounding ``epsilon``."""
        S, e, label_variances = self.covariances, self.label_covariances, self.label_variances
        joint_cov = np.block([[S, e[..., None]], [e[:, None], label_variances[:, None, None]]])
        # correlations; of features of hardly any variance to the rounding of the others
        S_diagonal = np.diagonal(S, axis1=1, axis2=2)
        largest_variances = S_diagonal.max(axis=1, keepdims=True)
        scale = np.column_stack([np.maximum(S_diagonal, 1e-6 * largest_variances), label_variances])
        scale = np.sqrt(np.where(scale > 0, scale, 1e-30))
        scale = scale[:, :, None] * scale[:, None]
        mu_h = np.column_stack([self.means, self.label_means])
        try:
            joint_cov = semidefinite(joint_cov / scale, epsilon) * scale
            return GaussianMixture(means=mu_h, covariances=joint_cov, fractions=self.fractions)
        except InvalidArgument:
            allowed = "at least e S^-1 e, which label_covariances e explain of the label"
            raise InvalidArgument("label_variances", label_variances.tolist(), allowed) from None

    def stratified(self, samples: float) -> Stratified:
        """The strata, whatever the ``samples`` of the readout."""
        law, in_use = self.law, self.fractions > 0
        shares, means, joint = (x[in_use] for x in (law.fractions, law.means, law.each_covariance))
        return gaussian_strata(self, shares, means[:, :-1], means[:, -1:].T, joint)
