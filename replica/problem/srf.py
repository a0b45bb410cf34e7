"""Spiked random features (sRF): what the steps leave of the network, with a readout to fit.

Rows of group b of the first layer are sqrt(c_b) w_i + sum_k r_bk u_k, w_i uniform on the sphere,
u_k orthonormal spikes with cosines gamma_tk = w_t . u_k to the target's directions
(docs/theory.md 2).  In a network the w_i have the covariance that its own steps give them (15): the
``origin`` of the model has their law.
"""

from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from ..errors import InvalidArgument
from .activation import Activation
from .checks import FINITE, SQUARABLE, assign, flag, number, numbers
from .components import Components
from .describe import shown
from .geometry import Geometry
from .labels import label_noise
from .mixtures import ClassLabels, GaussianMixture
from .named import activation
from .problem import Problem, RowLaw, check_noise
from .targets import MultiIndex, on_inputs


@dataclass(frozen=True)
class Origin:
    """Where a model comes from.

    Attributes
    ----------
    step : GradientStep
    features : SpikedRandomFeatures
        What it makes; a model of this origin differs from them in width and dimension alone.
    rows : NetworkRows or None
        The law of the rows of a network; of an sRF there is none, as its bulk is isotropic.
    """

    step: Problem
    features: "SpikedRandomFeatures" = field(repr=False, compare=False)
    rows: RowLaw | None = None


@dataclass(frozen=True, kw_only=True, repr=False)
class SpikedRandomFeatures(Problem):
    """Spiked random features: the network after its step, with fresh readout data to fit.

    With A groups of neurons, K spikes and T target directions (docs/theory.md 2, 4):

    Parameters
    ----------
    student : str, callable or Activation
        sigma; see :func:`replica.activation`.
    target : str, callable, Activation, MultiIndex or ClassLabels
        sigma_*, of one direction (T = 1) or several; "classes:1,-1", with ``inputs``, has a label
        for each of their components.
    r : float, or array (A,) or (A, K)
        Loadings of the spikes in the rows of each group (0: random features).
    c : float or array (A,)
        Bulk variance of each group, positive: what the spikes leave of w_i . w_i.
    gamma : float, or array (K,) or (T, K)
        Cosines between target directions and spikes; with ``inputs``, of each of their D
        coordinates, (D,) or (D, K).
    beta : float
        Width over input dimension, p/d.
    noise : float
        Variance Delta of the label noise.
    fractions : array (A,), optional
        Shares of the groups, equal unless given.
    bias : float or array (A,)
        Untrained bias of the neurons of each group.
    intercept : bool
        Whether the readout has a trained, unregularised output intercept.
    train_bias : bool
        Whether one bias common to all neurons is trained with the readout: it is added to
        ``bias`` and minimises the training objective.
    dimension : float
        Input dimension d at which the penalty on the overlaps m, of order m^2 / p, is kept; inf
        for the limit, where m is free.  The limit is far where groups have nearly dependent
        mu_0, as with a continuous law of the readout, and m is large, or where lam is not much less
        than n.  Other effects of order 1/d are not in it.  They are a few times 1/d: the
        fluctuation of m, largest for the logistic loss, and, of a network, what the gradient of its
        first output leaves of the mean row.  docs/readout.md
    feature_noise : float
        Variance of independent noise in every feature.
    law_error : float
        What more groups would change of the features' averages where they stand for a continuous
        law, relative.  In the limit d -> inf, where m is free along functions however small, an
        error of a point may change by 1e-4 to 1e-3 of itself while this is 1e-6.
    label_noise : str or LabelNoise, optional
        What labels add to target and noise: heavier tails, or signs, see
        :func:`replica.problem.label_noise`.
    inputs : GaussianMixture, optional
        Law of the first coordinates of the inputs, those of the target among them; the others are
        standard normal, as all are unless given.  docs/theory.md 19
    resolved : int
        How many of the spikes, the first, have loadings that are those of the rows themselves,
        bulk included: along these the readout has no overlap of its own.  docs/theory.md 19
    origin : Origin, optional
        The step that made the model and, of a network, the law of its rows, as
        :meth:`replica.GradientStep.srf` and :meth:`replica.GradientStep.network` give them.  An sRF
        of which other fields than the width and the dimension are changed has none.

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
    r: Any = field(metadata={"help": "Length of the spike."})
    c: Any = field(metadata={"help": "Variance of the bulk."})
    gamma: Any = field(metadata={"help": "Cosine of spike and target."})
    beta: float = field(default=1.0, metadata={"help": "Width p/d."})
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
        shares, least = None, -SQUARABLE
        of, inputs = on_inputs(self.target, self.inputs)
        if self.fractions is not None:
            shares = numbers("fractions", self.fractions, 0, "0 or more, of sum 1")
        assign(
            self,
            student=activation(self.student, "student"),
            target=of,
            inputs=inputs,
            r=numbers("r", self.r, least, "a finite number, or an array of them"),
            c=numbers("c", self.c, 0, "positive (a variance)", open_low=True),
            gamma=numbers("gamma", self.gamma, least, "a cosine in [-1, 1], or an array of them"),
            beta=number("beta", self.beta, 0, FINITE, "positive (p/d)", open_low=True),
            noise=number("noise", self.noise, 0, FINITE, "0 or more (a variance)"),
            fractions=shares,
            bias=numbers("bias", self.bias, least, "a finite number, or an array of them"),
            intercept=flag("intercept", self.intercept),
            train_bias=flag("train_bias", self.train_bias),
            dimension=number(
                "dimension", self.dimension, 0, np.inf, "positive or inf", open_low=True
            ),
            feature_noise=number("feature_noise", self.feature_noise, 0, FINITE, "0 or more"),
            law_error=number("law_error", self.law_error, 0, np.inf, "0 or more"),
            label_noise=label_noise(self.label_noise),
        )
        check_noise(self)
        self._check_origin()
        spikes = self.geometry.r.shape[1]  # which checks the shapes
        resolved = number("resolved", self.resolved, 0, spikes, "a number of spikes")
        if resolved % 1:
            raise InvalidArgument("resolved", self.resolved, "a number of spikes")
        assign(self, resolved=int(resolved))

    def _check_origin(self) -> None:
        """Forget an origin that makes other fields than these; of a network refuse them, as its
        rows would not fit them."""
        if self.origin is None:
            return
        if not isinstance(self.origin, Origin):
            raise InvalidArgument("origin", self.origin, "left out: GradientStep.srf gives it")
        made = self.origin.features
        names = [f.name for f in fields(self) if f.name not in ("beta", "dimension", "origin")]
        changed = [name for name in names if getattr(self, name) != getattr(made, name)]
        if changed and self.rows is not None:
            allowed = "as the step makes it: of a network, change the step (or take its srf)"
            raise InvalidArgument(changed[0], getattr(self, changed[0]), allowed)
        if changed:
            assign(self, origin=None)

    @cached_property
    def geometry(self) -> Geometry:
        """The groups and spikes as arrays, groups of equal neurons merged.

        Of a network, u is the direction of the gradient also where the spike vanishes.

        Raises
        ------
        InvalidArgument
            If shapes do not fit each other.
        """
        return Geometry.of(
            r=self.r,
            c=self.c,
            bias=self.bias,
            fractions=self.fractions,
            gamma=self.gamma if self.rows is None else self.rows.gamma,
            directions=self.directions,
            apart=0.0 if self.rows is None else self.rows.apart,
        )

    @cached_property
    def components(self) -> Components:
        """The law of the inputs along spikes and target."""
        return Components.of(self.inputs, self.geometry.gamma, self.labels.combinations)

    @property
    def rows(self) -> RowLaw | None:
        """The law of the rows of a network; None of an sRF, whose bulk is isotropic."""
        return None if self.origin is None else self.origin.rows

    @property
    def step(self) -> Any:
        """The GradientStep that made the model, or None."""
        return None if self.origin is None else self.origin.step

    def __repr__(self) -> str:
        return shown(self)

    @property
    def srf(self) -> "SpikedRandomFeatures":
        """The published model: the same spike and bulk variance, rows without covariance."""
        if self.origin is None or self.rows is None:
            return self
        return replace(self, origin=replace(self.origin, rows=None))

    @property
    def varying(self) -> list[str]:
        """The numeric fields, and those of the step that made the model; of a network, whose spike
        and bulk are the step's, beside these its width and its dimension."""
        own = [f.name for f in fields(self) if isinstance(getattr(self, f.name), float)]
        if self.step is None:
            return [*own, "student"]
        own = ["beta", "dimension"] if self.rows is not None else own
        return list(dict.fromkeys([*own, *self.step.varying]))

    def model(self, *, beta: float | None = None, **values: Any) -> "SpikedRandomFeatures":
        """The model with other ``values`` of ``varying`` fields: first those of its step.

        Raises
        ------
        InvalidArgument
            If a field is none that may vary.
        """
        for name, value in values.items():
            if name not in self.varying:
                allowed = f"left out here: what may vary is {', '.join(self.varying)}"
                raise InvalidArgument(name, value, allowed)
        made, beta = self, self.beta if beta is None else beta
        names = self.step.varying if self.step is not None else []
        if of_step := {name: values.pop(name) for name in names if name in values}:
            if self.rows is not None:
                of_step = {"model": "network", "row_norms": self.rows.row_norms} | of_step
            made = self.step.model(beta=beta, **of_step)
        own = {"beta": beta, "dimension": self.dimension, **values}
        changed: Any = {name: x for name, x in own.items() if x != getattr(made, name)}
        return replace(made, **changed) if changed else made

    def with_bias(self, bias: float, *, train_bias: bool = False) -> "SpikedRandomFeatures":
        """This model with ``bias`` added to all neurons, for good unless one is still trained."""
        return replace(self, bias=np.asarray(self.bias) + bias, train_bias=train_bias)


Model = SpikedRandomFeatures  # as the equations call it


def check_model(model: Any) -> None:
    """Refuse what is not a model."""
    if not isinstance(model, SpikedRandomFeatures):
        raise InvalidArgument("model", model, "a model, such as step.srf(beta=1)")
