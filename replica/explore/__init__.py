"""The explorer: sliders and menus beside the figures of the theory, in a browser.

``app`` is the marimo notebook that ``replica explore`` starts, and only lays out; ``texts`` says
what a state of its controls means, ``views`` what is shown of it, and ``cached_results`` keeps what
was computed for it.
"""

from .cached_results import in_turn, point, simulate, simulation_command
from .texts import DEFAULTS, State
from .views import REFUSALS, VIEWS, curve_view, picture
