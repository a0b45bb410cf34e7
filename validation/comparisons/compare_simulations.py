"""Simulations beside the theory, or another one where that has no answer: at one dimension, at
several, and over a problem's parameters.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from replica.display import Progress, progress_callback, report_part
from replica.errors import InvalidArgument
from replica.given import Given
from replica.observables import grid_axes, places_on_grid
from replica.problem import MAX_NUMBER, Problem, check_call, number
from solvers.quadrature import QuadratureError
from solvers.resources import TIME_LIMIT
from solvers.results import Array, ConvergenceError

from ..draws import as_given, seed_count, whole_number
from ..run import Simulated, Simulation, draw_layer, simulate, standard_error
from .agreement_checks import ALLOWANCE, Check, extrapolate, skewness
from .comparison_results import Comparison
from .theory import OF_DRAWS, PUBLISHED, Remarks, Theory, exact, theory_at, theory_of

Checks = dict[str, Check]


def with_others(taken: Theory, simulation: Simulation) -> Iterator[Theory]:
    """A theory of the simulated model, and its alternatives: the theory of the sRF; and the theory
    given the first layer of every draw, with the first draw's for lines."""
    yield taken
    if taken.published is not None:
        yield srf_instead(taken)
    experiment = simulation.experiment
    if isinstance(taken.model, Given) or taken.model.reuse or experiment.model.train_bias:
        return
    if experiment.simulated is not Simulated.gaussian:
        with suppress(InvalidArgument):  # of a student that jumps there is no theory
            drawn_layer = as_given(experiment.model, draw_layer(experiment, simulation.seed[0]))
            yield Theory(drawn_layer, None, OF_DRAWS, of_draws=True)


def srf_instead(network_theory: Theory) -> Theory:
    """Theory of the sRF in the place of a network's own."""
    return Theory(network_theory.published, None, PUBLISHED)


def first_answer(
    theories: Iterable[Theory],
    dimension: float,
    checks_of: Callable[[Theory], tuple[Checks, Remarks]],
) -> tuple[Theory, Checks, Remarks]:
    """The first of some ``theories``, at a dimension, that is known somewhere, with its checks and
    remarks; where none is, the first that refuses nothing.  Where that of a network at its own
    dimension is not known, the limit is taken.

    Raises
    ------
    InvalidArgument, QuadratureError, ConvergenceError
        If all refuse, with the reason of the first theory.
    """
    solved_theories, theory_refusals, reasons = [], [], []
    for candidate in theories:
        tried_theory = candidate.at(dimension)
        reasons += [tried_theory.reason] * bool(tried_theory.reason)
        try:
            checks, remarks = checks_of(tried_theory)
            if tried_theory.at_own_dimension and not tried_theory.of_draws:
                tried_theory, checks = with_limit(tried_theory, checks, checks_of)
                reasons += [tried_theory.reason] * bool(tried_theory.reason)
        except (InvalidArgument, QuadratureError, ConvergenceError) as error:
            theory_refusals.append(error)
            reasons.append(f"the {tried_theory.note} has no answer ({error})")
            continue
        solved_theories.append((replace(tried_theory, reason="; ".join(reasons)), checks, remarks))
        if all(np.isfinite(check.theory).any() for check in checks.values()):
            return solved_theories[-1]
        theory_name = tried_theory.note.partition(";")[0]
        reasons.append(f"the {theory_name} at d = {dimension:g} has no answer at any point")
    if not solved_theories:
        raise theory_refusals[0]
    return solved_theories[0]


def with_limit(
    theory: Theory, checks: Checks, checks_of: Callable[[Theory], tuple[Checks, Remarks]]
) -> tuple[Theory, Checks]:
    """A theory of a network at its own dimension and its ``checks``, with the limit at the points
    where it has no answer and the limit has; the limit alone where these are all."""
    unknown = np.any([np.isnan(check.theory) for check in checks.values()], axis=0)
    limits = checks
    if unknown.any():
        with suppress(InvalidArgument, QuadratureError, ConvergenceError):
            limits, _ = checks_of(theory.limit)
    taken = unknown & np.all([np.isfinite(check.theory) for check in limits.values()], axis=0)
    if not taken.any():
        return theory, checks
    reason = f"the {theory.note.partition(';')[0]} at d = {theory.model.dimension:g} has no answer "
    if taken.all():
        return replace(theory.limit, reason=f"{reason}at any point"), limits
    where = "where" if np.array_equal(taken, unknown) else "of which at some"
    reason += f"at {unknown.sum()} of {unknown.size} points, {where} the limit is taken"
    return replace(theory, reason=reason, unanswered=taken), {
        name: check._replace(theory=np.where(taken, limits[name].theory, check.theory))
        for name, check in checks.items()
    }


def checks_at(theory: Theory, simulation: Simulation, **limits: Any) -> tuple[Checks, Remarks]:
    """A simulation beside a theory at its points, by name of what is measured; and remarks.

    Of a theory given each first layer there are means over the draws, and standard errors of their
    differences.
    """
    setup, models = simulation.experiment, [theory.model]
    if theory.of_draws:
        models = [as_given(setup.model, draw_layer(setup, index)) for index in simulation.seed]
    theory_answers = []
    for model in models:
        theory_answers.append(theory_at(model, simulation, **limits))
        if not np.isfinite([*theory_answers[-1][0].values()]).any():
            break  # nor have other draws an answer, and each may take as long
    checks = {}
    for name, errors in simulation.errors.items():
        theory_errors = np.array([columns[name] for columns, _ in theory_answers])
        draw_scatter = errors - theory_errors if theory.of_draws else errors
        compared_means = theory_errors.mean(axis=0), errors.mean(axis=0)
        checks[name] = Check(*compared_means, standard_error(draw_scatter), skewness(draw_scatter))
    return checks, Remarks() if theory.of_draws else theory_answers[0][1]


@check_call
def compare(
    problem: Problem | Given,
    *,
    alpha: ArrayLike | None = None,
    samples: ArrayLike | None = None,
    lam: ArrayLike,
    dimension: int | None = None,
    seeds: int,
    beta: float | None = None,
    simulated: str = "network",
    allowance: float | None = None,
    theory: str | None = None,
    quadrature_tol: float | None = None,
    time_limit: float = TIME_LIMIT,
    **options: Any,
) -> Comparison:
    """Simulate ``problem`` and put its theory beside it.

    Parameters
    ----------
    problem, alpha, samples, lam, dimension, seeds, beta, simulated
        As in :func:`simulate`.
    allowance : float
        Finite-size bias to allow for, relative to the theory; 20 / dimension unless
        said, and 1 / n at every n where the theory is of given layers or features.
    theory : {"network", "srf", "given"}, optional
        The theory to take for the network of a GradientStep; unless said its own, that of the sRF
        where that has no answer, and "given" where neither has.  "given" is that of the first
        layer of every draw, at its finite size; standard errors are then of the differences,
        without the noise of the layers.  docs/theory.md 20
    quadrature_tol, time_limit : float
        Tolerance and seconds of a point of the theory, as in :func:`replica.solve`.
    **options
        The other arguments of :func:`simulate`: loss, rng, store, workers and so on.

    Raises
    ------
    InvalidArgument
        If an argument is out of range, or the problem cannot be simulated.

    Notes
    -----
    *Seeds.*  z follows Student's t with seeds - 1 degrees of freedom: without any bias,
    abs(z) <= 2 at 82 % of the points with 3 seeds, 88 % with 5 and 92 % with 10.  Take 8 or
    more: of fewer the verdict is never that they disagree.

    *Allowance.*  For spiked and plain random features of seven kinds at d = 100, 200 and 400,
    the measured bias of the test error was within 16/d of the theory at lam = 0.1 and 0.001,
    and so was that of the training error at lam = 0.1.

    *Interpolation.*  Where the training error almost vanishes (lam << 1, n < p) it can be
    carried by rare inputs, such as those at which a monotone student leaves a sine: at
    lam = 0.001, alpha = 0.5, d = 500 it was found 26 % below the theory, and spread by more
    than its mean.  There the verdict asks for more draws.

    *Large m.*  The overlap m is free in the limit, but costs m^2 / p at finite width: the theory is
    taken at the simulated dimension (the ``dimension`` of SpikedRandomFeatures), of a model that
    has none of its own.  That tells where m is large - groups with nearly dependent mu_0, such as
    relu with biases +-1 and a short spike (m = -40), or a Gaussian readout and a target that one
    mu_0 does not fit - and where lam is not much less than n.  Relu with biases +-1 was simulated
    at .261 +- .003 (d = 600) and .198 +- .002 (d = 2400), where the theory has .252 and .194 at
    those d, and .145 in the limit; tanh/sin at lam = 1e4, d = 100 at .437 +- .003, where it has
    .430, and .046 in the limit.

    *The network.*  Where the step has a theory of its own network (:class:`replica.Network`),
    that is taken.  Elsewhere it is that of the sRF, the published equivalent, from which the
    network keeps a difference that does not shrink with d: at d = 200, 400 and 800, test errors
    were 3 to 6 % below the sRF's for relu/relu, alpha0 = 3, eta = 1.  With enough seeds,
    disagreement is then the right verdict.  To test the equations, compare ``step.srf(beta=...)``.

    Examples
    --------
    >>> from replica import SpikedRandomFeatures
    >>> from validation import compare
    >>> model = SpikedRandomFeatures(student="erf", target="sin", r=1.0, c=1.0, gamma=0.9)
    >>> compare(model, alpha=[0.5, 2], lam=0.1, dimension=100, seeds=5, rng=0).agrees
    True
    """
    if allowance is not None:
        allowance = number("allowance", allowance, 0, MAX_NUMBER, "0 or more (relative)")
    chosen_theory = theory_of(problem, beta, theory, simulated)
    simulation = simulate(
        problem,
        alpha=alpha,
        samples=samples,
        lam=lam,
        dimension=dimension,
        seeds=seeds,
        beta=beta,
        simulated=simulated,
        **options,
    )
    chosen_theory = replace(chosen_theory, square=simulation.loss.is_square)
    theories = [chosen_theory] if theory is not None else with_others(chosen_theory, simulation)
    limits: dict[str, Any] = {"quadrature_tol": quadrature_tol, "time_limit": time_limit}
    checks_of = partial(checks_at, simulation=simulation, **limits)
    chosen_theory, checks, remarks = first_answer(theories, simulation.dimension, checks_of)
    allowed: Any = allowance
    if allowance is None:
        bias_of_samples, per_d = 1 / simulation.samples[:, None], ALLOWANCE / simulation.dimension
        allowed = bias_of_samples if exact(simulation, chosen_theory) else per_d
    return Comparison(
        simulation.axes, checks, [simulation], [chosen_theory], allowed, remarks=remarks
    )


@check_call
def ladder(
    problem: Problem,
    *,
    alpha: ArrayLike,
    lam: ArrayLike,
    dimensions: Sequence[int],
    seeds: int,
    beta: float | None = None,
    simulated: str = "network",
    theory: str | None = None,
    quadrature_tol: float | None = None,
    time_limit: float = TIME_LIMIT,
    progress: bool | Progress = False,
    **options: Any,
) -> Comparison:
    """Simulate ``problem`` at several dimensions and put their limit beside its theory.

    Parameters
    ----------
    problem, alpha, lam, beta, simulated
        As in :func:`simulate`.
    dimensions : sequence of int
        Two or more sizes.
    seeds : int
        Draws at the largest size.  Smaller ones, which are cheap, get more in proportion:
        every size then has the same weight.
    theory, quadrature_tol, time_limit
        The theory to take, and its tolerance and seconds a point, as in :func:`compare`.
    progress : bool or callable
        As in :func:`simulate`, of the draws of all sizes.
    **options
        The other arguments of :func:`simulate`: loss, rng, store, workers and so on.

    Raises
    ------
    InvalidArgument

    Examples
    --------
    >>> from replica import SpikedRandomFeatures
    >>> from validation import ladder
    >>> model = SpikedRandomFeatures(student="erf", target="sin", r=1.0, c=1.0, gamma=0.9)
    >>> result = ladder(model, alpha=[0.5, 2], lam=1.0, dimensions=[40, 80, 160], seeds=5, rng=0)
    >>> result.agrees, result.lines["test_error"].limit.shape
    (True, (2, 1))
    """
    rung_sizes = sorted({whole_number("ladder", d, 2, "an input dimension d") for d in dimensions})
    if len(rung_sizes) < 2:
        raise InvalidArgument("ladder", list(dimensions), "two or more different dimensions")
    if options.get("shard") is not None:
        raise InvalidArgument("shard", options["shard"], "left out: a ladder needs all seeds")
    seed_count(seeds, least=2)
    compared = theory_of(problem, beta, theory, simulated)
    if compared.of_draws:
        allowed_theories = "srf or network: what is given has no limit (compare takes it)"
        raise InvalidArgument("theory", theory, allowed_theories)
    seeds_at_size = [round(seeds * rung_sizes[-1] / d) for d in rung_sizes]
    simulations: list[Simulation] = []

    with progress_callback(progress, "draws") as report_all:

        def advance(done: int, _: int) -> None:
            if report_all is not None:
                report_all(sum(seeds_at_size[: len(simulations)]) + done, sum(seeds_at_size))

        rung_settings = {"alpha": alpha, "lam": lam, "beta": beta, "simulated": simulated} | options
        for size, count in zip(rung_sizes, seeds_at_size, strict=True):
            rung_options: dict[str, Any] = {"dimension": size, "seeds": count, "progress": advance}
            simulations.append(simulate(problem, **rung_options, **rung_settings))
    found = [simulation.columns for simulation in simulations]
    rung_means = {name: np.array([columns[name] for columns in found]) for name in found[0]}
    d, rung_seeds = np.array(rung_sizes), np.array(seeds_at_size)
    ladder_lines = {
        name: extrapolate(d, rung_means[name], rung_means[f"{name}_stderr"], rung_seeds)
        for name in simulations[0].errors
    }

    def limits(of: Theory) -> tuple[dict[str, Check], Remarks]:
        theory_columns, remarks = theory_at(
            of.model, simulations[0], quadrature_tol=quadrature_tol, time_limit=time_limit
        )
        largest = simulations[-1].errors
        return {
            name: Check(theory_columns[name], line.limit, line.stderr, skewness(largest[name]))
            for name, line in ladder_lines.items()
        }, remarks

    srf = [] if theory is not None or compared.published is None else [srf_instead(compared)]
    compared, checks, _ = first_answer([compared, *srf], np.inf, limits)
    allowance = (ALLOWANCE / rung_sizes[0]) ** 2
    return Comparison(simulations[0].axes, checks, simulations, [compared], allowance, ladder_lines)


def compare_grid(
    problem: Problem,
    *,
    grids: Mapping[str, ArrayLike],
    run: Callable[..., Comparison] = compare,
    beta: float | None = None,
    progress: bool | Progress = False,
    **options: Any,
) -> Comparison:
    """Simulate a problem for every combination of some of its parameters, beside the theory.

    Parameters
    ----------
    problem : GradientStep or SpikedRandomFeatures
    grids : dict of name -> values
        As for :func:`replica.learning_curve`: ``{"eta": [1, 3]}``,
        ``{"readout": ["equal", "gaussian"]}``.
    run : callable
        :func:`compare` or :func:`ladder`; what else it takes are the ``options``.
    beta : float
        Width over input dimension p/d, for a GradientStep, unless it is among the ``grids``.
    progress : bool or callable
        As in :func:`simulate`, of the draws at all places.

    Raises
    ------
    InvalidArgument

    Examples
    --------
    >>> from replica import GradientStep
    >>> from validation.comparisons import compare_grid
    >>> step = GradientStep(student="tanh", target="sin", alpha0=20, eta=3.0)
    >>> at = dict(alpha=[0.5, 2], lam=0.1, dimension=60, seeds=3, rng=0, beta=1.0)
    >>> dict(compare_grid(step, grids={"eta": [1, 3]}, **at).dataset().sizes)
    {'eta': 2, 'alpha': 2, 'source': 2}
    """
    setting_axes = grid_axes(problem, grids)
    comparisons: list[Comparison] = []
    setting_count = int(np.prod([axis.size for axis in setting_axes.values()]))

    with progress_callback(progress, "draws") as report_all:
        for problem_at, width in problems_on_grid(problem, setting_axes, beta):
            advance = report_part(report_all, len(comparisons), setting_count)
            comparisons.append(run(problem_at, beta=width, progress=advance, **options))
    theory_options = {name: options[name] for name in ("theory", "simulated") if name in options}
    size = comparisons[0].theories[0].model.dimension

    def between(varied: Mapping[str, Array]) -> list[Theory]:
        """The theories at other values of the parameters of the problem."""
        at_values = problems_on_grid(problem, varied, beta)
        return [theory_of(other, width, **theory_options).at(size) for other, width in at_values]

    same_theories = not any(comparison.theories[0].reason for comparison in comparisons)
    axes_of_all = setting_axes | comparisons[0].axes
    shape = [axis.size for axis in axes_of_all.values()]
    return Comparison(
        axes_of_all,
        joined([comparison.checks for comparison in comparisons], shape),
        [simulation for comparison in comparisons for simulation in comparison.simulations],
        [comparison.theories[0] for comparison in comparisons],
        [comparison.allowance for comparison in comparisons],
        joined([comparison.lines for comparison in comparisons], shape),
        between if same_theories else None,
        parts=comparisons,
    )


def problems_on_grid(
    problem: Problem, axes: Mapping[str, Array], beta: float | None
) -> Iterator[tuple[Problem, float | None]]:
    """The problem of every combination, and its width where that is not its own."""
    for setting in places_on_grid(axes):
        if problem.schedule:
            grid_beta = setting.pop("beta", beta)
            yield problem.step.with_values(grid_beta, setting), grid_beta
        else:
            yield problem.model_at(**setting), beta


def joined(of_settings: Sequence[Mapping[str, Any]], shape: Sequence[int]) -> dict[str, Any]:
    """The checks, or the lines, of all settings as one; NaN where something is not measured."""
    not_measured = np.full(shape[-2:], np.nan)
    all_settings = {}
    for name in dict.fromkeys(name for entry in of_settings for name in entry):
        result_type = type(next(entry[name] for entry in of_settings if name in entry))
        missing_fields = [not_measured] * len(result_type._fields)
        field_values = zip(*(entry.get(name, missing_fields) for entry in of_settings), strict=True)
        all_settings[name] = result_type(*(np.reshape(field, shape) for field in field_values))
    return all_settings
