"""Checks of a simulation by its theory, or by another one where that has no answer."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import replace

import numpy as np

from replica.errors import InvalidArgument
from replica.given import Given
from solvers.quadrature import QuadratureError
from solvers.results import ConvergenceError

from ..draws import as_given
from ..run import Simulated, Simulation, draw_layer, standard_error
from .checks import Check, skewness, theory_at
from .theory import OF_DRAWS, PUBLISHED, Theory

Checks = dict[str, Check]


def with_others(taken: Theory, simulation: Simulation) -> Iterator[Theory]:
    """A theory, and others of what is simulated: of the sRF, and given the first layer of every
    draw, with that of the first draw for lines."""
    yield taken
    if taken.published is not None:
        yield srf_instead(taken)
    drawn = simulation.experiment
    if isinstance(taken.model, Given) or taken.model.reuse or drawn.model.train_bias:
        return
    if drawn.simulated is not Simulated.gaussian:
        with suppress(InvalidArgument):  # of a student that jumps there is no theory
            first = as_given(drawn.model, draw_layer(drawn, simulation.seed[0]))
            yield Theory(first, None, OF_DRAWS, of_draws=True)


def srf_instead(taken: Theory) -> Theory:
    """Theory of the sRF in the place of a network's own."""
    return Theory(taken.published, None, PUBLISHED)


def first_answer(
    theories: Iterable[Theory],
    dimension: float,
    checks_of: Callable[[Theory], tuple[Checks, list[str]]],
) -> tuple[Theory, Checks, list[str]]:
    """The first of some ``theories``, at a dimension, that is known somewhere, with its checks and
    its notes; where none is, the first that refuses nothing.  Of a network at its own dimension
    that is not known everywhere, the limit is next.

    Raises
    ------
    InvalidArgument, QuadratureError, ConvergenceError
        That of the first theory, if all refuse.
    """
    solved, errors, reasons = [], [], []
    for theory in (each for one in theories for each in one.at_or_in_limit(dimension)):
        reasons += [theory.reason] * bool(theory.reason)
        try:
            checks, notes = checks_of(theory)
        except (InvalidArgument, QuadratureError, ConvergenceError) as error:
            errors.append(error)
            reasons.append(f"the {theory.note} has no answer ({error})")
            continue
        solved.append((replace(theory, reason="; ".join(reasons)), checks, notes))
        enough = np.all if theory.at_own_dimension else np.any
        if all(enough(np.isfinite(check.theory)) for check in checks.values()):
            return solved[-1]
        if theory.at_own_dimension:
            reasons.append(f"the theory at d = {dimension:g} has no answer at every point")
        else:
            reasons.append(f"the {theory.note} did not converge")
    if not solved:
        raise errors[0]
    return solved[0]


def checks_at(theory: Theory, simulation: Simulation) -> tuple[Checks, list[str]]:
    """A simulation beside a theory at its points, by name of what is measured; and the notes."""
    if theory.of_draws:
        return beside_draws(simulation), []
    expected, notes = theory_at(theory.model, simulation)
    of = simulation.errors.items()
    return {name: Check.of_draws(expected[name], errors) for name, errors in of}, notes


def beside_draws(simulation: Simulation) -> Checks:
    """Means over the draws of a simulation, and of the theory of every drawn first layer, by name
    of what is measured; standard errors are those of the differences."""
    drawn = simulation.experiment
    layers = (as_given(drawn.model, draw_layer(drawn, index)) for index in simulation.seed)
    each = [theory_at(layer, simulation)[0] for layer in layers]
    checks = {}
    for name, simulated in simulation.errors.items():
        theory = np.array([one[name] for one in each])
        off = simulated - theory
        means = theory.mean(axis=0), simulated.mean(axis=0)
        checks[name] = Check(*means, standard_error(off), skewness(off))
    return checks
