"""Whether theory and simulation agree: a z score and a verdict for every error.

A mean over seeds differs from the theory by its sampling error, which ``stderr`` estimates,
and by a finite-size bias of order 1/d.  Both are allowed for:

    |theory - simulated| <= 4 stderr max(1, theory / simulated) + allowance * theory.

The factor: errors vary between seeds by a factor rather than by an amount, and the more the
closer the readout comes to interpolation.  A few seeds that miss the rare large values are too
low in mean and in standard error alike; it is the relative standard error that they estimate.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from replica.observables import sweep
from replica.problem import SpikedRandomFeatures
from solvers.results import Array

from ..run import Simulation

STANDARD_ERRORS = 4.0  # few of some hundred errors with Gaussian noise are further off
LEANING = 2.5  # standard errors, of the mean score of several errors: one mean in a hundred
ALLOWANCE = 20.0  # times 1/d: the finite-size bias allowed for, measured in ``compare``


@dataclass(frozen=True, eq=False)
class Check:
    """One kind of error, theory beside simulation.  Every array is (N_a, N_l).

    Attributes
    ----------
    theory : array
        NaN where the theory did not converge.
    simulated, stderr : array
        Mean over the seeds, and its standard error.
    """

    theory: Array
    simulated: Array
    stderr: Array

    @property
    def z(self) -> Array:
        """(theory - simulated) / stderr."""
        with np.errstate(divide="ignore", invalid="ignore"):  # a constant target has stderr 0
            return np.asarray((self.theory - self.simulated) / self.stderr)

    @property
    def off(self) -> Array:
        """simulated / theory - 1, 0 where both are 0."""
        scale = np.where(self.theory == 0, 1.0, self.theory)
        return np.asarray((self.simulated - self.theory) / scale)

    def agrees(self, allowance: float) -> Array:
        """Boolean array: whether the difference is within the tolerance of this module.

        False where the theory did not converge.
        """
        with np.errstate(divide="ignore", invalid="ignore"):
            scaled = self.stderr * (self.theory / self.simulated)
        stderr = np.fmax(self.stderr, scaled)  # ignores the 0/0 of a target that is zero
        # 1e-12 for rounding: all else vanishes for a constant target with an intercept
        tolerance = STANDARD_ERRORS * stderr + allowance * self.theory + 1e-12
        return np.asarray(np.abs(self.theory - self.simulated) <= tolerance)


def share_within_two(*checks: Check) -> float:
    """Share of all errors with abs(z) <= 2."""
    return float((np.abs([check.z for check in checks]) <= 2).mean())


def verdict(
    checks: Mapping[str, Check], alpha: Array, lam: Array, allowance: float, size: str
) -> str:
    """Whether theory and simulation agree, in one sentence.

    Parameters
    ----------
    checks : dict of name -> Check
    alpha, lam : (N_a,), (N_l,)
    allowance : float
        Allowed for ``size``, relative to the theory.
    size : str
        What is finite, such as "d = 500".
    """
    each = list(checks.values())
    far = np.array([~check.agrees(allowance) for check in each])
    z, off = (np.array([getattr(check, name) for check in each]) for name in ("z", "off"))
    allowed = f" and the {allowance:.2g} of the theory allowed for {size}" if allowance else ""
    if not np.isfinite([check.theory for check in each]).all():
        return "The theory did not converge everywhere, so that agreement cannot be told."
    known = z[np.isfinite(z)]
    largest, most = np.abs(known).max(initial=0.0), f"{np.abs(off).max():.1%}"
    if far.any():
        k, i, j = np.unravel_index(np.argmax(np.where(far, np.abs(z), -1)), far.shape)
        worst, name = each[k], list(checks)[k].replace("_", " ").removesuffix(" error")
        return (
            f"Theory and simulation disagree: {far.sum()} of {far.size} differences are larger "
            f"than {STANDARD_ERRORS:g} standard errors{allowed}; the {name} error at "
            f"alpha = {alpha[i]:.4g}, lam = {lam[j]:.4g} is {worst.theory[i, j]:.4g} in theory "
            f"and {worst.simulated[i, j]:.4g} ± {worst.stderr[i, j]:.1g} simulated."
        )
    if lean(z):
        side = "above" if known.sum() < 0 else "below"
        return (
            f"Theory and simulation are close but not equal: the simulated errors lie {side} the "
            f"theory together, by at most {most} of it and {largest:.1f} standard errors, which is "
            f"more than chance{_explained(allowance, size)}."
        )
    if largest > STANDARD_ERRORS:
        return (
            f"Theory and simulation agree up to finite size: they differ by at most {most}, "
            f"and {allowance:.1%} is allowed for {size}."
        )
    return (
        f"Theory and simulation agree: the largest of {z.size} differences is {largest:.1f} "
        f"standard errors, where up to {STANDARD_ERRORS:g} may be chance."
    )


def _explained(allowance: float, size: str) -> str:
    """Whether a finite size may be why, as a clause."""
    if not allowance:
        return ""
    return f" but may come from {size}, for which {allowance:.1%} is allowed: a larger one tells"


def lean(z: Array) -> bool:
    """Whether the scores (checks, N_a, N_l) lie to one side: all of them, or all of one error.

    Points of a seed share its draw, so that many count as little more than one: it is their mean
    that is judged, as one score.
    """
    with np.errstate(invalid="ignore"):
        known = [one[np.isfinite(one)] for one in (z, *z[:, None])]
    several = [one.mean() for one in known if one.size > 1]
    return bool(np.abs(several).max(initial=0.0) > LEANING)


def theory_at(model: SpikedRandomFeatures, simulation: Simulation) -> dict[str, Array]:
    """What the theory has at the points simulated, by name of what is measured, (N_a, N_l) each."""
    alpha, lam = simulation.alpha, simulation.lam
    theory = sweep(model, alpha=alpha, lam=lam, grids={}, loss=simulation.loss).columns
    names = ("test_error", "train_error", *simulation.measured)
    return {name: theory[name].reshape(simulation.test_mean.shape) for name in names}
