"""Labels of given features as numbers: real ones, vectors, or classes of any names."""

from contextlib import suppress
from typing import Any

import numpy as np

from solvers.results import Array

from ..errors import InvalidArgument, shorten, shorten_list
from ..files import is_number
from .checks import any_array, finite_array

MISSING = "", "nan", "NaN", "NA", "<NA>", "NaT", "None"  # and so is text, unless classes name it


def as_numbers(labels: Any, classes: Any = None) -> tuple[Array, Any]:
    """Real labels as they are, (N,) or (N, C); two classes as -1 and +1, more as (N, C) of 0 and 1;
    and the classes, if these are more than two.  No ``classes``, (), say that labels are numbers.

    >>> as_numbers([True, False])[0].tolist(), as_numbers(["cat", "dog"])[0].tolist()
    ([1.0, -1.0], [-1.0, 1.0])
    >>> as_numbers([2, 0, 1])
    (array([[0., 0., 1.],
           [1., 0., 0.],
           [0., 1., 0.]]), (0, 1, 2))
    """
    most_classes = 20  # that whole numbers are taken for
    y = without_gaps("labels", labels, classes is None)
    y = y[:, 0] if y.ndim == 2 and y.shape[1] == 1 else y
    are_numbers, are_vectors = isinstance(classes, tuple) and not classes, y.ndim > 1
    names = None if classes is None or are_numbers else _class_names(classes)
    if are_numbers or are_vectors or y.dtype.kind not in "biufUS":
        y = finite_array("labels", y + 0 if y.dtype.kind == "b" else y, 1 + are_vectors)
        is_one_hot = are_vectors and np.isin(y, [0, 1]).all() and (y.sum(axis=1) == 1).all()
        if names is not None:
            if not (is_one_hot and y.any(axis=0).all() and len(names) == y.shape[1]):
                allowed = "left out unless labels (N, C) are 1 of a class and 0 of others, with "
                allowed += "rows of each of C classes"
                raise InvalidArgument("classes", classes, allowed)
            return y, tuple(names.tolist())
        if is_one_hot and not are_numbers:
            by_column = "list(labels)" if hasattr(labels, "columns") else f"range({y.shape[1]})"
            raise _ambiguous("one 1 in each row", by_column)
        return _varying_labels(y), classes
    class_values = np.unique(y)
    if names is not None:
        if not np.array_equal(np.sort(names), class_values):
            allowed_classes = f"those of the labels, each once: {shorten_list(class_values)}"
            raise InvalidArgument("classes", classes, allowed_classes)
        if len(names) > max(most_classes, len(y) / 2):
            allowed = "of two rows or more each, on average, where there are more than "
            allowed += f"{most_classes} (classes=() if labels are numbers)"
            raise InvalidArgument("classes", f"{len(names)} classes of {len(y)} rows", allowed)
        class_values = names
    elif y.dtype.kind == "f" and class_values.tolist() != [0, 1]:
        has_few_labels = 2 <= len(class_values) <= most_classes and class_values.tolist() != [-1, 1]
        if has_few_labels and (class_values == np.rint(class_values)).all():
            raise _ambiguous(f"{len(class_values)} whole numbers of type float")
        return _varying_labels(finite_array("labels", y, 1)), None
    elif 2 < len(class_values) <= most_classes and y.dtype.kind == "i" and class_values[0] == -1:
        missing = f"-1, often the code of a missing class, in {(y < 0).sum()} rows"
        way_on = "; or leave out the rows of -1: features[labels != -1], labels[labels != -1]"
        raise _ambiguous(missing, way_on=way_on)
    elif len(class_values) > most_classes:
        not_numbers = np.flatnonzero([not is_number(entry) for entry in y.tolist()])
        if 0 < not_numbers.size < len(y) / 2:
            got = f"{str(y[not_numbers[0]])!r} in row {not_numbers[0]}, the first of "
            allowed = "numbers in every row (pandas.to_numeric(labels, errors='coerce') has NaN in "
            allowed += "the others: leave these out, of the features too), or given with "
            allowed += "classes=np.unique(labels) if they are names"
            raise InvalidArgument("labels", f"{got}{not_numbers.size} such rows", allowed)
        raise _ambiguous(f"{len(class_values)} names or whole numbers, more than {most_classes}")
    if len(class_values) < 2:
        raise InvalidArgument("labels", f"{class_values[0]} in all rows", "of two classes or more")
    if len(class_values) == 2:
        return np.where(y == class_values[1], 1.0, -1.0), None
    return np.asarray(y[:, None] == class_values, float), tuple(class_values.tolist())


def _ambiguous(got: str, names: str = "np.unique(labels)", way_on: str = "") -> InvalidArgument:
    """The error for labels that may be classes and may be numbers; last, another ``way_on``."""
    allowed = f"given with classes={names} if they are classes, or classes=() if they are numbers"
    return InvalidArgument("labels", got, allowed + way_on)


def _varying_labels(labels: Array) -> Array:
    """Real ``labels``, or InvalidArgument where all rows have one value: nothing to learn."""
    if len(labels) > 1 and (labels == labels[0]).all():
        label_text = f"{shorten(str(labels[0]))} in all {len(labels)} rows"
        raise InvalidArgument("labels", label_text, "of more than one value")
    return labels


def one_a_row(name: str, values: Any, shape: tuple[int, ...], features: Any = None) -> Array:
    """Labels or strata as an array, refused unless there is one for each row of features of that
    ``shape``; or if the indices of pandas, or of tables, name other rows, or in another order."""
    row_array = any_array(name, values)
    row_shape = row_array.shape if name == "strata" else row_array.shape[:1]
    if row_shape != shape[:1] or not row_array.size:
        got = f"shape {row_array.shape}" if row_array.ndim else values
        allowed = f"one for each of the {shape[0]} rows of features"
        looks_transposed = name == "labels" and row_shape == shape[1:2]
        allowed += ": features look transposed, give features.T" * looks_transposed
        raise InvalidArgument(name, got, allowed)
    row_indices: Any = [getattr(one, "index", None) for one in (features, values)]
    # that of a list is a method; pandas takes missing entries for equal
    if all(np.ndim(row_index) == 1 for row_index in row_indices) and not (
        hasattr(row_indices[0], "equals") and row_indices[0].equals(row_indices[1])
    ):
        same_rows = {*row_indices[0]} == {*row_indices[1]}
        # a range, as pandas makes of no index, does not say which rows they are
        says_rows = same_rows or not any(hasattr(row_index, "step") for row_index in row_indices)
        if says_rows and [*row_indices[0]] != [*row_indices[1]]:
            allowed_order = "in the order of the rows of features: "
            allowed_order += (
                f"{name}.loc[features.index] if the index says which row is whose, " * same_rows
            )
            allowed_order += f"numpy.array({name}) if they are in that order already"
            got = "the same index in another order" if same_rows else "the index of other rows"
            raise InvalidArgument(name, got, allowed_order)
    return row_array


def without_gaps(name: str, values: Any, text_too: bool = False) -> Array:
    """``values``, one a row, as an array of numbers or text; refused is the first row that has
    none, or on request the text of none."""
    if np.ma.is_masked(values):
        values = np.where(np.ma.getmask(values), None, values)
    label_array = any_array(name, values)
    dtype_kind, is_missing, is_text = label_array.dtype.kind, np.array(False), np.array(False)
    if dtype_kind in "fcmM":
        is_missing = ~np.isfinite(label_array)
    elif dtype_kind in "USO":  # numpy makes text of what is missing
        entries = np.array(values, dtype=object).reshape(label_array.shape)
        is_text = np.vectorize(lambda entry: isinstance(entry, str), otypes=[bool])(entries)
        missing_text = np.vectorize(lambda entry: str(entry) in MISSING, otypes=[bool])(entries)
        is_missing = missing_text & (text_too | ~is_text)
    if is_missing.any():
        gap_rows = np.flatnonzero(is_missing.reshape(len(label_array), -1).any(axis=1))
        gap = f"{label_array[gap_rows[:1]].tolist()[0]!r} in row {gap_rows[0]}, the first of "
        allowed_rows = f"known in every row: leave out rows without {name}, of the features too"
        is_numpy = dtype_kind in "fcmM" and not hasattr(values, "isna")
        known_test = "numpy.isfinite" if is_numpy else "pandas.notna"
        way_on = f"{known_test}({name}) is True in the others"
        if (is_missing & is_text).any():
            way_on = "classes=np.unique(labels) if such text names a class"
        allowed_rows += f" ({way_on})"
        raise InvalidArgument(name, f"{gap}{gap_rows.size} such rows", allowed_rows)
    if dtype_kind in "USO":
        with suppress(ValueError):  # of lists of several lengths
            label_array = np.array(entries.tolist())
        several_names = is_text.any() and entries.shape[1:] not in ((), (1,))
        if label_array.dtype.kind == "O" or several_names or is_text.any() != is_text.all():
            allowed = "all text, one name a row, or all numbers: numpy.array makes these of a list"
            raise InvalidArgument(name, values, allowed)
    return label_array


def _class_names(classes: Any) -> Array:
    """Names of classes, all text or all numbers, each once."""
    with suppress(TypeError, ValueError):
        class_names = np.array([] if np.ma.is_masked(classes) else list(classes))
        each_once = 1 < class_names.size == np.unique(class_names).size
        if each_once and class_names.ndim == 1 and class_names.dtype.kind in "biufUS":
            return class_names
    raise InvalidArgument("classes", classes, "text or numbers, two or more, each once")
