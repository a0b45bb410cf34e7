"""``replica-validate simulate``: a Monte Carlo by itself."""

import typer

from replica import command_line as common
from replica import files
from replica.options import merge, request

from ..command_line import TABLES, Dimension, Rng, Seeds, Simulated, What, single
from ..monte_carlo import simulate as run_simulation


def simulate(
    student: common.Student = None,
    target: common.Target = None,
    alpha0: common.Alpha0 = None,
    eta: common.Eta = None,
    steps: common.Steps = None,
    r: common.R = None,
    c: common.C = None,
    gamma: common.Gamma = None,
    beta: common.Beta = None,
    noise: common.Noise = None,
    step_noise: common.StepNoise = None,
    alpha: common.Alpha = None,
    lam: common.Lam = None,
    readout: common.Readout = None,
    bias: common.Bias = None,
    intercept: common.Intercept = None,
    train_bias: common.TrainBias = None,
    config: common.Config = None,
    dimension: Dimension = 500,
    seeds: Seeds = 5,
    rng: Rng = None,
    simulated: What = Simulated.network,
    out: common.Out = None,
    as_json: common.Json = False,
) -> None:
    """A Monte Carlo by itself: mean errors and their standard errors."""
    asked = request(merge(common.typed(locals()), config))
    common.check_outputs(out, None, TABLES)
    problem, width = single(asked, simulated)
    with common.progress("draws") as advance:
        simulation = run_simulation(
            problem,
            alpha=asked.alpha,
            lam=asked.lam,
            dimension=dimension,
            seeds=seeds,
            rng=rng,
            beta=width,
            progress=advance,
        )
    document = simulation.document()
    if out is not None:
        common.save_points(out, document)
    if as_json:
        typer.echo(files.to_json(document))
    else:
        common.print_table(document["points"], list(document["points"][0]))
