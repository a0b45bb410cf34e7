"""Simulations at several dimensions, a ladder, extrapolated to infinity: ``ladder``.

Mean errors of a problem approach their limit like e(d) = e + s / d.  The limit is fitted by
weighted least squares.  Variances between seeds fall like 1/d, so a mean of S seeds weighs
S d; the error bar of e comes from the variances as they were found at each size, not from the
weights.  What is left of the bias is of order 1/d^2, and no part of the error bar: take sizes
at which the correction is below a tenth or so.  (The conditional Gaussian model of tanh/sin,
alpha0 = 20, eta = 3, beta = .5, is 14 % above the theory at d = 125, but 5 % at 250 and 2.3 %
at 500: a line through the first falls 2 % short.)
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import chdtrc

from replica.documents import plain
from replica.errors import InvalidArgument
from replica.problem import Problem
from solvers.results import Array

from ..draws import seed_count, whole
from ..run import Simulation, simulate
from .checks import ALLOWANCE, CHANCE, Check, theory_at
from .compared import Compared
from .theory import Theory, theory_of

SIZES = ("dimension", "seeds")  # settings in which the simulations differ


@dataclass(frozen=True, eq=False)
class Extrapolation:
    """A line in 1/d through mean errors, (N_a, N_l) each.

    Attributes
    ----------
    limit, stderr : array
        The error at d = infinity and its standard error.
    slope : array
        The finite-size correction times d.
    p_value : array
        Chance of means as far off the line as these, if there were only a term in 1/d; NaN for
        two sizes, which leave nothing to test.
    """

    limit: Array
    stderr: Array
    slope: Array
    p_value: Array


@dataclass(frozen=True, eq=False, repr=False)
class Ladder(Compared):
    """Simulations of one problem at growing dimension, and their limit beside the theory.

    Returned by :func:`validation.ladder`.

    Attributes
    ----------
    simulations : list of Simulation
    test, train : Check
        The theory, and the extrapolated errors in the place of simulated ones.
    test_line, train_line : Extrapolation
    allowance : float
        What the extrapolation may be off by, relative to the theory.
    theory : Theory
        Which theory it is.
    """

    simulations: list[Simulation]
    test: Check
    train: Check
    test_line: Extrapolation
    train_line: Extrapolation
    allowance: float
    theory: Theory

    simulated = "extrapolated"

    @property
    def _simulation(self) -> Simulation:
        """The simulation of the largest size."""
        return self.simulations[-1]

    @property
    def settings(self) -> dict[str, Any]:
        """The problem and the sizes of the simulations, in plain values."""
        sizes = {name: [getattr(one, name) for one in self.simulations] for name in SIZES}
        return self._simulation.settings | sizes

    @property
    def size(self) -> str:
        """What ``allowance`` is for."""
        sizes = ", ".join(str(one.dimension) for one in self.simulations)
        return f"terms in 1/d^2 at d = {sizes}"

    @property
    def verdict(self) -> str:
        """Whether theory and limit agree; and, in a second sentence, where the means are too far
        from lines in 1/d for a limit to be known."""
        p = np.array([self.test_line.p_value, self.train_line.p_value])
        off = p < CHANCE / p.size
        if not off.any():
            return super().verdict
        return (
            f"{super().verdict} The means of {off.sum()} of {p.size} errors do not lie on a line "
            f"in 1/d (p_value down to {p[off].min():.1g}): of these, larger sizes tell the limit."
        )

    def document(self) -> dict[str, Any]:
        """Plain values for JSON: problem, points, and the simulations they come from."""
        last = self.simulations[-1]
        lines = {
            f"{field}_{name}": getattr(line, field)
            for name, line in (("test", self.test_line), ("train", self.train_line))
            for field in ("slope", "p_value")
        }
        document = last.document(self.columns() | lines)
        each = [one.document() for one in self.simulations]
        return document | {
            "theory": self.theory.note,
            "dimension": "inf",
            "seeds": [one.seeds for one in self.simulations],
            "ladder": [
                plain({name: one[name] for name in ("dimension", "seeds", "points")})
                for one in each
            ],
        }


def ladder(
    problem: Problem,
    *,
    alpha: ArrayLike,
    lam: ArrayLike,
    dimensions: Sequence[int],
    seeds: int,
    beta: float | None = None,
    simulated: str = "network",
    model: str | None = None,
    progress: Callable[[int, int], None] | None = None,
    **options: Any,
) -> Ladder:
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
    model : {"network", "srf"}, optional
        The theory to take, as in :func:`compare`.
    progress : callable (done, total)
        Called after each draw, of all sizes.
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
    >>> result = ladder(model, alpha=[0.5, 2], lam=0.1, dimensions=[40, 80, 160], seeds=5, rng=0)
    >>> result.agrees, result.test_line.limit.shape
    (True, (2, 1))
    """
    sizes = sorted({whole("ladder", d, 2, "an input dimension d") for d in dimensions})
    if len(sizes) < 2:
        raise InvalidArgument("ladder", list(dimensions), "two or more different dimensions")
    if options.get("shard") is not None:
        raise InvalidArgument("shard", options["shard"], "left out: a ladder needs all seeds")
    seed_count(seeds, least=2)
    theory = theory_of(problem, beta, model, simulated)
    draws = [round(seeds * sizes[-1] / d) for d in sizes]
    simulations: list[Simulation] = []

    def advance(done: int, total: int) -> None:
        if progress is not None:
            progress(sum(draws[: len(simulations)]) + done, sum(draws))

    for d, count in zip(sizes, draws, strict=True):
        simulations.append(
            simulate(
                problem,
                alpha=alpha,
                lam=lam,
                dimension=d,
                seeds=count,
                beta=beta,
                simulated=simulated,
                progress=advance,
                **options,
            )
        )
    lines = {
        name: extrapolate(
            np.array(sizes),
            np.array([getattr(one, f"{name}_mean") for one in simulations]),
            np.array([getattr(one, f"{name}_stderr") for one in simulations]),
            np.array(draws),
        )
        for name in ("test", "train")
    }
    expected = theory_at(theory.model, simulations[-1])
    return Ladder(
        simulations,
        Check(expected["test_error"], lines["test"].limit, lines["test"].stderr),
        Check(expected["train_error"], lines["train"].limit, lines["train"].stderr),
        lines["test"],
        lines["train"],
        (ALLOWANCE / sizes[0]) ** 2,
        theory,
    )


def extrapolate(sizes: Array, means: Array, stderrs: Array, seeds: Array) -> Extrapolation:
    """The line e + s / d through ``means`` (K, ...) at ``sizes`` (K,), by ``seeds`` (K,).

    Examples
    --------
    >>> import numpy as np
    >>> from validation.comparisons import extrapolate
    >>> d = np.array([100, 200, 400])
    >>> line = extrapolate(d, 2 + 30 / d, np.full(3, 0.1), np.array([4, 2, 1]))
    >>> float(line.limit.round(12)), float(line.slope.round(9))
    (2.0, 30.0)
    """
    weights = np.sqrt(seeds * sizes)
    design = np.stack([np.ones(len(sizes)), 1 / sizes], axis=1)
    # value = coefficients @ means, (2, K)
    coefficients = np.linalg.pinv(weights[:, None] * design) * weights
    limit, slope = np.tensordot(coefficients, means, axes=1)
    variance = np.tensordot(coefficients[0] ** 2, stderrs**2, axes=1)
    rest = means - limit - np.multiply.outer(1 / sizes, slope)
    with np.errstate(divide="ignore", invalid="ignore"):  # constant errors have stderr 0
        chi2 = (rest**2 / stderrs**2).sum(axis=0)
    freedom = len(sizes) - 2
    p_value = chdtrc(freedom, chi2) if freedom else np.full(limit.shape, np.nan)
    return Extrapolation(limit, np.sqrt(variance), slope, np.asarray(p_value))
