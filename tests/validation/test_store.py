"""The store believes only what it wrote, and loses nothing."""

import json
from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import norm

import replica
from replica import (
    Activation,
    GradientStep,
    InvalidArgument,
    Loss,
    MultiIndex,
    SpikedRandomFeatures,
    loss,
)  # fmt: skip
from validation import simulate
from validation.run import store
from validation.run.identity import describe_cells

MODEL = SpikedRandomFeatures(student="tanh", target="sin", r=1.0, c=1.2, gamma=0.8)
OPTIONS = dict(alpha=[0.5, 1.5], lam=[0.01, 1.0], dimension=30, seeds=3, rng=3)
CELL = {"seed": 1, "alpha": [0.5]}
ERRORS = np.array([[[0.1 + 0.2, 1e-300]], [[np.pi, 0.0]], [[1.0, 1e300]]])


def read(folder, cell=CELL):
    return store.read(folder, {1: cell}, ERRORS.shape).get(1)


def test_round_trip(tmp_path):
    folder = store.open_folder(tmp_path / "a" / "b")
    assert read(folder) is None
    store.write(folder, CELL, ERRORS)
    np.testing.assert_array_equal(read(folder), ERRORS)
    assert read(folder, CELL | {"seed": 2}) is None
    assert {path.name for path in folder.iterdir()} == {
        store.file_of(folder, CELL).name,
        store.LOCK,
    }


DAMAGE = {
    "cut": lambda text: text[: len(text) // 2],
    "empty": lambda text: "",
    "another number": lambda text: text.replace("3.14", "3.15"),
    "another cell": lambda text: text.replace('"seed": 1', '"seed": 2'),
    "no checksum": lambda text: json.dumps({"cell": CELL, "errors": ERRORS.tolist()}),
    "not a document": lambda text: "[1, 2]",
    "binary": lambda text: "\x00\x93",
}


@pytest.mark.parametrize("damage", DAMAGE.values(), ids=DAMAGE)
def test_damage_is_reported_and_kept(tmp_path, caplog, damage):
    store.write(tmp_path, CELL, ERRORS)
    file = store.file_of(tmp_path, CELL)
    damaged = damage(file.read_text())
    file.write_text(damaged)
    assert read(tmp_path) is None
    assert str(file) in caplog.text
    assert file.read_text() == damaged
    store.write(tmp_path, CELL, ERRORS)
    np.testing.assert_array_equal(read(tmp_path), ERRORS)
    assert file.with_suffix(".damaged-1").read_text() == damaged


def test_a_folder_in_the_place_of_a_cell(tmp_path, caplog):
    store.file_of(tmp_path, CELL).mkdir()
    assert read(tmp_path) is None
    store.write(tmp_path, CELL, ERRORS)
    np.testing.assert_array_equal(read(tmp_path), ERRORS)


def test_strange_files_are_reported_and_left_alone(tmp_path, caplog):
    expected = simulate(MODEL, **OPTIONS)
    (tmp_path / "notes.txt").write_text("mine")
    (tmp_path / ".replica-abc").write_text("half a c")
    (tmp_path / ("0" * 40 + ".json")).write_text("a cell of something else")
    found = simulate(MODEL, store=tmp_path, **OPTIONS)
    np.testing.assert_array_equal(found.test_error, expected.test_error)
    assert "notes.txt is not a cell" in caplog.text
    assert (tmp_path / "notes.txt").read_text() == "mine"
    # what a killed writer left is swept, without a word
    assert ".replica-" not in caplog.text
    assert not list(tmp_path.glob(".replica-*"))


def test_a_damaged_cell_is_computed_again(tmp_path, caplog):
    expected = simulate(MODEL, store=tmp_path, **OPTIONS)
    victim = store.file_of(tmp_path, describe_cells(expected.experiment, [1])[1])
    victim.write_text(victim.read_text().replace("0.", "1."))
    found = simulate(MODEL, store=tmp_path, **OPTIONS)
    np.testing.assert_array_equal(found.test_error, expected.test_error)
    assert victim.name in caplog.text


def test_a_store_is_a_folder(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(InvalidArgument) as caught:
        store.open_folder(tmp_path / "file")
    assert caught.value.name == "store"


# What a cell is


CHANGES = [
    dict(alpha=[0.5, 1.6]), dict(lam=[0.01, 2.0]), dict(dimension=31), dict(rng=4),
    dict(test_samples=7), dict(simulated="gaussian"),
]  # fmt: skip
STEP = GradientStep(student="tanh", target="sin", alpha0=2, eta=1)
READOUTS = ["gaussian", "box", [-1, 1], norm(0, 2), norm(0, 3)]
LABELS = ["outliers:0.1:9", "outliers:0.10000001:9", "student:3", "student:3:0.5"]
PROBLEMS = [
    replace(MODEL, r=1.1), replace(MODEL, c=1.0), replace(MODEL, gamma=0.7),
    replace(MODEL, beta=2.0), replace(MODEL, noise=0.1), replace(MODEL, intercept=True),
    replace(MODEL, student="erf"), replace(MODEL, bias=0.5), replace(MODEL, train_bias=True),
    replace(MODEL, student=Activation(np.tanh, name="tanh", derivative=np.cos)),
    replace(MODEL, target=Activation(lambda x: np.sin(1.0001 * x), name="sin")),
    replace(MODEL, target=MultiIndex(np.sin, dimension=1, name="sin")),
    *(replace(STEP, readout=law) for law in READOUTS),
    *(replace(MODEL, label_noise=law) for law in LABELS),
]  # fmt: skip
LOSSES = [
    *(loss(name) for name in ("huber:0.3", "huber:0.30000001", "absolute", "quantile:0.3")),
    Loss(np.cosh, np.sinh, name="mine"), Loss(np.exp, np.exp, name="mine"),
]  # fmt: skip


def test_everything_that_matters_is_in_the_name(tmp_path):
    """By names and by values: names show six digits."""
    base = simulate(MODEL, **OPTIONS).experiment
    variants = [base, *(simulate(MODEL, **OPTIONS | change).experiment for change in CHANGES)]
    variants += [replace(base, problem=problem) for problem in PROBLEMS]
    variants += [replace(base, loss=of) for of in LOSSES]
    cells = [cell for one in variants for cell in describe_cells(one, (0, 1)).values()]
    assert cells[0]["version"] == replica.__version__
    names = [store.file_of(tmp_path, cell) for cell in (*cells, cells[0] | {"version": "0.0.0"})]
    assert len(set(names)) == len(names)
