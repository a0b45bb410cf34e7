"""Labels of given features as numbers: real ones, vectors, or classes of any names."""

from contextlib import suppress
from typing import Any

import numpy as np

from solvers.results import Array

from ..errors import InvalidArgument, shorten
from .checks import any_array, conversion, finite_array

MOST_CLASSES = 20  # that whole numbers are taken for
CLASSES_NONE = "classes=() if they are numbers"
UNLESS_CLASSES = "(classes=np.unique(labels) says that they name one)"
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
    y = without_gaps("labels", labels, classes is None)
    y = y[:, 0] if y.ndim == 2 and y.shape[1] == 1 else y
    are_numbers, are_vectors = isinstance(classes, tuple) and not classes, y.ndim > 1
    class_names = None if classes is None or are_numbers else _class_names(classes)
    if are_numbers or are_vectors or y.dtype.kind not in "biufUS":
        y = finite_array("labels", y + 0 if y.dtype.kind == "b" else y, 1 + are_vectors)
        row_sums = y.reshape(len(y), -1).sum(axis=1)
        odd = np.flatnonzero(row_sums != 1)
        # a few rows of another sum are mistakes
        one_hot = are_vectors and np.isin(y, [0, 1]).all() and 2 * odd.size < len(y)
        if are_numbers or not (one_hot or class_names is not None):
            return _varying_labels(y), classes
        if class_names is None or (one_hot and odd.size):
            class_hint = "list(labels)" if hasattr(labels, "columns") else f"range({y.shape[1]})"
            hint = f"given with classes={class_hint} if one 1 in each row"
            got = f"{row_sums[odd[0]]:g} ones in row {odd[0]}" if odd.size else "one 1 in each row"
            raise InvalidArgument("labels", got, f"{hint} tells the class, or with {CLASSES_NONE}")
        if not (one_hot and y.any(axis=0).all()):
            allowed = "left out unless labels (N, C) are 1 of a class and 0 of others, each with "
            allowed += "rows (labels[:, labels.any(axis=0)] has such columns)"
            raise InvalidArgument("classes", classes, allowed)
        if len(class_names) != y.shape[1]:
            raise InvalidArgument("classes", classes, f"{y.shape[1]} names")
        return y, tuple(class_names.tolist())
    names = np.unique(y)
    class_count = len(names)
    if class_names is not None:
        dtype_kinds = {y.dtype.kind, class_names.dtype.kind}
        if dtype_kinds in ({*"fi"}, {*"fu"}) and (names == np.rint(names)).all():
            allowed = "whole numbers of the labels' type: labels.astype(int) are classes"
            raise InvalidArgument("classes", classes, allowed)
        if (len(dtype_kinds) > 1 and dtype_kinds != {*"iu"}) or not np.array_equal(
            np.sort(class_names), names
        ):
            # of two types nothing is in both
            same_type = len(dtype_kinds) == 1 or dtype_kinds == {*"iu"}
            other = ", ".join(map(str, np.setxor1d(class_names, names)[:3])) if same_type else ""
            unlike = f"; not in both: {other}" if other else f": {', '.join(map(str, names[:20]))}"
            allowed = "those of the labels, each once and of their type (left out they are found"
            allowed += f"{unlike})"
            raise InvalidArgument("classes", classes, allowed)
        names = class_names
    elif y.dtype.kind == "f" and names.tolist() != [0, 1]:
        has_few_labels = 2 <= class_count <= MOST_CLASSES and names.tolist() != [-1, 1]
        if has_few_labels and (names == np.rint(names)).all():
            got = f"{class_count} whole numbers of type float, from {names[0]:g} to {names[-1]:g}"
            allowed = f"labels.astype(int) if they are classes, or given with {CLASSES_NONE}"
            raise InvalidArgument("labels", got, allowed)
        return _varying_labels(finite_array("labels", y, 1)), None
    elif 2 < class_count <= MOST_CLASSES and y.dtype.kind == "i" and names[0] == -1 < names[1]:
        got = f"-1 in {(y < 0).sum()} rows, beside {class_count - 1} classes from {names[1]} on"
        allowed = "without -1, the code of a missing class: leave out these rows, "
        allowed += "features[keep] and numpy.array(labels)[keep] for keep = "
        allowed += f"numpy.array(labels) >= 0 {UNLESS_CLASSES}"
        raise InvalidArgument("labels", got, allowed)
    elif class_count < 2:
        raise InvalidArgument("labels", f"{names[0]} in all rows", "of two classes or more")
    elif class_count > MOST_CLASSES:
        allowed = f"of at most {MOST_CLASSES} values (classes=np.unique(labels) says that these "
        allowed += "are classes, classes=() that they are numbers)"
        got = f"{class_count} names or whole numbers, from {names[0]} to {names[-1]}"
        raise InvalidArgument("labels", got, allowed)
    if class_count == 2:
        return np.where(y == names[1], 1.0, -1.0), None
    return np.asarray(y[:, None] == names, float), tuple(names.tolist())


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
    label_shape_rows = row_array.shape if name == "strata" else row_array.shape[:1]
    if label_shape_rows != shape[:1] or not row_array.size:
        got, count = (f"shape {row_array.shape}", len(row_array)) if row_array.ndim else (values, 0)
        if isinstance(values, str) and values in getattr(features, "columns", ()):
            hint = f" (features[{values!r}], of features.drop(columns={values!r}))"
        elif not row_array.ndim:
            hint = conversion(name, values, row_array)
        elif row_array.shape == shape[1:]:
            hint = " (they are (N, p): take features.T)"
        elif row_array.shape[1:] == shape[:1]:
            hint = f" (take {name}.T)"
        else:
            fewer_rows = f"{name}[:{shape[0]}]" if count > shape[0] else f"features[:{count}]"
            hint = f" (take {fewer_rows} if the first rows belong together)" * (row_array.size > 0)
        raise InvalidArgument(name, got, f"one for each of the {shape[0]} rows of features{hint}")
    indices: Any = [getattr(one, "index", None) for one in (features, values)]
    # that of a list is a method; pandas takes missing entries for equal
    if all(np.ndim(index) == 1 for index in indices) and not (
        hasattr(indices[0], "equals") and indices[0].equals(indices[1])
    ):
        order, row_order = ([*index] for index in indices)
        same = {*row_order} == {*order}
        # a range, as pandas makes of no index, does not say which rows they are
        named = same or not any(hasattr(index, "step") for index in indices)
        if len({*order}) == len(order) and row_order != order and named:
            allowed = "in the order of the rows of features: "
            allowed += f"{name}.loc[features.index] if the index says which row is whose, " * same
            allowed += f"numpy.array({name}) if they are in that order already"
            got = "the same index in another order" if same else "the index of other rows"
            raise InvalidArgument(name, got, allowed)
    return row_array


def without_gaps(name: str, values: Any, text_too: bool = False) -> Array:
    """``values``, one a row, as an array of numbers or text; refused is the first row that has
    none, or on request the text of none."""
    if is_masked := np.ma.is_masked(values):
        values = np.where(np.ma.getmask(values), None, values)
    label_array = any_array(name, values)
    each, is_missing = label_array, np.array(False)
    if label_array.dtype.kind in "fcmM":
        is_missing = ~np.isfinite(label_array)
    elif label_array.dtype.kind in "USO":  # numpy makes text of what is missing
        each = np.array(values, dtype=object).reshape(label_array.shape)
        is_text = np.vectorize(lambda entry: isinstance(entry, str), otypes=[bool])(each)
        missing_text = np.vectorize(lambda entry: str(entry) in MISSING, otypes=[bool])(each)
        is_missing = missing_text & (text_too | ~is_text)
    if is_missing.any():
        gap_rows = np.flatnonzero(is_missing.reshape(len(label_array), -1).any(axis=1))
        row = gap_rows[0]
        gap = f"{str(each[row]) or 'no text'} in row {row}, the first of {gap_rows.size} such rows"
        keep_code, unless = f"pandas.notna({name})", ""
        if is_masked:
            keep_code = f"~numpy.ma.getmaskarray({name})"
        elif each is label_array and not hasattr(getattr(values, "dtype", 0), "na_value"):
            keep_code = f"numpy.isfinite({name})"
        elif isinstance(each[row], str):
            keep_code, unless = f"numpy.array({name}) != {str(each[row])!r}", f" {UNLESS_CLASSES}"
        allowed = f"text or finite numbers: leave out rows without {name}, "
        keep_code = f"({keep_code}).all(axis=1)" if label_array.ndim > 1 else keep_code
        allowed += f"features[keep] and numpy.array({name})[keep] for keep = {keep_code}{unless}"
        raise InvalidArgument(name, gap, allowed)
    if each is not label_array:
        if is_text.any() and each.shape[1:] not in ((), (1,)):
            allowed = f"one name a row: numpy.asarray({name})[:, 0], say"
            raise InvalidArgument(name, f"shape {each.shape}", allowed)
        with suppress(ValueError):  # of lists of several lengths
            label_array = np.array(each.tolist())
        other = np.unravel_index((is_text != is_text.flat[0]).argmax(), is_text.shape)
        if label_array.dtype.kind == "O" or any(other):
            gap = f"{each[other]!r} in row {other[0]}" + f", and {each.flat[0]!r}" * any(other)
            allowed = f"all text or all numbers: [str(one) for one in {name}] is text"
            allowed += f", numpy.array({name}, dtype=float) numbers" * (not is_text.any())
            raise InvalidArgument(name, gap, allowed)
    return label_array


def _class_names(classes: Any) -> Array:
    """Names of classes, all text or all whole numbers, each once."""
    float_hint = ""
    with suppress(TypeError, ValueError):
        class_list = [] if np.ma.is_masked(classes) else list(classes)
        named, name_types = np.array(class_list), {type(class_name) for class_name in class_list}
        is_plain_name = named.dtype.kind in "biu" or name_types <= {str, np.str_}
        if named.ndim == 1 and is_plain_name and len({*class_list}) == len(class_list) > 1:
            return named
        if named.size and named.dtype.kind == "f" and (named == np.rint(named)).all():
            float_hint = "; labels of type float: leave out classes= and give labels.astype(int)"
    allowed = f"names or whole numbers, two or more, each once{float_hint}"
    raise InvalidArgument("classes", classes, allowed)
