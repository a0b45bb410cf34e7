"""The responses of a ridge readout on samples that trained the first layer.  docs/theory.md 21

The response factors g and the covariance G of the fields without a sample solve (21.7) and (21.10),
by Newton's method.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from solvers.resources import check_time
from solvers.results import Array

from .pencil import LINKS, Forms, cavity_jacobian, cavity_map, classes, form_at
from .strata import SampleNodes

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
        self.samples = classes(self.strata, self.counts)
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
