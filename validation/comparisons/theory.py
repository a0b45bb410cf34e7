"""Choice of the theory that a simulation is compared with, and its lines in a figure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np

from replica.convex import Loss
from replica.errors import InvalidArgument
from replica.given import Given
from replica.observables import notes_on, solve_grid
from replica.plotting import ERROR_LABELS, LIMIT
from replica.problem import Problem, SpikedRandomFeatures
from replica.steps import THEORIES, GradientStep, reason_not_covered
from solvers.quadrature import QuadratureError
from solvers.results import Array

from ..draws import spiked_model
from ..run import Simulated, Simulation

if TYPE_CHECKING:
    import xarray

# Labels of lines, in this order.
NETWORK, SRF, GIVEN = "theory of the network", "theory of the sRF", "theory given the features"
NETWORK_LIMIT = f"{NETWORK}, {LIMIT}"
PUBLISHED = "theory of the sRF, the published equivalent"
OF_DRAWS = "theory given the first layer of every draw"
Solvable = SpikedRandomFeatures | Given


@dataclass(frozen=True)
class Theory:
    """The theory of a simulated problem.

    Attributes
    ----------
    model : SpikedRandomFeatures, FirstLayer, FeatureSample or FeatureMoments
    published : SpikedRandomFeatures or None
        The sRF beside the network's own theory; None where ``model`` is the sRF.
    note : str
        A sentence that says which theory it is, and why where that may surprise.
    of_draws : bool
        Whether what is compared is the theory of the first layer of every draw; the ``model`` is
        then that of lines.
    reason : str
        Why it takes the place of another one, which has no answer; empty where it does not.
    square : bool
        Whether the loss is the square, the only one with a theory of a network's own dimension.
    unanswered : bool array (N_a, N_l), or False
        Points of alpha and lam at which the ``limit`` is compared, as this theory of a network's
        own dimension has no answer there.
    """

    model: Any
    published: SpikedRandomFeatures | None
    note: str
    of_draws: bool = False
    reason: str = ""
    square: bool = True
    unanswered: Any = field(default=False, compare=False)

    def at(self, dimension: float) -> "Theory":
        """Theory at a finite ``dimension``, which prices m; itself if it has a dimension of its
        own."""
        own_size = isinstance(self.model, Given) or np.isfinite(self.model.dimension)
        if own_size or np.isinf(dimension):
            return self
        model_at_d = replace(self.model, dimension=dimension)
        published = self.published and replace(self.published, dimension=dimension)
        theory_at = replace(self, model=model_at_d, published=published)
        price_note = "" if theory_at.at_own_dimension else ", with the price of m alone"
        taken = "" if self.of_draws else f"; taken at d = {dimension}, not in the limit{price_note}"
        return replace(theory_at, note=f"{self.note}{taken}")

    @property
    def name(self) -> str:
        """Name of the theory in tables and legends: "network at d = 100", at its own dimension;
        "network limit", or "srf limit", of d -> inf, and "... + price of m" where that is of a
        finite dimension; "given" of given features and of given or drawn layers."""
        if self.of_draws or isinstance(self.model, Given):
            return "given"
        if self.at_own_dimension:
            return f"network at d = {self.model.dimension:g}"
        theory_kind = "srf" if self.model.rows is None else "network"
        return f"{theory_kind} limit" + " + price of m" * bool(np.isfinite(self.model.dimension))

    @property
    def at_own_dimension(self) -> bool:
        """True for a network with the loadings of its dimension.  docs/theory.md 23"""
        has_rows = self.square and not isinstance(self.model, Given)
        return has_rows and bool(np.isfinite(self.model.own_dimension))

    @property
    def names(self) -> Array:
        """The ``name`` of the theory of every point, (N_a, N_l), or one for all, ()."""
        return np.where(self.unanswered, "network limit", self.name)

    @property
    def limit(self) -> "Theory":
        """Limit d -> inf of the theory of a network at its own dimension."""
        note = f"{self.note.partition(';')[0]}; in the limit, not at d = {self.model.dimension:g}"
        published = self.published and replace(self.published, dimension=np.inf)
        limit_model = replace(self.model, dimension=np.inf)
        return replace(self, model=limit_model, published=published, note=note, unanswered=False)

    @property
    def lines(self) -> dict[str, Solvable]:
        """Models whose lines a figure shows, by label: the network's own theory, the published sRF,
        the limit of the first of them that there is, where its dimension is finite."""
        if isinstance(self.model, Given):
            return {GIVEN: self.model}
        is_finite = np.isfinite(self.model.dimension)
        of_network = NETWORK if is_finite else NETWORK_LIMIT
        lines: dict[str, Solvable] = {SRF if self.model.rows is None else of_network: self.model}
        lines |= {} if self.published is None else {SRF: self.published}
        if is_finite:
            lines[LIMIT] = replace(self.model, dimension=np.inf)
        return lines


def theory_of(
    problem: Problem | Given,
    beta: float | None,
    theory: str | None = None,
    simulated: str = "network",
) -> Theory:
    """Theory of the network where ``problem`` is a step that it covers, else of the sRF.

    Parameters
    ----------
    problem : GradientStep, SpikedRandomFeatures, FirstLayer, FeatureSample or FeatureMoments
    beta : float
        Width over input dimension p/d, for a GradientStep.
    theory : {"network", "srf", "given"}, optional
        The theory of a step to take, instead; or that of every drawn first layer.
    simulated : {"network", "srf", "gaussian"}
        Model that is drawn of a step, as in :func:`simulate`.

    Raises
    ------
    InvalidArgument
        If the network's theory is asked for where there is none.
    """
    if isinstance(problem, Given):
        if theory is not None:
            raise InvalidArgument(
                "theory", theory, "left out of what is given, whose theory is one"
            )
        return Theory(problem, None, "theory of the readout, given what is the same in every draw")
    if problem.rows is not None:
        if theory not in (None, "network"):
            raise InvalidArgument("theory", theory, "left out of a network, which has its own")
        reused = f", a share {problem.rows.reuse:g} of samples reused" * (problem.rows.reuse > 0)
        return Theory(problem, None, f"theory of the network itself{reused}")
    if theory == "given":
        if simulated == "gaussian":
            allowed_theories = "srf or network: in the conditional Gaussian model no layer is drawn"
            raise InvalidArgument("theory", theory, allowed_theories)
        return replace(theory_of(problem, beta, None, simulated), note=OF_DRAWS, of_draws=True)
    srf_model = spiked_model(problem, beta)
    if theory not in (None, *THEORIES):
        raise InvalidArgument("theory", theory, "srf, network or given")
    if not problem.schedule or simulated != "network":
        if theory == "network":
            raise InvalidArgument(
                "theory", theory, "srf: an sRF, or its equivalent, is what is simulated"
            )
        what_is_drawn = "whose conditional Gaussian model" if simulated == "gaussian" else "which"
        return Theory(srf_model, None, f"theory of the sRF, {what_is_drawn} is what is simulated")
    trained_step = cast(GradientStep, problem)
    if theory == "srf":
        return Theory(srf_model, None, "theory of the sRF, as asked")
    reason = "" if theory else reason_not_covered(trained_step)
    try:
        if not reason:
            network = trained_step.network(beta=srf_model.beta)
            _ = network.geometry  # its rows; QuadratureError where they are not known
            return Theory(network, srf_model, "theory of the network itself")
    except QuadratureError as error:
        if theory:
            raise
        return Theory(srf_model, None, PUBLISHED, reason=str(error))
    return Theory(srf_model, None, f"{PUBLISHED}: {reason}")


def exact(simulation: Simulation, theory: Theory) -> bool:
    """True if the theory is exact up to terms in 1 / n: of the drawn first layers, or of given
    ones."""
    return bool(simulation.experiment.samples) or theory.of_draws


def is_srf_of_networks(simulation: Simulation, theory: Theory) -> bool:
    """True if the theory is that of the sRF and networks are simulated, from which it differs in
    the limit, too."""
    experiment, compared_model = simulation.experiment, theory.model
    if isinstance(compared_model, Given) or experiment.simulated is not Simulated.network:
        return False
    return compared_model.rows is None and bool(experiment.problem.schedule)


def solved(
    model: Solvable,
    axes: Mapping[str, Array],
    loss: Loss,
    fits: bool = False,
    **limits: Any,
) -> tuple[dict[str, Array], list[str]]:
    """Columns (P,) of the theory on a grid of alpha or samples, and lam; and notes on given layers,
    with those by ``fits`` to random rows, of which there are more than of draws, or without.  The
    ``limits`` are time_limit and quadrature_tol, as of :func:`replica.solve`."""
    # of the first layer of a draw the axes of points have alpha
    name = "samples" if isinstance(model, Given) and "samples" in axes else "alpha"
    theory_points: dict[str, Any] = {name: axes[name], "lam": axes["lam"]}
    theory_grid = solve_grid(model, **theory_points, loss=loss, **limits)
    theory_grid.log_unsolved()
    if not isinstance(model, Given):
        return dict(theory_grid.columns), []
    theory_curve = theory_grid.dataset(fits=fits)
    theory_columns = {str(name): variable.values.ravel() for name, variable in theory_curve.items()}
    return theory_columns, notes_on(model, theory_curve)


class Remarks(NamedTuple):
    """Notes on the theory of what is given, and columns beside its errors, (N_a, N_l) each: errors
    of fits to random rows, and whether a point is ``noted``."""

    notes: Sequence[str] = ()
    columns: Mapping[str, Array] = MappingProxyType({})


def theory_at(
    model: Solvable, simulation: Simulation, **limits: Any
) -> tuple[dict[str, Array], Remarks]:
    """Theory at the points simulated, by the name of the error, (N_a, N_l) each; and remarks."""
    shape = [axis.size for axis in simulation.axes.values()]
    # of the first layer of a draw samples are needed, where the axes have alpha
    axes = simulation.axes | {"samples": simulation.samples}
    theory, notes = solved(model, axes, simulation.loss, fits=True, **limits)
    columns = {name: values.reshape(shape) for name, values in theory.items() if name != "note"}
    beside = {name: x for name, x in columns.items() if name.startswith(("fitted_", "noted"))}
    return {name: columns[name] for name in simulation.errors}, Remarks(notes, beside)


def curves(
    theories: Sequence[Theory], axes: Mapping[str, Array], points: Mapping[str, Array], loss: Loss
) -> "dict[str, xarray.Dataset]":
    """The lines of a figure by their labels: of the ``theories`` of all combinations on ``axes``,
    as data sets over these and the ``points`` of alpha, or samples, and lam; NaN where a theory has
    no such line."""
    import xarray

    over = {**axes, **points}
    shape = [values.size for values in over.values()]
    no_line = np.full(shape[-2:], np.nan).ravel()

    def curves_of(models: Sequence[Solvable | None]) -> "xarray.Dataset":
        solved_parts = [{} if one is None else solved(one, points, loss)[0] for one in models]
        names = {name for errors in solved_parts for name in errors} & {*ERROR_LABELS}
        columns = {name: [errors.get(name, no_line) for errors in solved_parts] for name in names}
        variables = {name: (tuple(over), np.reshape(one, shape)) for name, one in columns.items()}
        return xarray.Dataset(variables, over)

    all_lines = [theory.lines for theory in theories]
    if any(NETWORK in one for one in all_lines):  # pale, as the limits beside these lines
        all_lines = [{LIMIT if k == NETWORK_LIMIT else k: one[k] for k in one} for one in all_lines]
    in_order = (NETWORK, NETWORK_LIMIT, SRF, GIVEN, LIMIT)
    line_labels = [label for label in in_order if any(label in one for one in all_lines)]
    return {label: curves_of([one.get(label) for one in all_lines]) for label in line_labels}
