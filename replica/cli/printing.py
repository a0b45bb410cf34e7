"""Output of a command: a document or a table on standard output, and files."""

import os
import sys
import time
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, redirect_stdout
from contextvars import ContextVar
from dataclasses import dataclass, replace
from functools import partial
from itertools import accumulate
from pathlib import Path
from typing import Any, TextIO

import numpy as np
import typer

from solvers.results import Array, Status

from .. import files
from ..convex import Loss
from ..display import Progress, bar
from ..errors import InvalidArgument, shorten
from ..plotting import check_latex, picture, setting, settings, style, symbol
from ..problem import netcdf_attributes

PICTURES = (".png", ".pdf", ".svg", ".eps")
ANSWERS: ContextVar[TextIO | None] = ContextVar("ANSWERS", default=None)


@dataclass(frozen=True)
class Output:
    """Destination of a result: the files --out and --plot, or JSON on standard output.

    A table may be ``wide``; a figure has a ``size`` in inches and the ``style`` of that name.
    """

    out: Path | None = None
    plot: Path | None = None
    as_json: bool = False
    wide: bool = False
    size: tuple[float, float] | None = None
    style: str | None = None

    def check(self, tables: Sequence[str], read: Iterable[str | Path] = ()) -> None:
        """Refuse unusable files and figures before anything is computed.

        A file that is ``read``, or named by both options, also through links, is refused, too.
        """
        with style(self.style, size=self.size):
            if self.plot is not None:
                check_latex()
        # a path that cannot be a name is refused where it is read
        named_files = {os.path.realpath(path) for path in read if "\0" not in str(path)}
        for name, path, suffixes in (("out", self.out, tables), ("plot", self.plot, PICTURES)):
            if path is not None:
                files.check_writable(name, path, suffixes)
                if os.path.realpath(path) in named_files:
                    raise InvalidArgument(name, str(path), "a file that no other option names")
                named_files.add(os.path.realpath(path))

    def of_solved(self, statuses: Array) -> tuple["Output", str]:
        """The output of points with these ``statuses``, and a sentence on those that Ctrl-C left
        unsolved; if there are any, it is FILE-incomplete, without a figure: complete files stay."""
        unsolved_n = int((statuses == str(Status.INTERRUPTED)).sum())
        if not unsolved_n:
            return self, ""
        incomplete_file = self.out and self.out.with_stem(f"{self.out.stem}-incomplete")
        points_text = f"{unsolved_n} of {statuses.size} points were not solved"
        points_text += f", as their status in {incomplete_file} says" * bool(incomplete_file)
        return replace(self, out=incomplete_file, plot=None), points_text

    def write(
        self,
        document: dict[str, Any],
        show: Callable[[], None],
        *,
        figure: Callable[[], Any] | None = None,
        rows: Sequence[dict[str, Any]] | None = None,
        paper: Sequence[dict[str, Any]] | None = None,
        printed: Sequence[str] = (),
        dataset: Callable[[], Any] | None = None,
    ) -> None:
        """Save the ``document`` and the ``figure``, and print the document, as JSON or by ``show``.

        A .csv file holds ``rows``, the points of the document unless given, and the problem; a .tex
        file the rows of a ``paper``, the same unless given, with columns that are always
        ``printed``, below a comment with the problem and its theory; a .nc file the ``dataset``.
        """
        if self.out is not None:
            table_rows = document.get("points", ()) if rows is None else rows
            out_suffix = self.out.suffix.lower()
            if out_suffix == ".nc" and dataset is not None:
                # in memory, since HDF5 does not survive a disk that is full
                file_content = bytes(dataset().to_netcdf(None, engine="h5netcdf"))
            elif out_suffix == ".json":
                file_content = (files.to_json(document) + "\n").encode()
            elif out_suffix == ".tex":
                table = files.to_tex(paper or table_rows, partial(_heading, table_rows), printed)
                file_content = f"{_comment(document)}{table}".encode()
            else:
                file_content = files.to_csv(_with_problem(table_rows, document)).encode()
            save(self.out, file_content)
        try:
            if self.plot is not None and figure is not None:
                with style(self.style, size=self.size):
                    save(self.plot, picture(figure(), self.plot.suffix[1:].lower()))
        finally:  # a figure that cannot be drawn is known
            if self.as_json:
                answer(files.to_json(document))
            else:
                show()

    def table(self, points: Sequence[dict[str, Any]], columns: Sequence[str]) -> None:
        """Print the points as an aligned table, floats to seven digits.

        Unless it is to be wide, it has as many of the ``columns`` as fit into 100 characters and,
        of more than 60 points, 20 at each end.  Points that Ctrl-C left unsolved are left out.
        """
        points = [one for one in points if one.get("status") != str(Status.INTERRUPTED)]

        def seven(value: Any) -> str:
            if value is None:  # NaN in a document
                return "nan"
            return f"{value:.7g}" if isinstance(value, float) else str(value)

        end = 20
        is_long_table = len(points) > 3 * end and not self.wide
        shown_points = [*points[:end], *points[-end:]] if is_long_table else points
        table_cells = [[name, *(seven(point[name]) for point in shown_points)] for name in columns]
        column_widths = [max(map(len, column)) + 2 for column in table_cells]
        fitting = sum(width <= 100 + 2 for width in accumulate(len(name) + 2 for name in columns))
        shown_columns = table_cells if self.wide else table_cells[: max(fitting, 1)]
        for row_index, printed_row in enumerate(zip(*shown_columns, strict=True)):
            if is_long_table and row_index == end + 1:
                answer("...".rjust(column_widths[0])[2:])
            answer("".join(map(str.rjust, printed_row, column_widths))[2:])
        if is_long_table:
            say(
                f"note: the first and the last {end} of {len(points)} points are shown: --wide "
                "shows all, --out FILE.csv saves them"
            )
        column_meanings = [
            "classification_error is the share of new labels, with their noise, that the sign of "
            "the output, or the largest of several, misses"
        ] * any(name.endswith("classification_error") for name in columns)
        if "loss_error" in columns:
            of_limit = bool(column_meanings) and "residual_degrees" not in columns
            unwatched = "; notes on d = 1000 are of the classification error alone" * of_limit
            column_meanings += [
                "loss_error and train_loss are means of the loss; test_error and train_error are "
                f"squared errors, which it does not minimise{unwatched}"
            ]
        elif column_meanings:
            column_meanings += ["the test error is squared"]
        if column_meanings:
            say(f"note: {'; '.join(column_meanings)}")
        if len(shown_columns) < len(table_cells):
            say(f"note: --wide also shows {', '.join(columns[len(shown_columns) :])}")


def _heading(rows: Sequence[Mapping[str, Any]], name: str) -> str:
    """Symbol of a column of a table for a paper, or its name, of squared errors where others are of
    a loss; of bounds with their alpha."""
    column, _, alpha = name.partition("_")
    if column in ("achieved", "lam") and alpha:
        at_best = {"achieved": r"$\min_\lambda\epsilon_g$", "lam": symbol("lam")}
        return f"{at_best[column]} at {setting('alpha', float(alpha))}"
    is_squared = "loss_error" in rows[0] and name.startswith(("test_error", "train_error"))
    return f"mean squared {name}" if is_squared else symbol(name)


def _comment(document: Mapping[str, Any]) -> str:
    """A comment of LaTeX with what all points of a document share, which is much of a caption."""
    shared_names = ("student", "target", "bias", "degree", "dimension", "seeds")
    shared_settings = {name: document[name] for name in shared_names if name in document}
    comment_parts = settings(netcdf_attributes(dict(document.get("problem", {})) | shared_settings))
    comment_parts += [str(document["theory"])] if "theory" in document else []
    return f"% {', '.join(comment_parts)}\n" * bool(comment_parts)


def _with_problem(
    rows: Sequence[Mapping[str, Any]], document: Mapping[str, Any]
) -> list[Mapping[str, Any]]:
    """Rows with the problem of a document in columns at the end; rows of a simulation without a
    theory and its dimension."""
    problem = netcdf_attributes(document.get("problem", {}))
    problem |= {name: document[name] for name in ("theory", "dimension") if name in document}
    of_simulation = problem | dict.fromkeys(problem.keys() & {"theory", "dimension"}, "")
    row_sources = (row.get("source") for row in rows)
    added = (of_simulation if source == "simulation" else problem for source in row_sources)
    return [{**row, **new, **row} for row, new in zip(rows, added, strict=True)]


def rows_of(axes: Mapping[str, Array], columns: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Rows of the points of a grid, with the values of the ``axes`` and of the ``columns``.

    The last axis varies fastest.
    """
    point_axes = (x.ravel() for x in np.meshgrid(*axes.values(), indexing="ij"))
    filled: dict[str, Any] = {**dict(zip(axes, point_axes, strict=True)), **columns}
    return [dict(zip(filled, row, strict=True)) for row in zip(*filled.values(), strict=True)]


def errors_first(table_columns: Container[Any], loss: Loss) -> list[str]:
    """Columns of a table in their order, errors first, as far as they are in ``table_columns``;
    squared errors last where the ``loss`` does not fit outputs to the labels."""
    errors = ("classification_error", "test_error", "train_error")
    other_columns = ["loss_error", "train_loss", "classification_error_stderr", "test_error_stderr"]
    other_columns += [
        f"fitted_{name}{end}"
        for name in (*errors[:2], "loss_error", "train_error", "train_loss")
        for end in ("", "_stderr")
    ]
    error_names = [name for name in (*errors, "converged", *other_columns) if name in table_columns]
    squared_columns = ["test_error", "train_error", "test_error_stderr"] * (loss.kind == "margin")
    return sorted(error_names, key=squared_columns.count)


def save(path: Path, file_content: bytes) -> None:
    """Write a file, and say so."""
    files.write_file(path, file_content)
    say(f"wrote {path}")


def answer(text: str) -> None:
    """Write to standard output."""
    typer.echo(text, file=ANSWERS.get())


def say(message: str) -> None:
    """Write to standard error, as one line of reasonable length without control characters."""
    message_line = shorten(" ".join(message.split()), 800)  # a dozen lines of a terminal
    typer.echo("".join(c if c.isprintable() else "?" for c in message_line), err=True)


@contextmanager
def answers_only() -> Iterator[None]:
    """Redirect to standard error whatever users' functions and modules print.

    Standard output then has the answer of the command alone, and can be read as JSON.
    """
    answers_token = ANSWERS.set(sys.stdout)
    try:
        with redirect_stdout(sys.stderr):
            yield
    finally:
        ANSWERS.reset(answers_token)


def with_options(sentence: str) -> str:
    """A ``sentence`` of the library, with options in the place of its arguments, and the commands
    that have an option where not all do."""
    option_words = {"time_limit=": "--time-limit ", "time_limit": "--time-limit", "most=": "--most"}
    tolerance = (
        "--quadrature-tol of replica curve, readout or spectrum, or replica-validate compare"
    )
    option_words |= {"quadrature_tol": tolerance, "without dimension=": "without --dimension"}
    option_words["theory='srf'"] = "--theory srf"
    for python_word, option_word in option_words.items():
        sentence = sentence.replace(python_word, option_word)
    return sentence


def progress(what: str) -> AbstractContextManager[Progress]:
    """Callback (done, total) for a computation: a bar in a terminal, a line a minute in a log."""
    return bar(what) if sys.stderr.isatty() else nullcontext(_progress_lines(what))


def _progress_lines(counted_work: str) -> Progress:
    """Callback that writes a line on the progress of the work at most once a minute."""
    start_time = last_line = time.monotonic()

    def print_progress(done: int, total: int) -> None:
        nonlocal last_line
        if (time_now := time.monotonic()) - last_line >= 60:
            last_line = time_now
            say(f"{counted_work}: {done} of {total} after {(time_now - start_time) / 60:.0f} min")

    return print_progress
