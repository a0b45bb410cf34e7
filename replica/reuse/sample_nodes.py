"""Nodes of samples, and moments of features there, of neurons trained on the samples or not.
Eqs. (21.3)-(21.5), docs/theory.md 21

A node is a stratum of samples: the target's directions s, the label y, and the sample's component q
along the rest of the gradient.  The residual e = y - a~ h_0 and the spike's projection
kappa = gamma s + rho q are fixed in it.
"""

from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from solvers.chebyshev import interpolant
from solvers.resources import GivenUp, check_time
from solvers.results import Array, Status
from solvers.rules import gauss_hermite, rule_between_kinks, tensor_rule

from ..problem import kinks_on_axes
from ..steps import Kinds, Step, batches_of_steps, mean_output


def sample_nodes(
    step: Step, nodes: int, noise_nodes: int, most_nodes: float
) -> tuple[Array, Array, Array]:
    """Nodes (D, N) of the target's directions, labels there (N,), and weights (N,); GivenUp where
    there are more than ``most_nodes``."""
    label_law, D = step.labels_at(0), step.directions
    each = 2 if label_law.channel else sum(noise_nodes if v else 1 for v, _ in label_law.gaussians)
    if nodes_along(nodes, D) ** D * each > most_nodes:
        raise GivenUp(Status.MEMORY)
    axis_kinks = kinks_on_axes(label_law.mean.planes, D)
    s_grid = tensor_rule(*(rule_between_kinks(nodes_along(nodes, D), each) for each in axis_kinks))
    target_coordinates, y_mean = s_grid.nodes.T, label_law.target(*s_grid.nodes.T)
    if label_law.channel and label_law.added is not None:
        p_up = label_law.added.probability(y_mean)
        label_y, w = np.array([np.ones_like(p_up), -np.ones_like(p_up)]), np.array([p_up, 1 - p_up])
    else:
        xi_nodes, weights = gauss_hermite(noise_nodes)
        noise_parts = [
            (np.sqrt(v) * xi_nodes, share * weights) if v else (np.zeros(1), np.array([share]))
            for v, share in label_law.gaussians
        ]
        noise, w = (np.concatenate(each) for each in zip(*noise_parts, strict=True))
        label_y, w = y_mean + noise[:, None], np.broadcast_to(w[:, None], (len(w), len(y_mean)))
    weights = (w * s_grid.weights).ravel()
    return np.tile(target_coordinates, len(label_y)), label_y.ravel(), weights


def nodes_along(nodes: int, directions: int) -> int:
    """Number of nodes along each of the ``directions``: ``nodes`` for a single one, two thirds of
    it for several."""
    return nodes if directions == 1 else 2 * nodes // 3


Values = tuple[float, ...]  # one of each kind of neurons

# numbers of nodes: along s, q, z and the label's noise, coarse to fine, and so that two levels tell
# what either is off by, all of them more from one to the next
SAMPLE_RULES = (
    (24, 8, 48, 5),
    (36, 12, 64, 7),
    (54, 18, 96, 9),
    (80, 28, 140, 12),
    (120, 40, 200, 18),
    (180, 56, 280, 24),
)


class Features(NamedTuple):
    """Features of one kind of neurons on a class of samples at N nodes.  Eqs. (21.3)-(21.5)

    On fresh samples, own part and all that depends on z vanish.

    Attributes
    ----------
    own : (N,)
        The sample's own push b e of the pre-activation, in units of sigma'.
    mean, slope_z, slope_omega, variance, by_rest : (N,)
        m_0, m_z, m_omega, Var n and E n st of the feature; mu_0, 0, mu_1 and mu_2^2 if it is fresh.
    by_pairs : (N,)
        Coefficient tau of eps_4, what pairs of samples left in the row.  Eq. (21.14)
    scalars : (2, N)
        Derivatives of m_0 in the row's scalars eps_2 and eps_3.
    linear, by_rest_of_scalars, by_scalars : (2, N)
        L_a, C_ta, and E l_a F - L_a E z F, for a = 2, 3.
    initial : (N,)
        Derivative d_1 of m_0 in the squared norm of the initial row; zeros where all are equal.
    """

    own: Array
    mean: Array
    slope_z: Array
    slope_omega: Array
    variance: Array
    by_rest: Array
    by_pairs: Array
    scalars: Array
    linear: Array
    by_rest_of_scalars: Array
    by_scalars: Array
    initial: Array


class Neurons(NamedTuple):
    """Neurons of one kind.  Eqs. (21.5), (16.1)

    Attributes
    ----------
    h2, rest : float
        Mean E z sigma' and variance E st^2 of st = sigma' - h_1 - h_2 z.
    scalar_noise : (2, 2)
        d times the noise covariance X of (eps_2, eps_3).
    trained, fresh : Features
        On samples of the step, and on those that it has not seen.
    """

    h2: float
    rest: float
    scalar_noise: Array
    trained: Features
    fresh: Features


class SampleNodes(NamedTuple):
    """Samples at N nodes, and the features of A kinds of neurons there.

    Attributes
    ----------
    weights : (N,), summing to 1
    s : (D, N)
        Components of the input along the target's directions.
    q : (N,)
        Component along the part e_n of the gradient that is orthogonal to them.
    y, target : (N,)
        Label, and its mean given the input.
    push : (N,)
        Own part e / sqrt(alpha0 E e^2) of the e_n coordinate of a sample of the step.
    gamma, rho : (D,), float
        Cosines of the spike with the target's directions, and with e_n.
    alpha0 : float
        Samples of the step over dimension.
    shares : (A,)
        Share of each kind of neurons.
    neurons : tuple of Neurons
    nodes_q : int
        Nodes along q, the last to vary: all else that a step leaves depends on s and y alone.
    """

    weights: Array
    s: Array
    q: Array
    y: Array
    target: Array
    push: Array
    gamma: Array
    rho: float
    alpha0: float
    shares: Array
    neurons: tuple[Neurons, ...]
    nodes_q: int


@lru_cache(maxsize=16)
def nodes_with_features(
    step: Step, kinds: tuple[Values, Values], shares: Values, level: int, norms: bool = True
) -> SampleNodes:
    """Nodes of the given ``level`` for a single ``step``, and the features of ``kinds``, readouts
    and biases, there; with the fluctuation of the rows' ``norms``, or without."""
    nodes_in_all = 1e6  # nodes, of all kinds of neurons: 1 GB
    along_s, along_q, along_z, along_noise = SAMPLE_RULES[level]
    most_samples = nodes_in_all / along_q / len(shares)
    sample_inputs, y, weights = sample_nodes(step, along_s, along_noise, most_samples)
    q, q_weights = gauss_hermite(along_q)
    q_count = len(q)
    s, y = np.repeat(sample_inputs, q_count, axis=1), np.repeat(y, q_count)
    q, w = np.tile(q, len(weights)), np.outer(weights, q_weights).ravel()
    sample_e = y - float(mean_output(step, 0.0, 1.0))
    e_moment, e_power = s @ (w * sample_e), float(w @ sample_e**2)
    N = np.sqrt(e_moment @ e_moment + e_power / step.alpha0)  # Eq. (2.2)
    gamma = e_moment / N
    rho = np.sqrt(max(1 - float(gamma @ gamma), 0.0))
    kappa = gamma @ s + rho * q
    (norm_batch,), _ = batches_of_steps(step, Kinds(*map(np.array, kinds)))  # of row norms, (18.7)
    neuron_features = tuple(
        _neurons(step, norms, *kind_fields, w, sample_e, N, kappa, along_z)
        for kind_fields in zip(*kinds, norm_batch.v, norm_batch.g, strict=True)
    )
    target, push = step.labels_at(0).mean(*s), sample_e / np.sqrt(step.alpha0 * e_power)
    node_arrays = w, s, q, y, target, push, gamma, float(rho), step.alpha0
    return SampleNodes(*node_arrays, np.array(shares), neuron_features, q_count)


def _neurons(
    step: Step,
    norms: bool,
    readout: float,
    bias: float,
    norm_noise: float,
    norm_gain: float,
    w: Array,
    e: Array,
    N: float,
    kappa: Array,
    nodes: int,
) -> Neurons:
    """Features of neurons of one first-step ``readout`` and ``bias``, with ``norms`` or without."""
    smallest_variance = 1e-10  # of omega given z: a step so small smooths the student by as much
    at_once = 2**9  # nodes at once: .5 MB for every function of z
    student, alpha0, eta = step.student, step.alpha0, step.eta * readout
    slope_moments = student.slope_moments_at(np.array([bias]), 1.0)[:, 0]
    h1, h2, t2, t3, s02, s12, s22, s03, s13, _ = slope_moments
    eta_over_alpha, mean_e, e_power = eta / alpha0, float(w @ e), float(w @ e**2)
    pi1 = 1 + eta * h2 * mean_e
    omega_variance = max(eta**2 * e_power * (s02 + h2**2) / alpha0, smallest_variance)
    c, r = pi1**2 + omega_variance, eta * h1 * N
    own = eta_over_alpha * e

    z, wz = rule_between_kinks(nodes, [kink - bias for kink in student.kinks])
    student_slope = student.slope(z + bias)
    psi, rest = student_slope - h1, student_slope - h1 - h2 * z
    of_mean = np.stack([z**0, z, rest, z * psi, psi**2, z**2 - 1]) * wz
    of_slope = np.stack([z**0, z, psi]) * wz

    def smoothed_at(s: Array) -> Array:
        """Averages (4, n) of sigma, sigma', sigma^2 and sigma'' over the noise of omega at s."""
        mean, c_mu1, rest = student.moments(s, omega_variance)
        second = student.second_hermite(s, omega_variance) / omega_variance
        return np.stack([mean, c_mu1 / np.sqrt(omega_variance), rest + mean**2 + c_mu1**2, second])

    farthest = sum(np.abs(x).max() for x in (r * kappa, pi1 * z, np.abs(own).max() * student_slope))
    most_averages = z.size * kappa.size / 4
    smoothed_student = interpolant(smoothed_at, bias - farthest, bias + farthest, most_averages)

    def sample_averages(nodes: slice) -> Array:
        """Averages over z at the ``nodes``: of the smoothed student and of its slope, times
        functions of z, then of its square and of its curvature."""
        check_time()
        omega_mean = bias + (r * kappa[nodes])[:, None] + pi1 * z + own[nodes, None] * student_slope
        S0, S1, S2, dS1 = smoothed_student(omega_mean)
        return np.vstack([of_mean @ S0.T, of_slope @ S1.T, wz @ S2.T, wz @ dS1.T])

    sample_blocks = [sample_averages(slice(i, i + at_once)) for i in range(0, len(kappa), at_once)]
    student_averages = np.hstack(sample_blocks)
    mean, Fz, by_rest, F_zpsi, F_psi2, F_he2, m_omega, z_S1, psi_S1, power_F = student_averages[:-1]
    F_omega_omega = student_averages[-1]
    F_z_omega = z_S1 - pi1 * F_omega_omega
    slope_z = Fz - pi1 * m_omega
    spread = power_F - mean**2 - Fz**2 - omega_variance * m_omega**2

    # Eq. (21.5); averages of psi = rest + h2 z by the moments of rest
    z_psi2, psi2 = s12 + 2 * h2 * t2, s02 + h2**2
    rest_zpsi, rest_psi2 = s12 + h2 * t2, s03 + 2 * h2 * s12 + h2**2 * t2

    def of_scalars(zpsi: Any, psi2: Any, psi_omega: Any = 0.0) -> Array:
        """Averages (2, N) of a function with l_2 and l_3, from its averages with z psi and psi^2,
        and the average of its slope in omega with psi."""
        l3 = 2 * e * (pi1 * zpsi + omega_variance * psi_omega) + own * e * psi2
        return eta * np.array([e * zpsi, l3])

    linear, rest_of_scalars = of_scalars(t2, z_psi2), of_scalars(rest_zpsi, rest_psi2)
    by_scalars = of_scalars(F_zpsi - h2 * mean, F_psi2 - psi2 * mean, psi_S1) - linear * Fz
    var_z_psi = s22 + 2 * h2 * t3 + 2 * h2**2
    z_psi3 = s13 + 3 * h2 * s22 + 3 * h2**2 * t3 + 3 * h2**3
    X22 = eta**2 / alpha0 * e_power * (var_z_psi - t2**2)
    l2_l3 = 2 * e_power * pi1 * var_z_psi + eta_over_alpha * float(w @ e**3) * (z_psi3 - h2 * psi2)
    X23 = (eta**2 * l2_l3 - float(w @ (linear[0] * linear[1]))) / alpha0

    mu0, c_mu1, mu2 = student.moments(bias + r * kappa, c)
    by_norm = student.second_hermite(bias + r * kappa, c) / (2 * c)
    mu1 = c_mu1 / np.sqrt(c)
    zero, no_scalars = np.zeros_like(kappa), np.zeros((2, len(kappa)))
    trained_along_initial = fresh_along_initial = zero
    if step.initialisation == "gaussian":  # rows change along the spike, too: (17.1)
        change_along_initial, row_gain = eta * t2 * N / 2 * kappa, 1 + eta * mean_e * (h2 + t3 / 2)
        trained_along_initial = F_he2 / 2 + (row_gain - pi1) * F_z_omega
        trained_along_initial += (
            norm_gain - pi1**2
        ) * F_omega_omega / 2 + change_along_initial * m_omega
        fresh_along_initial = mu1 * change_along_initial + norm_gain * by_norm
    in_scalars = np.array([F_z_omega, F_omega_omega / 2])
    of_norms = in_scalars, linear, rest_of_scalars, by_scalars, trained_along_initial
    of_fresh = np.array([zero, by_norm]), no_scalars, no_scalars, no_scalars, fresh_along_initial
    by_pairs = own * psi_S1
    trained = own, mean, slope_z, m_omega, spread, by_rest, by_pairs, *(norms * x for x in of_norms)
    fresh_features = zero, mu0, zero, mu1, mu2, zero, zero, *(norms * x for x in of_fresh)
    scalar_noise = norms * np.array([[X22, X23], [X23, norm_noise]])
    return Neurons(h2, s02, scalar_noise, Features(*trained), Features(*fresh_features))
