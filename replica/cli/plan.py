"""``replica plan``: how to spend samples on the two layers."""

from typing import Annotated

import typer

from ..errors import InvalidArgument
from ..observables import SECONDS, sample_allocation
from .common import TimeLimit, command
from .options import parse_request
from .output import Output, answer, say
from .values import BEST, Options, parse_grid, single_number


@command(without=("alpha0", "alpha", "theory", "loss", "steps", "r", "c", "gamma"))
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
    a share reuse are the step's; errors at its best penalty, unless --lam is given.  Of splits the
    best is searched.  It is the theory of the network itself, and takes up to some minutes where
    labels have noise.

    In Python: replica.sample_allocation.

    Examples
    --------
    replica plan --student tanh --target sin --eta 3 --budget 4

    replica plan --student relu --target relu --eta 1 --noise 0.3 --budget 4 --parts 0.25,0.5,0.75
    --plot plan.png
    """
    total = single_number("budget", parse_grid("budget", budget))
    searched = options.get("lam", BEST) == BEST
    own = {name: value for name, value in options.items() if not (searched and name == "lam")}
    # a step has samples of its own also where their number is asked for: any will do
    request = parse_request(own | {"alpha0": 1.0}, required=() if searched else ("lam",))
    model = request.single_model()
    if model.step is None:
        raise InvalidArgument("eta", None, "given: a step is what samples are for")
    found = sample_allocation(
        model.step,
        budget=total,
        beta=model.beta,
        lam=BEST if searched else single_number("lam", request.lam),
        parts=parse_grid("parts", parts).tolist(),
        time_limit=time_limit,
    )
    document = found.document()
    rows = document["points"]

    def show() -> None:
        output.table(rows, list(rows[0]))
        answer(f"Best: {found.best.use}.")

    output.write(document, show, figure=lambda: found.plot().figure, rows=rows)
    for one in found.plans:
        if one.at_edge:
            end = "the best lam is at an end of the range searched"
            say(f"note: {one.use}, alpha0 = {one.alpha0:g}: {end}")
    return found.converged
