"""The Request that options make: a problem, in one of four ways, its grids and points."""

from collections.abc import Container, Sequence
from dataclasses import dataclass, fields

import numpy as np

from solvers.results import Array

from ..convex import Loss, loss
from ..errors import InvalidArgument, hint
from ..observables import BEST, grid_axes, models_on_grid, ratio_note
from ..problem import (
    SINGLE_STEP,
    Activation,
    Problem,
    SpikedRandomFeatures,
    activation,
    check_points,
    is_import_path,
    laws_by_name,
    separated,
)
from ..steps import THEORIES, GradientStep
from .option_table import (
    FIELDS,
    FOLLOWING,
    GRIDS,
    GROUP_FIELDS,
    HELP,
    LARGEST_DOCUMENT,
    OF_PROBLEMS,
    SRF_FIELDS,
    STEP_FIELDS,
    Options,
    parse_grid,
    parse_law,
    parse_steps,
    read_mixture,
    single_number,
)
from .printing import say


@dataclass(frozen=True)
class Request:
    """Problem and points that the options ask for.

    Attributes
    ----------
    problem : GradientStep or SpikedRandomFeatures
        The problem at the first value of every grid.
    alpha, lam : (n,), (m,)
        Empty if not given.
    grids : dict of name -> (n,)
        The fields of the problem that vary; in any case the width of a step's model, and a rate
        that follows it.
    theory : str or None
        Which of ``steps.THEORIES`` was named, if any.
    loss : Loss
    """

    problem: Problem
    alpha: Array
    lam: Array
    grids: dict[str, Array]
    theory: str | None
    loss: Loss

    def refuse_grids(self, *, allowed: Container[str] = (), otherwise: str = "") -> None:
        """Refuse grids of model fields not among ``allowed``, with what to do ``otherwise``."""
        for option_name, typed_grid in self.grids.items():
            if option_name not in allowed:
                single_number(option_name, typed_grid, otherwise)

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
    """The problem and the grids that ``options`` describe.

    Grids of alpha and lam that are not ``required`` are empty if they are missing.  Parameters that
    are ``searched`` for their best value are 1 here.

    Raises
    ------
    InvalidArgument
        If an option is missing, out of range, or contradicts another.
    """
    for name in options:
        if name not in (*OF_PROBLEMS, "groups"):
            allowed_option = "left out here (replica readout takes it)"
            raise InvalidArgument(name, options[name], allowed_option)
    for name in ("student", "target", *required):
        if name not in options:
            raise InvalidArgument(name, None, f"given: {HELP[name]}")
    is_step = _way(options) in ("a step", "several steps")
    reuse = single_number("reuse", parse_grid("reuse", options.get("reuse", 0.0)))
    typed_theory = options.get("theory", "network" if reuse else None)
    if reuse and not (typed_theory == "network" and is_step):
        raise InvalidArgument("reuse", reuse, "given with a step, and not with the theory srf")
    if typed_theory not in (None, *THEORIES) or (typed_theory == "network" and not is_step):
        allowed_option = f"srf or network, the latter with a step{hint(typed_theory, THEORIES)}"
        raise InvalidArgument("theory", typed_theory, allowed_option)
    if not is_step:
        model_fields = {f.name for f in fields(SpikedRandomFeatures)}
        for name in FIELDS:
            if name in options and name not in model_fields:
                raise InvalidArgument(name, options[name], "given with a step (--alpha0, --eta)")
    typed_groups = options.get("groups", {})
    are_groups = isinstance(typed_groups, dict) and {*SRF_FIELDS} <= typed_groups.keys() <= {
        *GROUP_FIELDS
    }
    if "groups" in options and not are_groups:
        allowed_option = f"a table of {', '.join(GROUP_FIELDS)}, the first three given"
        raise InvalidArgument("groups", typed_groups, allowed_option)
    if "bias" in typed_groups and "bias" in options:
        raise InvalidArgument("bias", options["bias"], "given once: here or in [groups]")

    typed_numbers = {
        name: np.ones(1) if name in searched else parse_grid(name, options[name])
        for name in GRIDS
        if name in options and (name, options[name]) != FOLLOWING
    }
    typed_alpha, typed_lam = (typed_numbers.pop(name, np.empty(0)) for name in ("alpha", "lam"))
    if alpha_note := ratio_note(typed_alpha):
        say(f"note: {alpha_note}")
    grids = {name: grid for name, grid in typed_numbers.items() if grid.size > 1 or name == "rate"}
    grid_sizes = (max(1, grid.size) for grid in (typed_alpha, typed_lam, *grids.values()))
    check_points("all options together", grid_sizes, LARGEST_DOCUMENT)
    field_values = {name: options[name] for name in FIELDS if name in options} | typed_groups
    field_values |= {name: float(grid[0]) for name, grid in typed_numbers.items()}
    for name in ("readout", "bias"):
        if name in field_values:
            field_values[name] = parse_law(field_values[name])
    if "inputs" in options:
        field_values["inputs"] = read_mixture(options["inputs"])
    if "separation" in typed_numbers:
        mean_factor = field_values.pop("separation")
        if "separation" not in grids or "inputs" not in field_values:  # of a grid each has its own
            field_values["inputs"] = separated(field_values.get("inputs"), mean_factor)
    laws = field_values.get("readout")
    if isinstance(laws, list) and laws and isinstance(laws[0], str):
        grids["readout"], field_values["readout"] = laws_by_name("readout", laws), laws[0]
    if "kinks" in options:
        field_values |= with_kinks(options)
    if "steps" in field_values:
        field_values["steps"] = parse_steps(field_values["steps"])

    problem: Problem
    if is_step:
        typed_beta = field_values.pop("beta", SpikedRandomFeatures.beta)
        if "rate" in field_values:
            field_values["eta"] = field_values.pop("rate") / typed_beta
        typed_size = {
            name: field_values.pop(name) for name in ("dimension",) if name in field_values
        }
        problem = GradientStep(**field_values)
        if typed_theory == "network":
            problem = problem.network(beta=typed_beta, reuse=reuse, **typed_size)
        elif typed_size:
            problem = problem.srf(beta=typed_beta, **typed_size)
        else:
            grids.setdefault("beta", np.array([typed_beta]))
    else:
        problem = SpikedRandomFeatures(**field_values)
    grids = grid_axes(problem, grids)
    return Request(problem, typed_alpha, typed_lam, grids, typed_theory, loss(options.get("loss")))


def _way(options: Options) -> str:
    """Way in which the problem is given: one of four, with all of its options."""
    all_ways = {
        "a step": ("alpha0", "rate") if "rate" in options else STEP_FIELDS,
        "several steps": ("steps",),
        "an sRF": SRF_FIELDS,
        "groups": ("groups",),
    }
    if {"rate", "eta"} <= options.keys():
        raise InvalidArgument("rate", options["rate"], "given without --eta, which is rate/beta")
    if "steps" in options and options.get("eta") == BEST:
        raise InvalidArgument("steps", options["steps"], SINGLE_STEP)
    given = {way: [name for name in names if name in options] for way, names in all_ways.items()}
    typed_ways = [way for way, names in given.items() if names] or ["a step"]
    if len(typed_ways) > 1:
        first_way, other_way = (given[way] for way in typed_ways[:2])
        allowed_option = f"given without --{other_way[0]}: {' or '.join(typed_ways)}, not both"
        raise InvalidArgument(first_way[0], options[first_way[0]], allowed_option)
    needed_options = all_ways[typed_ways[0]]
    for name in needed_options:
        if name not in options:
            other_options = [f"--{also}" for also in needed_options if also != name]
            raise InvalidArgument(name, None, f"given, with {' and '.join(other_options)}")
    return typed_ways[0]


def with_kinks(options: Options) -> dict[str, Activation]:
    """Student and target with the given kinks, as far as they are imported functions."""
    imported_functions = [name for name in ("student", "target") if is_import_path(options[name])]
    if not imported_functions:
        raise InvalidArgument("kinks", options["kinks"], "left out: no function is a module's")
    typed_kinks = tuple(parse_grid("kinks", options["kinks"]).tolist())
    return {name: activation(options[name], name, typed_kinks) for name in imported_functions}
