"""``python -m benchmarks.given_layers``: the theory of given first layers beside simulation.

Three tables.  Readouts of trained layers (``trained_layers.py``), on fresh data, beside their
theory.  The theory of layers that networks draw, averaged over draws, at growing dimension, beside
the limit of the same networks.  And limits in which the theory is known otherwise
(``given_limits.py``).  Cells are kept in a store, so that a run goes on where one was stopped;
what a change of the theory may have changed is to be deleted there.  Writes GIVEN.md beside this
file.
"""

import json
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Annotated, NamedTuple

import numpy as np
import typer
from numpy.random import SeedSequence
from typer import Option

import replica
from replica.files import write_file
from replica.problem import choice
from validation import first_layer, simulate
from validation.comparisons import extrapolate

from .given_limits import LIMITS
from .networks import TWO_VALUES, Setting, one, several
from .pages import file_of, kept, mean_and_error, paragraphs, shares, table
from .trained_layers import HEADS, SIZES, drawn, trained

GIVEN_PAGE = Path(__file__).with_name("GIVEN.md")
PRECISION = 0.01  # relative standard error of a mean that is simulated; draws double until then
FEWEST, MOST = 64, 1024  # draws
ACCURACIES = 1e-3, 1e-2  # of the theory, relative: the second where the first is not reached
PATIENCE = 600.0  # seconds of a point: what is measured here is how right it is
INTERPOLATING = 24  # the first of the settings whose readouts interpolate
LAYERS = {200: 10, 400: 6, 800: 4}  # drawn layers at each input dimension d
COMPARED = {  # errors of a readout by its loss
    "square": ("test_error", "train_error"),
    "huber:0.5": ("test_error", "train_loss"),
    "logistic": ("classification_error", "train_loss"),
}
HEAVY = "z1 + z2**2 - 1"
NETWORKS = [
    one("relu", HEAVY, 1, 2, 1, 1.5, 0.1, noise=0.1),
    several("relu", HEAVY, [(1, 2), (2, 1)], 1, 1.5, 0.1, noise=0.1),
    several("tanh", "sin", [(2, 1)] * 2, 1, 1, 0.05),
    several("tanh", "sin", [(0.5, 2)] * 3, 1, 2, 0.01),
    several("relu", "relu", [(2, 1)] * 3, 1, 2, 0.1, noise=0.3),
    several("gelu", "tanh", [(1, 2)] * 2, 0.5, 1.5, 0.03, noise=0.1),
    several("relu", "sin", [(0.7, 1), (3, 2)], 1, 2, 0.1, noise=0.1),
    one("relu", "sin", 0.3, 3, 1, 2, 0.1, readout=TWO_VALUES),
    one("gelu", "tanh", 1, 3, 1, 2, 0.05, noise=0.1, readout=TWO_VALUES),
    one("sigmoid", "tanh", 0.3, 12, 1, 2, 0.01, readout=[2, -1]),
    one("tanh", "sin", 0.5, 2, 1.5, 2, 0.05, readout=[-1.5, 0.5]),
]


class Scale(NamedTuple):
    """How much is computed: settings by their numbers, their sizes p and d, draws at least and at
    most; networks, and their layers at each d; and the dimension of the limits."""

    settings: Sequence[int] = range(32)
    sizes: tuple[int, int] = SIZES
    draws: tuple[int, int] = (FEWEST, MOST)
    networks: Sequence[Setting] = NETWORKS
    layers: dict[int, int] = LAYERS
    limits: int = 2000


def theory(layer, names, **at):
    """The theory of a layer at a point, as accurate as it may be had: its errors, None where they
    are not known, their accuracy, and the status."""
    for accuracy in ACCURACIES:
        point = replica.solve(layer, **at, quadrature_tol=accuracy, time_limit=PATIENCE)
        if point.converged:
            break
    errors = [getattr(point, name) if point.converged else None for name in names]
    return errors, point.quadrature_error, point.status.name


def readouts(setting, layer, draws, store):
    """Errors of simulated readouts of one layer, (S, 2): more and more, until means are known."""
    count, most = draws
    while True:
        found = simulate(
            layer, samples=setting.samples, lam=setting.lam, loss=setting.loss, seeds=count,
            rng=setting.number, store=store, workers=1,
        )  # fmt: skip
        names = COMPARED[setting.loss]
        errors = np.stack([found.errors[name].ravel() for name in names], axis=1)
        mean, error = mean_and_error(errors)
        if count >= most or (error <= PRECISION * mean).all():
            return errors
        count *= 2


def trained_layers(scale, store):
    """The section on layers after training."""
    rows, z, beyond, relative, flagged, ordinary = [], [], [], [], [], []
    for number in scale.settings:
        setting = drawn(number, scale.sizes)
        layer = trained(setting)
        at = dict(samples=setting.samples, lam=setting.lam, loss=setting.loss)
        known, accuracy, status = kept(
            store / f"theory of {number}.json", partial(theory, layer, COMPARED[setting.loss], **at)
        )
        expected = np.array(known, dtype=float)
        errors = readouts(setting, layer, scale.draws, store / "cells")
        mean, error = mean_and_error(errors)
        own = (mean - expected) / error
        relative.append(error / mean)
        if np.isfinite(own).all():
            z.append(own)
            ordinary.append(number < INTERPOLATING)
            beyond.append(np.maximum(np.abs(own) - expected / setting.samples / error, 0))
        else:
            flagged.append(f"{number} ({status}, {accuracy:.1e})")
        each = zip(expected, mean, error, strict=True)
        cells = [*setting.cells, *(f"{t:.5f}; {m:.5f} ± {e:.5f}" for t, m, e in each)]
        cells += [f"{accuracy:.0e}", str(len(errors)), "{:+.1f}, {:+.1f}".format(*own)]
        rows.append(cells)
        print(" | ".join(cells), flush=True)
    z, beyond = np.array(z).reshape(-1, 2), np.array(beyond).reshape(-1, 2)
    first = z[np.array(ordinary, dtype=bool)]
    known = ", ".join(f"{part:.1%}" for part in np.max(relative, axis=0))
    heads = [*HEADS, "test error", "training error", "quadrature", "draws", "z"]
    return paragraphs(
        "## Layers after training",
        "Networks in PyTorch's conventions, trained by optimisers written in numpy; then readouts "
        "on fresh data, of the same first layer. A number draws a setting and the layer. Theory; "
        "simulation and its standard error. For Huber's loss the training error is the mean loss, "
        "for the logistic loss it is, too, and the test error is the share of wrong labels. The "
        "theory is for large n: it is off by a few 1/n, and by more of readouts that interpolate, "
        "from 24 on. Quadrature: what finer strata, or one more "
        "special direction, change of an error, relative to it.",
        f"Of {len(scale.settings)} settings, {len(z)} have a theory that converged"
        + (f" (without one: {', '.join(flagged)})" if flagged else "")
        + f". Within 2 standard errors, and the largest |z|, of those before {INTERPOLATING}: test "
        f"errors {shares(first[:, 0])}; training errors {shares(first[:, 1])}; of all: test errors "
        f"{shares(z[:, 0])}; "
        f"training errors {shares(z[:, 1])}. Beside the 1/n that the theory may be off by: "
        f"{shares(beyond[:, 0])}; {shares(beyond[:, 1])}. The largest relative standard errors: "
        f"{known}.",
        table(heads, rows),
    )


def theory_of_draws(network: Setting, d, count, store):
    """Test and training errors of the layers that a network draws, (S, 2), NaN where unknown."""
    file = file_of(store, f"{network.name} {d}")
    known = json.loads(file.read_text()) if file.exists() else []
    for seed in range(len(known), count):
        rng = SeedSequence(3, spawn_key=(NETWORKS.index(network), d, seed))
        layer = first_layer(network.step, dimension=d, beta=network.beta, rng=rng)
        at = dict(alpha=network.alpha, lam=network.lam)
        known.append(theory(layer, COMPARED["square"], **at)[0])
        write_file(file, json.dumps(known).encode())
    return np.array(known[:count], dtype=float)


def drawn_layers(scale, store):
    """The section on layers of networks after giant steps."""
    rows, z, flagged = [], [], 0
    sizes = np.array(list(scale.layers))
    for network in scale.networks:
        at = dict(alpha=network.alpha, lam=network.lam)
        limit = replica.solve(network.step.network(beta=network.beta), **at)
        expected = np.array([limit.test_error, limit.train_error])
        each = [theory_of_draws(network, d, count, store) for d, count in scale.layers.items()]
        flagged += sum(int(np.isnan(errors[:, 0]).sum()) for errors in each)
        each = [errors[~np.isnan(errors[:, 0])] for errors in each]
        counts = np.array([len(errors) for errors in each])
        found = np.array([mean_and_error(errors) for errors in each])  # sizes x (mean, error) x 2
        line = extrapolate(sizes, found[:, 0], found[:, 1], counts)
        z.append((line.limit - expected) / line.stderr)
        cells = [network.name, f"{network.alpha:g}", f"{network.lam:g}"]
        for k in range(2):
            pairs = [*found[:, :, k], (line.limit[k], line.stderr[k])]
            cells += [f"{expected[k]:.5f}; " + ", ".join(f"{m:.5f} ± {e:.5f}" for m, e in pairs)]
        cells.append("{:+.1f}, {:+.1f}".format(*z[-1]))
        rows.append(cells)
        print(" | ".join(cells), flush=True)
    known = ", ".join(f"{count} layers at d = {d}" for d, count in scale.layers.items())
    heads = ["network", "alpha", "lam", "test error", "training error", "z"]
    z = np.array(z)
    return paragraphs(
        "## Layers of drawn networks",
        "Networks after giant steps: the theory of their limit; the mean theory of the very layers "
        f"that they draw, {known}, and the line in 1/d through these means at d = infinity, with "
        "its z. Only the first layer is drawn, so that no noise of a readout is left. A network is "
        "student/target, its steps, beta, noise.",
        f"Within 2 standard errors, and the largest |z|: test errors {shares(z[:, 0])}; training "
        f"errors {shares(z[:, 1])}. Layers without an answer: {flagged}.",
        table(heads, rows),
    )


def limits(scale, store):
    """The section on limits."""
    rows = []
    for name, compute in LIMITS.items():
        file = store / f"{compute.__name__} {scale.limits}.json"
        given, known, bar = kept(file, partial(compute, scale.limits))
        off = np.abs(np.array(given) / np.array(known) - 1).max()
        values = [", ".join(f"{x:.10g}" for x in each) for each in (given, known)]
        rows.append([name, *values, f"{off:.1e}", f"{bar:.0e}", "yes" if off <= bar else "NO"])
        print(" | ".join(rows[-1]), flush=True)
    heads = ["limit", "given layer", "known otherwise", "apart", "at most", "holds"]
    said = "Test and training error, and the largest relative difference."
    return paragraphs("## Limits", said, table(heads, rows))


SECTIONS = {"trained": trained_layers, "drawn": drawn_layers, "limits": limits}


def page(scale, store, sections=tuple(SECTIONS)):
    """The page, or some of its sections."""
    (store / "cells").mkdir(parents=True, exist_ok=True)
    parts = ["# Given first layers\n", "Written by `python -m benchmarks.given_layers`.\n"]
    return "\n".join(parts + [SECTIONS[name](scale, store) for name in sections])


def main(
    store: Annotated[Path, Option(help="Folder of finished cells.")] = Path("results/given"),
    only: Annotated[str, Option(help=f"Compute one of {[*SECTIONS]}, leave the page.")] = "",
):
    """Compute what the store lacks, and write GIVEN.md."""
    if only:
        page(Scale(), store, [choice("only", only, [*SECTIONS])])
    else:
        GIVEN_PAGE.write_text(page(Scale(), store), encoding="utf-8")


if __name__ == "__main__":
    typer.run(main)
