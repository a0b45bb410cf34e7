"""Style of figures: their sizes, colours and titles, and those for a column of a paper."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, NamedTuple

from ..errors import InvalidArgument

# No two are close for those who confuse red and green: blue, orange, plum, sky, brown, navy, grey
# and black.
COLOURS = (
    "#0072B2", "#E69F00", "#882255", "#56B4E9", "#8C510A", "#332288", "#999999", "#000000",
)  # fmt: skip
COLUMN = 5.0  # inches: narrower figures are for a column of a paper, without a title
SMALL_PRINT: Any = {"font.size": 8, "lines.linewidth": 1.2, "lines.markersize": 4}
SMALL_PRINT["savefig.dpi"] = 300  # as journals ask for
INCHES = 1.0, 100.0  # the smallest and the largest side of a figure


class Style(NamedTuple):
    """Style of figures: size in inches, with or without a title of settings, own colours or
    matplotlib's."""

    title: bool = True
    colours: bool = True
    size: tuple[float, float] = (6.0, 4.0)


USUAL, PAPER = Style(), Style(title=False, size=(3.4, 2.6))
_style = ContextVar("style", default=USUAL)


def current() -> Style:
    """Style in effect."""
    return _style.get()


@contextmanager
def style(
    name: str | None = None,
    *,
    title: bool | None = None,
    colours: bool = True,
    size: tuple[float, float] | None = None,
) -> Iterator[None]:
    """Set the style of figures drawn inside.

    Parameters
    ----------
    name : {"paper"}, optional
        Figures for a column of a paper: without a title and of 3.4 x 2.6 inches, unless said.
    title : bool
        Whether figures have a title of their settings, as they have at 5 inches or more.
    colours : bool
        Whether they have the library's colours, or those of matplotlib and your style sheet.
    size : (float, float), optional
        Width and height of new figures in inches, 6 x 4 unless given.  Where they are narrower than
        5 inches, their font is of 8 points.

    Raises
    ------
    InvalidArgument

    Examples
    --------
    >>> from replica import SpikedRandomFeatures, learning_curve
    >>> from replica.plotting import plot_curve, style
    >>> model = SpikedRandomFeatures(student="tanh", target="sin", r=1.1, c=1.0, gamma=0.97)
    >>> curve = learning_curve(model, alpha=[0.5, 1, 2], lam=0.1)
    >>> with style(title=False, colours=False):
    ...     ax = plot_curve(curve)
    >>> ax.get_title(), ax.get_lines()[0].get_color()
    ('', 'C0')
    >>> with style("paper"):
    ...     plot_curve(curve).figure.get_size_inches().tolist()
    [3.4, 2.6]
    """
    if name not in (None, "paper"):
        raise InvalidArgument("style", name, "paper, or left out")
    base_style = PAPER if name else USUAL
    try:
        width, height = (float(side) for side in (base_style.size if size is None else size))
        if not all(INCHES[0] <= side <= INCHES[1] for side in (width, height)):  # NaN too
            raise ValueError
    except (TypeError, ValueError):
        allowed = "width and height in inches, from {:g} to {:g}, such as 6x4".format(*INCHES)
        size_typed = "x".join(map(str, size)) if isinstance(size, list) else size  # as typed
        raise InvalidArgument("size", size_typed, allowed) from None
    title = base_style.title and width >= COLUMN if title is None else title
    for style_option, option_value in (("title", title), ("colours", colours)):
        if not isinstance(option_value, bool):
            raise InvalidArgument(style_option, option_value, "True or False")
    token = _style.set(Style(title, colours, (width, height)))
    try:
        if width >= COLUMN:
            yield
        else:
            import matplotlib

            with matplotlib.rc_context(SMALL_PRINT):
                yield
    finally:
        _style.reset(token)


def hue(place: int) -> str:
    """Colour number ``place`` of the style."""
    return COLOURS[place % len(COLOURS)] if current().colours else f"C{place}"
