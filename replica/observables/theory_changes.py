"""How far the limit is from a network of usual size, an sRF from its network; notes on both."""

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from solvers.quadrature import QuadratureError
from solvers.resources import GivenUp
from solvers.results import Array, ConvergenceError

from ..convex import Loss
from ..dimension import LEAST_OF_LIMIT, products_per_fit
from ..errors import InvalidArgument
from ..problem import SpikedRandomFeatures

NOTED_SHIFT = 0.02  # of the test error: simulations of that size show it
# From the limit to a network's own dimension.  From the first on the fifth of it that is not known
# is 5 % of the error; the theory does not tell how far below the second it is.
NOTED_FALL, LOWEST_SHIFT = -0.2, LEAST_OF_LIMIT - 1
NOTHING_LEARNED = 1e-3  # least gain over the error of predicting 0, relative: less is none


def headline_error(model: SpikedRandomFeatures) -> str:
    """Name of the headline error: the classification error where labels are +-1."""
    return "classification_error" if model.labels.binary else "test_error"


def of_size(model: SpikedRandomFeatures) -> SpikedRandomFeatures:
    """The model at the dimension of large simulations, unless it has one."""
    return model if np.isfinite(model.dimension) else replace(model, dimension=1000.0)


def limit_of(model: SpikedRandomFeatures) -> SpikedRandomFeatures:
    """The limit d -> inf of the model, itself if it is one."""
    return replace(model, dimension=np.inf) if np.isfinite(model.dimension) else model


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


def shift_text(shift: float, between: str = "") -> str:
    """A finite_size_shift in percent, ``between`` which dimensions, and how well a large one is
    known."""
    or_more = " or more" * bool(shift <= LOWEST_SHIFT)
    known = ", known to about a fifth of itself" * bool(LOWEST_SHIFT < shift < NOTED_FALL)
    return f"{shift:+.0%}{or_more}{between}{known}"


def far_below_limit_note(models: Sequence[SpikedRandomFeatures], shifts: Array) -> str:
    """Sentence where networks at their own dimension have an error far below that of their limit at
    some points; else empty.  The ``shifts`` (P,) are finite_size_shift, of as many points of each
    of the ``models``, one model after the other."""
    lowest, at_d = 0.0, np.nan
    for model, model_shifts in zip(models, np.split(shifts, len(models)), strict=True):
        if np.isfinite(model.own_dimension):
            model_lowest = float(np.nanmin(model_shifts, initial=0.0))
            lowest, at_d = min((lowest, at_d), (model_lowest, model.dimension))
    return (lowest < NOTED_FALL) * (
        f"errors at d = {at_d:g} differ from their limit by up to {shift_text(lowest)} "
        "(docs/theory/23-a-network-at-its-own-dimension.md, what it does not have)"
    )


def price_note(model: SpikedRandomFeatures, loss: Loss) -> str:
    """Sentence where a finite dimension is the price of m alone: of sRFs, several kinds of neurons,
    labels +-1 at random and losses other than the square; else empty."""
    at = of_size(model)
    alone = bool(np.isinf(at.own_dimension)) or not loss.is_square
    return alone * (
        f"at d = {at.dimension:g} the theory has the price of m alone (docs/readout.md): networks "
        "may be farther from the limit"
    )


class Change(NamedTuple):
    """The relative change of an error from the first to the second of two models, the ``ends``, one
    of which is the model at hand: from which size a point says so, and in which words."""

    ends: Callable[[SpikedRandomFeatures], tuple[SpikedRandomFeatures, SpikedRandomFeatures]]
    noted: float
    said: str

    def of(
        self,
        model: SpikedRandomFeatures,
        here: Any,
        error: Callable[[SpikedRandomFeatures], Any],
    ) -> Array:
        """The change of an ``error``, of any shape, which is ``here`` for the model; NaN where
        either is not known.  Where the readout reuses the step's samples it is the change of a
        readout on fresh ones, which is also what a finite dimension changes."""
        try:
            fresh = model.on_fresh_samples
            first, last = self.ends(fresh)
            errors = [here, here]
            if first is not last and np.any(here > 0):
                here = here if fresh is model else np.where(np.isfinite(here), error(fresh), np.nan)
                errors = [here if end is fresh else error(end) for end in (first, last)]
        except (InvalidArgument, QuadratureError, ConvergenceError):  # none, or not in time
            errors = [here, np.nan]
        with np.errstate(divide="ignore", invalid="ignore"):
            error_change = np.divide(errors[1], errors[0]) - 1
        return np.where(np.isfinite(error_change), error_change, np.nan)


CHANGES = {
    "finite_size_shift": Change(
        lambda model: (limit_of(model), of_size(model)),
        NOTED_SHIFT,
        " from the limit d -> inf to d = {d:g}",
    ),
    "network_difference": Change(
        lambda model: (model, network_after_steps(model)),
        0.05,
        " from this sRF to the network (step.network)",
    ),
}
