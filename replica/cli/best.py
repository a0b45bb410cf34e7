"""The commands of what is best: ``replica optimum``, the best ridge penalty, learning rate, or
both; ``replica bounds``, on the error at the best penalty, at each learning rate; ``replica plan``,
how to spend samples on the two layers.
"""

from functools import partial
from typing import Annotated, Any

import typer

from solvers.resources import TIME_LIMIT

from .. import observables
from ..errors import InvalidArgument
from ..plotting import plot_bounds, plot_functions, plot_optima
from ..problem import describe
from . import printing
from .command_runner import DATASETS, TimeLimit, command
from .curve import Workers, answer_curve
from .given import asks_for_given
from .notes import Notes, note_edges, note_theory, notes_of_bounds
from .option_table import (
    BEST,
    HELP,
    SEARCHED,
    SRF_FIELDS,
    Options,
    parse_grid,
    single_number,
)
from .options import parse_request
from .printing import Output, answer, say
from .readout import answer_readout


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
        observables.refuse_limit_options(workers=workers, notes=notes)
        best_options = options | {"lam": BEST}
        return answer_readout(best_options, output, figure=_figure, time_limit=time_limit)
    of_rates = "alpha0" in options and options.get("eta", BEST) == BEST and "rate" not in options
    if not of_rates:
        _refuse_penalty(options, "left out, or given with a step without --eta or --rate")
    searched_options = {"lam": BEST} | options | ({"eta": BEST} if of_rates else {})
    limits: dict[str, Any] = {"workers": workers, "time_limit": time_limit}
    return answer_curve(searched_options, output, figure=_figure, notes=notes, **limits)


def _refuse_penalty(options: Options, allowed: str) -> None:
    """Refuse a penalty that is given where only the best one is asked for."""
    if options.get("lam", BEST) != BEST:
        raise InvalidArgument("lam", options["lam"], allowed)


def _figure(model: Any, dataset: Any) -> Any:
    """The best values along an axis or, at a single point, the error around them."""
    if dataset.test_error.size > 1 or not dataset.converged.all():
        return plot_optima(dataset)
    search = observables.optimal_eta if "eta" in dataset.data_vars else observables.optimal_lambda
    of_point = ("alpha", "samples", "lam")
    point_options = {name: x.item() for name, x in dataset.coords.items() if name in of_point}
    return search(model, **point_options).plot()


@command(without=("lam", "loss", "reuse", "dimension"))
def bounds(options: Options, output: Output, *, time_limit: TimeLimit = TIME_LIMIT) -> bool:
    """Bounds on the test error at the best penalty; with --alpha, that error itself.

    lower and upper hold at every alpha; achieved_1 is the error at alpha = 1 at its best penalty,
    lam_1.  All are limits d -> inf: notes say how far the network itself is and, at --alpha or 1,
    networks of d = 1000, which at small steps (eta below about 1) are far above them.  In Python:
    replica.bounds.

    Examples
    --------
    replica bounds --student tanh --target sin --alpha0 20 --eta 0.1:30:40:log --plot bounds.png

    replica bounds --student relu --target "z1 + z1*z2" --alpha0 5 --eta 2 --alpha 1,4
    """
    request = parse_request(options, required=())
    request.refuse_grids(allowed=("eta",))
    models = observables.models_on_grid(request.problem, request.grids)
    request_rates = request.grids.get("eta", [getattr(request.problem.step, "eta", None)])
    rate_rows, bounds_results = [], []
    for rate, model in zip(request_rates, models, strict=True):
        rate_bounds = observables.bounds(model, time_limit=time_limit)
        bound_names = ("lower", "upper", "converged")
        bound_row = {"eta": rate} | {name: getattr(rate_bounds, name) for name in bound_names}
        penalty_search = partial(observables.optimal_lambda, model, time_limit=time_limit)
        rate_optima = [penalty_search(alpha=alpha) for alpha in request.alpha]
        for alpha, best in zip(request.alpha, rate_optima, strict=True):
            bound_row |= {f"achieved_{alpha:g}": best.test_error, f"lam_{alpha:g}": best.lam}
        rate_rows.append(bound_row)
        rate_place = {} if rate is None else {"eta": rate}
        bounds_results.append((rate_place, rate_bounds, rate_optima))
    bounds_of_models = [rate_bounds for _, rate_bounds, _ in bounds_results]
    linear_error, described = bounds_of_models[0].linear, describe(request.problem)
    if len(rate_rows) > 1:
        described["eta"] = request.grids["eta"].tolist()
    document: dict[str, Any] = {"problem": {"theory": "srf"} | described}
    document |= {"bounds": rate_rows, "linear": linear_error}

    def bounds_figure() -> Any:
        if len(rate_rows) > 1:
            return plot_bounds(rate_rows, linear_error, request.alpha, described=described).figure
        return plot_functions(bounds_of_models[0]).figure

    def print_bounds() -> None:
        output.table(rate_rows, [name for name in rate_rows[0] if rate_rows[0][name] is not None])
        answer(f"best linear predictor of the inputs, not of these features: {linear_error:.7g}")
        note_theory(models[0])

    output.write(document, print_bounds, figure=bounds_figure, rows=rate_rows)
    for bound_note in notes_of_bounds(bounds_results, request.theory):
        say(f"note: {bound_note}")
    return all(rate_bounds.converged for rate_bounds in bounds_of_models)


@command(
    without=(
        *("alpha0", "alpha", "theory", "loss", "steps", "reuse", "dimension", *SRF_FIELDS),
        # not covered by the theory of reused samples
        *("inputs", "separation", "step_target", "step_noise", "decay", "intercept", "train_bias"),
    ),
)
def plan(
    options: Options,
    output: Output,
    *,
    budget: Annotated[str, typer.Option(help="All samples over the input dimension, N/d.")],
    parts: Annotated[
        str, typer.Option(help="Shares of them that are tried for a layer: 0.25,0.5,0.75.")
    ] = "0.5",
    time_limit: TimeLimit = observables.SECONDS_A_USE,
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
    searched_options = [name for name in SEARCHED if options.get(name) == BEST]
    needed_options = ("rate" if "rate" in options else "eta", "lam")
    # what a problem file has of these plays no part; any number of samples of the step will do
    plan_options = {"theory": "network", "alpha0": 1.0, "reuse": 0.0, "loss": "square"}
    request = parse_request(options | plan_options, needed_options, searched_options)
    planned_model = request.single_model()
    with printing.progress("uses of the samples") as advance:
        plan_allocation = observables.sample_allocation(
            planned_model,
            budget=single_number("budget", parse_grid("budget", budget)),
            beta=planned_model.beta,
            lam=BEST if "lam" in searched_options else single_number("lam", request.lam),
            eta=BEST if "eta" in searched_options else None,
            parts=parse_grid("parts", parts).tolist(),
            time_limit=time_limit,
            progress=advance,
        )
    document = plan_allocation.document()
    plan_rows = document["points"]

    def print_plan() -> None:
        output.table(plan_rows, [name for name in plan_rows[0] if name != "at_edge"])
        unsolved = [row["use"] for row in plan_rows if row["test_error"] is None]
        if len(unsolved) < len(plan_rows):
            of_solved = f" of those that were solved; not solved: {', '.join(unsolved)}"
            answer(f"Best in the limit: {plan_allocation.best.use}{of_solved * bool(unsolved)}.")

    output.write(document, print_plan, figure=lambda: plan_allocation.plot().figure, rows=plan_rows)
    note_edges(plan_rows)
    for plan_note in plan_allocation.notes:
        say(f"note: {printing.with_options(plan_note)}")
    return plan_allocation.converged
