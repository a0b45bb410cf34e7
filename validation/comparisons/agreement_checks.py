"""Agreement of theory and simulation: a z score and a verdict for every error.

A mean over seeds differs from the theory by its sampling error, which ``stderr`` estimates,
and by a finite-size bias of order 1/d.  Both are allowed for:

    |theory - simulated| <= t stderr min(max(1, theory / simulated), f) + allowance * theory,

f = 2, and 32 / seeds of fewer than 16.

t is 4, and of fewer than eight seeds the score of Student's law that is as rare as 4 is of eight:
of three, and of two, 14, as three that are close to one another by chance say little.  The factor:
errors vary between seeds by a factor rather than by an amount, and the more the closer the readout
comes to interpolation.  A few seeds that miss the rare large values are too low in mean and in
standard error alike; it is the relative standard error that they estimate.  It is f at most: beyond
that the simulation is off, not unlucky.

What is further off is called a disagreement only if the draws can tell: if they are eight or more,
and if t (1 + 25 g^2 / seeds) standard errors do not reach the theory, for draws whose skewness g is
on its side (their longer tail, of which few draws have too little).  This doubles t where by
Cochran's rule a mean of so skewed draws begins to be normal, seeds = 25 g^2.

Errors that are more than a quarter of the simulated one apart are not called agreement, however
large what is allowed: more draws, or a larger size, can tell.

Means at several dimensions are extrapolated to infinity.  Mean errors of a problem approach their
limit like e(d) = e + s / d.  The limit is fitted by weighted least squares.  Variances between
seeds fall like 1/d, so a mean of S seeds weighs S d; the error bar of e comes from the variances as
they were found at each size, not from the weights.  The rest of the bias is of order 1/d^2, and
no part of the error bar: take sizes at which the correction is below a tenth or so.  (The
conditional Gaussian model of tanh/sin, alpha0 = 20, eta = 3, beta = .5, is 14 % above the theory at
d = 125, but 5 % at 250 and 2.3 % at 500: a line through the first falls 2 % short.)
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.polynomial.polynomial import polyfit
from scipy.special import chdtrc, ndtr, stdtr, stdtrit

from replica.plotting import in_words
from solvers.results import Array

from ..run import standard_error


class Extrapolation(NamedTuple):
    """A line in 1/d through mean errors, arrays of one shape.

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
    # value = coefficients @ means, (2, K)
    line_coefficients = polyfit(1 / sizes, np.eye(len(sizes)), 1, w=np.sqrt(seeds * sizes))
    line_limit, line_slope = np.tensordot(line_coefficients, means, axes=1)
    limit_variance = np.tensordot(line_coefficients[0] ** 2, stderrs**2, axes=1)
    line_residuals = means - line_limit - np.multiply.outer(1 / sizes, line_slope)
    with np.errstate(divide="ignore", invalid="ignore"):  # constant errors have stderr 0
        chi2 = (line_residuals**2 / stderrs**2).sum(axis=0)
    line_freedom = len(sizes) - 2
    p_value = chdtrc(line_freedom, chi2) if line_freedom else np.full(line_limit.shape, np.nan)
    return Extrapolation(line_limit, np.sqrt(limit_variance), line_slope, np.asarray(p_value))


ALLOWED_SCORE = 4.0  # standard errors: of some hundred errors of as many seeds few are further off
ENOUGH = 8  # seeds for that; of fewer as rare a score is allowed, and none is a disagreement
COCHRAN_DRAWS = 25.0  # draws over their squared skewness from which on a mean of them is normal
CHANCE = 0.01  # of a largest score beyond which theory and simulation are not called equal
ONE_SIDED_SCORE = 2.5  # of a Gaussian mean score of several errors: one mean in a hundred
MAX_DIFFERENCE = 0.25  # of the simulated error: beyond that nothing is called agreement
ALLOWANCE = 20.0  # times 1/d: the finite-size bias allowed for, measured in ``compare``
SOURCES = np.array(["theory", "simulation"])


class Check(NamedTuple):
    """Error of one kind, theory beside simulation; arrays of one shape.

    Attributes
    ----------
    theory : array
        NaN where the theory did not converge.
    simulated, stderr : array
        Mean over the seeds, and its standard error.
    skewness : array
        Skewness of the seeds' errors, by which their longer tail is known.
    """

    theory: Array
    simulated: Array
    stderr: Array
    skewness: Array

    @classmethod
    def of_draws(cls, theory: Array, errors: Array) -> "Check":
        """Theory beside the ``errors`` (seeds, ...) of every draw."""
        return cls(theory, errors.mean(axis=0), standard_error(errors), skewness(errors))

    @property
    def z(self) -> Array:
        """(simulated - theory) / stderr."""
        with np.errstate(divide="ignore", invalid="ignore"):  # a constant target has stderr 0
            return np.asarray((self.simulated - self.theory) / self.stderr)

    @property
    def is_far(self) -> Array:
        """Boolean array: whether theory and simulation differ by more than a quarter of the
        latter."""
        difference = np.abs(self.theory - self.simulated)  # 1e-12 for rounding, as in ``within``
        return np.asarray(difference > MAX_DIFFERENCE * np.abs(self.simulated) + 1e-12)

    def agrees(self, allowance: float | Array, seeds: int) -> Array:
        """Boolean array: whether theory and simulation are ``within`` the tolerance, and not so far
        apart that this tells nothing."""
        return np.asarray(self.within(allowance, seeds) & ~self.is_far)

    def within(self, allowance: float | Array, seeds: int, times: float | Array = 1.0) -> Array:
        """Boolean array: whether the difference of means over so many ``seeds`` is within the
        tolerance of this module, with so many ``times`` its standard errors.

        False where the theory did not converge.
        """
        with np.errstate(divide="ignore", invalid="ignore"):
            scaled = self.stderr * np.minimum(self.theory / self.simulated, max(2, 32 / seeds))
        larger_stderr = np.fmax(self.stderr, scaled)  # ignores the 0/0 of a target that is zero
        # 1e-12 for rounding: all else vanishes for a constant target with an intercept
        tolerance = times * allowed_score(seeds) * larger_stderr + allowance * self.theory + 1e-12
        return np.asarray(np.abs(self.theory - self.simulated) <= tolerance)

    def differs(self, allowance: float | Array, seeds: int) -> Array:
        """Boolean array: whether the difference is beyond the tolerance, also if the rule of this
        module for few and for skewed draws is applied.

        True where the theory did not converge.
        """
        skewness_to_theory = np.maximum(self.skewness * np.sign(self.theory - self.simulated), 0.0)
        enough_seeds = seeds >= ENOUGH or np.isnan(self.theory)
        within = self.within(allowance, seeds, 1 + COCHRAN_DRAWS * skewness_to_theory**2 / seeds)
        return np.asarray(~within & enough_seeds)


def skewness(errors: Array) -> Array:
    """Skewness of the draws on the first axis; 0 of draws that are equal."""
    deviations = errors - errors.mean(axis=0)
    deviation = np.sqrt((deviations**2).mean(axis=0))
    return np.asarray((deviations**3).mean(axis=0) / np.where(deviation > 0, deviation, 1.0) ** 3)


def columns_by_source(axes: Mapping[str, Array], checks: Mapping[str, Check]) -> dict[str, Array]:
    """Errors in theory and simulation, by name, over the axes and ``source``; beside an error
    its standard error and its score, which are of the simulation, and NaN in the theory."""
    point_axes = {**axes, "source": SOURCES}
    columns = dict(zip(point_axes, np.meshgrid(*point_axes.values(), indexing="ij"), strict=True))
    for name, check in checks.items():
        columns[name] = np.stack([check.theory, check.simulated], axis=-1)
        columns |= {f"{name}_stderr": simulated(check.stderr), f"{name}_z": simulated(check.z)}
    return columns


def simulated(values: Array) -> Array:
    """Values of a simulation over ``source``: NaN in the theory."""
    return np.stack([np.full_like(values, np.nan), values], axis=-1)


def verdict(
    checks: Mapping[str, Check],
    axes: Mapping[str, Array],
    *,
    allowance: float | Array,
    size: str,
    seeds: int,
) -> tuple[bool, str]:
    """True if theory and simulation are equal but for chance, and a sentence that names the largest
    difference.

    Parameters
    ----------
    checks : dict of name -> Check
    axes : dict of name -> (N_a,) or (N_l,) array
        alpha, or the samples of what is given, and lam.
    allowance : float or (N_a, 1) array
        Allowed for ``size``, relative to the theory; 1 / n at every n is an array.
    size : str
        Size that is finite, such as "d = 500".
    seeds : int
        Draws of which the standard errors are.
    """
    joint_check = Check(*map(np.array, zip(*checks.values(), strict=True)))  # of (checks, N_a, N_l)
    if not np.isfinite(joint_check.theory).all():
        return False, "The theory did not converge everywhere, so that agreement cannot be told."
    if not np.isfinite(joint_check.simulated).all():
        return False, (
            "The readout of a draw has no best bias, or could not be fitted, so that agreement "
            "cannot be told."
        )
    z, errors = joint_check.z, np.abs(joint_check.simulated)
    error_gaps = np.abs(joint_check.simulated - joint_check.theory) / np.where(errors, errors, 1.0)
    differs, is_far = joint_check.differs(allowance, seeds), joint_check.is_far
    is_off = ~joint_check.within(allowance, seeds)
    # elsewhere rounding over a standard error of 0
    flagged = next((flags for flags in (differs, is_off, is_far) if flags.any()), np.isfinite(z))
    worst = np.unravel_index(np.argmax(np.where(flagged, np.abs(z), -1)), is_off.shape)
    point_text = ", ".join(
        f"{name} = {axis[i]:.4g}" for (name, axis), i in zip(axes.items(), worst[1:], strict=True)
    )
    theory, simulated, stderr, _ = (check_part[worst] for check_part in joint_check)
    score, gap = 0.0 if np.isnan(z[worst]) else abs(z[worst]), error_gaps[worst]
    gap_text = f"{gap:.1%}" if gap < 100 else f"a factor of {gap:.2g}"
    worst_text = (
        f"the {in_words(list(checks)[worst[0]])} at {point_text} ({theory:.4g} in theory, "
        f"{simulated:.4g} ± {float(f'{stderr:.2g}'):g} simulated: they differ by "
        f"{gap_text}, and by {f'{score:.1f}' if score < 1000 else f'{score:.2g}'} standard errors)"
    )
    bias_text = "1/n plus " if np.ndim(allowance) else f"{allowance:.1%} plus " * bool(allowance)
    allowed_text = f"the {bias_text}{allowed_score(seeds):.3g} standard errors allowed for {size}"
    if differs.any():
        differing_text = f"{differs.sum()} of {is_off.size} errors by more than {allowed_text}"
        return False, f"Theory and simulation disagree in {differing_text}, most in {worst_text}."
    seeds_advice = f"take --seeds {max(32, 4 * seeds)}"
    if is_off.any():
        why = "so few draws" if seeds < ENOUGH else "draws so skewed"
        return False, (
            f"Too few draws for a verdict: {seeds_advice}. Theory and simulation differ in "
            f"{is_off.sum()} of {is_off.size} errors by more than {allowed_text}, but of {why} a "
            f"standard error says little; most in {worst_text}."
        )
    if is_far.any():
        return False, (
            f"Theory and simulation differ by more than {MAX_DIFFERENCE:.0%} of the latter in "
            f"{is_far.sum()} of {is_far.size} errors, most in {worst_text}. As this is within "
            f"{allowed_text}, a verdict takes more draws or a larger size: {seeds_advice}."
        )
    large_count, leans = too_large(z, seeds), leaning(z, seeds)
    if large_count or leans:
        so_large = f"chance seldom makes {large_count} of their {is_off.size} differences so large"
        ways = [so_large] * bool(large_count)
        if leans:
            error_names = ["all errors", *(f"the {in_words(name)}" for name in checks)]
            leaning_errors = " and of ".join(error_names[k] for k in leans)
            each_word = " each" * (len(leans) > 1)
            ways.append(f"differences of {leaning_errors} lie to one side{each_word}")
        prefix = "close but " * bool(gap <= 0.1)  # of the simulated error
        return False, (
            f"Theory and simulation are {prefix}not equal: {', and '.join(ways)}, "
            f"though within {allowed_text}, the largest in {worst_text}."
        )
    return True, (
        f"Theory and simulation agree: their {is_off.size} differences are within the "
        f"{largest_by_chance(z, seeds):.2g} standard errors that chance may make the largest, half "
        f"of them up to {np.median(error_gaps):.1%}, the largest in {worst_text}"
        f"{undetected_text([undetected_differences(checks, seeds)], seeds)}."
    )


def undetected_differences(checks: Mapping[str, Check], seeds: int) -> dict[str, float]:
    """Largest difference of each error, relative to the simulated one, that would agree: within
    what chance makes of so many, at the point where that is most, and what is called agreement."""
    joint_check = Check(*map(np.array, zip(*checks.values(), strict=True)))
    allowed = largest_by_chance(joint_check.z, seeds) * joint_check.stderr
    with np.errstate(divide="ignore", invalid="ignore"):
        relative_differences = np.minimum(allowed / np.abs(joint_check.simulated), MAX_DIFFERENCE)
    return {
        name: float(of_error[np.isfinite(of_error)].max(initial=0.0))
        for name, of_error in zip(checks, relative_differences, strict=True)
    }


def undetected_text(of_settings: Sequence[Mapping[str, float]], seeds: int) -> str:
    """How large differences would not have shown in some settings that agree, from the cap
    ``MAX_DIFFERENCE`` on "or more"; with advice where every error is there."""
    names = dict.fromkeys(name for setting in of_settings for name in setting)
    undetected = {name: max(setting.get(name, 0.0) for setting in of_settings) for name in names}
    undetected = {name: difference for name, difference in undetected.items() if difference}
    if not undetected:
        return ""
    differences_text = ", ".join(
        f"{f'up to {x:.1%}' if x < MAX_DIFFERENCE else f'of {x:.0%} or more'} ({in_words(name)})"
        for name, x in undetected.items()
    )
    tells_little = min(undetected.values()) >= MAX_DIFFERENCE
    seeds_advice = f", which tells little: take --seeds {max(32, 4 * seeds)}" * tells_little
    return f"; differences {differences_text} may not show{seeds_advice}"


def too_large(z: Array, seeds: int) -> int:
    """Number of scores that are larger than chance makes the largest of them."""
    return int((np.abs(z[np.isfinite(z)]) > largest_by_chance(z, seeds)).sum())


def largest_by_chance(z: Array, seeds: int) -> float:
    """Standard errors that the largest of the known scores is beyond once in 100 comparisons, or
    that a mean may be off if those are fewer."""
    chance_limit = stdtrit(seeds - 1, 1 - CHANCE / (2 * max(np.isfinite(z).sum(), 1)))
    return float(min(chance_limit, allowed_score(seeds)))


def allowed_score(seeds: int) -> float:
    """Number of standard errors that a mean over so many seeds may be off."""
    return float(stdtrit(np.clip(seeds, 3, ENOUGH) - 1, stdtr(ENOUGH - 1, ALLOWED_SCORE)))


def leaning(z: Array, seeds: int) -> list[int]:
    """Errors whose scores (checks, N_a, N_l) lie to one side: 0 alone if all scores do, else k from
    1 on where those of error k do.

    Points of a seed share its draw, so that many count as little more than one: it is their mean
    that is judged, as one score.
    """
    with np.errstate(invalid="ignore"):
        finite_scores = [one[np.isfinite(one)] for one in (z, *z[:, None])]
    as_rare = stdtrit(seeds - 1, ndtr(ONE_SIDED_SCORE))  # of Student's law
    leans = [k for k, one in enumerate(finite_scores) if one.size > 1 and abs(one.mean()) > as_rare]
    return leans[:1] if 0 in leans else leans
