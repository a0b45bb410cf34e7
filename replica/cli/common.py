"""What all commands share: their options, how they write results, and how they fail.

Results go to standard output, everything else to standard error.  Exit status: 0; 1 where a
point did not converge; 2 for bad input, with one line that names the option, its value and
what is allowed; 130 when interrupted.
"""

import logging
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import wraps
from inspect import Parameter, Signature, signature
from pathlib import Path
from typing import Annotated, Any, Concatenate, get_args, get_origin, get_type_hints

import typer

from solvers.quadrature import QuadratureError
from solvers.results import Array

from .. import documents as files
from ..errors import InvalidArgument
from ..observables import variants
from ..problem import SpikedRandomFeatures
from .options import ProblemOptions, Request, merge

PICTURES = (".png", ".pdf", ".svg")

Config = Annotated[Path | None, typer.Option(help="TOML file with the same keys.")]
Out = Annotated[Path | None, typer.Option(help="Save the points: .csv, .json or .nc.")]
Plot = Annotated[Path | None, typer.Option(help="Save a figure: .png, .pdf or .svg.")]
Json = Annotated[bool, typer.Option("--json", help="Print the JSON document and nothing else.")]

Command = Callable[Concatenate[ProblemOptions, ...], None]


def problem_options(*, without: Sequence[str] = ()) -> Callable[[Command], Callable[..., None]]:
    """Let a command take the fields of its ProblemOptions as options, and --config.

    The command is written with a ProblemOptions as its first parameter and called with what is
    typed, completed from the file.  Typer, which makes options of the parameters in a signature,
    is shown one for every field with a help text in its place, but for those in ``without``.
    """
    hints = get_type_hints(ProblemOptions, include_extras=True)
    shared = {
        name: _parameter(name, *get_args(hint))
        for name, hint in hints.items()
        if get_origin(hint) is Annotated
    }
    for name in without:
        del shared[name]
    config = Parameter("config", Parameter.KEYWORD_ONLY, default=None, annotation=Config)

    def decorate(command: Command) -> Callable[..., None]:
        @wraps(command)
        def flat(*, config: Path | None, **given: Any) -> None:
            typed = ProblemOptions(**{name: given.pop(name) for name in shared})
            command(merge(typed, config), **given)

        _, *own = signature(command).parameters.values()
        flat.__signature__ = Signature([*shared.values(), config, *own])  # type: ignore[attr-defined]
        return flat

    return decorate


def _parameter(name: str, kind: Any, text: str) -> Parameter:
    """What typer makes --name of: text or, for a bool, a flag that is None unless typed."""
    flag = f"--{name.replace('_', '-')}"  # given, since typer's own adds a --no-flag
    return Parameter(
        name,
        Parameter.KEYWORD_ONLY,
        default=typer.Option(None, flag, help=text),
        annotation=bool | None if kind == bool | None else str | None,
    )


def one_model(asked: Request) -> SpikedRandomFeatures:
    """The model of a request without grids of model fields.

    Raises
    ------
    InvalidArgument
        If a model field is a grid.
    """
    for name, grid in asked.grids.items():
        one_number(name, grid)
    (model,) = variants(asked.problem, asked.grids)
    return model


def one_number(name: str, grid: Array) -> float:
    """The only value of a grid.

    Raises
    ------
    InvalidArgument
    """
    if grid.size != 1:
        raise InvalidArgument(name, grid.tolist(), "a single number here")
    return float(grid[0])


def check_outputs(
    out: Path | None, plot: Path | None, tables: Sequence[str] = (".csv", ".json", ".nc")
) -> None:
    """Refuse unusable --out and --plot before anything is computed."""
    if out is not None:
        files.check_writable("out", out, tables)
    if plot is not None:
        files.check_writable("plot", plot, PICTURES)


def save_points(
    path: Path, document: dict[str, Any], netcdf: Callable[[Path], object] | None = None
) -> None:
    """Write ``document`` (.json), its points (.csv) or what ``netcdf`` writes (.nc)."""
    if path.suffix == ".nc" and netcdf is not None:
        files.write_atomically(path, netcdf)
    else:
        as_json = path.suffix == ".json"
        text = files.to_json(document) + "\n" if as_json else files.to_csv(document["points"])
        files.write_atomically(path, lambda temporary: temporary.write_text(text))
    typer.echo(f"wrote {path}", err=True)


def save_figure(path: Path, figure: Any) -> None:
    """Write a matplotlib Figure."""
    files.write_atomically(path, lambda temporary: figure.savefig(temporary, dpi=150))
    typer.echo(f"wrote {path}", err=True)


def print_table(points: Sequence[dict[str, Any]], columns: Sequence[str]) -> None:
    """The points as an aligned table on standard output."""
    rows = [list(columns), *([_cell(point[name]) for name in columns] for point in points)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = (text.rjust(width) for text, width in zip(row, widths, strict=True))
        typer.echo("  ".join(cells))


def _cell(value: Any) -> str:
    return f"{value:.7g}" if isinstance(value, float) else str(value)


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
    """Run a command line; every foreseeable failure becomes one line and an exit status."""
    logging.basicConfig(format="%(levelname)s: %(message)s", level=logging.WARNING)
    usage_error: Any = typer.BadParameter.__base__  # the same class in every typer
    try:
        status = application(args=arguments, standalone_mode=False)
        if status == 130:  # how some versions of typer report Ctrl-C
            raise KeyboardInterrupt
        return status if isinstance(status, int) else 0
    except InvalidArgument as error:
        option = f"--{error.name.replace('_', '-')}" if error.name.isidentifier() else error.name
        got = "" if error.value is None else f", got {str(error.value) or repr(error.value)}"
        return _fail(f"{option} must be {error.allowed}{got}", 2)
    except usage_error as error:
        return _fail(error.format_message() or "a command is missing", 2)
    except QuadratureError as error:
        return _fail(str(error), 2)
    except OSError as error:
        return _fail(f"{error.filename or 'output'}: {error.strerror or error}", 2)
    except (KeyboardInterrupt, typer.Abort):
        return _fail("interrupted; no file was left half-written", 130)


def _fail(message: str, status: int) -> int:
    typer.echo(f"error: {' '.join(message.split())}", err=True)
    return status
