"""A given first layer, cut into strata at levels of growing accuracy: more nodes, more Hermite
degrees.  docs/theory.md 20"""

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any

import numpy as np

from solvers.arrays import like, to_device, to_host
from solvers.resources import GivenUp, check_time
from solvers.results import Array, Status
from solvers.rules import Rule, normal_lattice

from ..display import Described
from ..errors import InvalidArgument
from ..problem import (
    MAX_NUMBER,
    Activation,
    ClassLabels,
    GaussianMixture,
    LabelLaw,
    activation,
    assign,
    check_device,
    check_readout,
    finite_array,
    number,
    parse_target,
    plain_array,
)
from .classes import with_sums
from .equations import RowStrata
from .layer_strata import HermiteStrata, layer_strata
from .nodes import STRATA_LEVELS, Conditioned, Level, condition, leading_directions
from .strata import JoinedStrata, Strata, Stratified, StratumLabels, labels_of, stacked

# Shares of the pre-activations from which on a point begins with the first, second, ... special
# direction; the more there are the more time their strata take.
SHARES = 0.02, 0.02, 0.05, 0.05
LABEL_POINTS = 2**16  # at which the labels' moments are known to some 1e-4


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class FirstLayer(Described):
    """A given first layer, whose readout is trained on fresh samples.  docs/theory.md 20

    Parameters
    ----------
    weights : array (p, d)
        W, from any training; the samples of the readout must not have been used for it.  A row is a
        neuron, as of torch; of scikit-learn's ``coefs_[0]``, (d, p), give ``coefs_[0].T``.
    bias : float or array (p,)
        Bias of each neuron, or of all.
    student : str, callable or Activation
        sigma; see :func:`replica.activation`.  It must be continuous.
    target : str, callable, Activation or MultiIndex
        sigma_*, of T directions; "classes:1,-1", a label for each component of the inputs; or
        "classes", where each component is a class: two are -1 and +1, of more the readout has an
        output for each, trained on 1 for its class and 0 for others.
    directions : array (d,) or (d, T), optional
        The target's, orthonormal; those of classes are none.
    noise : float
        Variance Delta of the label noise.
    label_noise : str, optional
        Law of further noise of the labels, or the channel they come through.
    inputs : GaussianMixture, optional
        Their law, of d coordinates or of the first of them; N(0, I) unless given.
    intercept : bool
        Whether the readout has one, which is not penalised.
    feature_noise : float
        Variance of Gaussian noise that is added to every feature of every sample.
    device : str
        Where matrices between neurons are kept and inverted: cpu, or a device of torch, such as
        cuda.
    beside : int, optional
        How many special directions there are beside the target's: those that move the
        pre-activations most.  Unless given, as many as errors need.

    Raises
    ------
    InvalidArgument
        If shapes do not fit each other, a number is not finite, or directions are not orthonormal.
    """

    weights: Array
    student: Activation
    target: Any
    directions: Any = None
    bias: Any = 0.0
    noise: float = 0.0
    label_noise: Any = None
    inputs: GaussianMixture | None = None
    intercept: bool = False
    feature_noise: float = 0.0
    device: str = "cpu"
    beside: int | None = None

    def __post_init__(self) -> None:
        layer_weights = finite_array("weights", self.weights, 2)
        p, d = layer_weights.shape
        sigma = activation(self.student, "student")
        g, layer_inputs = parse_target(self.target, self.inputs, outputs=True)
        typed_directions = np.empty((d, 0)) if self.directions is None else self.directions
        target_axes = plain_array("directions", typed_directions)
        target_axes = target_axes[:, None] if target_axes.ndim == 1 else target_axes
        bias = np.squeeze(plain_array("bias", self.bias))  # of a column, too
        suit_transposed = target_axes.shape == (p, g.dimension) != (d, g.dimension)
        suit_transposed |= self.directions is None and bias.shape == (d,) != (p,)
        if suit_transposed:
            allowed = "of shape (p, d), d that of directions and p that of bias: they look "
            allowed += "transposed, give weights.T"
            raise InvalidArgument("weights", f"shape {layer_weights.shape}", allowed)
        if target_axes.shape != (d, g.dimension):
            typed_shape = None if self.directions is None else f"shape {target_axes.shape}"
            allowed_axes = f"of shape {(d, g.dimension)}: the unit vectors that {g.name} depends on"
            raise InvalidArgument("directions", typed_shape, allowed_axes)
        axis_overlap = target_axes.T @ target_axes
        if np.abs(axis_overlap - np.eye(g.dimension)).max(initial=0.0) > 1e-6:
            allowed = "unit vectors that are orthogonal, the target a function of x along each "
            allowed += "(directions / numpy.linalg.norm(directions, axis=0) are of length 1)"
            raise InvalidArgument("directions", f"inner products {axis_overlap.round(3)}", allowed)
        neuron_arrays = stacked({"weights": layer_weights, "bias": bias}, {"weights": 1, "bias": 0})
        sigma_kinks = np.array(sigma.kinks)
        if np.abs(sigma(sigma_kinks + 1e-9) - sigma(sigma_kinks - 1e-9)).max(initial=0.0) > 1e-6:
            raise InvalidArgument("student", sigma.name, "continuous: its features jump")
        layer: dict[str, Any] = dict(student=sigma, target=g, directions=target_axes)
        allowed = "a variance, 0 or more"
        layer["feature_noise"] = number("feature_noise", self.feature_noise, 0, MAX_NUMBER, allowed)
        layer["inputs"] = None if layer_inputs is None else layer_inputs.within(d)
        assign(self, **layer, **neuron_arrays, device=check_device(self.device))
        check_readout(self)
        if self.outputs > 1 and (self.noise or self.label_noise is not None):
            typed_noise = self.noise or self.label_noise.name
            raise InvalidArgument("noise", typed_noise, "left out for several classes")

    @property
    def described(self) -> dict[str, Any]:
        """The layer in plain values: shapes in the place of numbers."""
        facts: dict[str, Any] = {"weights": f"{self.width} x {self.dimension}"}
        facts |= {"student": self.student.name, "target": self.target.name, "noise": self.noise}
        extras = {"label_noise": self.label_noise and self.label_noise.name, "inputs": self.inputs}
        extras |= {"feature_noise": self.feature_noise or None}
        facts |= {name: str(value) for name, value in extras.items() if value is not None}
        return facts | ({"intercept": True} if self.intercept else {})

    @property
    def binary(self) -> bool:
        """True if labels are +-1."""
        return self.law.binary

    @property
    def outputs(self) -> int:
        """Number C of outputs; 1 for real labels and two classes."""
        return getattr(self.target, "outputs", 1)

    @property
    def classes(self) -> tuple[int, ...] | None:
        """The components of the inputs in the order of outputs; None where there is one."""
        return tuple(range(self.outputs)) if self.outputs > 1 else None

    @property
    def width(self) -> int:
        """Number p of features."""
        return len(self.weights)

    @property
    def dimension(self) -> int:
        """Dimension d of the inputs."""
        return int(self.weights.shape[1])

    @cached_property
    def law(self) -> LabelLaw:
        """The law of the labels."""
        return LabelLaw(self.target, self.noise, self.label_noise)

    def __getstate__(self) -> dict[str, Any]:
        """The fields alone: strata are large, and made anew in another process."""
        return {layer_field.name: getattr(self, layer_field.name) for layer_field in fields(self)}

    @cached_property
    def _rows(self) -> Any:
        """Weights on the device, (p, d); with an intercept one row more, of zeros: its feature is
        constant."""
        intercept_rows = np.zeros((int(self.intercept), self.dimension))
        return to_device(np.concatenate([self.weights, intercept_rows]), self.device)

    @cached_property
    def _ordered_directions(self) -> tuple[Array, int]:
        """Orthonormal directions (d, k), and the number of them with which a point begins.

        First are the target's, then others by their share of the pre-activations' variance, the
        largest first, one more than is needed.  A point begins with those whose share is above
        ``SHARES``, and above a direction's share in random rows; or with ``beside`` others if that
        is given.
        """
        return self._after(self.directions)

    def _after(self, known: Array) -> tuple[Array, int]:
        """The ordered directions after those ``known`` (d, K), which a point begins with."""
        input_cov, known_count = None, known.shape[1]
        if self.inputs is not None and self.inputs.covariances is not None:
            input_cov = np.tensordot(self.inputs.fractions, self.inputs.covariances, axes=1)
        most = max(len(SHARES), self.beside or 0) + 1
        shares, beside, by_chance = leading_directions(self._rows, known, input_cov, most)
        beside = beside[:, : np.count_nonzero(shares > 1e-14 * shares.max())]
        least_shares = np.maximum(SHARES[known_count:], 1.2 * by_chance)
        beside_count = int(np.count_nonzero(shares[: least_shares.size] > least_shares))
        beside_count = beside_count if self.beside is None else min(self.beside, beside.shape[1])
        return np.concatenate([known, beside], axis=1), known_count + beside_count

    @cached_property
    def between_classes(self) -> "FirstLayer | None":
        """The layer whose points begin with the directions that tell the components of the inputs
        apart, too; None where there are no such directions, or ``beside`` is given."""
        if self.beside is not None or not self.component_directions.size:
            return None
        layer = replace(self)
        known = np.concatenate([self.directions, self.component_directions], axis=1)
        replaced = {"_ordered_directions": self._after(known), "between_classes": None}
        vars(layer).update(replaced, drawn=self.drawn)
        return layer

    @cached_property
    def component_directions(self) -> Array:
        """Orthonormal directions (d, k) beside the target's in which means and covariances of the
        components of the inputs differ, or means alone where these are too many.

        There are none of several outputs: their classification error is not known to what strata
        along them would need to settle.
        """
        law, target_axes = self._inputs, self.directions
        present = law.fractions > 0
        means = law.means[present] - law.means[present].mean(axis=0)
        differences = []
        if law.covariances is not None:
            covariances = law.covariances[present]
            differences = [one for one in covariances - covariances[0] if one.any()]
        for apart in (np.concatenate([means, *differences]), means) if self.outputs == 1 else ():
            check_time()
            beside_target = apart - (apart @ target_axes) @ target_axes.T
            _, sizes, axes = np.linalg.svd(beside_target, full_matrices=False)
            found = axes[sizes > 1e-6 * np.linalg.norm(apart)].T
            if target_axes.shape[1] + found.shape[1] <= len(SHARES):
                return found
        return np.empty((self.dimension, 0))

    @property
    def special(self) -> Array:
        """Special directions (d, K), orthonormal, that a point begins with: the target's, and those
        ``beside``."""
        special_axes, special_count = self._ordered_directions
        return special_axes[:, :special_count]

    @cached_property
    def kurtosis(self) -> float:
        """Mean fourth cumulant of the features without their linear part, over their squared mean
        variance, for inputs about their mean: large where features are rarely very large."""
        law, W = self.inputs, self.weights
        W_cov = W
        if law is not None and law.covariances is not None:
            W_cov = W @ np.tensordot(law.fractions, law.covariances, axes=1)
        return self.student.kurtosis(np.broadcast_to(self.bias, len(W)), np.vecdot(W_cov, W))

    def _conditioned(self, directions: Array) -> Sequence[Conditioned]:
        """Pre-activations given the projections on ``directions``, for every component of the
        inputs."""
        law = self._inputs
        component_covs = [None] * len(law.means) if law.covariances is None else law.covariances
        input_components = zip(law.fractions.tolist(), law.means, component_covs, strict=True)
        return [
            condition(self._rows, self._neuron_bias, directions, *part) for part in input_components
        ]

    @property
    def _inputs(self) -> GaussianMixture:
        """The law of the inputs, N(0, I) too."""
        return self.inputs or GaussianMixture(means=np.zeros((1, self.dimension)))

    @property
    def _neuron_bias(self) -> Array:
        """Bias of each row: of the intercept's one at which its feature is not 0."""
        if not self.intercept:
            return self.bias
        biases_tried = np.arange(-3.0, 4.0)
        of_intercept = biases_tried[np.argmax(np.abs(self.student(biases_tried)))]
        return np.append(self.bias, of_intercept)

    @cached_property
    def drawn(self) -> Stratified:
        """Features and labels of 4096 to 32768 drawn inputs, each of which is a stratum; fewer of
        more neurons or outputs."""
        row_count = int(np.clip(2**23 / max(self.width, self.outputs**2), 2**12, 2**15))
        rng, rows, labels = np.random.default_rng([20, 1]), to_host(self._rows), []
        features = np.empty((row_count, len(rows)))
        for block in np.array_split(np.arange(row_count), -(-row_count // 2048)):
            check_time()
            x, component = self._inputs.draw(len(block), rng)
            has_classes = isinstance(self.target, ClassLabels)
            labels.append(self.law.mean(*([component] if has_classes else (x @ self.directions).T)))
            features[block] = self.student(x @ rows.T + self._neuron_bias)
            if self.feature_noise:
                normals = rng.standard_normal((len(block), self.width))
                features[block, : self.width] += np.sqrt(self.feature_noise) * normals
        shares = np.full(row_count, 1 / row_count)
        return self._labelled(RowStrata(shares, features, features.shape[1]), labels)

    def stratified(
        self, level: int, count: int | None = None, last: int | None = None
    ) -> Stratified | None:
        """The strata of one level along the first ``count`` of the special directions, those that a
        point begins with unless said, with ``last`` nodes along the last of them if said; made
        once.  None where there are not so many directions, past the last level, and for four
        directions or more at the last, where they would be too many."""
        special_axes, first_count = self._ordered_directions
        count = first_count if count is None else count
        if level >= len(STRATA_LEVELS) - (count > 3) or count > special_axes.shape[1]:
            return None
        strata_key = level, count, last
        if strata_key not in self._made:
            self._made[strata_key] = self.cut(STRATA_LEVELS[level], special_axes[:, :count], last)
        return self._made[strata_key]

    @cached_property
    def _made(self) -> dict[tuple[int, int, int | None], Stratified]:
        return {}

    def along_target(self, kappa: Array) -> HermiteStrata:
        """Strata at given projections (T, N) on the target's directions, of equal shares: all else
        of the inputs, which are N(0, I), is averaged."""
        (component,) = self._conditioned(self.directions)
        z_rule = Rule(kappa.T, np.full(kappa.shape[1], 1 / kappa.shape[1]))
        finest_level = STRATA_LEVELS[-1]
        return layer_strata(component, self.student, z_rule, finest_level.k_max, finest_level.tol)

    def cut(self, level: Level, directions: Array, last: int | None = None) -> Stratified:
        """The strata of a ``level`` along orthonormal ``directions`` (d, K), of which the first are
        the target's, with ``last`` nodes along the last of them if said."""
        strata_parts, stratum_means, law = [], [], self.law
        label_gap, label_power = 0.0, 0.0
        target_in_axes = directions.T @ self.directions  # (K, T)
        kinks = law.mean.planes
        kink_normals = np.array([v for v, _ in kinks]).reshape(len(kinks), target_in_axes.shape[1])
        kink_planes = kink_normals @ target_in_axes.T, np.array([t for _, t in kinks])
        for j, component in enumerate(self._conditioned(directions)):
            if not component.component_share:
                continue
            z_rule = component.nodes(self.student, kink_planes, level, last)
            # numbers of all strata, 128 beside the moments of the features: 1 GB with copies
            if z_rule.weights.size * (len(component.shift) + 128) > 2**24:
                raise GivenUp(Status.MEMORY)
            cut_j = layer_strata(component, self.student, z_rule, level.k_max, level.tol)
            if self.feature_noise:  # none in the constant one of an intercept
                noise_variances = self.feature_noise * (np.arange(cut_j.width) < self.width)
                cut_j = replace(cut_j, second=cut_j.second + like(noise_variances, cut_j.second))
            strata_parts.append(cut_j)
            kappa = component.origin + z_rule.nodes @ component.axes.T
            has_classes = isinstance(self.target, ClassLabels)
            z_args = [np.full(len(kappa), j)] if has_classes else (kappa @ target_in_axes).T
            stratum_means.append(law.mean(*z_args))
            if not has_classes:
                gap, power = self._label_gap(j, component, z_rule, stratum_means[-1])
                label_gap += component.component_share * gap**2
                label_power += component.component_share * power
        strata = strata_parts[0] if len(strata_parts) == 1 else JoinedStrata(strata_parts)
        label_error = float(np.sqrt(label_gap / max(label_power, 1e-300)))
        return self._labelled(strata, stratum_means)._replace(label_error=label_error)

    def _labelled(self, strata: Strata, label_means: Sequence[Array]) -> Stratified:
        """Strata with the law of their labels, whose means are those of all parts one after the
        other."""
        law, many_outputs = self.law, self.outputs > 1
        mean = np.atleast_2d(np.concatenate(label_means).T)
        labels = labels_of(mean[0], law.gaussians, binary=law.binary, noise=law.added)
        mean = with_sums(mean)
        moments = StratumLabels(
            strata.shares, mean, np.zeros_like(mean), law.variance, self.outputs
        )
        return Stratified(strata, moments, labels, law.channel, None, self.intercept, many_outputs)

    def _label_gap(
        self, j: int, component: Conditioned, z_rule: Rule, means: Array
    ) -> tuple[float, float]:
        """How far the labels' ``means`` (N,) at the nodes of a rule, in component ``j`` of the
        inputs, are from the target in low moments, 0 where that is no more than the moments are
        known to; and the labels' mean square.

        Where the target jumps along a curve, two rules may be as far off as each other.
        """
        target_axes = component.axes[: self.directions.shape[1]]
        used = np.flatnonzero(np.abs(target_axes).max(axis=0, initial=0.0) > 1e-9)  # of z
        if j not in self._label_moments:
            seen = []
            for shift in (0.25, 0.75):
                lattice = normal_lattice(used.size, LABEL_POINTS, shift)
                kappa = (
                    component.origin[: len(target_axes)] + lattice.nodes @ target_axes[:, used].T
                )
                label_means = self.law.mean(*kappa.T)
                seen.append((*_low_moments(lattice, label_means), lattice.weights @ label_means**2))
            self._label_moments[j] = np.array(seen)
        first, second = self._label_moments[j]
        known, rounding = (first + second) / 2, np.linalg.norm((first - second)[:-1]) / 2
        at_nodes = Rule(z_rule.nodes[:, used], z_rule.weights)
        gap = float(np.linalg.norm(_low_moments(at_nodes, means) - known[:-1]))
        return gap * (gap > 4 * rounding), float(known[-1])

    @cached_property
    def _label_moments(self) -> dict[int, Array]:
        return {}


def _low_moments(rule: Rule, values: Array) -> Array:
    """Averages of ``values`` (N,) times the normalised Hermite polynomials of the rule's nodes, to
    degree two."""
    z = rule.nodes.T
    i, j = np.triu_indices(len(z), 1)
    polynomials = np.vstack([np.ones(z.shape[1]), z, (z**2 - 1) / np.sqrt(2), z[i] * z[j]])
    return np.asarray(polynomials @ (rule.weights * values))
