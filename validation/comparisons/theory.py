"""Which theory a simulation is put beside."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, cast

import numpy as np

from replica.convex import Loss
from replica.errors import InvalidArgument
from replica.observables import sweep
from replica.plotting import ERROR_LABELS
from replica.problem import Problem, SpikedRandomFeatures
from replica.steps import MODELS, GradientStep, unsuited
from solvers.results import Array

from ..draws import spiked_model

if TYPE_CHECKING:
    import xarray


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

    def at(self, dimension: float) -> "Theory":
        """The same at a finite ``dimension``, where m has its price, unless it has its own."""
        if np.isfinite(self.model.dimension) or np.isinf(dimension):
            return self
        of = (
            None if model is None else replace(model, dimension=dimension)
            for model in (self.model, self.published)
        )
        model, published = of
        assert model is not None
        return Theory(model, published, f"{self.note}; taken at d = {dimension}, not in the limit")

    @property
    def beside(self) -> dict[str, SpikedRandomFeatures]:
        """Other theories by their labels in a figure: the published sRF beside the network's own,
        and the limit of what has a finite dimension."""
        others = {} if self.published is None else {"sRF": self.published}
        if np.isfinite(self.model.dimension):
            others[r"limit $d \to \infty$"] = replace(self.model, dimension=np.inf)
        return others


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


def curves(
    theories: Sequence[Theory], axes: Mapping[str, Array], alpha: Array, lam: Array, loss: Loss
) -> "tuple[xarray.Dataset, dict[str, xarray.Dataset]]":
    """The lines of a figure: of the ``theories`` of all combinations on ``axes``, as a data set
    over these, alpha and lam, and of those beside them."""
    import xarray

    def solved(models: Sequence[SpikedRandomFeatures]) -> "xarray.Dataset":
        parts = [sweep(one, alpha=alpha, lam=lam, grids={}, loss=loss) for one in models]
        over = {**axes, "alpha": parts[0].axes["alpha"], "lam": parts[0].axes["lam"]}
        shape = [values.size for values in over.values()]
        names = [name for name in ERROR_LABELS if name in parts[0].columns]
        variables = {
            name: (tuple(over), np.reshape([part.columns[name] for part in parts], shape))
            for name in names
        }
        return xarray.Dataset(variables, over)

    beside = [theory.beside for theory in theories]
    labels = [label for label in beside[0] if all(label in each for each in beside)]
    others = {label: solved([each[label] for each in beside]) for label in labels}
    return solved([theory.model for theory in theories]), others
