"""The errors of a ridge readout on samples that trained the first layer, at many points.
docs/theory.md 21

All that follows from the responses (``cavity``) is linear, with derivatives by complex steps at
fixed G, and through G by the adjoint of a step of Newton's method.
"""

from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import block_diag
from scipy.special import ndtr

from solvers.resources import check_time, deadline
from solvers.results import Array, Indices, Status

from ..convex import Loss, solve_on_growing_tables
from ..errors import InvalidArgument
from ..problem import SpikedRandomFeatures
from ..saddle_point import Evaluation, unknown_overlaps
from .cavity import TINY, Cavity, CavityEquations, Form, Forms, SampleClass, cavity_map
from .sample_nodes import SAMPLE_RULES, Features, SampleNodes, strata


class ReadoutPoint(NamedTuple):
    """A point of the readout.  Eqs. (21.11)-(21.13)

    Attributes
    ----------
    test, train : float
        Errors on noiseless targets, and on the training samples.
    classification : float
        Share of labels of the other sign than the output, where these are +-1.
    bias, variance : float
        Of the prediction's mean over the initial rows, and over these rows; they add to ``test``.
    squared_norm : float
        |a|^2 over the dimension.
    m, theta, psi, chi : (A,), (A,), (A,), (A,)
        Overlaps of the readout of every kind.
    Q1, q2 : (A, A), (A,)
        Overlaps in the variance of the output given kappa, (4.7), psi psi^T among the first.
    stability : (A, A)
        Derivatives of k_b in g_c, symmetric.
    residual : float
        Largest relative violation of (21.7), of (21.10), and of the stationarity of (21.9).
    """

    test: float
    train: float
    classification: float
    bias: float
    variance: float
    squared_norm: float
    m: Array
    theta: Array
    psi: Array
    chi: Array
    Q1: Array
    q2: Array
    stability: Array
    residual: float


class UnknownSlices(NamedTuple):
    """Places of the unknowns of (21.8): F along the D directions and e_n, the field (F_n's
    conjugate) that samples' own parts add to it, m, (eps_2, eps_3), their multipliers, eps_1 and
    eps_4.  Eliminating this field leaves the last term of (21.9)."""

    fields: slice
    m: slice
    scalars: slice
    multipliers: slice
    initial: slice
    pairs: slice


class Readout(CavityEquations):
    """Readout of width ``beta`` at the penalty ``lam`` on ``counts`` of each class of samples, over
    dimension: of the step and the readout, of the step alone, of the readout alone."""

    @property
    def places(self) -> UnknownSlices:
        """Indices of the unknowns of (21.8) in the vector Theta."""
        D, A = len(self.strata.s), self.kinds
        ends = np.cumsum([3 * A * (D + 2), A, 2 * A, 2 * A, A, A])
        return UnknownSlices(slice(0, ends[0]), *map(slice, ends[:-1], ends[1:]))

    def quadratic(self, g: Array, G: Array, forms: Forms) -> tuple[Array, Array, Array]:
        """The quadratic function 2 S of (21.9) of the readout unknowns Theta: its matrix M (K, K),
        vector v (K,) and constant c, in Theta M Theta + 2 v Theta + c."""
        A, F, places = self.kinds, len(G), self.places
        K = places.pairs.stop
        kind = np.result_type(g, *(form.D for form in forms))
        M = np.zeros((K + 1,) * 2, kind)  # the last for the rest of the field
        M[places.fields, places.fields] = np.kron(np.eye(len(self.strata.s) + 2), self.links)
        along, own = (slice(end - F, end) for end in (places.m.start - F, places.m.start))
        M[own, own] = -np.linalg.inv(G)
        M[places.m, places.m] = np.eye(A) / self.dimension  # the price of m^2
        M[places.initial, places.initial] = np.eye(A) / 2
        M[places.pairs, places.pairs] = np.eye(A)
        M[places.scalars, places.multipliers] = np.eye(2 * A)
        M[places.multipliers, places.scalars] = np.eye(2 * A)
        scalar_noise = block_diag(*(n.scalar_noise for n in self.strata.neurons))
        M[places.multipliers, places.multipliers] = -scalar_noise
        for sample_class, form in zip(self.samples, forms, strict=True):
            # fields at q = 0, and what q adds
            w, start = sample_class.weights.sum(axis=1), sample_class.along[..., 0].copy()
            start[-2] = start[-1]
            linear = np.zeros((len(w), 5 * A, K + 1))
            fields = np.einsum("ke,fg->efkg", start, np.eye(F))
            linear[:, :F, places.fields] = fields.reshape(len(w), F, -1)
            linear[:, F:, places.multipliers] = -np.eye(2 * A) / self.strata.alpha0
            image = form.S @ linear
            M += np.tensordot(linear * w[:, None, None], image, ((0, 1), (0, 1)))
            M[along, along] += np.tensordot(w, form.S[:, :F, :F], 1)
            if sample_class.read:
                X = self.read(sample_class, form, g)
                flat = (X * (sample_class.weights / form.D)[..., None]).reshape(-1, K + 1)
                M += flat.T @ X.reshape(-1, K + 1)
        return M[:K, :K], M[:K, K], M[K, K]

    def read(self, sample_class: SampleClass, form: Form, g: Array) -> Array:
        """Linear function w f + y' of every sample, whose square over D enters 2 S: coefficients
        (E, Q, K + 1) in the K unknowns and, last, the label."""
        places, F = self.places, 3 * self.kinds
        E, Q = sample_class.weights.shape
        X = np.zeros((E, Q, places.pairs.stop + 1), g.dtype)
        fields = sample_class.along[..., None] * form.w[..., :F]
        X[..., places.fields] = np.moveaxis(fields, 0, 2).reshape(E, Q, -1)
        sqrt_g = np.sqrt(g)[:, None, None, None]
        coefficients = -np.moveaxis(sqrt_g * sample_class.coefficients, 0, 2)
        X[..., places.m], X[..., places.initial] = coefficients[..., 0], coefficients[..., 3]
        X[..., places.scalars] = coefficients[..., 1:3].reshape(E, Q, -1)
        X[..., places.pairs] = coefficients[..., 4]
        X[..., places.multipliers] = form.w[..., F:] / -self.strata.alpha0
        X[..., -1] = sample_class.labels
        return X

    def slope_in_covariance(self, theta: Array, g: Array, G: Array, forms: Forms) -> Array:
        """Derivative (F, F) of 2 S in G where the unknowns ``theta`` are held: dQ = -Q dG Q."""
        F, places = len(G), self.places
        fields, zeta = theta[places.fields].reshape(-1, F), theta[places.multipliers]
        own = np.linalg.solve(G, fields[-1])
        total = np.outer(own, own)
        for sample_class, form in zip(self.samples, forms, strict=True):
            image = np.tensordot(sample_class.along, fields, (0, 0)) @ form.S[:, :F, :F]
            image += (zeta @ form.S[:, F:, :F] / -self.strata.alpha0)[:, None]
            if sample_class.read:
                read = self.read(sample_class, form, g) @ np.append(theta, 1)
                image += form.w[..., :F] * (read / form.D)[..., None]
            flat = image.reshape(-1, F)
            total -= (flat.T * sample_class.weights.ravel()) @ flat
        return total

    def errors(self, cavity: Cavity) -> ReadoutPoint:
        """Errors and overlaps of the readout.  Eqs. (21.9)-(21.13)"""
        s, (g, G, *_), A, places = self.strata, cavity, self.kinds, self.places
        D = len(s.s)
        here = self.forms(g, G)
        M, v, c = self.quadratic(g, G, here)
        theta = -np.linalg.pinv(M, rcond=1e-13, hermitian=True) @ v
        value = float(c + v @ theta)
        terms = np.abs(M) @ np.abs(theta) + np.abs(v)
        # an equation whose terms all vanish, as of an even target, is one of rounding
        terms = np.maximum(terms, 1e-6 * terms.max())
        violation = float(np.max(np.abs(M @ theta + v) / terms))
        local = self.derivatives(g, G, here)
        in_G = self.slope_in_covariance(theta, g, G, here)
        through_G = -np.linalg.solve(local.jacobian.T, in_G.ravel()).reshape(G.shape)

        def total_derivative(g: Array, forms: Forms, change_of_G_equation: Array) -> float:
            """Total derivative of the stationary value of 2 S in one parameter (a g_b, or lam),
            whose complex step is already in ``g`` and ``forms``.

            The readout unknowns are held, and G follows the change of the right-hand side of
            (21.7).
            """
            M, v, c = self.quadratic(g, G, forms)
            held = (theta @ M @ theta + 2 * v @ theta + c).imag / TINY.imag
            return float(held + np.sum(through_G * change_of_G_equation))

        every = zip(g + TINY * np.eye(A), local.shifted, local.by_g, strict=True)
        by_g = -np.array([total_derivative(*one) for one in every])
        after = self.forms(g, G, self.lam + TINY)
        mapped = cavity_map(self.samples, after, self.links).imag / TINY.imag
        responses = self.response(after).imag / TINY.imag + local.responses(local.change_G(mapped))
        curvature = self.beta * np.diag(s.shares / g**2) + local.stability
        spread = np.linalg.solve(curvature.T, by_g)  # Y_b (R^-1)_bc, variance of the output per g
        by_lam = total_derivative(g, after, mapped)
        squared = value + self.lam * by_lam + self.lam * float(spread @ responses)

        # Eq. (21.13): of the mean over initial rows, and over these
        V, sqrt_g = np.ix_(1 + 3 * np.arange(A), 1 + 3 * np.arange(A)), np.sqrt(g)
        pairs, half = np.outer(sqrt_g, sqrt_g), spread / g / 2
        of_mean = -pairs * (G @ through_G @ G)[V]
        of_rows = np.tensordot(spread, local.change_G(local.by_g), 1)[V]
        of_rows = (of_rows + np.add.outer(half, half) * G[V]) * pairs

        fresh = Features(*map(np.array, zip(*(n.fresh for n in s.neurons), strict=True)))
        mu1, mu2 = fresh.slope_omega, fresh.variance
        fields = theta[places.fields].reshape(D + 2, A, 3)[:-1, :, 1]  # of V, along s and e_n
        m, chi = sqrt_g * theta[places.m], sqrt_g * theta[places.scalars].reshape(A, 2)[:, 1]
        linear = np.einsum("b,kb,bn,kn->n", sqrt_g, fields, mu1, np.vstack([s.s, s.q]))
        prediction = m @ fresh.mean + chi @ fresh.scalars[:, 1] + linear
        prediction += sqrt_g * theta[places.initial] @ fresh.initial
        products = (mu1 * s.weights) @ mu1.T
        bias = float(s.weights @ (s.target - prediction) ** 2 + np.sum(products * of_mean))
        variance = float(np.sum(products * of_rows) + spread @ mu2 @ s.weights)
        sd = np.sqrt(np.einsum("bn,bc,cn->n", mu1, of_mean + of_rows, mu1) + spread @ mu2)
        spike = np.append(s.gamma, s.rho)
        overlap = spike @ fields
        psi = np.full(A, np.nan)
        if D == 1:
            psi = sqrt_g * (fields[0] * s.rho - fields[-1] * s.gamma[0])
        return ReadoutPoint(
            test=bias + variance,
            train=self.lam * (value - squared) / (self.counts[0] + self.counts[2]),
            classification=float(s.weights @ ndtr(-s.y * prediction / sd)),
            bias=bias,
            variance=variance,
            squared_norm=squared,
            m=m,
            theta=sqrt_g * overlap,
            psi=psi,
            chi=chi,
            Q1=np.outer(psi, psi) + of_mean + of_rows,
            q2=spread,
            stability=local.stability,
            residual=max(violation, *self.violations(g, G, here)[2:]),
        )


REUSE_QUADRATURE_TOLERANCE, REUSE_RESIDUAL_TOLERANCE = 1e-5, 1e-9
ACCEPTED = 1e-3  # on the finest rule, where no tolerance is asked for: large rates, few samples
IN_DOUBT = 1e3 * 4 * np.finfo(float).eps  # of the labels' power: rounding is a thousandth of it


def evaluate_reused(
    model: SpikedRandomFeatures,
    alpha: Array,
    lam: Array,
    loss: Loss,
    tol: float | None,
    time_limit: float,
    level: int = 0,
) -> Evaluation:
    """Ridge regression at the points (alpha[i], lam[i]), arrays (P,), of a network that reuses
    samples.

    Raises
    ------
    InvalidArgument
        If the loss is not the square, or more samples are reused than the step has.
    """
    rows: Any = model.rows
    if not loss.is_square:
        raise InvalidArgument("loss", loss.name, "the square where samples of the step are reused")
    if (most := rows.reuse * alpha.max()) > rows.step.alpha0 * (1 + 1e-12):
        allowed = f"at least reuse * alpha, {most:g}: the step has all samples that are reused"
        raise InvalidArgument("alpha0", rows.step.alpha0, allowed)
    result, count = Evaluation(len(alpha)), len(alpha)
    starts: list[Cavity | None] = [None] * count
    tol, accepted = (REUSE_QUADRATURE_TOLERANCE, ACCEPTED) if tol is None else (tol, tol)
    kinds = tuple(tuple(values.tolist()) for values in rows.kinds)
    shares = tuple(np.ravel(1.0 if model.fractions is None else model.fractions).tolist())
    sizes = len(shares), len(shares), 1 + rows.row_norms
    result.overlaps, result.conjugates = unknown_overlaps(count, *sizes)

    def strata_at(level: int, _: Indices) -> SampleNodes | None:
        if level >= len(SAMPLE_RULES):
            return None
        return strata(rows.step, kinds, shares, level, rows.row_norms)

    def solve_on(table: SampleNodes, points: Indices, _: Any) -> Indices:
        cavity, noise = None, float(table.weights @ (table.y - table.target) ** 2)
        for i in points:
            check_time()
            reused = rows.reuse * alpha[i]
            counts = reused, max(rows.step.alpha0 - reused, 0.0), alpha[i] - reused
            readout = Readout(table, counts, model.beta, lam[i], model.dimension)
            try:
                starts[i] = cavity = readout.solve_cavity(starts[i] or cavity)
                errors = readout.errors(cavity)
            except np.linalg.LinAlgError:  # where Newton's method has lost its way
                result.flag(i, Status.NO_PROGRESS)
                cavity = None
                continue
            errors_before = np.array([result.test_error[i], result.train_error[i]])
            change = np.abs(errors_before / [errors.test, errors.train] - 1).max()
            change = np.nan_to_num(change, nan=np.inf)  # of the first strata
            overlaps = result.overlaps
            overlaps.m[i], overlaps.Q1[i], overlaps.q2[i] = errors.m, errors.Q1, errors.q2
            overlaps.theta[i].T[:] = [errors.theta, errors.chi][: 1 + rows.row_norms]
            overlaps.psi[i, :, 0] = errors.psi
            is_lost = errors.test < IN_DOUBT * float(table.weights @ table.y**2) or errors.train < 0
            result.store(
                i,
                test_error=errors.test,
                train_error=errors.train,
                loss_error=(errors.test + noise) / 2,
                train_loss=errors.train / 2,
                classification_error=errors.classification if model.labels.binary else np.nan,
                residual=errors.residual,
                quadrature_error=change,
                iterations=result.iterations[i] + cavity.iterations,
                nodes=table.weights.size,
                converged=errors.residual <= REUSE_RESIDUAL_TOLERANCE,
                open=change > tol,
            )
            cavity = cavity if result.converged[i] else None
            if is_lost:
                result.flag(i, Status.ROUNDING)
        return points[result.open[points] & result.converged[points]]

    with deadline(time_limit * count), np.errstate(all="ignore"):  # errors not finite are flagged
        solve_on_growing_tables(result, np.arange(count), strata_at, solve_on, level)
    result.open &= result.quadrature_error > accepted
    result.close(REUSE_RESIDUAL_TOLERANCE)
    for overlap in result.overlaps:
        overlap[~result.converged] = np.nan
    return result
