"""``replica optimum``: the best ridge penalty, learning rate, or both."""

from functools import partial
from typing import Any

from solvers.resources import TIME_LIMIT

from ..errors import InvalidArgument
from ..observables import (
    NOTED_SHIFT,
    Optimum,
    headline_error,
    optimal_eta,
    optimal_lambda,
)
from ..plotting import plot_optima
from ..problem import describe
from .common import TimeLimit, command
from .options import parse_request
from .output import NOTED, Notes, Output, note_edges, note_farthest, say
from .values import BEST, SEARCHED, Options, single_number


@command(without=("loss",))
def optimum(
    options: Options, output: Output, *, time_limit: TimeLimit = TIME_LIMIT, notes: Notes = False
) -> bool:
    """The parameters of the smallest test error: lam, and eta too where it is not given.

    Searched: lam from 1e-8 to 1e4, eta from 0.01 to 100; a best value at the end of its range is
    noted.  --eta holds eta; --lam, without --eta, holds lam.  Over grids of other parameters:
    replica curve --lam best --eta best.

    In Python: replica.optimal_eta and replica.optimal_lambda, which take other ranges.

    Examples
    --------
    replica optimum --student tanh --target sin --alpha0 20 --alpha 1,2

    replica optimum --student relu --target relu --alpha0 3 --eta 1 --alpha 0.5:4:8 --plot best.png
    """
    as_it_is = [name for name in SEARCHED if options.get(name) == BEST]
    options = {name: value for name, value in options.items() if name not in as_it_is}
    searched = "alpha0" in options and not {"eta", "rate"} & options.keys()
    # a step has a learning rate also where the best is looked for: any will do
    request = parse_request(options | {"eta": 1.0} if searched else options, required=("alpha",))
    problem, loss = request.problem, request.loss
    if not loss.is_square:
        raise InvalidArgument("loss", loss.name, "square: of other losses take replica curve")
    model = request.single_model()
    penalty = single_number("lam", request.lam) if request.lam.size else None
    if penalty is not None and not searched:
        raise InvalidArgument("lam", penalty, "left out, or given with a step without --eta")
    best_at = partial(optimal_lambda, model)
    if searched:
        best_at = partial(optimal_eta, model, lam=penalty)
    optima = [best_at(alpha=alpha, time_limit=time_limit) for alpha in request.alpha]
    points = [_point(best) for best in optima]
    described = describe(problem) | {"beta": model.beta}
    if searched:
        described |= {"eta": None} | ({} if penalty is None else {"lam": penalty})
    document = {"problem": described, "points": points}
    left_out = ("minima",) if searched else ("minima", "eta")  # a held eta is no answer
    flat = [{k: v for k, v in point.items() if k not in left_out} for point in points]
    shown = [name for name in flat[0] if name != "at_edge"]

    def figure() -> Any:
        if len(optima) > 1:
            return plot_optima(points, described=described).figure
        return optima[0].plot().figure

    output.write(document, lambda: output.table(flat, shown), figure=figure, rows=flat)
    for best in optima:
        if not best.converged:
            say(f"WARNING: alpha = {best.point.alpha:g}: {best.point.status.value}")
    note_edges([point["at_edge"] for point in points])
    # that the best penalty of the limit may be far from that of a network is said in any case
    names, least = (tuple(NOTED), 0.0) if notes else (("finite_size_shift",), NOTED_SHIFT)
    noted = [
        point | {name: getattr(best.point, name) for name in names}
        for point, best in zip(points, optima, strict=True)
        if best.converged
    ]
    if noted:
        axes = ("alpha", "lam", "eta") if searched else ("alpha", "lam")
        note_farthest(noted, axes, headline_error(model), least)
    return all(best.converged for best in optima)


def _point(best: Optimum) -> dict[str, Any]:
    """An optimum as a point of the document; eta is NaN where it was not varied."""
    found = ("lam", "eta", "test_error")
    return {
        "alpha": best.point.alpha,
        **{name: getattr(best, name) for name in found},
        "train_error": best.point.train_error,
        "at_edge": " ".join(best.at_edge),
        "converged": best.converged,
        "minima": [{name: getattr(local, name) for name in found} for local in best.minima],
    }
