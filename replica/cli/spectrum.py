"""``replica spectrum``: the eigenvalues of the features' covariance."""

from typing import Annotated, Any

import numpy as np
import typer

from solvers.resources import TIME_LIMIT

from ..plotting import plot_spectrum
from ..problem import describe
from ..spectra import Spectrum
from ..spectra import spectrum as spectrum_of
from .common import TimeLimit, command
from .option_table import LARGEST_DOCUMENT, Options, single_number
from .options import parse_request
from .printing import Output, answer, rows_of, say


@command(without=("lam", "loss", "reuse", "dimension"), tabular=False)
def spectrum(
    options: Options,
    output: Output,
    *,
    time_limit: TimeLimit = TIME_LIMIT,
    points: Annotated[
        int, typer.Option(min=2, max=LARGEST_DOCUMENT, help="Points of the density, in all.")
    ] = 1000,
) -> bool:
    """Density, edges, atom and outliers of the eigenvalues of Phi^T Phi / n.

    In Python: replica.spectrum.

    Examples
    --------
    replica spectrum --student tanh --target sin --alpha0 20 --eta 3 --alpha 2 --beta 1.5
    --plot spectrum.png

    replica spectrum --student relu --target sin --alpha0 1 --eta 2 --alpha 3 --theory network
    """
    request = parse_request(options, required=("alpha",))
    model = request.single_model()
    result = spectrum_of(model, single_number("alpha", request.alpha), time_limit=time_limit)
    document = spectrum_document(result, points)
    document["problem"] = describe(request.problem) | {"beta": model.beta, "alpha": result.alpha}
    x, density = document["density"].values()
    rows = rows_of({"x": x}, {"density": density})
    output.write(
        document, lambda: _show(result), figure=lambda: plot_spectrum(result).figure, rows=rows
    )
    warn_unless_converged(result)
    return result.converged


def _show(result: Spectrum) -> None:
    """Edges, atom and outliers in words."""
    for ends, sharp in zip(result.edges, result.sharp, strict=True):
        low, high = (
            f"{x:.10g}{'' if known else ' (not sharp)'}"
            for x, known in zip(ends, sharp, strict=True)
        )
        answer(f"density from {low} to {high}")
    if result.diverges:
        answer("density diverges at 0")
    answer(f"atom at 0: {result.atom:.10g}")
    for value, n in zip(result.outliers, result.outliers_from, strict=True):
        answer(f"outlier at p times {value:.10g}, beyond the bulk from n = {n:.3g}")


def warn_unless_converged(result: Spectrum) -> None:
    """Write a warning with the errors of a spectrum that did not converge."""
    if not result.converged:
        errors = f"{result.quadrature_error:.1e}; the mass is off by {result.mass_error:.1e}"
        say(f"WARNING: {result.status.value}: {errors}")


def spectrum_document(result: Spectrum, points: int) -> dict[str, Any]:
    """The JSON document of ``spectrum``."""
    each = max(2, points // len(result.edges))
    x = np.concatenate([result.grid(k, each) for k in range(len(result.edges))])
    names = (
        "edges", "sharp", "diverges", "atom", "outliers", "outliers_from", "converged",
        "quadrature_error", "mass_error",
    )  # fmt: skip
    return {name: getattr(result, name) for name in names} | {
        "density": {"x": x, "y": result.density(x)}
    }
