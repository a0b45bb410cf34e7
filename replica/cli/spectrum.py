"""``replica spectrum``: the eigenvalues of the features' covariance."""

from typing import Annotated, Any

import numpy as np
import typer

from .. import documents as files
from ..plots import plot_spectrum
from ..problem import describe
from ..spectra import Spectrum
from ..spectra import spectrum as compute
from . import common as common
from .options import ProblemOptions, request


@common.problem_options(without=("lam", "loss"))
def spectrum(
    options: ProblemOptions,
    *,
    out: common.Out = None,
    plot: common.Plot = None,
    points: Annotated[int, typer.Option(help="Points of the density, in all.")] = 1000,
    as_json: common.Json = False,
) -> None:
    """Density, edges, atom and outliers of the eigenvalues of Phi^T Phi / n.

    Example: replica spectrum --student tanh --target sin --alpha0 20 --eta 3 --alpha 2
    --beta 1.5 --plot spectrum.png
    """
    asked = request(options, required=("alpha",))
    common.check_outputs(out, plot, (".csv", ".json"))
    one = common.one_model(asked)
    found = compute(one, common.one_number("alpha", asked.alpha))
    document = spectrum_document(found, points)
    document["problem"] = describe(asked.problem) | {"beta": one.beta, "alpha": found.alpha}
    if out is not None:
        columns = zip(*document["density"].values(), strict=True)
        rows = [{"x": x, "density": y} for x, y in columns]
        common.save_points(out, {"points": rows} if out.suffix == ".csv" else document)
    if plot is not None:
        common.save_figure(plot, plot_spectrum(found).figure)
    if as_json:
        typer.echo(files.to_json(document))
    else:
        for (low, high), (left, right) in zip(found.edges, found.sharp, strict=True):
            ends = [
                f"{x:.10g}{'' if sharp else ' (not sharp)'}"
                for x, sharp in ((low, left), (high, right))
            ]
            typer.echo(f"density from {ends[0]} to {ends[1]}")
        typer.echo(f"atom at 0: {found.atom:.10g}")
        for value in found.outliers:
            typer.echo(f"outlier at p times {value:.10g}")
    leave_unless_converged(found)


def leave_unless_converged(found: Spectrum) -> None:
    """Say what failed, and end with status 1."""
    if not found.converged:
        errors = f"{found.quadrature_error:.1e}; the mass is off by {found.mass_error:.1e}"
        typer.echo(f"WARNING: {found.status.value}: {errors}", err=True)
        raise typer.Exit(1)


def spectrum_document(found: Spectrum, points: int) -> dict[str, Any]:
    """The JSON document of ``spectrum``."""
    each = max(2, points // len(found.edges))
    x = np.concatenate([found.grid(k, each) for k in range(len(found.edges))])
    return {
        "edges": found.edges,
        "sharp": found.sharp,
        "atom": found.atom,
        "outliers": found.outliers,
        "converged": found.converged,
        "quadrature_error": found.quadrature_error,
        "mass_error": found.mass_error,
        "density": {"x": x, "y": found.density(x)},
    }
