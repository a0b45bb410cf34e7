"""What a function does, as a digest of its content: of its code and of all that it refers to.

Python code is taken as it is compiled, so comments do not matter; with it go constants, defaults,
the closure and the module-level names it mentions, each by its own content.  numpy, scipy, the
standard library and this one go by name.  Compiled code of others has no content to be seen.
"""

import builtins
import dis
import functools
import hashlib
import inspect
import sys
import types
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np
import scipy.special

from replica.errors import InvalidArgument

LIBRARIES = {"numpy", "scipy", "solvers", "replica", "validation", *sys.stdlib_module_names}
MOST = 20_000  # objects that one function may refer to, directly or not
# Of a user's class: what says nothing of what it does, or repeats it.
BOOKKEEPING = {
    "__dict__", "__weakref__", "__module__", "__doc__", "__annotations__", "__dataclass_fields__",
    "__dataclass_params__", "__match_args__", "__slots__", "__abstractmethods__", "_abc_impl",
    "__firstlineno__", "__static_attributes__", "__qualname__", "__orig_bases__", "__parameters__",
}  # fmt: skip


class Opaque(TypeError):
    """Something whose content cannot be seen."""


def digest(value: Any, key: str | None = None) -> str:
    """SHA-256 of the content of ``value``, in hexadecimal.

    Parameters
    ----------
    value : object
    key : str, optional
        What stands for content that cannot be seen.

    Raises
    ------
    InvalidArgument
        If there is such content and no key.

    Examples
    --------
    >>> digest(lambda x: np.clip(x, -7, 7)) == digest(lambda x: np.clip(x, -7, 20))
    False
    >>> digest(lambda x: np.tanh(x)) == digest(lambda x: np.tanh(x))  # a comment
    True
    """
    try:
        return _Digests(key).of(value)
    except (Opaque, RecursionError) as error:
        if key is not None:  # of something too deep to be gone through
            return hashlib.sha256(key.encode()).hexdigest()
        raise InvalidArgument(
            "key",
            None,
            f"given with a store, as the content of a function of this problem cannot be seen "
            f"({error}): any text, another one whenever what it computes has changed",
        ) from None


class _Digests:
    """The digests of a value and of all that it refers to, each made once."""

    def __init__(self, key: str | None) -> None:
        self.key = key
        self.known: dict[int, tuple[str, Any]] = {}  # with the object, whose id would be used again

    def of(self, value: Any) -> str:
        """The digest of ``value``; inside itself it is a number."""
        if id(value) not in self.known:
            if len(self.known) > MOST:
                raise Opaque(f"it refers to more than {MOST} objects")
            self.known[id(value)] = f"inside {len(self.known)}", value
            try:
                parts = "\n".join(self.parts(value))
            except Opaque:
                if self.key is None:
                    raise
                parts = f"{type(value).__qualname__}, as {self.key}"
            self.known[id(value)] = hashlib.sha256(parts.encode()).hexdigest(), value
        return self.known[id(value)][0]

    def all(self, *values: Any) -> Iterator[str]:
        """The digests of several values."""
        return map(self.of, values)

    def parts(self, value: Any) -> Iterator[str]:
        """Lines that say what ``value`` is."""
        kind = type(value)
        if isinstance(value, float):
            yield float(value).hex()
            return
        yield f"{kind.__module__}.{kind.__qualname__}"
        if value is None or kind in (bool, int, str, bytes, complex, type(...)):
            yield repr(value)
        elif kind in (tuple, list):
            yield from self.all(*value)
        elif kind is dict:
            yield from self.all(*value, *value.values())
        elif kind in (set, frozenset):
            yield from sorted(self.all(*value))
        elif isinstance(value, np.ndarray) and not value.dtype.hasobject:
            yield f"{value.dtype.str} {value.shape}"
            yield hashlib.sha256(np.ascontiguousarray(value).tobytes()).hexdigest()
        elif isinstance(value, types.FunctionType):
            yield from self.function(value)
        elif isinstance(value, types.CodeType):
            yield from self.code(value)
        elif isinstance(value, type):
            yield from self.defined(value)
        elif isinstance(value, types.ModuleType):
            yield value.__name__
        elif is_dataclass(value):
            yield from self.all(kind, *(getattr(value, field.name) for field in fields(value)))
        else:
            yield from self.wrapped(value)

    def function(self, value: types.FunctionType) -> Iterator[str]:
        """A function written in Python."""
        home = value.__globals__.get("__name__", "")  # no decorator changes that
        cells = [] if value.__closure__ is None else list(value.__closure__)
        yield from self.all(*(_content(cell) for cell in cells))
        yield from self.all(value.__defaults__, value.__kwdefaults__)
        if _is_library(home):
            name = value.__code__.co_qualname
            yield f"{home}.{name}"
            if "<" in name:  # a lambda, or made inside another: not the only one of its name
                yield self.of(value.__code__)
            return
        yield self.of(value.__code__)
        everything = _names(value.__code__)
        for name in sorted(_names(value.__code__, "LOAD_GLOBAL", "LOAD_NAME")):
            known = value.__globals__.get(name, getattr(builtins, name, None))
            yield name
            yield from self.mentioned(known, everything)
        for name in sorted(_names(value.__code__, "IMPORT_NAME")):
            yield from self.mentioned(sys.modules.get(name), everything)

    def mentioned(self, value: Any, names: set[str]) -> Iterator[str]:
        """A module-level name of a function that mentions ``names``: of a user's module, those."""
        if not isinstance(value, types.ModuleType) or _is_library(value.__name__):
            yield self.of(value)
            return
        yield value.__name__
        for name in sorted(names & vars(value).keys()):
            yield name
            yield from self.mentioned(vars(value)[name], names - {name})

    def code(self, value: types.CodeType) -> Iterator[str]:
        """Compiled code, without the lines it came from."""
        yield f"{value.co_argcount} {value.co_posonlyargcount} {value.co_kwonlyargcount}"
        yield f"{value.co_flags}"
        yield from self.all(value.co_code, value.co_consts, value.co_names, value.co_varnames)
        yield from self.all(value.co_freevars, value.co_cellvars, value.co_exceptiontable)

    def defined(self, value: type) -> Iterator[str]:
        """A class."""
        yield f"{value.__module__}.{value.__qualname__}"
        if not _is_library(value.__module__):
            yield from self.all(*value.__bases__)
            own = {name: of for name, of in vars(value).items() if name not in BOOKKEEPING}
            yield from self.all(own)

    def wrapped(self, value: Any) -> Iterator[str]:
        """Whatever has another function, or its state, inside."""
        if isinstance(value, np.ufunc):
            if value not in (getattr(m, value.__name__, None) for m in (np, scipy.special)):
                raise Opaque(f"{value.__name__} is a ufunc made elsewhere")
            yield value.__name__
        elif isinstance(value, types.MethodType):
            yield from self.all(value.__func__, value.__self__)
        elif isinstance(value, functools.partial):
            yield from self.all(value.func, value.args, value.keywords)
        elif isinstance(value, np.vectorize):
            yield from self.all(value.pyfunc, value.otypes, value.signature)
        elif isinstance(value, np.random.RandomState):
            return  # that of scipy's laws, which are not drawn from
        elif isinstance(value, property):
            yield from self.all(value.fget)
        elif isinstance(value, functools.cached_property):
            yield from self.all(value.func)
        elif isinstance(value, (staticmethod, classmethod)):
            yield from self.all(value.__func__)
        elif hasattr(value, "py_func"):  # compiled by numba
            yield from self.all(value.py_func, getattr(value, "targetoptions", None))
        elif hasattr(value, "__wrapped__"):
            yield from self.all(value.__wrapped__)
        elif inspect.isroutine(value) or inspect.isdatadescriptor(value):
            yield from self.named(value)
        else:
            yield from self.state(value)

    def named(self, value: Any) -> Iterator[str]:
        """A function or an attribute that is compiled, of a library."""
        owner = getattr(value, "__objclass__", None) or getattr(value, "__self__", None)
        home = getattr(value, "__module__", None) or ""
        yield getattr(value, "__qualname__", value.__name__)
        if owner is not None and not isinstance(owner, types.ModuleType):
            yield self.of(owner)
        elif _is_library(home):
            yield home
        else:
            raise Opaque(f"{value.__name__} is compiled")

    def state(self, value: Any) -> Iterator[str]:
        """Any other object, as it would be pickled."""
        if isinstance(value, (np.random.Generator, np.random.BitGenerator)):
            raise Opaque("it draws random numbers")
        try:
            reduced = value.__reduce_ex__(4)
        except Exception as error:  # of any kind: what has no state says so in its own way
            raise Opaque(f"{type(value).__name__}: {error}") from None
        if isinstance(reduced, str):
            if not _is_library(getattr(value, "__module__", None) or ""):
                raise Opaque(f"{reduced} is known by its name alone")
            yield reduced
            return
        make, arguments, *rest = reduced
        yield from self.all(make, arguments)
        for part in rest:
            if isinstance(part, Iterator):
                yield from self.all(*part)
            elif isinstance(part, dict):
                own = {name: of for name, of in part.items() if not _is_cached(value, name)}
                yield self.of(own or None)  # None where nothing was ever set
            else:
                yield self.of(part)


def _is_library(module: str) -> bool:
    """Whether a module is known by its name."""
    return module.partition(".")[0] in LIBRARIES


def _is_cached(value: Any, name: str) -> bool:
    """Whether an attribute was computed from the others."""
    return isinstance(inspect.getattr_static(type(value), name, None), functools.cached_property)


def _content(cell: types.CellType) -> Any:
    """What a variable of a closure holds; nothing before it is set."""
    try:
        return cell.cell_contents
    except ValueError:
        return None


def _codes(code: types.CodeType) -> Iterator[types.CodeType]:
    """The code, and that of functions defined inside."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _codes(constant)


def _names(code: types.CodeType, *operations: str) -> set[str]:
    """Names that code mentions: all, or those of some operations of the interpreter."""
    if not operations:
        return {name for own in _codes(code) for name in own.co_names}
    steps = (step for own in _codes(code) for step in dis.get_instructions(own))
    return {step.argval for step in steps if step.opname in operations}
