"""``replica-validate spectrum``: the density over a histogram of simulated eigenvalues."""

import numpy as np

from replica.cli import (
    Options,
    Output,
    TimeLimit,
    answer,
    command,
    parse_request,
    single_number,
    spectrum_document,
    warn_unless_converged,
)
from replica.errors import InvalidArgument
from replica.plotting import plot_spectrum
from replica.spectra import spectrum as compute
from solvers.resources import TIME_LIMIT

from ..comparisons import theory_of
from ..draws import spiked_model
from ..measure import eigenvalues
from ..run import Simulated
from .common import DIMENSION, RNG, SIMULATED, drawn, first_problem

DRAWS = drawn("seeds", int, 2, "Independent draws.")


@command(
    without=("lam", "intercept", "train_bias", "loss", "reuse"),
    files=(".json",),
    also=(DIMENSION, DRAWS, RNG, SIMULATED),
    tabular=False,
)
def spectrum(
    options: Options,
    output: Output,
    *,
    dimension: int,
    seeds: int,
    rng: int | None,
    simulated: Simulated,
    time_limit: TimeLimit = TIME_LIMIT,
) -> bool:
    """The theory's density over a histogram of simulated eigenvalues of Phi^T Phi / n.

    Examples
    --------
    replica-validate spectrum --student tanh --target sin --alpha0 20 --eta 3 --alpha 2 --rng 0
    --plot spectrum.png

    replica-validate spectrum --student relu --target sin --alpha0 1 --eta 2 --alpha 3
    --simulated srf --dimension 800
    """
    asked = parse_request(options, required=("alpha",))
    if simulated is Simulated.gaussian:
        raise InvalidArgument("simulated", simulated, "network or srf for eigenvalues")
    problem, width = first_problem(asked)
    if simulated is Simulated.srf:
        problem, width = spiked_model(problem, width), None
    ratio = single_number("alpha", asked.alpha)
    theory = theory_of(problem, width, asked.theory)
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

    def show() -> None:
        answer(theory.note)
        off = ", ".join(f"{value:.1%}" for value in document["stieltjes_off_by"])
        answer(f"relative differences of the Stieltjes transform: {off}")

    output.write(document, show, figure=lambda: plot_spectrum(predicted, eigenvalues=values).figure)
    warn_unless_converged(predicted)
    return predicted.converged
