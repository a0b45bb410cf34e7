"""The rows of the network itself: their effective covariances, tabulated.  docs/theory.md 16, 18

Of rows after any number of steps, the equations need c_e(q), with p(q) = 1 / (1 + q c_e(q)), and
C_e(q) on u, the row norms and zeta (``pencil``).  Both are Chat at q = 0, bounded, and smooth in
log q: some dozens of values stand for them.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.polynomial.chebyshev import chebpts1, chebvander
from scipy.linalg import null_space

from solvers.results import Array

from ..equivalence import RowSeries
from .pencil import Batch, bulk, pencil, special, symmetric, without_norms

NEWTON = 40  # steps at most; a few are usual
SHORTEST_STEP = 1e-3  # in q, relative: beyond a place that needs shorter ones nothing is known
# Of the table: panels in s, Chebyshev points in each, and the scales A, B of q over those of 1/c.
PANEL, PANELS, POINTS = 2.0, 11, 14
FOLLOWED = 2  # points of each panel that lead to the others: even one does, of all batches tried
A, B = np.exp(10.0), np.exp(-12.0)  # A / B = exp(PANEL * PANELS)


@dataclass(frozen=True, eq=False)
class Rows:
    """The rows of one network: their effective covariances as functions of q.

    Both are tabulated once, in s = log((1 + A q) / (1 + B q)): linear in q near 0, logarithmic
    between, linear in 1/q far out.  Singularities in q are on the negative axis, so pi away from
    the real s.

    Attributes
    ----------
    batches : tuple of Batch
        Of all steps, the last one first.
    basis : (n, S)
        The spike u and the other directions of the target, zeta, in the special ones.
    norms : bool
        Whether the fluctuation of the rows' norms is kept.
    initial_norms : float
        d times the variance of the squared norms that the rows start from.
    tangent : tuple of (complex, Rows)
        What is added to the tabulated functions, with these factors: a complex step.
    """

    batches: tuple[Batch, ...]
    basis: Array
    norms: bool = True
    initial_norms: float = 0.0
    tangent: tuple[tuple[complex, "Rows"], ...] = ()

    @cached_property
    def start(self) -> Array:
        """E Q at q = 0, (T, 2, 2)."""
        first = [(b.t11 @ b.weights, b.t12 @ b.weights, 0.0) for b in self.batches]
        return bulk(self.batches, np.zeros(1), symmetric(np.array(first))[None])[0]

    @cached_property
    def c(self) -> float:
        """tr C / d, the bulk variance."""
        return float(pencil(self.start[None], np.zeros(1))[0][0])

    @cached_property
    def v(self) -> float:
        """d times the variance of the squared norms."""
        return float(self.special(np.zeros(1))[0][0, 1, 1]) if self.norms else 0.0

    @property
    def largest(self) -> float:
        """C has no eigenvalue above this."""
        bound = 1.0
        for batch in reversed(self.batches):
            widest = (1 + batch.alpha**-0.5) ** 2  # of the mean of x x^T, and weighted
            own, passed = (float(np.abs(t).max()) * widest for t in (batch.t11, batch.t12))
            bound = (1 + passed) ** 2 * bound + own
        return bound

    @cached_property
    def _nodes(self) -> Array:
        """q at the Chebyshev points of all panels, (panels, points)."""
        s = PANEL * (np.arange(PANELS)[:, None] + (chebpts1(POINTS) + 1) / 2)
        e = np.exp(s)
        return np.asarray((e - 1) / (A - B * e) / self.c)

    @cached_property
    def _followed(self) -> tuple[Array, Array]:
        """A few of the nodes of every panel, and E Q there."""
        q = self._nodes[:, :: POINTS // FOLLOWED].ravel()
        return q, np.concatenate(list(self._follow(q)))

    def averages(self, q: Array) -> Array:
        """E Q (P, T, 2, 2) at q (P,), from the nearest one followed."""
        known, EQ = self._followed
        return bulk(self.batches, q, EQ[np.searchsorted(known, q).clip(0, len(known) - 1)])

    @cached_property
    def _coefficients(self) -> Array:
        """Chebyshev coefficients of c_e and of C_e, (panels, points, 1 + n^2); NaN in a panel
        where c_e leaves its branch."""
        # a panel at a time: what all take together does not fit into the caches
        values = np.concatenate([self._values(q) for q in self._nodes])
        q, c = self._nodes.ravel(), values[:, 0]
        values[1:][~_on_branch(q[:-1], c[:-1], q[1:], c[1:])] = np.nan
        fit = np.linalg.inv(chebvander(chebpts1(POINTS), POINTS - 1))
        return np.asarray(fit @ values.reshape(PANELS, POINTS, -1))

    def _values(self, q: Array) -> Array:
        """c_e and C_e at q (P,), (P, 1 + n^2)."""
        EQ = self.averages(q)
        c = pencil(EQ, q)[0]
        return np.concatenate([c[:, None], self.special_at(q, EQ).reshape(len(q), -1)], axis=1)

    @cached_property
    def _errors(self) -> Array:
        """Of the tables in the middle of every panel, (panels,): relative for c_e, and for C_e, of
        which entries may vanish, relative to what its diagonal allows."""
        e = np.exp(PANEL * (np.arange(PANELS) + 0.5))
        q = (e - 1) / (A - B * e) / self.c
        expected, n = self._values(q), len(self.basis) + 1
        off = np.abs(self._tabulated(q, np.s_[:])[0] - expected)
        root = np.sqrt(np.abs(expected[:, 1 :: n + 1]))
        size = (root[:, :, None] * root[:, None]).reshape(len(q), -1)
        special = off[:, 1:] / np.where(size > 0, size, np.inf)  # norms that do not fluctuate
        return np.asarray(np.maximum(off[:, 0] / expected[:, 0], special.max(axis=1)))

    def error(self, q: Array) -> Array:
        """Of the tables about q (P,)."""
        s = np.log1p(A * self.c * q) - np.log1p(B * self.c * q)
        panel = np.where(np.isfinite(s), s / PANEL, 0.0).astype(int)
        return self._errors[np.clip(panel, 0, PANELS - 1)]

    @cached_property
    def series(self) -> RowSeries | None:
        """The tables for one zeta; None of a target that leaves more directions."""
        n = len(self.basis) + 1
        if n != 3:
            return None
        upper = [1 + i * n + j for i in range(n) for j in range(i, n)]
        chosen = self._coefficients[..., [0, *upper]]
        return RowSeries(np.ascontiguousarray(np.moveaxis(chosen, 2, 0)), A * self.c, B * self.c)

    def _follow(self, q: Array) -> Iterator[Array]:
        """E Q (1, T, 2, 2) at each of the rising q, from one to the next on the branch."""
        x, last, c = self.start[None], 0.0, self.c
        for target in q:
            step = target - last
            while last < target and step > SHORTEST_STEP * target:
                at = np.array([min(last + step, target)])
                trial = bulk(self.batches, at, x)
                now = pencil(trial, at)[0][0]
                if _on_branch(last, c, at[0], now):
                    x, last, c = trial, float(at[0]), now
                else:
                    step /= 2
            if last < target:
                break
            yield x
        nowhere = np.full_like(x, np.nan)
        yield from [nowhere] * int((q > last).sum())

    def special_at(self, q: Array, EQ: Array) -> Array:
        """C_e on (u, delta, zeta) (P, n + 1, n + 1): the other special directions, of which
        nothing is asked, are integrated out."""
        batches = self.batches
        if not self.norms:
            batches = tuple(batch._replace(pairs=without_norms(batch)) for batch in batches)
        C = special(batches, q, EQ, self.initial_norms)
        n, S = self.basis.shape
        turn = np.zeros((S + 1, S + 1))
        turn[0, :S], turn[1, S], turn[2 : n + 1, :S] = self.basis[0], 1.0, self.basis[1:]
        turn[n + 1 :, :S] = null_space(self.basis).T
        C = turn @ C @ turn.T
        kept, lost = slice(n + 1), slice(n + 1, None)
        q = q[:, None, None]
        inner = np.linalg.solve(np.eye(S - n) + q * C[:, lost, lost], C[:, lost, kept])
        return np.asarray(C[:, kept, kept] - q * C[:, kept, lost] @ inner)

    def _tabulated(self, q: Array, columns: slice) -> tuple[Array, Array]:
        """Some of the tabulated functions at q (P,), and their derivatives in q, (P, columns)."""
        Aq, Bq = A * self.c * q, B * self.c * q
        s = np.log1p(Aq) - np.log1p(Bq)
        ds = (A - B) * self.c / ((1 + Aq) * (1 + Bq))
        panel = np.clip((s.real / PANEL).astype(int), 0, PANELS - 1)
        x = 2 * (s / PANEL - panel) - 1
        c = self._coefficients[panel, :, columns]
        T = np.empty((len(q), POINTS), x.dtype)
        U = np.empty_like(T)  # second kind: d T_k / dx = k U_(k-1)
        T[:, 0], T[:, 1], U[:, 0], U[:, 1] = 1.0, x, 0.0, 1.0
        for k in range(2, POINTS):
            T[:, k] = 2 * x * T[:, k - 1] - T[:, k - 2]
            U[:, k] = 2 * x * U[:, k - 1] - U[:, k - 2]
        U *= np.arange(POINTS)
        value, slope = (T[:, None] @ c)[:, 0], (U[:, None] @ c)[:, 0]
        slope = slope * (2 / PANEL * ds)[:, None]
        for factor, other in self.tangent:
            further = other._tabulated(q, columns)
            value, slope = value + factor * further[0], slope + factor * further[1]
        return value, slope

    def effective(self, q: Array) -> tuple[Array, Array]:
        """c_e (P,) at q, and its derivative."""
        value, slope = self._tabulated(q, np.s_[:1])
        return value[:, 0], slope[:, 0]

    def special(self, q: Array) -> tuple[Array, Array]:
        """C_e on (u, delta, zeta), (P, n + 1, n + 1), at q, and its derivative."""
        n = len(self.basis) + 1
        value, slope = self._tabulated(q, np.s_[1:])
        return value.reshape(-1, n, n), slope.reshape(-1, n, n)

    def at_ratio(self, ratio: Array) -> Array:
        """q (P,) where (1 - p(q)) / q = c_e / (1 + q c_e) is ``ratio``; NaN above its largest
        value c.  Of a complex ratio, or tangent, to the first order in the imaginary part."""
        inverse = 1 / ratio

        def step(q: Array) -> Array:
            c, slope = self.effective(np.where(np.isnan(q), 0.0, q))
            return np.asarray((inverse - 1 / c - q) / (1 - slope / c**2))

        known = ratio.real <= self.c * (1 + 1e-12)
        q = np.where(known, np.maximum(inverse.real - 1 / self.c, 0.0), np.nan)
        for _ in range(NEWTON):
            change = step(q).real
            q = np.maximum(q + change, 0.0)
            # the error left is its square
            if not (np.abs(change) > 1e-9 * q + 1e-15 / self.c).any():
                break
        return q + 1j * step(q).imag if np.iscomplexobj(inverse) or self.tangent else q


def _on_branch(q: Any, c: Any, later_q: Any, later_c: Any) -> Any:
    """Whether c_e > 0 falls and q c_e rises from one q to a later one, as they do on the branch of
    positive G."""
    falls = (later_c > 0) & (later_c <= c * (1 + 1e-9))
    return falls & (later_q * later_c >= q * c * (1 - 1e-9))
