"""``python -m benchmarks.probe --data DIR``: linear probes of real features beside refits.

Three sections.  Errors of readouts of six data sets, beside readouts that are fitted on random
parts of the rows.  The penalty that the theory takes, beside scikit-learn's RidgeCV.  And errors
at other numbers of samples than there are in hand, beside a power law through scikit-learn's
learning_curve.  DIR is a folder with the test images of MNIST, IDX files as they are published;
without it their rows are left out.  Cells are kept in a store, so that a run goes on where one was
stopped; what a change of the theory may have changed is to be deleted there.  Writes PROBE.md
beside this file.
"""

from functools import partial
from itertools import count
from pathlib import Path
from typing import Annotated, NamedTuple

import numpy as np
import typer
from typer import Option

import replica
from replica.observables.readout_curves import FITS_DIFFER, notes_of
from replica.problem import choice
from solvers.results import ConvergenceError
from validation import simulate

from .pages import file_of, kept, mean_and_error, paragraphs, table
from .probe_data import tables
from .probe_uses import extrapolation, penalties

PROBE_PAGE = Path(__file__).with_name("PROBE.md")
PENALTIES = 0.01, 0.1
LOSSES = "square", "logistic", "hinge"
SIZES = 15, 30, 60, 120, 300, 900  # numbers of samples n, and then .9 N
PRECISION = 0.03  # relative standard error of a mean that is simulated; blocks of draws until then
FEWEST, MOST = 64, 512  # draws
PATIENCE = 60.0  # seconds of a point
CLOSE = 0.05  # of an error, beside two standard errors of the simulation


def errors_of(loss):
    """The errors that are compared, of the classification and of new samples."""
    return "classification_error", "test_error" if loss == "square" else "loss_error"


class Scale(NamedTuple):
    """How much is computed: names of data sets (all, if none), losses, numbers of samples, draws at
    least and at most, and how often rows in hand are drawn."""

    names: tuple[str, ...] = ()
    losses: tuple[str, ...] = LOSSES
    sizes: tuple[int, ...] = SIZES
    draws: tuple[int, int] = (FEWEST, MOST)
    hands: int = 6


class Point(NamedTuple):
    """Errors at one point: ``theory``, and ``mean`` and ``stderr`` of refits, (E,) each, NaN where
    unknown or where there are no classes."""

    of: str
    loss: str
    samples: int
    lam: float
    theory: np.ndarray
    mean: np.ndarray
    stderr: np.ndarray
    draws: int
    warned: bool

    @property
    def off(self):
        return self.theory / np.where(self.mean > 0, self.mean, np.nan) - 1

    @property
    def within(self):
        """Whether errors are as close as they should be, (E,)."""
        return np.abs(self.theory - self.mean) <= np.maximum(CLOSE * self.mean, 2 * self.stderr)


def refits(sample, n, loss, draws):
    """Means of errors, (E, L), of readouts fitted on random parts of the rows, their standard
    errors, and the number of parts: blocks of them until means are known."""
    fewest, most = draws
    errors = []
    for block in count():
        try:
            found = simulate(
                sample, samples=[n], lam=PENALTIES, loss=loss, seeds=fewest, rng=block, workers=1
            ).errors
        except ConvergenceError:  # all labels of a draw are one class
            continue
        unknown = np.full((fewest, 1, len(PENALTIES)), np.nan)
        each = [found.get(name, unknown)[:, 0] for name in errors_of(loss)]
        errors.append(np.stack(each, axis=1))
        mean, stderr = mean_and_error(np.concatenate(errors))
        first = 0 if np.isfinite(mean[0]).all() else 1
        if len(errors) * fewest >= most or (stderr[first] <= PRECISION * mean[first]).all():
            break
    return mean, stderr, len(errors) * fewest


def cell(of, two, n, loss, draws):
    """All that is known of one number of samples, in plain values."""
    sample = of.sample(two=two)
    mean, stderr, number = refits(sample, n, loss, draws)
    theory, warned = [], []
    for lam in PENALTIES:
        point = replica.solve(sample, samples=n, lam=lam, loss=loss, time_limit=PATIENCE)
        theory.append([getattr(point, name) for name in errors_of(loss)])
        warned.append(bool(notes_of(sample, vars(point) | point.fitted)[FITS_DIFFER]))
    plain = [np.where(np.isnan(x), None, x).tolist() for x in (np.transpose(theory), mean, stderr)]
    return [*plain, number, warned]


def points_of(of, scale, store):
    """All points of a data set."""
    rows = len(of.features)
    sizes = [n for n in scale.sizes if n < 0.8 * rows] + [int(0.9 * rows)]
    for loss in scale.losses:
        two = loss != "square"
        for n in sizes:
            name = f"{of.name} {loss} {n}"
            known = kept(file_of(store, name), partial(cell, of, two, n, loss, scale.draws))
            numbers = [np.array(x, dtype=float) for x in known[:3]]
            for i, lam in enumerate(PENALTIES):
                each = [x[:, i] for x in numbers]
                yield Point(of.name, loss, n, lam, *each, known[3], known[4][i])


def share(points, error):
    """Of points outside the warning that have a theory: how many, the share as close as they should
    be, the largest difference, and where it is."""
    known = [x for x in points if not x.warned and np.isfinite(x.off[error])]
    if not known:
        return ["0", "", "", ""]
    off = np.array([x.off[error] for x in known])
    worst = known[int(np.argmax(np.abs(off)))]
    se = worst.stderr[error] / worst.mean[error]
    where = f"{worst.loss}, n = {worst.samples}, lam = {worst.lam:g}"
    inside = np.mean([x.within[error] for x in known])
    mean = f"{100 * np.sqrt(np.mean(off**2)):.1f}"
    return [f"{inside:.0%}", mean, f"{100 * worst.off[error]:+.1f} ± {100 * se:.1f}", where]


def summary(points, key):
    """Rows of a table with a line for each value of ``key``, and one for all."""
    names = list(dict.fromkeys(key(x) for x in points))
    for name in [*names, "all"]:
        own = [x for x in points if name == "all" or key(x) == name]
        flagged = sum(bool(np.isnan(x.theory[1])) for x in own)
        warned = sum(x.warned for x in own)
        yield [name, str(len(own)), str(warned), str(flagged), *share(own, 0), *share(own, 1)[:3]]


def band(point):
    """In which range the number of samples is."""
    n = point.samples
    return "n < 60" if n < 60 else "n = 60 to 120" if n <= 120 else "n > 120"


def agreement(data, scale, store):
    """The section on errors beside refits, and its details."""
    points, said, rows = [], [], []
    for of in data:
        N, p = of.features.shape
        classes = "real labels" if of.real else f"{len(np.unique(of.labels))} classes"
        said.append(f"{of.name} ({N} x {p}, {classes}; two: {of.parted})")
        points += points_of(of, scale, store)
        print(of.name, flush=True)
    for x in points:
        cells = [x.of, x.loss, str(x.samples), f"{x.lam:g}"]
        for k in range(2):
            known = "" if np.isnan(x.mean[k]) else f"{x.mean[k]:.4f} ± {x.stderr[k]:.4f}"
            expected = (
                "" if not known else "none" if np.isnan(x.theory[k]) else f"{x.theory[k]:.4f}"
            )
            off = f"{100 * x.off[k]:+.1f}" if np.isfinite(x.off[k]) else ""
            cells += [f"{expected}; {known}" if known else "", off]
        miss = not x.warned and np.isfinite(x.theory[1])
        bad = ", ".join(
            name
            for name, inside, mean in zip(("class", "test"), x.within, x.mean, strict=True)
            if miss and not inside and np.isfinite(mean)
        )
        rows.append([*cells, str(x.draws), "warned" if x.warned else bad])
    shown = ["points", "warned", "flagged", "class: within", "rms, %", "worst, %", "where"]
    shown += ["test: within", "rms, %", "worst, %"]
    outside = [x for x in points if not x.warned and np.isfinite(x.off[0])]
    low = np.mean([x.off[0] < 0 for x in outside])
    head = paragraphs(
        "## Errors beside refits",
        f"Data: {'; '.join(said)}. Features have mean 0 and variance 1, and the readout an "
        "intercept. The square loss is fitted to all classes, or to real labels; the others to two "
        f"classes. Refits are on random parts of the rows, {scale.draws[0]} to {scale.draws[1]}, "
        f"until the classification error has a standard error of {PRECISION:.0%}. *Within*: theory "
        f"and mean are at most {CLOSE:.0%} apart, or two standard errors. *Test* is the squared "
        "error, of other losses the mean loss of new samples. *Warned*: the point has the note on "
        "errors that differ from those of some tens of other fits, and is in no share. "
        "*Flagged*: it did not converge.",
        table(["data", *shown], summary(points, lambda x: x.of)),
        table(["loss", *shown], summary(points, lambda x: x.loss)),
        table(["samples", *shown], summary(points, band)),
        f"Of the points outside the warning the theory is too low in {low:.0%}.",
    )
    heads = ["data", "loss", "n", "lam", "class: theory; refits", "off, %"]
    heads += ["test: theory; refits", "off, %", "draws", "outside"]
    return head, paragraphs("## Every point", table(heads, rows))


SECTIONS = {"agreement": agreement, "penalties": penalties, "extrapolation": extrapolation}


def page(scale, store, folder, sections=tuple(SECTIONS)):
    """The page, or some of its sections; details are last."""
    store.mkdir(parents=True, exist_ok=True)
    start = (
        "# Linear probes\n",
        "Written by `python -m benchmarks.probe --data DIR`. DIR has the test images of MNIST "
        "(LeCun, Cortes, Burges), `t10k-images-idx3-ubyte.gz` and `t10k-labels-idx1-ubyte.gz`, "
        "as every mirror of it has them; other data come with scikit-learn.\n",
    )
    data = [of for of in tables(folder) if not scale.names or of.name in scale.names]
    parts = [SECTIONS[name](data, scale, store) for name in sections]
    heads, details = zip(*parts, strict=True)
    return "\n".join([*start, *heads, *filter(None, details)])


def main(
    data: Annotated[Path | None, Option(help="Folder of the test images of MNIST.")] = None,
    store: Annotated[Path, Option(help="Folder of finished cells.")] = Path("results/probe"),
    only: Annotated[str, Option(help=f"Compute one of {[*SECTIONS]}, leave the page.")] = "",
):
    """Compute what the store lacks, and write PROBE.md."""
    if only:
        print(page(Scale(), store, data, [choice("only", only, [*SECTIONS])]))
    else:
        PROBE_PAGE.write_text(page(Scale(), store, data), encoding="utf-8")


if __name__ == "__main__":
    typer.run(main)
