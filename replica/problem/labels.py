"""The law of a label: the target, and what labels add to it.

    y = sigma_*(z) + sqrt(Delta) xi + zeta       zeta = 0 but for Gaussian outliers, or Student's t;
    y = +-1,  P(y = 1) = P_+(sigma_*(z))         a flipped sign, a logistic or a probit teacher.

The former are noise laws for regression, the latter channels.  Everything Gaussian is integrated
in closed form: noise with outliers is a mixture of two Gaussians, and Student's t one of some
dozens.  ``LabelLaw`` holds all that the steps (docs/theory.md 2, 10, 15) and the readout
(docs/theory.md 3-6) ask of labels.
"""

from dataclasses import dataclass
from functools import cached_property, lru_cache, partial
from typing import Any

import numpy as np
from numpy.random import Generator
from scipy.special import expit, ndtr

from solvers.results import Array

from ..errors import InvalidArgument
from . import student_t
from .activation import Activation
from .closed_forms import step_moments
from .components import Components
from .expressions import Expression
from .geometry import triangular_root
from .kinks import crossings
from .mixtures import ClassLabels, GaussianMixture
from .moments import Averages
from .targets import MultiIndex, Target, target


@dataclass(frozen=True)
class LabelNoise:
    """A law of labels, given the target: made by :func:`label_noise`.

    Attributes
    ----------
    kind : {"outliers", "student", "flip", "logistic", "probit"}
    parameters : tuple of float
        (fraction, variance), (nu, scale), (probability,) or nothing.
    """

    kind: str
    parameters: tuple[float, ...] = ()

    @property
    def name(self) -> str:
        """As it is typed."""
        return ":".join([self.kind, *(f"{value:g}" for value in self.parameters)])

    @property
    def binary(self) -> bool:
        """Whether labels are +-1."""
        return self.kind in ("flip", "logistic", "probit")

    @property
    def variance(self) -> float:
        """Variance of what is added to the target; 0 for labels +-1."""
        return sum(variance * share for variance, share in self.components)

    @property
    def components(self) -> list[tuple[float, float]]:
        """Variances and shares of the Gaussians that are mixed; one of no variance for labels
        +-1."""
        if self.kind == "student":
            nu, scale = self.parameters
            variances, shares = student_t.mixture(nu)
            return list(zip((scale**2 * variances).tolist(), shares.tolist(), strict=True))
        if self.kind != "outliers":
            return [(0.0, 1.0)]
        fraction, variance = self.parameters
        return [(v, share) for v, share in ((0.0, 1 - fraction), (variance, fraction)) if share]

    def missing_moment(self, k: float) -> float:
        """E abs(xi)^k of what is added, less that of its ``components``, which agree up to k = 2;
        infinite for k of nu or more of Student's t."""
        if self.kind != "student" or k <= 2:
            return 0.0
        nu, scale = self.parameters
        return scale**k * student_t.missing_moment(nu, k)

    def probability(self, target: Array) -> Array:
        """P(y = 1) where sigma_* has the values ``target``."""
        if self.kind == "logistic":
            return np.asarray(expit(target))
        if self.kind == "probit":
            return np.asarray(ndtr(target))
        (flip,) = self.parameters
        return np.asarray(flip + (1 - 2 * flip) * np.heaviside(target, 0.5))

    def apply(self, target: Array, rng: Generator) -> Array:
        """Labels drawn where sigma_* (with its Gaussian noise) has the values ``target``."""
        if self.binary:
            return np.where(rng.random(target.shape) < self.probability(target), 1.0, -1.0)
        if self.kind == "student":
            nu, scale = self.parameters
            return target + scale * rng.standard_t(nu, target.shape)
        fraction, variance = self.parameters
        outlier = rng.random(target.shape) < fraction
        return target + outlier * np.sqrt(variance) * rng.standard_normal(target.shape)


def label_noise(spec: Any) -> LabelNoise | None:
    """What labels add to a target, or the channel they come through.

    Parameters
    ----------
    spec : str, LabelNoise or None
        outliers:SHARE:VARIANCE, student:NU; of labels +-1 flip:P, logistic, probit.

    Raises
    ------
    InvalidArgument

    Examples
    --------
    >>> import numpy as np
    >>> from replica.problem import label_noise
    >>> label_noise("outliers:0.1:25").variance
    2.5
    >>> label_noise("flip:0.1").probability(np.array([-2.0, 2.0])).tolist()
    [0.1, 0.9]
    """
    if spec is None or isinstance(spec, LabelNoise):
        return spec
    allowed = (
        "one of outliers:FRACTION:VARIANCE, student:NU or student:NU:SCALE (NU > 2), "
        "flip:PROBABILITY (below 1/2), logistic or probit"
    )
    kind, *texts = str(spec).strip().split(":")
    try:
        values = tuple(float(text) for text in texts)
    except ValueError:
        raise InvalidArgument("label_noise", spec, allowed) from None
    if kind == "student" and len(values) == 1:
        values = (*values, 1.0)
    good = {
        "outliers": len(values) == 2 and 0 <= values[0] <= 1 and 0 <= values[1] < np.inf,
        "student": len(values) == 2 and 2 < values[0] < np.inf and 0 < values[1] < np.inf,
        "flip": len(values) == 1 and 0 <= values[0] < 0.5,
        "logistic": not values,
        "probit": not values,
    }
    if not isinstance(spec, str) or not good.get(kind, False):
        raise InvalidArgument("label_noise", spec, allowed)
    return LabelNoise(kind, values)


@dataclass(frozen=True)
class LabelLaw:
    """The law of a label given the input.

    Attributes
    ----------
    target : Activation, MultiIndex or ClassLabels
        sigma_*; the last of the component of the input.
    noise : float
        Variance Delta of the Gaussian noise that is added to it.
    added : LabelNoise or None
        What labels add beside that, or the channel they come through.
    """

    target: Target
    noise: float = 0.0
    added: LabelNoise | None = None

    @property
    def mean(self) -> Any:
        """E[y | z] as a function of the target's arguments."""
        return mean_label(self.target, self.added)

    @property
    def combined_mean(self) -> Any:
        """E[y | z] as a function of the ``combinations`` of the target's arguments."""
        return mean_label(combined(self.target)[0], self.added)

    @property
    def combinations(self) -> Array:
        """The fewest linear combinations of its arguments that the target depends on: orthonormal
        rows (k, T)."""
        return combined(self.target)[1]

    @property
    def variance(self) -> float:
        """Variance of what is added to the target; of a channel, none is."""
        return self.noise + (0.0 if self.added is None else self.added.variance)

    @cached_property
    def channel(self) -> bool:
        """Whether labels are +-1 at random, so that they vary about their mean by what the input
        says: ridge regression has no closed form then."""
        return self.added is not None and self.added.binary

    @cached_property
    def binary(self) -> bool:
        """Whether labels are +-1: those of a channel, or of a target that is, without noise."""
        if self.added is not None:
            return self.added.binary
        if isinstance(self.target, ClassLabels):
            values = np.abs(self.target.values)
            return self.noise == 0 and values.ndim == 1 and bool((values == 1).all())
        z = np.random.default_rng(0).standard_normal((self.target.dimension, 64)) * 2
        return self.noise == 0 and bool((np.abs(self.target(*z)) == 1).all())

    @property
    def gaussians(self) -> list[tuple[float, float]]:
        """Variances and shares of the Gaussians that real labels have around sigma_*."""
        mixed = [(0.0, 1.0)] if self.added is None else self.added.components
        return [(self.noise + variance, share) for variance, share in mixed]

    def averages(self, inputs: GaussianMixture | None = None, dimension: int = 0) -> Averages:
        """E y, E y^2, E x y, E x and E x x^T, for x the first coordinates of ``inputs``, or of
        N(0, I): all that these have or the target takes, and as many as ``dimension`` at least."""
        least = self.target.dimension if inputs is None else inputs.dimension
        return _averages(self, inputs, max(least, dimension))

    def conditional_variance(self, h: Array, spread: Array) -> Array:
        """Var[y | kappa], (N,), where E[y | x] has the mean ``h`` and the variance ``spread``."""
        if self.channel:
            return np.asarray(1 - h**2)  # labels of size 1
        return np.asarray(spread + self.variance)

    def draw(self, z: Array, rng: Generator) -> Array:
        """Labels (n,) drawn for arguments ``z`` (T, n) of the target."""
        y = self.target(*z)
        y = y + np.sqrt(self.noise) * rng.standard_normal(y.shape)
        return y if self.added is None else self.added.apply(y, rng)


@lru_cache(maxsize=256)
def _averages(law: LabelLaw, inputs: GaussianMixture | None, dimension: int) -> Averages:
    """What :meth:`LabelLaw.averages` returns, kept for the steps that a law has many of."""
    of = Components.of(inputs, np.zeros((dimension, 0)), law.combinations)
    h, g, spread = of.moments(law.combined_mean, of.places(np.zeros((0, 1))))
    first = h[:, None] * of.mean + np.einsum("jdk,kj->jd", of.root, g)
    power = 1.0 if law.channel else float(of.shares @ (h**2 + spread)) + law.variance
    mean, x = float(of.shares @ h), of.mean @ of.basis.T
    root = of.basis @ of.root
    second = root @ root.swapaxes(1, 2) + x[:, :, None] * x[:, None]
    second = np.einsum("j,jab->ab", of.shares, second)
    return Averages(mean, power, of.shares @ first @ of.basis.T, of.shares @ x, second)


@lru_cache(maxsize=256)
def combined(of: Target) -> tuple[Target, Array]:
    """A target as a function of the fewest linear combinations of its arguments z, and the
    orthonormal rows (k, T) of these.  A function of z1 - z2 alone bends and jumps at points.

    Examples
    --------
    >>> of, rows = combined(target("sign(z1 - z2)"))
    >>> of.kinks, rows.round(3).tolist()
    ((0.0,), [[0.707, -0.707]])
    """
    every, function = np.eye(of.dimension), getattr(of, "function", None)
    if not isinstance(function, Expression):
        return of, every
    normals = function.normals if function.normals.size else every[:1]
    seen = np.linalg.matrix_rank(normals)
    if seen == of.dimension:
        return of, every
    rows = every[function.mentioned]  # of as many coordinates, these
    if seen < len(rows):
        rows = triangular_root(np.linalg.pinv(normals) @ normals).T
    return target(function.along(rows)), rows


@lru_cache(maxsize=256)
def mean_label(target: Any, added: LabelNoise | None) -> Any:
    """E[y | z] as a function of z: sigma_*, or 2 P_+ - 1 for a channel."""
    if added is None or not added.binary:
        return target
    name = f"{target.name} through {added.name}"

    def mean(*z: Array) -> Array:
        return 2 * added.probability(target(*z)) - 1

    if isinstance(target, ClassLabels):
        return ClassLabels(tuple(mean(np.arange(len(target.values))).tolist()), name)
    if isinstance(target, MultiIndex):
        jumps = getattr(target.function, "zeros", ()) if added.kind == "flip" else ()
        return MultiIndex(mean, target.dimension, name, (*target.planes, *jumps))
    if added.kind != "flip":
        return Activation(mean, kinks=target.kinks, name=name)
    # E[y | z] is constant between the target's changes of sign, some of them at declared kinks
    known = np.array([*target.kinks, np.inf])
    others = [place for place in crossings(target) if np.abs(known - place).min() > 1e-9]
    kinks = np.array(sorted({*target.kinks, *others}))
    ends = np.array([kinks.min(initial=0.0) - 1, *kinks, kinks.max(initial=0.0) + 1])
    values = mean((ends[1:] + ends[:-1]) / 2)
    return Activation(mean, None, tuple(kinks), name, partial(step_moments, kinks, values))
