"""What all commands share: their options, how they write results, and how they fail.

Results go to standard output, everything else to standard error.  Exit status: 0; 1 where a
point did not converge; 2 for bad input, with one line that names the option, its value and
what is allowed; 130 when interrupted.
"""

import io
import logging
import os
import signal
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, redirect_stdout
from contextvars import ContextVar
from functools import wraps
from inspect import Parameter, Signature, signature
from pathlib import Path
from typing import Annotated, Any, Concatenate, TextIO

import typer

from solvers.quadrature import QuadratureError
from solvers.results import ConvergenceError

from .. import documents
from ..errors import SHOWN, InvalidArgument, shorten
from .options import FLAGS, HELP, Options
from .problem_file import read_config

PICTURES = (".png", ".pdf", ".svg")
NOTED_SHIFT = 0.02  # of the test error: what simulations of that size do show
LONGEST_MESSAGE = 800  # characters: a dozen lines of a terminal
ANSWERS: ContextVar[TextIO | None] = ContextVar("ANSWERS", default=None)

Config = Annotated[Path | None, typer.Option(help="TOML file with the same keys.")]
AllowImport = Annotated[
    bool, typer.Option("--allow-import", help="Let the TOML file name code, module:function.")
]


def file_name(text: str) -> Path:
    """What is typed as a file to write; a path would lose the slash that makes it a folder."""
    if text.endswith(("/", os.sep)):
        raise typer.BadParameter(f"a file is written there, and {text!r} is a folder")
    return Path(text)


Out = Annotated[
    Path | None,
    typer.Option(help="Save the points: .csv, .json or .nc.", parser=file_name, metavar="PATH"),
]
Plot = Annotated[
    Path | None,
    typer.Option(help="Save a figure: .png, .pdf or .svg.", parser=file_name, metavar="PATH"),
]
Json = Annotated[bool, typer.Option("--json", help="Print the JSON document and nothing else.")]

Command = Callable[Concatenate[Options, ...], None]


def problem_options(*, without: Sequence[str] = ()) -> Callable[[Command], Callable[..., None]]:
    """Let a command take the options that describe a problem, and --config.

    The command is written with Options as its first parameter and called with what is typed,
    completed from the file.  Typer, which makes options of the parameters in a signature, is
    shown one for every option in its place, but for those in ``without``.
    """
    offered = {name: _parameter(name) for name in HELP}
    for name in without:
        del offered[name]
    config = Parameter("config", Parameter.KEYWORD_ONLY, default=None, annotation=Config)
    allow = Parameter("allow_import", Parameter.KEYWORD_ONLY, default=False, annotation=AllowImport)

    def decorate(command: Command) -> Callable[..., None]:
        @wraps(command)
        def flat(*, config: Path | None, allow_import: bool, **given: Any) -> None:
            typed = {name: given.pop(name) for name in offered}
            options = {name: value for name, value in typed.items() if value is not None}
            if config is not None:
                options = read_config(config, allow_import=allow_import) | options
            with answers_only():
                command(options, **given)

        _, *own = signature(command).parameters.values()
        parameters = [*offered.values(), config, allow, *own]
        flat.__signature__ = Signature(parameters)  # type: ignore[attr-defined]
        return flat

    return decorate


def _parameter(name: str) -> Parameter:
    """What typer makes --name of: text or, of a flag, a bool; None unless typed."""
    spelling = f"--{name.replace('_', '-')}"  # given, since typer's own adds a --no-flag
    return Parameter(
        name,
        Parameter.KEYWORD_ONLY,
        default=typer.Option(None, spelling, help=HELP[name]),
        annotation=bool | None if name in FLAGS else str | None,
    )


def check_outputs(
    out: Path | None, plot: Path | None, tables: Sequence[str] = (".csv", ".json", ".nc")
) -> None:
    """Refuse unusable --out and --plot before anything is computed."""
    if out is not None:
        documents.check_writable("out", out, tables)
    if plot is not None:
        documents.check_writable("plot", plot, PICTURES)


def save_points(
    path: Path, document: dict[str, Any], dataset: Callable[[], Any] | None = None
) -> None:
    """Write ``document`` (.json), its points (.csv) or an xarray.Dataset (.nc)."""
    if path.suffix == ".nc" and dataset is not None:
        # in memory, since HDF5 does not survive a disk that is full
        content = bytes(dataset().to_netcdf(None, engine="h5netcdf"))
    elif path.suffix == ".json":
        content = (documents.to_json(document) + "\n").encode()
    else:
        content = documents.to_csv(document["points"]).encode()
    _save(path, content)


def save_figure(path: Path, figure: Any) -> None:
    """Write a matplotlib Figure."""
    picture = io.BytesIO()
    figure.savefig(picture, format=path.suffix[1:], dpi=150)
    _save(path, picture.getvalue())


def _save(path: Path, content: bytes) -> None:
    """Write a file, and say so."""
    documents.write_file(path, content)
    typer.echo(f"wrote {path}", err=True)


def note_finite_size(alpha: float, lam: float, shift: float) -> None:
    """Say on standard error where the limit d -> inf is far from networks of ordinary size."""
    if abs(shift) > NOTED_SHIFT:
        _say(
            f"note: these are limits d -> inf; at d = 1000 the test error at alpha = "
            f"{alpha:g}, lam = {lam:g} differs by {shift:+.0%} "
            "(SpikedRandomFeatures(dimension=1000), docs/readout.md)"
        )


def answer(text: str) -> None:
    """Write to standard output."""
    typer.echo(text, file=ANSWERS.get())


@contextmanager
def answers_only() -> Iterator[None]:
    """Send elsewhere, to standard error, what users' functions and modules print: on standard
    output there is what a command answers, so that it can be read as JSON."""
    token = ANSWERS.set(sys.stdout)
    try:
        with redirect_stdout(sys.stderr):
            yield
    finally:
        ANSWERS.reset(token)


def print_table(points: Sequence[dict[str, Any]], columns: Sequence[str]) -> None:
    """The points as an aligned table on standard output, floats to seven digits."""

    def text(value: Any) -> str:
        return f"{value:.7g}" if isinstance(value, float) else str(value)

    rows = [list(columns), *([text(point[name]) for name in columns] for point in points)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        answer("  ".join(map(str.rjust, row, widths)))


@contextmanager
def progress(what: str) -> Iterator[Callable[[int, int], None] | None]:
    """A callback (done, total) that draws a bar on standard error when a person watches."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(what, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)


def run(application: typer.Typer, arguments: Sequence[str] | None = None) -> int:
    """Run a command line; whatever goes wrong becomes one line and an exit status.

    With the variable REPLICA_TRACEBACK set, what was not foreseen is raised instead.
    """
    logging.basicConfig(format="%(levelname)s: %(message)s", level=logging.WARNING)
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # as Ctrl-C: files are swept
    usage_error: Any = typer.BadParameter.__base__  # the same class in every typer
    try:
        with warnings.catch_warnings():
            # Overflows and the like: results are judged by their residuals, not by these.
            warnings.simplefilter("ignore", RuntimeWarning)
            warnings.showwarning = lambda message, *_: _say(f"WARNING: {message}")
            status = application(args=arguments, standalone_mode=False)
        if status == 130:  # how some versions of typer report Ctrl-C
            raise KeyboardInterrupt
        return status if isinstance(status, int) else 0
    except InvalidArgument as error:
        option = f"--{error.name.replace('_', '-')}" if error.name.isidentifier() else error.name
        got = "" if error.value is None else f", got {_shown(error.value)}"
        return _fail(f"{option} must be {error.allowed}{got}", 2)
    except usage_error as error:
        return _fail(error.format_message() or "a command is missing", 2)
    except QuadratureError as error:
        return _fail(str(error), 2)
    except ConvergenceError as error:
        return _fail(str(error), 1)
    except OSError as error:
        return _fail(f"{error.filename or 'output'}: {error.strerror or error}", 2)
    except MemoryError as error:
        return _fail(f"this takes more memory than there is ({error}): ask for less at once", 1)
    except SystemExit:
        return _fail("code that was named to be imported ended the program", 1)
    except (KeyboardInterrupt, typer.Abort):
        return _fail("interrupted; no file was left half-written", 130)
    except Exception as error:
        if "REPLICA_TRACEBACK" in os.environ:
            raise
        return _fail(
            f"{type(error).__name__}: {error} (a fault of the program, or of code it was given: "
            "REPLICA_TRACEBACK=1 before the same line shows where)",
            1,
        )


def _shown(value: Any) -> str:
    """A value of an argument in a message."""
    return shorten(str(value) or repr(value), SHOWN)


def _say(message: str) -> None:
    """Write to standard error, as one line of reasonable length without control characters."""
    line = shorten(" ".join(message.split()), LONGEST_MESSAGE)
    typer.echo("".join(c if c.isprintable() else "?" for c in line), err=True)


def _fail(message: str, status: int) -> int:
    """Write the message to standard error as one line; the exit status."""
    _say(f"error: {message}")
    return status
