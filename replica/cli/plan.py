"""``replica plan``: how to spend samples on the two layers."""

from typing import Annotated

import typer

from ..errors import InvalidArgument
from ..observables import SECONDS, sample_allocation
from .common import TimeLimit, command
from .option_table import SRF_FIELDS
from .options import parse_request
from .output import Output, answer, note_edges, say
from .values import BEST, COMMANDS_OF_BEST, Options, parse_grid, single_number

UNUSED = ("alpha0", "alpha", "theory", "loss", "steps", "reuse", "dimension", *SRF_FIELDS)
# by the theory of reused samples
NOT_COVERED = (
    "inputs", "separation", "step_target", "step_noise", "decay", "intercept", "train_bias",
)  # fmt: skip


@command(without=(*UNUSED, *NOT_COVERED))
def plan(
    options: Options,
    output: Output,
    *,
    budget: Annotated[str, typer.Option(help="All samples over the input dimension, N/d.")],
    parts: Annotated[
        str, typer.Option(help="Shares of them that are tried for a layer: 0.25,0.5,0.75.")
    ] = "0.5",
    time_limit: TimeLimit = SECONDS,
) -> bool:
    """The best use of N samples: all for both layers, or some for each.

    A row for every use: alpha0 samples over dimension for the step, alpha for the readout, of which
    a share reuse are the step's; errors at its best penalty, unless --lam is given, and with
    --eta best at its best learning rate.  Of splits the best is searched.  It is the theory of the
    network itself.

    In Python: replica.sample_allocation.

    Examples
    --------
    replica plan --student tanh --target sin --eta 3 --budget 4

    replica plan --student relu --target relu --eta 1 --noise 0.3 --budget 4 --parts 0.25,0.5,0.75
    --plot plan.png
    """
    options = {"lam": BEST} | options
    searched = [name for name in COMMANDS_OF_BEST if options.get(name) == BEST]
    required = ("rate" if "rate" in options else "eta", "lam")
    # a step has samples of its own also where their number is asked for: any will do
    request = parse_request({"theory": "network"} | options | {"alpha0": 1.0}, required, searched)
    model = request.single_model()
    if not request.loss.is_square:
        raise InvalidArgument("loss", request.loss.name, "the square, of which plans are")
    if request.theory != "network":
        raise InvalidArgument("theory", request.theory, "network: an sRF reuses no samples")
    if model.reuse:
        raise InvalidArgument("reuse", model.reuse, "left out: what is reused is what is planned")
    found = sample_allocation(
        model,
        budget=single_number("budget", parse_grid("budget", budget)),
        beta=model.beta,
        lam=BEST if "lam" in searched else single_number("lam", request.lam),
        eta=BEST if "eta" in searched else None,
        parts=parse_grid("parts", parts).tolist(),
        time_limit=time_limit,
    )
    document = found.document()
    rows = document["points"]

    def show() -> None:
        output.table(rows, [name for name in rows[0] if name != "at_edge"])
        answer(f"Best: {found.best.use}.")

    output.write(document, show, figure=lambda: found.plot().figure, rows=rows)
    note_edges([one.at_edge for one in found.plans])
    for note in found.notes:
        say(f"note: {note}")
    return found.converged
