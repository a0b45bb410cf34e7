"""Labels of given features as numbers: real ones, vectors, or classes of any names."""

from typing import Any

import numpy as np

from solvers.results import Array

from ..errors import InvalidArgument
from ..problem import any_array, finite_array

MOST_CLASSES = 20  # that whole numbers are taken for


def as_numbers(labels: Any, classes: Any = None) -> tuple[Array, Any]:
    """Real labels as they are, (N,) or (N, C); two classes as -1 and +1, more as (N, C) of 0 and 1;
    and the classes, if these are more than two.

    >>> as_numbers([True, False])[0].tolist(), as_numbers(["cat", "dog"])[0].tolist()
    ([1.0, -1.0], [-1.0, 1.0])
    >>> as_numbers([2, 0, 1])
    (array([[0., 0., 1.],
           [1., 0., 0.],
           [0., 1., 0.]]), (0, 1, 2))
    """
    named = None if classes is None else _names(classes)
    array = any_array("labels", labels)
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    if array.ndim == 2:  # real vectors
        array = finite_array("labels", labels, 2)
        one_hot = np.isin(array, [0, 1]).all() and (array.sum(axis=1) == 1).all()
        if named is not None and not (one_hot and array.sum(axis=0).all()):
            allowed = (
                "left out unless labels (N, C) are 1 of a class and 0 of others, each with rows"
            )
            raise InvalidArgument("classes", classes, allowed)
        if named is not None and len(named) != array.shape[1]:
            raise InvalidArgument("classes", classes, f"{array.shape[1]} names")
        return array, None if named is None else tuple(named.tolist())
    if array.ndim != 1 or np.ma.is_masked(labels) or array.dtype.kind not in "biufUSO":
        return finite_array("labels", labels, 1), None
    if array.dtype.kind in "USO":
        each = np.ravel(np.array(labels, dtype=object)).tolist()
        if not all(isinstance(one, str) for one in each):  # numbers as objects, or a label lacks
            return as_numbers(finite_array("labels", each, 1), classes)
        array = np.array(each)
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
        return finite_array("labels", array, 1), None
    elif len(found) > MOST_CLASSES:
        raise InvalidArgument(
            "labels",
            f"{len(found)} names or whole numbers, from {found[0]} to {found[-1]}",
            f"of at most {MOST_CLASSES} values (classes=np.unique(labels) says that these are "
            "classes, labels.astype(float) that they are numbers)",
        )
    if len(found) == 2:
        return np.where(array == found[1], 1.0, -1.0), None
    if len(found) > 2:
        return np.asarray(array[:, None] == found, float), tuple(found.tolist())
    return finite_array("labels", array, 1), None


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
