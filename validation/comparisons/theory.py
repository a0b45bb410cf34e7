"""Which theory a simulation is put beside."""

from dataclasses import dataclass, replace
from typing import cast

import numpy as np

from replica.errors import InvalidArgument
from replica.problem import Problem, SpikedRandomFeatures
from replica.steps import MODELS, GradientStep, unsuited

from ..draws import spiked_model


@dataclass(frozen=True)
class Theory:
    """The theory of a simulated problem.

    Attributes
    ----------
    model : SpikedRandomFeatures
    published : SpikedRandomFeatures or None
        The sRF beside the network's own theory; None where ``model`` is the sRF.
    note : str
        A sentence that says which theory it is, and why where that may surprise.
    """

    model: SpikedRandomFeatures
    published: SpikedRandomFeatures | None
    note: str

    def at(self, dimension: int) -> "Theory":
        """The same at a finite ``dimension``, where m has its price, unless it has its own."""
        if np.isfinite(self.model.dimension):
            return self
        of = (
            None if model is None else replace(model, dimension=dimension)
            for model in (self.model, self.published)
        )
        model, published = of
        assert model is not None
        return Theory(model, published, f"{self.note}; the price of m at d = {dimension} included")


def theory_of(
    problem: Problem, beta: float | None, model: str | None = None, simulated: str = "network"
) -> Theory:
    """The network's own theory where ``problem`` is a step that it covers, else that of the sRF.

    Parameters
    ----------
    problem : GradientStep or SpikedRandomFeatures
    beta : float
        Width over input dimension p/d, for a GradientStep.
    model : {"network", "srf"}, optional
        The theory of a step to take, instead.
    simulated : {"network", "srf", "gaussian"}
        What is drawn of a step, as in :func:`simulate`.

    Raises
    ------
    InvalidArgument
        If the network's theory is asked for where there is none.
    """
    srf = spiked_model(problem, beta)
    if model not in (None, *MODELS):
        raise InvalidArgument("model", model, "srf or network")
    if not problem.schedule or simulated != "network":
        if model == "network":
            raise InvalidArgument(
                "model", model, "srf: an sRF, or its equivalent, is what is simulated"
            )
        drawn = "whose conditional Gaussian model" if simulated == "gaussian" else "which"
        return Theory(srf, None, f"theory of the sRF, {drawn} is what is simulated")
    step = cast(GradientStep, problem)
    reason = unsuited(step)
    if model == "srf":
        return Theory(srf, None, "theory of the sRF, as asked")
    if model is None and reason:
        return Theory(srf, None, f"theory of the sRF, the published equivalent: {reason}")
    return Theory(step.network(beta=srf.beta), srf, "theory of the network itself")
