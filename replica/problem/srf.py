"""Spiked random features (sRF): the first layer after the steps, with a readout to fit.

Rows of group b of the first layer are sqrt(c_b) w_i + sum_k r_bk u_k, w_i uniform on the sphere,
u_k orthonormal spikes with cosines gamma_tk = w_t . u_k to the target's directions
(docs/theory.md 2).  In a network the w_i have a covariance that results from its steps
(docs/theory.md 15); the ``origin`` of the model holds their law.
"""

from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from ..errors import InvalidArgument
from .activation import Activation
from .checks import MAX_COMPUTED, MAX_NUMBER, assign, number, numbers
from .components import Components
from .describe import problem_repr
from .geometry import Geometry
from .mixtures import ClassLabels, GaussianMixture
from .named_activations import activation
from .problem import Problem, check_readout
from .targets import MultiIndex, parse_target


@dataclass(frozen=True)
class Origin:
    """Origin of a model: the step that made it.

    Attributes
    ----------
    step : GradientStep
    features : SpikedRandomFeatures
        Features after the step; models of this origin differ from them in width and dimension
        only.
    rows : NetworkRows or None
        Law of the rows of a network; None for an sRF, whose bulk is isotropic.
    """

    step: Problem
    features: "SpikedRandomFeatures" = field(repr=False, compare=False)
    rows: Any = None


@dataclass(frozen=True, kw_only=True, repr=False)
class SpikedRandomFeatures(Problem):
    """Spiked random features: the network after its step, with a readout fitted to fresh data.

    With A groups of neurons, K spikes and T target directions (docs/theory.md 2, 4):

    Parameters
    ----------
    student : str, callable or Activation
        sigma; see :func:`replica.activation`.
    target : str, callable, Activation, MultiIndex or ClassLabels
        sigma_*, a function of one direction (T = 1) or several; "classes:1,-1" gives a label for
        each component of ``inputs``.
    r : float, or array (A,) or (A, K)
        Loadings of the spikes in the rows of each group (0: random features).
    c : float or array (A,)
        Bulk variance of each group, positive: |w_i|^2 orthogonal to the spikes.
    gamma : float, or array (K,) or (T, K)
        Cosines of the target directions with the spikes; with ``inputs``, of their D coordinates,
        (D,) or (D, K).
    beta : float
        Width over input dimension, p/d.
    noise : float
        Variance Delta of the label noise.
    fractions : array (A,), optional
        Shares of the groups, equal unless given.
    bias : float or array (A,)
        Untrained bias of the neurons of each group.
    intercept : bool
        True for a trained, unregularised output intercept of the readout.
    train_bias : bool
        True for one bias common to all neurons that is trained with the readout: it is added to
        ``bias`` and minimises the training objective.
    dimension : float
        Input dimension d, for the penalty on the overlaps m, of order m^2 / p; inf for the limit,
        without this penalty.  Results are far from the limit where m is large, as with groups of
        nearly dependent mu_0 (a continuous law of the readout), and where lam is not much less
        than n.  Other effects, of a few times 1/d, are not included, such as the fluctuation of m,
        largest for the logistic loss.  docs/readout.md

        Of a network, whose rows have loadings of order 1/sqrt(d) at a finite dimension, it is the
        theory of networks of that size, of one readout value and bias and the square loss.
        docs/theory.md 23
    feature_noise : float
        Variance of independent noise in every feature.
    law_error : float
        Relative change of the features' averages with more groups, if groups discretise a
        continuous law.  In the limit d -> inf, where m has no penalty, test errors may change by
        1e-4 to 1e-3 of their value while this is 1e-6.
    label_noise : str or LabelNoise, optional
        Law of the labels given the target: noise with heavier tails, or random signs; see
        :func:`replica.problem.label_noise`.
    inputs : GaussianMixture, optional
        Law of the first coordinates of the inputs, including those of the target.  All other
        coordinates are standard normal.  docs/theory.md 19
    resolved : int
        Number of leading spikes along which row overlaps are exact, so that no theta is needed.
        docs/theory.md 19
    origin : Origin, optional
        The step that made the model and, for a network, the law of its rows.  It is set by
        :meth:`replica.GradientStep.srf` and :meth:`replica.GradientStep.network`, and dropped when
        a field of an sRF other than width or dimension is changed.

    Raises
    ------
    InvalidArgument

    Examples
    --------
    >>> from replica import SpikedRandomFeatures
    >>> SpikedRandomFeatures(student="tanh", target="sin", r=1.0, c=1.0, gamma=0.9).beta
    1.0
    """

    differentiable: ClassVar[tuple[str, ...]] = ("r", "c", "gamma")

    student: Activation | Any
    target: Activation | MultiIndex | ClassLabels | Any
    r: Any
    c: Any
    gamma: Any
    beta: float = 1.0
    noise: float = 0.0
    fractions: Any = None
    bias: Any = 0.0
    intercept: bool = False
    train_bias: bool = False
    dimension: float = np.inf
    feature_noise: float = 0.0
    law_error: float = 0.0
    label_noise: Any = None
    inputs: GaussianMixture | None = None
    resolved: int = 0
    origin: Origin | None = field(default=None, hash=False)

    def __post_init__(self) -> None:
        group_shares, lowest = None, -MAX_COMPUTED
        srf_target, srf_inputs = parse_target(self.target, self.inputs)
        if self.fractions is not None:
            group_shares = numbers("fractions", self.fractions, 0, "0 or more, of sum 1")
        assign(
            self,
            student=activation(self.student, "student"),
            target=srf_target,
            inputs=srf_inputs,
            r=numbers("r", self.r, lowest, "a finite number, or an array of them"),
            c=numbers("c", self.c, 0, "positive (a variance)", open_low=True),
            gamma=numbers("gamma", self.gamma, lowest, "a cosine in [-1, 1], or an array of them"),
            beta=number("beta", self.beta),
            fractions=group_shares,
            bias=numbers("bias", self.bias, lowest, "a finite number, or an array of them"),
            feature_noise=number("feature_noise", self.feature_noise, 0, MAX_NUMBER, "0 or more"),
            law_error=number("law_error", self.law_error, 0, np.inf, "0 or more"),
        )
        check_readout(self)
        least_dimension = max(1, self.directions)  # of inputs and target
        allowed = f"a whole number, at least {least_dimension}, or inf"
        srf_dimension = number("dimension", self.dimension, least_dimension, np.inf, allowed)
        if np.isfinite(srf_dimension) and srf_dimension % 1:
            raise InvalidArgument("dimension", self.dimension, allowed)
        assign(self, dimension=srf_dimension)
        self._check_origin()
        # checks the shapes; a network's rows, which may take seconds, are made on first use
        spike_count = self.features.geometry.r.shape[1]
        resolved_spikes = number("resolved", self.resolved, 0, spike_count, "a number of spikes")
        if resolved_spikes % 1:
            raise InvalidArgument("resolved", self.resolved, "a number of spikes")
        assign(self, resolved=int(resolved_spikes))

    def _check_origin(self) -> None:
        """Drop the origin if fields differ from its features; for a network, raise InvalidArgument.

        The law of a network's rows would not fit the changed fields.
        """
        if self.origin is None:
            return
        if not isinstance(self.origin, Origin):
            raise InvalidArgument("origin", self.origin, "left out: GradientStep.srf gives it")
        origin_features = self.origin.features
        names = [f.name for f in fields(self) if f.name not in ("beta", "dimension", "origin")]
        changed = [name for name in names if getattr(self, name) != getattr(origin_features, name)]
        if changed and self.rows is not None:
            allowed_fields = (
                "unchanged: in a network it follows from the step; change that, or take its srf"
            )
            raise InvalidArgument(changed[0], getattr(self, changed[0]), allowed_fields)
        if changed:
            assign(self, origin=None)

    @cached_property
    def geometry(self) -> Geometry:
        """Groups of neurons and spikes as arrays, with equal groups merged.

        In a network u is the direction of the gradient, also if the spike vanishes.

        Raises
        ------
        InvalidArgument
            If shapes do not fit each other.
        """
        return Geometry.from_fields(
            r=self.r,
            c=self.c,
            bias=self.bias,
            fractions=self.fractions,
            gamma=self.gamma if self.rows is None else self.rows.gamma,
            directions=self.directions,
            key=0.0 if self.rows is None else self.rows.kinds.readout,
        )

    @cached_property
    def components(self) -> Components:
        """Law of the inputs along the spikes and the target's directions."""
        return Components.from_law(self.inputs, self.geometry.gamma, self.labels.combinations)

    @cached_property
    def rows(self) -> Any:
        """Law of the rows of a network; None for an sRF, whose bulk is isotropic."""
        return None if self.origin is None else self.origin.rows

    @cached_property
    def own_dimension(self) -> float:
        """Input dimension of a network with loadings of order 1/sqrt(d); inf of other models.

        A finite dimension is the price of m alone of sRFs, of several kinds of neurons and of
        labels +-1 at random.
        """
        is_limit = self.rows is None or self.labels.channel or not self.rows.one_kind
        return np.inf if is_limit else self.dimension

    @property
    def of_one_kind(self) -> "SpikedRandomFeatures":
        """Model of equal errors whose first-step readout has one sign, if neurons of both signs are
        of one kind; else the model itself."""
        if self.rows is None or not self.rows.one_sign:
            return self
        return self._after_step({"readout": abs(self.rows.step.readout.values[0])}, self.beta)

    @property
    def features(self) -> "SpikedRandomFeatures":
        """The sRF of the same groups and spikes: the model itself, but for a network."""
        return self if self.rows is None else self.origin.features  # type: ignore[union-attr]

    @property
    def step(self) -> Any:
        """The GradientStep that made the model, or None."""
        return None if self.origin is None else self.origin.step

    def __repr__(self) -> str:
        return problem_repr(self)

    @property
    def varying(self) -> list[str]:
        """Names of the numeric fields, and of fields of the step that made the model.

        For a network, whose spike and bulk follow from the step: width, dimension, and the step's.
        """
        varying_names = [f.name for f in fields(self) if isinstance(getattr(self, f.name), float)]
        if self.step is None:
            return [*varying_names, "student"]
        varying_names = ["beta", "dimension"] if self.rows is not None else varying_names
        return list(dict.fromkeys([*varying_names, *self.step.varying]))

    def model_at(self, *, beta: float | None = None, **values: Any) -> "SpikedRandomFeatures":
        """The model with other ``values`` of ``varying`` fields.

        Fields of the step are changed first, and the step is taken again.

        Raises
        ------
        InvalidArgument
            If a field may not vary.
        """
        for name, field_value in values.items():
            if name not in self.varying:
                allowed_fields = f"left out: the fields that may vary are {', '.join(self.varying)}"
                raise InvalidArgument(name, field_value, allowed_fields)
        base_model, beta = self, self.beta if beta is None else beta
        new_values = {"beta": beta, "dimension": values.pop("dimension", self.dimension)}
        step_names = self.step.varying if self.step is not None else []
        if step_values := {name: values.pop(name) for name in step_names if name in values}:
            base_model = self._after_step(step_values, beta)
        new_values |= values
        changes: Any = {name: x for name, x in new_values.items() if x != getattr(base_model, name)}
        return replace(base_model, **changes) if changes else base_model

    def at_alpha(self, alpha: float) -> "SpikedRandomFeatures":
        """The model at ``alpha`` readout samples over dimension, where its step's alpha0 follows
        it."""
        if not self.follows_alpha:
            return self
        return self._after_step({"alpha0": float(alpha)}, self.beta)

    @property
    def on_fresh_samples(self) -> "SpikedRandomFeatures":
        """The model whose readout is fitted on samples that its step has not seen."""
        return self._after_step({"reuse": 0.0}, self.beta) if self.reuse else self

    def _after_step(self, step_values: dict[str, Any], beta: float) -> "SpikedRandomFeatures":
        """The model of width ``beta`` after the same step with other ``step_values`` of its
        fields."""
        if self.rows is not None:
            row_options = {"row_norms": self.rows.row_norms, "reuse": self.rows.reuse}
            step_values = {"theory": "network"} | row_options | step_values
        model_size: Any = {"beta": beta, "dimension": self.dimension}
        model_after_step: SpikedRandomFeatures = self.step.model_at(**model_size, **step_values)
        return model_after_step

    def with_bias(self, bias: float, *, train_bias: bool = False) -> "SpikedRandomFeatures":
        """The model with ``bias`` added to all neurons, and by default no trained bias."""
        return replace(self, bias=np.asarray(self.bias) + bias, train_bias=train_bias)


Model = SpikedRandomFeatures  # short name for the packages of equations
