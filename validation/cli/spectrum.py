"""``replica-validate spectrum``: the density over a histogram of simulated eigenvalues."""

from typing import Annotated

import numpy as np
import typer

from replica import documents as files
from replica.cli import (
    Options,
    TimeLimit,
    common,
    leave_unless_converged,
    parse_request,
    single_number,
    spectrum_document,
)
from replica.errors import InvalidArgument
from replica.plotting import plot_spectrum
from replica.spectra import SPECTRUM_TIME
from replica.spectra import spectrum as compute

from ..comparisons import theory_of
from ..draws import spiked_model
from ..measure import eigenvalues
from ..run import Simulated
from .common import TABLES, Dimension, Rng, What, single


@common.problem_options(without=("lam", "intercept", "train_bias", "loss"))
def spectrum(
    options: Options,
    *,
    dimension: Dimension = 500,
    seeds: Annotated[int, typer.Option(help="Independent draws.")] = 2,
    rng: Rng = None,
    simulated: What = Simulated.network,
    time_limit: TimeLimit = SPECTRUM_TIME,
    out: common.Out = None,
    plot: common.Plot = None,
    as_json: common.Json = False,
) -> None:
    """The theory's density over a histogram of simulated eigenvalues of Phi^T Phi / n."""
    asked = parse_request(options, required=("alpha",))
    common.check_outputs(out, plot, TABLES[1:])
    if simulated is Simulated.gaussian:
        raise InvalidArgument("simulated", simulated, "network or srf for eigenvalues")
    problem, width = single(asked)
    if simulated is Simulated.srf:
        problem, width = spiked_model(problem, width), None
    ratio = single_number("alpha", asked.alpha)
    theory = theory_of(problem, width, asked.model)
    predicted = compute(theory.model, ratio, time_limit=time_limit)
    values = eigenvalues(
        problem, alpha=ratio, dimension=dimension, seeds=seeds, rng=rng, beta=width
    )
    # at three places above the bulk
    z = np.geomspace(max(predicted.edges.min(), 1e-3), predicted.edges.max(), 5)[1:-1] * (1 + 0.5j)
    simulated_at = (1 / (values[..., None] - z)).mean(axis=(0, 1))
    predicted_at = predicted.stieltjes(z)
    document = spectrum_document(predicted, 1000) | {
        "dimension": dimension,
        "seeds": seeds,
        "theory": theory.note,
        "stieltjes_off_by": np.abs(simulated_at / predicted_at - 1),
        "eigenvalues": values,
    }
    if out is not None:
        common.save_points(out, document)
    if plot is not None:
        common.save_figure(plot, plot_spectrum(predicted, eigenvalues=values).figure)
    if as_json:
        common.answer(files.to_json(document))
    else:
        common.answer(theory.note)
        off = ", ".join(f"{value:.1%}" for value in document["stieltjes_off_by"])
        common.answer(f"relative differences of the Stieltjes transform: {off}")
    leave_unless_converged(predicted)
