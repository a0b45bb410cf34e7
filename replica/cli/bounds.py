"""``replica bounds``: what can be learned at each learning rate."""

from typing import Any

import typer

from .. import documents
from ..observables import bounds as bounds_of
from ..observables import models_on_grid, optimal_lambda
from ..plotting import plot_bounds, plot_functions
from ..problem import describe
from . import common
from .options import Options, parse_request


@common.problem_options(without=("lam", "loss"))
def bounds(
    options: Options,
    *,
    out: common.Out = None,
    plot: common.Plot = None,
    as_json: common.Json = False,
) -> None:
    """Bounds on the test error at the best penalty; with --alpha, that error itself.

    Example: replica bounds --student tanh --target sin --alpha0 20 --eta 0.1:10:40:log
    --alpha 1 --plot bounds.png
    """
    request = parse_request(options, required=())
    common.check_outputs(out, plot, (".csv", ".json"))
    request.refuse_grids(allowed=("eta",))
    models = list(models_on_grid(request.problem, request.grids))
    rates = request.grids.get("eta", [getattr(request.problem, "eta", None)])
    of_each = [bounds_of(model) for model in models]
    points = []
    for rate, model, limits in zip(rates, models, of_each, strict=True):
        point = {
            "eta": rate,
            "lower": limits.lower,
            "upper": limits.upper,
            "converged": limits.converged,
        }
        for alpha in request.alpha:
            best = optimal_lambda(model, alpha=alpha)
            point |= {f"achieved_{alpha:g}": best.test_error, f"lam_{alpha:g}": best.lam}
        points.append(point)
    linear = of_each[0].linear
    document: dict[str, Any] = {
        "problem": describe(request.problem),
        "bounds": points,
        "linear": linear,
    }
    if out is not None:
        common.save_points(out, document | ({"points": points} if out.suffix == ".csv" else {}))
    if plot is not None:
        if len(points) > 1:
            ax = plot_bounds(points, linear, request.alpha)
        else:
            ax = plot_functions(of_each[0])
        common.save_figure(plot, ax.figure)
    if as_json:
        common.answer(documents.to_json(document))
    else:
        common.print_table(points, list(points[0]))
        common.answer(f"best linear predictor: {linear:.7g}")
    if not all(limits.converged for limits in of_each):
        raise typer.Exit(1)
