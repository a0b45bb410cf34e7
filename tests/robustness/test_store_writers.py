"""Stores with many writers, with strangers, without permission, and killed at: nothing is lost."""

import fcntl
import multiprocessing
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

from replica import InvalidArgument
from tests.robustness.test_store_faults import CELL, ERRORS, MODEL, OPTIONS, files
from validation import simulate
from validation.run import store


def contend(folder, count):
    for index in range(count):
        store.write(folder, CELL | {"seed": index}, ERRORS)


def test_many_writers_of_the_same_cells(tmp_path):
    """In the trial a second writer renamed the first one's good cells, 2 330 times in 10 runs."""
    with ThreadPoolExecutor(4) as pool:
        for done in [pool.submit(contend, tmp_path, 25) for _ in range(4)]:
            done.result()
    assert len(files(tmp_path)) == len(list(tmp_path.glob("*.json"))) == 25


@pytest.mark.slow
def test_many_processes_write_the_same_cells(tmp_path):
    spawn = multiprocessing.get_context("spawn")
    processes = [spawn.Process(target=contend, args=(tmp_path, 200)) for _ in range(3)]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    assert [process.exitcode for process in processes] == [0, 0, 0]
    assert len(files(tmp_path)) == len(list(tmp_path.glob("*.json"))) == 200


def test_many_writers_over_damage(tmp_path):
    """Each damaged cell is set aside once, and every good one stays."""
    for index in range(20):
        store.file_of(tmp_path, CELL | {"seed": index}).write_text(f"damage {index}")
    with ThreadPoolExecutor(4) as pool:
        for done in [pool.submit(contend, tmp_path, 20) for _ in range(4)]:
            done.result()
    aside = sorted(tmp_path.glob("*.damaged-*"))
    assert {file.read_text() for file in aside} == {f"damage {i}" for i in range(20)}
    assert len(aside) == len(list(tmp_path.glob("*.json"))) == 20
    found = store.read(tmp_path, {i: CELL | {"seed": i} for i in range(20)}, ERRORS.shape)
    assert len(found) == 20


@contextmanager
def locked(folder):
    """The lock in the hands of a process that was suspended."""
    with open(folder / store.LOCK, "w") as stream:
        fcntl.flock(stream, fcntl.LOCK_EX)
        yield


def test_without_the_lock_nothing_is_renamed(tmp_path, monkeypatch):
    monkeypatch.setattr(store, "LOCK_SECONDS", 0.05)
    file = store.file_of(tmp_path, CELL)
    file.write_text("damage")
    (tmp_path / f".replica-{16 * '0'}").touch()
    with locked(tmp_path):
        store.open_folder(tmp_path)
        store.write(tmp_path, CELL, ERRORS)
        store.write(tmp_path, CELL | {"seed": 2}, ERRORS)  # where there is none, it can be kept
    assert file.read_text() == "damage"
    assert len(files(tmp_path)) == 3
    store.open_folder(tmp_path)
    store.write(tmp_path, CELL, ERRORS)
    assert len(files(tmp_path)) == 3  # swept; damaged, good and good


def test_only_what_the_library_made_is_swept(tmp_path):
    """Not a user's notes whose name begins like theirs, nor a folder that has such a name."""
    notes, folder = tmp_path / ".replica-notes.txt", tmp_path / f".replica-{16 * 'a'}"
    notes.write_text("mine")
    folder.mkdir()
    (tmp_path / f".replica-{16 * '0'}").touch()
    store.open_folder(tmp_path)
    assert {*tmp_path.iterdir()} - {tmp_path / store.LOCK} == {notes, folder}


@contextmanager
def as_a_stranger():
    """Who is no administrator, for whom folders can be read-only."""
    if os.geteuid():
        yield
        return
    os.setresuid(65534, 65534, 0)
    try:
        yield
    finally:
        os.setresuid(0, 0, 0)


@pytest.fixture
def open_path():
    """A folder that everyone may come to."""
    folder = Path(tempfile.mkdtemp())
    folder.chmod(0o755)
    yield folder / "cells"
    (folder / "cells").chmod(0o755)
    shutil.rmtree(folder)


def test_a_read_only_store_is_read(open_path):
    expected = simulate(MODEL, store=open_path, **OPTIONS)
    (open_path / f".replica-{16 * '0'}").touch()
    open_path.chmod(0o555)
    with as_a_stranger():
        found = simulate(MODEL, store=open_path, **OPTIONS)
        np.testing.assert_array_equal(found.test_error, expected.test_error)
        with pytest.raises(InvalidArgument, match="written to, as 1 cells are not in it"):
            simulate(MODEL, store=open_path, **(OPTIONS | {"seeds": 4}))


def test_a_store_of_another_user_can_be_added_to(open_path):
    """In a folder that both may write to, with the other's lock."""
    simulate(MODEL, store=open_path, **(OPTIONS | {"seeds": 2}))
    open_path.chmod(0o777)
    with as_a_stranger():
        simulate(MODEL, store=open_path, **OPTIONS)
    assert len(list(open_path.glob("*.json"))) == 3


# Kills

RUN = (
    "simulate --student tanh --target sin --r 1 --c 1.2 --gamma .8 --alpha .5,1.5 --lam .01,1 "
    "--dimension 30 --seeds 40 --rng 3 --json"
)


@pytest.mark.slow
def test_a_run_killed_again_and_again_comes_to_the_same_end(tmp_path):
    command = [sys.executable, "-m", "validation", *RUN.split()]
    expected = subprocess.run(command, capture_output=True, check=True).stdout
    rng, deaths = np.random.default_rng(0), 0
    command += ["--store", str(tmp_path)]
    for _ in range(6):
        before = {path: path.read_bytes() for path in tmp_path.glob("*.json")}
        with subprocess.Popen(command, stdout=subprocess.DEVNULL) as process:
            while len(list(tmp_path.glob("*.json"))) == len(before) and process.poll() is None:
                time.sleep(0.005)
            time.sleep(rng.uniform(0, 0.05))
            process.send_signal(signal.SIGKILL)
        deaths += process.returncode == -signal.SIGKILL
        assert all(path.read_bytes() == content for path, content in before.items())
    done = subprocess.run([*command], capture_output=True)
    assert (done.stdout, done.returncode) == (expected, 0)
    assert b"of 40 draws found" in done.stderr
    assert deaths >= 3
    assert len(files(tmp_path)) == 40
