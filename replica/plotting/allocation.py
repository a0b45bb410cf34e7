"""The figure of uses of N samples: the test error against the share that a layer has."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from .axes import axes, finish
from .names import BEST_OF, ERROR_LABELS, best_label, number_text
from .styles import hue

if TYPE_CHECKING:
    from matplotlib.axes import Axes

BOTH = "all for both"
# Of every use: the field that varies, the label of its points, and their mark.
MARKS = {
    BOTH: ("alpha0", BOTH, "*"),
    "split": ("alpha0", "share for the step, the rest for the readout", "o"),
    "part for the step": ("alpha0", "share for the step, all for the readout", "s"),
    "part for the readout": ("alpha", "share for the readout, all for the step", "^"),
}


def plot_allocation(
    plans: Sequence[Mapping[str, Any]],
    ax: "Axes | None" = None,
    *,
    described: Mapping[str, Any] | None = None,
) -> "Axes":
    """The test error against the share of N samples that a layer is trained on.

    Parameters
    ----------
    plans : sequence of mappings
        "use", one of ``MARKS`` or "all for both", "alpha0", "alpha" and "test_error"; "lam" and
        "eta", which the label of the error calls the best where they vary.
    ax : matplotlib Axes, optional
        Where to draw; those of a new figure unless given.
    described : mapping, optional
        Settings to state in a title.

    Examples
    --------
    >>> from replica.plotting import plot_allocation
    >>> both = dict(use="all for both", alpha0=2.0, alpha=2.0, test_error=0.1)
    >>> half = dict(use="split", alpha0=1.0, alpha=1.0, test_error=0.2)
    >>> ax = plot_allocation([both, half])
    """
    ax = axes(ax)
    both = next(plan for plan in plans if plan["use"] == BOTH)
    for i, (use, (field, label, mark)) in enumerate(MARKS.items()):
        own = [plan for plan in plans if plan["use"] == use]
        if own:
            shares, errors = ([plan[name] for plan in own] for name in (field, "test_error"))
            style: dict[str, Any] = {"color": hue(i), "markersize": 10 if use == BOTH else 6}
            ax.plot(np.divide(shares, both[field]), errors, mark, label=label, **style)
    ax.set_xlim(0, 1.04)
    ax.margins(y=0.1)
    abscissa = rf"one layer's share of the $N = {number_text(both['alpha0'])}\,d$ samples"
    solved = [plan for plan in plans if np.isfinite(plan["test_error"])]
    searched = [name for name in BEST_OF if len({plan.get(name) for plan in solved}) > 1]
    return finish(ax, abscissa, ERROR_LABELS["test_error"] + best_label(searched), described)
