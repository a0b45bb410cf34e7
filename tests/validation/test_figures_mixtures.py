"""The figures on mixtures and images as commands: data beside the picture, resumed after a kill."""

import json

import numpy as np
import pytest

from tests.cli.commands import refusal, validate
from tests.idx import idx
from validation.figures import FIGURES, Run, mixtures


@pytest.fixture
def digits(tmp_path):
    """40 images of 6 x 6 pixels in two classes, the second with more variance to the right."""
    rng = np.random.default_rng(0)
    pixels = rng.integers(0, 256, size=(40, 6, 6)).astype(np.uint8)
    pixels[1::2, :, :4] //= 8
    labels = np.tile([0, 1, 5, 9], 10).astype(np.uint8)
    folder = tmp_path / "digits"
    folder.mkdir()
    (folder / "t-images-idx3-ubyte").write_bytes(idx(pixels))
    (folder / "t-labels-idx1-ubyte").write_bytes(idx(labels))
    return folder


@pytest.fixture
def tiny(monkeypatch):
    """Panels as small as can be, so that all of them are drawn in seconds."""
    small = {"dimension": 30, "samples": 25, "students": ("relu",)}
    sweeps = {
        panel: mixtures.replace(plan, few=plan.few[:2], small=small)
        for panel, plan in mixtures.SWEEP_PANELS.items()
    }
    monkeypatch.setattr(mixtures, "SWEEP_PANELS", sweeps)


@pytest.mark.slow
@pytest.mark.parametrize("panel", [name[9:] for name in FIGURES if name.startswith("mixtures/")])
def test_panels_are_drawn(panel, tiny, digits, tmp_path, capsys):
    picture = tmp_path / "out.png"
    images = f"--images {digits}" if panel == "3" else ""
    files = f"--plot {picture} --out {tmp_path / 'out.json'} --store {tmp_path / 'cells'}"
    assert validate(f"figure mixtures/{panel} --quick --draws 2 {files} {images}") == 0
    assert picture.stat().st_size > 10_000
    document = json.loads((tmp_path / "out.json").read_text())
    assert document["panel"] == panel
    assert list((tmp_path / "cells").iterdir())
    simulated, theory = (
        np.array([point[name]["generalisation"] for point in document["points"]], dtype=float)
        for name in ("mean", "theory")
    )
    assert np.isfinite(simulated).all()
    if panel == "4":  # no theory is drawn there, when quick
        assert simulated.shape[2] == 1
    else:
        # two draws of 25 samples: an order of magnitude
        assert (np.abs(np.log(theory / simulated)) < np.log(4)).all()


@pytest.mark.slow  # what is tabulated along three directions takes seconds a point
@pytest.mark.parametrize("panel", ["1a", "5", "4"])
def test_closed_form_in_panels(panel, monkeypatch):
    """Beside the theory of two drawn layers of 60 neurons, and simulations: within a fifth."""
    plan = mixtures.SWEEP_PANELS[panel]
    setting = mixtures.replace(plan.setting, dimension=60, samples=60, students=("tanh",))
    few = mixtures.replace(
        plan, values=plan.few[1:3], setting=setting, others=plan.others[::20], tasks=1
    )
    monkeypatch.setattr(mixtures, "SWEEP_PANELS", {panel: few})
    found = mixtures.data(panel, Run(False), draws=2 if panel != "4" else 12)
    mean, given, closed = (
        np.array([point[name]["generalisation"] for point in found["points"]])
        for name in ("mean", "theory", "closed")
    )
    expected = mean if panel == "4" else given
    assert (np.abs(closed / expected - 1) < 0.2).all()
    assert mixtures.draw(found).axes


def test_spikes_help():
    """The error falls along beta_s where all of it is in the data."""
    points = mixtures.data("4", Run(True))["points"]
    errors = [point["mean"]["generalisation"] for point in points if point["other"]["split"] == 0]
    assert errors[0][0][0] > 2 * errors[-1][0][0]


@pytest.mark.slow
def test_a_stopped_panel_goes_on_from_its_cells(tiny, tmp_path):
    """Cells and their theory, two missing and one damaged: those three are computed, the others
    are left as they are, and the result is that of an undisturbed run."""
    whole = mixtures.data("1a", Run(True))
    assert mixtures.data("1a", Run(True, store=tmp_path)) == whole
    cells = sorted(tmp_path.glob("*.json"))
    assert len(cells) == 12
    cells[1].unlink()
    cells[4].unlink()
    cells[0].write_text("{")
    kept = {path: path.stat().st_mtime_ns for path in (cells[2], cells[3], cells[5])}
    assert mixtures.data("1a", Run(True, store=tmp_path)) == whole
    assert set(cells) <= set(tmp_path.iterdir())
    assert {path: path.stat().st_mtime_ns for path in kept} == kept


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("figure mixtures/7 --plot {0}/a.png", "name of a figure must be one of"),
        ("figure mixtures/3 --plot {0}/a.png", "given for mixtures/3 and for no other"),
        ("figure mixtures/3 --images {0}/no --plot {0}/a.png", "No such file"),
        (
            "figure mixtures/1a --images {0} --plot {0}/a.png",
            "given for mixtures/3 and for no other",
        ),
        ("figure steps --draws 3 --plot {0}/a.png", "it is for figures of mixtures"),
        ("figure steps --images {0} --plot {0}/a.png", "it is for figures of mixtures"),
    ],
)
def test_mistakes_are_one_line(line, message, tmp_path, capsys):
    assert message in refusal(capsys, line.format(tmp_path), validate)
