"""``replica-validate alignment``: how the neurons turn into the target's directions."""

from typing import cast

from replica.cli import SRF_FIELDS, Options, common, parse_request
from replica.errors import InvalidArgument
from replica.problem import describe
from replica.steps import GradientStep

from ..comparisons import compare_alignment
from .common import TABLES, Dimension, Rng, Seeds, print_document, single


@common.problem_options(
    without=(*SRF_FIELDS, "model", "alpha", "lam", "intercept", "train_bias", "loss")
)
def alignment(
    options: Options,
    *,
    dimension: Dimension = 500,
    seeds: Seeds = 5,
    rng: Rng = None,
    out: common.Out = None,
    as_json: common.Json = False,
) -> None:
    """Cosines of neurons and of their gradients with the target's directions, step by step.

    Averages over the neurons, each with the sign of its readout, beside the theory.
    """
    asked = parse_request(options, required=())  # no readout is trained here
    common.check_outputs(out, None, TABLES)
    problem, width = single(asked)
    if not problem.schedule or width is None:
        raise InvalidArgument("r", options.get("r"), "left out: a step is what is followed here")
    with common.progress("draws") as advance:
        comparison = compare_alignment(
            cast(GradientStep, problem),
            dimension=dimension,
            beta=width,
            seeds=seeds,
            rng=rng,
            progress=advance,
        )
    document = {
        "problem": describe(problem) | {"beta": width},
        "points": comparison.rows(),
        "dimension": dimension,
        "seeds": seeds,
    }
    if out is not None:
        common.save_points(out, document)
    print_document(document, as_json)
