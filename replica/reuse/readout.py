"""The ridge readout on samples that trained the first layer: its errors.  docs/theory.md 21

``solve_cavity`` iterates; all that follows is linear, with derivatives by complex steps of one
Newton step each.
"""

from typing import Any, NamedTuple

import numpy as np

from solvers.resources import check_time
from solvers.results import Array

from .pencil import LINKS, Seen, Unknowns, cavity_jacobian, cavity_map, classes, seen
from .strata import Strata

STEP = 1e-20j  # imaginary: derivatives have no rounding from differences
MOST_NEWTON, LONGEST = 60, 2.0  # iterations, and the longest step in log g
NEAR, TOLERANCE = 0.1, 1e-10  # relative steps of G: below which g moves, too, and the last one


class Cavity(NamedTuple):
    """Solution of (21.7) and (21.10): response factors g (A,), covariance G (3A, 3A), and the
    number of evaluations."""

    g: Array
    G: Array
    iterations: int


class Off(NamedTuple):
    """What is left of (21.7) and, in log g, of (21.10); k_b + beta; and the largest of both, and
    of the former, relative."""

    of_G: Array
    of_g: Array
    total: Array
    worst: float
    worst_G: float


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


class Near(NamedTuple):
    """Derivatives at a point.

    Attributes
    ----------
    jacobian : (F^2, F^2)
        Of the right-hand side of (21.7) in G, less the identity.
    by_g : (A, F, F)
        Of the right-hand side in g.
    explicit, by_G : (A, A), (A, F, F)
        Of k_b in g at fixed G, and in G.
    """

    jacobian: Array
    by_g: Array
    explicit: Array
    by_G: Array

    def moved(self, steps: Array) -> Array:
        """Changes of G where its right-hand side has these ``steps``, (..., F, F)."""
        found = np.linalg.solve(self.jacobian, -steps.reshape(-1, len(self.jacobian)).T)
        return np.asarray(found.T.reshape(steps.shape))

    def responses(self, changes: Array) -> Array:
        """Changes (A, ...) of k_b through ``changes`` (..., F, F) of G."""
        return np.tensordot(self.by_G, changes, ((1, 2), (-2, -1)))

    @property
    def stability(self) -> Array:
        """Derivatives k_bc = d k_b / d g_c, (A, A)."""
        return self.explicit + self.responses(self.moved(self.by_g))


class Beside(NamedTuple):
    """A complex step away from a point: response factors, covariance, and the samples there."""

    g: Array
    G: Array
    at: list[Seen]


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
        self.samples = classes(strata, counts)
        self.price = 1 / dimension  # of m^2
        self.kinds = len(strata.neurons)
        self.links = np.kron(np.eye(self.kinds), LINKS)

    def seen(self, g: Array, G: Array, lam: Any = None) -> list[Seen]:
        """Each class of samples at response factors ``g``, covariance ``G`` and a penalty."""
        return [seen(one, g, self.lam if lam is None else lam, G) for one in self.samples]

    def response(self, at: list[Seen]) -> Array:
        """Traces k_b of K_b Q over dimension, (A,).  Eq. (21.10)"""
        return np.asarray(
            sum(
                np.tensordot(there.slopes / there.D, one.weights, 2)
                for one, there in zip(self.samples, at, strict=True)
            )
        )

    def near(self, g: Array, G: Array, at: list[Seen]) -> Near:
        """How both equations change with g and G, from the samples there."""
        mapped = cavity_map(self.samples, at, self.links)
        jacobian = cavity_jacobian(self.samples, at, mapped)
        each = [self.seen(moved, G) for moved in g + STEP * np.eye(len(g))]
        by_g = np.array([cavity_map(self.samples, one, self.links).imag for one in each])
        explicit = np.array([self.response(one).imag for one in each]).T / STEP.imag
        inverse = np.linalg.inv(mapped)
        return Near(jacobian, by_g / STEP.imag, explicit, -inverse @ by_g @ inverse / STEP.imag)

    def beside(
        self, g: Array, G: Array, near: Near, moved: Array, step: Array, lam: Any = None
    ) -> Beside:
        """A complex step away: the response factors ``moved``, and where the right-hand side of
        (21.7) takes the ``step``, or the penalty is ``lam``."""
        after = G + STEP * near.moved(step)
        return Beside(moved, after, self.seen(moved, after, lam))

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

    def off(self, g: Array, G: Array, at: list[Seen]) -> Off:
        """What is left of (21.7) and (21.10); NaN where a variance D is negative."""
        of_G, total = cavity_map(self.samples, at, self.links) - G, self.response(at) + self.beta
        ratio = total * g / (self.beta * self.strata.shares)
        possible = all((there.D > 0).all() for there in at) and (ratio > 0).all()
        of_g = np.log(np.where(possible, ratio, np.nan))  # nearly linear in log g
        worst_G = float(np.abs(of_G).max() / np.abs(G).max())
        return Off(of_G, of_g, total, float(np.max([worst_G, *np.abs(of_g)])), worst_G)

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
        while count < MOST_NEWTON:
            check_time()
            tried, count = (g * np.exp(change), G + step), count + 1
            at = self.seen(*tried)
            off = self.off(*tried, at)
            if not np.isfinite(off.worst):
                change, step = change / 2, step / 2
                continue
            g, G = tried
            if off.worst <= TOLERANCE:
                break
            if off.worst_G > NEAR:
                jacobian = cavity_jacobian(self.samples, at, G + off.of_G)
                step = np.linalg.solve(jacobian, -off.of_G.ravel()).reshape(G.shape)
                change = np.zeros_like(g)
                continue
            near = self.near(g, G, at)
            step = near.moved(off.of_G)
            slopes = np.eye(len(g)) + near.stability * g / off.total[:, None]
            change = -np.linalg.solve(slopes, off.of_g + near.responses(step) / off.total)
            change *= min(1.0, LONGEST / float(np.abs(change).max()))
            step = step + np.tensordot(change * g, near.moved(near.by_g), 1)
        return Cavity(g, G, count)

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
