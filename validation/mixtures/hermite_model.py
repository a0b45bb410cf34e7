"""The network after one step and its Hermite models, side by side on the same draws.
docs/theory.md 12

    F rows ~ N(0, I/tr), w ~ N(0, I/k), f(x) = w . sigma(F x) / sqrt(k),
    G = (1/m) k^(-1/2) [w (y - f(X))^T o sigma'(F X^T)] X,  F^ = F + eta G,
    R = sigma(F^ X^T)^T / sqrt(k) on fresh samples,  (R^T R + lam m I) a = R^T y.

The Hermite model of order l has the features sigma_l(F^ x) of (12.1) in place of sigma(F^ x); its
first layer is the network's, trained with sigma.  Both have a theory given that layer,
docs/theory.md 20.  Errors are those of the paper, with its 1/2:

    training        1/(2m) sum (y - f)^2 + (lam/2) |a|^2,
    generalisation  1/2 E (y - f)^2, and the misclassification P(sign f != y) of labels +-1.

Both have errors in closed form, too: without a drawn layer, at the dimension it has.
docs/theory.md 19

The gradient of the first step is a spike and a bulk, which shrink with the width,

    G = u v^T + Delta,  u = h_1 w / sqrt(k),  v = X^T y / m,  h_1 = E sigma'(b z):
    docs/theory.md 12

u v^T is what the mean slope h_1 of the activation makes of the labels; Delta is the rest.  With
n, m and k growing together, spikes of theta = n^s (0 <= s < 1) and y = sigma_*(xi . x) of xi along
them, |xi| = 1/sqrt(|Sigma|), the operator norms grow like powers of n, up to logarithms:

    |u v^T| ~ n^((s-1)/2),   |Delta| ~ n^max(s/2-1, j(s-1)/2),  j the lowest of 2, 3, ... with
    h_j = E He_j(z) sigma(b z) != 0 that the labels excite.

|w| -> 1 and E x y ~ sqrt(theta) along the spike give the first.  The part of Delta that is
independent from sample to sample has |w_i| k^(-1/2) m^(-1) |X| sqrt(m), with |X| ~ sqrt(m theta).
The other is the mean of the slope's part He_(j-1)(f . x), whose fields along the spike are
sqrt(theta/n): each degree costs a factor of n^((s-1)/2).

The polynomial that stands for an activation has its Hermite coefficients.  For data of spread
n^beta_s, features sigma(x) of pre-activations x = b z + (spikes) act like

    sigma_l(x) = sum_{j<l} (h_j / j!) He_j(x / b) + h_l* z,  z ~ N(0, 1) fresh,         (12.1)
    h_j = E He_j(z) sigma(b z),  (h_l*)^2 = E sigma(b z)^2 - sum_{j<l} h_j^2 / j!,

where the order l is the one with (l-2)/(l-1) < beta_s < (l-1)/l: polynomials of degree below l.
He_j are the probabilists' polynomials, b^2 is the variance of the bulk of x.  Coefficients are
computed with He_j / sqrt(j!), of unit norm, and the residual as a variance, so that degree 20 has
as many digits as degree 2.
"""

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.polynomial import hermite_e
from numpy.random import Generator, SeedSequence, default_rng
from numpy.typing import ArrayLike
from scipy.special import factorial

from replica import GradientStep, solve
from replica.errors import InvalidArgument
from replica.fit import fit_ridge
from replica.problem import MAX_NUMBER, Activation, GaussianMixture, activation, number, positive
from replica.steps import features_at_dimension
from solvers.quadrature import expectation
from solvers.results import Array
from solvers.rules import Rule

from ..draws import gradient_step, seed_sequence, whole_number
from .image_tasks import LearningTask
from .spiked_mixtures import MixtureTask

MAX_ORDER = 21  # up to degree 20 coefficients keep their digits
ON_BOUNDARY = 1e-9  # how near a boundary a data spread counts as being on it


class EquivalenceWarning(UserWarning):
    """The data spread is not inside the open interval in which the equivalence is proved."""


@dataclass(frozen=True, eq=False)
class HermiteExpansion:
    """The polynomial part of (12.1) and the size of its noise.

    Attributes
    ----------
    activation : Activation
        sigma.
    b : float
        Standard deviation of the bulk of the pre-activation.
    coefficients : (l,)
        h_j, of degrees 0 to l - 1.
    residual : float
        h_l*, the standard deviation of what the polynomial leaves of sigma(b z).
    quadrature_error : float
        Change of the coefficients at the last refinement, relative to the norm of sigma(b z).
    """

    activation: Activation
    b: float
    coefficients: Array
    residual: float
    quadrature_error: float

    @property
    def order(self) -> int:
        """l: the polynomial has degree l - 1."""
        return len(self.coefficients)

    def polynomial(self, x: ArrayLike) -> Array:
        """sum_{j<l} (h_j / j!) He_j(x / b), elementwise."""
        h_series = self.coefficients / factorial(np.arange(self.order))
        return np.asarray(hermite_e.hermeval(np.asarray(x, dtype=float) / self.b, h_series))

    @property
    def student(self) -> Activation:
        """The polynomial as an activation: of features that have noise of (h_l*)^2 besides."""
        return Activation(self.polynomial, name=f"{self.activation.name} of order {self.order}")


def expand(student: str | Activation, *, order: int, b: float = 1.0) -> HermiteExpansion:
    """The Hermite expansion of an activation.  Eq. (12.1)

    Parameters
    ----------
    student : str or Activation
        sigma.
    order : int
        l, from 1 to 21: polynomials of degree below it.
    b : float
        Standard deviation of the bulk of the pre-activation, above 0.

    Returns
    -------
    HermiteExpansion

    Raises
    ------
    InvalidArgument
        If an argument is out of range.
    QuadratureError
        If a coefficient does not settle, as where kinks are not declared.

    Examples
    --------
    >>> from validation.mixtures import expand
    >>> relu = expand("relu", order=4)
    >>> (relu.coefficients.round(6) + 0.0).tolist(), round(relu.residual, 6)
    ([0.398942, 0.5, 0.398942, 0.0], 0.106149)
    """
    student_sigma = activation(student)
    if isinstance(order, bool) or order not in range(1, MAX_ORDER + 1):
        raise InvalidArgument("order", order, f"an integer from 1 to {MAX_ORDER}")
    b = number("b", b, 0, MAX_NUMBER, "a finite number above 0", open_low=True)

    hermite_norms = np.sqrt(factorial(np.arange(order)))

    def coefficients_by_rule(rule: Rule) -> tuple[Array, Array]:
        """Coefficients h_j / sqrt(j!) and (h_l*)^2 by one rule, and the sizes to which their errors
        are relative."""
        z, w = rule
        activation_values = student_sigma(b * z)
        hermite_basis = hermite_e.hermevander(z, order - 1).T / hermite_norms[:, None]
        unit_coefficients = hermite_basis @ (w * activation_values)
        polynomial_residual = activation_values - unit_coefficients @ hermite_basis
        mean_square = max(float(w @ activation_values**2), 1e-300)
        error_scale = np.append(np.full(order, np.sqrt(mean_square)), mean_square)
        return np.append(unit_coefficients, w @ polynomial_residual**2), error_scale

    # of the rules for smooth functions, the first is exact for polynomials
    rules = "gauss-legendre" if student_sigma.kinks else "gauss-hermite, trapezoid, gauss-legendre"
    kink_breaks = np.asarray(student_sigma.kinks) / b
    integral = expectation(coefficients_by_rule, kink_breaks, rule=rules, tol=1e-13)
    h = integral.value[:-1] * hermite_norms
    return HermiteExpansion(student_sigma, b, h, float(np.sqrt(integral.value[-1])), integral.error)


def proved(data_spread: float, *, largest: int = MAX_ORDER) -> bool:
    """True if a data spread is inside the open interval of some order, up to the ``largest``.

    Examples
    --------
    >>> from validation.mixtures import proved
    >>> proved(0.74), proved(0.74, largest=3), proved(0.75), proved(0.0), proved(1.0)
    (True, False, False, False, False)
    """
    beta_s = float(data_spread)
    if not 0 < beta_s < 1 - ON_BOUNDARY:
        return False
    order_of_spread = 1 / (1 - beta_s)  # beta = (l-1)/l  <=>  l = 1/(1-beta)
    nearest = round(order_of_spread)
    return order_of_spread <= largest and abs(beta_s - (nearest - 1) / nearest) > ON_BOUNDARY


def needed_order(data_spread: float, *, largest: int = MAX_ORDER) -> int:
    """The order l with (l-2)/(l-1) < beta_s < (l-1)/l, that a data spread needs.

    It suffices in the limit; at finite size, or for an activation whose coefficient h_{l-1} is
    0, a lower one may do.

    Parameters
    ----------
    data_spread : float
        beta_s, from 0 to 1.
    largest : int
        A larger order is cut down to this one.

    Raises
    ------
    InvalidArgument
        If the data spread is outside [0, 1].

    Warns
    -----
    EquivalenceWarning
        If the data spread is on a boundary (0, 1/2, 2/3, 3/4, ..., 1) or needs an order above
        ``largest``: no equivalence is then proved for the order that is returned.

    Examples
    --------
    >>> from validation.mixtures import needed_order
    >>> [needed_order(beta) for beta in (0.3, 0.6, 0.74, 0.76)]
    [2, 3, 4, 5]
    """
    beta_s = float(data_spread)
    if not 0 <= beta_s <= 1:
        raise InvalidArgument("data_spread", data_spread, "between 0 and 1")
    if not proved(beta_s, largest=largest):
        warnings.warn(
            f"data_spread = {beta_s:g} is inside no interval (l-2)/(l-1) < beta_s < (l-1)/l of an "
            f"order l up to {largest}: the equivalence with a Hermite model is not proved there",
            EquivalenceWarning,
            stacklevel=2,
        )
    return order_within(beta_s, largest)


def order_within(data_spread: float, largest: int) -> int:
    """The order that a data spread needs, or the ``largest`` where that is less."""
    bound = np.inf if data_spread == 1 else 1 / (1 - data_spread)
    return int(min(largest, max(2, np.ceil(bound - ON_BOUNDARY))))


TEST_BLOCK = 2**22  # numbers in one array of a block of test features: 32 MiB


class Errors(NamedTuple):
    """Errors (S, 1 + L) of :func:`side_by_side`: students, then the network and its models in turn.

    ``misclassification`` is NaN unless all labels are +-1.
    """

    training: Array
    generalisation: Array
    misclassification: Array


class Model(NamedTuple):
    """Network, or a Hermite model of it: a first layer (k, n), the function applied to its fields,
    and the variance of the features' noise."""

    weights: Array
    student: Activation
    noise: float

    def features(self, X: Array, rng: Generator) -> Array:
        """Features (b, k) of inputs (b, n)."""
        model_features = self.student(X @ self.weights.T)
        if self.noise:
            model_features += np.sqrt(self.noise) * rng.standard_normal(model_features.shape)
        return model_features


def bulk_scale(task: LearningTask) -> float:
    """b = sqrt(n / tr), the standard deviation of the bulk of a pre-activation."""
    return float(np.sqrt(task.dimension / task.trace))


def initial(task: LearningTask, width: int, seed: SeedSequence) -> tuple[Array, Array]:
    """Draw the layers before the step: F (k, n) and w (k,)."""
    layer_rng = default_rng(seed)
    initial_F = layer_rng.standard_normal((width, task.dimension)) / np.sqrt(task.trace)
    return initial_F, layer_rng.standard_normal(width) / np.sqrt(width)


def stepped(
    F: Array, w: Array, batch: tuple[Array, Array], student: Activation, rate: float
) -> Array:
    """F^ (k, n), of a batch of inputs (m, n) and labels (m,)."""
    width = len(w)
    # in the letters of (1.1): the rate over k, and readouts a~ = sqrt(k) w
    return gradient_step(F, [batch], student=student, eta=rate / width, readout=np.sqrt(width) * w)


def models(
    task: LearningTask,
    *,
    students: Sequence[str | Activation],
    orders: Sequence[int],
    width: int,
    samples: int,
    rate: float,
    rng: Any = None,
) -> Iterator[list[Model]]:
    """The network and its Hermite models, of one draw of the first layer and its step, for every
    student in turn.  Parameters are those of :func:`side_by_side`."""
    k, m = whole_number("width", width, 1, "k"), whole_number("samples", samples, 1, "m")
    if not 0 <= rate < np.inf:
        raise InvalidArgument("rate", rate, "finite and 0 or more")
    layer_seed, batch_seed = seed_sequence(rng).spawn(2)
    initial_layers, step_batch = initial(task, k, layer_seed), task.draw(m, default_rng(batch_seed))
    for student in students:
        student_sigma = activation(student)
        expansions = [expand(student_sigma, order=order, b=bulk_scale(task)) for order in orders]
        stepped_F = stepped(*initial_layers, step_batch, student_sigma, rate)
        hermite = [Model(stepped_F, part.student, part.residual**2) for part in expansions]
        yield [Model(stepped_F, student_sigma, 0.0), *hermite]


def side_by_side(
    task: LearningTask,
    *,
    samples: int,
    lam: float,
    test_samples: int | None = None,
    rng: Any = None,
    **drawn: Any,
) -> Errors:
    """Errors of one draw of everything, for all students and models.  docs/theory.md 12

    Parameters
    ----------
    task : LearningTask
        A regression or classification, or anything with dimension, trace and draw.
    students : sequence of str or Activation
        sigma.  All of them have the same draws.
    orders : sequence of int
        l of the Hermite models; may be empty.
    width, samples : int
        k and m.  The step and the readout have m samples each.
    rate : float
        eta, 0 or more.
    lam : float
        Ridge penalty.
    test_samples : int
        Samples of the generalisation error, 5 m unless given.
    rng : None, int, SeedSequence or Generator

    Returns
    -------
    Errors

    Raises
    ------
    InvalidArgument
        If an argument is out of range.

    Examples
    --------
    >>> from validation.mixtures import mixture, regression, side_by_side
    >>> task = regression(mixture(50, eigenvalues=5.0), rng=1)
    >>> options = dict(students=["tanh"], width=40, samples=60, rate=2.0, lam=1e-2)
    >>> side_by_side(task, orders=[2, 3], rng=2, **options).training.shape
    (1, 3)
    """
    readout_penalty = float(positive("lam", lam).item())
    test_samples = 5 * samples if test_samples is None else test_samples  # as published
    test_samples = whole_number("test_samples", test_samples, 1, "of the generalisation error")
    model_seed, *streams = seed_sequence(rng).spawn(4)
    drawn_models = list(models(task, samples=samples, rng=model_seed, **drawn))
    train_rng, test_rng, feature_noise_rng = map(default_rng, streams)
    X, y = task.draw(samples, train_rng)
    X_test, y_test = task.draw(test_samples, test_rng)
    paper_errors = np.empty((3, len(drawn_models), len(drawn_models[0])))
    for i, j in np.ndindex(paper_errors.shape[1:]):
        model = drawn_models[i][j]
        features = model.features(X, feature_noise_rng)
        fitted = fit_readout(features, y, readout_penalty * samples)
        output_weights = fitted / np.sqrt(len(fitted))
        mean_squared_residual = ((y - features @ output_weights) ** 2).mean()
        block_rows = max(1, TEST_BLOCK // len(fitted))
        blocks = (X_test[i : i + block_rows] for i in range(0, test_samples, block_rows))
        features_of_blocks = (model.features(x, feature_noise_rng) for x in blocks)
        outputs = np.concatenate([features @ output_weights for features in features_of_blocks])
        wrong = (np.sign(outputs) != y_test).mean() if (np.abs(y_test) == 1).all() else np.nan
        paper_objective = (mean_squared_residual + readout_penalty * (fitted**2).sum()) / 2
        paper_errors[:, i, j] = paper_objective, ((y_test - outputs) ** 2).mean() / 2, wrong
    return Errors(*paper_errors)


def in_theory(
    task: LearningTask, *, samples: int, lam: float, rng: Any = None, **drawn: Any
) -> Errors:
    """The errors of :func:`side_by_side` in theory, given the first layers that are drawn there:
    means over all else that is.  NaN where the theory is not known to its tolerance.
    docs/theory.md 20

    Parameters, and what is raised, are those of :func:`side_by_side`.

    Examples
    --------
    >>> from validation.mixtures import in_theory, mixture, regression
    >>> task = regression(mixture(50, eigenvalues=5.0), rng=1)
    >>> options = dict(students=["tanh"], width=40, samples=60, rate=2.0, lam=1e-2)
    >>> in_theory(task, orders=[2], rng=2, **options).generalisation.shape
    (1, 2)
    """
    model_seed = seed_sequence(rng).spawn(1)[0]
    drawn_models = models(task, samples=samples, rng=model_seed, **drawn)
    given_layers = [[task.given(*model) for model in of_student] for of_student in drawn_models]
    return solved_errors(given_layers, given_layers[0][0].width, samples, lam, samples=samples)


def solved_errors(
    models: Sequence[Sequence[Any]], width: int, m: int, lam: float, **point_samples: Any
) -> Errors:
    """Errors in theory of students by models, whose m samples are ``point_samples``."""
    paper_errors = np.empty((3, len(models), len(models[0])))
    for i, j in np.ndindex(paper_errors.shape[1:]):
        theory = solve(models[i][j], lam=lam * m, time_limit=600.0, **point_samples)
        solved_overlaps = theory.overlaps  # of a limit
        readout_norm = theory.squared_norm if solved_overlaps is None else solved_overlaps.q2.sum()
        paper_objective = theory.train_error + lam * width * readout_norm
        paper_errors[:, i, j] = paper_objective / 2, theory.loss_error, theory.classification_error
    return Errors(*paper_errors)


def fit_readout(features: Array, y: Array, penalty: float) -> Array:
    """a (k,) of (R^T R + penalty I) a = R^T y, R = features / sqrt(k).

    Where polynomial features are so large that their Gram matrix is singular in double
    precision, by their singular values, whose condition is only its root.
    """
    try:
        ridge_fit = fit_ridge(lambda: [(features, y)], np.array([len(y)]), np.array([penalty]))
        return np.asarray(ridge_fit.readouts[:, 0, 0])
    except InvalidArgument:
        U, s, Vh = np.linalg.svd(features / np.sqrt(features.shape[1]), full_matrices=False)
        return np.asarray((s / (s**2 + penalty) * (y @ U)) @ Vh)


def closed_form(
    task: MixtureTask,
    *,
    students: Sequence[str | Activation],
    orders: Sequence[int] = (),
    width: int,
    samples: int,
    rate: float,
    lam: float,
    tol: float = 1e-5,
    **nodes: int,
) -> Errors:
    """The errors of :func:`side_by_side`, means over everything but the task.  Equations
    (19.7)-(19.8); a Hermite model has its polynomial as the readout's student, and feature noise.

    Parameters
    ----------
    task : MixtureTask
    students, orders, width, samples, rate, lam
        As for :func:`side_by_side`.
    tol : float
        Relative tolerance of the averages over the inputs.
    **nodes
        ``row_nodes`` and ``readout_nodes`` of :func:`replica.steps.features_at_dimension`.

    Raises
    ------
    InvalidArgument
        If an argument is out of range, or the structure has too many directions.

    Examples
    --------
    >>> from validation.mixtures import closed_form, mixture, regression
    >>> task = regression(mixture(400, eigenvalues=5.0), rng=1)
    >>> options = dict(students=["tanh"], width=200, samples=400, rate=2.0, lam=1e-2)
    >>> errors = closed_form(task, orders=[2], row_nodes=3, tol=1e-3, **options)
    >>> errors.generalisation.shape
    (1, 2)
    """
    n, student_models = task.dimension, []
    for student in students:
        step = GradientStep(
            student=student,
            target=task.target,
            inputs=along_target(task),
            noise=task.noise,
            alpha0=samples / n,
            eta=rate / width,
            readout="gaussian",
        )
        network_model = features_at_dimension(step, beta=width / n, dimension=n, **nodes)
        expansions = [expand(step.student, order=order, b=bulk_scale(task)) for order in orders]
        hermite_models = [
            replace(network_model, student=polynomial.student, feature_noise=polynomial.residual**2)
            for polynomial in expansions
        ]
        student_models.append([network_model, *hermite_models])
    return solved_errors(student_models, width, samples, lam, alpha=samples / n, quadrature_tol=tol)


def along_target(task: MixtureTask) -> GaussianMixture:
    """The law of the inputs in coordinates of which the first is the target's, if it has one."""
    input_law, mixture_dimension = task.inputs, task.inputs.dimension
    if not task.directions.shape[1]:
        return input_law
    known = task.directions[:mixture_dimension, 0]
    target_remainder = 1 - float(known @ known)  # of the target's direction, rounding or not
    target_axis = np.append(known, np.sqrt(target_remainder)) if target_remainder > 1e-12 else known
    rotated_axes = np.linalg.qr(np.column_stack([target_axis, np.eye(len(target_axis))]))[0]
    rotated_axes *= np.where(rotated_axes.T @ target_axis < 0, -1.0, 1.0)
    extended_law = input_law.within(len(target_axis))
    return GaussianMixture(
        means=extended_law.means @ rotated_axes,
        covariances=rotated_axes.T @ extended_law.each_covariance @ rotated_axes,
        fractions=extended_law.fractions,
    )
