"""The law of a label given the input: target and noise, Student's t too, or a channel.

    y = sigma_*(z) + sqrt(Delta) xi + zeta       zeta: 0, Gaussian outliers, or Student's t;
    y = +-1,  P(y = 1) = P_+(sigma_*(z))         a flipped sign, a logistic or a probit teacher.

The former are noise laws for regression, the latter channels.  Averages over Gaussians have closed
forms: noise with outliers is a mixture of two Gaussians, Student's t a mixture of dozens.
``LabelLaw`` has the averages that the steps (docs/theory.md 2, 10, 15) and the readout
(docs/theory.md 3-6) depend on.
"""

from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
from numpy.random import Generator
from scipy.special import expit, gamma, loggamma, ndtr

from solvers.linear import triangular_root
from solvers.results import Array

from ..errors import InvalidArgument
from .activation import Activation
from .components import Components
from .expressions import Expression
from .kinks import crossings
from .mixtures import ClassLabels, GaussianMixture
from .moments import Averages
from .targets import MultiIndex, Target, target


@dataclass(frozen=True)
class LabelNoise:
    """The law of a label given the target, as returned by :func:`label_noise`.

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
        """The text that :func:`label_noise` parses."""
        return ":".join([self.kind, *(repr(value).removesuffix(".0") for value in self.parameters)])

    @property
    def binary(self) -> bool:
        """True if labels are +-1."""
        return self.kind in ("flip", "logistic", "probit")

    @property
    def variance(self) -> float:
        """Variance of the noise added to the target; 0 for labels +-1."""
        return sum(noise_variance * noise_share for noise_variance, noise_share in self.components)

    @property
    def components(self) -> list[tuple[float, float]]:
        """Variances and shares of the mixture of Gaussians; (0, 1) for labels +-1."""
        if self.kind == "student":
            nu, scale = self.parameters
            noise_variances, shares = student_t_mixture(nu)
            return list(zip((scale**2 * noise_variances).tolist(), shares.tolist(), strict=True))
        if self.kind != "outliers":
            return [(0.0, 1.0)]
        fraction, variance = self.parameters
        return [(v, share) for v, share in ((0.0, 1 - fraction), (variance, fraction)) if share]

    def missing_moment(self, k: float) -> float:
        """Difference of E abs(xi)^k between the noise and its ``components``; 0 up to k = 2.

        Infinite for Student's t if k is nu or more.
        """
        if self.kind != "student" or k <= 2:
            return 0.0
        nu, scale = self.parameters
        return scale**k * missing_t_moment(nu, k)

    def probability(self, target: Array) -> Array:
        """P(y = 1) for values ``target`` of sigma_*."""
        if self.kind == "logistic":
            return np.asarray(expit(target))
        if self.kind == "probit":
            return np.asarray(ndtr(target))
        (flip_probability,) = self.parameters
        return np.asarray(flip_probability + (1 - 2 * flip_probability) * np.heaviside(target, 0.5))

    def apply(self, target: Array, rng: Generator) -> Array:
        """Random labels for values ``target`` of sigma_*, which include Gaussian noise."""
        if self.binary:
            return np.where(rng.random(target.shape) < self.probability(target), 1.0, -1.0)
        if self.kind == "student":
            nu, scale = self.parameters
            return target + scale * rng.standard_t(nu, target.shape)
        outlier_share, outlier_variance = self.parameters
        is_outlier = rng.random(target.shape) < outlier_share
        return target + is_outlier * np.sqrt(outlier_variance) * rng.standard_normal(target.shape)


@lru_cache(maxsize=64)
def student_t_mixture(nu: float) -> tuple[Array, Array]:
    """Variances and shares of Gaussians whose mixture is Student's t = sqrt(u) z, z ~ N(0, 1).

    The density of x = log u, u = nu / chi^2_nu, is exp(-(nu/2)(x + e^-x)); averages over it are by
    the trapezoidal rule, whose error decreases geometrically in 1 / step.

    The step is the largest for which the error of the sum of the shares,
    abs(Gamma(nu/2 + 2 pi i / step)) / Gamma(nu/2), is below the tolerance.  The last Gaussian has
    the share and the variance of the truncated tail, less than 1e-8 of E abs(t), so that E t^2 is
    exact.

    Examples
    --------
    >>> for nu in (6.0, 3.0, 2.2):
    ...     variances, shares = student_t_mixture(nu)
    ...     print(len(shares), round(float(shares @ variances), 9))
    28 1.5
    51 3.0
    76 11.0
    """
    log_tolerance = np.log(1e-8)  # tolerance on averages over t: losses are solved to 1e-6
    half_nu = min(nu, 1e9) / 2  # beyond 1e9 t is a Gaussian
    steps = np.linspace(1.5, 0.2, 1301) / np.sqrt(half_nu)
    log_error = (loggamma(half_nu + 2j * np.pi / steps) - loggamma(half_nu)).real
    log_step = steps[np.argmax(log_error <= log_tolerance)]  # the largest that meets the tolerance
    log_u = log_step * np.arange(-50, 150)
    log_density = -half_nu * (log_u + np.expm1(-log_u))
    in_student_mixture = np.maximum(log_density, log_density + log_u / 2) > log_tolerance
    u_student, shares = np.exp(log_u[in_student_mixture]), np.exp(log_density[in_student_mixture])
    # shares, and shares times variances, of the tail decrease geometrically
    tail_share, tail_power = (1 - np.exp(-log_step * (half_nu - k)) for k in (0, 1))
    shares[-1] /= tail_share
    u_student[-1] *= tail_share / tail_power
    shares /= shares.sum()
    return u_student * (nu / (nu - 2) / (shares @ u_student)), shares


def missing_t_moment(nu: float, k: float) -> float:
    """Error of E abs(t)^k, k > 2, of the mixture, whose tail is truncated: exact less mixture.

    Infinite for k >= nu.

    Examples
    --------
    >>> missing_t_moment(4.0, 4.0)
    inf
    >>> variances, shares = student_t_mixture(6.0)
    >>> round(float(3 * shares @ variances**2 + missing_t_moment(6.0, 4.0)), 9)
    13.5
    """
    if k >= nu:
        return np.inf
    student_variances, student_shares = student_t_mixture(nu)
    # moment_of_u: E u^(k/2), normal_moment: E abs(z)^k
    moment_of_u = np.exp(loggamma((nu - k) / 2) - loggamma(nu / 2) + k / 2 * np.log(nu / 2))
    normal_moment = 2 ** (k / 2) * gamma((k + 1) / 2) / np.sqrt(np.pi)
    return float(normal_moment * (moment_of_u - student_shares @ student_variances ** (k / 2)))


def label_noise(noise_spec: Any) -> LabelNoise | None:
    """The law of labels given the target: additional noise, or a channel to labels +-1.

    Parameters
    ----------
    spec : str, LabelNoise or None
        outliers:SHARE:VARIANCE or student:NU; for labels +-1 flip:P, logistic or probit.

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
    if noise_spec is None or isinstance(noise_spec, LabelNoise):
        return noise_spec
    allowed_noise = (
        "one of outliers:FRACTION:VARIANCE, student:NU or student:NU:SCALE (NU > 2), "
        "flip:PROBABILITY (below 1/2), logistic or probit"
    )
    noise_kind, *parameter_texts = str(noise_spec).strip().split(":")
    try:
        values = tuple(float(parameter_text) for parameter_text in parameter_texts)
    except ValueError:
        raise InvalidArgument("label_noise", noise_spec, allowed_noise) from None
    if noise_kind == "student" and len(values) == 1:
        values = (*values, 1.0)
    valid_noise = {
        "outliers": len(values) == 2 and 0 <= values[0] <= 1 and 0 <= values[1] < np.inf,
        "student": len(values) == 2 and 2 < values[0] < np.inf and 0 < values[1] < np.inf,
        "flip": len(values) == 1 and 0 <= values[0] < 0.5,
        "logistic": not values,
        "probit": not values,
    }
    if not isinstance(noise_spec, str) or not valid_noise.get(noise_kind, False):
        raise InvalidArgument("label_noise", noise_spec, allowed_noise)
    return LabelNoise(noise_kind, values)


@dataclass(frozen=True)
class LabelLaw:
    """The law of a label given the input.

    Attributes
    ----------
    target : Activation, MultiIndex or ClassLabels
        sigma_*; ClassLabels are a function of the component of the input.
    noise : float
        Variance Delta of the Gaussian noise that is added to it.
    added : LabelNoise or None
        Additional noise, or a channel to labels +-1.
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
        return mean_label(in_fewest_combinations(self.target)[0], self.added)

    @property
    def combinations(self) -> Array:
        """Orthonormal rows (k, T): the fewest combinations of arguments the target depends on."""
        return in_fewest_combinations(self.target)[1]

    @property
    def variance(self) -> float:
        """Variance of the noise added to the target; 0 for a channel."""
        return self.noise + (0.0 if self.added is None else self.added.variance)

    @cached_property
    def channel(self) -> bool:
        """True for random labels +-1, whose variance depends on the input.

        Ridge regression has no closed form then.
        """
        return self.added is not None and self.added.binary

    @cached_property
    def binary(self) -> bool:
        """True if labels are +-1: of a channel, or of a target with these values, without noise."""
        if self.added is not None:
            return self.added.binary
        if isinstance(self.target, ClassLabels):
            class_values = np.abs(self.target.values)
            return self.noise == 0 and class_values.ndim == 1 and bool((class_values == 1).all())
        target_z = np.random.default_rng(0).standard_normal((self.target.dimension, 64)) * 2
        return self.noise == 0 and bool((np.abs(self.target(*target_z)) == 1).all())

    @property
    def gaussians(self) -> list[tuple[float, float]]:
        """Variances and shares of the Gaussian mixture of the noise of real labels."""
        added_gaussians = [(0.0, 1.0)] if self.added is None else self.added.components
        return [(self.noise + variance, share) for variance, share in added_gaussians]

    def averages(self, inputs: GaussianMixture | None = None, dimension: int = 0) -> Averages:
        """Averages E y, E y^2, E x y, E x and E x x^T, for x the first coordinates of the inputs.

        x includes coordinates of the law of ``inputs`` and of the target, at least ``dimension``.
        """
        least_dimension = self.target.dimension if inputs is None else inputs.dimension
        return _cached_averages(self, inputs, max(least_dimension, dimension))

    def conditional_variance(self, h: Array, spread: Array) -> Array:
        """Var[y | kappa], (N,), where E[y | x] has the mean ``h`` and the variance ``spread``."""
        if self.channel:
            return np.asarray(1 - h**2)  # as y^2 = 1
        return np.asarray(spread + self.variance)

    def draw(self, z: Array, rng: Generator) -> Array:
        """Random labels (n,) for arguments ``z`` (T, n) of the target."""
        drawn_labels = self.target(*z)
        drawn_labels = drawn_labels + np.sqrt(self.noise) * rng.standard_normal(drawn_labels.shape)
        return drawn_labels if self.added is None else self.added.apply(drawn_labels, rng)


@lru_cache(maxsize=256)
def _cached_averages(law: LabelLaw, inputs: GaussianMixture | None, dimension: int) -> Averages:
    """Averages of :meth:`LabelLaw.averages`, cached, as many steps may share them."""
    components = Components.from_law(inputs, np.zeros((dimension, 0)), law.combinations)
    h, g, spread = components.moments(law.combined_mean, components.in_components(np.zeros((0, 1))))
    label_input = h[:, None] * components.mean + np.einsum("jdk,kj->jd", components.root, g)
    label_power = 1.0 if law.channel else float(components.shares @ (h**2 + spread)) + law.variance
    label_mean, mean_x = float(components.shares @ h), components.mean @ components.basis.T
    input_root = components.basis @ components.root
    input_moment = input_root @ input_root.swapaxes(1, 2) + mean_x[:, :, None] * mean_x[:, None]
    input_moment = np.einsum("j,jab->ab", components.shares, input_moment)
    label_input = components.shares @ label_input @ components.basis.T
    return Averages(label_mean, label_power, label_input, components.shares @ mean_x, input_moment)


@lru_cache(maxsize=256)
def in_fewest_combinations(full_target: Target) -> tuple[Target, Array]:
    """A target as a function of the fewest linear combinations of its arguments z, with their rows.

    The rows (k, T) are orthonormal.  A function of z1 - z2 has a single argument then, and its
    kinks are points.

    Examples
    --------
    >>> reduced, rows = in_fewest_combinations(target("sign(z1 - z2)"))
    >>> reduced.kinks, rows.round(3).tolist()
    ((0.0,), [[0.707, -0.707]])
    """
    target_axes, function = np.eye(full_target.dimension), getattr(full_target, "function", None)
    if not isinstance(function, Expression):
        return full_target, target_axes
    target_normals = function.normals if function.normals.size else target_axes[:1]
    target_rank = np.linalg.matrix_rank(target_normals)
    if target_rank == full_target.dimension:
        return full_target, target_axes
    combined_z = target_axes[function.mentioned]  # the coordinates themselves, if they are no more
    if target_rank < len(combined_z):
        combined_z = triangular_root(np.linalg.pinv(target_normals) @ target_normals).T
    return target(function.along(combined_z)), combined_z


@lru_cache(maxsize=256)
def mean_label(target: Any, added: LabelNoise | None) -> Any:
    """The mean label E[y | z] as a function of z: sigma_*, or 2 P_+ - 1 for a channel."""
    if added is None or not added.binary:
        return target
    channel_name = f"{target.name} through {added.name}"

    def mean_y(*z: Array) -> Array:
        return 2 * added.probability(target(*z)) - 1

    if isinstance(target, ClassLabels):
        return ClassLabels(tuple(mean_y(np.arange(len(target.values))).tolist()), channel_name)
    if isinstance(target, MultiIndex):
        flip_jumps = getattr(target.function, "zeros", ()) if added.kind == "flip" else ()
        return MultiIndex(mean_y, target.dimension, channel_name, (*target.planes, *flip_jumps))
    # E[y | z] of a flip is constant between sign changes of the target, some at declared kinks
    target_crossings = crossings(target) if added.kind == "flip" else []
    declared_kinks = np.array([*target.kinks, np.inf])
    new_kinks = [place for place in target_crossings if np.abs(declared_kinks - place).min() > 1e-9]
    return Activation(mean_y, kinks=tuple(sorted({*target.kinks, *new_kinks})), name=channel_name)
