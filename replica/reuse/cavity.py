"""The responses of a ridge readout on samples that trained the first layer.  docs/theory.md 21

The response factors g and the covariance G of the fields without a sample solve (21.7) and (21.10),
by Newton's method.

The readout is Gaussian-process regression on the samples, with a pencil of three fields per kind.
A sample adds a quadratic form in its fields: z, V and the multiplier of V for each kind of neurons,
and two scalars of the row for each kind.  Its form is T_s + u u^T / V_N: T_s depends on the
residual e alone, and so is the same at all nodes q.
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
        What m, eps_2, eps_3, eps_1 and eps_4 of every kind take from the label, over sqrt g_b.
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


def class_of(strata: SampleNodes, count: float, trained: bool, read: bool) -> SampleClass:
    """The class of ``count`` samples over dimension, which the step has ``trained`` on or not, and
    the readout has ``read`` or not.  Eqs. (21.6), (21.8)"""
    Q, A = strata.nodes_q, len(strata.neurons)
    shape = -1, Q
    E = strata.weights.size // Q
    form, residual = np.zeros((E, 5 * A, 5 * A)), np.zeros((A, E, Q, 5 * A))
    noise, coefficients = np.zeros((A, E, Q)), np.zeros((A, E, Q, 5))
    for b, kind in enumerate(strata.neurons):
        z, V, hat, scalars = 3 * b, 3 * b + 1, 3 * b + 2, slice(3 * A + 2 * b, 3 * A + 2 * b + 2)
        n = kind.trained if trained else kind.fresh
        own, linear, rest = n.own[::Q], n.linear[:, ::Q].T, n.by_rest_of_scalars[:, ::Q].T
        form[:, z, hat] = form[:, hat, z] = own * kind.h2
        form[:, hat, hat] = -(own**2) * kind.rest
        form[:, z, scalars] = form[:, scalars, z] = linear
        form[:, hat, scalars] = form[:, scalars, hat] = -own[:, None] * rest
        pushed = n.slope_omega * n.own
        residual[b, ..., z] = (pushed * kind.h2 - n.slope_z).reshape(shape)
        residual[b, ..., V] = -n.slope_omega.reshape(shape)
        residual[b, ..., hat] = (n.own * (n.by_rest - pushed * kind.rest)).reshape(shape)
        by_scalars = n.by_scalars - pushed * n.by_rest_of_scalars
        residual[b, ..., scalars] = by_scalars.T.reshape(E, Q, 2)
        noise[b] = (n.variance - pushed * (2 * n.by_rest - pushed * kind.rest)).reshape(shape)
        of_label = n.mean, *n.scalars, n.initial, n.by_pairs
        coefficients[b] = np.stack(of_label, axis=-1).reshape(E, Q, 5)
    own = strata.push if trained else np.zeros_like(strata.push)
    along = np.vstack([strata.s, strata.q + own, own]).reshape(-1, E, Q)
    weights, labels = (count * strata.weights).reshape(shape), strata.y.reshape(shape)
    return SampleClass(weights, form, residual, noise, coefficients, along, labels, read)


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
    u = np.tensordot(np.sqrt(g), sample_class.residual, 1)
    w = u - (u[..., :F] @ G) @ S[:, :F]
    through = w[..., :F] @ G
    parts = np.einsum("bnqf,nqf->bnq", sample_class.residual[..., :F], through, optimize=True)
    slopes = sample_class.noise + parts / np.sqrt(g)[:, None, None]
    return Form(S, w, lam + np.tensordot(g, slopes, 1), slopes)


def cavity_map(samples: list[SampleClass], forms: Forms, links: Array) -> Array:
    """Covariance of the fields under all samples' ``forms``: the right-hand side (T_0 + <Q>)^-1 of
    (21.7)."""
    F, total = len(links), links
    for sample_class, form in zip(samples, forms, strict=True):
        total = total + np.tensordot(sample_class.weights.sum(axis=1), form.S[:, :F, :F], 1)
        w = form.w[..., :F].reshape(-1, F)
        total = total + (w.T * (sample_class.weights / form.D).ravel()) @ w
    return np.linalg.inv(total)


def cavity_jacobian(samples: list[SampleClass], forms: Forms, mapped: Array) -> Array:
    """Derivative (F^2, F^2) of ``cavity_map`` less the identity: F <Q dG Q> F - dG."""
    F = len(mapped)
    total = np.zeros((F * F, F * F))
    for sample_class, form in zip(samples, forms, strict=True):
        w = form.w[..., :F]
        Q = form.S[:, None, :F, :F] + w[..., None] * (w / form.D[..., None])[..., None, :]
        flat = Q.reshape(-1, F * F)
        product = (flat.T * sample_class.weights.ravel()) @ flat  # of Q_ab and Q_cd; Q is symmetric
        total += product.reshape(F, F, F, F).swapaxes(1, 2).reshape(F * F, F * F)
    return np.kron(mapped, mapped) @ total - np.eye(F * F)


TINY = 1e-20j  # imaginary: derivatives have no rounding from differences
MOST_STEPS, LONGEST_LOG_STEP = 60, 2.0  # iterations, and the longest step in log g
NEAR_STEP, STEP_TOLERANCE = 0.1, 1e-10  # relative, of G: below it g moves, too; the last one


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
        Of the right-hand side of (21.7) in G, less the identity.
    by_g : (A, F, F)
        Of the right-hand side in g.
    explicit, by_G : (A, A), (A, F, F)
        Of k_b in g at fixed G, and in G.
    shifted : list (A,) of lists
        Forms a complex step of each g away, at fixed G.
    """

    jacobian: Array
    by_g: Array
    explicit: Array
    by_G: Array
    shifted: list[Forms]

    def change_G(self, steps: Array) -> Array:
        """Changes of the solution G of (21.7) where its right-hand side changes by ``steps``
        (..., F, F): Newton's step."""
        found = np.linalg.solve(self.jacobian, -steps.reshape(-1, len(self.jacobian)).T)
        return np.asarray(found.T.reshape(steps.shape))

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

    strata: SampleNodes
    counts: tuple[float, float, float]
    beta: float
    lam: float
    dimension: float = np.inf

    def __post_init__(self) -> None:
        numbered = [(i, count) for i, count in enumerate(self.counts) if count > 0]
        self.samples = [class_of(self.strata, count, i != 2, i != 1) for i, count in numbered]
        self.kinds = len(self.strata.neurons)
        self.links = np.kron(np.eye(self.kinds), LINKS)

    def forms(self, g: Array, G: Array, lam: Any = None) -> Forms:
        """Quadratic forms of every class of samples at response factors ``g``, covariance ``G`` and
        penalty ``lam``, the readout's own unless given."""
        return [form_at(one, g, self.lam if lam is None else lam, G) for one in self.samples]

    def response(self, forms: Forms) -> Array:
        """Traces k_b of K_b Q over dimension, (A,).  Eq. (21.10)"""
        pairs = zip(self.samples, forms, strict=True)
        traces = [np.tensordot(form.slopes / form.D, one.weights, 2) for one, form in pairs]
        return np.sum(traces, axis=0)

    def derivatives(self, g: Array, G: Array, forms: Forms) -> Derivatives:
        """Derivatives, in g and G, of the right-hand side of (21.7) and of the traces k_b (21.10),
        from the ``forms`` at that point."""
        mapped = cavity_map(self.samples, forms, self.links)
        jacobian = cavity_jacobian(self.samples, forms, mapped)
        shifted = [self.forms(moved, G) for moved in g + TINY * np.eye(len(g))]
        by_g = np.array([cavity_map(self.samples, one, self.links).imag for one in shifted])
        by_g /= TINY.imag
        explicit = np.array([self.response(one).imag for one in shifted]).T / TINY.imag
        inverse = np.linalg.inv(mapped)
        return Derivatives(jacobian, by_g, explicit, -inverse @ by_g @ inverse, shifted)

    def violations(self, g: Array, G: Array, forms: Forms) -> tuple[Array, Array, float, float]:
        """Violations of (21.7) and, in log g, of (21.10), and the largest of each, of (21.7)
        relative; NaN where a variance D is negative."""
        of_G = cavity_map(self.samples, forms, self.links) - G
        total = self.response(forms) + self.beta
        ratio = total * g / (self.beta * self.strata.shares)
        possible = all((form.D > 0).all() for form in forms) and (ratio > 0).all()
        of_g = np.log(np.where(possible, ratio, np.nan))  # nearly linear in log g
        largest = float(np.abs(of_G).max() / np.abs(G).max())
        return of_G, of_g, largest, float(np.abs(of_g).max())

    def solve_cavity(self, start: Cavity | None = None) -> Cavity:
        """The g_b and G of (21.7) and (21.10), by Newton's method: in G alone until it is near, and
        from a large effective penalty lam / g on unless there is a ``start``."""
        if start is None:
            sizes = [one.noise + (one.residual**2).sum(axis=-1) for one in self.samples if one.read]
            scale = max(float(size.max()) for size in sizes)
            g, G = self.strata.shares * min(0.5, self.lam / scale), np.linalg.inv(self.links)
        else:
            g, G, _ = start
        change: Array = np.zeros_like(g)
        step: Array = np.zeros_like(G)
        count = 0
        while count < MOST_STEPS:
            check_time()
            tried, count = (g * np.exp(change), G + step), count + 1
            forms = self.forms(*tried)
            of_G, of_g, *largest = self.violations(*tried, forms)
            if not np.isfinite(largest).all():
                change, step = change / 2, step / 2
                continue
            g, G = tried
            if max(largest) <= STEP_TOLERANCE:
                break
            if largest[0] > NEAR_STEP:
                jacobian = cavity_jacobian(self.samples, forms, G + of_G)
                step = np.linalg.solve(jacobian, -of_G.ravel()).reshape(G.shape)
                change = np.zeros_like(g)
                continue
            local, total = self.derivatives(g, G, forms), self.response(forms) + self.beta
            step = local.change_G(of_G)
            slopes = np.eye(len(g)) + local.stability * g / total[:, None]
            change = -np.linalg.solve(slopes, of_g + local.responses(step) / total)
            change *= min(1.0, LONGEST_LOG_STEP / float(np.abs(change).max()))
            step = step + np.tensordot(change * g, local.change_G(local.by_g), 1)
        return Cavity(g, G, count)
