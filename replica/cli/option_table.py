"""The options that describe a problem, as the commented file ``problem.toml`` has them.

The help of the commands and problem files read it; which values a field may have is for the problem
classes to say.
"""

import re
from dataclasses import Field, fields
from importlib.resources import files
from typing import Any

from ..problem import ACTIVATIONS, READOUT_LAWS, SpikedRandomFeatures
from ..steps import GradientStep
from .values import GRID_FORMS

# The file that ``replica init`` writes: of every option its meaning and an example of its value.
TABLE = (
    (files("replica.cli") / "problem.toml")
    .read_text("utf-8")
    .format(
        activations=", ".join(ACTIVATIONS),
        readout_laws=", ".join(READOUT_LAWS),
        grid_forms=GRID_FORMS,
    )
)
PANELS: dict[str, dict[str, str]] = {}  # the help of every option, in the panels of the commands
_comments: list[str] = []
for _line in TABLE.splitlines():
    if _option := re.match(r"(?:# )?(\w+) = ", _line):
        PANELS[[*PANELS][-1]][_option[1]] = " ".join(_comments)
    elif _line:
        _comments.append(_line.removeprefix("# "))
        continue
    elif len(_comments) == 1:  # a comment by itself is a title
        PANELS[_comments[0]] = {}
    _comments.clear()
HELP = {name: text for panel in PANELS.values() for name, text in panel.items()}
_all_fields = (*fields(GradientStep), *fields(SpikedRandomFeatures))
FIELDS: dict[str, Field[Any]] = {f.name: f for f in _all_fields if f.name in HELP}
FLAGS = tuple(name for name, f in FIELDS.items() if f.type is bool)
STEP_FIELDS, SRF_FIELDS = ("alpha0", "eta"), ("r", "c", "gamma")
# Numbers, or grids of them, in the order of the axes; the readout may be a grid of names.
GRIDS = (
    *STEP_FIELDS, "rate", *SRF_FIELDS, "beta", "dimension", "noise", "step_noise", "decay",
    "separation", "alpha", "samples", "lam",
)  # fmt: skip
# Options of arrays given in files, in the place of a problem.
GIVEN_FILES = ("weights", "directions", "features", "labels", "strata")
OF_PROBLEMS = tuple(name for name in HELP if name not in (*GIVEN_FILES, "classes", "samples"))
