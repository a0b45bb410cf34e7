"""The ridge readout on samples that trained the first layer: its errors.  docs/theory.md 21.2-21.4

``solve_cavity`` iterates; all that follows is linear, with derivatives by complex steps of one
Newton step each.
"""

from typing import Any, NamedTuple

import numpy as np

from solvers.results import Array

from .pencil import LINKS, Samples, Unknowns, cavity_jacobian, cavity_map, classes, resolvent
from .strata import Strata

STEP = 1e-20j  # imaginary: derivatives have no rounding from differences
MOST_NEWTON, LONGEST = 60, 2.0  # iterations, and the longest step in log g


class Cavity(NamedTuple):
    """Solution of (21.7) and (21.10): response factors g (A,), covariance G (3A, 3A), what is left
    of these equations, and the number of evaluations."""

    g: Array
    G: Array
    residual: float
    iterations: int


class Errors(NamedTuple):
    """A point of the readout.  Eqs. (21.11)-(21.12)

    Attributes
    ----------
    test, train : float
        Errors on noiseless targets, and on the training samples.
    bias, variance : float
        Of the prediction's mean over the initial rows, and over these rows; they add to ``test``.
    squared_norm : float
        |a|^2 over the dimension.
    m, theta, psi, chi : (A,), (A,), (A,), (A,)
        Overlaps of the readout of every kind.
    stability : (A, A)
        Derivatives of k_b in g_c, symmetric.
    residual : float
        Largest relative violation of the stationarity of (21.9).
    """

    test: float
    train: float
    bias: float
    variance: float
    squared_norm: float
    m: Array
    theta: Array
    psi: Array
    chi: Array
    stability: Array
    residual: float


class Readout:
    """Readout of width ``beta`` at the penalty ``lam`` on ``counts`` of each class of samples, over
    dimension: of the step and the readout, of the step alone, of the readout alone."""

    def __init__(
        self,
        strata: Strata,
        counts: tuple[float, float, float],
        beta: float,
        lam: float,
        dimension: float = np.inf,
    ) -> None:
        self.strata, self.counts, self.beta, self.lam = strata, counts, beta, lam
        self.price = 1 / dimension  # of m^2
        self.kinds = len(strata.neurons)
        self.links = np.kron(np.eye(self.kinds), LINKS)

    def samples(self, g: Array, lam: Any = None) -> list[Samples]:
        """The classes of samples at response factors ``g``."""
        return list(classes(self.strata, self.counts, g, self.lam if lam is None else lam))

    def covariance(self, samples: list[Samples], G: Array, tol: float) -> tuple[Array, float, int]:
        """The G of (21.7) by Newton's method, the last step's size, and iterations."""
        size, change, count = len(G), np.inf, 0
        for count in range(1, MOST_NEWTON):  # noqa: B007 (returned)
            mapped, forms = cavity_map(samples, self.links, G)
            change = float(np.abs(mapped - G).max() / np.abs(G).max())
            if not change > tol:
                break
            jacobian = cavity_jacobian(samples, mapped, forms)
            step = np.linalg.solve(jacobian, (G - mapped).ravel()).reshape(size, size)
            G = G + (step + step.T) / 2
        return G, change, count

    def response(self, samples: list[Samples], g: Array, G: Array) -> Array:
        """Traces k_b of K_b Q over dimension, (A,).  Eq. (21.10)"""
        F, total = len(G), np.zeros(len(g), np.result_type(g, G))
        for one in samples:
            if not one.read:
                continue
            u, V = one.residual[:, :F], one.noise
            J = np.linalg.solve(np.eye(F) + G @ one.form[:, :F, :F], G)
            Ju = (J @ u[..., None])[..., 0]
            each = (u * Ju).reshape(len(u), -1, 3).sum(axis=2).T  # (A, N)
            uJu = each.sum(axis=0)
            terms = one.noise_slopes / V * (1 - uJu / V) + each / (g[:, None] * V)
            total = total + terms @ one.weights
        return total

    def newton_step(self, samples: list[Samples], G: Array, jacobian: Array, links: Array) -> Array:
        """``G`` after one Newton step with the real ``jacobian``: exact to first order in a complex
        step of ``samples`` or ``links``."""
        mapped, _ = cavity_map(samples, links, G.astype(complex))
        return G - np.linalg.solve(jacobian, (mapped - G).ravel()).reshape(G.shape)

    def quadratic(self, samples: list[Samples], G: Array) -> tuple[Array, Array, Array]:
        """2 S of (21.9) as Theta M Theta + 2 v Theta + c."""
        (D, _), A, F = self.strata.s.shape, self.kinds, len(G)
        at = Unknowns.of(D, A)
        M = np.zeros((at.initial.stop,) * 2, G.dtype)
        M[at.fields, at.fields] = np.kron(np.eye(D + 1), self.links)
        M[at.m, at.m], M[at.initial, at.initial] = self.price * np.eye(A), np.eye(A) / 2
        M[at.scalars, at.multipliers] = M[at.multipliers, at.scalars] = np.eye(2 * A)
        for b, n in enumerate(self.strata.neurons):
            block = slice(at.multipliers.start + 2 * b, at.multipliers.start + 2 * b + 2)
            M[block, block] = -n.scalar_noise
        v, c = np.zeros(len(M), G.dtype), np.zeros((), G.dtype)
        B, g, squares = np.zeros((F, len(M)), G.dtype), np.zeros(F, G.dtype), np.zeros_like(G)
        for one in samples:
            Q, w, pushed = resolvent(one.form, G), one.weights, one.weights * one.push
            QB, Qf = Q @ one.linear, (Q @ one.fixed[..., None])[..., 0]
            flat = (one.linear * w[:, None, None]).reshape(-1, len(M)).T
            M += flat @ QB.reshape(-1, len(M))
            v += flat @ Qf.ravel()
            c += w @ (one.fixed * Qf).sum(axis=1)
            if one.push.any():
                B += np.tensordot(pushed, QB[:, :F], 1)
                g += pushed @ Qf[:, :F]
                squares += np.tensordot(pushed * one.push, Q[:, :F, :F], 1)
        H = G @ np.linalg.inv(np.eye(F) - squares @ G)  # average over e_n's own part
        return M + B.T @ H @ B, v + B.T @ H @ g, c + g @ H @ g

    def solve_cavity(self, start: Cavity | None = None, tol: float = 1e-12) -> Cavity:
        """The g_b and G of (21.7) and (21.10): Newton's method in log g around one in G."""
        pi, beta = self.strata.shares, self.beta
        g, G = (pi / 2, np.linalg.inv(self.links)) if start is None else start[:2]
        count = 0
        for _ in range(MOST_NEWTON):
            samples = self.samples(g)
            G, change, iterations = self.covariance(samples, G, tol)
            count += iterations
            response = self.response(samples, g, G) + beta
            off = np.log(response * g / (beta * pi))  # nearly linear in log g
            residual = max(change, float(np.abs(off).max()))
            if not residual > 10 * tol:
                break
            slopes, _, _ = self.slopes(samples, g, G)
            step = -np.linalg.solve(np.eye(len(g)) + slopes * g / response[:, None], off)
            step *= min(1.0, LONGEST / float(np.abs(step).max()))
            g = g * np.exp(step)
        return Cavity(g, G, residual, count)

    def slopes(self, samples: list[Samples], g: Array, G: Array) -> tuple[Array, list[Any], Array]:
        """Derivatives k_bc = d k_b / d g_c; the samples and G after each complex step in g_c; and
        the Jacobian of (21.7)."""
        mapped, forms = cavity_map(samples, self.links, G)
        jacobian = cavity_jacobian(samples, mapped, forms)
        steps, columns = [], []
        for c in range(len(g)):
            moved = g + STEP * np.eye(len(g))[c]
            after = self.samples(moved)
            G_after = self.newton_step(after, G, jacobian, self.links)
            steps.append((moved, after, G_after))
            columns.append(self.response(after, moved, G_after).imag / STEP.imag)
        return np.array(columns).T, steps, jacobian

    def errors(self, cavity: Cavity) -> Errors:
        """Errors and overlaps of the readout.  Eqs. (21.9)-(21.12)"""
        s, (g, G, *_), A = self.strata, cavity, self.kinds
        D = len(s.s)
        at, samples = Unknowns.of(D, A), self.samples(g)
        M, v, c = self.quadratic(samples, G)
        theta = -np.linalg.pinv(M, rcond=1e-13, hermitian=True) @ v
        value = float(c + v @ theta)
        terms = np.abs(M) @ np.abs(theta) + np.abs(v)
        violation = float(np.max(np.abs(M @ theta + v) / np.where(terms > 0, terms, 1.0)))

        def slope(samples: list[Samples], G: Array) -> float:
            """Derivative of 2 S at its stationary point, along a complex step."""
            M, v, c = self.quadratic(samples, G)
            return float((theta @ M @ theta + 2 * v @ theta + c).imag / STEP.imag)

        mu1 = np.array([n.fresh_slope for n in s.neurons])
        spread = np.array([n.fresh_variance @ s.weights for n in s.neurons])
        products = (mu1 * s.weights) @ mu1.T
        places = 1 + 3 * np.arange(A)

        def posterior(g: Array, G: Array) -> Array:
            roots = np.sqrt(g)
            return (
                np.sum(products * np.outer(roots, roots) * G[np.ix_(places, places)]) + g @ spread
            )

        stability, steps, jacobian = self.slopes(samples, g, G)
        by_g = -np.array([slope(after, moved) for _, after, moved in steps])
        posteriors = np.array([posterior(h, K).imag for h, _, K in steps]) / STEP.imag
        by_lam = self.samples(g, self.lam + STEP)
        G_lam = self.newton_step(by_lam, G, jacobian, self.links)
        responses = self.response(by_lam, g.astype(complex), G_lam).imag / STEP.imag
        curvature = self.beta * np.diag(s.shares / g**2) + stability
        solved = np.linalg.solve(curvature, np.column_stack([posteriors, responses]))

        roots = np.sqrt(g)
        links = self.links.astype(complex)
        links[np.ix_(places, places)] += STEP * products * np.outer(roots, roots)
        through_G = slope(samples, self.newton_step(samples, G, jacobian, links))

        fields = theta[at.fields].reshape(D + 1, A, 3)[..., 1]  # of V, along s and e_n
        along = np.vstack([s.s, s.q])
        m, chi = roots * theta[at.m], roots * theta[at.scalars].reshape(A, 2)[:, 1]
        linear = np.einsum("b,kb,bn,kn->n", roots, fields, mu1, along)
        constant = np.array([n.fresh_mean for n in s.neurons])
        norms = np.array([n.fresh_norm for n in s.neurons])
        initial = np.array([n.fresh_initial for n in s.neurons])
        prediction = m @ constant + chi @ norms + roots * theta[at.initial] @ initial + linear
        bias = float(s.weights @ (s.target - prediction) ** 2) + through_G
        variance = float(by_g @ solved[:, 0])
        squared = value + self.lam * slope(by_lam, G_lam) + self.lam * float(by_g @ solved[:, 1])
        read = self.counts[0] + self.counts[2]
        spike = np.append(s.gamma, s.rho)
        overlap = spike @ fields
        rest = fields[0] * s.rho - fields[-1] * s.gamma[0] if D == 1 else np.full(A, np.nan)
        train = self.lam * (value - squared) / read
        return Errors(
            bias + variance,
            train,
            bias,
            variance,
            squared,
            m,
            roots * overlap,
            roots * rest,
            chi,
            stability,
            violation,
        )
