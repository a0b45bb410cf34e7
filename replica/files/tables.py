"""Tables of CSV and TSV files as data frames of pandas."""

import csv
import re
from collections.abc import Sequence
from io import StringIO
from typing import Any

import numpy as np

from solvers.results import Array


def read_table(text: str) -> Any:
    """The table of a file's ``text``, a pandas.DataFrame: columns have the names of the header, or
    numbers from 0; one without a name, an index as pandas writes it, has the name "", and is the
    index where it is the first.

    Raises
    ------
    ValueError
        If lines have different numbers of cells.

    Examples
    --------
    >>> read_table(",a,kind\\n3,1.5,cat\\n5,,dog\\n").to_dict("list")
    {'': [3, 5], 'a': [1.5, nan], 'kind': ['cat', 'dog']}
    """
    import pandas

    if excel_line := re.match(r"(?i)sep=([^\r\n])\r?\n", text):  # no row: it names the separator
        text = text[excel_line.end() :]
    first_line = text.partition("\n")[0]
    if ";" in first_line or "\t" in first_line:  # commas of decimals part no cells
        first_line = re.sub(r"\d,\d", "", first_line)
    separator = excel_line[1] if excel_line else max(",;\t", key=first_line.count)
    csv_rows = csv.reader(StringIO(text, newline=""), delimiter=separator)
    row_at_line = {csv_rows.line_num + bool(excel_line): row for row in csv_rows if row}
    cell_count = len(next(iter(row_at_line.values()), []))
    for line, row in row_at_line.items():
        if len(row) != cell_count:
            fault = f"{cell_count} cells in its first line, {len(row)} in line {line} of the file"
            comments = "; no comments before its header: pandas.read_csv(..., comment='#')"
            raise ValueError(fault + comments * text.startswith("#"))
    columns = [*zip(*row_at_line.values(), strict=True)]
    header_rows = int(has_header(columns))
    csv_table = pandas.DataFrame({k: typed(one[header_rows:]) for k, one in enumerate(columns)})
    if header_rows:
        column_names = (header_column[0].strip() for header_column in columns)
        csv_table.columns = [re.sub(r"^Unnamed: 0(\.\d+)?$", "", header) for header in column_names]
        if csv_table.columns[0] == "":
            csv_table.index = csv_table.iloc[:, 0].array
    return csv_table


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


def is_decimal(cell: Any) -> bool:
    """True if ``cell`` is a number, with a point or a comma.

    >>> is_decimal("1,5"), is_decimal("1.5"), is_decimal("1,500.0")
    (True, True, False)
    """
    return is_number(str(cell).replace(",", "."))


def typed(cells: Sequence[str]) -> Array:
    """Whole numbers, else numbers, NaN where there are none or ``NA``, else text, without blanks
    around.

    >>> [typed(cells).tolist() for cells in (["1", " 2"], ["1", "", "NA"], ["1", "cat "])]
    [[1, 2], [1.0, nan, nan], ['1', 'cat']]
    """
    stripped = [cell.strip() for cell in cells]
    if all(re.fullmatch(r"[+-]?\d{1,18}", cell) for cell in stripped):
        return np.array(stripped, dtype=int)
    numbers = ["nan" if cell in ("", "NA", "N/A", "null", "None") else cell for cell in stripped]
    return np.array(numbers, dtype=float) if all(map(is_number, numbers)) else np.array(stripped)


def has_header(columns: Sequence[Sequence[str]]) -> bool:
    """True if the first cells of ``columns`` are their names: they have text that is not in the
    same column again; or they are three consecutive whole numbers or more, some of them new in
    their columns.

    >>> has_header([("x", "1"), ("y", "cat")]), has_header([("1", "2"), ("cat", "cat")])
    (True, False)
    """
    named_columns = [column for column in columns if column[0].strip()]
    if text_columns := [column for column in named_columns if not is_decimal(column[0])]:
        return not any(column[0] in column[1:] for column in text_columns)
    first_cells = [column[0].strip() for column in named_columns]
    if len(named_columns) < 3 or not first_cells[0].isdecimal():
        return False
    start = int(first_cells[0])
    counts_up = first_cells == [str(k) for k in range(start, start + len(named_columns))]
    return counts_up and not all(column[0] in column[1:] for column in named_columns)
