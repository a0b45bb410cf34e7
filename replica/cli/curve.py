"""``replica curve``: test and training errors on a grid."""

from collections.abc import Callable
from dataclasses import asdict
from typing import Annotated, Any

import typer

from solvers.resources import TIME_LIMIT

from .. import observables
from ..plotting import plot_curve
from ..steps import after_each_step
from . import printing
from .command_runner import DATASETS, Interrupted, TimeLimit, Tolerance, command
from .notes import Notes, note_theory, notes_of_curve, print_notes
from .option_table import BEST, SEARCHED, SRF_FIELDS, Options, one_or_axis
from .options import parse_request
from .printing import Output

Workers = Annotated[int, typer.Option(help="Processes among which the points are divided.")]


@command(files=DATASETS)
def curve(
    options: Options,
    output: Output,
    *,
    workers: Workers = 1,
    quadrature_tol: Tolerance = None,
    time_limit: TimeLimit = TIME_LIMIT,
    notes: Notes = False,
) -> bool:
    """Test and training error on a grid of any parameters.

    test_error is E (E[y|x] - output)^2, from the mean label of an input: with flip:q of labels
    that is (1 - 2 q) times the sign, and of classes: the label of the component itself, Bayes noise
    included.  train_error is the mean squared residual of training labels.  The figure of --plot
    has them along the longest grid, a line for every value of the others; of two grids of 12 values
    or more it is a heat map.  Every point has the best penalty or learning rate with --lam best,
    --eta best, or both.

    In Python: replica.learning_curve, whose .to_dataframe() is for pandas, and replica.solve.

    Examples
    --------
    replica curve --student tanh --target sin --alpha0 20 --eta 3 --alpha 0.2:3:15 --lam 0.1
    --plot curve.png

    replica curve --student relu --target "abs(z1)" --alpha0 3 --eta 0:5:21 --beta 0.5,1,2 --alpha 2
    --lam 0.1 --out curve.nc
    """
    limits: dict[str, Any] = {"workers": workers, "time_limit": time_limit}
    return answer_curve(options, output, quadrature_tol=quadrature_tol, notes=notes, **limits)


def answer_curve(
    options: Options,
    output: Output,
    *,
    figure: Callable[[Any, Any], Any] = lambda problem, dataset: plot_curve(dataset),
    notes: bool,
    **limits: Any,
) -> bool:
    """Errors on the grid that the options describe, at the best of what they search; whether all
    are known.  The ``figure`` takes a model and the data set."""
    searched = [name for name in SEARCHED if options.get(name) == BEST]
    request = parse_request(options, searched=searched)
    problem, grids = request.problem, dict(request.grids)
    if problem.schedule and grids["beta"].size == 1:  # no axis: the model has it, as in Python
        problem = problem.model_at(beta=float(grids.pop("beta")[0]))
    typed_grids = {name: one_or_axis(values) for name, values in grids.items()}
    point_axes = {"alpha": one_or_axis(request.alpha), "lam": one_or_axis(request.lam)}
    with printing.progress("points") as advance:
        solve_options: dict[str, Any] = {"loss": request.loss, "progress": advance}
        solve_options |= {"partial_results": True} | limits  # at Ctrl-C
        if searched:
            grid = observables.at_best(problem, searched, point_axes, typed_grids, **solve_options)
        else:
            grid = observables.solve_grid(problem, **point_axes, grids=typed_grids, **solve_options)
    printed_axes = [*_shown_axes(grid), *searched]
    output, interrupted_text = output.of_solved(grid.columns["status"])
    sentences: list[str] = []
    shift = 0.0
    if not interrupted_text:
        try:
            note_options = {"theory": request.theory, "asked": notes} | limits
            grid, sentences, shift = notes_of_curve(grid, printed_axes, searched, **note_options)
        except KeyboardInterrupt:
            interrupted_text = "all points are solved, and their notes are not"
    document = curve_document(grid)
    document["problem"] |= dict.fromkeys(searched, BEST)

    def print_curve() -> None:
        printed_columns = printing.errors_first(grid.columns, request.loss)
        output.table(document["points"], [*printed_axes, *printed_columns])
        note_theory(grid.models[0])

    def dataset() -> Any:
        limit_attrs = {"limit": f"d → ∞ (at d = 1000 up to {shift:+.0%})"}
        is_far = abs(shift) > observables.NOTED_SHIFT
        return grid.dataset().assign_attrs(limit_attrs if is_far else {})

    def draw_curve() -> Any:
        return figure(grid.models[0], dataset()).figure

    output.write(document, print_curve, figure=draw_curve, printed=printed_axes, dataset=dataset)
    if interrupted_text:
        raise Interrupted(f"interrupted; {interrupted_text}")
    time_limit = limits["time_limit"]
    print_notes(document["points"], sentences, problem=grid.problem, time_limit=time_limit)
    return grid.converged


def _shown_axes(grid: observables.Grid) -> list[str]:
    """Axes to show: alpha, lam, and model fields with more than one value."""
    return [name for name, axis in grid.axes.items() if name in ("alpha", "lam") or axis.size > 1]


def curve_document(grid: observables.Grid) -> dict[str, Any]:
    """The JSON document of ``curve``."""
    document_columns: dict[str, Any] = dict(grid.columns)
    srf = {name: [getattr(model, name) for model in grid.models] for name in SRF_FIELDS}
    if "eta" in document_columns:  # every point has its own
        srf = {name: [None] for name in srf}
    elif len(grid.models) > 1:
        points_per_model = len(grid.columns["status"]) // len(grid.models)
        document_columns |= {
            name: [value for value in srf[name] for _ in range(points_per_model)] for name in srf
        }
    problem_settings = {"theory": "srf"} | grid.constants
    problem_settings |= {
        name: axis[0] if axis.size == 1 else axis
        for name, axis in grid.axes.items()
        if name not in ("alpha", "lam")
    }
    document = {
        "problem": problem_settings,
        "srf": {name: values[0] if len(values) == 1 else None for name, values in srf.items()},
        "points": printing.rows_of(
            {name: grid.axes[name] for name in _shown_axes(grid)}, document_columns
        ),
    }
    typed_step = grid.problem.step
    if typed_step is not None and len(typed_step.schedule) > 1 and len(grid.models) == 1:
        document["steps"] = [asdict(step_rows) for step_rows in after_each_step(typed_step)]
    return document
