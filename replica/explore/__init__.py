"""The explorer: sliders and menus beside the figures of the theory, in a browser.

``app`` is the marimo notebook that ``replica explore`` starts, and only lays out; ``texts`` says
what a state of its controls means, and ``views`` what is shown of it.
"""

from .texts import DEFAULTS, State
from .views import REFUSALS, VIEWS, Simulated, View, curve_view, point, simulate

__all__ = [
    "DEFAULTS",
    "REFUSALS",
    "VIEWS",
    "Simulated",
    "State",
    "View",
    "curve_view",
    "point",
    "simulate",
]
