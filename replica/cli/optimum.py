"""Commands of what is best: ``replica optimum``, the best ridge penalty, learning rate, or both;
``replica bounds``, on the error at the best penalty, at each learning rate; and ``replica plan``,
how to spend samples on the two layers.
"""

from typing import Annotated, Any

import typer

from solvers.resources import TIME_LIMIT

from ..errors import InvalidArgument
from ..observables import (
    SECONDS,
    models_on_grid,
    optimal_eta,
    optimal_lambda,
    refuse_limit_options,
    sample_allocation,
)
from ..observables import bounds as bounds_of
from ..plotting import plot_bounds, plot_functions, plot_optima
from ..problem import describe
from .common import DATASETS, TimeLimit, command
from .curve import Workers, answer_curve
from .given import asks_for_given
from .option_table import (
    BEST,
    COMMANDS_OF_BEST,
    HELP,
    SRF_FIELDS,
    Options,
    parse_grid,
    single_number,
)
from .options import parse_request
from .output import Notes, Output, answer, note_edges, say
from .readout import answer_readout

POINT = ("alpha", "samples", "lam")  # of coordinates, what a search takes


@command(offered=tuple(HELP), files=DATASETS)
def optimum(
    options: Options,
    output: Output,
    *,
    workers: Workers = 1,
    time_limit: TimeLimit = TIME_LIMIT,
    notes: Notes = False,
) -> bool:
    """The parameters of the smallest test error: lam, and eta too where it is not given.

    Searched: lam from 1e-8 to 1e4, eta from 0.01 to 100; a best value at the end of its range is
    noted.  --eta holds eta; --lam, without --eta, holds lam.  All else may be grids, but for the
    loss, which is the square.  It is replica curve, or replica readout, with --lam best and --eta
    best, and draws these.

    In Python: replica.learning_curve with lam="best", eta="best"; at one point replica.optimal_eta
    and replica.optimal_lambda, which tell all minima and take other ranges.

    Examples
    --------
    replica optimum --student tanh --target sin --alpha0 5,20 --alpha 1,2

    replica optimum --student relu --target relu --alpha0 3 --eta 1 --alpha 0.5:4:8 --plot best.png
    """
    if asks_for_given(options):
        _refuse_penalty(options, "left out: it is what is searched")
        refuse_limit_options(workers=workers, notes=notes)
        how: dict[str, Any] = {"figure": _figure, "time_limit": time_limit}
        return answer_readout(options | {"lam": BEST}, output, **how)
    of_rates = "alpha0" in options and options.get("eta", BEST) == BEST and "rate" not in options
    if not of_rates:
        _refuse_penalty(options, "left out, or given with a step without --eta or --rate")
    best = {"lam": BEST} | options | ({"eta": BEST} if of_rates else {})
    how = {"figure": _figure, "notes": notes, "time_limit": time_limit}
    return answer_curve(best, output, workers=workers, **how)


def _refuse_penalty(options: Options, allowed: str) -> None:
    """Refuse a penalty that is given where only the best one is asked for."""
    if options.get("lam", BEST) != BEST:
        raise InvalidArgument("lam", options["lam"], allowed)


def _figure(model: Any, dataset: Any) -> Any:
    """The best values along an axis or, at a single point, the error around them."""
    if dataset.test_error.size > 1 or not dataset.converged.all():
        return plot_optima(dataset)
    search = optimal_eta if "eta" in dataset.data_vars else optimal_lambda
    at = {name: x.item() for name, x in dataset.coords.items() if name in POINT}
    return search(model, **at).plot()


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
        answer(f"best linear predictor of the inputs, not of these features: {linear:.7g}")

    output.write(document, show, figure=figure, rows=points)
    return all(limits.converged for limits in of_each)


UNUSED = ("alpha0", "alpha", "theory", "loss", "steps", "reuse", "dimension", *SRF_FIELDS)
# by the theory of reused samples
NOT_COVERED = (
    "inputs", "separation", "step_target", "step_noise", "decay", "intercept", "train_bias",
)  # fmt: skip


@command(without=(*UNUSED, *NOT_COVERED))
def plan(
    options: Options,
    output: Output,
    *,
    budget: Annotated[str, typer.Option(help="All samples over the input dimension, N/d.")],
    parts: Annotated[
        str, typer.Option(help="Shares of them that are tried for a layer: 0.25,0.5,0.75.")
    ] = "0.5",
    time_limit: TimeLimit = SECONDS,
) -> bool:
    """The best use of N samples: all for both layers, or some for each.

    A row for every use: alpha0 samples over dimension for the step, alpha for the readout, of which
    a share reuse are the step's; errors at its best penalty, unless --lam is given, and with
    --eta best at its best learning rate.  Of splits the best is searched.  It is the theory of the
    network itself.

    In Python: replica.sample_allocation.

    Examples
    --------
    replica plan --student tanh --target sin --eta 3 --budget 4

    replica plan --student relu --target relu --eta 1 --noise 0.3 --budget 4 --parts 0.25,0.5,0.75
    --plot plan.png
    """
    options = {"lam": BEST} | options
    searched = [name for name in COMMANDS_OF_BEST if options.get(name) == BEST]
    required = ("rate" if "rate" in options else "eta", "lam")
    # a step has samples of its own also where their number is asked for: any will do
    request = parse_request({"theory": "network"} | options | {"alpha0": 1.0}, required, searched)
    model = request.single_model()
    if not request.loss.is_square:
        raise InvalidArgument("loss", request.loss.name, "the square, of which plans are")
    if request.theory != "network":
        raise InvalidArgument("theory", request.theory, "network: an sRF reuses no samples")
    if model.reuse:
        raise InvalidArgument("reuse", model.reuse, "left out: what is reused is what is planned")
    found = sample_allocation(
        model,
        budget=single_number("budget", parse_grid("budget", budget)),
        beta=model.beta,
        lam=BEST if "lam" in searched else single_number("lam", request.lam),
        eta=BEST if "eta" in searched else None,
        parts=parse_grid("parts", parts).tolist(),
        time_limit=time_limit,
    )
    document = found.document()
    rows = document["points"]

    def show() -> None:
        output.table(rows, [name for name in rows[0] if name != "at_edge"])
        answer(f"Best: {found.best.use}.")

    output.write(document, show, figure=lambda: found.plot().figure, rows=rows)
    note_edges([one.at_edge for one in found.plans])
    for note in found.notes:
        say(f"note: {note}")
    return found.converged
