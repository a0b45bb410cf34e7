"""The store believes only what it wrote, and loses nothing."""

import errno
import json
from dataclasses import replace

import numpy as np
import pytest

import replica
from replica import Activation, GradientStep, InvalidArgument, MultiIndex, SpikedRandomFeatures
from validation import simulate
from validation.run import store
from validation.run.identity import describe_cell

MODEL = SpikedRandomFeatures(student="tanh", target="sin", r=1.0, c=1.2, gamma=0.8)
OPTIONS = dict(alpha=[0.5, 1.5], lam=[0.01, 1.0], dimension=30, seeds=3, rng=3)
CELL = {"seed": 1, "alpha": [0.5]}
ERRORS = np.array([[[0.1 + 0.2, 1e-300]], [[np.pi, np.nan]], [[1.0, np.inf]]])


def experiment(model=MODEL, **options):
    return simulate(model, **(OPTIONS | options)).experiment


def test_round_trip(tmp_path):
    folder = store.open_folder(tmp_path / "a" / "b")
    assert store.read(folder, CELL, ERRORS.shape) is None
    store.write(folder, CELL, ERRORS)
    np.testing.assert_array_equal(store.read(folder, CELL, ERRORS.shape), ERRORS)
    assert store.read(folder, CELL | {"seed": 2}, ERRORS.shape) is None
    assert [path.name for path in folder.iterdir()] == [store.file_of(folder, CELL).name]


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
    assert store.read(tmp_path, CELL, ERRORS.shape) is None
    assert str(file) in caplog.text
    assert file.read_text() == damaged
    store.write(tmp_path, CELL, ERRORS)
    np.testing.assert_array_equal(store.read(tmp_path, CELL, ERRORS.shape), ERRORS)
    assert file.with_suffix(".damaged-1").read_text() == damaged


def test_a_folder_in_the_place_of_a_cell(tmp_path, caplog):
    store.file_of(tmp_path, CELL).mkdir()
    assert store.read(tmp_path, CELL, ERRORS.shape) is None
    store.write(tmp_path, CELL, ERRORS)
    np.testing.assert_array_equal(store.read(tmp_path, CELL, ERRORS.shape), ERRORS)


def test_strange_files_are_reported_and_left_alone(tmp_path, caplog):
    expected = simulate(MODEL, **OPTIONS)
    (tmp_path / "notes.txt").write_text("mine")
    (tmp_path / ".cell-abc").write_text("half a c")
    (tmp_path / ("0" * 40 + ".json")).write_text("a cell of something else")
    found = simulate(MODEL, store=tmp_path, **OPTIONS)
    np.testing.assert_array_equal(found.test_error, expected.test_error)
    assert "notes.txt is not a cell" in caplog.text
    assert ".cell-abc is not a cell" in caplog.text
    assert (tmp_path / "notes.txt").read_text() == "mine"
    assert (tmp_path / ".cell-abc").read_text() == "half a c"


def test_a_damaged_cell_is_computed_again(tmp_path, caplog):
    expected = simulate(MODEL, store=tmp_path, **OPTIONS)
    victim = store.file_of(tmp_path, describe_cell(expected.experiment, 1))
    victim.write_text(victim.read_text().replace("0.", "1."))
    found = simulate(MODEL, store=tmp_path, **OPTIONS)
    np.testing.assert_array_equal(found.test_error, expected.test_error)
    assert victim.name in caplog.text


def test_finished_cells_are_not_computed_again(tmp_path):
    expected = simulate(MODEL, store=tmp_path, **OPTIONS)
    written = {path: path.stat().st_mtime_ns for path in tmp_path.iterdir()}
    calls = []
    found = simulate(MODEL, store=tmp_path, progress=lambda *x: calls.append(x), **OPTIONS)
    np.testing.assert_array_equal(found.test_error, expected.test_error)
    assert calls == [(3, 3)]
    assert {path: path.stat().st_mtime_ns for path in tmp_path.iterdir()} == written


def test_a_full_disk_keeps_what_was_finished(tmp_path, monkeypatch):
    def full(handle):
        raise OSError(errno.ENOSPC, "No space left on device")

    store.write(tmp_path, CELL, ERRORS)
    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(store.StoreError, match="No space left on device: this cell") as caught:
        store.write(tmp_path, CELL | {"seed": 2}, ERRORS)
    assert caught.value.errno == errno.ENOSPC
    assert [path.name for path in tmp_path.iterdir()] == [store.file_of(tmp_path, CELL).name]


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


@pytest.mark.parametrize("change", CHANGES, ids=str)
def test_everything_that_matters_is_in_the_name(tmp_path, change):
    one, two = experiment(), experiment(**change)
    names = {store.file_of(tmp_path, describe_cell(e, i)) for e in (one, two) for i in (0, 1)}
    assert len(names) == 4


MODELS = [
    replace(MODEL, r=1.1), replace(MODEL, c=1.0), replace(MODEL, gamma=0.7),
    replace(MODEL, beta=2.0), replace(MODEL, noise=0.1), replace(MODEL, intercept=True),
    replace(MODEL, student="erf"), replace(MODEL, bias=0.5), replace(MODEL, train_bias=True),
    replace(MODEL, student=Activation(np.tanh, name="tanh", derivative=np.cos)),
    replace(MODEL, target=Activation(lambda x: np.sin(1.0001 * x), name="sin")),
    replace(MODEL, target=MultiIndex(np.sin, dimension=1, name="sin")),
]  # fmt: skip


@pytest.mark.parametrize("other", range(len(MODELS)))
def test_problems_are_told_apart(tmp_path, other):
    model = replace(MODELS[other])
    base = replace(experiment(), problem=MODEL)
    one, two = (describe_cell(replace(base, problem=problem), 0) for problem in (MODEL, model))
    assert store.file_of(tmp_path, one) != store.file_of(tmp_path, two)


def test_laws_of_the_readout_are_told_apart(tmp_path):
    import scipy.stats

    laws = ["gaussian", "uniform", [-1, 1], scipy.stats.norm(0, 2), scipy.stats.norm(0, 3)]
    steps = [
        GradientStep(student="tanh", target="sin", alpha0=2, eta=1, readout=law) for law in laws
    ]
    base = experiment()
    names = {store.file_of(tmp_path, describe_cell(replace(base, problem=s), 0)) for s in steps}
    assert len(names) == len(laws)


def test_the_version_is_in_the_name(tmp_path):
    one = describe_cell(experiment(), 0)
    assert one["version"] == replica.__version__
    assert store.file_of(tmp_path, one) != store.file_of(tmp_path, one | {"version": "0.0.0"})
