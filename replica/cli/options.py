"""The options that describe a problem: which there are, and what their text means.

An option is a field of :class:`GradientStep` or :class:`SpikedRandomFeatures` that has a help text,
or an argument of :func:`replica.solve`.  Here text becomes numbers and lists; which of them a field
may have, and which it has unless given, is for those classes to say.
"""

from collections.abc import Container, Sequence
from dataclasses import Field, dataclass, fields
from typing import Any

import numpy as np

from solvers.results import Array

from ..convex import Loss, loss
from ..errors import InvalidArgument
from ..observables import grid_axes, models_on_grid
from ..problem import (
    Activation,
    Problem,
    SpikedRandomFeatures,
    activation,
    check_points,
    is_import_path,
    laws_by_name,
)
from ..steps import MODELS, GradientStep
from .mixture_file import read_mixture
from .values import (
    GRID_FORMS,
    LARGEST_DOCUMENT,
    Options,
    parse_grid,
    parse_law,
    parse_steps,
    single_number,
)

STEP_FIELDS, SRF_FIELDS = ("alpha0", "eta"), ("r", "c", "gamma")
# What may be a grid of numbers, in the order of the axes; the readout may be one of names.
GRIDS = (
    *STEP_FIELDS, "rate", *SRF_FIELDS, "beta", "noise", "step_noise", "decay", "alpha", "samples",
    "lam",
)  # fmt: skip
# What is given in files, in the place of a problem.
GIVEN_FILES = ("weights", "directions", "features", "labels", "strata")

FIELDS: dict[str, Field[Any]] = {
    f.name: f
    for kind in (GradientStep, SpikedRandomFeatures)
    for f in fields(kind)
    if "help" in f.metadata
}
FLAGS = tuple(name for name, f in FIELDS.items() if f.type is bool)


def _help(f: Field[Any]) -> str:
    """The help text of a field, with the number that it is unless given."""
    text = str(f.metadata["help"])
    number = isinstance(f.default, float)
    return f"{text.removesuffix('.')} ({f.default:g} unless given)." if number else text


HELP = {name: _help(f) for name, f in FIELDS.items()} | {
    "kinks": "Where a student or target module:function bends or jumps: -1,1.",
    "rate": "Learning rate eta/d = eta~ beta, in the place of --eta: the same at every beta.",
    "model": "Theory of a step: srf, as published (unless given, of replica), or network, the "
    "network itself (of replica-validate).",
    "alpha": f"Readout samples n/d: like all numbers here {GRID_FORMS}.",
    "samples": "Readout samples n, with --weights or --features: numbers, which are rounded.",
    "eta": f"{_help(FIELDS['eta']).removesuffix('.')}; best in replica curve.",
    "lam": "Ridge penalty lambda; best in replica curve and replica readout.",
    "loss": "square (unless given), huber:D, absolute, quantile:Q; on labels +-1 also logistic, "
    "hinge, squared_hinge.",
    "weights": "First layer (p, d): W.npy, or one of the arrays of FILE.npz, FILE.safetensors or "
    "FILE.onnx, as FILE.npz:NAME.",
    "directions": "The target's directions, (d,) or (d, T), orthonormal: such a file.",
    "inputs": "TOML file with means, covariances, fractions of Gaussian inputs: lists, or names of "
    "files beside it.  N(0, I) unless given.",
    "features": "Features (N, p), in the place of --weights: such a file.",
    "labels": "Their labels (N,), real numbers or classes: such a file.",
    "classes": "Names of the classes of --labels, a,b,c, in the order of --confusion, or all: of "
    "labels that are floats, or of more than 20 values; or none: these are numbers.",
    "strata": "Ids (N,) of strata in which features are Gaussian: such a file.  Every row is a "
    "stratum unless given.",
}
HELP_PANELS = {  # in this order
    "The network and its step": (
        "student", "target", "kinks", "alpha0", "eta", "rate", "steps", "step_target",
        "step_noise", "decay", "beta", "readout", "bias", "initialisation", "model",
    ),
    "Spiked random features, in the place of a step": SRF_FIELDS,
    "A given first layer, or given features": (*GIVEN_FILES, "classes"),
    "The readout and its data": (
        "inputs", "alpha", "samples", "lam", "loss", "noise", "label_noise", "intercept",
        "train_bias",
    ),
}  # fmt: skip
HELP = {name: HELP[name] for names in HELP_PANELS.values() for name in names}
OF_PROBLEMS = tuple(name for name in HELP if name not in (*GIVEN_FILES, "classes", "samples"))


@dataclass(frozen=True)
class Request:
    """What the options ask for.

    Attributes
    ----------
    problem : GradientStep or SpikedRandomFeatures
        With the first value of every grid.
    alpha, lam : (n,), (m,)
        Empty if not given.
    grids : dict of name -> (n,)
        The fields of the problem that vary; in any case the width of a step's model, and a rate
        that follows it.
    model : str or None
        Which of ``steps.MODELS`` was named, if any.
    loss : Loss
    """

    problem: Problem
    alpha: Array
    lam: Array
    grids: dict[str, Array]
    model: str | None
    loss: Loss

    def refuse_grids(self, *, allowed: Container[str] = ()) -> None:
        """Refuse grids of model fields that are not among ``allowed``."""
        for name, grid in self.grids.items():
            if name not in allowed:
                single_number(name, grid)

    def single_model(self) -> SpikedRandomFeatures:
        """The only model asked for; grids of model fields are refused."""
        self.refuse_grids()
        (model,) = models_on_grid(self.problem, self.grids)
        return model


def parse_request(
    options: Options,
    required: Sequence[str] = ("alpha", "lam"),
    searched: Container[str] = (),
) -> Request:
    """The problem and grids that ``options`` describe; what is missing, contradictory or out of
    range is refused.  Of alpha and lam, what is not ``required`` may be missing: an empty grid.
    Of what is ``searched`` the best is asked for: it is 1, which is as good as any other."""
    for name in options:
        if name not in (*OF_PROBLEMS, "groups"):
            allowed = "left out here (replica readout takes it)"
            raise InvalidArgument(name, options[name], allowed)
    for name in ("student", "target", *required):
        if name not in options:
            raise InvalidArgument(name, None, "given")
    is_step = _way(options) in ("a step", "several steps")
    model = options.get("model")
    if model not in (None, *MODELS) or (model == "network" and not is_step):
        raise InvalidArgument("model", model, "srf or network, the latter with a step")
    if not is_step:
        own = {f.name for f in fields(SpikedRandomFeatures)}
        for name in FIELDS:
            if name in options and name not in own:
                raise InvalidArgument(name, options[name], "given with a step (--alpha0, --eta)")
    groups = options.get("groups", {})
    if "bias" in groups and "bias" in options:
        raise InvalidArgument("bias", options["bias"], "given once: here or in [groups]")

    numbers = {
        name: np.ones(1) if name in searched else parse_grid(name, options[name])
        for name in GRIDS
        if name in options
    }
    alpha, lam = (numbers.pop(name, np.empty(0)) for name in ("alpha", "lam"))
    grids = {name: grid for name, grid in numbers.items() if grid.size > 1 or name == "rate"}
    sizes = (max(1, grid.size) for grid in (alpha, lam, *grids.values()))
    check_points("all options together", sizes, LARGEST_DOCUMENT)
    values = {name: options[name] for name in FIELDS if name in options} | groups
    values |= {name: float(grid[0]) for name, grid in numbers.items()}
    for name in ("readout", "bias"):
        if name in values:
            values[name] = parse_law(values[name])
    if "inputs" in options:
        values["inputs"] = read_mixture(options["inputs"])
    laws = values.get("readout")
    if isinstance(laws, list) and laws and isinstance(laws[0], str):
        grids["readout"], values["readout"] = laws_by_name("readout", laws), laws[0]
    if "kinks" in options:
        values |= with_kinks(options)
    if "steps" in values:
        values["steps"] = parse_steps(values["steps"])

    problem: Problem
    if is_step:
        beta = values.pop("beta", SpikedRandomFeatures.beta)
        if "rate" in values:
            values["eta"] = values.pop("rate") / beta
        problem = GradientStep(**values)
        if model == "network":
            problem = problem.network(beta=beta)
        else:
            grids.setdefault("beta", np.array([beta]))
    else:
        problem = SpikedRandomFeatures(**values)
    grids = grid_axes(problem, grids)
    return Request(problem, alpha, lam, grids, model, loss(options.get("loss")))


def _way(options: Options) -> str:
    """In which of several ways the problem is given: in one, and by all options of that."""
    all_ways = {
        "a step": ("alpha0", "rate") if "rate" in options else STEP_FIELDS,
        "several steps": ("steps",),
        "an sRF": SRF_FIELDS,
        "groups": ("groups",),
    }
    if {"rate", "eta"} <= options.keys():
        raise InvalidArgument("rate", options["rate"], "given without --eta, which is rate/beta")
    given = {way: [name for name in names if name in options] for way, names in all_ways.items()}
    ways = [way for way, names in given.items() if names] or ["a step"]
    if len(ways) > 1:
        first, second = ways[:2]
        name = given[first][0]
        raise InvalidArgument(
            name,
            options[name],
            f"given without --{given[second][0]}: {first} ({', '.join(all_ways[first])}) or "
            f"{second} ({', '.join(all_ways[second])}), not both",
        )
    needed = all_ways[ways[0]]
    for name in needed:
        if name not in options:
            others = [f"--{other}" for other in needed if other != name]
            raise InvalidArgument(name, None, f"given, with {' and '.join(others)}")
    return ways[0]


def with_kinks(options: Options) -> dict[str, Activation]:
    """The student and the target as far as they are a user's functions, with the kinks given: one
    too many does no harm."""
    own = [name for name in ("student", "target") if is_import_path(options[name])]
    if not own:
        raise InvalidArgument("kinks", options["kinks"], "left out: no function is a module's")
    kinks = tuple(parse_grid("kinks", options["kinks"]).tolist())
    return {name: activation(options[name], name, kinks) for name in own}
