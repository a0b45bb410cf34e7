"""What every giant step does to a row of the first layer.  docs/theory.md 16, 18

A step adds to all rows the same vector, and maps a row less that, v, and the fluctuation of its
squared norm, delta, linearly (18.1).  All it takes of the batch is the law of the residual
rho = y - mu_0(kappa) together with the projections of the input on the few directions that the
labels know: those of the target, and the spike S of the rows before the step.
"""

from collections.abc import Callable
from functools import cache
from typing import NamedTuple

import numpy as np

from solvers.adaptive import Panels, halve_panels, panels_between
from solvers.quadrature import QuadratureError
from solvers.resources import GivenUp, check_time, deadline, one_thread
from solvers.results import Array
from solvers.rules import Rule, half_range, trapezoid
from solvers.settle import scaled_change, settle

from ..equivalence import Batch
from .one_step import output
from .residual_law import ResidualLaw, known_inputs, residuals
from .residual_nodes import RHO_NODES
from .row_samples import Kinds, Sample, Student, sample, student
from .step import Step

LONGEST = 60.0  # seconds that the batches of a model may take: it is made before it is solved
SMALL = 1e-6  # a sample's weights in a row of length 1 that are smaller need fewer digits
# For kappa, finer and finer; after them come panels.
KAPPA_RULES = [trapezoid(n, half_range(n)) for n in (40, 56, 80, 112, 160, 224)]


class State(NamedTuple):
    """Rows before a step: S, in the coordinates of the special directions e_0, e_1, ...; and c, of
    A kinds (A,)."""

    spike: Array
    c: Array


@one_thread()  # more only get into each other's way: the matrices are small
def row_steps(step: Step, kinds: Kinds) -> tuple[tuple[Batch, ...], Array]:
    """The batches of all steps of ``step``, the last one first, as ``kinds`` of neurons see them,
    and the spike of the rows after them.  Several kinds make a single step, and have what the
    spikes of all of them point along.

    Raises
    ------
    QuadratureError
        If averages over a batch do not settle, or take too long.
    """
    state = State(np.zeros(step.known + len(step.schedule)), np.ones(1))
    batches: list[Batch] = []
    try:
        with deadline(LONGEST):
            for t in range(len(step.schedule)):
                batch, state = _settled(step, kinds, state, t)
                batches.insert(0, batch)
    except GivenUp:
        check_time()  # a deadline of what asks for them is its own to tell
        raise QuadratureError(
            f"the averages over the batch of step {t + 1} take more than {LONGEST:g} s; the sRF "
            "(--model srf) needs none of them"
        ) from None
    return tuple(batches), state.spike


def _settled(step: Step, kinds: Kinds, state: State, t: int) -> tuple[Batch, State]:
    """The batch of step ``t`` and the rows after it, on nodes fine enough."""
    (alpha, eta), K, kept = step.schedule[t], step.known, step.kept(t)
    r, c = float(np.linalg.norm(state.spike)), state.c[0]  # the same of several kinds, before
    unit = state.spike / r if r else state.spike
    inputs, law_of_labels = known_inputs(step, t, unit), step.labels_at(t)
    rate = eta * kinds.readout[:, None, None]
    rules = [*KAPPA_RULES] if r else [Rule(np.zeros(1), np.ones(1))]

    def before(rule: Rule) -> tuple[Student, Array]:
        """The neurons on nodes of kappa, (A, N, 1), and their output."""
        along = inputs.components
        shift = r * along.special(along.on(rule)[0])[0]
        of = student(step, np.add.outer(kinds.bias, shift), c)
        return Student(*(part[..., None] for part in of)), output(step, shift, c)

    def strength(of: Student) -> Array:
        """What multiplies a residual in the pencil, (A, N, 1)."""
        return np.abs(rate) / alpha * np.sqrt(of.s02 + of.m2**2)

    def law(
        rule: Rule, level: int, of: Student, offset: Array, which: tuple[int, ...]
    ) -> tuple[Sample, ResidualLaw]:
        """Of some kinds on nodes of kappa, with those of rho given kappa of ``level``."""
        root = float(strength(of).max())
        labels = residuals(law_of_labels, inputs, rule, offset, root, level)
        at = Student(*(part[[*which]] for part in of))
        return sample(at, labels, c, alpha, rate[[*which]], kept), labels

    neurons = cache(lambda i: before(rules[i]))

    @cache
    def on(i: int, level: int, which: tuple[int, ...]) -> tuple[Batch, State]:
        moved, labels = law(rules[i], level, *neurons(i), which)
        if len(which) > 1:
            return _after(step, t, state, labels, moved._replace(force=labels.rho), 1.0)
        return _after(step, t, state, labels, moved, float(rate[which[0], 0, 0]))

    # of several kinds, the one that is moved most says how many nodes are enough
    most, every = (int(strength(neurons(0)[0])[:, 0].argmax()),), tuple(range(len(rate)))
    level = _first_settled(lambda level: _probe(*on(0, level, most)), len(RHO_NODES), K, t)
    if len(rules) == 1:
        return on(0, level, every)
    try:
        best = _first_settled(lambda i: _probe(*on(i, level, most)), len(rules), K, t)
    except QuadratureError:
        best = len(rules)

        def contributions(rule: Rule) -> Array:
            each = _contributions(*law(rule, level, *before(rule), most), alpha)
            return each.reshape(len(each), -1, len(rule.weights)).sum(axis=1)  # of all components

        rules.append(_adapted(contributions, rules[-1], t))
    return on(best, level, every)


def _adapted(contributions: Callable[[Rule], Array], guess: Rule, t: int) -> Rule:
    """Nodes of kappa on panels that are short where the ``contributions`` (k, N) of the nodes of a
    rule to averages vary quickly; of these, ``guess`` is close to the sums."""
    size = np.abs(contributions(guess)).sum(axis=1)[:, None] + SMALL**2

    def values(panels: Panels) -> Array:
        nodes = panels.nodes
        each = contributions(Rule(nodes.ravel(), np.ones(nodes.size))) / size
        return np.asarray(each.reshape(-1, *nodes.shape))

    # Gauss's and Kronrod's rules agree to tol; the latter's error is some square root smaller
    tol, most = 1e-7, 400
    adapted = halve_panels(
        values, panels_between(np.linspace(-9.2, 9.2, 7)[None]), tol, most, batch_size=32
    )
    if adapted is None:
        raise QuadratureError(
            f"the averages over the batch of step {t + 1} did not settle to {tol:g} on "
            f"{most} panels"
        )
    return Rule(*(part[0] for part in adapted[0].rule()))


def _contributions(moved: Sample, labels: ResidualLaw, alpha: float) -> Array:
    """Of every node of kappa to averages of the kind that the pencil takes, (k, N)."""
    w = labels.weights[0, 0]
    squares = [w * f**2 for f in (moved.force, moved.F, moved.lam, moved.L)]
    weights = np.concatenate([np.einsum("iinm->inm", labels.weights), *squares])
    by = _by_strength(moved.t11[0], moved.t12[0], alpha)
    return np.einsum("inm,nmx->ixn", weights, by).reshape(-1, len(w))


def _by_strength(t11: Array, t12: Array, alpha: float) -> Array:
    """1 / (1 + x strength) for four x, on a last axis."""
    strength = (t11 + t12**2 / alpha) / alpha
    return np.asarray(1 / (1 + np.array([0.0, 0.01, 0.1, 1.0]) * strength[..., None]))


def _first_settled(probe: Callable[[int], tuple[Array, Array]], count: int, K: int, t: int) -> int:
    """The first of ``count`` candidates that the next one agrees with: what changes of the
    averages that ``probe`` gives, with their sizes, is its error.  Of a target of ``K`` directions
    and step ``t``."""

    tol = 1e-10 if K == 1 else 1e-8
    settled = settle(range(count), probe, scaled_change, tol)
    if not settled.converged:
        raise QuadratureError(
            f"the averages over the batch of step {t + 1} did not settle to {tol:g} "
            f"(last change {settled.change:.1e})"
        )
    return settled.candidate - 1


def _probe(batch: Batch, after: State) -> tuple[Array, Array]:
    """Averages over a batch of the kind that the pencil takes, and their sizes."""
    by = _by_strength(batch.t11[0], batch.t12[0], batch.alpha)
    functions = np.concatenate([batch.F, batch.lam, batch.L])
    mixed = batch.pairs[1:, :1] * functions
    own = batch.weights * functions[:, None] * functions
    above = np.concatenate([batch.pairs[1:, 1:], mixed], axis=1)
    pairs = np.concatenate([above, np.concatenate([mixed.swapaxes(0, 1), own], axis=1)])
    values = pairs @ by
    root = np.sqrt(np.einsum("iim,mx->ix", np.abs(pairs), by))
    root = np.maximum(root, SMALL)
    sizes = root[:, None] * root  # of a product, which may vanish
    (g,), (v,) = batch.g, batch.v
    numbers = np.array([g, v, *after.c, *after.spike])
    largest = np.array([1 + abs(g), 1 + v, *after.c, *(1 + np.abs(after.spike))])
    return np.append(values, numbers), np.append(sizes, largest)


def _after(
    step: Step, t: int, state: State, labels: ResidualLaw, moved: Sample, rate: float
) -> tuple[Batch, State]:
    """The batch of step ``t`` as the equations need it, and the rows after it."""
    (alpha, _), K, kept = step.schedule[t], step.known, step.kept(t)
    directions = np.eye(K, len(state.spike))  # of what labels know
    if len(labels.weights) > K + 1:
        outside = np.where(np.arange(len(state.spike)) < K, 0.0, state.spike)
        directions = np.vstack([directions, outside / np.linalg.norm(outside)])
    own, w, force = K + t, labels.weights[0, 0], moved.force
    along = (labels.weights[0, 1:] * force).sum(axis=(1, 2))  # Eq. (18.8)
    noise = np.sqrt(float((w * force**2).sum()))
    spike = kept * state.spike + rate * along @ directions
    spike[own] += rate * noise / np.sqrt(alpha)

    phi = force / noise if noise else np.zeros_like(force)  # Eq. (18.10)
    t11, t12, F, lam, L = np.broadcast_arrays(*moved[:5])
    D = len(directions)
    pairs = np.empty((D + 2, D + 2, *w.shape))
    pairs[:-1, :-1] = labels.weights
    pairs[-1, :-1] = pairs[:-1, -1] = labels.weights[0] * phi
    pairs[-1, -1] = w * phi**2
    squares = np.abs(np.einsum("iinm->inm", pairs[1:, 1:]))
    squares = np.concatenate([squares, *(np.abs(w) * f**2 for f in (F, lam, L))])
    squares = squares[..., None] * _by_strength(t11[0], t12[0], alpha)[..., [0, -1]]
    # nodes that count in no average are left out
    count = (squares > 1e-15 * squares.sum(axis=(1, 2), keepdims=True)).any(axis=(0, 3))
    t11, t12, F, lam, L = (part[:, count] for part in (t11, t12, F, lam, L))
    known = np.vstack([directions, np.eye(len(spike))[own]])
    batch = Batch(alpha, pairs[:, :, count], t11, t12, F, lam, L, moved.g, moved.v, known, kept)
    return batch, State(spike, moved.c)
