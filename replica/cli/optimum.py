"""``replica optimum``: the best ridge penalty, learning rate, or both."""

from typing import Any

from solvers.resources import TIME_LIMIT

from ..errors import InvalidArgument
from ..observables import NOTED_SHIFT, optimal_eta, optimal_lambda, refuse_limit_options
from ..plotting import plot_optima
from .common import DATASETS, TimeLimit, command
from .curve import Workers, answer_curve
from .given import asks_for_given
from .option_table import HELP
from .output import Notes, Output
from .readout import answer_readout
from .values import BEST, Options

POINT = ("alpha", "samples", "lam")  # of coordinates, what a search takes


@command(offered=tuple(HELP), files=DATASETS)
def optimum(
    options: Options,
    output: Output,
    *,
    workers: Workers = 1,
    time_limit: TimeLimit = TIME_LIMIT,
    notes: Notes = False,
) -> bool:
    """The parameters of the smallest test error: lam, and eta too where it is not given.

    Searched: lam from 1e-8 to 1e4, eta from 0.01 to 100; a best value at the end of its range is
    noted.  --eta holds eta; --lam, without --eta, holds lam.  All else may be grids, but for the
    loss, which is the square.  It is replica curve, or replica readout, with --lam best and --eta
    best, and draws these.

    In Python: replica.learning_curve with lam="best", eta="best"; at one point replica.optimal_eta
    and replica.optimal_lambda, which tell all minima and take other ranges.

    Examples
    --------
    replica optimum --student tanh --target sin --alpha0 5,20 --alpha 1,2

    replica optimum --student relu --target relu --alpha0 3 --eta 1 --alpha 0.5:4:8 --plot best.png
    """
    if asks_for_given(options):
        _refuse_penalty(options, "left out: it is what is searched")
        refuse_limit_options(workers=workers, notes=notes)
        how: dict[str, Any] = {"figure": _figure, "time_limit": time_limit}
        return answer_readout(options | {"lam": BEST}, output, **how)
    of_rates = "alpha0" in options and options.get("eta", BEST) == BEST and "rate" not in options
    if not of_rates:
        _refuse_penalty(options, "left out, or given with a step without --eta or --rate")
    best = {"lam": BEST} | options | ({"eta": BEST} if of_rates else {})
    how = {"figure": _figure, "notes": notes, "least": NOTED_SHIFT, "time_limit": time_limit}
    return answer_curve(best, output, workers=workers, **how)


def _refuse_penalty(options: Options, allowed: str) -> None:
    """Refuse a penalty that is given where only the best one is asked for."""
    if options.get("lam", BEST) != BEST:
        raise InvalidArgument("lam", options["lam"], allowed)


def _figure(model: Any, dataset: Any) -> Any:
    """The best values along an axis or, at a single point, the error around them."""
    if dataset.test_error.size > 1 or not dataset.converged.all():
        return plot_optima(dataset)
    search = optimal_eta if "eta" in dataset.data_vars else optimal_lambda
    at = {name: x.item() for name, x in dataset.coords.items() if name in POINT}
    return search(model, **at).plot()
