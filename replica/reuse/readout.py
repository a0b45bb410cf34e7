"""The ridge readout on samples that trained the first layer: its errors.  docs/theory.md 21

All that follows from the responses is linear, with derivatives by complex steps of one Newton step
each.
"""

from typing import Any, NamedTuple

import numpy as np

from solvers.results import Array

from .cavity import STEP, Beside, Cavity, CavityEquations
from .pencil import Seen, Unknowns, cavity_map


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
        Largest relative violation of (21.7), of (21.10), and of the stationarity of (21.9).
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


class Readout(CavityEquations):
    """Readout of width ``beta`` at the penalty ``lam`` on ``counts`` of each class of samples, over
    dimension: of the step and the readout, of the step alone, of the readout alone."""

    def quadratic(self, g: Array, G: Array, at: list[Seen]) -> tuple[Array, Array, Array]:
        """2 S of (21.9) as Theta M Theta + 2 v Theta + c."""
        (D, _), A, F = self.strata.s.shape, self.kinds, len(G)
        places, root = Unknowns.of(D, A), np.sqrt(g)
        K = places.initial.stop
        M = np.zeros((K + 1,) * 2, G.dtype)  # the last for the rest of the field
        M[places.fields, places.fields] = np.kron(np.eye(D + 1), self.links)
        M[places.m, places.m] = self.price * np.eye(A)
        M[places.initial, places.initial] = np.eye(A) / 2
        M[places.scalars, places.multipliers] = M[places.multipliers, places.scalars] = np.eye(
            2 * A
        )
        for b, n in enumerate(self.strata.neurons):
            block = slice(places.multipliers.start + 2 * b, places.multipliers.start + 2 * b + 2)
            M[block, block] = -n.scalar_noise
        own, squares = np.zeros((F, K + 1), G.dtype), np.zeros_like(G)
        last = slice(3 * A * D, 3 * A * (D + 1))  # F along e_n
        for one, there in zip(self.samples, at, strict=True):
            E, Q = one.weights.shape
            if one.trained:  # fields at q = 0, and what q adds
                w = one.weights.sum(axis=1)
                linear = np.zeros((E, 5 * A, K + 1))
                for k, field in enumerate(range(0, 3 * A * (D + 1), 3 * A)):
                    part = one.along[k, :, 0] if k < D else one.push
                    linear[:, :F, field : field + F] = part[:, None, None] * np.eye(F)
                linear[:, F:, places.multipliers] = -np.eye(2 * A) / self.strata.alpha0
                image = there.S @ linear
                M += np.tensordot(linear * w[:, None, None], image, ((0, 1), (0, 1)))
                M[last, last] += np.tensordot(w, there.S[:, :F, :F], 1)
                own += np.tensordot(w * one.push, image[:, :F], 1)
                squares += np.tensordot(w * one.push**2, there.S[:, :F, :F], 1)
            if one.read:
                X = np.zeros((E, Q, K + 1), G.dtype)
                fields = one.along[..., None] * there.w[..., :F]
                X[..., places.fields] = np.moveaxis(fields, 0, 2).reshape(E, Q, -1)
                constants = -np.moveaxis(root[:, None, None, None] * one.constants, 0, 2)
                X[..., places.m], X[..., places.initial] = constants[..., 0], constants[..., 3]
                X[..., places.scalars] = constants[..., 1:3].reshape(E, Q, -1)
                X[..., places.multipliers] = there.w[..., F:] / -self.strata.alpha0
                X[..., K] = one.labels
                weighted = X * (one.weights / there.D)[..., None]
                flat, X = weighted.reshape(-1, K + 1), X.reshape(-1, K + 1)
                M += flat.T @ X
                if one.trained:
                    pushed = (one.push[:, None, None] * there.w[..., :F]).reshape(-1, F)
                    own += pushed.T @ flat
                    squares += pushed.T @ (pushed * (one.weights / there.D).reshape(-1, 1))
        M += own.T @ G @ np.linalg.solve(np.eye(F) - squares @ G, own)  # over e_n's own part
        return M[:K, :K], M[:K, K], M[K, K]

    def errors(self, cavity: Cavity) -> Errors:
        """Errors and overlaps of the readout.  Eqs. (21.9)-(21.12)"""
        s, (g, G, *_), A = self.strata, cavity, self.kinds
        D = len(s.s)
        at = Unknowns.of(D, A)
        here = self.seen(g, G)
        M, v, c = self.quadratic(g, G, here)
        theta = -np.linalg.pinv(M, rcond=1e-13, hermitian=True) @ v
        value = float(c + v @ theta)
        terms = np.abs(M) @ np.abs(theta) + np.abs(v)
        # an equation whose terms all vanish, as of an even target, is one of rounding
        terms = np.maximum(terms, 1e-6 * terms.max())
        violation = float(np.max(np.abs(M @ theta + v) / terms))
        off = self.off(g, G, here)

        def slope(one: Beside) -> float:
            """Derivative of 2 S at its stationary point, along a complex step."""
            M, v, c = self.quadratic(*one)
            return float((theta @ M @ theta + 2 * v @ theta + c).imag / STEP.imag)

        mu1 = np.array([n.fresh_slope for n in s.neurons])
        spread = np.array([n.fresh_variance @ s.weights for n in s.neurons])
        products = (mu1 * s.weights) @ mu1.T
        places = 1 + 3 * np.arange(A)

        def posterior(g: Array, G: Array, _: Any) -> Array:
            roots = np.sqrt(g)
            return (
                np.sum(products * np.outer(roots, roots) * G[np.ix_(places, places)]) + g @ spread
            )

        near = self.near(g, G, here)
        stability = near.stability
        steps = [
            self.beside(g, G, near, g + STEP * one, by)
            for one, by in zip(np.eye(A), near.by_g, strict=True)
        ]
        by_g = -np.array([slope(one) for one in steps])
        posteriors = np.array([posterior(*one).imag for one in steps]) / STEP.imag
        lam = self.lam + STEP
        mapped = cavity_map(self.samples, self.seen(g, G, lam), self.links).imag / STEP.imag
        by_lam = self.beside(g, G, near, g, mapped, lam)
        responses = self.response(by_lam.at).imag / STEP.imag
        curvature = self.beta * np.diag(s.shares / g**2) + stability
        solved = np.linalg.solve(curvature, np.column_stack([posteriors, responses]))

        roots = np.sqrt(g)
        tested = np.zeros_like(G)
        tested[np.ix_(places, places)] = products * np.outer(roots, roots)
        through_G = slope(self.beside(g, G, near, g, -G @ tested @ G))

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
        squared = value + self.lam * slope(by_lam) + self.lam * float(by_g @ solved[:, 1])
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
            max(violation, off.worst),
        )
