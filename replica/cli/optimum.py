"""``replica optimum``: the best ridge penalty, learning rate, or both."""

from dataclasses import replace

import typer

from .. import documents as files
from ..errors import InvalidArgument
from ..observables import Optimum, optimal_eta, optimal_lambda
from ..problem import describe
from . import common as common
from .options import ProblemOptions, request


@common.problem_options(without=("loss",))
def optimum(
    options: ProblemOptions,
    *,
    out: common.Out = None,
    as_json: common.Json = False,
) -> None:
    """The parameters of the smallest test error: lam, and eta too where it is not given.

    Example: replica optimum --student tanh --target sin --alpha0 20 --alpha 1,2
    """
    searched = options.alpha0 is not None and options.eta is None
    asked = request(replace(options, eta=1.0) if searched else options, required=("alpha",))
    if not asked.loss.is_square:
        raise InvalidArgument("loss", asked.loss.name, "square: of other losses take replica curve")
    common.check_outputs(out, None, (".csv", ".json"))
    one = common.one_model(asked)
    penalty = None if not asked.lam.size else common.one_number("lam", asked.lam)
    if penalty is not None and not searched:
        raise InvalidArgument("lam", penalty, "left out, or given with a step without --eta")
    problem = asked.problem
    found = []
    for ratio in asked.alpha:
        if searched:
            width = None if problem.rows is not None else one.beta
            best = optimal_eta(problem, alpha=ratio, beta=width, lam=penalty)
        else:
            best = optimal_lambda(one, alpha=ratio)
        found.append(best)
    points = [_point(best) for best in found]
    described = describe(problem) | {"beta": one.beta}
    if searched:
        described["eta"] = None
    document = {"problem": described, "points": points}
    if out is not None:
        flat = [{k: v for k, v in point.items() if k != "minima"} for point in points]
        common.save_points(out, {"points": flat} if out.suffix == ".csv" else document)
    if as_json:
        typer.echo(files.to_json(document))
    else:
        common.print_table(points, [name for name in points[0] if name != "minima"])
    if not all(best.converged for best in found):
        raise typer.Exit(1)


def _point(best: Optimum) -> dict[str, object]:
    point = {"alpha": best.point.alpha, "lam": best.lam, "eta": best.eta}
    return point | {
        "test_error": best.test_error,
        "train_error": best.point.train_error,
        "at_edge": " ".join(best.at_edge),
        "converged": best.converged,
        "minima": [
            {"lam": one.lam, "eta": one.eta, "test_error": one.test_error} for one in best.minima
        ],
    }
