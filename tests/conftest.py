"""How the random examples of the property tests are drawn."""

import os

from hypothesis import settings

# On a server the same examples every time, so that a change is judged by itself; elsewhere new
# ones in every run.
settings.register_profile("ci", derandomize=True)
if os.environ.get("CI"):
    settings.load_profile("ci")
