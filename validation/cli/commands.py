"""Simulating commands of ``replica-validate``, and their shared options and output."""

import itertools
import logging
import math
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, cast

import numpy as np
import typer

from replica import cli
from replica.errors import InvalidArgument
from replica.plotting import plot_spectrum
from replica.problem import Problem, describe
from replica.spectra import Spectrum
from replica.spectra import spectrum as compute
from replica.steps import GradientStep
from solvers.quadrature import QuadratureError
from solvers.resources import TIME_LIMIT
from solvers.results import Array, ConvergenceError

from ..comparisons import compare as run_comparison
from ..comparisons import compare_alignment, compare_grid, theory_of
from ..comparisons import ladder as run_ladder
from ..draws import spiked_model
from ..measure import eigenvalues
from ..run import DEFAULT_MEMORY, Simulated, rows_of, standard_error
from ..run import simulate as run_simulation

drawn = partial(cli.option, panel="The simulation")


def one_dimension(text: str) -> int:
    """The dimension as typed, one whole number."""
    try:
        return int(text)
    except ValueError:
        of_several = " (of several, compare --ladder, which tells their limit)" * ("," in text)
        raise typer.BadParameter(f"one whole number, not {text}{of_several}") from None


ONE_DIMENSION: dict[str, Any] = {"parser": one_dimension, "metavar": "<int>"}
DIMENSION = drawn("dimension", Any, 500, "Input dimension d of the simulation.", **ONE_DIMENSION)
SEEDS = drawn("seeds", int, 8, "Independent draws of each point, 2 or more (a verdict takes 8).")
RNG = drawn("rng", int | None, None, "Seed of the random numbers.")
SIMULATED = drawn(
    "simulated", Simulated, Simulated.network,
    "What is drawn: the network itself, the sRF its step makes, or the conditional Gaussian model.",
)  # fmt: skip
MONTE_CARLO = (  # arguments of ``validation.simulate``
    drawn(
        "dimension", Any, None, "Input dimension d (500 unless a layer is given).", **ONE_DIMENSION
    ),
    SEEDS, RNG, SIMULATED,
    drawn("store", Path | None, None, "Folder that keeps every finished draw: the same line goes "
                                      "on from there."),
    drawn("key", str | None, None, "Tells a function from an edited one in --store where its "
                                   "values cannot: any text that you change with it."),
    drawn("workers", int | None, None, "Processes of one thread (what pays, unless given)."),
    drawn("memory", str, DEFAULT_MEMORY, "Limit of all processes together, such as 500MB."),
    drawn("device", str, "cpu", "cpu, or cuda (needs torch)."),
)  # fmt: skip
STORED_RNG = 0  # of simulations that are kept and were given no seed


def parse_simulation(
    options: cli.Options, settings: dict[str, Any], *, on_grids: bool
) -> tuple[Any, dict[str, Any], dict[str, Array]]:
    """The simulated problem, with the first value of every grid of its fields; the points; and
    these grids, of none unless that is allowed.

    A problem's usual dimension is set in ``settings``, the options, unless one was typed.
    """
    if cli.asks_for_given(options):
        model, readout_points, loss, columns_taken = cli.parse_given(options)
        if columns_taken:
            cli.say(f"note: {columns_taken}")
        if "samples" in readout_points:
            readout_points["samples"] = [int(n) for n in readout_points["samples"]]
        return model, readout_points | {"loss": loss}, {}
    typed_dimension = options.get("dimension", DIMENSION.default)
    # the theory of the first layers drawn is a comparison's alone
    theory_options = {
        name: typed_value
        for name, typed_value in options.items()
        if name != "dimension" and (name, typed_value) != ("theory", "given")
    }
    request = cli.parse_request(theory_options)
    otherwise = ", or replica-validate compare, which takes grids and has the simulation, too"
    request.refuse_grids(allowed=request.grids if on_grids else (), otherwise=otherwise)
    problem, width_ratio = problem_at_grid_start(request, request.grids)
    if settings["dimension"] is None:
        settings["dimension"] = int(
            cli.single_number("dimension", cli.parse_grid("dimension", typed_dimension))
        )
    fit = {"alpha": request.alpha, "lam": request.lam, "beta": width_ratio, "loss": request.loss}
    return problem, fit, request.grids


@contextmanager
def drawing(options: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """The ``options`` of a Monte Carlo, with its progress and, where draws are kept, a seed by
    which they are found again."""
    store_folder, typed_rng = options["store"], options["rng"]
    if typed_rng is None and store_folder is not None:
        cli.say(f"note: --rng {STORED_RNG} is taken, since a store is found again by its seed")
        typed_rng = STORED_RNG
    logging.getLogger("validation.run").setLevel(logging.INFO)  # tells what the store had
    with watched("draws", store_folder) as advance:
        yield {**options, "rng": typed_rng, "progress": advance}


@contextmanager
def watched(thing: str, store_folder: Path | None) -> Iterator[Callable[[int, int], None]]:
    """Callback (done, total) that shows progress; an interruption says how many draws are kept."""
    draws_done = all_draws = 0
    with cli.progress(thing) as advance:

        def count_draws(*draws_now: int) -> None:
            nonlocal draws_done, all_draws
            draws_done, all_draws = draws_now
            advance(draws_done, all_draws)

        try:
            yield count_draws
        except KeyboardInterrupt:
            kept_draws = "were done and none is kept: with --store FOLDER they are"
            if store_folder is not None:
                kept_draws = f"are kept in {store_folder}: the same command goes on from there"
            count_text = f"{draws_done} of {all_draws}" if all_draws else "no"  # before the first
            raise cli.Interrupted(f"interrupted; {count_text} {thing} {kept_draws}") from None


def show_points(document: dict[str, Any], output: cli.Output) -> None:
    """Write the points of a document to standard output as a table: first the classification error
    where labels are +-1, its score before its standard error, then the test error and the scores,
    these to two digits; errors of fits last; after the source the theory, where that differs
    between points."""
    names = list(document["points"][0])
    first_column = names.index("source") + 1 if "source" in names else names.index("test_error")

    def rank(column: str) -> tuple[bool, int, bool]:
        rank_kinds = ("class", "test_error", "_z", "")
        kind = next(i for i, kind in enumerate(rank_kinds) if kind in column)
        is_beside = column.startswith(("fitted_", "noted"))
        return is_beside, kind, column == "classification_error_stderr"

    def cell(name: str, value: Any) -> Any:
        is_unknown = value is None or (isinstance(value, float) and np.isnan(value))
        is_z_score = name.endswith("_z") and not isinstance(value, str)  # "inf", over an error of 0
        return "" if is_unknown else round(value, 2) if is_z_score else value

    cell_rows = [{k: cell(k, value) for k, value in point.items()} for point in document["points"]]
    error_columns = [name for name in names[first_column:] if name != "theory"]
    placed_columns = names[:first_column] + theory_columns(cell_rows)
    output.table(cell_rows, placed_columns + sorted(error_columns, key=rank))


def theory_columns(points: Sequence[Mapping[str, Any]]) -> list[str]:
    """The column that names the theory of each point, if there are several."""
    return ["theory"] * (len({point.get("theory") for point in points}) > 1)


def sized_rows(document: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The points of a document as rows of a table by itself: those of a simulation with its
    dimension and its seeds, each one number."""
    size_columns = {
        name: document[name] for name in ("dimension", "width", "seeds") if name in document
    }
    if isinstance(document["seeds"], list):  # of a ladder, whose limit is simulated by all
        size_columns = {}
    return [
        point | (size_columns if point.get("source") != "theory" else dict.fromkeys(size_columns))
        for point in document["points"]
    ]


def paper_rows(points: Sequence[Mapping[str, Any]], names: Sequence[str]) -> list[dict[str, Any]]:
    """Columns that a paper prints, of points in theory and simulation by turns: their places and,
    of the errors ``names``, theory, simulation with its standard error, and (simulated - theory) /
    simulated in percent; and the theory's name where there are several."""
    printed_rows, theory_column = [], theory_columns(points)
    for theory, simulated in zip(points[::2], points[1::2], strict=True):
        paper_row = dict(itertools.takewhile(lambda item: item[0] != "source", theory.items()))
        for name in names:
            in_theory, measured, stderr = theory[name], simulated[name], simulated[f"{name}_stderr"]
            paper_row[f"{name}_theory"], paper_row[f"{name}_simulated"] = in_theory, measured
            if measured and stderr and stderr > 0:  # to two digits of the standard error
                digits = max(0, 1 - math.floor(math.log10(stderr)))
                paper_row[f"{name}_simulated"] = rf"${measured:.{digits}f} \pm {stderr:.{digits}f}$"
            paper_row[f"{name}_difference_%"] = None
            if measured and in_theory is not None:
                paper_row[f"{name}_difference_%"] = f"${100 * (1 - in_theory / measured):.1f}$"
        printed_rows.append(paper_row | {name: theory[name] for name in theory_column})
    return printed_rows


def problem_at_grid_start(
    request: cli.Request, on_grids: Container[str] = ()
) -> tuple[Problem, float | None]:
    """The problem with the first value of every grid, and its beta where that is not a field; grids
    of other fields than those ``on_grids`` are refused."""
    request.refuse_grids(allowed=on_grids)
    start_problem = request.problem
    if start_problem.reuse:
        return start_problem, None
    if start_problem.rows is not None:  # the network of its step is drawn
        return start_problem.step, start_problem.model_at().beta
    return start_problem, float(request.grids["beta"][0]) if start_problem.schedule else None


LADDER = drawn(
    "ladder", str | None, None, "Dimensions such as 250,500,1000: compare their limit d -> inf."
)


@cli.command(offered=tuple(cli.HELP), files=cli.DATASETS, also=(*MONTE_CARLO, LADDER))
def compare(
    options: cli.Options,
    output: cli.Output,
    *,
    ladder: str | None,
    quadrature_tol: cli.Tolerance = None,
    time_limit: cli.TimeLimit = TIME_LIMIT,
    **settings: Any,
) -> bool:
    """Theory beside a Monte Carlo of the same problem, with a z-score for every point.

    z = (simulated - theory) / standard error, which of a few seeds is large by chance more often
    than of many: the verdict allows for that, and of fewer than 8 it never is that they disagree.
    The theory is that of the simulated dimension up to terms of order 1/d: what is off by more than
    chance, but by less than 20/d of itself (1/n, of what is given), is called close but not equal;
    more than 10 % apart, not equal.  A figure has the limit as pale lines.  The theory of a row is
    named where that differs between rows; --theory given is that of the first layer of every draw.
    With --ladder, the limit that simulations at several dimensions point to, by a line in 1/d;
    --seeds is then for the largest of them.

    A first layer of --weights, or the --features with their --labels, are the same in every draw:
    fresh samples, or other splits of the rows, are what is drawn.  Each of --samples is tested on
    all rows that are not to train: where these are few it takes many --seeds.

    The exit status is 1 where they disagree, and 0 where they are close, or there are not enough
    draws to tell.

    In Python: validation.compare and validation.ladder.

    Examples
    --------
    replica-validate compare --student tanh --target sin --alpha0 20 --eta 3 --alpha 0.5,1,2
    --lam 0.1 --plot points.png

    replica-validate compare --student tanh --target sin --alpha0 2 --eta 1,3 --beta 0.5,1
    --readout equal,gaussian --alpha 0.5:3:6 --lam 0.1 --simulated srf --out grid.csv
    """
    if ladder is not None and settings["dimension"] is not None:
        raise InvalidArgument("dimension", settings["dimension"], "left out with --ladder")
    problem, readout_settings, grids = parse_simulation(options, settings, on_grids=True)
    run_compared: Any = run_comparison
    if ladder is not None:
        if cli.asks_for_given(options):
            raise InvalidArgument("ladder", ladder, "left out of what is given, which has its size")
        del settings["dimension"]
        run_compared = partial(run_ladder, dimensions=dimensions(ladder))
    if any(grid.size > 1 for grid in grids.values()):
        varied = {name: grid for name, grid in grids.items() if grid.size > 1 or name == "rate"}
        run_compared = partial(compare_grid, grids=varied, run=run_compared)
    with drawing(settings) as monte_carlo:
        limits = {"quadrature_tol": quadrature_tol, "time_limit": time_limit}
        of_theory = {"theory": options.get("theory")} | limits
        comparison = run_compared(problem, **of_theory, **readout_settings, **monte_carlo)
    document = comparison.document()

    def show() -> None:
        show_points(document, output)
        if ladder is not None:
            cli.say(
                "note: simulated are the limits of lines in 1/d, from which size d differs by "
                "slope/d; p_value is the chance of means as far off their line: small, it asks for "
                "larger sizes"
            )
        compared = cli.with_options(f"Compared with the {comparison.note}.")
        theory_notes = [cli.with_options(f"Of the theory {note}.") for note in comparison.notes]
        cli.answer("\n".join([compared, comparison.verdict, *theory_notes]))

    in_papers = ["test_error", "train_error"]
    if "classification_error" in comparison.checks:
        in_papers = ["classification_error", "test_error"]
    output.write(
        document,
        show,
        rows=sized_rows(document),
        paper=paper_rows(document["points"], in_papers),
        figure=lambda: comparison.plot().figure,
        dataset=comparison.dataset,
    )
    if not cli.asks_for_given(options):
        cli.note_worse_than_zero(problem, comparison.checks["test_error"].theory.ravel())
    return not comparison.disagrees


def dimensions(ladder: str) -> list[int]:
    """Dimensions of ``--ladder``; text that is no number is refused."""
    try:
        return [int(typed_size) for typed_size in ladder.split(",")]
    except ValueError:
        raise InvalidArgument("ladder", ladder, "dimensions such as 250,500,1000") from None


SHARD = drawn(
    "shard", str | None, None, "i/N: only this part of the seeds, into --store; without, join them."
)


@cli.command(
    offered=tuple(cli.HELP),
    without=("theory",),
    files=cli.DATASETS,
    also=(*MONTE_CARLO, SHARD),
    drawn=False,
)
def simulate(
    options: cli.Options, output: cli.Output, *, shard: str | None, **settings: Any
) -> None:
    """A Monte Carlo by itself: mean errors and their standard errors.

    With --store, a run that was stopped goes on when the same line is typed again; --shard 2/8
    does one part of it in a job array.  In Python: validation.simulate.

    Examples
    --------
    replica-validate simulate --student tanh --target sin --alpha0 20 --eta 3 --alpha 0.5,1,2
    --lam 0.1 --dimension 500 --seeds 50 --store cells --out errors.nc

    replica-validate simulate --config problem.toml --dimension 2000 --store cells --shard 3/16
    """
    if shard is not None and settings["store"] is None:
        raise InvalidArgument("shard", shard, "given with --store, where the parts meet")
    problem, readout_settings, _ = parse_simulation(options, settings, on_grids=False)
    with drawing(settings) as monte_carlo:
        simulation = run_simulation(problem, shard=shard, **readout_settings, **monte_carlo)
    document = simulation.document()
    rows, show = sized_rows(document), partial(show_points, document, output)
    output.write(document, show, rows=rows, paper=document["points"], dataset=simulation.dataset)


@cli.command(
    without=(*cli.SRF_FIELDS, "theory", "alpha", "lam", "intercept", "train_bias", "loss", "reuse"),
    also=(DIMENSION, SEEDS, RNG),
)
def alignment(options: cli.Options, output: cli.Output, **settings: Any) -> None:
    """Cosines of neurons and of their gradients with the target's directions, step by step.

    Averages over the neurons, each with the sign of its readout, beside the theory.

    Examples
    --------
    replica-validate alignment --student tanh --target sin --alpha0 3 --eta 1 --rng 0 --plot a.png

    replica-validate alignment --student relu --target "z1 + z1*z2" --steps 2:1,2:1,2:1 --rng 0
    """
    request = cli.parse_request(options, required=())  # no readout is trained here
    problem, width_ratio = problem_at_grid_start(request)
    if not problem.schedule or width_ratio is None:
        raise InvalidArgument("r", options.get("r"), "left out: a step is what is followed here")
    with cli.progress("draws") as advance:
        comparison = compare_alignment(
            cast(GradientStep, problem), beta=width_ratio, progress=advance, **settings
        )
    draw_sizes = {name: settings[name] for name in ("dimension", "seeds")}
    described_problem = describe(problem) | {"beta": width_ratio}
    document = {"problem": described_problem, "points": rows_of(comparison.columns)} | draw_sizes

    def figure() -> Any:
        return comparison.plot(described=described_problem | draw_sizes).figure

    rows, paper = sized_rows(document), paper_rows(document["points"], ["weights", "gradients"])
    print_points = partial(show_points, document, output)
    output.write(document, print_points, rows=rows, paper=paper, figure=figure)
    cli.say(
        f"note: the theory is the limit; cosines at d = {settings['dimension']} differ from it by "
        "terms of order 1/d, and a large z where their standard errors are smaller is no error"
    )


def outliers_of(predicted_spectrum: Spectrum, simulated_eigenvalues: Array) -> list[dict[str, Any]]:
    """The outliers of a spectrum and of simulated eigenvalues (draws, p), from the largest on.

    Of each the position in theory; ``largest``, the mean over all draws of the eigenvalue of the
    same rank, with ``largest_stderr``; ``draws``, the number of draws in which this is above the
    ``threshold``, and its mean over those alone, ``simulated`` with ``stderr``, which is too large
    where they are not all.  NaN where there is none.
    """
    width = simulated_eigenvalues.shape[1]
    seen = predicted_spectrum.outliers_among(simulated_eigenvalues)
    theory_positions = np.sort(predicted_spectrum.outliers_at(width))[::-1]
    descending = np.sort(simulated_eigenvalues)[:, ::-1]
    outlier_rows = []
    for k in range(max(len(theory_positions), seen.shape[1])):
        peaks = seen[np.isfinite(seen[:, k]), k] if k < seen.shape[1] else np.empty(0)
        outlier_rows.append(
            {
                "theory": theory_positions[k] if k < len(theory_positions) else np.nan,
                "largest": descending[:, k].mean(),
                "largest_stderr": float(standard_error(descending[:, k])),
                "simulated": peaks.mean() if peaks.size else np.nan,
                "stderr": float(standard_error(peaks)),
                "draws": peaks.size,
                "threshold": predicted_spectrum.outlier_threshold(width),
            }
        )
    return outlier_rows


def outlier_text(row: Mapping[str, Any], rank: int, seeds: int) -> str:
    """Sentence on one of the rows of ``outliers_of``, of a ``rank`` from 1 on."""

    def mean_text(name: str, stderr: str, draws: int) -> str:
        # two or three draws know no standard error
        return f"{row[name]:.4g}" + f" ± {row[stderr]:.2g} (standard error)" * (draws >= 4)

    clear = f"{row['draws']} of {seeds} draws"
    threshold = f"clear of the bulk (above {row['threshold']:.4g})"
    if np.isnan(row["theory"]):
        where = mean_text("simulated", "stderr", row["draws"])
        return (
            f"outlier: theory none, simulated at {where} in the {clear} that have one {threshold}"
        )
    which = "largest eigenvalue" if rank == 1 else f"eigenvalue {rank} from the largest on"
    all_draws = mean_text("largest", "largest_stderr", seeds)
    return (
        f"outlier: theory at {row['theory']:.4g}, simulated {which} at {all_draws}, the mean over "
        f"all draws; {threshold} in {clear}"
    )


@cli.command(
    without=("lam", "intercept", "train_bias", "loss", "reuse"),
    files=(".json",),
    also=(DIMENSION, drawn("seeds", int, 2, "Independent draws."), RNG, SIMULATED),
    tabular=False,
)
def spectrum(
    options: cli.Options,
    output: cli.Output,
    *,
    dimension: int,
    seeds: int,
    rng: int | None,
    simulated: Simulated,
    time_limit: cli.TimeLimit = TIME_LIMIT,
) -> bool:
    """The theory's density over a histogram of simulated eigenvalues of Phi^T Phi / n.

    Outliers lie beyond the bulk.  The theory's at this dimension is beside the mean over all draws
    of the simulated eigenvalue of its rank, with the number of draws in which that is clear of the
    bulk.  Where the theory is not found in time, the simulated eigenvalues alone are answered,
    drawn and saved, with status 1.

    Examples
    --------
    replica-validate spectrum --student tanh --target sin --alpha0 20 --eta 3 --alpha 2 --rng 0
    --plot spectrum.png

    replica-validate spectrum --student relu --target sin --alpha0 1 --eta 2 --alpha 3
    --simulated srf --dimension 800
    """
    request = cli.parse_request(options, required=("alpha",))
    if simulated is Simulated.gaussian:
        raise InvalidArgument("simulated", simulated, "network or srf for eigenvalues")
    problem, width_ratio = problem_at_grid_start(request)
    if simulated is Simulated.srf:
        problem, width_ratio = spiked_model(problem, width_ratio), None
    alpha = cli.single_number("alpha", request.alpha)
    theory = theory_of(problem, width_ratio, request.theory)
    law, not_compared = None, ""
    try:
        law = compute(theory.model, alpha, time_limit=time_limit)
    except (ConvergenceError, QuadratureError) as error:  # eigenvalues are known without it
        not_compared = f"simulated alone, without the theory: {error}"
    drawn = eigenvalues(
        problem, alpha=alpha, dimension=dimension, seeds=seeds, rng=rng, beta=width_ratio
    )
    draw_sizes = {"dimension": dimension, "seeds": seeds}
    if law is None:
        largest_drawn = ", ".join(f"{x:.4g}" for x in np.sort(drawn, axis=None)[::-1][:3])
        output.write(
            {**draw_sizes, "theory": None, "status": not_compared, "eigenvalues": drawn},
            lambda: cli.answer(f"largest of {drawn.size} simulated eigenvalues: {largest_drawn}"),
            figure=lambda: plot_spectrum(None, eigenvalues=drawn).figure,
        )
        cli.say(f"WARNING: {cli.with_options(not_compared)}")
        return False
    # at three places above the bulk
    stieltjes_at = np.geomspace(max(law.edges.min(), 1e-3), law.edges.max(), 5)[1:-1] * (1 + 0.5j)
    simulated_stieltjes = (1 / (drawn[..., None] - stieltjes_at)).mean(axis=(0, 1))
    predicted_stieltjes = law.stieltjes(stieltjes_at)
    outlier_rows = outliers_of(law, drawn)
    document = cli.spectrum_document(law, 1000) | {
        **draw_sizes,
        "theory": theory.note,
        "stieltjes_at": np.stack([stieltjes_at.real, stieltjes_at.imag], axis=-1),
        "stieltjes_off_by": np.abs(simulated_stieltjes / predicted_stieltjes - 1),
        "outliers_compared": outlier_rows,
        "eigenvalues": drawn,
    }

    def show() -> None:
        cli.answer(theory.note)
        stieltjes_gaps = zip(document["stieltjes_off_by"], document["stieltjes_at"], strict=True)
        stieltjes_text = ", ".join(
            f"{'not known' if np.isnan(value) else f'{value:.1%}'} at z = {x:.2g} + {y:.2g}i"
            for value, (x, y) in stieltjes_gaps
        )
        cli.answer(f"relative differences of the Stieltjes transform: {stieltjes_text}")
        for rank, outlier_row in enumerate(outlier_rows, start=1):
            cli.answer(outlier_text(outlier_row, rank, seeds))
        if not outlier_rows:
            cli.answer("outliers: none, in theory and in simulation")

    output.write(document, show, figure=lambda: plot_spectrum(law, eigenvalues=drawn).figure)
    cli.warn_unless_converged(law)
    return law.converged
