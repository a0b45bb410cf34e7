"""All options of a problem; readers of typed numbers, grids, laws, steps, mixtures and TOML files.

The help of the commands and problem files read the table; which values a field may have is for the
problem classes to say.  Problem files have the options' names as keys, a table [inputs] for the law
of the inputs, which may have a file of its own, and a table [groups] for an sRF of several groups
or spikes, whose r, c and gamma are arrays.
"""

import re
import tomllib
from dataclasses import Field, fields
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np

from solvers.results import Array

from ..errors import InvalidArgument, hint
from ..files import Wanted, open_regular, read_array
from ..observables import BEST
from ..problem import (
    ACTIVATIONS,
    MAX_NUMBER,
    READOUT_LAWS,
    Code,
    GaussianMixture,
    SpikedRandomFeatures,
    axis,
    check_points,
    is_import_path,
)
from ..steps import GradientStep

# Values by option name: text as typed, or a value of a problem file.
Options = dict[str, Any]

GRID_FORMS = "a number, a,b,c, start:stop:count or start:stop:count:log"
LARGEST_DOCUMENT = 500_000  # points, which take 2 GB
SEARCHED = ("lam", "eta")  # parameters that take BEST in the place of a number
FOLLOWING = ("alpha0", "alpha")  # an option, and its word for as many samples as the readout's


def single_number(name: str, grid: Array, otherwise: str = "") -> float:
    """The only value of a grid; one of several is refused, with what to do ``otherwise``."""
    if grid.size != 1:
        allowed_number = f"a single number here (run the command once for each{otherwise})"
        raise InvalidArgument(name, grid.tolist(), allowed_number)
    return float(grid[0])


def one_or_axis(values: Array) -> Any:
    """Number of an array of one value, as Python would be given it; the array of several."""
    return values.item() if values.size == 1 else values


def parse_grid(name: str, text: Any) -> Array:
    """Numbers meant by ``text``: one of GRID_FORMS, or numbers from a file.

    >>> parse_grid("lam", "1e-2:1:3:log").round(12).tolist()
    [0.01, 0.1, 1.0]
    """
    if not isinstance(text, str):
        return axis(name, text)
    try:
        if ":" not in text:
            return np.array([float(typed_number) for typed_number in text.split(",")])
        typed_start, typed_stop, typed_count, *typed_spacing = text.split(":")
        typed_ends, n = (float(typed_start), float(typed_stop)), int(typed_count)
        if not (
            typed_spacing in ([], ["log"]) and max(map(abs, typed_ends)) <= MAX_NUMBER and n >= 1
        ):
            raise ValueError
    except ValueError:
        word_form = f", or {BEST} alone where it is searched" if name in SEARCHED else ""
        if name == FOLLOWING[0]:
            word_form = f", or {FOLLOWING[1]} alone: as many as the readout's"
        raise InvalidArgument(name, text, GRID_FORMS + word_form) from None
    if typed_spacing and min(typed_ends) <= 0:
        positive_form = "between positive numbers where it is start:stop:count:log"
        raise InvalidArgument(name, text, positive_form)
    check_points(name, [n], LARGEST_DOCUMENT, text)
    return np.geomspace(*typed_ends, n) if typed_spacing else np.linspace(*typed_ends, n)


def parse_law(text: Any) -> Any:
    """Law as typed: numbers or names, separated by commas, as a list.

    Anything else is returned as it is, for the constructor to check.
    """
    if not isinstance(text, str):
        return text
    typed_values = text.split(",")
    try:
        return [float(law_item) for law_item in typed_values]
    except ValueError:
        return text if len(typed_values) == 1 else [law_item.strip() for law_item in typed_values]


def parse_steps(text: str | list[list[float]]) -> list[list[float]]:
    """Pairs (alpha0, eta) as typed, "2:1,2:1", or from a file.

    >>> parse_steps("2:1,inf:.5")
    [[2.0, 1.0], [inf, 0.5]]
    """
    if not isinstance(text, str):
        return text
    try:
        typed_pairs = [typed_pair.split(":") for typed_pair in text.split(",")]
        return [[float(alpha0), float(eta)] for alpha0, eta in typed_pairs]
    except ValueError:
        raise InvalidArgument("steps", text, "pairs alpha0:eta, as in 2:1,2:1,4:.5") from None


# The file that ``replica init`` writes: of every option its meaning and an example of its value.
OPTION_FILE = (
    (files("replica.cli") / "problem.toml")
    .read_text("utf-8")
    .format(
        # through a jump there is no gradient
        activations=", ".join(ACTIVATIONS).replace("sign", "sign (of an sRF alone)"),
        readout_laws=", ".join(READOUT_LAWS),
        grid_forms=GRID_FORMS,
    )
)
PANELS: dict[str, dict[str, str]] = {}  # the help of every option, in the panels of the commands
_comments: list[str] = []
for _line in OPTION_FILE.splitlines():
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
GROUP_FIELDS = (*SRF_FIELDS, "fractions", "bias")  # the keys of the table [groups]


MOST_TOML_BYTES = 2**20  # bytes: a thousand times a long problem file, read in seconds
# Arrays that each option accepts, once read as float64.
NUMBERS, MATRIX = (Wanted((axes, axes), "biuf", 8) for axes in (1, 2))
MIXTURE_KEYS = {"means": MATRIX, "covariances": MATRIX._replace(axes=(2, 3)), "fractions": NUMBERS}


def read_mixture(mixture: Any) -> GaussianMixture:
    """Gaussian mixture of a TOML file, of a table of one, or of an inline table as typed.

    Its keys hold lists, or names of files beside it.  Mistakes are InvalidArgument of --inputs.
    """
    means_line = 'means = [[1, 0], [-1, 0]], or typed, --inputs "{means=[[1,0],[-1,0]]}"'
    typed, folder = "[inputs]" if isinstance(mixture, dict) else str(mixture), Path()
    if isinstance(mixture, dict):
        mixture_table = mixture
    elif typed.lstrip().startswith(("{", "[")):
        mixture_table = parse_toml("inputs", typed, f"inputs = {typed}".encode())["inputs"]
    else:
        mixture_table, folder = read_toml("inputs", Path(typed)), Path(typed).parent
    typed_keys = {*mixture_table} if isinstance(mixture_table, dict) else set()
    if not {"means"} <= typed_keys <= MIXTURE_KEYS.keys():
        listed_keys = f"{', '.join(MIXTURE_KEYS)}, the first given: {means_line}"
        for key in sorted(typed_keys - {*MIXTURE_KEYS})[:1]:
            listed_keys += f"; not {key:.60}{hint(key, MIXTURE_KEYS)}"
        raise InvalidArgument("inputs", typed, f"a table of {listed_keys}")
    try:
        mixture_arrays = {
            name: read_array(name, folder / x, MIXTURE_KEYS[name]) if isinstance(x, str) else x
            for name, x in mixture_table.items()
        }
        return GaussianMixture(**mixture_arrays)
    except InvalidArgument as error:
        allowed_table = f"a table whose {error.name} are {error.allowed}, not {error.value!s:.60}"
        raise InvalidArgument("inputs", typed, allowed_table) from None


def read_toml(name: str, path: Path) -> dict[str, Any]:
    """Content of the TOML file that the option ``name`` names, of a reasonable size."""
    try:
        with open_regular(path) as toml_file:
            toml_bytes = toml_file.read(MOST_TOML_BYTES + 1)
    except (OSError, ValueError) as error:
        raise InvalidArgument(name, str(path), f"a readable TOML file ({error})") from None
    return parse_toml(name, str(path), toml_bytes)


def parse_toml(name: str, source: str, content: bytes) -> dict[str, Any]:
    """Values of the TOML that the option ``name`` means by a ``source``."""
    # a key of many parts, a.b.c..., takes the reader a time of their square
    deep_key = r"""(?<![\w-])(?:(?:[\w-]++|"[^"\n]*+"|'[^'\n]*+')[ \t]*+\.[ \t]*+){20}"""
    try:
        toml_text = content.decode()
        if len(content) > MOST_TOML_BYTES or re.search(deep_key, toml_text):
            raise ValueError(f"larger than {MOST_TOML_BYTES} bytes, or keys of 20 parts and more")
        return tomllib.loads(toml_text)
    except (ValueError, RecursionError) as error:
        allowed_toml = f"readable TOML, with 0.5 for .5 and text in quotes ({error})"
        raise InvalidArgument(name, source, allowed_toml) from None


def read_config(path: Path, *, allow_import: bool = False) -> Options:
    """The options in a TOML problem file; one with other keys is refused, and so is one that names
    code to import, unless that is allowed."""
    config_options = read_toml("config", path)
    for option_name, value in config_options.items():
        if option_name not in (*HELP, "groups"):
            allowed = f"a file without {option_name}, which is no option{hint(option_name, HELP)}"
            raise InvalidArgument("config", str(path), allowed)
        holds_files = option_name in (*GIVEN_FILES, "bias", "inputs")
        if is_import_path(value) and not (holds_files or allow_import):
            allowed = f"free of code: --allow-import lets {option_name} = {value} import and run it"
            raise InvalidArgument("config", str(path), allowed)
    return as_typed(config_options) if allow_import else config_options


def as_typed(options: Options) -> Options:
    """The options, with text that names code as ``Code``, which may be imported."""
    return {
        name: Code(value) if is_import_path(value) else value for name, value in options.items()
    }
