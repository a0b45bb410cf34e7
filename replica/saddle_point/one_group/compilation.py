"""Functions of several files that numba compiles together, and keeps until one of these changes.

numba itself does not see that what a kept function uses has changed in another file: what is kept
has a name here that tells all the sources.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from hashlib import sha256
from inspect import getfile
from io import BytesIO
from pathlib import Path
from types import FunctionType
from typing import Any, TypeVar

Function = TypeVar("Function", bound=Callable[..., Any])
options: dict[Callable[..., Any], dict[str, Any]] = {}  # of numba, for each function


# What is asked of an argument that is None is not compiled: where ``rows`` make a difference, or
# which of ``usual`` and ``several`` is None, they are arguments beside the table that has them.
def compiled(function: Function) -> Function:
    options[function] = {}
    return function


def summed(function: Function) -> Function:
    """Of sums whose terms may be added in any order, which is three times faster."""
    options[function] = {"fastmath": {"reassoc", "contract"}}
    return function


def together(entry: Function, *arguments: type) -> Function:
    """``entry`` compiled with all the functions, and kept on the disk; itself where there is no
    numba.  ``arguments`` are the classes that it is given."""
    try:
        from numba import njit
    except Exception:  # missing, or it refuses a variable of its own
        return entry
    spaces = {function.__module__: dict(function.__globals__) for function in options}
    found = {}
    for function, own in options.items():
        again = FunctionType(function.__code__, spaces[function.__module__], function.__name__)
        found[function] = njit(error_model="numpy", **own)(again)  # 1 / 0 is infinite
    for space in spaces.values():
        for name, value in space.items():
            if isinstance(value, FunctionType):
                space[name] = found.get(value, value)
    if not hasattr(found[entry], "py_func"):  # numba has been told to leave functions as they are
        return entry
    # nowhere to keep it, or no sources to know it by: compiled in every process
    with suppress(AttributeError, KeyError, OSError, RuntimeError):
        files = [*Path(__file__).parent.glob("*.py"), *map(Path, map(getfile, arguments))]
        sources = b"".join(file.read_bytes() for file in sorted(files))
        found[entry].py_func.__qualname__ += f"_{sha256(sources).hexdigest()[:16]}"
        keep(found[entry])
    return found[entry]


def keep(dispatcher: Any) -> None:
    """Let numba keep what it compiles of a function, each file with a digest at its end, which
    unpickling does not reach: a file that has come to harm ends the process, so that it is not
    loaded, but compiled anew and replaced."""
    dispatcher.enable_caching()
    file = dispatcher._cache._cache_file
    write, index, load = file._open_for_write, file._load_index, file._load_data

    def whole(path: str) -> bool:
        content = Path(path).read_bytes() if Path(path).exists() else b""
        return sha256(content[:-32]).digest() == content[-32:]

    @contextmanager
    def open_for_write(path: str) -> Iterator[BytesIO]:
        content = BytesIO()
        yield content
        with write(path) as whole_file:
            whole_file.write(content.getvalue() + sha256(content.getvalue()).digest())

    def load_data(name: str) -> Any:
        if not whole(file._data_path(name)):
            raise OSError  # to numba as if there were none
        return load(name)

    file._open_for_write, file._load_data = open_for_write, load_data
    file._load_index = lambda: index() if whole(file._index_path) else {}
