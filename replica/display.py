"""Display of results: a few lines of text, the same lines as HTML in a notebook, a data frame.

Names are those of its attributes, so that what is read can be typed.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import fields
from html import escape
from textwrap import fill
from typing import TYPE_CHECKING, Any

import numpy as np

from .errors import InvalidArgument, check_names, shorten

if TYPE_CHECKING:
    import pandas

LAWS = "readout", "bias"  # settings that are a number, or a law of values and their fractions
Progress = Callable[[int, int], None]  # is told how many are done, and of how many


@contextmanager
def bar(what: str) -> Iterator[Progress]:
    """A bar of progress on standard error, or in a notebook."""
    from rich.console import Console
    from rich.progress import Progress as Bar

    with Bar(console=Console(stderr=True), transient=True) as terminal_bar:
        bar_task = terminal_bar.add_task(what, total=None)
        yield lambda done, total: terminal_bar.update(bar_task, completed=done, total=total)


def progress_callback(progress: Any, what: str) -> AbstractContextManager[Progress | None]:
    """Receiver of a computation's progress: a bar if that is asked for, a user's function, or
    nothing."""
    if progress is True:
        return bar(what)
    if callable(progress) or progress is None or progress is False:
        return nullcontext(progress if callable(progress) else None)
    raise InvalidArgument("progress", progress, "True, False or a function of (done, total)")


def report_part(report: Progress | None, part: int, count: int) -> bool | Progress:
    """Receiver of the progress of one of ``count`` equal parts, as progress of all."""
    if report is None:
        return False
    return lambda done, total: report(part * total + done, count * total)


def reasons_text(statuses: Iterable[Any]) -> str:
    """The different statuses, in the order in which they appear, each with its number of points if
    there are several.

    >>> reasons_text(["too slow", "too large", "too slow"])
    'too slow (2 of them); too large (1 of them)'
    """
    counts = Counter(map(str, statuses))
    return "; ".join(status + f" ({n} of them)" * (len(counts) > 1) for status, n in counts.items())


class Described:
    """A dataclass shown in one line, by its plain values ``described``."""

    def __new__(cls, *args: Any, **given: Any) -> "Described":
        """Raise TypeError for an unknown argument, with the name that was probably meant."""
        field_names = [field.name for field in fields(cls) if field.init]  # type: ignore[arg-type]
        check_names(cls.__name__, field_names, given, args)
        return object.__new__(cls)

    @property
    def described(self) -> dict[str, Any]:
        """The object in plain values: sizes in the place of arrays."""
        raise NotImplementedError

    def __repr__(self) -> str:
        return f"{type(self).__name__}({in_words(self.described)})"


class Displayed:
    """A result with a display of its ``settings``, ``_facts`` and ``_rows``."""

    @property
    def settings(self) -> dict[str, Any]:
        """Settings of the result, in plain values."""
        raise NotImplementedError

    def _facts(self) -> dict[str, Any]:
        """Values that a reader looks at first, by the name of the attribute."""
        raise NotImplementedError

    def _rows(self) -> Sequence[Mapping[str, Any]]:
        """The rows of ``to_dataframe``."""
        raise NotImplementedError

    def to_dataframe(self) -> "pandas.DataFrame":
        """The numbers as a pandas.DataFrame, a row for each point."""
        import pandas

        return pandas.DataFrame(list(self._rows()))

    def __repr__(self) -> str:
        fact_lines = self._lines()
        fact_width = max(map(len, fact_lines)) + 2
        fact_indent = (fact_width + 2) * " "
        text_lines = [
            fill(value, 96, initial_indent=f"  {name:{fact_width}}", subsequent_indent=fact_indent)
            for name, value in fact_lines.items()
        ]
        return "\n".join([type(self).__name__, *text_lines])

    def _repr_html_(self) -> str:
        html_cells = "".join(
            f"<tr><th style='text-align:left'>{escape(fact_name)}</th>"
            f"<td style='text-align:left'>{escape(fact_text)}</td></tr>"
            for fact_name, fact_text in self._lines().items()
        )
        return f"<table><caption>{type(self).__name__}</caption>{html_cells}</table>"

    def _lines(self) -> dict[str, str]:
        """The settings in one line, then the facts, as text."""
        shown_facts = {fact_name: text(fact) for fact_name, fact in self._facts().items()}
        all_facts = {"of": in_words(self.settings)} | shown_facts
        return {fact_name: shorten(fact, 600) for fact_name, fact in all_facts.items()}


def in_words(settings: Mapping[str, Any]) -> str:
    """Settings in one line.

    Examples
    --------
    >>> in_words({"student": "tanh", "noise": 0.25, "steps": [[2.0, 1.0], [2.0, 1.0]]})
    'student tanh, noise 0.25, steps (2, 1), (2, 1)'
    """
    law_names = {name for name in LAWS if np.ndim(settings.get(name, 0)) == 2}
    setting_words = {name: plain_law(x) if name in law_names else x for name, x in settings.items()}
    if np.ndim(steps := setting_words.get("steps", ())) == 2:
        setting_words["steps"] = [f"({text(pair)})" for pair in steps]
    return ", ".join(f"{name} {text(setting)}" for name, setting in setting_words.items())


def plain_law(law: Sequence[Sequence[float]]) -> Any:
    """Law of a few values, (values, fractions), in few words: its value, or values alone where they
    are equally frequent.

    Examples
    --------
    >>> plain_law([[0.5], [1.0]]), plain_law([[-1, 1], [0.5, 0.5]])
    (0.5, [-1, 1])
    >>> plain_law([[0, 1], [0.25, 0.75]])
    '0 (0.25), 1 (0.75)'
    """
    law_values, law_shares = law
    if len({*law_shares}) > 1:
        value_pairs = zip(law_values, law_shares, strict=True)
        return ", ".join(f"{law_value:g} ({law_share:.3g})" for law_value, law_share in value_pairs)
    return law_values if len(law_values) > 1 else law_values[0]


def text(value: Any) -> str:
    """A value in few characters: numbers to six digits, of many the ends.

    Examples
    --------
    >>> text(1 / 3), text(np.arange(9) / 3), text([0.5, 1]), text({"means": [0.0, 1.0]})
    ('0.333333', '0 ... 2.66667 (9 values)', '0.5, 1', '(means 0, 1)')
    """
    if isinstance(value, Mapping):
        return f"({in_words(value)})"
    if isinstance(value, (float, np.floating)):
        return f"{value:.6g}"
    if isinstance(value, (list, tuple, np.ndarray)):
        value_texts = [text(entry) for entry in np.ravel(np.asarray(value, dtype=object))]
        if len(value_texts) > 6:
            return f"{value_texts[0]} ... {value_texts[-1]} ({len(value_texts)} values)"
        return ", ".join(value_texts)
    return str(value)
