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
    for function, numba_options in options.items():
        copy = FunctionType(function.__code__, namespaces[function.__module__], function.__name__)
        jitted[function] = njit(error_model="numpy", **numba_options)(copy)  # 1 / 0 is infinite
    for module_namespace in namespaces.values():
        for global_name, global_value in module_namespace.items():
            if isinstance(global_value, FunctionType):
                module_namespace[global_name] = jitted.get(global_value, global_value)
    if not hasattr(jitted[entry], "py_func"):  # numba's compilation is disabled
        return entry
    # without a cache directory or without sources it is compiled in every process
    with suppress(AttributeError, KeyError, OSError, RuntimeError):
        compiled_code: list[Any] = [*options, *arguments]
        source_files = {Path(getfile(compiled_object)) for compiled_object in compiled_code}
        source_bytes = b"".join(source_file.read_bytes() for source_file in sorted(source_files))
        jitted[entry].py_func.__qualname__ += f"_{sha256(source_bytes).hexdigest()[:16]}"
        cache_on_disk(jitted[entry])
    return jitted[entry]


def cache_on_disk(dispatcher: Any) -> None:
    """Cache a compiled function on disk, each file with a digest at its end.

    Loading a damaged file would end the process.  Such a file is not loaded, but compiled anew and
    replaced.  Unpickling ignores the digest.
    """
    dispatcher.enable_caching()
    cache_file = dispatcher._cache._cache_file
    numba_write = cache_file._open_for_write
    numba_index, numba_load = cache_file._load_index, cache_file._load_data

    def is_intact(cache_path: str) -> bool:
        cache_content = Path(cache_path).read_bytes() if Path(cache_path).exists() else b""
        return sha256(cache_content[:-32]).digest() == cache_content[-32:]

    @contextmanager
    def open_for_write(cache_path: str) -> Iterator[BytesIO]:
        cache_content = BytesIO()
        yield cache_content
        with numba_write(cache_path) as cache_stream:
            cache_stream.write(cache_content.getvalue() + sha256(cache_content.getvalue()).digest())

    def load_data(cache_name: str) -> Any:
        if not is_intact(cache_file._data_path(cache_name)):
            raise OSError  # numba treats the file as missing
        return numba_load(cache_name)

    cache_file._open_for_write, cache_file._load_data = open_for_write, load_data
    cache_file._load_index = lambda: numba_index() if is_intact(cache_file._index_path) else {}
