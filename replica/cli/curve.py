"""``replica curve``: test and training errors on a grid."""

from dataclasses import asdict
from typing import Annotated, Any

import numpy as np
import typer

from solvers.resources import TIME_LIMIT

from ..observables import NOTED_SHIFT, Grid, error_shown, sweep
from ..plotting import plot_curve
from ..steps import after_each_step
from .common import DATASETS, command
from .options import SRF_FIELDS, Options, one_or_axis, parse_request
from .output import Notes, Output, note_finite_size, note_network, note_worse_than_zero, progress

Workers = Annotated[int, typer.Option(help="Processes among which the points are divided.")]
TimeLimit = Annotated[float, typer.Option(help="Seconds a point, after which it is flagged.")]


@command(files=DATASETS)
def curve(
    options: Options,
    output: Output,
    *,
    workers: Workers = 1,
    time_limit: TimeLimit = TIME_LIMIT,
    notes: Notes = False,
) -> None:
    """Test and training error on a grid of any parameters.

    test_error is E (target - output)^2, of targets without noise; train_error the mean squared
    residual of the training labels.  The figure of --plot has them along the longest grid, a line
    for every value of the others; of two grids of 12 values or more it is a heat map.

    In Python: replica.learning_curve, whose .to_dataframe() is for pandas, and replica.solve.

    Examples
    --------
    replica curve --student tanh --target sin --alpha0 20 --eta 3 --alpha 0.2:3:15 --lam 0.1
    --plot curve.png

    replica curve --student relu --target "abs(z1)" --alpha0 3 --eta 0:5:21 --beta 0.5,1,2 --alpha 2
    --lam 0.1 --out curve.nc
    """
    request = parse_request(options)
    problem, grids = request.problem, dict(request.grids)
    if problem.schedule and grids["beta"].size == 1:  # no axis: the model has it, as in Python
        problem = problem.model(beta=float(grids.pop("beta")[0]))
    limits: dict[str, Any] = {"time_limit": time_limit, "workers": workers}
    with progress("points") as advance:
        grid = sweep(
            problem,
            alpha=one_or_axis(request.alpha),
            lam=one_or_axis(request.lam),
            grids={name: one_or_axis(values) for name, values in grids.items()},
            loss=request.loss,
            progress=advance,
            **limits,
        )
    grid = grid.noted(**limits) if notes else grid
    document = curve_document(grid)

    def show() -> None:
        names = ("classification_error", "test_error", "train_error", "converged")
        known = [name for name in (*names, "loss_error", "train_loss") if name in grid.columns]
        output.table(document["points"], [*_swept(grid), *known])

    def dataset() -> Any:
        shift, _ = _farthest(grid, "finite_size_shift") if notes else (0.0, {})
        far = {"limit": f"d → ∞ (at d = 1000 up to {shift:+.0%})"}
        return grid.dataset().assign_attrs(far if abs(shift) > NOTED_SHIFT else {})

    output.write(
        document,
        show,
        figure=lambda: plot_curve(dataset()).figure,
        printed=_swept(grid),
        dataset=dataset,
    )
    if notes:
        error = error_shown(grid.models[0])
        note_finite_size(*_farthest(grid, "finite_size_shift"), error)
        note_network(*_farthest(grid, "network_difference"), error)
    note_worse_than_zero(grid.problem, grid.columns["test_error"].tolist())
    if not grid.converged:
        raise typer.Exit(1)


def _farthest(grid: Grid, name: str) -> tuple[float, dict[str, Any]]:
    """The value of a column of :meth:`Grid.noted` that is farthest from 0, and where it is."""
    changes = np.nan_to_num(grid.columns[name])
    k = int(np.abs(changes).argmax())
    place = np.unravel_index(k, [axis.size for axis in grid.axes.values()])
    where = {axis: grid.axes[axis][i] for axis, i in zip(grid.axes, place, strict=True)}
    return float(changes[k]), {axis: where[axis] for axis in _swept(grid)}


def _swept(grid: Grid) -> list[str]:
    """Axes to show: alpha, lam, and model fields with more than one value."""
    return [name for name, axis in grid.axes.items() if name in ("alpha", "lam") or axis.size > 1]


def curve_document(grid: Grid) -> dict[str, Any]:
    """The JSON document of ``curve``."""
    swept, mesh = _swept(grid), np.meshgrid(*grid.axes.values(), indexing="ij")
    coordinates = zip(grid.axes, (x.ravel() for x in mesh), strict=True)
    columns: dict[str, Any] = {name: x for name, x in coordinates if name in swept} | grid.columns
    srf = {name: [getattr(model, name) for model in grid.models] for name in SRF_FIELDS}
    if len(grid.models) > 1:
        each = len(grid.columns["status"]) // len(grid.models)
        columns |= {name: [one for one in srf[name] for _ in range(each)] for name in srf}
    rows = zip(*columns.values(), strict=True)
    problem = grid.constants | {
        name: axis[0] if axis.size == 1 else axis
        for name, axis in grid.axes.items()
        if name not in ("alpha", "lam")
    }
    document = {
        "problem": problem,
        "srf": {name: values[0] if len(values) == 1 else None for name, values in srf.items()},
        "points": [dict(zip(columns, row, strict=True)) for row in rows],
    }
    step = grid.problem.step
    if step is not None and len(step.schedule) > 1 and len(grid.models) == 1:
        document["steps"] = [asdict(after) for after in after_each_step(step)]
    return document
