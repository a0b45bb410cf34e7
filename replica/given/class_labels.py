"""Labels of given features as numbers: real ones, vectors, or classes of any names."""

from typing import Any

import numpy as np

from solvers.results import Array

from ..errors import InvalidArgument
from ..problem import any_array, finite_array

MOST_CLASSES = 20  # that whole numbers are taken for
NUMBERS = "classes=() if they are numbers"


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
    numbers = isinstance(classes, tuple) and not classes
    named = None if classes is None or numbers else _names(classes)
    array = _without_gaps(labels)
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    if array.ndim == 2:  # real vectors
        array = finite_array("labels", array, 2)
        one_hot = np.isin(array, [0, 1]).all() and (array.sum(axis=1) == 1).all()
        if one_hot and classes is None:
            allowed = f"given with classes=range({array.shape[1]}) if a 1 tells the class, or with "
            raise InvalidArgument("labels", "0 and one 1 in each row", f"{allowed}{NUMBERS}")
        if named is not None and not (one_hot and array.sum(axis=0).all()):
            allowed = (
                "left out unless labels (N, C) are 1 of a class and 0 of others, each with rows"
            )
            raise InvalidArgument("classes", classes, allowed)
        if named is not None and len(named) != array.shape[1]:
            raise InvalidArgument("classes", classes, f"{array.shape[1]} names")
        return array, classes if named is None else tuple(named.tolist())
    if array.ndim != 1 or array.dtype.kind not in "biufUS" or numbers:
        return finite_array("labels", array, 1), classes
    found = np.unique(array)
    if named is not None:
        alike = array.dtype.kind == named.dtype.kind or {array.dtype.kind, named.dtype.kind} <= {
            *"iu"
        }
        if not alike or not np.array_equal(np.sort(named), found):
            allowed = "those of the labels, each once and of their type (left out they are found)"
            raise InvalidArgument("classes", classes, allowed)
        found = named
    elif array.dtype.kind == "f" and found.tolist() != [0, 1]:
        few = 2 <= len(found) <= MOST_CLASSES and found.tolist() != [-1, 1]
        if few and (found == np.rint(found)).all():
            got = f"{len(found)} whole numbers of type float, from {found[0]:g} to {found[-1]:g}"
            allowed = f"labels.astype(int) if they are classes, or given with {NUMBERS}"
            raise InvalidArgument("labels", got, allowed)
        return finite_array("labels", array, 1), None
    elif len(found) < 2:
        raise InvalidArgument("labels", f"{found[0]} in all rows", "of two classes or more")
    elif len(found) > MOST_CLASSES:
        raise InvalidArgument(
            "labels",
            f"{len(found)} names or whole numbers, from {found[0]} to {found[-1]}",
            f"of at most {MOST_CLASSES} values (classes=np.unique(labels) says that these are "
            "classes, classes=() that they are numbers)",
        )
    if len(found) == 2:
        return np.where(array == found[1], 1.0, -1.0), None
    return np.asarray(array[:, None] == found, float), tuple(found.tolist())


def _without_gaps(labels: Any) -> Array:
    """The labels as an array, numbers or text; refused is the first row that has no label."""
    array = any_array("labels", labels)
    if np.ma.is_masked(labels) or not (array.ndim and array.size):
        return finite_array("labels", labels, max(array.ndim, 1))
    if array.dtype.kind in "USO":
        each = np.ravel(np.array(labels, dtype=object))
        if not all(isinstance(one, str) for one in each):
            lacking = [one is None or one != one for one in each]
            _refuse_first(lacking, each)
            if any(isinstance(one, str) for one in each):
                raise InvalidArgument("labels", labels, "all text or all numbers")
        array = np.array(each.tolist()).reshape(np.shape(array))
    elif array.dtype.kind == "f":
        _refuse_first(~np.isfinite(array), array)
    return array


def _refuse_first(lacking: Any, each: Array) -> None:
    """Refuse the first row that is ``lacking``, an array along its rows."""
    rows = np.flatnonzero(np.reshape(lacking, (len(each), -1)).any(axis=1))
    if rows.size:
        got = f"{each[rows[0]]} in row {rows[0]}, the first of {rows.size} such rows"
        raise InvalidArgument(
            "labels", got, "text or finite numbers: leave out rows without a label"
        )


def _names(classes: Any) -> Array:
    """Names of classes, all text or all whole numbers, each once."""
    try:
        each = [] if np.ma.is_masked(classes) else list(classes)
        named = np.array(each)
    except (TypeError, ValueError):
        each, named = [], np.empty(0)
    text = all(isinstance(one, str) for one in each)
    if (
        named.ndim != 1
        or not (text or named.dtype.kind in "biu")
        or len({*each}) < max(len(each), 2)
    ):
        raise InvalidArgument("classes", classes, "names or whole numbers, two or more, each once")
    return named
