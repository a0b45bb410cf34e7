"""``replica curve``: test and training errors on a grid; and the commands of what is best:
``replica optimum``, the best ridge penalty, learning rate, or both; ``replica bounds``, on the
error at the best penalty, at each learning rate; ``replica plan``, how to spend samples on the two
layers.
"""

from collections.abc import Callable
from dataclasses import asdict
from typing import Annotated, Any

import numpy as np
import typer

from solvers.resources import TIME_LIMIT, deadline

from .. import observables
from ..errors import InvalidArgument
from ..plotting import plot_bounds, plot_curve, plot_functions, plot_optima
from ..problem import describe
from ..steps import after_each_step
from . import printing
from .common import DATASETS, TimeLimit, command
from .given import asks_for_given
from .option_table import (
    BEST,
    COMMANDS_OF_BEST,
    HELP,
    SRF_FIELDS,
    Options,
    one_or_axis,
    parse_grid,
    single_number,
)
from .options import parse_request
from .printing import Notes, Output, answer, note_edges, say
from .readout import answer_readout

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

    The ``figure`` takes a model and the data set.  Where the best is searched a finite-size shift
    above NOTED_SHIFT is noted without ``notes``, too.
    """
    searched = [name for name in COMMANDS_OF_BEST if options.get(name) == BEST]
    request = parse_request(options, searched=searched)
    problem, grids = request.problem, dict(request.grids)
    if problem.schedule and grids["beta"].size == 1:  # no axis: the model has it, as in Python
        problem = problem.model_at(beta=float(grids.pop("beta")[0]))
    on_axes = {name: one_or_axis(values) for name, values in grids.items()}
    point_axes = {"alpha": one_or_axis(request.alpha), "lam": one_or_axis(request.lam)}
    noted = [*printing.NOTED] if notes else ["finite_size_shift"] * bool(searched)
    with printing.progress("points") as advance:
        if searched:
            search: dict[str, Any] = {"loss": request.loss, "noted": noted, "progress": advance}
            grid = observables.at_best(problem, searched, point_axes, on_axes, **search, **limits)
            assert isinstance(grid, observables.Grid)
        else:
            search = {"loss": request.loss, "progress": advance}
            grid = observables.solve_grid(problem, **point_axes, grids=on_axes, **search, **limits)
            grid = grid.with_changes(**limits) if notes else grid
    document, shown_axes = curve_document(grid), [*_shown_axes(grid), *searched]

    def show() -> None:
        columns = printing.errors_first(grid.columns, request.loss)
        output.table(document["points"], [*shown_axes, *columns])
        printing.note_theory(grid.models[0])

    def dataset() -> Any:
        shifts = grid.columns.get("finite_size_shift", np.zeros(1))
        shift = shifts[printing.farthest(shifts)]
        attrs = {"limit": f"d → ∞ (at d = 1000 up to {shift:+.0%})"}
        return grid.dataset().assign_attrs(attrs if abs(shift) > observables.NOTED_SHIFT else {})

    def drawn() -> Any:
        return figure(grid.models[0], dataset()).figure

    output.write(document, show, figure=drawn, printed=shown_axes, dataset=dataset)
    if noted and any(grid.columns["converged"]):
        error, least_change = observables.headline_error(grid.models[0]), observables.NOTED_SHIFT
        least_change = 0.0 if notes else least_change
        printing.note_farthest(document["points"], shown_axes, error, least_change, searched)
    for sentence in _size_notes(grid) if notes else []:
        printing.say(f"note: {sentence}")
    printing.note_edges(grid.columns.get("at_edge", ()))
    printing.note_worse_than_zero(grid.problem, grid.columns["test_error"].tolist())
    printing.warn_of_failures(document["points"])
    return grid.converged


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
        answer_options: dict[str, Any] = {"figure": _figure, "time_limit": time_limit}
        return answer_readout(options | {"lam": BEST}, output, **answer_options)
    of_rates = "alpha0" in options and options.get("eta", BEST) == BEST and "rate" not in options
    if not of_rates:
        _refuse_penalty(options, "left out, or given with a step without --eta or --rate")
    searched_options = {"lam": BEST} | options | ({"eta": BEST} if of_rates else {})
    answer_options = {"figure": _figure, "notes": notes, "time_limit": time_limit}
    return answer_curve(searched_options, output, workers=workers, **answer_options)


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
    lam_1.  All are limits d -> inf: at small steps (eta below about 1) networks of ordinary size
    are far above them, see the note of replica curve.  In Python: replica.bounds.

    Examples
    --------
    replica bounds --student tanh --target sin --alpha0 20 --eta 0.1:30:40:log --plot bounds.png

    replica bounds --student relu --target "z1 + z1*z2" --alpha0 5 --eta 2 --alpha 1,4
    """
    request = parse_request(options, required=())
    request.refuse_grids(allowed=("eta",))
    models = observables.models_on_grid(request.problem, request.grids)
    rates = request.grids.get("eta", [getattr(request.problem.step, "eta", None)])
    bounds_of_models = [observables.bounds(model, time_limit=time_limit) for model in models]
    rows = []
    for rate, model, rate_bounds in zip(rates, models, bounds_of_models, strict=True):
        bound_names = ("lower", "upper", "converged")
        bound_row = {"eta": rate} | {name: getattr(rate_bounds, name) for name in bound_names}
        for alpha in request.alpha:
            best = observables.optimal_lambda(model, alpha=alpha, time_limit=time_limit)
            bound_row |= {f"achieved_{alpha:g}": best.test_error, f"lam_{alpha:g}": best.lam}
        rows.append(bound_row)
    linear_error, described = bounds_of_models[0].linear, describe(request.problem)
    if len(rows) > 1:
        described["eta"] = request.grids["eta"].tolist()
    document: dict[str, Any] = {"problem": described, "bounds": rows, "linear": linear_error}

    def figure() -> Any:
        if len(rows) > 1:
            return plot_bounds(rows, linear_error, request.alpha, described=described).figure
        return plot_functions(bounds_of_models[0]).figure

    def show() -> None:
        output.table(rows, [name for name in rows[0] if rows[0][name] is not None])
        answer(f"best linear predictor of the inputs, not of these features: {linear_error:.7g}")
        printing.note_theory(models[0])

    output.write(document, show, figure=figure, rows=rows)
    return all(rate_bounds.converged for rate_bounds in bounds_of_models)


@command(
    without=(
        *("alpha0", "alpha", "theory", "loss", "steps", "reuse", "dimension", *SRF_FIELDS),
        # not covered by the theory of reused samples
        *("inputs", "separation", "step_target", "step_noise", "decay", "intercept", "train_bias"),
    )
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
    allocation = observables.sample_allocation(
        model,
        budget=single_number("budget", parse_grid("budget", budget)),
        beta=model.beta,
        lam=BEST if "lam" in searched else single_number("lam", request.lam),
        eta=BEST if "eta" in searched else None,
        parts=parse_grid("parts", parts).tolist(),
        time_limit=time_limit,
    )
    document = allocation.document()
    plan_rows = document["points"]

    def show() -> None:
        output.table(plan_rows, [name for name in plan_rows[0] if name != "at_edge"])
        answer(f"Best: {allocation.best.use}.")

    output.write(document, show, figure=lambda: allocation.plot().figure, rows=plan_rows)
    note_edges([use_plan.at_edge for use_plan in allocation.plans])
    for note in allocation.notes:
        say(f"note: {note}")
    return allocation.converged
