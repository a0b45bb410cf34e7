"""A given layer or given features from options: files of weights, of features, labels, classes."""

import re
import shlex
from ast import literal_eval
from contextlib import suppress
from functools import partial
from os.path import realpath
from typing import Any

import numpy as np

from ..convex import Loss, loss
from ..errors import InvalidArgument
from ..files import file_and_name, read_array
from ..given import FeatureSample, FirstLayer, has_classes
from ..problem import asked, check_points, positive
from .option_table import (
    BEST,
    HELP,
    LARGEST_DOCUMENT,
    MATRIX,
    NUMBERS,
    Options,
    parse_grid,
    parse_law,
    read_mixture,
    single_number,
)
from .options import with_kinks

OF_LAYERS = (
    "weights", "bias", "student", "target", "kinks", "directions", "inputs", "noise", "label_noise",
    "alpha",
)  # fmt: skip
OF_FEATURES = ("features", "labels", "strata", "classes")
READOUT_OPTIONS = ("samples", "lam", "loss", "intercept")
# Arrays that each file may hold, once read as float64.
COLUMN_OR_MATRIX = MATRIX._replace(axes=(1, 2))
WANTED = {
    "weights": MATRIX, "bias": COLUMN_OR_MATRIX, "directions": COLUMN_OR_MATRIX,
    "labels": COLUMN_OR_MATRIX._replace(kinds="biufU"), "strata": NUMBERS._replace(kinds="biufU"),
    "features": MATRIX,
}  # fmt: skip


def asks_for_given(options: Options) -> bool:
    """True if the options describe a first layer or features in the place of a problem."""
    return any(name in options for name in ("weights", *OF_FEATURES))


def parse_given(
    options: Options, reach: bool = False, best: bool = False
) -> tuple[FirstLayer | FeatureSample, dict[str, Any], Loss, str]:
    """The layer or the features; the points, "samples" or "alpha" and "lam", (n,) each, or "lam"
    alone where a number of samples is to ``reach`` an error, or "best" of "lam" where that may be
    asked for; the loss; and which columns of tables were taken, empty of other files.

    What is missing, contradictory or out of range is refused, and so is an array of another shape,
    before it is read.
    """
    if not asks_for_given(options):
        raise InvalidArgument("weights", None, "given, or --features with --labels")
    is_layer = "features" not in options
    if "labels" in options and not {"weights", "features"} & {*options}:
        raise InvalidArgument("features", None, "given with --labels")
    given_option, layer_options = ("weights", OF_LAYERS) if is_layer else ("features", OF_FEATURES)
    for name, typed_value in options.items():
        if name not in (*layer_options, *READOUT_OPTIONS):
            hint = ": the penalty is --lam, alpha/p" if name == "alpha" and not is_layer else ""
            raise InvalidArgument(name, typed_value, f"left out with --{given_option}{hint}")
    needed_options = ["student", "target"] if is_layer else ["labels"]
    if is_layer and not str(options.get("target")).startswith("classes"):
        needed_options.append("directions")
    for name in (*needed_options, "lam"):
        if name not in options:
            raise InvalidArgument(name, None, f"given: {HELP[name]}")
    typed_points, minimised = _typed_points(options, reach, best), loss(options.get("loss"))
    values = {name: options[name] for name in layer_options if name in options and name != "alpha"}
    if "noise" in values:
        values["noise"] = single_number("noise", parse_grid("noise", values["noise"]))
    if "kinks" in values:
        del values["kinks"]
        values |= with_kinks(options)
    readers: dict[str, Any] = {
        name: partial(read_array, name, wanted=wanted) for name, wanted in WANTED.items()
    }
    if not is_layer:  # columns of the same table are no features
        table, *others = (file_and_name(values[one]) for one in OF_FEATURES[:3] if one in values)
        table_columns = [column for file, column in others if realpath(file) == realpath(table[0])]
        readers["features"] = partial(readers["features"], without=table_columns)
    for name, read_option in (readers | {"bias": _bias, "inputs": read_mixture}).items():
        if name in values:
            values[name] = read_option(values[name])
    label_columns = _column_names(values.get("labels"))
    if "classes" in values:
        values |= _named_labels(values["labels"], values["classes"])
    values["intercept"] = options.get("intercept", False)
    try:
        model = FirstLayer(**values) if is_layer else FeatureSample(**values)
    except InvalidArgument as error:
        option_sentence = _as_options(error.allowed, str(options.get("features")), label_columns)
        raise InvalidArgument(error.name, error.value, option_sentence) from None
    if "samples" in typed_points:  # fractions of rows are refused with their number
        typed_points["samples"] = np.unique(np.rint(asked(model, None, typed_points["samples"])[1]))
    return model, typed_points, minimised, _columns_taken(model, label_columns)


def _column_names(table: Any) -> list[str]:
    """Names of the columns of a table, or of one column; empty of an array."""
    column_names = [table.name] if getattr(table, "ndim", 0) == 1 and hasattr(table, "name") else []
    return [str(name) for name in getattr(table, "columns", column_names)]


def _columns_taken(model: FirstLayer | FeatureSample, label_columns: list[str]) -> str:
    """Sentence on the columns that are features and labels of a sample; empty without tables, but
    for labels of several columns of numbers."""
    has_outputs = model.outputs > 1 and not has_classes(model)
    if isinstance(model, FirstLayer) or not (model.columns or label_columns or has_outputs):
        return ""

    def listed(names: list[str]) -> str:
        return ", ".join(names) if len(names) <= 3 else f"{names[0]} ... {names[-1]}"

    names = [str(name) for name in model.columns]
    label_kind = f"{model.outputs} outputs" if has_outputs else "numbers"
    label_kind = f"{max(2, model.outputs)} classes" if has_classes(model) else label_kind
    features = f"{model.width} column{'s' * (model.width > 1)}" + f", {listed(names)}" * bool(names)
    column_word = f"column{'s' * (len(label_columns) > 1)}"
    label_text = f"{column_word} {listed(label_columns)}, " * bool(label_columns)
    return f"features: {features}; labels: {label_text}{label_kind}"


def _as_options(sentence: str, features: str, label_columns: list[str]) -> str:
    """Sentence on the arguments of Python, in the words of the command line, for the file of
    ``features`` and labels of these columns of a table."""
    class_arguments = r"np.unique\(labels\)|range\(\d+\)|list\(labels\)"
    sentence = re.sub(rf"classes=({class_arguments})", "--classes all", sentence)
    sentence = sentence.replace("labels.astype(int)", "given with --classes all")
    sentence = sentence.replace("classes=()", "--classes none").replace("classes=", "--classes ")
    if label_columns:
        dropna_call = f"pandas.read_csv(...).dropna(subset={label_columns})"
        known_test = r"(numpy.isfinite|pandas.notna)\(labels\) is True in the others"
        sentence = re.sub(known_test, lambda _: dropna_call, sentence)
    feature_file, columns = file_and_name(features)
    drop_call = re.search(r"\.drop\(columns=(\[.*\])\)", sentence)
    if drop_call and (not columns or columns.startswith("without=")):
        left_out = ",".join([*filter(None, [columns]), *map(str, literal_eval(drop_call[1]))])
        of_others = shlex.quote(f"{feature_file}:{left_out if columns else f'without={left_out}'}")
        sentence = sentence.replace(drop_call[0], f"--features {of_others}")
    of_arrays = r"\b(features|labels|strata|weights|directions)([.[)]| !=)"
    if re.search(rf"{of_arrays}|\.drop(na)?\(", sentence):
        sentence += ", in Python, before the file is written"
    return sentence


def _named_labels(labels: Any, classes: Any) -> dict[str, Any]:
    """Labels and the names of their classes, of the labels' kind, text or whole numbers, as far as
    they can be; "all" of the labels as they are found, "none" of numbers."""
    labels = labels[:, 0] if labels.shape[1:] == (1,) else labels
    if labels.ndim == 1 and labels.dtype.kind == "f" and (labels == np.rint(labels)).all():
        labels = labels.astype(int)
    if classes == "none":
        return {"labels": labels, "classes": ()}
    if classes == "all" and labels.ndim == 2:  # a column for each
        return {"labels": labels, "classes": _column_names(labels) or range(labels.shape[1])}
    if classes == "all":
        if labels.dtype.kind == "f" and np.isfinite(labels).all():  # gaps are refused there
            raise InvalidArgument("classes", classes, "left out of labels that are real numbers")
        return {"labels": labels, "classes": np.unique(labels)}
    typed_names = (
        [name.strip() for name in classes.split(",")] if isinstance(classes, str) else classes
    )
    with suppress(ValueError, TypeError):  # no list, or text that is no number: refused there
        name_texts = [str(name) for name in typed_names]
        is_text = labels.ndim == 2 or labels.dtype.kind in "UO"
        truth_values = {"True": 1, "False": 0}
        typed_names = name_texts if is_text else [int(truth_values.get(x, x)) for x in name_texts]
    return {"labels": labels, "classes": typed_names}


def _typed_points(options: Options, reach: bool, best: bool) -> dict[str, Any]:
    """The values of samples, as typed, or of alpha, and of lam, "best" where that may be asked for;
    none of the first two to ``reach`` an error."""
    typed_options = [name for name in ("alpha", "samples") if name in options]
    if reach and typed_options:
        raise InvalidArgument(typed_options[0], options[typed_options[0]], "left out with --reach")
    if len(typed_options) == 2:
        raise InvalidArgument("alpha", options["alpha"], "left out with --samples: it is n/d")
    if not (reach or typed_options):
        raise InvalidArgument("samples", None, "given: the readout's samples n, such as 100")
    asks_best = best and options["lam"] == BEST
    grid_options = typed_options if asks_best else [*typed_options, "lam"]
    points: dict[str, Any] = {one: parse_grid(one, options[one]) for one in grid_options}
    points |= {one: positive(one, axis) for one, axis in points.items() if one != "samples"}
    axis_sizes = (axis.size for axis in points.values())
    check_points("all options together", axis_sizes, LARGEST_DOCUMENT)
    return points | ({"lam": BEST} if asks_best else {})


def _bias(value: Any) -> Any:
    """The biases as typed: a number, or a file of them; or numbers of a problem file."""
    value = parse_law(value)
    return read_array("bias", value, WANTED["bias"]) if isinstance(value, str) else value
