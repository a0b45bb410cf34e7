"""``replica readout``: the errors of a readout of a given first layer, or of given features."""

import logging
from collections.abc import Callable
from typing import Annotated, Any

import numpy as np
import typer

from solvers.resources import TIME_LIMIT

from .. import observables
from ..errors import InvalidArgument
from ..given import FeatureSample, has_classes
from ..plotting import class_names, plot_curve
from . import printing
from .command_runner import DATASETS, Interrupted, TimeLimit, Tolerance, command
from .given import OF_FEATURES, OF_LAYERS, READOUT_OPTIONS, parse_given
from .notes import print_notes
from .option_table import BEST, Options
from .printing import Output, progress


def one_error(text: str) -> float:
    """The error as typed, one number."""
    try:
        return float(text.removesuffix("%")) / (100 if text.endswith("%") else 1)
    except ValueError:
        allowed_error = f"one valid number such as 0.05 or 5%, not {text}"
        allowed_error += " (run the command once for each)" * ("," in text)
        raise typer.BadParameter(allowed_error) from None


Reach = Annotated[
    Any,
    typer.Option(
        parser=one_error,
        metavar="ERROR",
        help="An error such as 0.05 or 5%, in the place of --samples: how many samples it needs.  "
        "Of classes that of the classification, else the test error.  low and high are the numbers "
        "for the error less and plus two standard errors over test rows, as the band of --plot.",
    ),
]

Most = Annotated[
    float | None,
    typer.Option(
        help="With --reach: the largest number of samples tried (the rows of --features, or 100 "
        "a neuron).  Beyond the rows features are Gaussian in each class, of 3 rows a feature."
    ),
]

Confusion = Annotated[
    bool,
    typer.Option(
        "--confusion",
        help="Show the confusion matrix of classes, at one --samples and one --lam or the best; "
        "--plot draws it, and --out FILE.json has it.",
    ),
]


@command(offered=(*OF_LAYERS, *OF_FEATURES, *READOUT_OPTIONS), files=DATASETS)
def readout(
    options: Options,
    output: Output,
    *,
    quadrature_tol: Tolerance = None,
    time_limit: TimeLimit = TIME_LIMIT,
    reach: Reach = None,
    most: Most = None,
    confusion: Confusion = False,
) -> bool:
    """Errors of the readout of a first layer that you trained, or of features.

    Fresh samples train it: none that the first layer was trained on.  test_error is
    E (E[y|x] - output)^2, from the mean label (of features: from their labels; of classes: from the
    label of the component itself, Bayes noise included); train_error the mean squared residual of
    the training labels.  --lam best is the penalty of the smallest test
    error at every number of samples.

    In Python: replica.FirstLayer, replica.FeatureSample, replica.learning_curve and, for --reach,
    replica.samples_needed.

    Examples
    --------
    replica readout --weights W.npy --bias b.npy --student relu --target "z1 + z1*z2"
    --directions D.npy --samples 100:3000:12:log --lam 0.1 --plot readout.png

    replica readout --features F.npy --labels y.npy --intercept --samples 50,100,200
    --lam 0.01,0.1 --loss logistic

    replica readout --features F.npy --labels y.npy --intercept --reach 0.05 --lam 0.1

    replica readout --features F.npy --labels digits.npy --intercept --samples 500 --lam 0.1
    --confusion --plot confusion.png
    """
    if reach is not None:
        typed_options = {"quadrature_tol": quadrature_tol is not None, "confusion": confusion}
        for option_name in filter(typed_options.get, typed_options):
            raise InvalidArgument(option_name, None, "left out with --reach")
        return _reach(options, output, reach, most, time_limit)
    if most is not None:
        raise InvalidArgument("most", most, "given with --reach ERROR alone")
    return answer_readout(
        options, output, confusion=confusion, quadrature_tol=quadrature_tol, time_limit=time_limit
    )


def answer_readout(
    options: Options,
    output: Output,
    *,
    figure: Callable[[Any, Any], Any] = lambda model, dataset: plot_curve(dataset),
    confusion: bool = False,
    quadrature_tol: float | None = None,
    time_limit: float,
) -> bool:
    """Errors at the samples and penalties, or the best of these, that the options describe; whether
    all are known.  The ``figure`` takes the model and the data set."""
    model, typed_points, loss, columns_taken = parse_given(options, best=True)
    asks_best = isinstance(typed_points["lam"], str)
    is_one_point = all(np.size(values) == 1 for values in typed_points.values())
    if confusion and not has_classes(model):
        raise InvalidArgument("confusion", None, "of labels that are classes, or -1 and 1")
    if confusion and not is_one_point:
        raise InvalidArgument(
            "confusion", None, "used with one --samples and one --lam, or --lam best"
        )
    solve_options: dict[str, Any] = {"quadrature_tol": quadrature_tol, "time_limit": time_limit}
    with progress("points") as advance:
        search = solve_options | {"progress": advance, "partial_results": True}  # at Ctrl-C
        if asks_best:
            readout_grid = observables.at_best(model, ["lam"], typed_points, {}, loss, **search)
        else:
            readout_grid = observables.solve_grid(model, **typed_points, loss=loss, **search)
    fits_interrupted = ""
    try:
        dataset = readout_grid.dataset()
    except KeyboardInterrupt:  # all errors are known
        dataset = readout_grid.dataset(fits=False)
        fits_interrupted = "the errors are not set beside fits"
    for curve_note in observables.notes_on(model, dataset):
        logging.getLogger(__name__).warning(curve_note)
    output, interrupted_text = output.of_solved(dataset.status.values)
    interrupted_text = interrupted_text or fits_interrupted
    document_axes = {str(name): dataset[name].values for name in dataset.test_error.dims}
    document_columns = {str(name): x.values.ravel() for name, x in dataset.data_vars.items()}
    document: dict[str, Any] = {
        "problem": dataset.attrs | model.described | ({"lam": BEST} if asks_best else {}),
        "points": printing.rows_of(document_axes, document_columns),
    }
    point: Any = None
    if confusion and dataset.converged.all():
        point_options = {name: dataset[name].values.item() for name in typed_points}
        point, _ = observables.solve_layer(model, **point_options, loss=loss, **solve_options)
        if point.converged and point.confusion is not None:
            answer_names = class_names(point.model)
            class_shares = [dict(zip(answer_names, row, strict=True)) for row in point.confusion]
            document["confusion"] = dict(zip(answer_names, class_shares, strict=True))

    printed_columns = [*typed_points, *printing.errors_first(dataset, loss)]

    def print_readout() -> None:
        output.table(document["points"], printed_columns)
        confusion_rows = [
            {"of class": name} | {answer: f"{100 * share:.1f}" for answer, share in row.items()}
            for name, row in document.get("confusion", {}).items()
        ]
        if confusion_rows:
            printing.answer("\nAnswers in percent, a row for each class:")
            output.table(confusion_rows, [*confusion_rows[0]])

    def draw_readout() -> Any:
        return (point.plot_confusion() if point else figure(model, dataset)).figure

    paper_columns = [*printed_columns, "note"]
    paper = [{name: row.get(name, "") for name in paper_columns} for row in document["points"]]
    output.write(document, print_readout, figure=draw_readout, paper=paper, dataset=dataset.squeeze)
    if interrupted_text:
        raise Interrupted(f"interrupted; {interrupted_text}")
    if columns_taken:
        printing.say(f"note: {columns_taken}")
    if point and output.out and output.out.suffix.lower() != ".json":
        printing.say(f"note: {output.out} has the errors: --out FILE.json has --confusion, too")
    if isinstance(model, FeatureSample) and model.of_two:
        printing.say(f"note: classes {model.of_two}")
    notes_edges = not isinstance(model, FeatureSample)  # of which a note of the curve says so
    print_notes(document["points"], edges=notes_edges, time_limit=time_limit)
    return bool(dataset.converged.all())


def _reach(options: Options, output: Output, reach: float, most: Any, time_limit: float) -> bool:
    """Print the number of samples that an error needs; returns whether that is known."""
    model, points, loss, columns_taken = parse_given(options, reach=True, best=True)
    typed_lam = points["lam"] if isinstance(points["lam"], str) else points["lam"].tolist()
    if len(typed_lam) > 1 and typed_lam != BEST:
        raise InvalidArgument("lam", options["lam"], "one number with --reach, or best")
    of_classes = has_classes(model)
    error = "classification_error" if of_classes else "test_error"
    observables.wanted_error("reach", reach, model if of_classes else None)
    penalty: dict[str, Any] = {"lam": typed_lam if typed_lam == BEST else typed_lam[0]}
    with progress("numbers of samples") as advance:
        reach_search: dict[str, Any] = {error: reach, "time_limit": time_limit, "progress": advance}
        needed = observables.samples_needed(model, loss=loss, most=most, **penalty, **reach_search)
    # a first layer, and strata, have no standard errors
    band_columns = ["low", "high"] if f"{error}_stderr" in needed.curve else []
    needed_columns = ["samples", *band_columns, *["beyond_rows"] * isinstance(model, FeatureSample)]
    needed_row = {error: reach, "lam": needed.lam}
    needed_row |= {name: getattr(needed, name) for name in needed_columns}
    of_band = {"low_and_high": observables.BAND_TEXT} if band_columns else {}
    points_row = needed_row | of_band | {"note": needed.note}
    searched = {"lam": BEST} if typed_lam == BEST else {}
    document: dict[str, Any] = {"problem": model.described | searched, "points": [points_row]}
    needed_text = f"lam {needed.lam:.4g}, " if np.isfinite(needed.lam) else ""
    needed_text += f"samples {needed._facts()['samples']}"

    def print_needed() -> None:
        if np.isnan(needed.samples):
            printing.answer(needed_text)
        else:
            output.table(document["points"], list(needed_row))
            if band_columns:
                printing.say(f"note: low and high are {observables.BAND_TEXT}")

    output.write(document, print_needed, figure=lambda: needed.plot().figure)
    if columns_taken:
        printing.say(f"note: {columns_taken}")
    if needed.note:
        printing.say(f"note: {printing.with_options(needed.note)}")
    return bool(np.isfinite(needed.samples))
