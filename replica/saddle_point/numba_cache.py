"""Compilation by numba of functions of several files, with a cache on disk.

numba does not notice that a function which a cached one calls has changed in another file.  The
name of a cached function here contains a digest of all source files.
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
options: dict[Callable[..., Any], dict[str, Any]] = {}  # numba's options for each function


# numba removes branches on an argument that is None, but not on a field that is None: ``rows`` is
# therefore an argument in addition to the table that has it.
def compiled(function: Function) -> Function:
    """Mark a function for compilation."""
    options[function] = {}
    return function


def summed(function: Function) -> Function:
    """Mark a function for compilation whose sums may be reordered, which is three times faster."""
    options[function] = {"fastmath": {"reassoc", "contract"}}
    return function


def compile_together(entry: Function, *arguments: type) -> Function:
    """Compile ``entry`` together with all marked functions, with a cache on disk.

    Without numba ``entry`` itself is returned.  ``arguments`` are the classes of its arguments.
    """
    try:
        from numba import njit
    except Exception:  # numba is missing, or refuses one of its environment variables
        return entry
    namespaces = {function.__module__: dict(function.__globals__) for function in options}
    jitted = {}
    for function, settings in options.items():
        copy = FunctionType(function.__code__, namespaces[function.__module__], function.__name__)
        jitted[function] = njit(error_model="numpy", **settings)(copy)  # 1 / 0 is infinite
    for namespace in namespaces.values():
        for name, value in namespace.items():
            if isinstance(value, FunctionType):
                namespace[name] = jitted.get(value, value)
    if not hasattr(jitted[entry], "py_func"):  # numba's compilation is disabled
        return entry
    # without a cache directory or without sources it is compiled in every process
    with suppress(AttributeError, KeyError, OSError, RuntimeError):
        compiled_code: list[Any] = [*options, *arguments]
        files = {Path(getfile(one)) for one in compiled_code}
        sources = b"".join(file.read_bytes() for file in sorted(files))
        jitted[entry].py_func.__qualname__ += f"_{sha256(sources).hexdigest()[:16]}"
        cache_on_disk(jitted[entry])
    return jitted[entry]


def cache_on_disk(dispatcher: Any) -> None:
    """Cache a compiled function on disk, each file with a digest at its end.

    Loading a damaged file would end the process.  Such a file is not loaded, but compiled anew and
    replaced.  Unpickling ignores the digest.
    """
    dispatcher.enable_caching()
    file = dispatcher._cache._cache_file
    write, index, load = file._open_for_write, file._load_index, file._load_data

    def is_intact(path: str) -> bool:
        content = Path(path).read_bytes() if Path(path).exists() else b""
        return sha256(content[:-32]).digest() == content[-32:]

    @contextmanager
    def open_for_write(path: str) -> Iterator[BytesIO]:
        content = BytesIO()
        yield content
        with write(path) as stream:
            stream.write(content.getvalue() + sha256(content.getvalue()).digest())

    def load_data(name: str) -> Any:
        if not is_intact(file._data_path(name)):
            raise OSError  # numba treats the file as missing
        return load(name)

    file._open_for_write, file._load_data = open_for_write, load_data
    file._load_index = lambda: index() if is_intact(file._index_path) else {}
