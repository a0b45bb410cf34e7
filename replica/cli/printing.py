"""Output of a command: a document or a table on standard output, and files."""

import os
import sys
import time
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, redirect_stdout
from contextvars import ContextVar
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from typing import Annotated, Any, TextIO

import numpy as np
import typer
from numpy.typing import ArrayLike

from solvers.results import Array

from .. import files
from ..convex import Loss
from ..display import Progress, bar, text
from ..errors import InvalidArgument, shorten
from ..observables import CHANGES, NOTED_SHIFT, NOTHING_LEARNED, SEARCHED_RANGES
from ..plotting import check_latex, picture, style, symbol
from ..problem import LabelLaw, Problem, SpikedRandomFeatures
from ..steps import reason_not_covered

PICTURES = (".png", ".pdf", ".svg", ".eps")
Notes = Annotated[
    bool, typer.Option(help="Say how far d = 1000 is, and an sRF from its network, even if near.")
]
NOTED = {  # sentence on the relative change of an error, by its name as a column
    "finite_size_shift": "these are limits d -> inf; in the theory at d = 1000 the {error} at "
    "{place} differs by {change} (--dimension 1000; docs/theory.md 23 of networks, "
    "docs/readout.md)",
    "network_difference": "these are of the published sRF; at {place} the {error} of the network "
    "itself differs by {change} (--theory network)",
}
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

        A .csv file holds ``rows``, the document's points unless given; a .tex file the rows of a
        ``paper``, the same unless given, with columns that are always ``printed``; a .nc file the
        ``dataset``.
        """
        if self.out is not None:
            table_rows = document.get("points", ()) if rows is None else rows
            suffix = self.out.suffix.lower()
            if suffix == ".nc" and dataset is not None:
                # in memory, since HDF5 does not survive a disk that is full
                file_content = bytes(dataset().to_netcdf(None, engine="h5netcdf"))
            elif suffix == ".json":
                file_content = (files.to_json(document) + "\n").encode()
            elif suffix == ".tex":
                file_content = files.to_tex(paper or table_rows, symbol, printed).encode()
            else:
                file_content = files.to_csv(table_rows).encode()
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
        of more than 60 points, 20 at each end.
        """

        def seven(value: Any) -> str:
            return f"{value:.7g}" if isinstance(value, float) else str(value)

        end = 20
        is_long = len(points) > 3 * end and not self.wide
        shown_points = [*points[:end], *points[-end:]] if is_long else points
        table_cells = [[name, *(seven(point[name]) for point in shown_points)] for name in columns]
        widths = [max(map(len, column)) + 2 for column in table_cells]
        fitting = sum(width <= 100 + 2 for width in accumulate(len(name) + 2 for name in columns))
        shown_columns = table_cells if self.wide else table_cells[: max(fitting, 1)]
        for i, row in enumerate(zip(*shown_columns, strict=True)):
            if is_long and i == end + 1:
                answer("...".rjust(widths[0])[2:])
            answer("".join(map(str.rjust, row, widths))[2:])
        if is_long:
            say(
                f"note: the first and the last {end} of {len(points)} points are shown: --wide "
                "shows all, --out FILE.csv saves them"
            )
        if any(name.endswith("classification_error") for name in columns):
            say(
                "note: classification_error is the share of new labels, with their noise, that the "
                "sign of the output, or the largest of several, misses; the test error is squared"
            )
        if len(shown_columns) < len(table_cells):
            say(f"note: --wide also shows {', '.join(columns[len(shown_columns) :])}")


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
    other_columns = ("loss_error", "train_loss", "classification_error_stderr", "test_error_stderr")
    names = [name for name in (*errors, "converged", *other_columns) if name in table_columns]
    squared = ["test_error", "train_error", "test_error_stderr"] * (loss.kind == "margin")
    return sorted(names, key=squared.count)


def save(path: Path, file_content: bytes) -> None:
    """Write a file, and say so."""
    files.write_file(path, file_content)
    say(f"wrote {path}")


def answer(text: str) -> None:
    """Write to standard output."""
    typer.echo(text, file=ANSWERS.get())


def say(message: str) -> None:
    """Write to standard error, as one line of reasonable length without control characters."""
    line = shorten(" ".join(message.split()), 800)  # a dozen lines of a terminal
    typer.echo("".join(c if c.isprintable() else "?" for c in line), err=True)


@contextmanager
def answers_only() -> Iterator[None]:
    """Redirect to standard error whatever users' functions and modules print.

    Standard output then has the answer of the command alone, and can be read as JSON.
    """
    token = ANSWERS.set(sys.stdout)
    try:
        with redirect_stdout(sys.stderr):
            yield
    finally:
        ANSWERS.reset(token)


def with_options(sentence: str) -> str:
    """A ``sentence`` of the library, with options in the place of its arguments."""
    named = {"time_limit=": "--time-limit ", "time_limit": "--time-limit", "most=": "--most"}
    for argument, option in named.items():
        sentence = sentence.replace(argument, option)
    return sentence


def note_theory(model: SpikedRandomFeatures) -> None:
    """Write which theory of a step a model has, and that its network has one of its own."""
    dimension_text = f" at d = {model.dimension:g}" * bool(np.isfinite(model.dimension))
    if model.rows is not None:
        reuse_text = f", a share {model.reuse:g} of samples reused" * (model.reuse > 0)
        say(f"note: theory of the network itself{dimension_text}{reuse_text}")
    elif model.step is not None:
        has_network_theory = not reason_not_covered(model.step)
        network_hint = " (--theory network: of the network itself)" * has_network_theory
        say(f"note: theory of the sRF, the published equivalent{dimension_text}{network_hint}")


def farthest_note(
    points: Sequence[dict[str, Any]],
    axes: Sequence[str],
    error: str,
    asked: bool,
    network_eta: Callable[[dict[str, Any]], str] | None,
) -> str:
    """Note on the largest relative changes of the ``error`` over the points; empty for none.

    The points have columns of NOTED, and of the ``axes``, which name the place.  Changes that are
    small or not known are noted only where ``asked``.  Where the best eta is searched,
    ``network_eta`` says of a point what that of the network is.
    """
    points = [point for point in points if point["converged"]]  # others have a warning
    sentences = []
    for name, note in NOTED.items():
        noted_points = [point for point in points if name in point]
        changes = np.array([point[name] for point in noted_points], dtype=float)
        unknown_count = int(np.isnan(changes).sum())
        if asked and unknown_count:
            where = f" at {unknown_count} of {changes.size} points" * (unknown_count < changes.size)
            change_text = f"{name.replace('_', ' ')} is not known{where}"
            sentences.append(f"the {change_text}: no answer, or none in time")
        least = 5e-4 if asked else CHANGES[name].noted  # smaller ones would be printed as 0.0 %
        if np.any(np.abs(changes) > least):
            point, shift = noted_points[farthest(changes)], changes[farthest(changes)]
            place = ", ".join(f"{axis} = {text(point[axis])}" for axis in axes)
            change = f"{shift:+.0%}" if abs(shift) > NOTED_SHIFT else f"{shift:+.1%}"
            sentences.append(note.format(error=error.replace("_", " "), place=place, change=change))
            if network_eta is not None:
                of_size = "; the best eta may be another, too: --dimension 1000 searches it there"
                sentences[-1] += of_size if name == "finite_size_shift" else network_eta(point)
    return "; and ".join(sentences)


def farthest(changes: ArrayLike) -> int:
    """Index of the largest of the relative changes that are known."""
    return int(np.abs(np.nan_to_num(changes)).argmax())


def note_edges(points: Sequence[Mapping[str, Any]]) -> None:
    """Write a note where the best value of a parameter is at an end of the range searched, and
    where it is beside values that were not solved.

    Points have the best values, and the names ``at_edge`` of those that are the one or the other.
    """
    best_beside_unsolved = (
        "beside values that were not solved, at which the test error may be lower: replica curve "
        "or readout with --{option} 0.01:10:9:log says why"
    )
    best_at_range_end = (
        "at the edge of the range searched ({ranges}): beyond it the test error may fall in this "
        "theory, as replica curve or readout with values of --{option} there tells"
    )
    noted: dict[str, list[list[str]]] = {best_at_range_end: [], best_beside_unsolved: []}
    for point in points:
        names = str(point.get("at_edge", "")).split()
        distances = {x: np.abs(np.log(np.divide(SEARCHED_RANGES[x], point[x]))) for x in names}
        ends = [name for name in names if distances[name].min() < 1e-6]
        noted[best_at_range_end].append(ends)
        noted[best_beside_unsolved].append([name for name in names if name not in ends])
    for sentence, of_points in noted.items():
        if names := sorted({name for of_point in of_points for name in of_point}):
            ranges = ", ".join("{} {:g} to {:g}".format(x, *SEARCHED_RANGES[x]) for x in names)
            where = f"at {sum(map(bool, of_points))} of {len(points)} points the best"
            ending = sentence.format(ranges=ranges, option=names[0])
            say(f"note: {where} {' or '.join(names)} is {ending}")


def warn_of_failures(points: Sequence[dict[str, Any]]) -> None:
    """Write the number of points that did not converge, with the reasons, to standard error."""
    failed_statuses = [point["status"] for point in points if not point["converged"]]
    if failed_statuses:
        why = with_options("; ".join(dict.fromkeys(failed_statuses)))
        say(f"WARNING: {len(failed_statuses)} of {len(points)} points: {why}")


def note_worse_than_zero(problem: Problem, errors: Sequence[float | None]) -> None:
    """Write a note where the test error is hardly below E sigma_*^2, the error of predicting 0."""
    known = [error for error in errors if error is not None]
    if not problem.labels.binary and known:
        zero = LabelLaw(problem.target).averages(problem.inputs).power
        count = sum(error > (1 - NOTHING_LEARNED) * zero for error in known)
        advice = "" if problem.intercept else "--intercept or "
        if count:
            say(
                f"note: at {count} of {len(known)} points the test error, up to {max(known):.4g}, "
                f"is hardly below {zero:.4g}, that of predicting 0, or above it: {advice}a larger "
                "--lam may help, unless the student cannot see the target (replica staircase "
                "--student)"
            )


def progress(what: str) -> AbstractContextManager[Progress]:
    """Callback (done, total) for a computation: a bar in a terminal, a line a minute in a log."""
    return bar(what) if sys.stderr.isatty() else nullcontext(_progress_lines(what))


def _progress_lines(what: str) -> Progress:
    """Callback that writes a line on the progress of the work at most once a minute."""
    start_time = last_line = time.monotonic()

    def advance(done: int, total: int) -> None:
        nonlocal last_line
        if (time_now := time.monotonic()) - last_line >= 60:
            last_line = time_now
            say(f"{what}: {done} of {total} after {(time_now - start_time) / 60:.0f} min")

    return advance
