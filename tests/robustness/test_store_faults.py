"""Stores that are damaged, forged, shared, read-only or killed at: nothing false is believed."""

import json
import multiprocessing
import os
import shutil
import tempfile
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

from replica import InvalidArgument, SpikedRandomFeatures
from validation import simulate
from validation.run import store

CELL = {"seed": 1, "alpha": [0.5]}
ERRORS = np.array([[[0.1 + 0.2, 1e-300]], [[np.pi, 0.0]]])
MODEL = SpikedRandomFeatures(student="tanh", target="sin", r=1.0, c=1.2, gamma=0.8)
OPTIONS = dict(alpha=[0.5, 1.5], lam=[0.01, 1.0], dimension=30, seeds=3, rng=3)


def read(folder):
    return store.read(folder, {1: CELL}, ERRORS.shape).get(1)


def files(folder):
    return sorted(path.name for path in folder.iterdir())


# One cell


def test_round_trip(tmp_path):
    folder = store.open_folder(tmp_path / "a" / "b")
    assert read(folder) is None
    store.write(folder, CELL, ERRORS)
    np.testing.assert_array_equal(read(folder), ERRORS)
    assert not store.read(folder, {1: CELL | {"seed": 2}}, ERRORS.shape)
    assert files(folder) == [store.file_of(folder, CELL).name]
    (tmp_path / "file").touch()
    with pytest.raises(InvalidArgument, match=r"^store must be a folder"):
        store.open_folder(tmp_path / "file")


DAMAGE = {
    "cut": lambda text: text[: len(text) // 2],
    "empty": lambda text: "",
    "another number": lambda text: text.replace("3.14", "3.15"),
    "another cell": lambda text: text.replace('"seed": 1', '"seed": 2'),
    "no checksum": lambda text: json.dumps({"cell": CELL, "errors": ERRORS.tolist()}),
    "not a document": lambda text: "[1, 2]",
    "binary": lambda text: "\x00\x93",
    "brackets": lambda text: "[" * 100_000,
    "nested": lambda text: '{"errors": ' + "[" * 500 + "]" * 500 + "}",
}


@pytest.mark.parametrize("damage", DAMAGE.values(), ids=DAMAGE)
def test_damage_is_reported_and_written_over(tmp_path, caplog, damage):
    store.write(tmp_path, CELL, ERRORS)
    file = store.file_of(tmp_path, CELL)
    damaged = damage(file.read_text())
    file.write_text(damaged)
    assert read(tmp_path) is None
    assert str(file) in caplog.text
    store.write(tmp_path, CELL, ERRORS)
    np.testing.assert_array_equal(read(tmp_path), ERRORS)
    assert files(tmp_path) == [file.name]


def forged(value):
    """A cell's text with ``value`` as one of its numbers, and the checksum that belongs to it."""
    errors = [[[0.1 + 0.2, 1e-300]], [[value, 0.0]]]
    return json.dumps({"cell": CELL, "errors": errors, "sha256": store._cell_digest(errors)})


@pytest.mark.parametrize("value", [[0.5], {}, "a number"])
def test_a_forged_number_is_refused(tmp_path, value):
    store.file_of(tmp_path, CELL).write_text(forged(value))
    assert read(tmp_path) is None
    store.file_of(tmp_path, CELL).write_text(forged(0.5))  # the way it is forged is right
    assert read(tmp_path) is not None


def test_what_was_not_measured_is_nan(tmp_path):
    """And what has overflown is not kept."""
    store.write(tmp_path, CELL, np.full(ERRORS.shape, np.inf))
    assert not files(tmp_path)
    some = np.where(ERRORS > 1, np.nan, ERRORS)
    store.write(tmp_path, CELL, some)
    np.testing.assert_array_equal(read(tmp_path), some)


def make_device(path):
    path.symlink_to("/dev/zero")


def make_circle(path):
    path.symlink_to(path)


def make_large(path):
    with path.open("wb") as stream:
        stream.truncate(2**40)  # sparse


@pytest.mark.parametrize("make", [os.mkfifo, make_device, make_circle, make_large])
def test_what_is_no_cell_is_not_read(tmp_path, caplog, make):
    """Nothing is waited for, no more is read than a cell can have, and it is written over."""
    make(store.file_of(tmp_path, CELL))
    assert read(tmp_path) is None
    assert len(caplog.messages) == 1
    store.write(tmp_path, CELL, ERRORS)
    np.testing.assert_array_equal(read(tmp_path), ERRORS)


def test_a_folder_in_the_place_of_a_cell_is_named(tmp_path):
    file = store.file_of(tmp_path, CELL)
    file.mkdir()
    assert read(tmp_path) is None
    with pytest.raises(store.StoreError, match=r"a folder is where a cell is kept") as refused:
        store.write(tmp_path, CELL, ERRORS)
    assert refused.value.filename == str(file)
    assert "goes on" not in str(refused.value)


def test_many_faults_are_one_line(tmp_path, caplog):
    expected = simulate(MODEL, store=tmp_path, **OPTIONS)
    for file in tmp_path.glob("*.json"):
        file.write_text("")
    (tmp_path / "notes").touch()
    found = simulate(MODEL, store=tmp_path, **OPTIONS)
    np.testing.assert_array_equal(found.errors["test_error"], expected.errors["test_error"])
    (damaged,) = (r.getMessage() for r in caplog.records if r.levelname == "WARNING")
    assert "is damaged or not what its name says, as with 2 others" in damaged
    assert (tmp_path / "notes").exists()


# Many writers, strangers, kills


def contend(folder):
    for index in range(200):
        store.write(folder, CELL | {"seed": index}, ERRORS)


@pytest.mark.slow
def test_many_processes_write_the_same_cells(tmp_path, caplog):
    """Meanwhile every file is absent or whole."""
    cells = {index: CELL | {"seed": index} for index in range(200)}
    spawn = multiprocessing.get_context("spawn")
    processes = [spawn.Process(target=contend, args=(tmp_path,)) for _ in range(3)]
    for process in processes:
        process.start()
    while any(process.is_alive() for process in processes):
        for found in store.read(tmp_path, cells, ERRORS.shape).values():
            np.testing.assert_array_equal(found, ERRORS)
    for process in processes:
        process.join()
    assert not caplog.messages  # of damage
    assert [process.exitcode for process in processes] == [0, 0, 0]
    assert len(files(tmp_path)) == 200
    assert len(store.read(tmp_path, cells, ERRORS.shape)) == 200


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
    open_path.chmod(0o555)
    with as_a_stranger():
        found = simulate(MODEL, store=open_path, **OPTIONS)
        np.testing.assert_array_equal(found.errors["test_error"], expected.errors["test_error"])
        with pytest.raises(InvalidArgument, match="written to, as 1 cells are not in it"):
            simulate(MODEL, store=open_path, **(OPTIONS | {"seeds": 4}))
