"""``replica curve``: test and training errors on a grid."""

from dataclasses import asdict
from typing import Any, cast

import numpy as np
import typer

from .. import documents
from ..observables import Grid, sweep
from ..plots import plot_curve
from ..problem import describe
from ..steps import GradientStep, after_each_step
from . import common
from .options import Options, parse_request


@common.problem_options()
def curve(
    options: Options,
    *,
    out: common.Out = None,
    plot: common.Plot = None,
    as_json: common.Json = False,
) -> None:
    """Test and training error on a grid.

    Example: replica curve --student tanh --target sin --alpha0 20 --eta 3 --alpha 0.2:3:15
    --lam 0.1 --plot curve.png
    """
    request = parse_request(options)
    common.check_outputs(out, plot)
    with common.progress("models") as advance:
        grid = sweep(
            request.problem,
            alpha=request.alpha,
            lam=request.lam,
            grids=request.grids,
            loss=request.loss,
            progress=advance,
        )
    document = curve_document(grid)
    if out is not None:
        common.save_points(
            out, document, lambda path: grid.dataset().to_netcdf(path, engine="h5netcdf")
        )
    if plot is not None:
        common.save_figure(plot, plot_curve(grid.dataset()).figure)
    if as_json:
        typer.echo(documents.to_json(document))
    else:
        optional = ("loss_error", "train_loss", "classification_error")
        known = [name for name in optional if name in grid.columns]
        columns = [*_swept(grid), "test_error", "train_error", *known, "converged"]
        common.print_table(document["points"], columns)
    if not grid.converged:
        raise typer.Exit(1)


def _swept(grid: Grid) -> list[str]:
    """Axes to show: alpha, lam, and model fields with more than one value."""
    return [name for name, axis in grid.axes.items() if name in ("alpha", "lam") or axis.size > 1]


def curve_document(grid: Grid) -> dict[str, Any]:
    """The JSON document of ``curve``."""
    names = _swept(grid)
    columns = dict(zip(grid.axes, _mesh(grid), strict=True)) | grid.columns
    keep = [*names, *(name for name in columns if name not in grid.axes)]
    rows = zip(*(columns[name] for name in keep), strict=True)
    points = [dict(zip(keep, row, strict=True)) for row in rows]
    srf = {name: [getattr(model, name) for model in grid.models] for name in ("r", "c", "gamma")}
    per_model = len(points) // len(grid.models)
    if len(grid.models) > 1:
        for i, point in enumerate(points):
            point |= {name: values[i // per_model] for name, values in srf.items()}
    problem = describe(grid.problem) | {
        name: axis[0] if axis.size == 1 else axis
        for name, axis in grid.axes.items()
        if name not in ("alpha", "lam")
    }
    if not grid.loss.is_square:
        problem["loss"] = grid.loss.name
    document = {
        "problem": problem,
        "srf": {name: values[0] if len(values) == 1 else None for name, values in srf.items()},
        "points": points,
    }
    if len(grid.problem.schedule) > 1 and len(grid.models) == 1:
        step = cast(GradientStep, grid.problem)
        document["steps"] = [asdict(after) for after in after_each_step(step)]
    return document


def _mesh(grid: Grid) -> list[Any]:
    """The coordinates of all points along each axis, (points,) each; the last varies fastest."""
    return [x.ravel() for x in np.meshgrid(*grid.axes.values(), indexing="ij")]
