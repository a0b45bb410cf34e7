"""``replica spectrum``: the eigenvalues of the features' covariance; and ``replica staircase``:
which directions of a target are learned, and from how many samples.
"""

from typing import Annotated, Any

import numpy as np
import typer

from solvers.resources import TIME_LIMIT

from ..errors import InvalidArgument
from ..plotting import plot_spectrum, plot_staircase
from ..problem import describe
from ..spectra import Spectrum
from ..spectra import spectrum as spectrum_of
from ..steps import THRESHOLD, Staircase
from ..steps import staircase as staircase_of
from .command_runner import TimeLimit, Tolerance, command
from .notes import note_of_spectrum, note_theory
from .option_table import LARGEST_DOCUMENT, Options, parse_law, read_mixture, single_number
from .options import parse_request
from .printing import Output, answer, rows_of, say, with_options


@command(without=("lam", "loss", "reuse", "dimension"), tabular=False)
def spectrum(
    options: Options,
    output: Output,
    *,
    quadrature_tol: Tolerance = None,
    time_limit: TimeLimit = TIME_LIMIT,
    points: Annotated[
        int, typer.Option(min=2, max=LARGEST_DOCUMENT, help="Points of the density, in all.")
    ] = 1000,
) -> bool:
    """Density, edges, atom and outliers of the eigenvalues of Phi^T Phi / n.

    Outliers grow with p, and are given to leading order; replica-validate spectrum has them at one
    p.  In Python: replica.spectrum, whose outliers_at(p) does.

    Examples
    --------
    replica spectrum --student tanh --target sin --alpha0 20 --eta 3 --alpha 2 --beta 1.5
    --plot spectrum.png

    replica spectrum --student relu --target sin --alpha0 1 --eta 2 --alpha 3 --theory network
    """
    request = parse_request(options, required=("alpha",))
    model = request.single_model()
    spectrum_options: Any = {"quadrature_tol": quadrature_tol, "time_limit": time_limit}
    found = spectrum_of(model, alpha=single_number("alpha", request.alpha), **spectrum_options)
    document = spectrum_document(found, points)
    document["problem"] = {"theory": "srf"} | describe(request.problem)
    document["problem"] |= {"beta": model.beta, "alpha": found.alpha}
    density_grid, density = document["density"].values()
    converged = np.full(density.shape, found.converged)
    density_rows = rows_of({"x": density_grid}, {"density": density, "converged": converged})

    def show() -> None:
        _show(found)
        note_theory(model)

    output.write(document, show, figure=lambda: plot_spectrum(found).figure, rows=density_rows)
    if spectrum_note := note_of_spectrum(found, request.theory):
        say(f"note: {spectrum_note}")
    warn_unless_converged(found)
    return found.converged


def _show(found_spectrum: Spectrum) -> None:
    """Edges, atom and outliers in words."""
    for bulk_edges, sharp_edges in zip(found_spectrum.edges, found_spectrum.sharp, strict=True):
        low_text, high_text = (
            f"{x:.10g}{'' if is_sharp else ' (not sharp)'}"
            for x, is_sharp in zip(bulk_edges, sharp_edges, strict=True)
        )
        answer(f"density from {low_text} to {high_text}")
    if found_spectrum.diverges:
        answer("density diverges at 0")
    answer(f"atom at 0: {found_spectrum.atom:.10g}")
    for outlier_value, n in zip(found_spectrum.outliers, found_spectrum.outliers_from, strict=True):
        outlier_place = f"p times {outlier_value:.10g} to leading order in p"
        answer(f"outlier at {outlier_place}, beyond the bulk from n = {n:.3g}")


def warn_unless_converged(result: Spectrum) -> None:
    """Write a warning with the errors of a spectrum that did not converge."""
    if not result.converged:
        no_mass = np.isnan(result.mass_error)
        mass = "is not known" if no_mass else f"is off by {result.mass_error:.1e}"
        status = with_options(str(result.status))
        say(f"WARNING: {status}; quadrature error {result.quadrature_error:.1e}; the mass {mass}")


def spectrum_document(result: Spectrum, points: int) -> dict[str, Any]:
    """The JSON document of ``spectrum``."""
    points_each = max(2, points // len(result.edges))
    density_grid = np.concatenate([result.grid(k, points_each) for k in range(len(result.edges))])
    spectrum_fields = (
        "edges", "sharp", "diverges", "atom", "outliers", "outliers_from", "converged",
        "quadrature_error", "mass_error",
    )  # fmt: skip
    return {name: getattr(result, name) for name in spectrum_fields} | {
        "density": {"x": density_grid, "y": result.density(density_grid)}
    }


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
    out_suffix = output.out.suffix.lower() if output.out is not None else ""
    if out_suffix in (".csv", ".tex") and not result.stages:
        raise InvalidArgument("out", str(output.out), ".json where there is no stage to write")
    document = staircase_document(result)

    def print_staircase() -> None:
        if result.stages:
            output.table(document["points"], list(document["points"][0]))
        answer(summary(result))

    output.write(document, print_staircase, figure=lambda: plot_staircase(result).figure)


def staircase_document(result: Staircase) -> dict[str, Any]:
    """The JSON document of ``staircase``: a point for every direction, in the order learned."""
    direction_rows = [
        {
            "step": step,
            "leap": stage.leap,
            "samples": _samples_text(stage.leap),
            "strength": float(strength),
            "direction": " ".join(f"{coordinate:.4f}" for coordinate in direction.round(4) + 0.0),
            "explained": stage.explained,
        }
        for step, stage in enumerate(result.stages, start=1)
        for direction, strength in zip(stage.directions, stage.strengths, strict=True)
    ]
    staircase_fields = ("leap", "mean", "variance", "powers", "directions", "resolution")
    return {name: getattr(result, name) for name in staircase_fields} | {
        **result.settings,
        "learned_linearly": len(result.learned),
        "tensors": [tensor.tolist() for tensor in result.tensors],
        "points": direction_rows,
    }


def summary(result: Staircase) -> str:
    """Meaning of the stages, in a sentence or two."""
    r, learned_linearly = result.dimension, len(result.learned)
    if result.leap is None:
        if result.inputs is not None:
            return "no steps on n ~ d samples learn any direction on these inputs"
        return (
            f"no tensor of degree 1 to {result.degree} differs from zero "
            f"(above {result.resolution:.1g} of the variance): try a higher --degree"
        )
    exponent_name = "information exponent" if r == 1 else "leap index"
    text = f"{exponent_name} {result.leap}; batches of n ~ d samples learn "
    steps = _counted(result.linear_stages, "step")
    text += f"{learned_linearly} of {r} directions, in {steps}" if learned_linearly else "nothing"
    at_once = any(len(stage.directions) > 1 for stage in result.stages[: result.linear_stages])
    if at_once or result.inputs is not None:
        text += " or more"  # one network may take more than all do
    if later := [_samples_text(stage.leap) for stage in result.stages[result.linear_stages :]]:
        text += f"; then steps of n ~ {', '.join(later)}"
    if unmet_count := r - len(result.directions):
        why_missing = "or of a higher degree"
        if result.student is not None:
            why_missing = "of a higher degree, or not seen by this student"
        unmet_text = _counted(unmet_count, "direction")
        text += f"; {unmet_text} not met up to degree {result.degree}: irrelevant, {why_missing}"
    batch_text, of_target = ", a student that sees every degree", ""
    if result.student is not None:
        batch_text = ""
        of_target = ", of the target alone: replica-validate alignment has how far neurons turn"
    strength_text = f"strengths above {result.resolution:.1g} of the variance{of_target}"
    return f"{text} (fresh batches{batch_text}; {strength_text})"


def _samples_text(leap: int) -> str:
    """The samples that a step of this leap takes."""
    return f"d^{leap}" if leap > 1 else "d"


def _counted(counted_number: int, counted_noun: str) -> str:
    """A number and its noun, in the plural unless it is 1."""
    return f"{counted_number} {counted_noun}{'s' * (counted_number != 1)}"
