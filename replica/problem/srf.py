"""Problem objects: what is trained, on what.  Frozen, and checked when they are made.

``GradientStep`` is a network at initialisation with one giant step ahead of it;
``SpikedRandomFeatures`` (sRF) is what THEORY 2 turns it into: rows of group b of the first
layer are sqrt(c_b) w_i + sum_k r_bk u_k, w_i uniform on the sphere, u_k orthonormal spikes
with cosines gamma_tk = w_t . u_k to the target's directions.
"""

import warnings
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import InvalidArgument
from .activation import Activation
from .geometry import Geometry
from .labels import is_binary, label_noise, mean_label
from .laws import law
from .named import activation
from .targets import MultiIndex, target

if TYPE_CHECKING:
    from ..steps.network import Network

LAW_ERROR = 1e-4  # of the groups for a continuous readout, above which a warning is given
FINITE = np.finfo(float).max


def number(
    name: str, value: Any, low: float, high: float, allowed: str, *, open_low: bool = False
) -> float:
    """``value`` as a float in [low, high] (or (low, high]), or InvalidArgument."""
    try:
        x = float(value)
    except (TypeError, ValueError):
        raise InvalidArgument(name, value, allowed) from None
    if not low <= x <= high or (open_low and x == low):  # catches NaN too
        raise InvalidArgument(name, value, allowed)
    return x


def numbers(name: str, value: Any, low: float, allowed: str, **options: bool) -> Any:
    """A float, or nested tuples of floats, each in range: hashable either way."""
    if isinstance(value, (list, tuple)) or (isinstance(value, np.ndarray) and value.ndim):
        return tuple(numbers(name, item, low, allowed, **options) for item in value)
    return number(name, value, low, FINITE, allowed, **options)


def _check_channel(problem: Any) -> None:
    """Refuse Gaussian noise on labels +-1."""
    if problem.label_noise is None or not problem.label_noise.binary:
        return
    for name in ("noise", "step_noise"):
        if getattr(problem, name, None):
            allowed = f"0 with labels +-1 (label_noise {problem.label_noise.name})"
            raise InvalidArgument(name, getattr(problem, name), allowed)


def refuse_channel(model: Any) -> None:
    """Refuse labels that are +-1 at random where only ridge regression's equations serve.

    Raises
    ------
    InvalidArgument
    """
    if model.channel:
        raise InvalidArgument(
            "label_noise", model.label_noise.name, "one that is added to the target, here"
        )


def _set(problem: Any, **values: Any) -> None:
    for name, value in values.items():
        object.__setattr__(problem, name, value)


@dataclass(frozen=True, kw_only=True)
class SpikedRandomFeatures:
    """Spiked random features: the network after its step, with fresh readout data to fit.

    With A groups of neurons, K spikes and T target directions:

    Parameters
    ----------
    student : str, callable or Activation
        sigma; see :func:`replica.activation`.
    target : str, callable, Activation or MultiIndex
        sigma_*, of one direction (T = 1) or several.
    r : float, or array (A,) or (A, K)
        Loadings of the spikes in the rows of each group (0: random features).
    c : float or array (A,)
        Bulk variance of each group, positive: what the spikes leave of w_i . w_i.
    gamma : float, or array (K,) or (T, K)
        Cosines between target directions and spikes.
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
        Input dimension d at which the price of the overlaps m, of order m^2 / p, is kept; inf
        for the limit, where m is free.  The limit is far where groups have nearly dependent
        mu_0, as with a continuous law of the readout, and m is large.
    law_error : float
        Relative error of the groups where they stand for a continuous law; only reported.
    label_noise : str or LabelNoise, optional
        What labels add to target and noise: heavier tails, or signs, see
        :func:`replica.problem.labels.label_noise`.

    Raises
    ------
    InvalidArgument

    Examples
    --------
    >>> SpikedRandomFeatures(student="tanh", target="sin", r=1.0, c=1.0, gamma=0.9).beta
    1.0
    """

    student: Activation | Any
    target: Activation | MultiIndex | Any
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
    law_error: float = 0.0
    label_noise: Any = None

    def __post_init__(self) -> None:
        shares = None
        if self.fractions is not None:
            shares = numbers("fractions", self.fractions, 0, "0 or more, of sum 1")
        _set(
            self,
            student=activation(self.student, "student"),
            target=target(self.target),
            r=numbers("r", self.r, -FINITE, "a finite number, or an array of them"),
            c=numbers("c", self.c, 0, "positive (a variance)", open_low=True),
            gamma=numbers("gamma", self.gamma, -FINITE, "a cosine in [-1, 1], or an array of them"),
            beta=number("beta", self.beta, 0, FINITE, "positive (p/d)", open_low=True),
            noise=number("noise", self.noise, 0, FINITE, "0 or more (a variance)"),
            fractions=shares,
            bias=numbers("bias", self.bias, -FINITE, "a finite number, or an array of them"),
            intercept=bool(self.intercept),
            train_bias=bool(self.train_bias),
            dimension=number(
                "dimension", self.dimension, 0, np.inf, "positive or inf", open_low=True
            ),
            law_error=number("law_error", self.law_error, 0, np.inf, "0 or more"),
            label_noise=label_noise(self.label_noise),
        )
        _check_channel(self)
        self.geometry  # noqa: B018  (checks the shapes)

    @property
    def label_variance(self) -> float:
        """Variance of what is added to the target: Delta and that of ``label_noise``."""
        return self.noise + (0.0 if self.label_noise is None else self.label_noise.variance)

    @property
    def mean_label(self) -> Activation | MultiIndex:
        """E[y | x] as a function of the target's arguments: the target, or of a channel
        2 P(y = 1) - 1."""
        return mean_label(self.target, self.label_noise)

    @property
    def channel(self) -> bool:
        """Whether labels are +-1 at random, so that they vary about their mean by what the input
        says: ridge regression has no closed form then."""
        return self.label_noise is not None and self.label_noise.binary

    @cached_property
    def binary(self) -> bool:
        """Whether labels are +-1."""
        return is_binary(self.target, self.noise, self.label_noise)

    @cached_property
    def geometry(self) -> Geometry:
        """The groups and spikes as arrays, groups of equal neurons merged.

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
            gamma=self.gamma,
            directions=self.target.dimension if isinstance(self.target, MultiIndex) else 1,
        )


@dataclass(frozen=True, kw_only=True)
class GradientStep:
    """A network before one giant gradient step, or several.  Eq. (1.1)

    Parameters
    ----------
    student : str, callable or Activation
        sigma; see :func:`replica.activation`.
    target : str, callable, Activation or MultiIndex
        sigma_*, of one direction or several.
    alpha0 : float
        Samples of the step over input dimension, n0/d; ``inf`` for the population gradient.
    eta : float
        Learning rate over width, eta~ = eta/p; 0 leaves random features.
    steps : sequence of pairs (alpha0, eta)
        In the place of alpha0 and eta: several steps, each on a fresh batch.  THEORY 10
    noise : float
        Variance Delta of the label noise, in the steps and in the readout's data.
    step_noise : float, optional
        That of the steps' data, where it differs.
    readout : float, sequence, (values, fractions), name or scipy.stats distribution
        Law of the first-step readout times sqrt(p): 1 unless given; "gaussian",
        "rademacher" (+-1) and "uniform" have mean 0 and variance 1.
    bias : float, sequence or (values, fractions)
        Law of the untrained biases, independent of the readout.
    intercept, train_bias : bool
        As for :class:`SpikedRandomFeatures`.
    label_noise : str or LabelNoise, optional
        Law of the labels, in the step and in the readout's data; as for
        :class:`SpikedRandomFeatures`.  The step depends on E[y | x] and E y^2 alone.

    Raises
    ------
    InvalidArgument

    Examples
    --------
    >>> step = GradientStep(student="tanh", target="sin", alpha0=20, eta=3.0)
    >>> model = step.srf(beta=1.0)
    >>> round(model.r, 7), round(model.c, 7), round(model.gamma, 7)
    (1.1340555, 1.0189732, 0.9718544)
    >>> steps = GradientStep(student="tanh", target="sin", steps=[(2, 1), (2, 1), (2, 1)])
    >>> round(steps.srf(beta=1.0).gamma, 4)
    0.9538
    """

    student: Activation | Any
    target: Activation | MultiIndex | Any
    alpha0: Any = None
    eta: Any = None
    steps: Any = ()
    noise: float = 0.0
    readout: Any = 1.0
    bias: Any = 0.0
    intercept: bool = False
    train_bias: bool = False
    step_noise: float | None = None
    label_noise: Any = None

    def __post_init__(self) -> None:
        bias = law("bias", self.bias)
        if bias.continuous is not None:
            raise InvalidArgument("bias", self.bias, "of finitely many values")
        schedule = self._checked_schedule()
        alpha0, eta = schedule[0] if len(schedule) == 1 else (None, None)
        _set(
            self,
            student=activation(self.student, "student"),
            target=target(self.target),
            alpha0=alpha0,
            eta=eta,
            steps=schedule if len(schedule) > 1 else (),
            noise=number("noise", self.noise, 0, FINITE, "0 or more (a variance)"),
            step_noise=None
            if self.step_noise is None
            else number("step_noise", self.step_noise, 0, FINITE, "0 or more (a variance)"),
            readout=law("readout", self.readout),
            bias=bias,
            intercept=bool(self.intercept),
            train_bias=bool(self.train_bias),
            label_noise=label_noise(self.label_noise),
        )
        _check_channel(self)

    @property
    def first_noise(self) -> float:
        """Variance of the label noise in the data of the steps."""
        return self.noise if self.step_noise is None else self.step_noise

    def network(self, *, beta: float, row_norms: bool = True) -> "Network":
        """The network itself after the step, without the sRF's approximation.  THEORY 15

        Parameters
        ----------
        beta : float
            Width over input dimension, p/d.
        row_norms : bool
            Whether the fluctuation of the row norms is kept, which THEORY 15 leaves out.

        Raises
        ------
        InvalidArgument
            Where it does not apply: see :class:`Network`.
        """
        from ..steps.network import Network

        return Network(step=self, beta=beta, row_norms=row_norms)

    def _checked_schedule(self) -> tuple[tuple[float, float], ...]:
        """The pairs (alpha0, eta) of either form, each in range."""
        single = (self.alpha0, self.eta)
        given = not hasattr(self.steps, "__len__") or len(self.steps)
        if given and single != (None, None):
            raise InvalidArgument(
                "steps", self.steps, "given without alpha0 and eta: those mean a single step"
            )
        try:
            pairs = [(alpha0, eta) for alpha0, eta in (self.steps if given else (single,))]
            return tuple(
                (
                    number("alpha0", alpha0, 0, np.inf, "positive or inf (n0/d)", open_low=True),
                    number("eta", eta, 0, FINITE, "0 or more"),
                )
                for alpha0, eta in pairs
            )
        except (TypeError, ValueError):
            if not given:
                raise
            raise InvalidArgument(
                "steps",
                self.steps,
                "a sequence of pairs (alpha0, eta): alpha0 positive or inf, eta 0 or more",
            ) from None

    @property
    def schedule(self) -> tuple[tuple[float, float], ...]:
        """The pairs (alpha0, eta) of all steps, one or more."""
        return tuple(self.steps) or ((self.alpha0, self.eta),)

    def srf(self, *, beta: float) -> SpikedRandomFeatures:
        """The spiked random feature model of width p = beta d after the last step.

        After one step, Eqs. (2.1)-(2.3), it has a group of neurons for every value of the
        readout and of the bias; after several, Eqs. (10.1)-(10.3), these have one value each.

        Raises
        ------
        InvalidArgument
            If beta is not positive, the student has a jump (no gradient), or there are several
            steps and several values of the readout or the bias.
        """
        from ..steps.one_step import spiked_parameters

        after = spiked_parameters(self)
        if after.error > LAW_ERROR:
            warnings.warn(
                f"{len(np.atleast_1d(after.r))} groups stand for the readout's law with an error "
                f"of {after.error:.1e}: its tails are too heavy, or the step too large",
                stacklevel=2,
            )
        return SpikedRandomFeatures(
            student=self.student,
            target=self.target,
            r=after.r,
            c=after.c,
            gamma=after.gamma,
            beta=beta,
            noise=self.noise,
            fractions=after.fractions,
            bias=after.bias,
            intercept=self.intercept,
            train_bias=self.train_bias,
            law_error=after.error,
            label_noise=self.label_noise,
        )
