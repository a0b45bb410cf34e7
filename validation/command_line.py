"""What the commands of ``replica-validate`` share, besides what ``replica`` shares."""

from enum import StrEnum
from typing import Annotated

import typer

from replica import Network, SpikedRandomFeatures
from replica.errors import InvalidArgument
from replica.grids import Problem
from replica.options import Request

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
    problem = asked.problem
    if isinstance(problem, SpikedRandomFeatures):
        return problem, None
    if isinstance(problem, Network):
        step, beta = problem.step, problem.beta
    else:
        step, beta = problem, float(asked.grids["beta"][0])
    return (step.srf(beta=beta), None) if simulated is Simulated.srf else (step, beta)
