"""What the pages of results share: tables, means, and files that keep what is known."""

import json
from pathlib import Path

import numpy as np

from replica.files import write_file


def table(heads, rows):
    """A table in Markdown, of text."""
    lines = (heads, ["---"] * len(heads), *rows)
    return "\n".join("| " + " | ".join(cells) + " |" for cells in lines)


def paragraphs(*parts):
    """A page of them, of headings and tables."""
    return "\n\n".join(parts) + "\n"


def mean_and_error(samples):
    """The mean over seeds, the first axis, and its standard error."""
    return samples.mean(axis=0), samples.std(axis=0, ddof=1) / np.sqrt(len(samples))


def shares(z):
    """How many of some z, an array, are within two standard errors, and the largest."""
    return f"{np.mean(np.abs(z) <= 2):.0%}, {np.abs(z).max():.1f}"


def file_of(store: Path, name):
    """The file of a store that keeps what is called so."""
    return store / ("".join(c if c.isalnum() else "_" for c in name) + ".json")


def kept(file, compute):
    """What ``compute`` returned when the file was not there yet."""
    if not file.exists():
        write_file(file, json.dumps(compute()).encode())
    return json.loads(file.read_text())
