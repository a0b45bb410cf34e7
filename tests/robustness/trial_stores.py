"""A trial of stores and files: kills, clusters, full disks, pipes, and bad image files.

    python -m tests.robustness.trial_stores [SEED] [PART ...]

Every try has an outcome that is right, or one of these faults: a traceback; a hang, of more than 60
seconds; a silent acceptance, of what is false; a loss, of what was there before.  The counts are
printed as rows of the table in docs/reliability.md.  The parts: kills clusters disks files.
"""

import json
import multiprocessing
import os
import resource
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

import numpy as np

from replica import InvalidArgument
from tests.places import ROOT
from tests.robustness import test_image_faults as pictures
from tests.robustness.cluster_fault import FAULTS
from tests.robustness.test_store_faults import MODEL
from tests.validation import test_engine
from validation import simulate
from validation.mixtures import images

ENVIRONMENT = os.environ | {"PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
LIMIT = 60.0  # seconds, above which a try hangs
OPTIONS = dict(alpha=[0.5, 1.5], lam=[0.01, 1.0], dimension=10, rng=3, test_samples=20, workers=1)
LINE = "--student tanh --target sin --r 1 --c 1.2 --gamma .8 --alpha .5,1.5 --lam .01,1"


def same(one, other):
    """Whether two simulations have the same numbers, to the last bit."""
    return np.array_equal(one.test_error, other.test_error) and np.array_equal(
        one.train_error, other.train_error
    )


# Kills


def fill(folder, seeds):
    simulate(MODEL, seeds=seeds, store=folder, **OPTIONS)


def kills(rng, faults):
    """80 runs killed at a random moment, in fours on one store, the last two of each at once; each
    store is then completed."""
    expected = simulate(MODEL, seeds=200, **OPTIONS)
    fork = multiprocessing.get_context("fork")
    while faults["tried"] < 80:
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            for runs in (1, 1, 2):
                before = {path: path.read_bytes() for path in folder.glob("*.json")}
                started = [fork.Process(target=fill, args=(name, 200)) for _ in range(runs)]
                for process in started:
                    process.start()
                time.sleep(rng.uniform(0, 0.25))
                for process in started:
                    process.kill()
                    process.join()
                    faults["tried"] += process.exitcode == -signal.SIGKILL
                faults["loss"] += sum(
                    not path.exists() or path.read_bytes() != content
                    for path, content in before.items()
                )
            found = simulate(MODEL, seeds=200, store=name, **OPTIONS)
            faults["silent acceptance"] += not same(found, expected)


# Clusters


def clusters(rng, faults):
    """Each way for a dask cluster to fail, and the same call after it."""
    expected = simulate(test_engine.MODEL, **test_engine.OPTIONS)
    for fault in FAULTS:
        faults["tried"] += 1
        with tempfile.TemporaryDirectory() as name:
            command = ["-W", "ignore", "-m", "tests.robustness.cluster_fault", fault, name]
            try:
                done = subprocess.run(
                    [sys.executable, *command], cwd=ROOT, capture_output=True, text=True,
                    timeout=2 * LIMIT, env=ENVIRONMENT,
                )  # fmt: skip
            except subprocess.TimeoutExpired:
                faults["hang"] += 1
                continue
            lines = done.stdout.splitlines()
            error = json.loads(lines[-1])["error"] if lines else None
            faults["traceback"] += not (error or "").startswith("the executor failed")
            found = simulate(test_engine.MODEL, store=name, **test_engine.OPTIONS)
            faults["loss"] += not same(found, expected)


# Disks and pipes


def command(line, folder, faults, *, size=None, stdout=None, close=False):
    """Run a command in ``folder``, where files end at ``size`` bytes; its exit status."""

    def limit():
        if size is not None:
            resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))

    pipe = subprocess.PIPE
    faults["tried"] += 1
    process = subprocess.Popen(
        [sys.executable, "-m", *line.split()], cwd=folder, stdout=stdout or pipe, stderr=pipe,
        preexec_fn=limit, env=ENVIRONMENT,
    )  # fmt: skip
    if close:
        process.stdout.close()
        process.stdout = None
    try:
        _, err = process.communicate(timeout=LIMIT)
    except subprocess.TimeoutExpired:
        process.kill()
        faults["hang"] += 1
        return None
    bad = b"Traceback" in err or process.returncode not in (0, 1, 2) or len(err.splitlines()) > 4
    faults["traceback"] += bad
    if bad:
        print(line, size, process.returncode, err.decode()[-600:], file=sys.stderr)
    return process.returncode


def disks(rng, faults):
    """Files that end too early, pipes in the place of files, and outputs that are closed."""
    simulation = f"validation simulate {LINE} --dimension 10 --seeds 4 --rng 0"
    for size in (0, 100, 3000):
        for option in ("--out a.csv", "--out a.json", "--out a.nc", "--plot a.png", "--plot a.pdf",
                       "--plot a.svg"):  # fmt: skip
            with tempfile.TemporaryDirectory() as name:
                target = Path(name, option.split()[1])
                target.write_text("old")
                status = command(f"replica curve {LINE} {option}", name, faults, size=size)
                faults["loss"] += (status == 0) == (target.read_text() == "old")
                faults["loss"] += len(os.listdir(name)) != 1
        with tempfile.TemporaryDirectory() as name:
            line = f"{simulation} --store cells"
            command(line, name, faults, size=size)
            faults["silent acceptance"] += command(line, name, faults) != 0
            faults["loss"] += len(list(Path(name, "cells").glob("*.json"))) != 4
    for kind in ("--out a.csv", "--plot a.png", "--config a.toml"):
        with tempfile.TemporaryDirectory() as name:
            os.mkfifo(Path(name, kind.split()[1]))
            faults["silent acceptance"] += (
                command(f"replica curve {LINE} {kind}", name, faults) != 2
            )
    with tempfile.TemporaryDirectory() as name:
        os.mkfifo(Path(name, "cells"))
        faults["silent acceptance"] += command(f"{simulation} --store cells", name, faults) != 2
        os.mkfifo(Path(name, "im.npz"))
        line = "validation figure mixtures/3 --quick --images im.npz --plot a.png"
        faults["silent acceptance"] += command(line, name, faults) != 2
    for line in (f"replica curve {LINE}", f"replica curve {LINE} --json", "replica --help",
                 "replica --version", "replica staircase --target z1*z2", simulation):  # fmt: skip
        with tempfile.TemporaryDirectory() as name, open("/dev/full", "wb") as full:
            command(line, name, faults, stdout=full)
            command(line, name, faults, close=True)


# Image files


def files(rng, faults):
    """Files of images of which every one is damaged, or is none; a small change may leave pixels
    that are as good as others, which is no fault."""
    usage = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for name, content in [*pictures.FILES.items()] * 100:
        if rng.integers(4):
            start = int(rng.integers(len(content)))
            length = int(rng.integers(1, 8))
            spoiled = content[:start] + rng.bytes(length) + content[start + length :]
        else:
            spoiled = content[: int(rng.integers(len(content)))]
        with tempfile.TemporaryDirectory() as folder:
            Path(folder, name).write_bytes(spoiled)
            Path(folder, "labels").write_bytes(pictures.idx(pictures.LABELS))
            begun = time.monotonic()
            try:
                found = images(Path(folder, name), classes=pictures.CLASSES)
            except InvalidArgument as error:
                faults["traceback"] += len(str(error).splitlines()) > 1
            else:
                pixels = np.concatenate([found.first, found.second])
                faults["silent acceptance"] += not (np.isfinite(pixels).all() and pixels.size)
            faults["hang"] += time.monotonic() - begun > LIMIT
            faults["tried"] += 1
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - usage) / 1024
    print(f"memory grew by {grown:.0f} MB over {faults['tried']} bad files", file=sys.stderr)


PARTS = {
    "kills": ("kills of a simulation with a store", kills),
    "clusters": ("faults of a cluster", clusters),
    "disks": ("full disks and pipes", disks),
    "files": ("bad image files", files),
}
KINDS = ("traceback", "hang", "silent acceptance", "loss")


def main(seed=0, *parts):
    """Run the parts, and print their counts."""
    import logging

    logging.disable(logging.WARNING)
    print(f"| | tried | {' | '.join(KINDS)} |", flush=True)
    for part in parts or PARTS:
        title, attempt = PARTS[part]
        faults = Counter()
        attempt(np.random.default_rng(int(seed)), faults)
        counts = " | ".join(str(faults[kind]) for kind in KINDS)
        print(f"| {title} | {faults['tried']} | {counts} |", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
