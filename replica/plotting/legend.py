"""Legends that cover nothing of what is drawn, and stay in their Axes."""

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.transforms import Bbox

SMALL = "small"  # the font of legends and titles


def add_legend(ax: "Axes") -> "Axes":
    """``ax`` with a legend inside it that covers nothing: where there is no place, one is made
    above what is drawn."""
    if not any(ax.get_legend_handles_labels()):
        return ax
    options: dict[str, Any] = {"frameon": False, "fontsize": SMALL}
    box = ax.legend(loc="best", **options)
    ax.get_figure(root=True).draw_without_rendering()  # type: ignore[union-attr]
    extent = box.get_window_extent()
    fits = extent.height <= ax.bbox.height and extent.width <= ax.bbox.width
    if fits and not _covers(ax, extent):
        left, low = ax.transAxes.inverted().transform(extent.min).tolist()
        box.set_loc((left, low))  # so that it stays there
        return ax
    for columns in (4, 3, 2, 1):
        box = ax.legend(loc="upper center", ncols=columns, **options)
        extent = box.get_window_extent()
        if extent.width <= ax.bbox.width:
            break
    share = min(extent.height / ax.bbox.height + 0.04, 0.8)
    scale = ax.yaxis.get_transform()
    low, high = scale.transform(ax.get_ylim())
    data = scale.transform(ax.dataLim.intervaly)[1]
    room = low + (max(data, low) - low if np.isfinite(data) else high - low) / (1 - share)
    ax.set_ylim(top=float(scale.inverted().transform(max(room, high))))
    return ax


def _covers(ax: "Axes", extent: "Bbox") -> bool:
    """Whether a box on the canvas lies on a line, a point, an error bar or a text."""
    drawn = [(line.get_transform(), line.get_path()) for line in ax.lines]
    drawn += [(one.get_transform(), path) for one in ax.collections for path in one.get_paths()]
    paths = [transform.transform_path(path) for transform, path in drawn if np.size(path.vertices)]
    filled = [patch.get_transform().transform_path(patch.get_path()) for patch in ax.patches]
    texts = [text.get_window_extent() for text in ax.texts]
    return (
        any(path.intersects_bbox(extent, filled=False) for path in paths)
        or any(path.intersects_bbox(extent, filled=True) for path in filled)
        or any(extent.overlaps(text) for text in texts)
    )
