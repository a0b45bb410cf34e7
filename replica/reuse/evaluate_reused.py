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

from ..convex import Loss
from ..errors import InvalidArgument
from ..problem import SpikedRandomFeatures
from ..saddle_point import Evaluation, Overlaps, solve_on_growing_tables, unknown_overlaps
from .cavity import TINY, Cavity, CavityEquations, Form, Forms, SampleClass, cavity_map
from .sample_nodes import SAMPLE_RULES, Features, SampleNodes, nodes_with_features


class ReadoutPoint(NamedTuple):
    """A point of the readout.  Eqs. (21.11)-(21.13)

    Attributes
    ----------
    test, train : float
        Errors on noiseless targets, and on the training samples.
    classification : float
        Share of labels of the other sign than the output, where these are +-1.
    bias, variance : float
        Squared bias of the prediction over the initial rows, and its variance; together ``test``.
    squared_norm : float
        |a|^2 over the dimension.
    overlaps : Overlaps
        Overlaps of every kind's readout, without V1, V2; theta and chi are (A, 2), psi is NaN for
        several directions.
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
    overlaps: Overlaps
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
        D, A = len(self.sample_nodes.s), self.kinds
        ends = np.cumsum([3 * A * (D + 2), A, 2 * A, 2 * A, A, A])
        return UnknownSlices(slice(0, ends[0]), *map(slice, ends[:-1], ends[1:]))

    def quadratic(self, g: Array, G: Array, forms: Forms) -> tuple[Array, Array, Array]:
        """The quadratic function 2 S of (21.9) of the readout unknowns Theta: its matrix M (K, K),
        vector v (K,) and constant c, in Theta M Theta + 2 v Theta + c."""
        A, F, theta_at = self.kinds, len(G), self.places
        K = theta_at.pairs.stop
        matrix_dtype = np.result_type(g, *(form.D for form in forms))
        M = np.zeros((K + 1,) * 2, matrix_dtype)  # the last for the rest of the field
        M[theta_at.fields, theta_at.fields] = np.kron(
            np.eye(len(self.sample_nodes.s) + 2), self.links
        )
        along, own = (slice(end - F, end) for end in (theta_at.m.start - F, theta_at.m.start))
        M[own, own] = -np.linalg.inv(G)
        M[theta_at.m, theta_at.m] = np.eye(A) / self.dimension  # the price of m^2
        M[theta_at.initial, theta_at.initial] = np.eye(A) / 2
        M[theta_at.pairs, theta_at.pairs] = np.eye(A)
        M[theta_at.scalars, theta_at.multipliers] = np.eye(2 * A)
        M[theta_at.multipliers, theta_at.scalars] = np.eye(2 * A)
        scalar_noise = block_diag(*(n.scalar_noise for n in self.sample_nodes.neurons))
        M[theta_at.multipliers, theta_at.multipliers] = -scalar_noise
        for sample_class, form in zip(self.samples, forms, strict=True):
            # fields at q = 0, and what q adds
            w, field_start = sample_class.weights.sum(axis=1), sample_class.along[..., 0].copy()
            field_start[-2] = field_start[-1]
            sample_fields = np.zeros((len(w), 5 * A, K + 1))
            field_map = np.einsum("ke,fg->efkg", field_start, np.eye(F))
            sample_fields[:, :F, theta_at.fields] = field_map.reshape(len(w), F, -1)
            sample_fields[:, F:, theta_at.multipliers] = -np.eye(2 * A) / self.sample_nodes.alpha0
            form_image = form.S @ sample_fields
            M += np.tensordot(sample_fields * w[:, None, None], form_image, ((0, 1), (0, 1)))
            M[along, along] += np.tensordot(w, form.S[:, :F, :F], 1)
            if sample_class.read:
                X = self.read(sample_class, form, g)
                flat_read = (X * (sample_class.weights / form.D)[..., None]).reshape(-1, K + 1)
                M += flat_read.T @ X.reshape(-1, K + 1)
        return M[:K, :K], M[:K, K], M[K, K]

    def read(self, sample_class: SampleClass, form: Form, g: Array) -> Array:
        """Linear function w f + y' of every sample, whose square over D enters 2 S: coefficients
        (E, Q, K + 1) in the K unknowns and, last, the label."""
        theta_at, F = self.places, 3 * self.kinds
        E, Q = sample_class.weights.shape
        X = np.zeros((E, Q, theta_at.pairs.stop + 1), g.dtype)
        read_fields = sample_class.along[..., None] * form.w[..., :F]
        X[..., theta_at.fields] = np.moveaxis(read_fields, 0, 2).reshape(E, Q, -1)
        root_g = np.sqrt(g)[:, None, None, None]
        coefficients = -np.moveaxis(root_g * sample_class.coefficients, 0, 2)
        X[..., theta_at.m], X[..., theta_at.initial] = coefficients[..., 0], coefficients[..., 3]
        X[..., theta_at.scalars] = coefficients[..., 1:3].reshape(E, Q, -1)
        X[..., theta_at.pairs] = coefficients[..., 4]
        X[..., theta_at.multipliers] = form.w[..., F:] / -self.sample_nodes.alpha0
        X[..., -1] = sample_class.labels
        return X

    def slope_in_covariance(self, theta: Array, g: Array, G: Array, forms: Forms) -> Array:
        """Derivative (F, F) of 2 S in G where the unknowns ``theta`` are held: dQ = -Q dG Q."""
        F, theta_at = len(G), self.places
        theta_fields, zeta = theta[theta_at.fields].reshape(-1, F), theta[theta_at.multipliers]
        own_field = np.linalg.solve(G, theta_fields[-1])
        covariance_slope = np.outer(own_field, own_field)
        for sample_class, form in zip(self.samples, forms, strict=True):
            field_image = np.tensordot(sample_class.along, theta_fields, (0, 0)) @ form.S[:, :F, :F]
            field_image += (zeta @ form.S[:, F:, :F] / -self.sample_nodes.alpha0)[:, None]
            if sample_class.read:
                read_theta = self.read(sample_class, form, g) @ np.append(theta, 1)
                field_image += form.w[..., :F] * (read_theta / form.D)[..., None]
            flat_image = field_image.reshape(-1, F)
            covariance_slope -= (flat_image.T * sample_class.weights.ravel()) @ flat_image
        return covariance_slope

    def errors(self, cavity: Cavity) -> ReadoutPoint:
        """Errors and overlaps of the readout.  Eqs. (21.9)-(21.13)"""
        s, (g, G, *_), A, theta_at = self.sample_nodes, cavity, self.kinds, self.places
        D = len(s.s)
        cavity_forms = self.forms(g, G)
        M, v, c = self.quadratic(g, G, cavity_forms)
        theta = -np.linalg.pinv(M, rcond=1e-13, hermitian=True) @ v
        stationary_value = float(c + v @ theta)
        equation_terms = np.abs(M) @ np.abs(theta) + np.abs(v)
        # an equation whose terms all vanish, as of an even target, is one of rounding
        equation_terms = np.maximum(equation_terms, 1e-6 * equation_terms.max())
        readout_violation = float(np.max(np.abs(M @ theta + v) / equation_terms))
        local = self.derivatives(g, G, cavity_forms)
        slope_in_G = self.slope_in_covariance(theta, g, G, cavity_forms)
        cavity_adjoint = -np.linalg.solve(local.jacobian.T, slope_in_G.ravel()).reshape(G.shape)

        def total_derivative(g: Array, forms: Forms, change_of_G_equation: Array) -> float:
            """Total derivative of the stationary value of 2 S in one parameter (a g_b, or lam),
            whose complex step is already in ``g`` and ``forms``.

            The readout unknowns are held, and G follows the change of the right-hand side of
            (21.7).
            """
            M, v, c = self.quadratic(g, G, forms)
            held_derivative = (theta @ M @ theta + 2 * v @ theta + c).imag / TINY.imag
            return float(held_derivative + np.sum(cavity_adjoint * change_of_G_equation))

        shifted_cavities = zip(g + TINY * np.eye(A), local.shifted, local.by_g, strict=True)
        S_by_g = -np.array([total_derivative(*one) for one in shifted_cavities])
        after = self.forms(g, G, self.lam + TINY)
        lam_map = cavity_map(self.samples, after, self.links).imag / TINY.imag
        responses = self.response(after).imag / TINY.imag + local.responses(local.change_G(lam_map))
        curvature = self.beta * np.diag(s.shares / g**2) + local.stability
        q2 = np.linalg.solve(curvature.T, S_by_g)  # Y_b (R^-1)_bc, variance of the output per g
        errors_by_lam = total_derivative(g, after, lam_map)
        squared = stationary_value + self.lam * errors_by_lam + self.lam * float(q2 @ responses)

        # Eq. (21.13): of the mean over initial rows, and over these
        V, sqrt_g = np.ix_(1 + 3 * np.arange(A), 1 + 3 * np.arange(A)), np.sqrt(g)
        kind_pairs, half_q2 = np.outer(sqrt_g, sqrt_g), q2 / g / 2
        mean_Q1 = -kind_pairs * (G @ cavity_adjoint @ G)[V]
        rows_Q1 = np.tensordot(q2, local.change_G(local.by_g), 1)[V]
        rows_Q1 = (rows_Q1 + np.add.outer(half_q2, half_q2) * G[V]) * kind_pairs

        fresh_features = Features(*map(np.array, zip(*(n.fresh for n in s.neurons), strict=True)))
        mu1, mu2 = fresh_features.slope_omega, fresh_features.variance
        fields = theta[theta_at.fields].reshape(D + 2, A, 3)[:-1, :, 1]  # of V, along s and e_n
        m, chi = sqrt_g * theta[theta_at.m], sqrt_g * theta[theta_at.scalars].reshape(A, 2)[:, 1]
        linear_part = np.einsum("b,kb,bn,kn->n", sqrt_g, fields, mu1, np.vstack([s.s, s.q]))
        prediction = m @ fresh_features.mean + chi @ fresh_features.scalars[:, 1] + linear_part
        prediction += sqrt_g * theta[theta_at.initial] @ fresh_features.initial
        mu1_products = (mu1 * s.weights) @ mu1.T
        bias = float(s.weights @ (s.target - prediction) ** 2 + np.sum(mu1_products * mean_Q1))
        error_variance = float(np.sum(mu1_products * rows_Q1) + q2 @ mu2 @ s.weights)
        output_sd = np.sqrt(np.einsum("bn,bc,cn->n", mu1, mean_Q1 + rows_Q1, mu1) + q2 @ mu2)
        special = np.stack([sqrt_g * (np.append(s.gamma, s.rho) @ fields), chi], axis=1)
        psi = np.full(A, np.nan)
        if D == 1:
            psi = sqrt_g * (fields[0] * s.rho - fields[-1] * s.gamma[0])
        Q1 = np.outer(psi, psi) + mean_Q1 + rows_Q1  # Eq. (4.7)
        return ReadoutPoint(
            test=bias + error_variance,
            train=self.lam * (stationary_value - squared) / (self.counts[0] + self.counts[2]),
            classification=float(s.weights @ ndtr(-s.y * prediction / output_sd)),
            bias=bias,
            variance=error_variance,
            squared_norm=squared,
            overlaps=Overlaps(np.nan * Q1, np.nan * q2, m, special, psi[:, None], Q1, q2),
            stability=local.stability,
            residual=max(readout_violation, *self.violations(g, G, cavity_forms)[2:]),
        )


REUSE_QUADRATURE_TOLERANCE, REUSE_RESIDUAL_TOLERANCE = 1e-5, 1e-9
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
    finest_error = 1e-3  # on the finest rule without a tolerance: large rates, few samples
    network_rows: Any = model.rows
    if not loss.is_square:
        raise InvalidArgument("loss", loss.name, "the square where samples of the step are reused")
    if (most := network_rows.reuse * alpha.max()) > network_rows.step.alpha0 * (1 + 1e-12):
        least_alpha0 = f"at least reuse * alpha, {most:g}: the step has all samples that are reused"
        raise InvalidArgument("alpha0", network_rows.step.alpha0, least_alpha0)
    evaluation, count = Evaluation(len(alpha)), len(alpha)
    starts: list[Cavity | None] = [None] * count
    tol, accepted_error = (REUSE_QUADRATURE_TOLERANCE, finest_error) if tol is None else (tol, tol)
    neuron_kinds = tuple(tuple(kind_values.tolist()) for kind_values in network_rows.kinds)
    kind_shares = tuple(np.ravel(1.0 if model.fractions is None else model.fractions).tolist())
    overlap_sizes = len(kind_shares), len(kind_shares), 1 + network_rows.row_norms
    evaluation.overlaps, evaluation.conjugates = unknown_overlaps(count, *overlap_sizes)

    def solve_on(level: int, points: Indices, _: Any) -> tuple[SampleNodes | None, Indices]:
        if level >= len(SAMPLE_RULES):
            return None, points[:0]
        with_norms = network_rows.row_norms
        nodes = nodes_with_features(network_rows.step, neuron_kinds, kind_shares, level, with_norms)
        point_cavity, label_noise = None, float(nodes.weights @ (nodes.y - nodes.target) ** 2)
        for i in points:
            check_time()
            reused = network_rows.reuse * alpha[i]
            sample_counts = reused, max(network_rows.step.alpha0 - reused, 0.0), alpha[i] - reused
            readout = Readout(nodes, sample_counts, model.beta, lam[i], model.dimension)
            try:
                starts[i] = point_cavity = readout.solve_cavity(starts[i] or point_cavity)
                point = readout.errors(point_cavity)
            except np.linalg.LinAlgError:  # where Newton's method has lost its way
                evaluation.flag(i, Status.NO_PROGRESS)
                point_cavity = None
                continue
            errors_before = np.array([evaluation.test_error[i], evaluation.train_error[i]])
            rule_change = np.abs(errors_before / [point.test, point.train] - 1).max()
            rule_change = np.nan_to_num(rule_change, nan=np.inf)  # of the first nodes
            special = point.overlaps.theta[:, : 1 + network_rows.row_norms]
            is_lost = point.test < IN_DOUBT * float(nodes.weights @ nodes.y**2) or point.train < 0
            evaluation.store(
                i,
                overlaps=point.overlaps._replace(theta=special),
                test_error=point.test,
                train_error=point.train,
                loss_error=(point.test + label_noise) / 2,
                train_loss=point.train / 2,
                classification_error=point.classification if model.labels.binary else np.nan,
                residual=point.residual,
                quadrature_error=rule_change,
                iterations=evaluation.iterations[i] + point_cavity.iterations,
                nodes=nodes.weights.size,
                converged=point.residual <= REUSE_RESIDUAL_TOLERANCE,
                open=rule_change > tol,
            )
            point_cavity = point_cavity if evaluation.converged[i] else None
            if is_lost:
                evaluation.flag(i, Status.ROUNDING)
        return nodes, points[evaluation.open[points] & evaluation.converged[points]]

    with deadline(time_limit * count), np.errstate(all="ignore"):  # errors not finite are flagged
        solve_on_growing_tables(evaluation, np.arange(count), solve_on, level)
    evaluation.open &= evaluation.quadrature_error > accepted_error
    evaluation.close(REUSE_RESIDUAL_TOLERANCE)
    for reused_overlap in evaluation.overlaps:
        reused_overlap[~evaluation.converged] = np.nan
    return evaluation
