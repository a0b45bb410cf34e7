"""``replica spectrum``: the eigenvalues of the features' covariance."""

from typing import Annotated, Any

import numpy as np
import typer

from .. import documents
from ..plotting import plot_spectrum
from ..problem import describe
from ..spectra import SPECTRUM_TIME, Spectrum
from ..spectra import spectrum as spectrum_of
from . import common
from .options import LARGEST_GRID, Options, parse_request, single_number

TimeLimit = Annotated[
    float, typer.Option(help="Seconds, after which the search for the density is given up.")
]


@common.problem_options(without=("lam", "loss"))
def spectrum(
    options: Options,
    *,
    out: common.Out = None,
    plot: common.Plot = None,
    time_limit: TimeLimit = SPECTRUM_TIME,
    points: Annotated[
        int, typer.Option(min=2, max=LARGEST_GRID, help="Points of the density, in all.")
    ] = 1000,
    as_json: common.Json = False,
) -> None:
    """Density, edges, atom and outliers of the eigenvalues of Phi^T Phi / n.

    Example: replica spectrum --student tanh --target sin --alpha0 20 --eta 3 --alpha 2
    --beta 1.5 --plot spectrum.png
    """
    request = parse_request(options, required=("alpha",))
    common.check_outputs(out, plot, (".csv", ".json"))
    model = request.single_model()
    result = spectrum_of(model, single_number("alpha", request.alpha), time_limit=time_limit)
    document = spectrum_document(result, points)
    document["problem"] = describe(request.problem) | {"beta": model.beta, "alpha": result.alpha}
    if out is not None:
        columns = zip(*document["density"].values(), strict=True)
        rows = [{"x": x, "density": y} for x, y in columns]
        common.save_points(out, {"points": rows} if out.suffix == ".csv" else document)
    if plot is not None:
        common.save_figure(plot, plot_spectrum(result).figure)
    if as_json:
        common.answer(documents.to_json(document))
    else:
        for (low, high), (left, right) in zip(result.edges, result.sharp, strict=True):
            ends = [
                f"{x:.10g}{'' if sharp else ' (not sharp)'}"
                for x, sharp in ((low, left), (high, right))
            ]
            common.answer(f"density from {ends[0]} to {ends[1]}")
        common.answer(f"atom at 0: {result.atom:.10g}")
        for value, n in zip(result.outliers, result.outliers_from, strict=True):
            common.answer(f"outlier at p times {value:.10g}, beyond the bulk from n = {n:.3g}")
    leave_unless_converged(result)


def leave_unless_converged(result: Spectrum) -> None:
    """Say what failed, and end with status 1."""
    if not result.converged:
        errors = f"{result.quadrature_error:.1e}; the mass is off by {result.mass_error:.1e}"
        typer.echo(f"WARNING: {result.status.value}: {errors}", err=True)
        raise typer.Exit(1)


def spectrum_document(result: Spectrum, points: int) -> dict[str, Any]:
    """The JSON document of ``spectrum``."""
    each = max(2, points // len(result.edges))
    x = np.concatenate([result.grid(k, each) for k in range(len(result.edges))])
    return {
        "edges": result.edges,
        "sharp": result.sharp,
        "atom": result.atom,
        "outliers": result.outliers,
        "outliers_from": result.outliers_from,
        "converged": result.converged,
        "quadrature_error": result.quadrature_error,
        "mass_error": result.mass_error,
        "density": {"x": x, "y": result.density(x)},
    }
