"""Any executor, any order, kills at any moment: the same bytes in the end."""

import json
import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from replica import SpikedRandomFeatures
from solvers import executors
from tests.cli.commands import validate
from tests.places import ROOT
from tests.processes import python
from tests.validation.deaths import DieOnce, die
from validation import simulate

MODEL = SpikedRandomFeatures(student="tanh", target="sin", r=1.0, c=1.2, gamma=0.8, noise=0.1)
OPTIONS = dict(alpha=[0.5, 1.5], lam=[0.01, 1.0], dimension=60, seeds=5, rng=3)
LINE = (
    "simulate --student tanh --target sin --r 1 --c 1.2 --gamma .8 --noise .1 --alpha .5,1.5 "
    "--lam .01,1 --dimension 60 --seeds 5 --rng 3"
)


@pytest.fixture(scope="module")
def reference():
    return simulate(MODEL, **OPTIONS)


def assert_same(found, reference):
    np.testing.assert_array_equal(found.errors["test_error"], reference.errors["test_error"])
    np.testing.assert_array_equal(found.errors["train_error"], reference.errors["train_error"])
    np.testing.assert_array_equal(found.test_variance, reference.test_variance)


# Executors


@pytest.mark.slow
def test_a_daemonic_process_works_alone(reference):
    """Processes of ``multiprocessing.Pool`` may start no others."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        assert_same(pool.apply(simulate, (MODEL,), OPTIONS | {"workers": 2}), reference)


def test_threads(reference):
    with ThreadPoolExecutor(3) as executor:
        assert_same(simulate(MODEL, executor=executor, **OPTIONS), reference)


@pytest.mark.slow
def test_a_worker_that_is_killed_costs_only_time(tmp_path):
    task = DieOnce(tmp_path / "died")
    found = dict(executors.run_all(task, list(range(6)), None, 2))
    assert found == {cell: cell for cell in range(6)}
    assert (tmp_path / "died").exists()


@pytest.mark.slow
def test_workers_that_always_die_are_given_up():
    with pytest.raises(executors.WorkerDied, match="times in a row"):
        list(executors.run_all(die, [0, 1], None, 2))


def test_a_failing_cell_ends_the_pool():
    """The first error comes out at once, and no process stays behind."""
    before = set(multiprocessing.active_children())
    with pytest.raises(ZeroDivisionError):
        list(executors.run_all((0).__rfloordiv__, [1, 2, 3], None, 2))
    for process in set(multiprocessing.active_children()) - before:
        process.join(timeout=60)
        assert not process.is_alive()


INTERRUPTED = """
import os, signal, sys, time
from solvers import executors

def task(cell):
    time.sleep(0.02)
    return cell

signal.signal(signal.SIGINT, signal.default_int_handler)
try:
    for cell, _ in executors.run_all(task, list(range(60)), None, 2):
        if cell == 3:
            os.kill(os.getpid(), signal.SIGINT)
except KeyboardInterrupt:
    print("interrupted", file=sys.stderr)
"""


def test_an_interrupted_pool_ends_in_silence(tmp_path):
    """Of Ctrl-C nothing is seen but what the caller says."""
    script = tmp_path / "script.py"
    script.write_text(INTERRUPTED)
    ended = python(script)
    assert (ended.stderr, ended.returncode) == ("interrupted\n", 0)


@pytest.mark.slow
def test_functions_without_a_name_travel():
    model = SpikedRandomFeatures(student=lambda x: np.tanh(x), target="sin", r=1, c=1, gamma=0.8)
    options = OPTIONS | dict(dimension=30, seeds=2)
    assert_same(simulate(model, workers=2, **options), simulate(model, **options))


def test_what_cannot_travel_stays_here(caplog):
    lock = threading.Lock()
    assert dict(executors.run_all(lambda cell: lock and cell, [1, 2], None, 2)) == {1: 1, 2: 2}
    assert "Could not pickle the task" in caplog.text


# Kill and resume, through the command line


@pytest.fixture(scope="module")
def uninterrupted(tmp_path_factory):
    folder = tmp_path_factory.mktemp("uninterrupted")
    for suffix in ("csv", "json", "nc"):
        assert validate(f"{LINE} --out {folder / suffix}.{suffix}") == 0
    return {
        suffix: (folder / f"{suffix}.{suffix}").read_bytes() for suffix in ("csv", "json", "nc")
    }


def cells(folder):
    return sorted(path for path in folder.glob("*.json") if len(path.stem) == 40)


WRITING = """
import os, resource, signal, validation.run.store as s
from validation.cli import main
w, done = s.write, []
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
def write(*a):
    if len(done) == {count}: {fault}
    w(*a); done.append(1)
s.write = write
main()
"""


def faulty(folder, fault, count, workers=1):
    """A simulation in which that happens before the next of ``count`` cells is written: its command
    line, the process that has ended, and the cells that it has left."""
    store, out = folder / "store", folder / "a.csv"
    line = f"{LINE} --store {store} --out {out} --workers {workers}"
    ended = python("-c", WRITING.format(fault=fault, count=count), *line.split())
    return line, ended, cells(folder / "store")


@pytest.mark.slow
@pytest.mark.parametrize(("at", "workers"), [("fsync", 1), ("replace", 1), ("replace", 2)])
def test_a_kill_while_writing(tmp_path, uninterrupted, at, workers):
    """SIGKILL before the second cell is synced, or renamed: it is not there, and not half; the same
    line goes on, and its file is the same."""
    kill = f"os.{at} = lambda *_: os.kill(os.getpid(), signal.SIGKILL)"
    line, killed, (kept,) = faulty(tmp_path, kill, 1, workers)
    assert killed.returncode == -signal.SIGKILL
    assert not (tmp_path / "a.csv").exists()
    written = kept.stat().st_mtime_ns
    assert validate(line) == 0
    assert (tmp_path / "a.csv").read_bytes() == uninterrupted["csv"]
    assert len(cells(tmp_path / "store")) == OPTIONS["seeds"]
    assert kept.stat().st_mtime_ns == written


def children_of(pid):
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[1]) == pid and fields[0] != "Z":
            found.append(int(stat.parent.name))
    return found


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="there is no /proc to look in")
def test_workers_end_with_a_parent_that_is_killed(tmp_path):
    code = (
        "import time\nfrom solvers import executors\n"
        "list(executors.run_all(time.sleep, [60] * 2, None, 2))\n"
    )
    script = tmp_path / "sleeper.py"
    script.write_text(code)
    with subprocess.Popen(
        [sys.executable, script], env=os.environ | {"PYTHONPATH": str(ROOT)}
    ) as process:
        deadline = time.monotonic() + 30
        while len(children_of(process.pid)) < 4 and time.monotonic() < deadline:
            time.sleep(0.05)  # two workers and two trackers of resources
        workers = children_of(process.pid)
        process.send_signal(signal.SIGKILL)
    assert len(workers) == 4
    deadline = time.monotonic() + 20
    while any(Path(f"/proc/{pid}").exists() for pid in workers) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not [pid for pid in workers if Path(f"/proc/{pid}").exists()]


def test_shards_are_joined(tmp_path, uninterrupted, capsys):
    """In any order, the last two killed halfway or not: joining gives the same bytes."""
    line = f"{LINE} --store {tmp_path / 'store'}"
    for shard in ("3/3", "1/3", "2/3"):
        assert validate(f"{line} --shard {shard} --json") == 0
        document = json.loads(capsys.readouterr().out)
        assert document["seeds"] == {"1/3": 2, "2/3": 2, "3/3": 1}[shard]
    before = {path: path.stat().st_mtime_ns for path in cells(tmp_path / "store")}
    assert len(before) == OPTIONS["seeds"]
    for suffix, expected in uninterrupted.items():
        assert validate(f"{line} --out {tmp_path / 'a'}.{suffix}") == 0
        assert (tmp_path / f"a.{suffix}").read_bytes() == expected
    assert before == {path: path.stat().st_mtime_ns for path in cells(tmp_path / "store")}


@pytest.mark.slow
def test_a_full_disk_is_one_clear_line(tmp_path, uninterrupted):
    """The kernel refuses the third cell's bytes; the first two stay and are gone on from."""
    store = tmp_path / "store"
    line, full, kept = faulty(tmp_path, "resource.setrlimit(resource.RLIMIT_FSIZE, (0, -1))", 2)
    assert full.returncode == 2
    found, message = full.stderr.splitlines()
    assert "draws found" in found
    assert "could not be kept" in message
    assert str(store) in message
    assert len(list(store.iterdir())) == len(kept) == 2
    assert validate(line) == 0
    assert (tmp_path / "a.csv").read_bytes() == uninterrupted["csv"]
