"""Ctrl-C in a command: what is known is written, and a file that was there stays."""

from pathlib import Path

import numpy as np
import pytest

import replica
from replica.given.evaluate_readout import _Point
from replica.observables import grid
from solvers import executors
from tests.cli.commands import theory
from tests.cli.test_readout import FEATURES, files, sample

__all__ = ["files"]  # the folder of its arrays

CURVE = "curve --student tanh --target sin"
READOUT = f"readout {FEATURES} --samples"


def interrupt_second_point(monkeypatch):
    """Ctrl-C after the first of several tasks, or in a readout of 40 samples."""
    settle = _Point.settle

    def run_first(task, cells, *_):
        yield 0, task(0)
        if len(cells) > 1:
            raise KeyboardInterrupt

    def settle_20(point, *model):
        if point.samples == 40:
            raise KeyboardInterrupt
        return settle(point, *model)

    monkeypatch.setattr(executors, "run_all", run_first)
    monkeypatch.setattr(_Point, "settle", settle_20)


@pytest.mark.parametrize(
    "line",
    [
        f"{CURVE} --alpha0 2 --eta 1,2 --alpha 1 --lam .1",
        f"{CURVE} --alpha0 2 --eta 1 --alpha 1,2 --lam best",
        f"{CURVE} --alpha0 alpha --eta 1 --alpha 1,2 --lam .1",
        f"{READOUT} 20,40 --lam 1",
        f"{READOUT} 20,40 --lam best",
    ],
)
def test_what_was_solved_is_written(line, capsys, monkeypatch):
    assert theory(f"{line} --out a.csv") == 0
    complete = Path("a.csv").read_text().splitlines()
    capsys.readouterr()
    interrupt_second_point(monkeypatch)
    assert theory(f"{line} --out a.csv --plot a.png") == 130
    out, err = capsys.readouterr()
    assert "interrupted; 1 of 2 points were not solved, as their status in a-inc" in err
    assert len(out.splitlines()) == 2  # the names of columns, and the point that is solved
    header, first, last = Path("a-incomplete.csv").read_text().splitlines()
    assert [header, first] == complete[:2]
    assert "not converged: interrupted before it was solved" in last
    assert Path("a.csv").read_text().splitlines() == complete
    assert not Path("a.png").exists()


def test_nothing_is_written_where_nothing_was_solved(capsys, monkeypatch):
    """And Python's functions raise."""
    interrupt_second_point(monkeypatch)
    assert theory(f"{READOUT} 40 --lam 1 --out a.csv") == 130
    assert "interrupted; no file was left" in capsys.readouterr().err
    step = replica.GradientStep(student="tanh", target="sin", alpha0=2, eta=1.0)
    for problem, grids in (
        (replica.FeatureSample(**sample()), {"samples": [20, 40]}),
        (step, {"alpha": 1.0, "eta": [1.0, 2.0], "beta": 1.0}),
    ):
        with pytest.raises(KeyboardInterrupt):
            replica.learning_curve(problem, lam=0.1, **grids)


def interrupt(*_, **__):
    raise KeyboardInterrupt


@pytest.mark.parametrize("notes", ["", " --notes"])
def test_points_are_written_where_notes_are_interrupted(notes, capsys, monkeypatch):
    line = f"{CURVE} --alpha0 2 --eta 1 --alpha 1,2 --lam .1"
    assert theory(f"{line} --out a.csv") == 0
    monkeypatch.setattr("replica.observables.grid.Grid.with_changes", interrupt)
    assert theory(f"{line} --out b.csv{notes}") == 130
    assert "all points are solved, and their notes are not" in capsys.readouterr().err
    assert Path("b.csv").read_text() == Path("a.csv").read_text()


def test_errors_are_written_where_fits_are_interrupted(capsys, monkeypatch):
    line = f"{READOUT} 20,40 --lam 1 --out e.csv"
    assert theory(line) == 0
    known = Path("e.csv").read_text().splitlines()
    assert "fitted_test_error" in known[0]
    monkeypatch.setattr("replica.observables.grid.fitted_errors", interrupt)
    assert theory(line) == 130
    assert "the errors are not set beside fits" in capsys.readouterr().err
    kept = Path("e.csv").read_text()
    assert "fitted_test_error" not in kept
    assert known[1].split(",")[2] in kept


@pytest.mark.parametrize("at", [1, 2, 3])
def test_nothing_is_solved_after_an_interruption(at, monkeypatch):
    """Ctrl-C after one of two losses at 20 and 4000 samples, of 2000 rows, and in the scale of
    errors beyond the rows."""
    settled, known = [], _Point.settle
    sampled = replica.FeatureSample(**sample())

    def counted(point, *model):
        settled.append(point)
        if len(settled) == at == 3:  # the scale of those beyond the rows
            raise KeyboardInterrupt
        return known(point, *model)

    def advance(done, total):
        if done == at:
            raise KeyboardInterrupt

    monkeypatch.setattr(_Point, "settle", counted)
    points = dict(samples=[20, 4000], lam=1.0, loss=["square", "logistic"])
    found = grid.solve_grid(sampled, **points, progress=advance, partial_results=True)
    solved = 2 if at == 2 else 1
    assert found.columns["converged"].tolist() == [True] * solved + [False] * (4 - solved)
    assert np.isfinite(found.columns["test_error"]).tolist() == found.columns["converged"].tolist()
    interrupted = {"not converged: interrupted before it was solved"}
    assert {*found.columns["status"][solved:]} == interrupted
    assert len(settled) == {1: 1, 2: 4, 3: 3}[at]
