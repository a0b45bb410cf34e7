"""``replica-validate alignment``: how the neurons turn into the target's directions."""

from typing import Any, cast

from replica.cli import SRF_FIELDS, Options, Output, command, parse_request, progress
from replica.errors import InvalidArgument
from replica.problem import describe
from replica.steps import GradientStep

from ..comparisons import compare_alignment
from ..run import rows_of
from .common import DIMENSION, RNG, SEEDS, first_problem, show_points


@command(
    without=(*SRF_FIELDS, "theory", "alpha", "lam", "intercept", "train_bias", "loss", "reuse"),
    also=(DIMENSION, SEEDS, RNG),
)
def alignment(options: Options, output: Output, **told: Any) -> None:
    """Cosines of neurons and of their gradients with the target's directions, step by step.

    Averages over the neurons, each with the sign of its readout, beside the theory.

    Examples
    --------
    replica-validate alignment --student tanh --target sin --alpha0 3 --eta 1 --rng 0 --plot a.png

    replica-validate alignment --student relu --target "z1 + z1*z2" --steps 2:1,2:1,2:1 --rng 0
    """
    asked = parse_request(options, required=())  # no readout is trained here
    problem, width = first_problem(asked)
    if not problem.schedule or width is None:
        raise InvalidArgument("r", options.get("r"), "left out: a step is what is followed here")
    with progress("draws") as advance:
        comparison = compare_alignment(
            cast(GradientStep, problem), beta=width, progress=advance, **told
        )
    size = {name: told[name] for name in ("dimension", "seeds")}
    described = describe(problem) | {"beta": width}
    document = {"problem": described, "points": rows_of(comparison.columns)} | size

    def figure() -> Any:
        return comparison.plot(described=described | size).figure

    output.write(document, lambda: show_points(document, output), figure=figure)
