"""The ``replica-validate`` command: finite-size experiments, alone or beside the theory.

Exit status as for ``replica``; 1 also where a comparison failed.
"""

import sys
from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from replica import GradientStep, files
from replica import cli as common
from replica.errors import InvalidArgument
from replica.grids import Problem, sweep
from replica.options import Request, merge, request

from .compare import compare as run_comparison
from .features import spiked_model
from .figures import NAMES
from .figures import figure as find_figure
from .monte_carlo import simulate as run_simulation

app = typer.Typer(
    name="replica-validate",
    add_completion=False,
    no_args_is_help=True,
    help="Finite-size simulations, and their comparison with the theory.",
)

TABLES = (".csv", ".json")


class Simulated(StrEnum):
    """What is drawn when a gradient step is given."""

    network = "network"
    srf = "srf"


Dimension = Annotated[int, typer.Option(help="Input dimension d of the simulation.")]
Seeds = Annotated[int, typer.Option(help="Independent draws of each point, 2 or more.")]
Rng = Annotated[int | None, typer.Option(help="Seed of the random numbers.")]
What = Annotated[
    Simulated, typer.Option(help="Simulate the network itself, or the sRF its step makes.")
]


def single(asked: Request, simulated: Simulated) -> tuple[Problem, float | None]:
    """The one problem to simulate, and its beta where that is not a field of it.

    Raises
    ------
    InvalidArgument
        If a model field is a grid: a comparison is over alpha and lam.
    """
    for name, grid in asked.grids.items():
        if grid.size > 1:
            raise InvalidArgument(name, list(grid), "a single number here")
    if not isinstance(asked.problem, GradientStep):
        return asked.problem, None
    beta = float(asked.grids["beta"][0])
    if simulated is Simulated.srf:
        return asked.problem.srf(beta=beta), None
    return asked.problem, beta


@app.command()
def compare(
    student: common.Student = None,
    target: common.Target = None,
    alpha0: common.Alpha0 = None,
    eta: common.Eta = None,
    r: common.R = None,
    c: common.C = None,
    gamma: common.Gamma = None,
    beta: common.Beta = None,
    noise: common.Noise = None,
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
            progress=advance,
        )
    document = comparison.document()
    if out is not None:
        common.save_points(out, document)
    if plot is not None:
        from .plotting import dense, plot_comparison

        model = spiked_model(problem, width)
        if finite_size:
            model = replace(model, dimension=dimension)
        line = sweep(model, alpha=dense(asked.alpha), lam=asked.lam, grids={})
        common.save_figure(plot, plot_comparison(comparison, line).figure)
    if as_json:
        typer.echo(files.to_json(document))
    else:
        common.print_table(document["points"], list(document["points"][0]))
        typer.echo(comparison.verdict)
    if not comparison.agrees:
        raise typer.Exit(1)


@app.command()
def simulate(
    student: common.Student = None,
    target: common.Target = None,
    alpha0: common.Alpha0 = None,
    eta: common.Eta = None,
    r: common.R = None,
    c: common.C = None,
    gamma: common.Gamma = None,
    beta: common.Beta = None,
    noise: common.Noise = None,
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


@app.command()
def figure(
    name: Annotated[str, typer.Argument(help=f"One of {', '.join(NAMES)}.")],
    plot: Annotated[Path, typer.Option(help="The picture: .png, .pdf or .svg.")],
    out: Annotated[Path | None, typer.Option(help="Its data: .json.")] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Small and fast.")] = False,
) -> None:
    """A figure of the documentation or of a paper, with the data it is drawn from."""
    module = find_figure(name)
    common.check_outputs(out, plot, (".json",))
    with common.progress("curves") as advance:
        data = module.data(quick, advance)
    if out is not None:
        common.save_points(out, data)
    common.save_figure(plot, module.draw(data))


def main() -> None:
    """Entry point of ``replica-validate``."""
    sys.exit(common.run(app))
