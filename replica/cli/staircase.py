"""``replica staircase``: which directions of a target are learned, and from how many samples."""

from typing import Annotated, Any

import typer

from ..errors import InvalidArgument
from ..plotting import plot_staircase
from ..steps import THRESHOLD, Staircase
from ..steps import staircase as staircase_of
from .common import command
from .option_table import Options, parse_law
from .printing import Output, answer
from .problem_file import read_mixture


@command(offered=("student", "bias", "target", "inputs"))
def staircase(
    options: Options,
    output: Output,
    *,
    dimension: Annotated[
        int | None, typer.Option(help="Number of directions, for a function of a module.")
    ] = None,
    degree: Annotated[
        int | None, typer.Option(help="Highest degree of the tensors: 4, with --inputs 1.")
    ] = None,
    threshold: Annotated[
        float, typer.Option(help="Share of the variance below which a connection is not counted.")
    ] = THRESHOLD,
) -> None:
    """Directions of a target that are learned, step after step, and from how many samples.

    A row for every direction: the step that learns it, from that many samples; leap is their
    exponent, explained the share of the target's variance in reach.  A --student sees the degrees
    of the target that its own coefficients leave: relu without a --bias never learns z3 here.  With
    --inputs it is what steps from n ~ d samples can reach.  In Python: replica.staircase.

    Examples
    --------
    replica staircase --student relu --bias 0.7 --target "z1 + z1*z2 + z1*z2*z3" --plot stairs.png

    replica staircase --student tanh --target "sign(z1) + he2(z2)" --degree 3
    """
    if "target" not in options:
        raise InvalidArgument("target", None, "given")
    result = staircase_of(
        options["target"],
        inputs=read_mixture(options["inputs"]) if "inputs" in options else None,
        student=options.get("student"),
        bias=parse_law(options.get("bias", 0.0)),
        dimension=dimension,
        degree=degree,
        threshold=threshold,
    )
    kind = output.out.suffix.lower() if output.out is not None else ""
    if kind in (".csv", ".tex") and not result.stages:
        raise InvalidArgument("out", str(output.out), ".json where there is no stage to write")
    document = staircase_document(result)

    def show() -> None:
        if result.stages:
            output.table(document["points"], list(document["points"][0]))
        answer(summary(result))

    output.write(document, show, figure=lambda: plot_staircase(result).figure)


def staircase_document(result: Staircase) -> dict[str, Any]:
    """The JSON document of ``staircase``: a point for every direction, in the order learned."""
    points = [
        {
            "step": step,
            "leap": stage.leap,
            "samples": _power(stage.leap),
            "strength": float(strength),
            "direction": " ".join(f"{part:.4f}" for part in direction.round(4) + 0.0),
            "explained": stage.explained,
        }
        for step, stage in enumerate(result.stages, start=1)
        for direction, strength in zip(stage.directions, stage.strengths, strict=True)
    ]
    names = ("leap", "mean", "variance", "powers", "directions", "resolution")
    return {name: getattr(result, name) for name in names} | {
        **result.settings,
        "learned_linearly": len(result.learned),
        "tensors": [tensor.tolist() for tensor in result.tensors],
        "points": points,
    }


def summary(result: Staircase) -> str:
    """Meaning of the stages, in a sentence or two."""
    r, linear = result.dimension, len(result.learned)
    if result.leap is None:
        if result.inputs is not None:
            return "no steps on n ~ d samples learn any direction on these inputs"
        return (
            f"no tensor of degree 1 to {result.degree} differs from zero "
            f"(above {result.resolution:.1g} of the variance): try a higher --degree"
        )
    first = "information exponent" if r == 1 else "leap index"
    text = f"{first} {result.leap}; batches of n ~ d samples learn "
    steps = _counted(result.linear_stages, "step")
    text += f"{linear} of {r} directions, in {steps}" if linear else "nothing"
    several = any(len(stage.directions) > 1 for stage in result.stages[: result.linear_stages])
    if several or result.inputs is not None:
        text += " or more"  # one network may take more than all do
    if later := [_power(stage.leap) for stage in result.stages[result.linear_stages :]]:
        text += f"; then steps of n ~ {', '.join(later)}"
    if missing := r - len(result.directions):
        reasons = "or of a higher degree"
        if result.student is not None:
            reasons = "of a higher degree, or not seen by this student"
        directions = _counted(missing, "direction")
        text += f"; {directions} not met up to degree {result.degree}: irrelevant, {reasons}"
    kind = ", a student that sees every degree" if result.student is None else ""
    return text + f" (fresh batches{kind}; strengths above {result.resolution:.1g} of the variance)"


def _power(leap: int) -> str:
    """The samples that a step of this leap takes."""
    return f"d^{leap}" if leap > 1 else "d"


def _counted(number: int, thing: str) -> str:
    """A number and its noun, in the plural unless it is 1."""
    return f"{number} {thing}{'s' * (number != 1)}"
