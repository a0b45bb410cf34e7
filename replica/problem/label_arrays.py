"""Labels of given features as numbers: real ones, vectors, or classes of any names."""

from contextlib import suppress
from typing import Any

import numpy as np

from solvers.results import Array

from ..errors import InvalidArgument
from .checks import any_array, finite_array

MOST_CLASSES = 20  # that whole numbers are taken for
NUMBERS = "classes=() if they are numbers"
OF_ONE = "says that they name one"


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
    array = without_gaps("labels", labels)
    array = array[:, 0] if array.ndim == 2 and array.shape[1] == 1 else array
    numbers, vectors = isinstance(classes, tuple) and not classes, array.ndim == 2
    named = None if classes is None or numbers else _names(classes)
    if numbers or vectors or array.ndim != 1 or array.dtype.kind not in "biufUS":
        array = finite_array("labels", array, 1 + vectors)
        one_hot = vectors and np.isin(array, [0, 1]).all() and (array.sum(axis=1) == 1).all()
        if named is None and not (one_hot and classes is None):
            return array, classes
        if named is None:
            allowed = f"given with classes=range({array.shape[1]}) if a 1 tells the class, or with "
            raise InvalidArgument("labels", "0 and one 1 in each row", f"{allowed}{NUMBERS}")
        if not (one_hot and array.any(axis=0).all()):
            allowed = (
                "left out unless labels (N, C) are 1 of a class and 0 of others, each with rows"
            )
            raise InvalidArgument("classes", classes, allowed)
        if len(named) != array.shape[1]:
            raise InvalidArgument("classes", classes, f"{array.shape[1]} names")
        return array, tuple(named.tolist())
    found = np.unique(array)
    if named is None and array.dtype.kind == "U":  # astype(str) makes text of what is missing
        text = np.isin(array, ["None", "nan"])
        _refuse_first("labels", text, array, f" (classes=np.unique(labels) {OF_ONE})")
    count = len(found)
    if named is not None:
        kinds = {array.dtype.kind, named.dtype.kind}
        if (len(kinds) > 1 and kinds != {*"iu"}) or not np.array_equal(np.sort(named), found):
            allowed = "those of the labels, each once and of their type (left out they are found)"
            raise InvalidArgument("classes", classes, allowed)
        found = named
    elif array.dtype.kind == "f" and found.tolist() != [0, 1]:
        few = 2 <= count <= MOST_CLASSES and found.tolist() != [-1, 1]
        if few and (found == np.rint(found)).all():
            got = f"{count} whole numbers of type float, from {found[0]:g} to {found[-1]:g}"
            allowed = f"labels.astype(int) if they are classes, or given with {NUMBERS}"
            raise InvalidArgument("labels", got, allowed)
        return finite_array("labels", array, 1), None
    elif (
        2 < count <= MOST_CLASSES
        and array.dtype.kind == "i"
        and found[0] == -1
        and (found[1:] >= 0).all()
    ):
        got = f"-1 in {(array < 0).sum()} rows, beside {count - 1} classes from {found[1]} on"
        allowed = "without -1, the code of a missing class: leave out these rows "
        raise InvalidArgument("labels", got, f"{allowed}(classes=np.unique(labels) {OF_ONE})")
    elif count < 2:
        raise InvalidArgument("labels", f"{found[0]} in all rows", "of two classes or more")
    elif count > MOST_CLASSES:
        allowed = f"of at most {MOST_CLASSES} values (classes=np.unique(labels) says that these "
        allowed += "are classes, classes=() that they are numbers)"
        got = f"{count} names or whole numbers, from {found[0]} to {found[-1]}"
        raise InvalidArgument("labels", got, allowed)
    if count == 2:
        return np.where(array == found[1], 1.0, -1.0), None
    return np.asarray(array[:, None] == found, float), tuple(found.tolist())


def without_gaps(name: str, values: Any) -> Array:
    """``values``, one a row, as an array of numbers or text; refused is the first row that has
    none."""
    array = any_array(name, values)
    if np.ma.is_masked(values) or not (array.ndim and array.size):
        return finite_array(name, values, max(array.ndim, 1))
    each, plain = array, array.dtype.kind not in "USO"
    if not plain:  # numpy makes text of what is missing
        each = np.array(values, dtype=object).reshape(array.shape)
    lacking = ~np.isfinite(each) if each.dtype.kind in "fc" else each != each
    if not plain:
        lacking |= np.array([one is None for one in each.flat]).reshape(each.shape)
    _refuse_first(name, lacking, each)
    array = array if plain else np.array(each.tolist())
    if array.dtype.kind == "O" or len({isinstance(one, str) for one in each.flat}) > 1:
        raise InvalidArgument(name, values, "all text or all numbers")
    return array


def _refuse_first(name: str, lacking: Array, each: Array, unless: str = "") -> None:
    """Refuse the first row that is ``lacking``, an array along its rows."""
    rows = np.flatnonzero(lacking.reshape(len(each), -1).any(axis=1))
    if rows.size:
        got = f"{each[rows[0]]} in row {rows[0]}, the first of {rows.size} such rows"
        allowed = f"text or finite numbers: leave out rows without {name}{unless}"
        raise InvalidArgument(name, got, allowed)


def _names(classes: Any) -> Array:
    """Names of classes, all text or all whole numbers, each once."""
    with suppress(TypeError, ValueError):
        each = [] if np.ma.is_masked(classes) else list(classes)
        named, kinds = np.array(each), {type(one) for one in each}
        plain = named.dtype.kind in "biu" or kinds <= {str, np.str_}
        if named.ndim == 1 and plain and len({*each}) == len(each) > 1:
            return named
    raise InvalidArgument("classes", classes, "names or whole numbers, two or more, each once")
