"""What the explorer shows: the texts of a state give its numbers, and bad states a sentence."""

import json
import shlex

import numpy as np
import pytest

import replica
from replica.explore import DEFAULTS, REFUSALS, VIEWS, curve_view, point, simulate
from replica.explore.texts import options_of, request_of
from tests.cli.commands import document, theory, validate

FEW = DEFAULTS | {"alpha": "0.5:2:3"}
# Each differs from the defaults in what the texts have to say.
STATES = {
    "published": FEW,
    "network": FEW | {"model": "network", "student": "relu", "beta": "0.5", "noise": "0.1"},
    "readout": FEW | {"readout": "-1,1.5", "alpha0": "inf", "alpha": "1,2"},
    "loss": FEW | {"loss": "huber:0.5", "alpha": "1:2:2:log", "lam": "0.02"},
}


def run_python(view, capsys):
    """The names that the program defines."""
    names = {}
    exec(compile(view.python, "explorer", "exec"), names)
    assert capsys.readouterr().out
    return names


@pytest.mark.parametrize("name", STATES)
def test_python_and_command_give_the_curve(name, capsys):
    state = STATES[name]
    view = curve_view(state)
    names = run_python(view, capsys)
    assert names["point"].test_error == point(state).test_error
    drawn = view.figure.axes[0].lines[0].get_ydata()
    assert np.array_equal(names["curve"].test_error.values.ravel(), drawn)
    program, *words = shlex.split(view.command)
    assert program == "replica"
    points = document(capsys, shlex_line(words))["points"]
    assert [one["test_error"] for one in points] == list(drawn)


def shlex_line(words):
    """Words as the tests' commands take them: none here has a blank."""
    assert not any(" " in word for word in words)
    return " ".join(words)


@pytest.mark.parametrize("model", ["srf", "network"])
def test_texts_of_the_bounds(model, capsys):
    view = VIEWS["bounds"](DEFAULTS | {"model": model})
    found = run_python(view, capsys)["found"]
    points = document(capsys, shlex_line(shlex.split(view.command)[1:]))["bounds"]
    assert [one["lower"] for one in points] == found.lower.tolist()
    assert [one["upper"] for one in points] == found.upper.tolist()
    drawn = view.figure.axes[0].lines[0].get_ydata()
    assert np.array_equal(drawn, found.upper)


def test_texts_of_the_spectrum(capsys):
    view = VIEWS["spectrum"](DEFAULTS)
    found = run_python(view, capsys)["found"]
    printed = document(capsys, shlex_line(shlex.split(view.command)[1:]))
    assert printed["edges"] == found.edges.tolist()
    assert printed["outliers"] == found.outliers.tolist()
    assert len(found.outliers) > 0
    labels = [text.get_text() for text in view.figure.axes[0].get_legend().get_texts()]
    assert any("outlier" in label for label in labels)


def test_texts_of_the_learned_function(capsys):
    view = VIEWS["learned function"](DEFAULTS)
    names = run_python(view, capsys)
    (one,) = document(capsys, shlex_line(shlex.split(view.command)[1:]))["points"]
    assert one["test_error"] == names["point"].test_error
    (mean,) = (x for x in view.figure.axes[0].lines if "learned" in x.get_label())
    x, y = mean.get_data()
    assert np.interp(1.0, x, y) == pytest.approx(names["learned"].mean(1.0), abs=1e-12)


def test_the_texts_say_what_is_special_and_no_more():
    view = curve_view(DEFAULTS)
    assert "noise" not in view.python + view.command
    assert "readout" not in view.python + view.command
    assert set(options_of(DEFAULTS)) < set(DEFAULTS) - {"at", "view"}
    expression = curve_view(FEW | {"target": "z1 + z1*z2", "student": "relu"})
    assert "'z1 + z1*z2'" in expression.python
    assert "'z1 + z1*z2'" in expression.command
    assert "import numpy" not in VIEWS["spectrum"](DEFAULTS).python


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
    "model": ("other", "model must be"),
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
    state = DEFAULTS | {"alpha": "0.5:2:7", "model": "network"}
    simulated = simulate(state)
    view = curve_view(state, simulated)
    line = view.command.splitlines()[1]
    assert validate(shlex_line([*shlex.split(line)[1:], "--json"])) == 0
    points = json.loads(capsys.readouterr().out)["points"]
    assert [one["simulated_test"] for one in points] == simulated.test_error.tolist()
    assert [one["stderr_test"] for one in points] == simulated.standard_error.tolist()
    theory_at_dots = np.array([point(state | {"at": str(x)}).test_error for x in simulated.alpha])
    # 5 standard errors of four draws each, and the network's finite-size shift at d = 300, 20/d
    allowed = 5 * simulated.standard_error + 20 / 300 * theory_at_dots
    assert np.all(np.abs(simulated.test_error - theory_at_dots) < allowed)


@pytest.mark.slow
def test_a_simulation_that_is_refused_says_why():
    with pytest.raises(replica.InvalidArgument, match="the simulation must be possible"):
        simulate(DEFAULTS | {"alpha0": "inf"})


def test_the_command_names_its_extra_where_marimo_is_missing(monkeypatch, capsys):
    monkeypatch.setitem(__import__("sys").modules, "marimo", None)
    assert theory("explore --no-browser") == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.splitlines() == [
        "error: the explorer must be installed with its extra: pip install 'replica-srf[explore]'"
    ]


# Dozens of groups of neurons stand for a continuous readout: a point takes tenths of a second.
MANY_GROUPS = DEFAULTS | {"readout": "gaussian"}


@pytest.mark.slow  # what takes long is meant to
@pytest.mark.parametrize(
    ("name", "texts"), [("learning curve", "points of the curve"), ("bounds", "learning rates")]
)
def test_what_takes_long_is_drawn_with_fewer_points(name, texts, monkeypatch):
    monkeypatch.setattr("replica.explore.views.WAIT", 1.0)
    view = VIEWS[name](MANY_GROUPS)
    drawn = view.figure.axes[0].lines[0].get_xdata()
    every = {"learning curve": 40, "bounds": 31}[name]
    assert 2 <= len(drawn) < every
    assert view.note.startswith(f"{len(drawn)} of {every} {texts} are drawn")
    ends = [float(drawn[0]), float(drawn[-1])]
    assert ends == pytest.approx({"learning curve": [0.1, 4.0], "bounds": [0.1, 30.0]}[name])


def test_a_whole_figure_has_no_note():
    assert [VIEWS[name](FEW).note for name in VIEWS] == [""] * len(VIEWS)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["spectrum", "learned function"])
def test_what_has_no_fewer_points_is_refused(name, monkeypatch):
    monkeypatch.setattr("replica.explore.views.WAIT", 1e-6)
    with pytest.raises(REFUSALS, match="time_limit"):
        VIEWS[name](MANY_GROUPS)
