"""``replica bounds``: what can be learned at each learning rate."""

from typing import Any

import typer

from .. import documents as files
from ..observables import bounds as bound
from ..observables import optimal_lambda, variants
from ..plots import plot_bounds, plot_functions
from ..problem import describe
from . import common as common
from .options import ProblemOptions, request


@common.problem_options(without=("lam", "loss"))
def bounds(
    options: ProblemOptions,
    *,
    out: common.Out = None,
    plot: common.Plot = None,
    as_json: common.Json = False,
) -> None:
    """Bounds on the test error at the best penalty; with --alpha, that error itself.

    Example: replica bounds --student tanh --target sin --alpha0 20 --eta 0.1:10:40:log
    --alpha 1 --plot bounds.png
    """
    asked = request(options, required=())
    common.check_outputs(out, plot, (".csv", ".json"))
    for name, grid in asked.grids.items():
        if name != "eta":
            common.one_number(name, grid)
    models = list(variants(asked.problem, asked.grids))
    rates = asked.grids.get("eta", [getattr(asked.problem, "eta", None)])
    found = [bound(one) for one in models]
    points = []
    for rate, one, bounded in zip(rates, models, found, strict=True):
        points.append(
            {
                "eta": rate,
                "lower": bounded.lower,
                "upper": bounded.upper,
                "converged": bounded.converged,
            }
        )
        for ratio in asked.alpha:
            best = optimal_lambda(one, alpha=ratio)
            points[-1] |= {f"achieved_{ratio:g}": best.test_error, f"lam_{ratio:g}": best.lam}
    document: dict[str, Any] = {
        "problem": describe(asked.problem),
        "bounds": points,
        "linear": found[0].linear,
    }
    if out is not None:
        common.save_points(out, document | ({"points": points} if out.suffix == ".csv" else {}))
    if plot is not None:
        if len(points) > 1:
            common.save_figure(plot, plot_bounds(points, found[0].linear, asked.alpha).figure)
        else:
            common.save_figure(plot, plot_functions(found[0]).figure)
    if as_json:
        typer.echo(files.to_json(document))
    else:
        common.print_table(points, list(points[0]))
        typer.echo(f"best linear predictor: {found[0].linear:.7g}")
    if not all(one.converged for one in found):
        raise typer.Exit(1)
