"""``replica curve``: test and training errors on a grid."""

from collections.abc import Callable, Container, Mapping
from dataclasses import asdict, replace
from functools import partial
from typing import Annotated, Any

import numpy as np
import typer

from solvers.resources import TIME_LIMIT, deadline
from solvers.results import Status

from .. import observables
from ..plotting import plot_curve
from ..steps import after_each_step
from . import printing
from .command_runner import DATASETS, Interrupted, TimeLimit, command
from .option_table import (
    BEST,
    SEARCHED,
    SRF_FIELDS,
    Options,
    one_or_axis,
)
from .options import parse_request
from .printing import Notes, Output

SECONDS_FOR_NOTE = 5.0  # for changes that were not asked for
TO_NETWORK = observables.CHANGES["network_difference"]
Workers = Annotated[int, typer.Option(help="Processes among which the points are divided.")]


@command(files=DATASETS)
def curve(
    options: Options,
    output: Output,
    *,
    workers: Workers = 1,
    time_limit: TimeLimit = TIME_LIMIT,
    notes: Notes = False,
) -> bool:
    """Test and training error on a grid of any parameters.

    test_error is E (E[y|x] - output)^2, from the mean label of an input: with flip:q of labels
    that is (1 - 2 q) times the sign.  train_error is the mean squared residual of training labels.
    The figure of --plot has them along the longest grid, a line for every value of the others; of
    two grids of 12 values or more it is a heat map.  Every point has the best penalty or learning
    rate with --lam best, --eta best, or both.

    In Python: replica.learning_curve, whose .to_dataframe() is for pandas, and replica.solve.

    Examples
    --------
    replica curve --student tanh --target sin --alpha0 20 --eta 3 --alpha 0.2:3:15 --lam 0.1
    --plot curve.png

    replica curve --student relu --target "abs(z1)" --alpha0 3 --eta 0:5:21 --beta 0.5,1,2 --alpha 2
    --lam 0.1 --out curve.nc
    """
    return answer_curve(options, output, workers=workers, time_limit=time_limit, notes=notes)


def answer_curve(
    options: Options,
    output: Output,
    *,
    figure: Callable[[Any, Any], Any] = lambda problem, dataset: plot_curve(dataset),
    notes: bool,
    **limits: Any,
) -> bool:
    """Errors on the grid that the options describe, at the best of what they search; whether all
    are known.

    The ``figure`` takes a model and the data set.  Large changes to d = 1000 and, unless a theory
    was named, to the network are noted without ``notes``, too: at the ends and the middle of the
    axes, or those to d = 1000, where the best is searched, at all points.
    """
    searched = [name for name in SEARCHED if options.get(name) == BEST]
    request = parse_request(options, searched=searched)
    problem, grids = request.problem, dict(request.grids)
    if problem.schedule and grids["beta"].size == 1:  # no axis: the model has it, as in Python
        problem = problem.model_at(beta=float(grids.pop("beta")[0]))
    on_axes = {name: one_or_axis(values) for name, values in grids.items()}
    point_axes = {"alpha": one_or_axis(request.alpha), "lam": one_or_axis(request.lam)}
    is_default = request.theory is None  # the sRF, and nobody asked for it
    noted = [*printing.NOTED] if notes or (is_default and not searched) else ["finite_size_shift"]
    with printing.progress("points") as advance:
        search: dict[str, Any] = {"loss": request.loss, "progress": advance}
        search |= {"partial_results": True} | limits  # at Ctrl-C
        if searched:
            grid = observables.at_best(
                problem, searched, point_axes, on_axes, noted=noted, **search
            )
        else:
            grid = observables.solve_grid(problem, **point_axes, grids=on_axes, **search)
    noted_grid, note, interrupted = grid, "", ""
    shown_axes = [*_shown_axes(grid), *searched]
    unsolved_n = int((grid.columns["status"] == str(Status.INTERRUPTED)).sum())
    try:
        if unsolved_n:
            points_text = f"{unsolved_n} of {len(grid.columns['status'])} points"
            interrupted = f"{points_text} were not solved, and their status says so"
        elif notes and not searched:
            grid = noted_grid = grid.with_changes(**limits)
        if not unsolved_n:
            with deadline(TIME_LIMIT if "eta" in searched else SECONDS_FOR_NOTE):
                if not (notes or searched):
                    noted_grid = grid.thinned().with_changes(noted)
                noted_points = _points_with_models(noted_grid)
                error = observables.headline_error(grid.models[0])
                if searched and is_default and not notes:
                    thinned = _points_with_models(grid.thinned())
                    noted_points += [_with_network(point, error) for point in thinned]
                network_eta = partial(_network_eta, searched) if "eta" in searched else None
                note = printing.farthest_note(noted_points, shown_axes, error, notes, network_eta)
    except KeyboardInterrupt:
        interrupted = "all points are solved, and their notes are not"
    document = curve_document(grid)

    def show() -> None:
        columns = printing.errors_first(grid.columns, request.loss)
        output.table(document["points"], [*shown_axes, *columns])
        printing.note_theory(grid.models[0])

    def dataset() -> Any:
        shifts = noted_grid.columns.get("finite_size_shift", [0.0])
        shift = shifts[printing.farthest(shifts)]
        attrs = {"limit": f"d → ∞ (at d = 1000 up to {shift:+.0%})"}
        return grid.dataset().assign_attrs(attrs if abs(shift) > observables.NOTED_SHIFT else {})

    def drawn() -> Any:
        return figure(grid.models[0], dataset()).figure

    if unsolved_n:  # files that are complete stay
        named = output.out and output.out.with_stem(f"{output.out.stem}-incomplete")
        output = replace(output, out=named, plot=None)
    output.write(document, show, figure=drawn, printed=shown_axes, dataset=dataset)
    if interrupted:
        raise Interrupted(f"interrupted; {interrupted}")
    if note:
        printing.say(f"note: {note}")
    for sentence in _size_notes(grid) if notes else []:
        printing.say(f"note: {sentence}")
    printing.note_edges(document["points"])
    printing.note_worse_than_zero(grid.problem, grid.columns["test_error"].tolist())
    printing.warn_of_failures(document["points"])
    return grid.converged


def _points_with_models(grid: observables.Grid) -> list[dict[str, Any]]:
    """Axes and columns of every point, and its model before a search of eta."""
    points_per_model = len(grid.columns["status"]) // len(grid.models)
    models = [model for model in grid.models for _ in range(points_per_model)]
    return printing.rows_of(grid.axes, grid.columns | {"model": models})


def _with_network(point: dict[str, Any], error: str) -> dict[str, Any]:
    """A point that was searched, with the relative change of its ``error`` to the network."""

    def network_error(network: Any) -> Any:
        network = network.model_at(eta=point["eta"]) if "eta" in point else network
        return getattr(observables.solve(network, alpha=point["alpha"], lam=point["lam"]), error)

    change = TO_NETWORK.of(point["model"], point[error], network_error)
    return {**point, "network_difference": change}


def _network_eta(searched: Container[str], point: Mapping[str, Any]) -> str:
    """The best eta of the network in the place of an sRF at a point, if it is found in time."""
    at = {"alpha": point["alpha"], "lam": None if "lam" in searched else point["lam"]}
    best_eta = lambda network: observables.optimal_eta(network, **at).eta  # noqa: E731
    eta = point["eta"] * (1 + TO_NETWORK.of(point["model"], point["eta"], best_eta))
    return f", whose best eta is {eta:.3g}" if np.isfinite(eta) else ", whose best eta may differ"


def _size_notes(grid: observables.Grid) -> list[str]:
    """Notes on what the theory at d = 1000, or at the models' own dimensions, leaves out."""
    prices = {observables.price_note(model, loss) for model in grid.models for loss in grid.losses}
    with deadline(TIME_LIMIT):
        few_products = observables.few_products_note(grid.models, grid.axes["alpha"])
    return sorted({few_products, *prices} - {""})


def _shown_axes(grid: observables.Grid) -> list[str]:
    """Axes to show: alpha, lam, and model fields with more than one value."""
    return [name for name, axis in grid.axes.items() if name in ("alpha", "lam") or axis.size > 1]


def curve_document(grid: observables.Grid) -> dict[str, Any]:
    """The JSON document of ``curve``."""
    columns: dict[str, Any] = dict(grid.columns)
    srf = {name: [getattr(model, name) for model in grid.models] for name in SRF_FIELDS}
    if "eta" in columns:  # every point has its own
        srf = {name: [None] for name in srf}
    elif len(grid.models) > 1:
        points_per_model = len(grid.columns["status"]) // len(grid.models)
        columns |= {
            name: [value for value in srf[name] for _ in range(points_per_model)] for name in srf
        }
    problem = grid.constants | {
        name: axis[0] if axis.size == 1 else axis
        for name, axis in grid.axes.items()
        if name not in ("alpha", "lam")
    }
    document = {
        "problem": problem,
        "srf": {name: values[0] if len(values) == 1 else None for name, values in srf.items()},
        "points": printing.rows_of({name: grid.axes[name] for name in _shown_axes(grid)}, columns),
    }
    step = grid.problem.step
    if step is not None and len(step.schedule) > 1 and len(grid.models) == 1:
        document["steps"] = [asdict(step_rows) for step_rows in after_each_step(step)]
    return document
