"""The resolvent of the features: the saddle point at complex penalty.
docs/theory.md 9, [C] App. F.

With lam = -(alpha/beta) z, (4.1)-(4.4) give the Stieltjes transform of Phi^T Phi / n at z,

    s(z) = (1/p) tr (Phi^T Phi / n - z)^-1 = (alpha/beta) sum_b V_2^b.            (9.1)

Of the many complex roots the right one is that of positive V at z < 0, where ``Responses.solve``
finds it, continued along an arc |z| = const through the upper half-plane.  There s and every
V_2^b have a positive imaginary part, and on the real axis the only singularities are the edges of
the spectrum.  Outliers lie beyond them, from some sample size on.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from solvers.newton import follow_root, newton_complex
from solvers.resources import check_time
from solvers.results import Array

from ..equivalence import Table
from ..problem import SpikedRandomFeatures
from ..saddle_point import RESPONSE_TOLERANCE, Responses


@dataclass(frozen=True, eq=False)
class Resolvent:
    """Solutions of one model at one alpha, as ``coordinates`` U (P, D) of
    ``Responses.to_analytic``.

    Attributes
    ----------
    real : Responses
        Features on real kappa, for z < 0.
    responses : Responses
        Features for other z: on a contour for kappa, where there is one.
    alpha : float
    """

    real: Responses
    responses: Responses
    alpha: float

    @property
    def ratio(self) -> float:
        """Samples over width, alpha / beta = n / p."""
        return self.alpha / self.real.beta

    def transform(self, coordinates: Array) -> Array:
        """Stieltjes transforms s (P,), as the last ``coordinates`` are V_2.  Eq. (9.1)"""
        return np.asarray(self.ratio * coordinates[:, -self.responses.groups :].sum(axis=1))

    def residual(self, coordinates: Array, z: Array) -> tuple[Array, Array]:
        """Residuals (P, D) of (4.1)-(4.4) at z (P,), and their derivatives (P, D, D) in the
        ``coordinates``.

        Raises ``GivenUp`` past the deadline.
        """
        check_time()
        point_alpha = np.full(len(z), self.alpha)
        return self.responses.analytic_residual(coordinates, point_alpha, -self.ratio * z)

    def admissible(self, coordinates: Array) -> NDArray[np.bool_]:
        """True (P,) where Im V_2 >= 0 in every group, up to rounding.

        A Stieltjes transform is a Herglotz function: its imaginary part has the sign of Im z.
        """
        V2 = coordinates[:, -self.responses.groups :]
        return np.asarray((V2.imag >= -1e-9 * np.abs(V2)).all(axis=1))

    def by_continuation(self, z: Array) -> Array:
        """Coordinates (P, D) of solutions at z (P,), Im z >= 0, z != 0, by continuation; NaN where
        it fails."""
        arc_radius, arc_angle = np.abs(z), np.angle(z)
        point_alpha = np.full(len(z), self.alpha)
        real_V = self.real.solve(point_alpha, self.ratio * arc_radius, RESPONSE_TOLERANCE).value

        def arc(arc_t: Array, rows: NDArray[np.int64]) -> Array:
            """z on the arc, from the negative axis at t = 0 to the end at t = 1."""
            on_arc = arc_radius[rows] * np.exp(1j * (np.pi + arc_t * (arc_angle[rows] - np.pi)))
            return np.where(arc_t >= 1, z[rows], on_arc)

        return follow_root(
            self.residual,
            self.real.analytic.to_analytic(real_V, point_alpha).astype(complex),
            arc,
            self.admissible,
            size=self.responses.magnitude,
        )

    def solutions(self, z: Array, start: Array | None = None) -> Array:
        """Coordinates (P, D) of solutions at z (P,), Im z >= 0, by Newton from ``start`` or by
        continuation.

        NaN where both fail.  Points are solved in blocks, as the derivatives take up to 100 MB.
        """
        rows = self.responses.table.covariance
        sample_nodes = 0 if rows is None else max(batch.t11.shape[1] for batch in rows.batches)
        # 2^19 numbers in the largest array of a block
        block_size = max(1, 2**19 // max(len(self.real.signed) ** 2, sample_nodes))
        if len(z) > block_size:
            point_blocks = np.split(np.arange(len(z)), range(block_size, len(z), block_size))
            starts = [None if start is None else start[point_block] for point_block in point_blocks]
            solved = map(self.solutions, (z[point_block] for point_block in point_blocks), starts)
            return np.concatenate([*solved])
        if start is None:
            return self.by_continuation(z)
        coordinate_size = self.responses.magnitude
        newton_root, is_solution, _ = newton_complex(
            lambda x, rows: self.residual(x, z[rows]), start, reach=0.3, size=coordinate_size
        )
        is_solution &= np.isfinite(newton_root).all(axis=1) & self.admissible(newton_root)
        if not is_solution.all():
            newton_root[~is_solution] = self.by_continuation(z[~is_solution])
        return newton_root

    def winding(self, coordinates: Array) -> Array:
        """Number of zeros of 1 + V between the real line and the contour, (P,).

        The contour is valid at z only if there are none.
        """
        phase_turns, V = [], self.responses.from_analytic(coordinates)
        for features in (self.real, self.responses):
            phase = np.unwrap(np.angle(1 + V @ features.table.response_coefficients), axis=1)
            phase_turns.append((phase[:, -1] - phase[:, 0]) / (2 * np.pi))
        return np.asarray(np.abs(phase_turns[0] - phase_turns[1]))


def outliers(model: SpikedRandomFeatures, table: Table) -> Array:
    """Nonzero eigenvalues of (sqrt(pi_a pi_b) E mu_0^a mu_0^b), the largest first."""
    root_share = np.sqrt(model.geometry.fractions)
    weighted_offsets = root_share[:, None] * table.offsets[: len(root_share)]
    offset_sizes = np.linalg.eigvalsh((weighted_offsets * table.weights) @ weighted_offsets.T)[::-1]
    return np.asarray(offset_sizes[offset_sizes > 1e-12 * max(offset_sizes[0], 1e-12)])


def samples_of_outliers(resolvent: Resolvent, position: complex, count: int) -> Array:
    """Sample sizes n at which each of ``count`` outliers is at ``position`` z, above the bulk,
    where the resolvent is at every n with n/d = alpha; NaN if it was not found there.  Eq. (9.2)

    At a complex z it is the real part of the function n(z), which is nearly linear in z: that of a
    place in a tail of the bulk, where averages over real nodes of kappa meet poles at real z.

    At finite d, z is an eigenvalue where the equations (4.5) for m and theta have a solution
    without labels.  With theta eliminated, E mu_0 mu_0' / (1 + V) less the contribution of theta
    then has the eigenvalue 1 / d, relative to the penalty of m at d = 1.  Where theta alone has an
    eigenvalue beyond the edge, as for n -> 0, the largest outliers lie above it for any n.
    """
    table, alpha = resolvent.real.table, resolvent.alpha
    position_U = resolvent.solutions(np.array([position], dtype=complex))
    if not np.isfinite(position_U).all():
        return np.full(count, np.nan)
    V2 = position_U[:, -resolvent.responses.groups :]
    response_coefficients = resolvent.real.table.response_coefficients
    one_plus_V = 1 + resolvent.responses.from_analytic(position_U) @ response_coefficients
    group_count, weights = len(table.kinds), table.per_part(table.weights / one_plus_V[0])
    offset_penalty = 1 / (alpha * table.shares * V2[0, table.kinds])
    phi_m, phi_theta = table.regressors[:group_count], table.regressors[len(table.offsets) :]
    # theta = response E[kappa mu_1 s], with a spike and without
    theta_map = resolvent.real.analytic.susceptibility_matrix(position_U, np.array([alpha]))[0]
    m_theta_gram, theta_gram = (phi_m * weights) @ phi_theta.T, (phi_theta * weights) @ phi_theta.T
    theta_system = np.eye(len(theta_gram)) + theta_gram @ theta_map
    of_theta = m_theta_gram @ theta_map @ np.linalg.solve(theta_system, m_theta_gram.T)
    values = np.linalg.eigvals(((phi_m * weights) @ phi_m.T - of_theta) / -offset_penalty[:, None])
    always_outside = int((np.linalg.eigvals(theta_system).real < 0).sum())
    values = np.append(np.full(always_outside, np.inf), values[np.argsort(-values.real)])[:count]
    is_above_bulk = values.real > 0
    return np.where(is_above_bulk, (alpha / np.where(is_above_bulk, values, 1.0)).real, np.inf)


def atom(table: Table, alpha: float) -> float:
    """Share of zero eigenvalues, 1 - (rank of the features) / p.

    Groups whose features are linear in the input given kappa have at most rank d in all.  A group
    whose features are functions of kappa alone has rank 0.
    """
    feature_power = max(float((table.c[:, None] * table.mu1**2 + table.mu2sq).max()), 1e-300)
    has_curvature = table.mu2sq.max(axis=1) > 1e-13 * feature_power
    linear_only = (table.c * (table.mu1**2).max(axis=1) > 1e-13 * feature_power) & ~has_curvature
    group_widths = table.beta * table.fractions
    feature_rank = group_widths[has_curvature].sum() + min(1.0, group_widths[linear_only].sum())
    return float(max(0.0, 1 - min(alpha, feature_rank) / table.beta))
