"""The command line: published numbers, documents, files, one line for every mistake."""

import csv
import json
from dataclasses import replace

import pytest

from replica import MultiIndex, SpikedRandomFeatures, learning_curve, solve
from tests.cli.commands import document, refusal, theory
from tests.problems import ORDER_OF_SUMS, PRINTED, PUBLISHED

STEP = "curve --student tanh --target sin --alpha0 20 --eta 3"
POINT = f"{STEP} --alpha 1 --lam 0.1"


def test_published_rows(capsys):
    """docs/theory.md 13, rows 1 and 2, out of the command line to the printed digits."""
    found = document(capsys, f"{STEP} --alpha 0.2:3:5 --lam 0.1")
    assert {name: round(x, 7) for name, x in found["srf"].items()} == {
        "r": 1.1340555, "c": 1.0189732, "gamma": 0.9718544,
    }  # fmt: skip
    names = ("test_error", "train_error")
    assert {
        round(point["alpha"], 12): tuple(round(point[name], 7) for name in names)
        for point in found["points"]
    } == PRINTED
    assert all(point["converged"] and point["residual"] < 1e-10 for point in found["points"])


@pytest.mark.slow
def test_files(tmp_path, capsys):
    """Every kind, of several groups and an intercept; tables have the numbers of one another."""
    names = [f"a.{kind}" for kind in ("csv", "json", "nc", "pdf", "png", "svg")]
    for table, picture in zip(names[:3], names[3:], strict=True):
        files = f"--out {tmp_path / table} --plot {tmp_path / picture}"
        assert theory(f"{STEP} --readout=-1,2 --intercept --alpha 1,2 --lam 1 {files}") == 0
        assert (tmp_path / picture).stat().st_size > 5000
    capsys.readouterr()
    assert sorted(path.name for path in tmp_path.iterdir()) == names
    rows = list(csv.DictReader((tmp_path / "a.csv").read_text().splitlines()))
    found = json.loads((tmp_path / "a.json").read_text())
    points = found["points"]
    assert list(rows[0]) == [*points[0], *found["problem"]]
    for row, point in zip(rows, points, strict=True):
        expected = pytest.approx(point["test_error"], rel=ORDER_OF_SUMS)
        assert float(row["test_error"]) == expected


@pytest.mark.parametrize(
    ("more", "grids"),
    [("", {}), ("--readout equal,rademacher", {"readout": ["equal", "rademacher"]}),
     pytest.param("--noise 0,.1", {"noise": [0, 0.1]}, marks=pytest.mark.slow),
     pytest.param("--beta .5,2", {"beta": [0.5, 2]}, marks=pytest.mark.slow)],
)  # fmt: skip
def test_a_data_set_is_that_of_python(more, grids, tmp_path, capsys):
    """Its dimensions, numbers and attributes; a single width is no dimension."""
    import xarray

    assert theory(f"{STEP} {more} --alpha 1,2 --lam .1 --out {tmp_path / 'a.nc'}") == 0
    capsys.readouterr()
    expected = learning_curve(PUBLISHED.srf(beta=1.0), alpha=[1, 2], lam=0.1, **grids)
    with xarray.open_dataset(tmp_path / "a.nc", engine="h5netcdf") as found:
        assert list(found.sizes) == list(expected.sizes)
        xarray.testing.assert_equal(found, expected)
        assert found.attrs == expected.attrs


def test_problem_file(tmp_path, capsys):
    path = tmp_path / "problem.toml"
    path.write_text('student="tanh"\ntarget="sin"\nalpha0=20\neta=3\nalpha=[1, 2]\nlam="1e-2,.1"\n')
    assert len(document(capsys, f"curve --config {path}")["points"]) == 4
    line = f"curve --config {path} --lam 0.1 --alpha 1"
    typed = document(capsys, line)["points"]
    assert round(typed[0]["test_error"], 7) == 0.041604
    flagged = document(capsys, f"{line} --train-bias")["points"]
    path.write_text(path.read_text() + "train_bias=true\n")
    assert document(capsys, line)["points"] == flagged != typed  # a flag not typed is not false


def test_general_model(capsys):
    """Readout laws, biases and trained offsets by option: as through the library."""
    (point,) = document(capsys, f"{POINT} --readout=-1.5,-.5,.5,1.5 --intercept")["points"]
    step = replace(PUBLISHED, readout=[-1.5, -0.5, 0.5, 1.5], intercept=True)
    assert point["test_error"] == solve(step.srf(beta=1), alpha=1, lam=0.1).test_error
    relu = "curve --student relu --target tanh --alpha0 3 --eta 1 --alpha 1 --lam .1"
    plain, bias, trained = (
        document(capsys, f"{relu} {more}")["points"][0]["train_error"]
        for more in ("", "--bias 0.5", "--train-bias")
    )
    assert trained < bias < plain


def test_infinite_alpha0_is_known(capsys):
    """In the document it can be read back; only what is unknown is null."""
    line = "curve --student tanh --target sin --alpha0 inf --eta 1 --alpha 1 --lam 1"
    assert document(capsys, line)["problem"]["alpha0"] == "inf"


def test_a_bias_of_groups_is_used_and_given_once(tmp_path, capsys):
    path = tmp_path / "groups.toml"
    text = 'student = "relu"\ntarget = "sin"\nalpha = 1\nlam = 0.1\n'
    groups = "[groups]\nr = [1.0, 2.0]\nc = 1.0\ngamma = 0.9\n"
    found = []
    for bias in ("", "bias = [-1, 1]\n"):
        path.write_text(text + groups + bias)
        found.append(document(capsys, f"curve --config {path}")["points"][0]["test_error"])
    path.write_text(text + groups)
    assert found[0] != found[1]
    assert document(capsys, f"curve --config {path} --bias=-1")["problem"]["bias"] != 0
    path.write_text(text + groups + "bias = [-1, 1]\n")
    assert "given once" in refusal(capsys, f"curve --config {path} --bias=-1")


def test_problem_file_with_groups(tmp_path, capsys, monkeypatch):
    """Two spikes, four groups and a target of two directions from the user's own module."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mytargets.py").write_text(
        "from replica import MultiIndex\nhard = MultiIndex(lambda a, b: a + a * b, dimension=2)\n"
    )
    (tmp_path / "problem.toml").write_text(
        'student = "tanh"\ntarget = "mytargets:hard"\nalpha = 1\nlam = 0.1\n[groups]\n'
        "r = [[1, 0.5], [1, -0.5]]\nc = [1, 1.5]\nfractions = [0.25, 0.75]\n"
        "gamma = [[0.9, 0], [0, 0.8]]\n"
    )
    (point,) = document(capsys, "curve --config problem.toml --allow-import")["points"]

    model = SpikedRandomFeatures(
        student="tanh", target=MultiIndex(lambda a, b: a + a * b, dimension=2), c=[1, 1.5],
        r=[[1, 0.5], [1, -0.5]], fractions=[0.25, 0.75], gamma=[[0.9, 0], [0, 0.8]],
    )  # fmt: skip
    assert point["test_error"] == solve(model, alpha=1, lam=0.1).test_error


def test_plain_functions_of_a_module_are_answered_with_the_line_that_wraps_them(
    tmp_path, capsys, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "plain.py").write_text("def pair(z1, z2):\n    return z1 * z2\n")
    step = "curve --student tanh --alpha0 2 --eta 1 --alpha 1 --lam 1 --allow-import"
    said = refusal(capsys, f"{step} --target plain:pair")
    assert "such as replica.MultiIndex(function of z1 and z2, dimension=2), got" in said
    said = refusal(capsys, f"{step} --target sin --loss plain:pair")
    assert "a Loss: pair = replica.Loss(value=..., derivative=...), got plain:pair" in said


@pytest.mark.parametrize(
    ("command", "unknown"),
    [
        ("curve --alpha 2 --lam .1", "test_error"),
        pytest.param("bounds", "lower", marks=pytest.mark.slow),
    ],
)
def test_what_did_not_converge_is_null_and_exits_1(command, unknown, capsys, caplog):
    """The best bias lies beyond those that are searched; the document is still printed."""
    line = f"{command} --student softplus --target linear --r 1 --c 1 --gamma .9 --train-bias"
    assert theory(f"{line} --json") == 1
    out, err = capsys.readouterr()
    found = json.loads(out)
    (point,) = found["points" if "points" in found else "bounds"]
    assert point[unknown] is None
    assert point["converged"] is False
    if "status" in point:
        assert point["status"].startswith("not converged")
        assert err.count("1 of 1 points: not converged") == 1
        assert caplog.text == ""  # which would say it again


def test_several_steps(capsys, tmp_path):
    """docs/theory.md 13, last row."""
    line = "curve --student tanh --target sin --alpha 1 --lam .05"
    found = document(capsys, f"{line} --steps 2:1,2:1,2:1")
    assert round(found["points"][0]["test_error"], 4) == 0.0759
    assert [round(step["gamma"][0], 4) for step in found["steps"]] == [0.7937, 0.9096, 0.9538]
    assert found["problem"]["steps"] == [[2, 1]] * 3
    config = tmp_path / "problem.toml"
    config.write_text("steps = [[2, 1], [2, 1], [2, 1]]\n")
    assert document(capsys, f"{line} --config {config}") == found


@pytest.mark.parametrize(
    "command", ["curve --lam .1", pytest.param("spectrum", marks=pytest.mark.slow)]
)
def test_the_tolerance_that_a_warning_names_is_an_option(command, capsys):
    line = f"{command} --student tanh --target sin --r 2 --c 1 --gamma .8 --alpha 1"
    assert theory(line) == 0
    assert theory(f"{line} --quadrature-tol 1e-30") == 1
    named = "a larger --quadrature-tol of replica curve, readout or spectrum, or replica-validate"
    assert named in capsys.readouterr().err


def test_workers_and_time_limit(capsys):
    assert "--workers must be a whole number" in refusal(capsys, f"{POINT} --workers 0")
    sharp = "curve --student tanh --target sin --r 1e4 --c 1 --gamma .8 --alpha 1 --lam .1"
    (point,) = document(capsys, f"{sharp} --time-limit 1e-9", status=1)["points"]
    assert "longer than it may" in point["status"]
    assert theory(f"{sharp} --time-limit 1e-9") == 1
    assert capsys.readouterr().err.endswith(": try --time-limit 200\n")
