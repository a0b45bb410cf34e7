"""How a command hands over its result: a document or a table on standard output, and files."""

import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, redirect_stdout
from contextvars import ContextVar
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from typing import Annotated, Any, TextIO

import typer

from .. import documents
from ..display import Progress, bar, text
from ..errors import InvalidArgument, shorten
from ..observables import NOTED_SHIFT
from ..plotting import picture, symbol
from ..problem import LabelLaw, Problem

PICTURES = (".png", ".pdf", ".svg")
Notes = Annotated[
    bool, typer.Option(help="Say how far networks of d = 1000 are, and an sRF from its network.")
]
ANSWERS: ContextVar[TextIO | None] = ContextVar("ANSWERS", default=None)


@dataclass(frozen=True)
class Output:
    """Where a result goes: the files --out and --plot, and whether --json was asked for; of a
    table, whether it may be ``wide``."""

    out: Path | None = None
    plot: Path | None = None
    as_json: bool = False
    wide: bool = False

    def check(self, tables: Sequence[str], read: Iterable[str | Path] = ()) -> None:
        """Refuse unusable files before anything is computed, and those that are ``read``, or twice
        the same, also through links."""
        # what cannot be a name is refused where it is read
        taken = {os.path.realpath(path) for path in read if "\0" not in str(path)}
        for name, path, suffixes in (("out", self.out, tables), ("plot", self.plot, PICTURES)):
            if path is not None:
                documents.check_writable(name, path, suffixes)
                if os.path.realpath(path) in taken:
                    raise InvalidArgument(name, str(path), "a file that no other option names")
                taken.add(os.path.realpath(path))

    def write(
        self,
        document: dict[str, Any],
        show: Callable[[], None],
        *,
        figure: Callable[[], Any] | None = None,
        rows: Sequence[dict[str, Any]] | None = None,
        printed: Sequence[str] = (),
        dataset: Callable[[], Any] | None = None,
    ) -> None:
        """Save the ``document`` and the ``figure``, and print it, as JSON or what ``show`` says.

        A .csv or .tex file holds ``rows``, the document's points unless given, the latter those
        columns that are always ``printed``; a .nc file the ``dataset``.
        """
        if self.out is not None:
            if self.out.suffix == ".nc" and dataset is not None:
                # in memory, since HDF5 does not survive a disk that is full
                content = bytes(dataset().to_netcdf(None, engine="h5netcdf"))
            elif self.out.suffix == ".json":
                content = (documents.to_json(document) + "\n").encode()
            else:
                table = document["points"] if rows is None else rows
                tex = self.out.suffix == ".tex"
                written = (
                    documents.to_tex(table, symbol, printed) if tex else documents.to_csv(table)
                )
                content = written.encode()
            save(self.out, content)
        try:
            if self.plot is not None and figure is not None:
                save(self.plot, picture(figure(), self.plot.suffix[1:]))
        finally:  # what cannot be drawn is known
            if self.as_json:
                answer(documents.to_json(document))
            else:
                show()

    def table(self, points: Sequence[dict[str, Any]], columns: Sequence[str]) -> None:
        """The points as an aligned table on standard output, floats to seven digits: as many of
        the ``columns`` as 100 characters have room for, and of more than 60 points 20 at each end,
        unless it is to be wide."""

        def seven(value: Any) -> str:
            return f"{value:.7g}" if isinstance(value, float) else str(value)

        end = 20
        long = len(points) > 3 * end and not self.wide
        ends = [*points[:end], *points[-end:]] if long else points
        cells = [[name, *(seven(point[name]) for point in ends)] for name in columns]
        widths = [max(map(len, column)) + 2 for column in cells]
        fit = sum(width <= 100 + 2 for width in accumulate(widths))
        shown = cells if self.wide else cells[: max(fit, 1)]
        for i, row in enumerate(zip(*shown, strict=True)):
            if long and i == end + 1:
                answer("...".rjust(widths[0])[2:])
            answer("".join(map(str.rjust, row, widths))[2:])
        if long:
            say(
                f"note: the first and the last {end} of {len(points)} points are shown: --wide "
                "shows all, --out FILE.csv saves them"
            )
        if any(name.endswith("classification_error") for name in columns):
            say(
                "note: classification_error is the share of new labels, with their noise, that the "
                "sign of the output misses; the test error is squared, and on targets without noise"
            )
        if len(shown) < len(cells):
            say(f"note: --wide also shows {', '.join(columns[len(shown) :])}")


def save(path: Path, content: bytes) -> None:
    """Write a file, and say so."""
    documents.write_file(path, content)
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
    """Send elsewhere, to standard error, what users' functions and modules print: on standard
    output there is what a command answers, so that it can be read as JSON."""
    token = ANSWERS.set(sys.stdout)
    try:
        with redirect_stdout(sys.stderr):
            yield
    finally:
        ANSWERS.reset(token)


def note_finite_size(shift: float, where: dict[str, Any], error: str) -> None:
    """Say on standard error where the limit d -> inf is farthest from networks of ordinary size: by
    ``shift``, of the ``error`` of that name."""
    if shift:
        say(
            f"note: these are limits d -> inf; at d = 1000 the {error.replace('_', ' ')} at "
            f"{_place(where)} differs by "
            f"{_change(shift)} (learning_curve(..., dimension=1000) in Python, docs/readout.md)"
        )


def note_network(difference: float, where: dict[str, Any], error: str) -> None:
    """Say on standard error where the network's own theory is farthest from that of its sRF."""
    if difference:
        say(
            f"note: these are of the published sRF; at {_place(where)} the "
            f"{error.replace('_', ' ')} of the network itself differs by {_change(difference)} "
            "(--model network)"
        )


def _change(share: float) -> str:
    """A relative change, in per cent."""
    return f"{share:+.0%}" if abs(share) > NOTED_SHIFT else f"{share:+.1%}"


def _place(where: dict[str, Any]) -> str:
    """A point in words."""
    return ", ".join(f"{name} = {text(value)}" for name, value in where.items())


def note_worse_than_zero(problem: Problem, errors: Sequence[float | None]) -> None:
    """Say on standard error where a test error is larger than E sigma_*^2, that of an output of
    zero, and what to try."""
    known = [error for error in errors if error is not None]
    if not problem.labels.binary and known:
        zero = LabelLaw(problem.target).averages(problem.inputs).power
        worse = sum(error > zero for error in known)
        other = "" if problem.intercept else "--intercept or "
        if worse:
            say(
                f"note: at {worse} of {len(known)} points the test error is above {zero:.4g}, that "
                f"of predicting 0: {other}a larger --lam may help"
            )


@contextmanager
def progress(what: str) -> Iterator[Progress]:
    """A callback (done, total): it draws a bar on standard error for a person who watches, and
    writes a line a minute to a log."""
    if not sys.stderr.isatty():
        yield _lines(what)
        return
    with bar(what) as advance:
        yield advance


def _lines(what: str) -> Progress:
    """The callback that says how far the work is, when a minute has gone since it last did."""
    start = said = time.monotonic()

    def advance(done: int, total: int) -> None:
        nonlocal said
        if (now := time.monotonic()) - said >= 60:
            said = now
            say(f"{what}: {done} of {total} after {(now - start) / 60:.0f} min")

    return advance
