"""``replica-validate compare``: theory beside a Monte Carlo of the same problem."""

from typing import Annotated

import typer

from replica import command_line as common
from replica import files
from replica.grids import sweep
from replica.options import merge, request

from ..command_line import TABLES, Dimension, Rng, Seeds, Simulated, What, single
from ..compare import compare as run_comparison


def compare(
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
    model: common.Model = None,
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
    finite_size: Annotated[
        bool, typer.Option("--finite-size", help="Theory at the simulated d, not its limit.")
    ] = False,
    out: common.Out = None,
    plot: common.Plot = None,
    as_json: common.Json = False,
) -> None:
    """Theory beside a Monte Carlo of the same problem, with a z-score for every point."""
    asked = request(merge(common.typed(locals()), config))
    common.check_outputs(out, plot, TABLES)
    problem, width = single(asked, simulated)
    with common.progress("draws") as advance:
        comparison = run_comparison(
            problem,
            alpha=asked.alpha,
            lam=asked.lam,
            dimension=dimension,
            seeds=seeds,
            rng=rng,
            beta=width,
            finite_size=finite_size,
            model=asked.model,
            progress=advance,
        )
    document = comparison.document()
    if out is not None:
        common.save_points(out, document)
    if plot is not None:
        from ..plotting import dense, plot_comparison

        theory = comparison.theory
        line, published = (
            None if of is None else sweep(of, alpha=dense(asked.alpha), lam=asked.lam, grids={})
            for of in (theory.model, theory.published)
        )
        assert line is not None
        common.save_figure(plot, plot_comparison(comparison, line, published).figure)
    if as_json:
        typer.echo(files.to_json(document))
    else:
        common.print_table(document["points"], list(document["points"][0]))
        typer.echo(comparison.verdict)
    if not comparison.agrees:
        raise typer.Exit(1)
