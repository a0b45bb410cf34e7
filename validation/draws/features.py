"""First layers of finite size and their inputs: drawn networks, sRFs, conditional Gaussian models,
and given layers.

At input dimension d the width is p = round(beta d).  Inputs are x ~ N(0, I_d), features
sigma(W x + bias) and targets sigma_*(w_1 . x, ..., w_T . x) + sqrt(Delta) xi.  Inputs and
initial rows are invariant under rotation, so the spikes, or else the target's directions,
lie along the first axes without loss of generality.  Where inputs have a law of their own, it is
that of the ``frame`` of an instance, whose first directions are the target's.

Inputs are drawn in blocks: memory does not grow with their number.

The conditional Gaussian model has the features of the equivalence itself, at finite size.  Given
the projections kappa of an input on the spikes, the feature of neuron i in group b is

    phi_i = mu_0^b(kappa) + mu_1^b(kappa) sqrt(c_b) w_i . x + mu_2^b(kappa) xi_i         (3.1)

with w_i uniform on the sphere and xi_i ~ N(0, 1) fresh for every neuron and sample.  The
activation acts on kappa alone, through the moments (3.2), taken at the kappa of every sample:
no table and no interpolation.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any, cast

import numpy as np
from numpy.random import Generator, default_rng
from numpy.typing import NDArray

from replica.errors import InvalidArgument
from replica.given import FirstLayer
from replica.problem import (
    Activation,
    ClassLabels,
    GaussianMixture,
    LabelLaw,
    LabelNoise,
    Law,
    Problem,
    SpikedRandomFeatures,
    Target,
    check_alone,
    check_problem,
    complement_root,
)
from replica.steps import GradientStep, model_of
from solvers import arrays
from solvers.results import Array

from .arguments import check_array, seed_sequence, size, streams, whole_number

INPUT_BLOCK = 2**20  # numbers in one array of a block: 8 MiB, as fast as any larger


def gaussian_inputs(samples: int, dimension: int, rng: Generator, *, width: int) -> Iterator[Array]:
    """Yield (b, dimension) arrays of inputs, ``samples`` rows in all.

    ``width`` features of a block's inputs fit in ``INPUT_BLOCK`` numbers, as the inputs do.  The
    inputs themselves do not depend on how they are divided.

    Examples
    --------
    >>> import numpy as np
    >>> [X.shape for X in gaussian_inputs(1200, 8, np.random.default_rng(0), width=2**11)]
    [(512, 8), (512, 8), (176, 8)]
    """
    rows = max(1, INPUT_BLOCK // max(dimension, width))
    for start in range(0, samples, rows):
        yield rng.standard_normal((min(rows, samples - start), dimension))


def mixed_inputs(
    law: GaussianMixture | None,
    samples: int,
    dimension: int,
    rng: Generator,
    *,
    width: int,
    frame: Array | None = None,
) -> Iterator[tuple[Array, Array]]:
    """Inputs of a ``law``, N(0, I) where there is none, in blocks as ``gaussian_inputs`` has them,
    each with the components (b,) of its rows; along the orthonormal rows of ``frame`` (D, d), or
    the first axes."""
    known = np.zeros(samples, dtype=int) if law is None else law.components(samples, rng)
    start = 0
    for X in gaussian_inputs(samples, dimension, rng, width=width):
        component = known[start : start + len(X)]
        start += len(X)
        if law is None:
            yield X, component
        elif frame is None:
            yield law.at(X, component), component
        else:
            normal = X @ frame.T
            yield X + (law.at(normal, component) - normal) @ frame, component


@dataclass(frozen=True, eq=False)
class Instance:
    """First layer drawn by :func:`validation.draw`, and the target to learn on it.

    Attributes
    ----------
    W : (p, d)
        First-layer rows w_i.
    bias : (p,)
        Untrained biases of the neurons.
    directions : (T, d)
        Target directions, orthonormal; of a single-index target, w*.
    student : Activation
        sigma.
    target : Activation, MultiIndex or ClassLabels
        sigma_*.
    noise : float
        Variance Delta of the label noise.
    label_noise : LabelNoise or None
        What labels add to that.
    inputs : GaussianMixture or None
        Law of the inputs along ``frame``; N(0, I) unless given.
    frame : (D, d), optional
        Orthonormal directions that ``inputs`` are the law of: the first axes unless given.
    feature_noise : float
        Variance of the noise in every feature.
    """

    W: Array
    bias: Array
    directions: Array
    student: Activation
    target: Target
    noise: float
    label_noise: LabelNoise | None
    inputs: GaussianMixture | None = None
    frame: Array | None = None
    feature_noise: float = 0.0

    def draw_inputs(self, samples: int, rng: Generator) -> Iterator[tuple[Array, Array]]:
        """Inputs (b, d) in blocks, ``samples`` in all, and their components (b,)."""
        p, d = self.W.shape
        return mixed_inputs(self.inputs, samples, d, rng, width=p, frame=self.frame)

    def features(self, X: Array, bias: float = 0.0, rng: Generator | None = None) -> Array:
        """Phi = sigma(X W^T + bias) + noise, (n, p), of inputs (n, d); ``bias`` is added to all."""
        fields = X @ self.W.T
        fields += arrays.like(self.bias + bias, fields)
        Phi = _apply(self.student, fields)
        if self.feature_noise:
            noise = default_rng(rng).standard_normal(Phi.shape)
            Phi += arrays.like(np.sqrt(self.feature_noise) * noise, Phi)
        return Phi

    def targets(self, X: Array, component: Array | None = None) -> Array:
        """Noiseless targets E[y | x], (n,)."""
        return self._law.mean(*self._arguments(X, component))

    def labels(
        self, X: Array, rng: Generator, noise: float | None = None, component: Array | None = None
    ) -> Array:
        """Labels with fresh noise of variance Delta, or another, (n,)."""
        law = self._law if noise is None else replace(self._law, noise=noise)
        return law.draw(self._arguments(X, component), rng)

    def _arguments(self, X: Array, component: Array | None) -> Array:
        """Arguments of the target: projections (T, n), or the components of the inputs (1, n)."""
        if component is not None and isinstance(self.target, ClassLabels):
            return component[None]
        return self.directions @ X.T

    @property
    def _law(self) -> LabelLaw:
        """The law of a label given the projections of an input on ``directions``."""
        return LabelLaw(self.target, self.noise, self.label_noise)


def _apply(function: Activation, x: Any) -> Any:
    """sigma(x): by a function of the array's own library where there is one."""
    if isinstance(x, np.ndarray):
        return function(x)
    xp = arrays.namespace(x)
    if function.name in ("tanh", "sin"):
        return getattr(xp, function.name)(x)
    if function.name == "relu":
        return xp.where(x > 0, x, xp.zeros_like(x))
    if function.name == "erf" and hasattr(xp, "erf"):
        return xp.erf(x)
    return arrays.like(function(arrays.to_host(x)), x)


def draw(
    problem: Problem, *, dimension: int, rng: Any = None, beta: float | None = None
) -> Instance:
    """Draw the first layer of ``problem`` at a finite input dimension.

    Parameters
    ----------
    problem : GradientStep or SpikedRandomFeatures
        The network, which then takes its steps, each on n0 = round(alpha0 d) samples of its
        own; or the sRF, rows sqrt(c) w_i + sum_k r_k u_k with w_i uniform on the unit sphere.
        Groups, readouts and biases have their exact shares of the p neurons, up to rounding.
    dimension : int
        Input dimension d, large enough for all spikes and target directions.
    rng : None, int, SeedSequence or Generator
    beta : float
        Width over input dimension p/d, for a GradientStep; an sRF has its own.

    Raises
    ------
    InvalidArgument
        If an argument is out of range, the step has infinitely many samples, or the student
        has a jump (no gradient).

    Examples
    --------
    >>> from replica import GradientStep
    >>> from validation import draw
    >>> step = GradientStep(student="tanh", target="sin", alpha0=2, eta=1.0)
    >>> draw(step, dimension=50, beta=0.5, rng=0).W.shape
    (25, 50)
    """
    model = spiked_model(problem, beta)  # refuses what the theory does, such as a student's jump
    if problem.schedule:
        step = cast(GradientStep, problem)
        return list(trajectory(step, dimension=dimension, beta=beta, rng=rng))[-1]
    groups = model.geometry
    L = complement_root(groups.gamma)
    spikes = groups.r.shape[1]
    least = spikes + L.shape[1]
    d = whole_number("dimension", dimension, max(2, least), "the input dimension d")
    rows = default_rng(seed_sequence(rng).spawn(1)[0])
    W = sphere_rows(size("beta", model.beta, d), d, rows)
    axes = np.eye(least, d)
    directions = groups.gamma @ axes[:spikes] + L @ axes[spikes:]
    group = shares(np.arange(len(groups.c)), groups.fractions, len(W))
    W *= np.sqrt(groups.c)[group, None]  # in place: W may fill most of the memory
    W[:, :spikes] += groups.r[group]
    bias = groups.bias[group]
    label = model.target, model.noise, model.label_noise
    known = directions[: model.target.dimension]
    law = model.inputs, directions, model.feature_noise
    return Instance(W, bias, known, model.student, *label, *law)


def trajectory(
    problem: GradientStep, *, dimension: int, beta: float | None, rng: Any = None
) -> Iterator[Instance]:
    """The network of ``problem`` at initialisation and after each of its steps.

    Every step has a batch of its own.  Any law of the readout will do, whether or not the
    theory follows the steps.

    Parameters
    ----------
    problem, dimension, rng, beta
        As for :func:`draw`.

    Raises
    ------
    InvalidArgument
        If an argument is out of range or a step has infinitely many samples.
    """
    if beta is None:
        raise InvalidArgument("beta", beta, "given together with a GradientStep (p/d)")
    check_alone(problem)
    D = problem.known_dimension
    d = whole_number("dimension", dimension, max(2, D + 1), "the input dimension d")
    rows, inputs, noise = map(default_rng, streams(rng))
    W = sphere_rows(size("beta", beta, d), d, rows)
    if problem.initialisation == "gaussian":
        W *= np.sqrt(rows.chisquare(d, (len(W), 1)) / d)
    bias = rows.permutation(spread(problem.bias, len(W)))  # independent of the readout
    label = problem.target, problem.noise, problem.label_noise
    axes = np.eye(D, d)
    directions = axes[: problem.target.dimension]
    now = Instance(W, bias, directions, problem.student, *label, problem.inputs)
    readout = spread(problem.readout, len(W))
    for alpha0, eta in problem.schedule:
        if eta and not np.isfinite(alpha0):
            raise InvalidArgument(
                "alpha0",
                alpha0,
                "finite in a simulation, where the gradient is a sum over n0 = alpha0 d samples "
                "(take a large alpha0, or simulate step.srf(beta=...))",
            )
    yield now
    for t, (alpha0, eta) in enumerate(problem.schedule):
        decay_factor, law = problem.decay_factor(t), problem.labels_at(t)
        if eta:
            learner = replace(
                now, target=law.target, noise=law.noise, directions=axes[: law.target.dimension]
            )
            blocks = now.draw_inputs(size("alpha0", alpha0, d), inputs)
            batch = ((X, learner.labels(X, noise, component=at)) for X, at in blocks)
            W = gradient_step(
                now.W,
                batch,
                student=now.student,
                eta=eta,
                readout=readout,
                bias=bias,
                decay_factor=decay_factor,
            )
            now = replace(now, W=W)
        elif decay_factor < 1:
            now = replace(now, W=decay_factor * now.W)
        yield now


def spiked_model(problem: Problem, beta: float | None) -> SpikedRandomFeatures:
    """The sRF that the theory makes of ``problem``; checks both arguments on the way."""
    check_problem(problem)
    if problem.rows is not None:
        raise InvalidArgument(
            "problem", "a network", "the GradientStep of it, which is what is drawn, or an sRF"
        )
    model: SpikedRandomFeatures = model_of(problem, beta)
    return model


def shares(values: Array, fractions: Array, count: int) -> Array:
    """``count`` values in their exact shares, up to rounding, in order.

    Examples
    --------
    >>> shares(np.array([7.0, 9.0]), np.array([0.25, 0.75]), 4).tolist()
    [7.0, 9.0, 9.0, 9.0]
    """
    quantiles = (np.arange(count) + 0.5) / count
    index = np.searchsorted(np.cumsum(fractions), quantiles * fractions.sum())
    return values[np.minimum(index, len(values) - 1)]


def spread(law: Law, count: int) -> Array:
    """``count`` values at equally spaced quantiles of a law, which represent it without noise."""
    if law.continuous is None:
        return shares(np.array(law.values), np.array(law.fractions), count)
    return np.asarray(law.distribution.ppf((np.arange(count) + 0.5) / count), dtype=float)


def sphere_rows(p: int, d: int, rng: Generator) -> Array:
    """p rows uniform on the unit sphere in d dimensions; InvalidArgument if they fit no memory."""
    check_array(p, d)
    rows = rng.standard_normal((p, d))
    rows /= np.sqrt(np.einsum("ij,ij->i", rows, rows))[:, None]
    return rows


def gradient_step(
    W: Array,
    batch: Iterable[tuple[Array, Array]],
    *,
    student: Activation,
    eta: float,
    readout: Array | float = 1.0,
    bias: Array | float = 0.0,
    decay_factor: float = 1.0,
) -> Array:
    """Rows (p, d) after one step of rate eta p, for ``readout`` a~_i = sqrt(p) a_i; weight decay
    leaves a factor ``kept`` of the rows.  Eq. (1.1)

    ``batch`` yields the samples in blocks of inputs (b, d) and labels (b,).
    """
    total = np.zeros_like(W)
    weights = np.broadcast_to(readout, len(W)) / len(W)
    samples = 0
    for X, y in batch:
        fields = X @ W.T + bias
        residual = y - student(fields) @ weights  # f0 = (1/p) sum_i a~_i sigma
        total += (residual[:, None] * student.slope(fields)).T @ X
        samples += len(X)
    total *= eta / samples * np.reshape(readout, (-1, 1))
    total += decay_factor * W
    return total


def first_layer(
    step: GradientStep, *, dimension: int, beta: float | None = None, rng: Any = None
) -> FirstLayer:
    """The first layer that a simulated network has after its steps, as a given one.

    Its readout has a theory at that finite size: the noise of the draw, and all effects of a
    finite dimension but those of the readout's own data, are then in theory and simulation alike.
    docs/theory.md 20

    Parameters
    ----------
    step, dimension, beta, rng
        As for :func:`draw`.

    Raises
    ------
    InvalidArgument
        If an argument is out of range, or a bias is trained.

    Examples
    --------
    >>> from replica import GradientStep
    >>> from validation import first_layer
    >>> step = GradientStep(student="tanh", target="sin", alpha0=2, eta=1.0)
    >>> layer = first_layer(step, dimension=50, beta=0.5, rng=0)
    >>> layer.weights.shape, layer.directions.shape
    ((25, 50), (50, 1))
    """
    return as_given(spiked_model(step, beta), draw(step, dimension=dimension, beta=beta, rng=rng))


def as_given(model: SpikedRandomFeatures, drawn: Instance) -> FirstLayer:
    """A layer that was ``drawn`` of a problem, whose sRF is ``model``, as a given one.

    Raises
    ------
    InvalidArgument
        If a bias is trained.
    """
    if model.train_bias:
        raise InvalidArgument("train_bias", True, "False: a given first layer has its biases")
    weights, directions = drawn.W, drawn.directions
    if drawn.inputs is not None and drawn.frame is not None:  # to be the first axes
        rotation = np.linalg.qr(drawn.frame.T, mode="complete")[0]
        rotation[:, : len(drawn.frame)] = drawn.frame.T
        weights, directions = weights @ rotation, directions @ rotation
    return FirstLayer(
        weights=weights,
        bias=drawn.bias,
        student=drawn.student,
        target=drawn.target,
        directions=directions.T,
        inputs=drawn.inputs,
        noise=drawn.noise,
        label_noise=drawn.label_noise,
        intercept=model.intercept,
    )


def instance_of(layer: FirstLayer) -> Instance:
    """The instance of a given layer, which all seeds share."""
    label = layer.target, layer.noise, layer.label_noise, layer.inputs, None, layer.feature_noise
    return Instance(layer.weights, layer.bias, layer.directions.T, layer.student, *label)


@dataclass(frozen=True, eq=False)
class GaussianInstance(Instance):
    """A drawn bulk whose features are (3.1).  ``W`` has the rows sqrt(c_b) w_i, no spikes.

    Attributes
    ----------
    model : SpikedRandomFeatures
    group : (p,) of int
        The group b of each neuron in ``model.geometry``.
    """

    model: SpikedRandomFeatures = field(kw_only=True)
    group: NDArray[np.int64] = field(kw_only=True)

    def features(self, X: Any, bias: float = 0.0, rng: Generator | None = None) -> Any:
        """Phi of (3.1), (n, p); ``rng`` draws xi."""
        g = self.model.geometry
        kappa = arrays.to_host(X[:, : g.r.shape[1]])
        shift = kappa @ g.r.T + g.bias + bias
        # Eq. (3.2), (n, A)
        mean, first, variance = self.student.moments(shift, g.c)
        slope, spread = first / np.sqrt(g.c), np.sqrt(variance + self.feature_noise)
        xi = np.random.default_rng(rng).standard_normal((len(shift), len(self.group)))
        xi *= spread[:, self.group]
        xi += mean[:, self.group]
        fields = X @ self.W.T
        fields *= arrays.like(slope[:, self.group], X)
        fields += arrays.like(xi, X)
        return fields


def draw_gaussian(model: SpikedRandomFeatures, *, dimension: int, rng: Any) -> GaussianInstance:
    """The conditional Gaussian model of ``model``, on the bulk that ``draw`` gives its sRF.

    Parameters and errors are those of :func:`draw`.

    Examples
    --------
    >>> import numpy as np
    >>> from replica import SpikedRandomFeatures
    >>> from validation.draws import draw_gaussian
    >>> model = SpikedRandomFeatures(student="tanh", target="sin", r=1.0, c=1.0, gamma=0.9)
    >>> layer = draw_gaussian(model, dimension=30, rng=0)
    >>> X = np.random.default_rng(1).standard_normal((5, 30))
    >>> layer.features(X, rng=np.random.default_rng(2)).shape
    (5, 30)
    """
    layer = draw(model, dimension=dimension, rng=rng)
    g = model.geometry
    group = shares(np.arange(len(g.c)), g.fractions, len(layer.W))
    layer.W[:, : g.r.shape[1]] -= g.r[group]
    return GaussianInstance(**vars(layer), model=model, group=group)
