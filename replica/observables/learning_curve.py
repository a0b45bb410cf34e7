"""Learning curves: errors on the grid of all combinations of parameters, or at the best of them."""

import itertools
import logging
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from solvers.resources import TIME_LIMIT
from solvers.results import ConvergenceError

from ..convex import LOSSES
from ..display import Progress, progress_callback
from ..errors import InvalidArgument
from ..given import Given
from ..problem import Problem, check_call, check_points, positive
from .grid import (
    Grid,
    columns_of,
    computed,
    model_grid,
    places_on_grid,
    point_axis,
    scalar_arguments,
    solve_grid,
    unsolved_row,
)
from .optimum import Optimum, of_square, optimal_eta, optimal_lambda
from .readout_curves import column_names, notes_on, refuse_limit_options
from .theory_changes import (
    far_below_limit_note,
    few_products_note,
    price_note,
    ratio_note,
)

if TYPE_CHECKING:
    import xarray

BEST = "best"  # of lam or eta: the one of the smallest test error, at every point
SQUARE = LOSSES["square"]


@check_call
def learning_curve(
    model: Problem | Given,
    /,
    *,
    alpha: ArrayLike | None = None,
    samples: ArrayLike | None = None,
    lam: ArrayLike | str,
    loss: Any = "square",
    quadrature_tol: float | None = None,
    time_limit: float = TIME_LIMIT,
    workers: int = 1,
    progress: bool | Progress = False,
    notes: bool = False,
    raise_on_failure: bool = False,
    **grids: Any,
) -> "xarray.Dataset":
    """The theory on the grid of all values of alpha, lam and any model field.  docs/theory.md 4, 20

    Parameters
    ----------
    model : SpikedRandomFeatures, GradientStep, FirstLayer, FeatureSample or FeatureMoments
        A GradientStep also needs ``beta``, and stands for its sRF unless ``theory`` says otherwise.
    alpha : float or array
        Readout samples over input dimension, n/d.
    samples : float or array
        Numbers n of readout samples, in the place of alpha, of a FirstLayer or FeatureSample.
    lam : float, array or "best"
        Ridge penalty; the best one of every point, a variable of the result, is that of
        :func:`optimal_lambda`.
    loss : str, Loss, or list of them
        As in :func:`solve`; a list is a dimension.
    quadrature_tol
        As in :func:`solve`, for every point.
    time_limit : float
        Seconds a point, on average over those solved at once.
    workers : int
        Processes among which the grid is divided, where a loss other than the square, or a search,
        makes it slow; the numbers do not depend on it.  1 for a given layer or features.
    progress : bool or callable
        Whether to draw a bar while it is computed; a function is called with (done, total).
    notes : bool
        Whether to also solve every point at d = 1000, or in the limit where the model has a
        ``dimension``, and for the network of the same steps where it is an sRF: variables
        finite_size_shift and network_difference, the relative changes of the error.  ``progress``
        begins anew for each.
    raise_on_failure : bool
        Raise if any point did not converge.
    **grids : float, array or list
        Fields of the model, or of the step that made it, to vary: ``beta=[0.5, 1, 2]``,
        ``eta=...``, ``readout=["equal", "gaussian"]``; ``rate=`` is eta/d, which stays as beta
        varies: eta~ = rate/beta; ``separation=``, a factor of the means of the step's inputs.
        ``student=["tanh", "relu"]``; ``theory=["srf", "network"]``, of a step, the latter
        at a ``dimension=500`` or in the limit; ``eta="best"`` is that of :func:`optimal_eta`.

    Returns
    -------
    xarray.Dataset
        Dimensions: the names in ``grids``, loss, alpha or samples, and lam, as far as a list was
        given: a number stays a coordinate without a dimension.  Variables test_error,
        train_error, converged, residual, quadrature_error, iterations, status, and the
        sRF's r, c, gamma, where each is one number for all neurons;
        loss_error and train_loss for a loss other than the square, classification_error where
        labels are +-1, trained_bias where one is trained, readout_variance of a given layer, and
        at_edge where the best is searched, as of an optimum.  Points that did not converge have NaN
        errors.  Where errors of a given layer or of features may be off, ``noted`` is True, of
        training errors of features ``noted_training``, and ``note`` says why; a warning is logged,
        with the numbers of samples.

    Raises
    ------
    InvalidArgument
        If a value is missing or out of range, an option does not fit the model, or a name in
        ``grids`` is not a field.
    ConvergenceError
        On request, with the Dataset inside.
    ChildProcessError
        If workers die again and again.

    Examples
    --------
    >>> from replica import GradientStep, learning_curve
    >>> model = GradientStep(student="tanh", target="sin", alpha0=20, eta=3.0).srf(beta=1.0)
    >>> curve = learning_curve(model, alpha=[0.2, 3.0], lam=0.1)
    >>> curve.test_error.values.round(7).tolist()
    [0.0484829, 0.0325182]
    >>> float(curve.test_error.sel(alpha=3.0).round(7))
    0.0325182
    >>> both = learning_curve(model, alpha=1.0, lam="best", theory=["srf", "network"])
    >>> both.test_error.values.round(6), both.lam.values.round(4)
    (array([0.039608, 0.039111]), array([0.2979, 0.2655]))
    """
    if isinstance(model, Given):
        refuse_limit_options(*grids, workers=workers, notes=notes)
    typed_points: dict[str, Any] = {"alpha": alpha, "samples": samples, "lam": lam}
    typed = {"lam": lam, "eta": grids.get("eta")}
    searched = [name for name, value in typed.items() if isinstance(value, str) and value == BEST]
    with progress_callback(progress, "points") as advance:
        curve_options: dict[str, Any] = {"time_limit": time_limit, "workers": workers}
        curve_options |= {"progress": advance, "quadrature_tol": quadrature_tol}
        if searched:
            curve_grid = at_best(model, searched, typed_points, grids, loss, **curve_options)
        else:
            curve_grid = solve_grid(model, **typed_points, grids=grids, loss=loss, **curve_options)
        curve_grid = curve_grid.with_changes(**curve_options) if notes else curve_grid
        dataset = curve_grid.log_unsolved().dataset()
    if isinstance(model, Given):
        curve_notes = notes_on(model, dataset)
    else:
        of_own_size = [each for each in curve_grid.models if np.isfinite(each.dimension)]
        few_text = few_products_note(of_own_size, dataset.alpha.values)
        curve_notes = [ratio_note(dataset.alpha.values), few_text]
        of_networks = [each for each in of_own_size if each.rows is not None]
        curve_notes += {price_note(each, one) for each in of_networks for one in curve_grid.losses}
        curve_notes += curve_grid.notes_on_errors()
        is_own = [np.isfinite(each.own_dimension) for each in curve_grid.models]
        if any(is_own) and all(one.is_square for one in curve_grid.losses):
            shift = "finite_size_shift"
            if not notes:
                curve_grid = curve_grid.with_changes([shift], time_limit=time_limit)
            curve_notes.append(far_below_limit_note(curve_grid.models, curve_grid.columns[shift]))
    for curve_note in filter(None, curve_notes):
        logging.getLogger(__name__).warning(curve_note)
    if raise_on_failure and (unsolved_n := int((~dataset.converged).sum())):
        raise ConvergenceError(f"{unsolved_n} points did not converge", dataset)
    return dataset


@check_call
def at_best(
    model: Problem | Given,
    searched: Sequence[str],
    typed_points: Mapping[str, Any],
    grids: Mapping[str, Any],
    loss: Any = SQUARE,
    *,
    time_limit: float,
    quadrature_tol: float | None = None,
    workers: int = 1,
    progress: Progress | None = None,
    partial_results: bool = False,
) -> Grid:
    """:func:`learning_curve` with the best value of every ``searched`` parameter, lam, eta, or
    both, at every point of a grid."""
    of_square(loss)
    if "eta" in searched and "rate" in grids:
        allowed_search = f"left out where the {BEST} eta is searched"
        raise InvalidArgument("rate", grids["rate"], allowed_search)
    name, value = point_axis(model, typed_points.get("alpha"), typed_points.get("samples"))
    point_values = {name: value} if "lam" in searched else {name: value, "lam": typed_points["lam"]}
    point_axes = {name: positive(name, values) for name, values in point_values.items()}
    curve_grids = {name: value for name, value in grids.items() if name not in searched}
    curve_axes, models = model_grid(model, curve_grids)
    names = [*searched, *column_names(models[0], SQUARE)]
    best_search = optimal_lambda if searched == ["lam"] else optimal_eta
    curve_points = places_on_grid(point_axes)
    check_points("a grid", (len(models), len(curve_points)), 10**5)
    how = {"quadrature_tol": quadrature_tol, "time_limit": time_limit}
    row = partial(_best_point, names, best_search, **how)
    tasks = [partial(row, one, **place) for one, place in itertools.product(models, curve_points)]
    best_rows = computed(tasks, workers, progress, partial_results)
    curve_columns = columns_of([*names, "at_edge"], best_rows)
    scalar_axes = scalar_arguments(**curve_grids, **point_values)
    return Grid(model, curve_axes | point_axes, models, curve_columns, [SQUARE], scalar_axes)


def _best_point(
    names: list[str], best_search: Callable[..., Optimum], model: Any, **at: Any
) -> dict[str, Any]:
    """Results at the point that a ``best_search`` finds, by ``names``; its status is the refusal of
    its number of samples if that is refused."""
    try:
        best_at = best_search(model, **at)
    except ConvergenceError as error:
        return unsolved_row([*names, "at_edge"], getattr(error, "status", error))
    except InvalidArgument as refusal:
        if refusal.name != "samples":
            raise
        return unsolved_row([*names, "at_edge"], refusal)
    best_row = {name: getattr(best_at if name == "eta" else best_at.point, name) for name in names}
    return best_row | {"at_edge": " ".join(best_at.at_edge)}
