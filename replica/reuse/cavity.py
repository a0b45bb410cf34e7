"""Classes of samples, their quadratic forms, and the cavity: factors g, covariance G.  Eq. (21.7)

The response factors g and the covariance G of the fields without a sample solve (21.7) and (21.10),
by Newton's method.  docs/theory.md 21

The readout is Gaussian-process regression on samples, some of which trained the first layer, with a
pencil of three fields per kind.  A sample adds a quadratic form in its fields: z, V and the
multiplier of V for each kind of neurons, and two scalars of the row for each kind.  Its form is
T_s + u u^T / V_N: T_s depends on the residual e alone, and so is the same at all nodes q.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from solvers.resources import check_time
from solvers.results import Array

from .sample_nodes import SampleNodes

LINKS = np.array([[1.0, 0.0, 1.0], [0.0, 0.0, -1.0], [1.0, -1.0, 0.0]])  # T_0 of one kind


class SampleClass(NamedTuple):
    """Class of samples at E residuals times Q nodes: used by the step and the readout, by the step
    alone, or by the readout alone.

    There are M = 5 A fields, of which the first F = 3 A are averaged over, and K unknowns.

    Attributes
    ----------
    weights : (E, Q)
        Quadrature weights times the number of samples over dimension.
    form : (E, M, M)
        T_s, the quadratic form (21.6) without its last term.
    residual : (A, E, Q, M)
        Part of u of (21.6) in the fields of every kind, over sqrt g_b.
    noise : (A, E, Q)
        Part of V_N of every kind, over g_b.
    coefficients : (A, E, Q, 5)
        Parts of the label in m, eps_2, eps_3, eps_1 and eps_4 of every kind, over sqrt g_b.
        Eqs. (21.8), (21.14)
    along : (D + 2, E, Q)
        Coordinates of the sample on the special directions, with its own part, and this part.
    labels : (E, Q)
    read : bool
        Whether the readout uses the samples.
    """

    weights: Array
    form: Array
    residual: Array
    noise: Array
    coefficients: Array
    along: Array
    labels: Array
    read: bool


def class_of(
    sample_nodes: SampleNodes, count: float, step_trained: bool, read: bool
) -> SampleClass:
    """The class of ``count`` samples over dimension, which the step is trained on or not
    (``step_trained``), and the readout has ``read`` or not.  Eqs. (21.6), (21.8)"""
    Q, A = sample_nodes.nodes_q, len(sample_nodes.neurons)
    node_shape = -1, Q
    input_count = sample_nodes.weights.size // Q
    form, residual_k = np.zeros((input_count, 5 * A, 5 * A)), np.zeros((A, input_count, Q, 5 * A))
    class_noise, coefficients = np.zeros((A, input_count, Q)), np.zeros((A, input_count, Q, 5))
    for k, kind in enumerate(sample_nodes.neurons):
        z, V, hat, scalars = 3 * k, 3 * k + 1, 3 * k + 2, slice(3 * A + 2 * k, 3 * A + 2 * k + 2)
        n = kind.trained if step_trained else kind.fresh
        own_push, linear, rest = n.own[::Q], n.linear[:, ::Q].T, n.by_rest_of_scalars[:, ::Q].T
        form[:, z, hat] = form[:, hat, z] = own_push * kind.h2
        form[:, hat, hat] = -(own_push**2) * kind.rest
        form[:, z, scalars] = form[:, scalars, z] = linear
        form[:, hat, scalars] = form[:, scalars, hat] = -own_push[:, None] * rest
        pushed = n.slope_omega * n.own
        residual_k[k, ..., z] = (pushed * kind.h2 - n.slope_z).reshape(node_shape)
        residual_k[k, ..., V] = -n.slope_omega.reshape(node_shape)
        residual_k[k, ..., hat] = (n.own * (n.by_rest - pushed * kind.rest)).reshape(node_shape)
        residual_scalars = n.by_scalars - pushed * n.by_rest_of_scalars
        residual_k[k, ..., scalars] = residual_scalars.T.reshape(input_count, Q, 2)
        class_noise[k] = (n.variance - pushed * (2 * n.by_rest - pushed * kind.rest)).reshape(
            node_shape
        )
        label_terms = n.mean, *n.scalars, n.initial, n.by_pairs
        coefficients[k] = np.stack(label_terms, axis=-1).reshape(input_count, Q, 5)
    own_push = sample_nodes.push if step_trained else np.zeros_like(sample_nodes.push)
    along = np.vstack([sample_nodes.s, sample_nodes.q + own_push, own_push])
    along = along.reshape(-1, input_count, Q)
    weights = (count * sample_nodes.weights).reshape(node_shape)
    labels = sample_nodes.y.reshape(node_shape)
    return SampleClass(weights, form, residual_k, class_noise, coefficients, along, labels, read)


class Form(NamedTuple):
    """Form of a class of samples given the cavity covariance G of the first fields: Q of (21.7) is
    S + w w^T / D.

    Attributes
    ----------
    S : (E, M, M)
        T_s (1 + G T_s)^-1.
    w : (E, Q, M)
        (1 + T_s G)^-1 u.
    D : (E, Q)
        V_N + u^T (G^-1 + T_s)^-1 u; infinite where the readout does not use the samples.
    slopes : (A, E, Q)
        Derivatives of D in the g_b at fixed G.
    """

    S: Array
    w: Array
    D: Array
    slopes: Array


Forms = list[Form]  # of every class of samples


def form_at(sample_class: SampleClass, g: Array, lam: Array | float, G: Array) -> Form:
    """Form of a class of samples (Q of (21.7), and what it is made of) given the cavity covariance
    ``G`` of the fields, at response factors ``g`` and penalty ``lam``."""
    F, M = len(G), sample_class.form.shape[-1]
    S = np.linalg.solve(np.eye(M) + sample_class.form @ np.pad(G, (0, M - F)), sample_class.form)
    if not sample_class.read:
        E, Q = sample_class.weights.shape
        return Form(S, np.zeros((E, Q, M)), np.full((E, Q), np.inf), np.zeros((len(g), E, Q)))
    form_residual = np.tensordot(np.sqrt(g), sample_class.residual, 1)
    w = form_residual - (form_residual[..., :F] @ G) @ S[:, :F]
    residual_G = w[..., :F] @ G
    G_parts = np.einsum("bnqf,nqf->bnq", sample_class.residual[..., :F], residual_G, optimize=True)
    form_slopes = sample_class.noise + G_parts / np.sqrt(g)[:, None, None]
    return Form(S, w, lam + np.tensordot(g, form_slopes, 1), form_slopes)


def cavity_map(sample_classes: list[SampleClass], forms: Forms, links: Array) -> Array:
    """Covariance of the fields under all samples' ``forms``: the right-hand side (T_0 + <Q>)^-1 of
    (21.7)."""
    F, inverse_G = len(links), links
    for sample_class, form in zip(sample_classes, forms, strict=True):
        inverse_G = inverse_G + np.tensordot(sample_class.weights.sum(axis=1), form.S[:, :F, :F], 1)
        form_w = form.w[..., :F].reshape(-1, F)
        inverse_G = inverse_G + (form_w.T * (sample_class.weights / form.D).ravel()) @ form_w
    return np.linalg.inv(inverse_G)


def cavity_jacobian(sample_classes: list[SampleClass], forms: Forms, mapped: Array) -> Array:
    """Derivative (F^2, F^2) of ``cavity_map`` less the identity: F <Q dG Q> F - dG."""
    F = len(mapped)
    jacobian_sum = np.zeros((F * F, F * F))
    for sample_class, form in zip(sample_classes, forms, strict=True):
        form_w = form.w[..., :F]
        Q = form.S[:, None, :F, :F] + form_w[..., None] * (form_w / form.D[..., None])[..., None, :]
        flat = Q.reshape(-1, F * F)
        product = (flat.T * sample_class.weights.ravel()) @ flat  # of Q_ab and Q_cd; Q is symmetric
        jacobian_sum += product.reshape(F, F, F, F).swapaxes(1, 2).reshape(F * F, F * F)
    return np.kron(mapped, mapped) @ jacobian_sum - np.eye(F * F)


TINY = 1e-20j  # imaginary: derivatives have no rounding from differences


class Cavity(NamedTuple):
    """Solution of (21.7) and (21.10): response factors g (A,), covariance G (3A, 3A), and the
    number of evaluations."""

    g: Array
    G: Array
    iterations: int


class Derivatives(NamedTuple):
    """Derivatives at a point.

    Attributes
    ----------
    jacobian : (F^2, F^2)
        Derivative of the right-hand side of (21.7) in G, less the identity.
    by_g : (A, F, F)
        Derivative of the right-hand side in g.
    explicit, by_G : (A, A), (A, F, F)
        Derivatives of k_b in g at fixed G, and in G.
    shifted : list (A,) of lists
        Forms a complex step of each g away, at fixed G.
    """

    jacobian: Array
    by_g: Array
    explicit: Array
    by_G: Array
    shifted: list[Forms]

    def change_G(self, G_steps: Array) -> Array:
        """Changes of the solution G of (21.7) where its right-hand side changes by ``G_steps``
        (..., F, F): Newton's step."""
        G_changes = np.linalg.solve(self.jacobian, -G_steps.reshape(-1, len(self.jacobian)).T)
        return np.asarray(G_changes.T.reshape(G_steps.shape))

    def responses(self, changes: Array) -> Array:
        """Changes (A, ...) of k_b through ``changes`` (..., F, F) of G."""
        return np.tensordot(self.by_G, changes, ((1, 2), (-2, -1)))

    @property
    def stability(self) -> Array:
        """Derivatives k_bc = d k_b / d g_c, (A, A)."""
        return self.explicit + self.responses(self.change_G(self.by_g))


@dataclass
class CavityEquations:
    """Equations (21.7) and (21.10) of a readout of width ``beta`` at the penalty ``lam`` on so many
    samples of each class, ``counts`` over dimension: of the step and the readout, of the step
    alone, of the readout alone."""

    sample_nodes: SampleNodes
    counts: tuple[float, float, float]
    beta: float
    lam: float
    dimension: float = np.inf

    def __post_init__(self) -> None:
        sample_counts = [(i, count) for i, count in enumerate(self.counts) if count > 0]
        self.samples = [
            class_of(self.sample_nodes, count, i != 2, i != 1) for i, count in sample_counts
        ]
        self.kinds = len(self.sample_nodes.neurons)
        self.links = np.kron(np.eye(self.kinds), LINKS)

    def forms(self, g: Array, G: Array, lam: Any = None) -> Forms:
        """Quadratic forms of every class of samples at response factors ``g``, covariance ``G`` and
        penalty ``lam``, the readout's own unless given."""
        return [form_at(one, g, self.lam if lam is None else lam, G) for one in self.samples]

    def response(self, forms: Forms) -> Array:
        """Traces k_b of K_b Q over dimension, (A,).  Eq. (21.10)"""
        class_forms = zip(self.samples, forms, strict=True)
        k_traces = [np.tensordot(form.slopes / form.D, one.weights, 2) for one, form in class_forms]
        return np.sum(k_traces, axis=0)

    def derivatives(self, g: Array, G: Array, forms: Forms) -> Derivatives:
        """Derivatives, in g and G, of the right-hand side of (21.7) and of the traces k_b (21.10),
        from the ``forms`` at that point."""
        cavity_G = cavity_map(self.samples, forms, self.links)
        jacobian = cavity_jacobian(self.samples, forms, cavity_G)
        shifted_forms = [self.forms(shifted_g, G) for shifted_g in g + TINY * np.eye(len(g))]
        G_by_g = np.array([cavity_map(self.samples, one, self.links).imag for one in shifted_forms])
        G_by_g /= TINY.imag
        explicit_k = np.array([self.response(one).imag for one in shifted_forms]).T / TINY.imag
        inverse = np.linalg.inv(cavity_G)
        return Derivatives(jacobian, G_by_g, explicit_k, -inverse @ G_by_g @ inverse, shifted_forms)

    def violations(self, g: Array, G: Array, forms: Forms) -> tuple[Array, Array, float, float]:
        """Violations of (21.7) and, in log g, of (21.10), and the largest of each, of (21.7)
        relative; NaN where a variance D is negative."""
        G_violation = cavity_map(self.samples, forms, self.links) - G
        response_sum = self.response(forms) + self.beta
        response_ratio = response_sum * g / (self.beta * self.sample_nodes.shares)
        possible = all((form.D > 0).all() for form in forms) and (response_ratio > 0).all()
        g_violation = np.log(np.where(possible, response_ratio, np.nan))  # nearly linear in log g
        largest_G = float(np.abs(G_violation).max() / np.abs(G).max())
        return G_violation, g_violation, largest_G, float(np.abs(g_violation).max())

    def solve_cavity(self, cavity_start: Cavity | None = None) -> Cavity:
        """The g_b and G of (21.7) and (21.10), by Newton's method: in G alone until it is near, and
        from a large effective penalty lam / g on unless there is a ``cavity_start``."""
        near_step, step_tolerance = (
            0.1,
            1e-10,
        )  # relative, of G: below it g moves, too; the last one
        most_steps, longest_log_step = 60, 2.0  # iterations, and the longest step in log g
        if cavity_start is None:
            sizes = [one.noise + (one.residual**2).sum(axis=-1) for one in self.samples if one.read]
            k_scale = max(float(response_size.max()) for response_size in sizes)
            g = self.sample_nodes.shares * min(0.5, self.lam / k_scale)
            G = np.linalg.inv(self.links)
        else:
            g, G, _ = cavity_start
        log_g_change: Array = np.zeros_like(g)
        G_step: Array = np.zeros_like(G)
        newton_count = 0
        while newton_count < most_steps:
            check_time()
            tried_cavity, newton_count = (g * np.exp(log_g_change), G + G_step), newton_count + 1
            forms = self.forms(*tried_cavity)
            G_violation, g_violation, *largest_violations = self.violations(*tried_cavity, forms)
            if not np.isfinite(largest_violations).all():
                log_g_change, G_step = log_g_change / 2, G_step / 2
                continue
            g, G = tried_cavity
            if max(largest_violations) <= step_tolerance:
                break
            if largest_violations[0] > near_step:
                G_jacobian = cavity_jacobian(self.samples, forms, G + G_violation)
                G_step = np.linalg.solve(G_jacobian, -G_violation.ravel()).reshape(G.shape)
                log_g_change = np.zeros_like(g)
                continue
            local, k_sum = self.derivatives(g, G, forms), self.response(forms) + self.beta
            G_step = local.change_G(G_violation)
            slopes = np.eye(len(g)) + local.stability * g / k_sum[:, None]
            log_g_change = -np.linalg.solve(slopes, g_violation + local.responses(G_step) / k_sum)
            log_g_change *= min(1.0, longest_log_step / float(np.abs(log_g_change).max()))
            G_step = G_step + np.tensordot(log_g_change * g, local.change_G(local.by_g), 1)
        return Cavity(g, G, newton_count)
