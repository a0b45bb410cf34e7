"""The explorer: sliders and menus beside the figures of the theory, in a browser.

``app`` is the marimo notebook that ``replica explore`` starts, and only lays out; ``texts`` says
what a state of its controls means, ``views`` what is shown of it, and ``guard`` who may talk to it.
"""

from .computed import point
from .guard import OPEN, Guard
from .simulation import ALONE, SimulatedCurve, simulate, simulation_command
from .texts import DEFAULTS, State
from .views import REFUSALS, VIEWS, View, curve_view

__all__ = [
    "ALONE",
    "DEFAULTS",
    "OPEN",
    "REFUSALS",
    "VIEWS",
    "Guard",
    "SimulatedCurve",
    "State",
    "View",
    "curve_view",
    "point",
    "simulate",
    "simulation_command",
]
