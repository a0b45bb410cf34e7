"""``replica bounds``: bounds on the error that is learned, at each learning rate."""

from typing import Any

from solvers.resources import TIME_LIMIT

from ..observables import bounds as bounds_of
from ..observables import models_on_grid, optimal_lambda
from ..plotting import plot_bounds, plot_functions
from ..problem import describe
from .common import TimeLimit, command
from .options import parse_request
from .output import Output, answer
from .values import Options


@command(without=("lam", "loss", "reuse", "dimension"))
def bounds(options: Options, output: Output, *, time_limit: TimeLimit = TIME_LIMIT) -> bool:
    """Bounds on the test error at the best penalty; with --alpha, that error itself.

    lower and upper hold at every alpha; achieved_1 is the error at alpha = 1 at its best penalty,
    lam_1.  All are limits d -> inf: at small steps (eta below about 1) networks of ordinary size
    are far above them, see the note of replica curve.  In Python: replica.bounds.

    Examples
    --------
    replica bounds --student tanh --target sin --alpha0 20 --eta 0.1:30:40:log --plot bounds.png

    replica bounds --student relu --target "z1 + z1*z2" --alpha0 5 --eta 2 --alpha 1,4
    """
    request = parse_request(options, required=())
    request.refuse_grids(allowed=("eta",))
    models = models_on_grid(request.problem, request.grids)
    rates = request.grids.get("eta", [getattr(request.problem.step, "eta", None)])
    of_each = [bounds_of(model, time_limit=time_limit) for model in models]
    points = []
    for rate, model, limits in zip(rates, models, of_each, strict=True):
        names = ("lower", "upper", "converged")
        point = {"eta": rate} | {name: getattr(limits, name) for name in names}
        for alpha in request.alpha:
            best = optimal_lambda(model, alpha=alpha, time_limit=time_limit)
            point |= {f"achieved_{alpha:g}": best.test_error, f"lam_{alpha:g}": best.lam}
        points.append(point)
    linear, described = of_each[0].linear, describe(request.problem)
    if len(points) > 1:
        described["eta"] = request.grids["eta"].tolist()
    document: dict[str, Any] = {"problem": described, "bounds": points, "linear": linear}

    def figure() -> Any:
        if len(points) > 1:
            return plot_bounds(points, linear, request.alpha, described=described).figure
        return plot_functions(of_each[0]).figure

    def show() -> None:
        output.table(points, [name for name in points[0] if points[0][name] is not None])
        answer(f"best linear predictor: {linear:.7g}")

    output.write(document, show, figure=figure, rows=points)
    return all(limits.converged for limits in of_each)
