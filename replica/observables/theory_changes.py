"""How far the limit is from a network of usual size, an sRF from its network; notes on both."""

from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from solvers.quadrature import QuadratureError
from solvers.resources import GivenUp
from solvers.results import Array, ConvergenceError

from ..convex import Loss
from ..dimension import products_per_fit
from ..errors import InvalidArgument
from ..problem import SpikedRandomFeatures

NOTED_SHIFT = 0.02  # of the test error: simulations of that size show it
NOTHING_LEARNED = 1e-3  # least gain over the error of predicting 0, relative: less is none


def headline_error(model: SpikedRandomFeatures) -> str:
    """Name of the headline error: the classification error where labels are +-1."""
    return "classification_error" if model.labels.binary else "test_error"


def of_size(model: SpikedRandomFeatures) -> SpikedRandomFeatures:
    """The model at the dimension of large simulations, unless it has one."""
    return model if np.isfinite(model.dimension) else replace(model, dimension=1000.0)


def network_after_steps(model: SpikedRandomFeatures) -> SpikedRandomFeatures:
    """Network after the steps that made an sRF; a model that no step made, itself."""
    if model.step is None or model.rows is not None:
        return model
    return replace(model.step.network(beta=model.beta), dimension=model.dimension)


def ratio_note(alpha: ArrayLike, name: str = "alpha") -> str:
    """Sentence where the largest ``alpha``, or ratio of another name, is probably a number of
    samples; else empty."""
    largest_ratio = 100.0  # of n/d: beyond it a number of samples n may be meant
    ratio = np.max(alpha, initial=0.0)
    return bool(ratio > largest_ratio) * (
        f"{name} = {ratio:g} is n/d, samples over input dimension: for n = {ratio:g} samples "
        f"give {ratio:g}/d"
    )


def large_penalty_note(reuse: float, alpha: ArrayLike, lam: ArrayLike) -> str:
    """Sentence where samples of the step are reused and some ``lam`` is large beside ``alpha``;
    else empty.  Errors of such networks change where lam is of order d."""
    return bool(reuse and np.any(np.greater(lam, alpha))) * (
        "lam is above alpha on reused samples: networks may have a smaller error at a lam of order "
        "d, which the limit does not have (simulate them)"
    )


def few_products_note(models: Iterable[SpikedRandomFeatures], alpha: Array) -> str:
    """Sentence where networks at d = 1000, or at a model's own dimension, use few directions of the
    bulk at some ``alpha`` (P,), so that they are far from a limit, of the model with the fewest;
    else empty."""
    fewest, at_d = np.inf, np.nan
    for model in models:
        dimension = of_size(model).dimension
        # the network has no theory, or its rows are not known
        with suppress(InvalidArgument, QuadratureError, GivenUp, np.linalg.LinAlgError):
            network = network_after_steps(model).on_fresh_samples.of_one_kind
            if network.rows is not None and network.rows.one_kind:
                fit_products = float(products_per_fit(network, alpha, dimension).min())
                fewest, at_d = min((fewest, at_d), (fit_products, dimension))
    return (fewest < 1) * (
        f"networks of d = {at_d:g} may be far from this: their rows have {fewest:.2g} products of "
        "two directions, of odd features three, for each sample or neuron (docs/network.md, how "
        "large d must be)"
    )


def price_note(model: SpikedRandomFeatures, loss: Loss) -> str:
    """Sentence where a finite dimension is the price of m alone: of sRFs, several kinds of neurons,
    labels +-1 at random and losses other than the square; else empty."""
    at = of_size(model)
    alone = bool(np.isinf(at.own_dimension)) or not loss.is_square
    return alone * f"at d = {at.dimension:g} the theory has the price of m alone (docs/readout.md)"


class Change(NamedTuple):
    """The relative change of an error from a model to the ``other`` that is made of it: from which
    size a point says so, and in which words."""

    other: Callable[[SpikedRandomFeatures], SpikedRandomFeatures]
    noted: float
    said: str

    def of(
        self,
        model: SpikedRandomFeatures,
        here: Any,
        error: Callable[[SpikedRandomFeatures], Any],
    ) -> Array:
        """The change of an ``error``, of any shape, from that ``here``, of a model; NaN where
        either is not known.  Where the readout reuses the step's samples it is the change of a
        readout on fresh ones, which is also what a finite dimension changes."""
        try:
            fresh = model.on_fresh_samples
            other_model, changed_error = self.other(fresh), here
            if other_model is not fresh and np.any(here > 0):
                here = here if fresh is model else np.where(np.isfinite(here), error(fresh), np.nan)
                changed_error = error(other_model)
        except (InvalidArgument, QuadratureError, ConvergenceError):  # none, or not in time
            changed_error = np.nan
        with np.errstate(divide="ignore", invalid="ignore"):
            error_change = np.divide(changed_error, here) - 1
        return np.where(np.isfinite(error_change), error_change, np.nan)


CHANGES = {
    "finite_size_shift": Change(of_size, NOTED_SHIFT, "from this limit d -> inf to d = 1000"),
    "network_difference": Change(
        network_after_steps, 0.05, "from this sRF to the network (step.network)"
    ),
}
