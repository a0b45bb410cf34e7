"""Files that are read and written: arrays, tables of text, documents."""

from .arrays import Readable, Source, Wanted, decoded, file_and_name, read_array
from .documents import (
    TEMPORARY,
    check_writable,
    open_regular,
    plain,
    to_csv,
    to_json,
    to_tex,
    write_file,
)
from .tables import is_number
