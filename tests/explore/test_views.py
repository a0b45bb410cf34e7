"""What the explorer shows: the texts of a state give its numbers, and bad states a sentence."""

import contextlib
import io
import tempfile
from pathlib import Path

import numpy as np
import pandas
import pytest

import replica
from replica.explore import DEFAULTS, REFUSALS, VIEWS, cached_results, curve_view, point, simulate
from replica.explore.texts import options_of, request_of
from tests.cli.commands import document, theory, validate
from tests.legends import labels
from tests.problems import ORDER_OF_SUMS

SLOW = pytest.mark.slow
FEW = DEFAULTS | {"alpha": "0.5:2:3"}
# Each differs from the defaults in what the texts have to say.
STATES = {
    "network": FEW,
    "srf": FEW | {"theory": "srf", "student": "relu", "beta": "0.5", "noise": "0.1"},
    "readout": FEW | {"readout": "-1,1.5", "alpha0": "inf", "alpha": "1,2"},
    "own": FEW
    | {
        "student": "relu(x) - 0.1*relu(-x)",
        "target": "z1**2 + z1",
        "bias": "-1,1",
        "theory": "srf",
    },
    "steps": FEW | {"steps": "2:1,inf:0.5", "student": "relu"},
    "loss": FEW | {"loss": "huber:0.5", "alpha": "1:2:2:log", "lam": "0.02"},
}


@pytest.fixture(autouse=True)
def all_points(monkeypatch):
    """Everything is found, and lines have all of their points, however busy the machine is."""
    for name in ("LINE_TIME", "WAIT"):
        monkeypatch.setattr(cached_results, name, 1e3)


def run_python(view, capsys):
    """The names that the program defines."""
    names = {}
    with contextlib.chdir(tempfile.mkdtemp()):  # figures are saved there
        exec(compile(view.python, "explorer", "exec"), names)
        (picture,) = Path.cwd().iterdir()
    assert picture.stat().st_size > 1000
    assert capsys.readouterr().out
    return names


def printed(view, capsys):
    """What the command prints, as data."""
    program, _, line = view.command.partition(" ")
    assert program == "replica"
    return document(capsys, line)


# The menus' entries that are not among those above, each with what it needs.
ENTRIES = [
    *({"student": name} for name in ("erf", "sigmoid", "gelu", "softplus", "sin", "linear")),
    *({"target": name} for name in ("tanh", "relu", "sign", "linear", "he2", "he1+he3/6")),
    {"target": "z1 + z1*z2"},
    *({"readout": name, "theory": "srf"} for name in ("gaussian", "box")),
    *({"loss": name} for name in ("absolute", "quantile:0.9")),
    *({"loss": name, "target": "sign"} for name in ("logistic", "hinge", "squared_hinge")),
]
CASES = [  # a loss takes seconds
    pytest.param(state, id=name, marks=[SLOW] * (name in ("loss", "readout", "own")))
    for name, state in STATES.items()
]
CASES += [  # half a second each
    pytest.param(DEFAULTS | {"alpha": "1,2"} | entry, id="-".join(entry.values()), marks=SLOW)
    for entry in ENTRIES
]


@pytest.mark.parametrize("state", CASES)
def test_python_and_command_give_the_curve(state, capsys):
    view = curve_view(state)
    names = run_python(view, capsys)
    expected = pytest.approx(point(state).test_error, rel=ORDER_OF_SUMS)
    assert names["point"].test_error == expected
    drawn = view.figure.axes[0].lines[0].get_ydata()
    error = "classification_error" if state["target"] == "sign" else "test_error"
    assert np.array_equal(names["curve"][error].values.ravel(), drawn)
    assert [one[error] for one in printed(view, capsys)["points"]] == list(drawn)


@pytest.mark.slow
@pytest.mark.parametrize("model", ["srf", "network"])
def test_texts_of_the_bounds(model, capsys):
    view = VIEWS["bounds"](DEFAULTS | {"theory": model})
    found = run_python(view, capsys)["found"]
    points = printed(view, capsys)["bounds"]
    assert [one["lower"] for one in points] == found.lower.tolist()
    assert [one["upper"] for one in points] == found.upper.tolist()
    drawn = view.figure.axes[0].lines[0].get_ydata()
    assert np.array_equal(drawn, found.upper)


@pytest.mark.slow
def test_texts_of_the_spectrum(capsys):
    view = VIEWS["spectrum"](DEFAULTS | {"theory": "srf"})
    found = run_python(view, capsys)["found"]
    told = printed(view, capsys)
    assert told["edges"] == found.edges.tolist()
    assert told["outliers"] == found.outliers.tolist()
    assert len(found.outliers) > 0
    assert "outlier" in view.figure.axes[0].get_title()
    assert len(table(view)["density"]) == len(table(view)["x"]) > 100


def test_texts_of_the_learned_function(capsys):
    view = VIEWS["learned function"](DEFAULTS)
    names = run_python(view, capsys)
    (one,) = printed(view, capsys)["points"]
    assert one["test_error"] == names["point"].test_error
    (mean,) = (x for x in view.figure.axes[0].lines if "learned" in x.get_label())
    x, y = mean.get_data()
    assert np.interp(1.0, x, y) == pytest.approx(names["learned"].mean(1.0), abs=1e-12)


def table(view):
    """What is drawn, from its CSV."""
    return pandas.read_csv(io.BytesIO(view.table()))


@pytest.mark.slow
def test_the_phase_diagram(capsys):
    state = DEFAULTS | {"theory": "srf", "noise": "0.1"}
    view = VIEWS["phase diagram"](state)
    names = run_python(view, capsys)
    found = names["curve"].test_error
    assert found.sizes == {"eta": 24, "alpha": 24}
    assert len(printed(view, capsys)["points"]) == 24**2
    (mesh,) = (
        one
        for one in view.figure.axes[0].collections
        if hasattr(one, "get_array") and np.size(one.get_array()) == 24**2
    )
    assert np.sort(mesh.get_array().ravel()).tolist() == np.sort(found.values.ravel()).tolist()
    assert (found.alpha[0], found.alpha[-1]) == (0.1, 4)  # as of the curve
    at = table(view).query("alpha < 0.11 and eta < 0.11").test_error
    assert float(at.iloc[0]) == pytest.approx(float(found[0, 0]), rel=1e-12)


def test_a_curve_that_is_kept_stays_below_another():
    kept, now = FEW, FEW | {"eta": "1", "student": "relu"}
    ax = curve_view(now, None, kept).figure.axes[0]
    (line,) = [one for one in ax.get_lines() if one.get_label().startswith("kept: ")]
    assert line.get_label() == "kept: student tanh, eta 3"
    expected = [point(kept | {"at": str(x)}).test_error for x in (0.5, 1.25, 2.0)]
    assert line.get_ydata() == pytest.approx(expected, rel=ORDER_OF_SUMS)
    assert ax.get_ylim()[1] > max(expected)


def test_a_kept_curve_of_another_error_is_not_drawn():
    view = curve_view(FEW, None, FEW | {"target": "sign"})
    assert "of another error" in view.note
    assert not [x for x in view.figure.axes[0].get_lines() if x.get_label().startswith("kept")]


@pytest.mark.slow
def test_the_texts_say_what_is_special_and_no_more():
    view = curve_view(DEFAULTS)
    assert "noise" not in view.python + view.command
    assert "readout" not in view.python + view.command
    assert set(options_of(DEFAULTS)) < set(DEFAULTS) - {"at", "view"}
    expression = curve_view(FEW | {"target": "z1 + z1*z2", "student": "relu"})
    assert "'z1 + z1*z2'" in expression.python
    assert "'z1 + z1*z2'" in expression.command
    assert "import numpy" not in VIEWS["spectrum"](FEW | {"theory": "srf"}).python


BAD = {
    "eta": ("-1", "eta must be"),
    "alpha0": ("abc", "alpha0 must be"),
    "beta": ("1,2", "beta must be a single number"),
    "lam": ("0.1,1", "lam must be a single number"),
    "at": ("0", "alpha must be"),
    "alpha": ("1:2", "alpha must be"),
    "student": ("nobody", "student must be"),
    "target": ("os:getcwd", "no code to import"),
    "loss": ("os:getcwd", "no code to import"),
    "readout": ("many", "readout must be"),
    "bias": ("x", "bias must be"),
    "steps": ("2", "steps must be"),
    "theory": ("other", "theory must be"),
}


@pytest.mark.parametrize("name", BAD)
def test_a_bad_value_is_refused_with_a_sentence(name):
    text, sentence = BAD[name]
    with pytest.raises(REFUSALS, match=sentence) as refused:
        point(DEFAULTS | {name: text})
    assert len(str(refused.value)) < 400
    assert "\n" not in str(refused.value)


def test_a_state_never_names_code(tmp_path, monkeypatch):
    """An address that someone else wrote imports nothing."""
    (tmp_path / "trap.py").write_text("raise SystemExit('imported')")
    monkeypatch.syspath_prepend(tmp_path)
    for name in DEFAULTS:
        with pytest.raises(replica.InvalidArgument, match="no code"):
            request_of(DEFAULTS | {name: " trap:f "})


def test_the_learned_function_is_of_the_square_loss():
    with pytest.raises(replica.InvalidArgument, match="square for the learned function"):
        VIEWS["learned function"](STATES["loss"])


@pytest.mark.slow  # a process that imports everything and trains networks: some seconds
def test_dots_are_what_the_command_gives(capsys):
    state = DEFAULTS | {"alpha": "0.5:2:7"}
    simulated = simulate(state)
    view = curve_view(state, simulated)
    line = view.command.splitlines()[1]
    points = document(capsys, line.removeprefix("replica-validate "), validate)["points"]
    errors, spread = (simulated[name].values[:, 0] for name in ("test_error", "test_error_stderr"))
    assert [one["test_error"] for one in points] == errors.tolist()
    assert [one["test_error_stderr"] for one in points] == spread.tolist()
    assert "networks, d = 300 (±2 s.e.)" in labels(view.figure.axes[0])
    alpha = simulated.alpha.values
    theory_at_dots = np.array([point(state | {"at": str(x)}).test_error for x in alpha])
    # 5 standard errors of four draws each, and the network's finite-size shift at d = 300, 20/d
    allowed = 5 * spread + 20 / 300 * theory_at_dots
    assert np.all(np.abs(errors - theory_at_dots) < allowed)


def test_the_command_names_its_extra_where_marimo_is_missing(monkeypatch, capsys):
    monkeypatch.setitem(__import__("sys").modules, "marimo", None)
    assert theory("explore --no-browser") == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.splitlines() == [
        "error: the explorer must be installed with its extra: "
        "python3 -m pip install '.[explore]' in the clone"
    ]


# Dozens of groups of neurons stand for a continuous readout: a point takes tenths of a second.
MANY_GROUPS = DEFAULTS | {"readout": "gaussian", "theory": "srf"}


@pytest.mark.slow  # what takes long is meant to
@pytest.mark.parametrize(
    ("name", "texts"), [("learning curve", "points of the curve"), ("bounds", "learning rates")]
)
def test_what_takes_long_is_drawn_with_fewer_points(name, texts, monkeypatch):
    monkeypatch.setattr(cached_results, "LINE_TIME", 0.5)
    view = VIEWS[name](MANY_GROUPS)
    line = view.figure.axes[0].lines[0]
    every = {"learning curve": 40, "bounds": 19}[name]
    assert 1 <= line.get_xdata().size < every
    assert view.note.startswith(f"{line.get_xdata().size} of {every} {texts} are computed")


def test_a_spectrum_that_takes_minutes_is_left_to_the_programs():
    view = VIEWS["spectrum"](MANY_GROUPS)
    assert view.figure is None
    assert "takes minutes; the programs below have 600 seconds" in view.note
    assert "time_limit=600.0" in view.python
    assert "--time-limit 600" in view.command
