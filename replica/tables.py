"""A table of CSV or TSV: its cells, its header, and the lines of pandas that mend it."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from solvers.results import Array


class TableArray(np.ndarray):
    """Numbers or text of columns of a table, with what a data frame of pandas has.

    Attributes
    ----------
    columns : sequence of str, or int without a header
        Their names in pandas.
    index : array or None
        The first column, where it has no name.
    table : CsvTable
        The table, without its cells.
    """

    columns: Sequence[str | int]
    index: Array | None
    table: "CsvTable"

    def __array_finalize__(self, made_of: Any) -> None:
        vars(self).update(getattr(made_of, "__dict__", {}))


class CsvTable(NamedTuple):
    """Cells of a CSV or TSV file.

    Attributes
    ----------
    path, separator
        The file, and what parts its cells.
    header : sequence of str
        The first cells of the columns, where they are names.
    columns : sequence of sequences of str
        The cells below.
    lines : sequence of int
        The line of the file of each row.
    """

    path: Path
    separator: str
    header: Sequence[str]
    columns: Sequence[Sequence[str]]
    lines: Sequence[int]

    @property
    def names(self) -> list[str]:
        """Names of the columns, or their numbers; empty that of an index, as pandas reads one that
        it wrote."""
        stripped = [re.sub(r"^Unnamed: 0(\.\d+)?$", "", one.strip()) for one in self.header]
        return stripped or [str(k) for k in range(len(self.columns))]

    @property
    def has_index(self) -> bool:
        """True if the first column is an index."""
        return self.names[:1] == [""]

    def key(self, column: int) -> str | int:
        """The name of a column in pandas."""
        return self.header[column] if self.header else column

    def array(self, array: Array, columns: Sequence[int]) -> TableArray:
        """The ``array`` of these ``columns`` with their names."""
        named = array.view(TableArray)
        named.columns = [self.key(k) for k in columns]
        named.index = typed(self.columns[0]) if self.has_index else None
        named.table = self._replace(columns=())
        return named

    def reading(self, decimal: str = ".") -> str:
        """The call of pandas that reads the table."""
        options = f", sep={self.separator!r}" * (self.separator != ",")
        options += f", decimal={decimal!r}" * (decimal != ".") + ", index_col=0" * self.has_index
        options += ", header=None" * (not self.header)
        return f"pandas.read_csv({str(self.path)!r}{options})"

    def writing(self, index: bool = True) -> str:
        """The call of pandas that writes such a table beside the file, with its index if it has
        one."""
        new_path = self.path.with_stem(f"{self.path.stem}-new")
        options = f", sep={self.separator!r}" * (self.separator != ",")
        options += ", index=False" * (not (index and self.has_index))
        options += ", header=False" * (not self.header)
        return f"to_csv({str(new_path)!r}{options})"

    def refusal(self, column: int, row: int) -> str:
        """What is allowed in the place of a table with text in a cell; the lines that make it."""
        cell, key = self.columns[column][row], self.key(column)
        steps = [
            (f"drop(columns={key!r})", "leaves it out"),
            (f"pipe(pandas.get_dummies, columns=[{key!r}], dtype=int)", "makes numbers of text"),
            ("dropna()", "leaves out lines with gaps"),
        ]
        if any(map(is_number, self.columns[column])):
            steps.insert(0, steps.pop())
        (code, effect), *others = steps
        ways = [f"in Python {self.reading()}.{code}.{self.writing()} {effect}"]
        replaced = code.partition("(")[0]
        ways += [f"{code} in the place of {replaced} {effect}" for code, effect in others]
        ways += [f"--labels {self.path}:{self.names[column]} if these are the labels"]
        if is_number(cell) and np.isinf(float(cell)):  # as dropna() leaves it
            code = "replace([numpy.inf, -numpy.inf], numpy.nan).dropna()"
            ways = [f"in Python {self.reading()}.{code}.{self.writing()} leaves out such lines"]
        elif not is_number(cell) and is_decimal(cell):
            ways = [f"in Python {self.reading(',')}.{self.writing()} writes it with decimal points"]
        return (
            f"a table of numbers, not with {cell!r} in line {self.lines[row]}, "
            f"column {self.names[column]} ({', '.join(ways)})"
        )


def is_number(entry: Any) -> bool:
    """True if ``entry`` is a number, or text of one.

    >>> is_number("1e-3"), is_number("a"), is_number(None)
    (True, False, False)
    """
    try:
        float(entry)
    except (TypeError, ValueError, OverflowError):
        return False
    return True


def is_decimal(cell: str) -> bool:
    """True if ``cell`` is a number, with a point or a comma.

    >>> is_decimal("1,5"), is_decimal("1.5"), is_decimal("1,500.0")
    (True, True, False)
    """
    return is_number(cell.replace(",", "."))


def typed(cells: Sequence[str]) -> Array:
    """Whole numbers, else numbers, else text, without blanks around.

    >>> [typed(cells).tolist() for cells in (["1", " 2"], ["1", "2.5"], ["1", "cat "])]
    [[1, 2], [1.0, 2.5], ['1', 'cat']]
    """
    stripped = [cell.strip() for cell in cells]
    all_whole = all(re.fullmatch(r"[+-]?\d{1,18}", cell) for cell in stripped)
    kind = int if all_whole else float if all(map(is_number, stripped)) else str
    return np.array(stripped, dtype=kind)


def has_header(columns: Sequence[Sequence[str]]) -> bool:
    """True if the first cells of ``columns`` are their names: they have text that is not in the
    same column again; or they are three consecutive whole numbers or more, some of them new in
    their columns.

    >>> has_header([("x", "1"), ("y", "cat")]), has_header([("1", "2"), ("cat", "cat")])
    (True, False)
    """
    named = [column for column in columns if column[0].strip()]
    if text := [column for column in named if not is_decimal(column[0])]:
        return not any(column[0] in column[1:] for column in text)
    first_cells = [column[0].strip() for column in named]
    if len(named) < 3 or not first_cells[0].isdecimal():
        return False
    start = int(first_cells[0])
    counts = first_cells == [str(k) for k in range(start, start + len(named))]
    return counts and not all(column[0] in column[1:] for column in named)
