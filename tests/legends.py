"""The legend of a panel, wherever it has room."""


def legend_of(ax):
    """The legend of ``ax``: its own, or the one under the panels below it; None without entries."""
    own = (panel.get_legend() for panel in [ax, *ax.figure.axes])
    return next((box for box in own if box is not None), None)


def labels(ax):
    """Texts of the legend of ``ax``."""
    box = legend_of(ax)
    return [text.get_text() for text in box.get_texts()] if box else []
