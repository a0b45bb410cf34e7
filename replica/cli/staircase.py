"""``replica staircase``: which directions of a target are learned, and from how many samples."""

from pathlib import Path
from typing import Annotated, Any

import typer

from .. import documents as files
from ..errors import InvalidArgument
from ..plots import plot_staircase
from ..steps import DEGREE, THRESHOLD, Staircase
from ..steps import staircase as find_staircase
from . import common as common


def staircase(
    target: Annotated[
        str | None,
        typer.Option(help="An expression in z1 ... z4 (z1 + z1*z2), module:function or a name."),
    ] = None,
    dimension: Annotated[
        int | None, typer.Option(help="Number of directions, for a function of a module.")
    ] = None,
    degree: Annotated[int, typer.Option(help="Highest degree of the tensors.")] = DEGREE,
    threshold: Annotated[
        float, typer.Option(help="Share of the variance below which a connection is not counted.")
    ] = THRESHOLD,
    out: Annotated[Path | None, typer.Option(help="Save the stages: .csv or .json.")] = None,
    plot: common.Plot = None,
    as_json: common.Json = False,
) -> None:
    """Which directions of a target are learned, step after step, and from how many samples.

    Example: replica staircase --target "z1 + z1*z2 + z1*z2*z3" --plot staircase.png
    """
    if target is None:
        raise InvalidArgument("target", None, "given")
    common.check_outputs(out, plot, (".csv", ".json"))
    found = find_staircase(target, dimension=dimension, degree=degree, threshold=threshold)
    document = staircase_document(found)
    if out is not None:
        if out.suffix == ".csv" and not found.stages:
            raise InvalidArgument("out", str(out), ".json where there is no stage to write")
        common.save_points(out, document)
    if plot is not None:
        common.save_figure(plot, plot_staircase(found).figure)
    if as_json:
        typer.echo(files.to_json(document))
        return
    if found.stages:
        common.print_table(document["points"], list(document["points"][0]))
    typer.echo(summary(found))


def staircase_document(found: Staircase) -> dict[str, Any]:
    """The JSON document of ``staircase``: a point for every direction, in the order learned."""
    points = [
        {
            "step": step,
            "leap": stage.leap,
            "samples": "d" if stage.leap == 1 else f"d^{stage.leap}",
            "strength": float(strength),
            "direction": " ".join(f"{part:.4f}" for part in direction.round(4) + 0.0),
            "explained": stage.explained,
        }
        for step, stage in enumerate(found.stages, start=1)
        for direction, strength in zip(stage.directions, stage.strengths, strict=True)
    ]
    return {
        "target": found.target.name,
        "leap": found.leap,
        "learned_linearly": len(found.learned),
        "mean": found.mean,
        "variance": found.variance,
        "powers": found.powers,
        "tensors": [tensor.tolist() for tensor in found.tensors],
        "directions": found.directions,
        "resolution": found.resolution,
        "points": points,
    }


def summary(found: Staircase) -> str:
    """What the stages mean, in a sentence or two."""
    r, linear = found.target.dimension, len(found.learned)
    if found.leap is None:
        return (
            f"no tensor of degree 1 to {found.degree} differs from zero "
            f"(above {found.resolution:.1g} of the variance): try a higher --degree"
        )
    first = "information exponent" if r == 1 else "leap index"
    steps = f"{found.linear_stages} step{'s' * (found.linear_stages != 1)}"
    text = f"{first} {found.leap}; batches of n ~ d samples learn "
    text += f"{linear} of {r} directions, in {steps}" if linear else "nothing"
    later = [stage.leap for stage in found.stages[found.linear_stages :]]
    if later:
        text += (
            f"; then steps of n ~ {', '.join(f'd^{leap}' if leap > 1 else 'd' for leap in later)}"
        )
    if len(found.directions) < r:
        missing = r - len(found.directions)
        text += (
            f"; {missing} direction{'s' * (missing > 1)} not met up to degree {found.degree}: "
            "irrelevant, or of a higher degree"
        )
    return text + f" (fresh batches; strengths above {found.resolution:.1g} of the variance)"
