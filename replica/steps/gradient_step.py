"""The GradientStep: a network before its giant steps, with methods for the models after them."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..errors import InvalidArgument
from ..problem import NO_SAMPLES, Origin, SpikedRandomFeatures, check_call, choice, number
from .network import THEORIES, NetworkRows
from .several_steps import features_after_steps
from .step_fields import Step


@dataclass(frozen=True, kw_only=True, repr=False)
class GradientStep(Step):
    """A network before one giant gradient step, or several.  Eq. (1.1)

    Parameters
    ----------
    student : str, callable or Activation
        sigma; see :func:`replica.activation`.
    target : str, callable, Activation, MultiIndex or ClassLabels
        sigma_*, a function of one direction or several; with ``inputs``, of their first
        coordinates, or "classes:1,-1", a label for each component.
    alpha0 : float or "alpha"
        Samples of the step over input dimension, n0/d; ``inf`` for the population gradient; "alpha"
        for as many as the readout has, wherever alpha is given.
    eta : float
        Learning rate over width, eta~ = eta/p; 0 leaves random features.
    steps : sequence of pairs (alpha0, eta)
        Several steps, each on a fresh batch, instead of alpha0 and eta.  docs/theory.md 10
    noise : float
        Variance Delta of the label noise, in the steps and in the readout's data.
    step_noise : float, optional
        Variance of the label noise of the steps' data, if different; or a sequence, one for each
        step.
    step_target : as ``target``, optional
        Target of the steps' data, if different, on the same coordinates; or a sequence, one for
        each step.
    decay : float
        Weight decay: the share by which a step shrinks the rows, below 1; or a sequence, one for
        each step.  docs/theory.md 19
    inputs : GaussianMixture, optional
        Law of the first coordinates of the inputs.  All other coordinates are standard normal.
        docs/theory.md 19
    readout : float, sequence, (values, fractions), name or scipy.stats distribution
        Law of the first-step readout times sqrt(p).  The default is "equal" (all 1);
        "rademacher" (+-1), "gaussian" and "box" (continuous on an interval) have mean 0 and
        variance 1.
    bias : float, sequence or (values, fractions)
        Law of the untrained biases, independent of the readout.
    initialisation : {"sphere", "gaussian"}
        Law of the rows before the steps: uniform on the unit sphere, or N(0, I/d).  Only the
        row norms differ, on which the sRF does not depend.
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
    >>> from replica import GradientStep
    >>> step = GradientStep(student="tanh", target="sin", alpha0=20, eta=3.0)
    >>> model = step.srf(beta=1.0)
    >>> round(model.r, 7), round(model.c, 7), round(model.gamma, 7)
    (1.1340555, 1.0189732, 0.9718544)
    >>> steps = GradientStep(student="tanh", target="sin", steps=[(2, 1), (2, 1), (2, 1)])
    >>> round(steps.srf(beta=1.0).gamma, 4)
    0.9538
    """

    @check_call
    def srf(self, *, beta: float, dimension: float = np.inf) -> SpikedRandomFeatures:
        """The spiked random feature model of width p = beta d after the last step, at an
        input ``dimension`` d.

        After one step, Eqs. (2.1)-(2.3), it has a group of neurons for every value of the
        readout and of the bias; after several, Eqs. (10.1)-(10.3), these have one value each.

        Raises
        ------
        InvalidArgument
            If beta is not positive, the student has a jump (no gradient), or there are several
            steps and several values of the readout or the bias.
        """
        step_features = features_after_steps(self.placed)
        step_origin = Origin(self, step_features)
        return replace(step_features, beta=beta, dimension=dimension, origin=step_origin)

    @check_call
    def network(
        self,
        *,
        beta: float,
        dimension: float = np.inf,
        row_norms: bool = True,
        reuse: float = 0.0,
    ) -> SpikedRandomFeatures:
        """The network after the steps, without the sRF's approximation.  docs/theory.md 15-18

        Parameters
        ----------
        beta : float
            Width over input dimension, p/d.
        dimension : float
            Input dimension d, of networks of one readout value and bias and the square loss; the
            limit unless given.  docs/theory.md 23
        row_norms : bool
            Whether the fluctuation of the rows' norms is included.
        reuse : float
            Share of the readout's samples that the step has been trained on, of ridge regression
            after a single step: 1 trains both layers on the same samples.  docs/theory.md 21

        Raises
        ------
        InvalidArgument
            If this theory does not cover the step.

        Notes
        -----
        Spike and bulk variance are those of the sRF; the bulk has the covariance that the steps
        give it (docs/theory.md 15-18).  Several values of the first-step readout or of the biases
        are covered for a single step.  After a step at a large rate on few samples (alpha0 << 1)
        networks approach this limit only at a large dimension, given in docs/network.md.

        Examples
        --------
        >>> from replica import GradientStep, solve
        >>> step = GradientStep(student="relu", target="sin", alpha0=0.3, eta=3.0)
        >>> round(solve(step.network(beta=1.0), alpha=2.0, lam=0.1).test_error, 6)
        0.48236
        """
        network_rows = NetworkRows(self.placed, row_norms, reuse)
        origin = Origin(self, network_rows.published, network_rows)
        return replace(network_rows.published, origin=origin, beta=beta, dimension=dimension)

    def model_at(
        self,
        *,
        beta: float | None = None,
        dimension: float = np.inf,
        theory: str = "srf",
        row_norms: bool = True,
        reuse: float = 0.0,
        **values: Any,
    ) -> SpikedRandomFeatures:
        """The sRF of width ``beta`` after the step, with other ``values`` of ``varying`` fields, at
        an input ``dimension``; with ``theory="network"``, the model of :meth:`network` instead.

        Raises
        ------
        InvalidArgument
            If beta is missing.
        """
        if beta is None:
            raise InvalidArgument("beta", beta, "given: the width p/d, such as beta=1")
        changed_step, size = self.with_values(beta, values), {"beta": beta, "dimension": dimension}
        if choice("theory", theory, THEORIES) == "network":
            return changed_step.network(**size, row_norms=row_norms, reuse=reuse)
        return changed_step.srf(**size)


def model_of(
    problem: Any,
    beta: float | None = None,
    theory: str | None = None,
    alpha: Any = None,
    given: Any = (),
    samples: Any = None,
) -> Any:
    """Model that a function solves: of a GradientStep, the sRF or the network; else ``problem``
    itself.

    Parameters
    ----------
    problem : GradientStep or SpikedRandomFeatures, or one of the classes ``given``
    beta : float
        Width over input dimension p/d, for a GradientStep.
    theory : {"srf", "network"}, optional
        Theory of a GradientStep: "srf", the published one, unless given.
    alpha : float, optional
        Readout samples over dimension, which the step's alpha0 may follow.
    given : type or tuple of types
        Classes of other problems, which are returned as they are.
    samples : float, optional
        Number of readout samples, which only those other problems have.

    Raises
    ------
    InvalidArgument
        If a GradientStep has no ``beta``, another problem is given ``beta`` or ``theory``, a limit
        is given ``samples``, or ``problem`` is none.
    """
    if isinstance(problem, Step):
        problem = problem.model_at(beta=beta, theory="srf" if theory is None else theory)
    elif beta is not None or theory is not None:
        name, option_value = ("theory", theory) if beta is None else ("beta", beta)
        raise InvalidArgument(name, option_value, f"left out: only a GradientStep needs {name}=")
    if isinstance(problem, given):
        return problem
    if not isinstance(problem, SpikedRandomFeatures):
        raise InvalidArgument(
            "model", problem, "a GradientStep, or a model such as step.srf(beta=1)"
        )
    if samples is not None:
        raise InvalidArgument("samples", samples, NO_SAMPLES)
    if alpha is not None and problem.follows_alpha:
        return problem.at_alpha(number("alpha", alpha))
    return problem
