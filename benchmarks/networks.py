"""``python -m benchmarks.networks``: the network's own theory beside simulated networks.

Students, targets, batch sizes, rates, widths, noises, readout laws, initialisations, losses and
numbers of steps; and, for six settings, paired differences: the same first weights, batches and
data with the rows of the network and with isotropic ones of the same spike.
Cells are kept in a store, so that a run goes on where one was stopped.  Writes NETWORKS.md beside
this file.
"""

import multiprocessing
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from numpy.random import SeedSequence
from typer import Option

import replica
from replica.convex import loss
from replica.fit import fit_readout, squared_errors
from solvers.resources import one_thread
from validation import simulate
from validation.draws import trajectory
from validation.run.cells import DrawnSamples, repeatable

from .pages import file_of, kept, mean_and_error, paragraphs, table

NETWORKS_PAGE = Path(__file__).with_name("NETWORKS.md")
SEEDS = {2000: 16}  # draws at each input dimension d: there the theory's own error is below theirs
PAIRED_SIZES, PAIRED_SEEDS = (1000,), 32
TWO_VALUES = [1.5, 0.5]


@dataclass(frozen=True)
class Setting:
    """A step, and what is trained on the features after it."""

    fields: dict[str, Any]
    beta: float
    alpha: float
    lam: float
    loss: str = "square"
    paired: bool = False
    name: str = field(default="", compare=False)

    @property
    def step(self) -> replica.GradientStep:
        """The network before its steps."""
        return replica.GradientStep(**self.fields)


def one(
    student, target, alpha0, eta, beta, alpha, lam, noise=0.0, paired=False, of="square", **more
):
    """A setting of one step."""
    fields = dict(student=student, target=target, alpha0=alpha0, eta=eta, noise=noise, **more)
    parts = [f"{student}/{target}", f"{alpha0:g}", f"{eta:g}", f"{beta:g}", f"{noise:g}"]
    parts += [f"{key} {value}" for key, value in more.items()]
    return Setting(fields, beta, alpha, lam, of, paired, ", ".join(parts + [of] * (of != "square")))


def several(student, target, steps, beta, alpha, lam, noise=0.0):
    """A setting of several steps."""
    fields = dict(student=student, target=target, steps=steps, noise=noise)
    schedule = " ".join(f"{alpha0:g}:{eta:g}" for alpha0, eta in steps)
    name = f"{student}/{target}, {schedule}, {beta:g}, {noise:g}"
    return Setting(fields, beta, alpha, lam, name=name)


ONE_STEP = [
    one("relu", "relu", 0.3, 3, 1, 2, 0.05, paired=True),
    one("relu", "relu", 1, 3, 1, 2, 0.05),
    one("relu", "relu", 3, 3, 1, 2, 0.05, paired=True),
    one("relu", "relu", 3, 1, 1, 2, 0.05, noise=0.1),
    one("relu", "sin", 0.3, 3, 1, 2, 0.1, paired=True),
    one("relu", "sin", 3, 3, 1, 2, 0.1),
    one("relu", "tanh", 20, 2, 2, 3, 0.05, noise=0.1),
    one("gelu", "sin", 0.3, 4, 0.5, 3, 0.03, paired=True),
    one("gelu", "tanh", 1, 2, 1, 2, 0.1, noise=0.1),
    one("gelu", "relu", 3, 2, 1.5, 1.5, 0.1, noise=0.2),
    one("gelu", "tanh", 20, 3, 1, 2, 0.05),
    one("sigmoid", "tanh", 0.3, 20, 1, 2, 0.01, paired=True),
    one("sigmoid", "sin", 1, 12, 1, 1.5, 0.02, noise=0.1),
    one("sigmoid", "tanh", 3, 10, 0.5, 2, 0.02, noise=0.3),
    one("sigmoid", "relu", 20, 8, 2, 1.5, 0.02, noise=0.1),
    one("softplus", "tanh", 0.3, 5, 1, 2, 0.05),
    one("softplus", "sin", 1, 4, 1, 2, 0.05, noise=0.1),
    one("softplus", "relu", 3, 3, 1, 1, 0.1, noise=0.1),
    one("softplus", "sin", 20, 3, 0.5, 3, 0.05, noise=0.1),
    one("tanh", "sin", 0.3, 6, 1, 2, 0.01, paired=True),
    one("tanh", "tanh", 1, 4, 1.5, 1.5, 0.05, noise=0.1),
    one("tanh", "sin", 3, 3, 1, 2, 0.1, noise=0.2),
    one("tanh", "tanh", 20, 3, 1, 1, 0.1),
    one("relu", "relu", 3, 3, 1, 2, 0.05, initialisation="gaussian"),
    one("gelu", "tanh", 1, 2, 1, 2, 0.1, noise=0.1, initialisation="gaussian"),
    one("erf", "he1", 20, 3, 2, 3, 0.03, initialisation="gaussian"),
    one("relu", "sin", 0.3, 3, 1, 2, 0.1, readout=TWO_VALUES),
    one("gelu", "tanh", 1, 3, 1, 2, 0.05, noise=0.1, readout=TWO_VALUES),
    one("sigmoid", "tanh", 0.3, 12, 1, 2, 0.01, readout=[2, -1]),
    one("tanh", "sin", 0.5, 2, 1.5, 2, 0.05, readout=[-1.5, 0.5]),
    one("relu", "relu", 3, 3, 1, 2, 0.05, readout=TWO_VALUES),
    one("tanh", "sin", 1, 3, 1, 2, 0.1, readout="gaussian"),
    one("softplus", "tanh", 1, 4, 1, 2, 0.05, noise=0.1, bias=[-1, 1]),
    one("relu", "tanh", 0.5, 3, 1, 2, 0.05, noise=0.2, of="huber:0.5"),
    one("gelu", "relu", 2, 2, 1, 2, 0.1, noise=0.2, of="huber:0.5"),
    one("relu", "sign", 1, 2, 1, 2, 0.1, of="logistic"),
    one("tanh", "sign", 0.3, 4, 1, 2, 0.05, of="logistic"),
]  # fmt: skip
SEVERAL_STEPS = [
    several("tanh", "sin", [(2, 1)] * 2, 1, 1, 0.05),
    several("tanh", "sin", [(2, 1)] * 3, 1, 1, 0.05),
    several("tanh", "sin", [(0.5, 2)] * 2, 1, 2, 0.01),
    several("tanh", "sin", [(0.5, 2)] * 3, 1, 2, 0.01),
    several("relu", "relu", [(2, 1)] * 2, 1, 2, 0.1, noise=0.3),
    several("relu", "relu", [(2, 1)] * 3, 1, 2, 0.1, noise=0.3),
    several("gelu", "tanh", [(1, 2)] * 2, 0.5, 1.5, 0.03, noise=0.1),
    several("gelu", "tanh", [(1, 2)] * 3, 0.5, 1.5, 0.03, noise=0.1),
    several("relu", "z1 + z1*z2", [(2, 1)] * 2, 1, 2, 0.1),
    several("relu", "z1 + z1*z2", [(2, 1)] * 3, 1, 2, 0.1),
    several("relu", "sin", [(0.7, 1), (3, 2)], 1, 2, 0.1, noise=0.1),
]  # fmt: skip
SETTINGS = ONE_STEP + SEVERAL_STEPS


def pair(setting, d, seed):
    """Test and training errors (2, 2) of one draw, of the network's rows and of isotropic ones
    with the same spike, first weights, batch, training and test data."""
    step = setting.step
    n, tests = round(setting.alpha * d), 8 * round(max(setting.alpha, 1) * d)
    own, *streams = SeedSequence(5, spawn_key=(d, seed)).spawn(6)
    with one_thread():
        before, *_, after = trajectory(step, dimension=d, beta=setting.beta, rng=own)
        spike = (after.W - before.W).mean(axis=0)
        c = float(step.srf(beta=setting.beta).c)
        errors = []
        for layer in (after, replace(after, W=spike + np.sqrt(c) * before.W)):
            train = repeatable(DrawnSamples(layer, n, *streams[:3], "cpu"), keep=True)
            sizes, lam = np.array([n]), np.array([setting.lam])
            fits = fit_readout(train, sizes, lam, intercept=False, train_bias=False)
            test = repeatable(DrawnSamples(layer, tests, *streams[3:], None, "cpu"), keep=False)
            mean, _ = squared_errors(test, fits, np.array([tests]))
            errors.append((mean.item(), fits.train.item()))
    return errors


def simulated(setting, d, executor, store):
    """The simulation of one setting at one size.  Every setting has draws of its own: of the same
    first batches, all would be off in the same direction."""
    return simulate(
        setting.step, beta=setting.beta, alpha=setting.alpha, lam=setting.lam, loss=setting.loss,
        dimension=d, seeds=SEEDS[d], rng=SETTINGS.index(setting), executor=executor,
        store=store / "cells",
    )  # fmt: skip


def theories(setting):
    """Test and training error of the network's theory and of the sRF's."""
    points = (
        replica.solve(model, alpha=setting.alpha, lam=setting.lam, loss=loss(setting.loss))
        for model in (setting.step.network(beta=setting.beta), setting.step.srf(beta=setting.beta))
    )
    return [(point.test_error, point.train_error) for point in points]


def paired(setting, d, executor, store):
    """The errors of ``pair``, (S, 2, 2), kept in a file of the store."""

    def compute():
        return list(executor.map(partial(pair, setting, d), range(PAIRED_SEEDS)))

    return np.array(kept(file_of(store, f"{setting.name} {d}"), compute))


def page(found):
    """The tables, a line for every setting with its simulations and paired errors, and what they
    come to."""
    one_step, several_steps, differences, z, z_pairs = [], [], [], [], []
    for setting, runs, pairs in found:
        theory = np.array(theories(setting))
        each = [np.array([mean_and_error(e.ravel()) for e in r.errors.values()]).T for r in runs]
        z.append([(mean - theory) / error for mean, error in each])
        cells = [setting.name, f"{setting.alpha:g}", f"{setting.lam:g}"]
        cells += [f"{test:.5f}, {train:.5f}" for test, train in theory]
        cells += [", ".join(f"{m:.5f} ± {e:.5f}" for m, e in one.T) for one in each]
        cells += [f"{test:+.1f}, {train:+.1f}" for test, train in z[-1][-1]]
        (several_steps if setting.fields.get("steps") else one_step).append(cells)
        for d, errors in zip(PAIRED_SIZES, pairs, strict=False):
            change = (errors[:, 1] - errors[:, 0]) / errors[:, 0].mean(axis=0)
            mean, error = mean_and_error(change)
            expected = theory[1] / theory[0] - 1
            z_pairs.append((mean - expected) / error)
            cells = [
                f"{t:+.4f}; {m:+.4f} ± {e:.4f}"
                for t, m, e in zip(expected, mean, error, strict=True)
            ]
            own = "{:+.1f}, {:+.1f}".format(*z_pairs[-1])
            differences.append([setting.name, str(d), *cells, own])
    z, z_pairs = np.abs(z), np.abs(z_pairs)  # z: settings x sizes x (network, sRF) x (test, train)
    within, outside = (z[:, :, 0] <= 2).mean(axis=0), (z[:, :, 1] > 3).mean(axis=0)
    shares = [
        [str(d), str(draws), *(f"{share:.0%}" for share in own)]
        for (d, draws), own in zip(SEEDS.items(), np.hstack([within, outside]), strict=True)
    ]
    heads = ["setting", "alpha", "lam", "network's theory", "sRF's theory"]
    heads += [f"simulated, d = {d}" for d in SEEDS] + ["z of the network", "z of the sRF"]
    counted = ["d", "draws", "within 2 standard errors: test errors", "training errors"]
    counted += ["the sRF's outside 3: test errors", "training errors"]
    return paragraphs(
        "# Networks",
        "Written by `python -m benchmarks.networks`.  Test and training errors of the "
        "network's own theory, of the sRF's, and of simulated networks, with standard errors; "
        f"z is of d = {max(SEEDS)}.  A setting is student/target, alpha0, eta, beta, noise.",
        f"Of {len(z)} settings:",
        table(counted, shares),
        "## One step",
        table(heads, one_step),
        "## Several steps",
        table(heads, several_steps),
        "## Paired differences",
        "Relative change of an error from the network's rows to isotropic ones, with the same "
        f"spike, first weights, batch and data: theory; simulated, {PAIRED_SEEDS} draws.",
        f"Within 2 standard errors: {np.mean(z_pairs <= 2):.0%} of {z_pairs.size}.",
        table(["setting", "d", "test error", "training error", "z"], differences),
    )


def main(
    store: Annotated[Path, Option(help="Folder of finished cells.")] = Path("results/networks"),
    workers: int = 2,
    only_simulate: Annotated[
        bool, Option("--only-simulate", help="Leave the page as it is.")
    ] = False,
):
    """Simulate what the store lacks, and write NETWORKS.md."""
    found = []
    (store / "cells").mkdir(parents=True, exist_ok=True)
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(workers, mp_context=context) as executor:
        for setting in SETTINGS:
            runs = [simulated(setting, d, executor, store) for d in SEEDS]
            sizes = PAIRED_SIZES if setting.paired else ()
            found.append((setting, runs, [paired(setting, d, executor, store) for d in sizes]))
            print(setting.name, flush=True)
    if not only_simulate:
        NETWORKS_PAGE.write_text(page(found), encoding="utf-8")


if __name__ == "__main__":
    typer.run(main)
