"""Checks on import, before any other module is loaded: files that hide this library's packages, and
interrupted commands.

A file of the same name beside a user's script is found before the packages that are installed with
this one; and a command that is interrupted while it is still being loaded has nothing to trace.
"""

import atexit
import gc
import os
import signal
import sys
import warnings
from importlib.util import find_spec
from pathlib import Path
from typing import Any


def check_names() -> None:
    """Say which file hides one of the packages that come with this one.

    Raises
    ------
    ImportError
        If it is ``solvers``, without which nothing works.
    """
    if hidden := _hiding("solvers"):
        raise ImportError(
            f"{hidden} hides the package solvers, which replica needs: give it another name, or "
            "start Python elsewhere"
        )
    if hidden := _hiding("validation"):
        warnings.warn(
            f"{hidden} hides the package validation of replica-srf: to import that, give it "
            "another name",
            ImportWarning,
            stacklevel=3,
        )


def _hiding(name: str) -> str:
    """The file that is imported as ``name`` in the place of the package beside this one, if any."""
    here = Path(__file__).resolve().parents[1] / name
    spec = find_spec(name)
    if spec is None or not here.is_dir():
        return ""
    found = spec.origin or next(iter(spec.submodule_search_locations or ()), "")
    inside = Path(found).resolve()
    return "" if here in (inside, inside.parent) else found


def is_command() -> bool:
    """True if a command of this library imports it, not a script or a notebook."""
    command = os.path.basename(sys.argv[0]).partition(".")[0] if sys.argv else ""
    return command in ("-m", "replica", "replica-validate")


def end_quietly() -> None:
    """Let Ctrl-C, or an error of a package in its environment, end a command in one line while
    imports are running; afterwards ``cli.run`` sees to that. A script or a notebook that imports
    the library keeps its traceback, and so does a command with REPLICA_TRACEBACK set."""
    before, interrupts = sys.excepthook, list[int]()

    def interrupt(number: int, frame: Any) -> None:
        interrupts.append(number)
        signal.default_int_handler(number, frame)

    def hook(kind: type[BaseException], error: BaseException, trace: Any) -> None:
        if interrupts:  # which compiled modules that are loading make errors of their own
            print("error: interrupted while starting", file=sys.stderr, flush=True)
            os._exit(130)
        elif trace is None or "REPLICA_TRACEBACK" in os.environ:
            before(kind, error, trace)
        else:
            while trace.tb_next is not None:
                trace = trace.tb_next
            where = f"{trace.tb_frame.f_code.co_filename}, line {trace.tb_lineno}"
            print(f"error: could not start: {kind.__name__}: {error} ({where})", file=sys.stderr)

    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, interrupt)
    sys.excepthook = hook


if is_command():
    end_quietly()
    if sys.stderr is None:  # closed before we began: nobody is there to be told, but numpy 2.0 asks
        sys.stderr = open(os.devnull, "w")  # noqa: SIM115
    # Else the interpreter looks for garbage among all that was imported before it ends: a fifth of
    # the time of a short command.
    atexit.register(gc.freeze)
check_names()
