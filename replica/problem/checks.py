"""Checks of numbers, arrays, functions, devices, and which of alpha and samples is given."""

import os
from collections.abc import Callable, Iterable, Sequence
from functools import partial, wraps
from inspect import Parameter, signature
from math import isfinite, prod
from typing import Any, TypeVar, cast

import numpy as np
from numpy.typing import ArrayLike

from solvers.arrays import to_host
from solvers.results import Array

from ..errors import OUR_NAMES, InvalidArgument, check_names, hint, install
from ..files import is_number

Function = TypeVar("Function", bound=Callable[..., Any])

# The largest number that is accepted, and the inverse of the smallest, far beyond any use: their
# powers in the equations, up to the fourth of a rate and of a readout, stay finite.
MAX_NUMBER = 1e30
MEANINGS = {  # of positive numbers
    "alpha": " (n/d)",
    "beta": " (p/d)",
    "budget": " (N/d)",
    "samples": " (n)",
    "lam": ": at 0 the ridge problem has no unique minimiser; take 1e-12 for its limit, or the "
    "smallest that is solved",
}
WORDS = {  # in the place of a number, where they are taken
    "lam": ', or "best" in learning_curve',
    "eta": ', or "best" in learning_curve',
    "alpha0": ', or "alpha" in GradientStep',
}
NO_SAMPLES = "left out of a limit, whose dimension is infinite (give alpha, n/d)"
MAX_COMPUTED = 1e150  # range of numbers computed from them, such as lengths and variances


def assign(frozen_object: Any, **values: Any) -> None:
    """Set fields of a frozen dataclass during its construction."""
    for field_name, field_value in values.items():
        object.__setattr__(frozen_object, field_name, field_value)


def number(
    name: str,
    value: Any,
    low: float = 0.0,
    high: float = MAX_NUMBER,
    allowed: str = "",
    *,
    open_low: bool = False,
    open_high: bool = False,
) -> float:
    """``value`` as a float in [low, high], without open ends; else InvalidArgument.  A positive
    number, and no text of one, unless the message says what else is ``allowed``.

    If ``high`` is ``MAX_NUMBER``, the message adds it to ``allowed``, and a positive number must be
    at least its inverse.
    """
    if is_positive := not allowed:
        allowed, open_low = f"positive{MEANINGS.get(name, '')}", True
    is_text = isinstance(value, str)
    is_several = isinstance(value, (list, tuple)) or bool(getattr(value, "ndim", 0))
    try:
        # float() would drop an imaginary part, make a number of True, and NaN of what is masked
        is_not_real = type(value) is not float and np.iscomplexobj(value)
        if is_not_real or isinstance(value, (bool, np.bool_)) or value is np.ma.masked:
            raise TypeError
        if is_several or (is_text and is_positive):
            raise TypeError
        x = float(value)
    except (TypeError, ValueError, OverflowError, RuntimeError):  # the last of a tensor
        if is_several:
            allowed += "; one number here, as learning_curve takes several"
        elif is_text and is_positive:
            allowed = f"a number{WORDS.get(name, '')}"
        elif value is None and is_positive:
            allowed = f"given, {allowed}"
        raise InvalidArgument(name, value, allowed) from None
    if high == MAX_NUMBER and (x > high or (open_low and low == 0 < x < 1 / high)):
        allowed += f", from {1 / high:g} to {high:g}" if open_low else f", at most {high:g}"
        raise InvalidArgument(name, value, allowed)
    if not low <= x <= high or (open_low and x == low) or (open_high and x == high):  # NaN too
        raise InvalidArgument(name, value, allowed)
    return x


def flag(name: str, value: Any) -> bool:
    """``value`` as a bool; InvalidArgument for other types, such as the text "no"."""
    if not isinstance(value, (bool, np.bool_)):
        raise InvalidArgument(name, value, "True or False")
    return bool(value)


def choice(name: str, value: Any, allowed: Sequence[str]) -> str:
    """``value`` if it is one of the ``allowed`` names; else InvalidArgument."""
    if not isinstance(value, str) or value not in allowed:
        raise InvalidArgument(name, value, " or ".join(allowed) + hint(value, allowed))
    return value


NUMERICAL_OPTIONS: dict[str, Callable[[Any], Any]] = {
    "quadrature_tol": partial(
        number, "quadrature_tol", high=np.inf, allowed="positive (a relative error)", open_low=True
    ),
    "time_limit": partial(
        number, "time_limit", high=np.inf, allowed="a positive number of seconds", open_low=True
    ),
    "raise_on_failure": partial(flag, "raise_on_failure"),
    "notes": partial(flag, "notes"),
}


def check_call(function: Function) -> Function:
    """Decorate a public function: refuse an argument that it does not have, by a TypeError with the
    name that was probably meant, and numerical options out of range.

    If the function has ``**kwargs``, those names alone are refused that other libraries have for
    one of its arguments.
    """
    parameters = signature(function).parameters
    arguments = [name for name, one in parameters.items() if one.kind is not one.VAR_KEYWORD]
    any_name = len(arguments) < len(parameters)
    in_order = [name for name in arguments if parameters[name].kind is not Parameter.KEYWORD_ONLY]
    function_name = function.__qualname__.removesuffix(".__init__")
    lam = parameters.get("lam")
    needs_lam = lam is not None and lam.kind is lam.KEYWORD_ONLY and lam.default is lam.empty

    @wraps(function)
    def checked_function(*args: Any, **given: Any) -> Any:
        if (unknown := given.keys() - arguments) or len(args) > len(in_order):
            foreign = [one for one in unknown if OUR_NAMES.get(one, "").split(",")[0] in arguments]
            check_names(function_name, arguments, foreign if any_name else unknown, args, in_order)
        if needs_lam and "alpha" in given and "lam" not in given:
            lam_advice = "the penalty (scikit-learn's alpha over p); alpha here is n/d"
            raise TypeError(f"{function_name}() needs lam, {lam_advice}, and features take samples")
        for name in NUMERICAL_OPTIONS.keys() & given.keys():
            if given[name] is not getattr(parameters.get(name), "default", None):
                given[name] = NUMERICAL_OPTIONS[name](given[name])
        return function(*args, **given)

    return cast(Function, checked_function)


def check_device(device: str) -> str:
    """``device`` if arrays can be moved there.

    Raises
    ------
    InvalidArgument
        If it is not "cpu", and torch or the device is missing.
    """
    if not isinstance(device, str):
        raise InvalidArgument("device", device, "a name, such as cpu or cuda")
    if device == "cpu":
        return device
    try:
        import torch

        torch.empty(1, device=device)
    except ImportError:
        allowed_devices = f"cpu where torch is not installed ({install('gpu')})"
        raise InvalidArgument("device", device, allowed_devices) from None
    except (RuntimeError, AssertionError) as error:
        allowed_devices = f"cpu or a device that torch has ({str(error).splitlines()[0]})"
        raise InvalidArgument("device", device, allowed_devices) from None
    return device


def real(name: str, function_values: Any) -> Array:
    """Values of the function ``name`` as a new array of floats.

    Complex and masked values raise InvalidArgument, as imaginary part or mask would be lost, and
    those of single precision, too.
    """
    dtype = getattr(function_values, "dtype", type(function_values).__name__)
    is_short = isinstance(dtype, np.dtype) and dtype.kind == "f" and dtype.itemsize < 8
    try:
        if is_short or np.iscomplexobj(function_values) or np.ma.is_masked(function_values):
            raise TypeError
        return np.array(function_values, dtype=float)
    except (TypeError, ValueError):
        got_values = "masked values" if np.ma.is_masked(function_values) else f"{dtype} values"
        allowed_values = "real numbers on the whole line, in double precision (float64)"
        raise InvalidArgument(name, got_values, allowed_values) from None


def called(name: str, function: Callable[..., Any], *arrays: ArrayLike) -> Array:
    """Values of a user's ``function``, ``name`` in messages, at the ``arrays``.

    Arguments and values are copied, as a user's function may change its arguments, or return an
    array that it keeps.  Functions of the library and of numpy do neither.
    """
    function_module = str(getattr(function, "__module__", None))
    is_trusted_function = isinstance(function, np.ufunc) or function_module.startswith("replica.")
    to_float_arrays = np.asarray if is_trusted_function else np.array
    function_values = real(name, function(*(to_float_arrays(x, dtype=float) for x in arrays)))
    values_shape = np.broadcast_shapes(*(np.shape(x) for x in arrays))
    if function_values.shape != values_shape:
        allowed = "elementwise, written with numpy functions, as in function=np.tanh (a "
        allowed += "constant is an array too: 3.0 + 0 * x)"
        raise InvalidArgument(name, f"shape {function_values.shape} of {values_shape}", allowed)
    return function_values


def numbers(name: str, value: Any, low: float, allowed: str, **options: bool) -> Any:
    """``value`` as a float, or as nested tuples of floats, each in range, which are hashable."""
    if isinstance(value, (list, tuple)) or (isinstance(value, np.ndarray) and value.ndim):
        return tuple(numbers(name, number_item, low, allowed, **options) for number_item in value)
    return number(name, value, low, MAX_COMPUTED, allowed, **options)


def axis(name: str, values: ArrayLike) -> Array:
    """``values`` of a parameter as a one-dimensional array with at least one number."""
    try:
        axis_values = np.atleast_1d(_floats(name, values))
    except InvalidArgument:
        axis_values = np.empty(0)
    if axis_values.ndim != 1 or not axis_values.size:
        allowed_word = WORDS.get(name, "") * isinstance(values, str)
        raise InvalidArgument(name, values, f"a number or a one-dimensional sequence{allowed_word}")
    return axis_values


def positive(name: str, values: ArrayLike) -> Array:
    """``values`` of alpha, samples or lam as a one-dimensional array of positive numbers."""
    entries = axis(name, values)
    least_positive = 1.0 if name == "samples" else 1 / MAX_NUMBER
    refused_values = entries[~((entries >= least_positive) & (entries <= MAX_NUMBER))]  # NaN too
    if refused_values.size:
        allowed = f"positive, from {least_positive:g} to {MAX_NUMBER:g}{MEANINGS[name]}"
        raise InvalidArgument(name, float(refused_values[0]), allowed)
    return entries


def plain_array(name: str, values: Any) -> Array:
    """``values`` as an array of numbers up to ``MAX_NUMBER``, of any shape."""
    checked_array = _floats(name, values)
    not_finite_entries = ~(np.abs(checked_array) <= MAX_NUMBER)  # NaN too
    if not_finite_entries.any():
        first_index = tuple(np.argwhere(not_finite_entries)[0].tolist())
        column, leave_out = _columns_at(values, first_index, not_finite_entries.T)
        entry_place = f" at {list(first_index)}{column}, the first of {not_finite_entries.sum()}"
        entry_place, allowed = entry_place if first_index else "", f"finite, up to {MAX_NUMBER:g}"
        if name == "features":
            allowed += f" ({leave_out}{', or ' * bool(leave_out)}keep the rows of "
            allowed += "numpy.isfinite(features).all(axis=1), of labels too)"
        raise InvalidArgument(name, f"{checked_array[first_index]:g}{entry_place}", allowed)
    return checked_array


def _columns_at(table: Any, entry_index: Sequence[int], is_bad: Iterable[Any]) -> tuple[str, str]:
    """Name of the column at the end of an ``entry_index`` of a table, and how to leave out the
    columns that have an entry that ``is_bad``, (p, N); empty of an array."""
    if not (hasattr(table, "columns") and entry_index):
        return "", ""
    column_names = np.asarray(table.columns).tolist()
    bad_columns = [name for name, bad in zip(column_names, is_bad, strict=True) if any(bad)]
    columns_suffix = "s with text or gaps" * (len(bad_columns) > 1)
    leave_out = f"leave out the column{columns_suffix}: .drop(columns={bad_columns})"
    if len(bad_columns) > 10:
        leave_out = f"leave out the {len(bad_columns)} columns with text or gaps"
    return f", column {column_names[entry_index[-1]]!r}", leave_out


def any_array(name: str, values: Any) -> Array:
    """``values``, a tensor or anything like an array, as an array of whatever they are."""
    try:
        return to_host(values)
    except (TypeError, ValueError, OverflowError, RuntimeError):  # the last of a tensor
        allowed_array = "an array of numbers, all rows of one length"
        raise InvalidArgument(name, values, allowed_array) from None


def coarsest(**arrays: Any) -> float:
    """The relative rounding of the numbers of ``arrays``, as they are given: the largest."""
    float_epsilon = {"float32": 2.0**-23, "float16": 2.0**-10, "bfloat16": 2.0**-7}
    dtypes = (getattr(x, "dtype", None) or any_array(name, x).dtype for name, x in arrays.items())
    array_dtype_names = (getattr(dtype, "name", str(dtype)).rpartition(".")[2] for dtype in dtypes)
    return max(float_epsilon.get(name, 2.0**-52) for name in array_dtype_names)


def _floats(name: str, values: Any) -> Array:
    """``values`` as an array of floats of any shape; InvalidArgument if complex or masked."""
    array_given = any_array(name, values)
    try:
        if array_given.dtype.kind in "cmMV" + "b" * (name != "features") or np.ma.is_masked(values):
            raise TypeError
        return np.asarray(array_given, dtype=float)
    except (TypeError, ValueError, OverflowError):
        got, allowed = values, f"an array of numbers, as numpy.array({name}, dtype=float) is"
        if hasattr(values, "toarray"):  # of scipy.sparse
            got, allowed = "a sparse matrix", f"an array of numbers, as {name}.toarray() is"
        elif np.ma.is_masked(values):
            got, allowed = "masked values", "an array without masked values (leave out their rows)"
        elif array_given.ndim and array_given.dtype.kind in "bcmM":
            got = f"dtype {array_given.dtype.name}"
            if array_given.dtype.kind != "b":  # made floats, they lose their meaning
                allowed = "an array of real numbers, not complex ones, dates or times"
        elif array_given.ndim:  # the first entry that is no number
            entries = np.ndenumerate(array_given)
            place, no_number = next(((i, x) for i, x in entries if not is_number(x)), ((), values))
            is_bad = (
                (not (is_number(x) and isfinite(float(x))) for x in entries)
                for entries in array_given.T
            )
            column, leave_out = _columns_at(values, place, is_bad)
            got = f"{str(no_number)!r} at {[*place]}{column}"
            allowed += f" ({leave_out})" * bool(leave_out and name == "features")
        raise InvalidArgument(name, got, allowed) from None


def finite_array(name: str, values: Any, axes: int | None) -> Array:
    """``values`` as array of numbers up to ``MAX_NUMBER`` with ``axes`` axes, 1 or 2 by default."""
    entries = plain_array(name, [] if values is None else values)
    if not entries.size or entries.ndim not in ((1, 2) if axes is None else (axes,)):
        allowed = f"an array with {axes or '1 or 2'} axes and numbers in it"
        raise InvalidArgument(name, None if values is None else f"shape {entries.shape}", allowed)
    return entries


def check_bytes(need: float, name: str, value_text: Any, allowed: str) -> None:
    """Refuse the argument ``name``, for which ``need`` bytes are more than this machine has."""
    if hasattr(os, "sysconf") and need > os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"):
        raise InvalidArgument(name, value_text, allowed)


def unit_vector(name: str, values: Any, size: int) -> Array:
    """The unit vector (size,) along a nonzero vector."""
    checked_vector = plain_array(name, values)
    if checked_vector.shape != (size,) or not checked_vector.any():
        raise InvalidArgument(name, values, f"{size} numbers that are not all 0")
    checked_vector = checked_vector / np.abs(checked_vector).max()  # whose squares may be 0
    return np.asarray(checked_vector / np.linalg.norm(checked_vector))


def check_points(name: str, sizes: Iterable[int], most: int, text: str | None = None) -> None:
    """Raise InvalidArgument for a grid of more than ``most`` points.

    The message describes it by ``text``, or by the ``sizes`` of its axes.
    """
    sizes = tuple(sizes)
    grid_points = prod(sizes)
    if grid_points > most:
        allowed_points = (
            f"of at most {most} points: {grid_points:.3g} would take {4e-6 * grid_points:.2g} GB"
        )
        raise InvalidArgument(name, text or " x ".join(map(str, sizes)), allowed_points)


def check_elementwise(
    argument: str, name: str, function: Callable[..., Array], dimension: int = 1
) -> None:
    """Raise InvalidArgument unless ``function`` acts elementwise on ``dimension`` arrays.

    Otherwise it would fail, or silently broadcast, inside an integral.
    """
    test_arrays = np.linspace(-3.1, 2.9, 12 * dimension).reshape(dimension, 3, 4)
    try:
        with np.errstate(all="ignore"):
            test_values = called(argument, function, *test_arrays)
    except InvalidArgument as error:
        raise InvalidArgument(argument, f"{name} ({error.value})", error.allowed) from None
    except (Exception, SystemExit) as error:  # whatever a user's function raises
        error_text = f"{type(error).__name__}: {error}"
        arrays_text = "an array" if dimension == 1 else f"{dimension} arrays"
        allowed_values = f"applicable to {arrays_text}, as np.maximum(x, 0) is and max(x, 0) is not"
        raise InvalidArgument(argument, f"{name} ({error_text})", allowed_values) from error
    if not (np.abs(test_values) <= MAX_NUMBER).all():  # NaN too
        allowed_values = f"finite on the whole line, up to {MAX_NUMBER:g} (try np.where or np.clip)"
        values_text = "values beyond" if np.isfinite(test_values).all() else "inf or nan"
        raise InvalidArgument(argument, f"{name} ({values_text})", allowed_values)
    check_order(argument, name, partial(called, argument, function), test_arrays, test_values)


def check_order(
    argument: str, name: str, function: Callable[..., Array], x: Array, values: Array
) -> None:
    """Refuse a function whose ``values`` at x (T, ...) change when it is called again, or when
    another point comes first."""
    test_points, values = x.reshape(len(x), -1), values.ravel()
    for k in range(test_points.shape[1]):
        with np.errstate(all="ignore"):
            rolled_values, expected = function(*np.roll(test_points, k, axis=1)), np.roll(values, k)
        if not (np.abs(rolled_values - expected) <= 1e-6 * np.maximum(1, np.abs(expected))).all():
            allowed = "of one value at each point, the same twice, whichever is first in an array"
            allowed += " (np.vectorize takes its kind of number from the first: otypes=[float])"
            raise InvalidArgument(argument, name, allowed)


def asked(model: Any, alpha: Any, samples: Any) -> tuple[str, Any]:
    """Name and value of the one of alpha and samples that is given for a readout.
    Features have no input dimension d, and so no alpha."""
    if not hasattr(model, "dimension") and alpha is not None:
        allowed_alpha = (
            "left out: given features have no dimension d (give samples, n; the penalty is lam, "
            "scikit-learn's alpha/p for p features)"
        )
        raise InvalidArgument("alpha", alpha, allowed_alpha)
    if alpha is not None and samples is not None:
        raise InvalidArgument("samples", samples, "left out where alpha is given: it is alpha d")
    if samples is not None:
        fewest_n, row_count = axis("samples", samples).min(), len(getattr(model, "features", ()))
        if row_count and 0 < fewest_n < 1:
            row_share = f" ({fewest_n:g} of the {row_count} rows are {fewest_n * row_count:.0f})"
            allowed = f"a number of rows, 1 or more{row_share * bool(fewest_n * row_count >= 1)}"
            raise InvalidArgument("samples", float(fewest_n), allowed)
        positive("samples", samples)
        return "samples", samples
    if alpha is None:
        allowed_samples = "given: the number n of the readout's samples"
        raise InvalidArgument("samples", None, allowed_samples)
    return "alpha", alpha


def samples_of(model: Any, name: str, values: Array) -> Array:
    """Numbers of samples n, of alpha = n/d of a layer or of themselves."""
    return values * model.dimension if name == "alpha" else values
