"""``replica readout``, and simulations of the same: a first layer, or features, in files."""

from pathlib import Path

import numpy as np
import pytest

from replica import (
    FeatureSample,
    FirstLayer,
    GaussianMixture,
    learning_curve,
    samples_needed,
    solve,
)
from tests.cli.commands import document, refusal, theory, validate

LAYER = "--weights W.npy --student tanh --target sin --directions D.npy"
POINTS = "--samples 40,80 --lam 1"
FEATURES = "--features F.npy --labels y.npy"
BESIDE_PYTHON = 1e-12  # relative: the same numbers, but for the order of sums


def layer():
    rng = np.random.default_rng(0)
    direction = np.eye(30)[0]
    weights = 0.5 * rng.standard_normal((20, 30)) / np.sqrt(30)
    weights += 0.3 * np.outer(rng.choice([-1, 1], 20), direction)
    return {"weights": weights, "directions": direction}


def sample():
    labels = np.repeat([1.0, -1.0], 1000)
    features = np.random.default_rng(1).standard_normal((2000, 4)) + 0.5 * labels[:, None]
    return {"features": features, "labels": labels}


@pytest.fixture(autouse=True)
def files(tmp_path, monkeypatch):
    """A folder with the arrays of a layer and of a sample."""
    monkeypatch.chdir(tmp_path)
    arrays = layer() | sample()
    names = {"weights": "W", "directions": "D", "features": "F", "labels": "y"}
    for name, file in names.items():
        np.save(f"{file}.npy", arrays[name])
    np.savez("net.npz", **{"fc1.weight": arrays["weights"], "fc1.bias": np.full(20, 0.3)})
    np.savez("one.npz", arrays["directions"])
    return tmp_path


def errors(curve):
    return [tuple(curve[name].values.ravel()) for name in ("test_error", "train_error")]


def printed(found):
    return [tuple(p[name] for p in found["points"]) for name in ("test_error", "train_error")]


def test_a_layer_is_that_of_python(capsys):
    """Its arrays from NPY and NPZ files, by columns and of single precision too."""
    np.save("W.npy", np.asfortranarray(layer()["weights"].astype("float32")))
    found = document(capsys, f"readout {LAYER} --noise .1 --bias net.npz:fc1.bias {POINTS}")
    weights = layer()["weights"].astype("float32")
    of = layer() | {"weights": weights, "bias": np.full(20, 0.3), "noise": 0.1}
    curve = learning_curve(FirstLayer(student="tanh", target="sin", **of), samples=[40, 80], lam=1)
    assert found["problem"] == {
        "weights": "20 x 30", "student": "tanh", "target": "sin", "noise": 0.1,
    }  # fmt: skip
    assert [(p["samples"], p["lam"], p["converged"]) for p in found["points"]] == [
        (40, 1, True), (80, 1, True),
    ]  # fmt: skip
    np.testing.assert_allclose(printed(found), errors(curve), rtol=BESIDE_PYTHON)
    line = LAYER.replace("D.npy", "one.npz")
    again = document(capsys, f"readout {line} --noise .1 --bias .3 {POINTS}")
    np.testing.assert_allclose(printed(again), printed(found), rtol=BESIDE_PYTHON)


@pytest.mark.slow
def test_features_are_those_of_python(capsys):
    line = f"readout {FEATURES} {POINTS} --loss logistic"
    curve = learning_curve(FeatureSample(**sample()), samples=[40, 80], lam=1, loss="logistic")
    found = document(capsys, line)
    np.testing.assert_allclose(printed(found), errors(curve), rtol=BESIDE_PYTHON)
    assert 0 < found["points"][0]["classification_error"] < 0.5
    strata = np.repeat(["a", "b"], 1000)
    np.save("s.npy", strata)
    given = FeatureSample(**sample(), strata=strata)
    curve = learning_curve(given, samples=[40, 80], lam=1, loss="logistic")
    np.testing.assert_allclose(printed(document(capsys, f"{line} --strata s.npy")), errors(curve),
                               rtol=BESIDE_PYTHON)  # fmt: skip


@pytest.mark.parametrize("version", [(1, 0), (2, 0), (3, 0)])
@pytest.mark.parametrize("made", [np.asfortranarray, lambda x: x.astype(">f8"), np.array])
def test_arrays_of_every_version_and_order(files, made, version, capsys):
    """Those of fields are refused, also where 3.0 has the name of one in letters of its own."""
    line = f"readout {FEATURES} --samples 40 --lam 1"
    expected = printed(document(capsys, line))
    with open(files / "F.npy", "wb") as stream:
        np.lib.format.write_array(stream, made(sample()["features"]), version=version)
    np.testing.assert_allclose(printed(document(capsys, line)), expected, rtol=BESIDE_PYTHON)
    with open(files / "F.npy", "wb") as stream:
        name = "ä" if version == (3, 0) else "a"
        np.lib.format.write_array(stream, np.zeros(9, [(name, "f8")]), version=version)
    assert "a file of plain arrays of numbers; this one is of [(" in refusal(capsys, line)


@pytest.mark.parametrize(
    ("made", "classes"),
    [
        (lambda y: y[:, None], ""), (lambda y: y > 0, ""),
        (lambda y: y > 0, " --classes False,True"),
        (lambda y: (y[:, None] > 0).astype(int), ""), (lambda y: np.where(y > 0, "dog", "cat"), ""),
    ],
)  # fmt: skip
def test_labels_of_two_classes_in_a_file(made, classes, capsys):
    line = f"readout {FEATURES} --samples 40 --lam 1"
    expected = printed(document(capsys, line))
    np.save("y.npy", made(sample()["labels"]))
    found = document(capsys, line + classes)
    np.testing.assert_allclose(printed(found), expected, rtol=BESIDE_PYTHON)


@pytest.mark.parametrize(
    ("labels", "classes", "named"),
    [
        ([0, 1, 2], "2,1,0", (2, 1, 0)), ([0.0, 1.0, 2.0], "0,1,2", (0, 1, 2)),
        (["a", "b", "c"], "'c, a, b'", ("c", "a", "b")), ([5, 7, 9], "all", (5, 7, 9)),
        (["1", "2", "3"], "1,2,3", ("1", "2", "3")), ([0, 1, 2], "'0, 1, 2'", (0, 1, 2)),
        (np.eye(3), "a,b,c", ("a", "b", "c")), (np.eye(3), "all", (0, 1, 2)),
        ([[5], [7], [9]], "all", (5, 7, 9)), ([-1, 0, 1], "all", (-1, 0, 1)),
    ],
)  # fmt: skip
def test_classes_are_named_in_the_order_of_outputs(labels, classes, named, capsys):
    of = np.arange(2000) % 3
    labels = np.array(labels)[of]
    np.save("y.npy", labels)
    found = document(capsys, f"readout {FEATURES} --classes {classes} --samples 40 --lam 1")
    labels = labels.astype(int) if labels.dtype == float and labels.ndim == 1 else labels
    own = FeatureSample(features=sample()["features"], labels=labels, classes=named)
    curve = learning_curve(own, samples=40, lam=1)
    assert found["problem"]["classes"] == 3
    np.testing.assert_allclose(
        found["points"][0]["classification_error"], curve.classification_error, rtol=1e-9
    )


@pytest.mark.slow
def test_the_best_penalty(capsys):
    """At every number of samples, and with the samples that an error needs."""
    few = {name: values[950:1050:4] for name, values in sample().items()}
    np.save("F.npy", few["features"])
    np.save("y.npy", few["labels"])
    found = document(capsys, f"readout {FEATURES} --samples 12 --lam best")["points"]
    curve = learning_curve(FeatureSample(**few), samples=[12], lam="best")
    assert [point["lam"] for point in found] == pytest.approx(curve.lam.values, rel=1e-9)
    line = f"readout {FEATURES} --lam best --reach"
    (point,) = document(capsys, f"{line} .25")["points"]
    of = samples_needed(FeatureSample(**few), lam="best", classification_error=0.25)
    assert point["samples"] == pytest.approx(of.samples, rel=1e-9)
    beside = np.searchsorted(of.curve.samples, of.samples) + np.array([-1, 0])
    low, high = sorted(of.curve.lam.values[beside])
    assert low <= point["lam"] <= high
    assert theory(f"{line} .01") == 1
    unreached = samples_needed(FeatureSample(**few), lam="best", classification_error=0.01)
    assert f"lam {unreached.lam:.4g}, samples more than" in capsys.readouterr().out
    reach = f"readout {FEATURES} --lam 1 --reach"
    assert "1 - accuracy), got 0.95" in refusal(capsys, f"{reach} 0.95")
    assert "or best alone where it is searched, got best" in refusal(
        capsys, f"compare {FEATURES} --samples 12 --lam best", validate
    )


@pytest.mark.slow
def test_how_many_samples_an_error_needs(capsys):
    layer_line = f"readout {LAYER} --lam 1 --reach .5"
    assert "beyond_rows" not in document(capsys, layer_line)["points"][0]
    line = f"readout {FEATURES} --lam 1"
    (point,) = document(capsys, f"{line} --reach .2")["points"]
    of = samples_needed(FeatureSample(**sample()), lam=1, classification_error=0.2)
    assert point["samples"] == pytest.approx(of.samples, rel=BESIDE_PYTHON)
    assert point["low"] < point["samples"] < point["high"]
    assert point["low_and_high"] in repr(of)
    assert theory(f"{line} --reach 20% --out band.csv") == 0
    assert float(Path("band.csv").read_text().splitlines()[1].split(",")[0]) == 0.2
    words = "of the error less and plus 2 standard errors over test rows"
    assert words in capsys.readouterr().err.replace("\n", " ")
    assert words in Path("band.csv").read_text()
    assert theory(f"{line} --reach .01") == 1
    out, err = capsys.readouterr()
    assert "nan" not in out
    assert "samples more than 2000, the largest tried (smallest" in out.replace("\n", " ")
    assert "at 200000 samples the error is 0.158" in err
    assert theory(f"{line} --reach .16") == 0
    high = "high is not known: the error plus 2 standard errors is still above 0.16 at 2000 samples"
    assert f"{high}, the largest tried (--most tries more)" in capsys.readouterr().err
    assert theory(f"{line} --reach .2 --most 10") == 1
    assert "more samples (--most), or other" in capsys.readouterr().err
    more = document(capsys, f"{line} --reach .2 --most 4000")["points"][0]
    assert more["samples"] == pytest.approx(point["samples"], rel=0.02)  # other points between
    for more, message in (
        ("--lam 1 --samples 40", "--samples must be left out with --reach"),
        ("--lam 1,2", "--lam must be one number with --reach"),
        ("--lam 1 --confusion", "--confusion must be left out with --reach"),
        ("--lam 1 --most 2", "--most must be 8 or more"),
        ("--lam 1 --quadrature-tol 1e-4", "--quadrature-tol must be left out with --reach"),
        ("", "--lam must be given: Ridge penalty lambda: --lam 0.1, or a grid, or --lam best"),
    ):
        assert message in refusal(capsys, f"readout {FEATURES} --reach .3 {more}")
    told = refusal(capsys, f"{line} --reach 2")
    assert "--reach must be an error, more than 0 and less than 0.5, that of a guess" in told
    assert "--most must be given with --reach" in refusal(capsys, f"{line} --samples 9 --most 99")


def test_more_samples_than_rows_are_said(caplog):
    assert theory(f"readout {FEATURES} --samples 1000,4000 --lam 1 --out a.tex") == 0
    _, _, _, header, _, within, beyond, *_, note = Path("a.tex").read_text().splitlines()
    assert header.startswith(r"$n$ & $\lambda$ & classification error & test error & train error")
    assert "kappa" not in header  # what the table of a paper has no room for
    assert [r"\rlap{$^a$} \\" in row for row in (within, beyond)] == [False, True]
    assert note.startswith("% a: more samples than rows")
    assert "1 of 2 points, at samples 4000, have more samples than rows" in caplog.text
    caplog.clear()
    assert theory(f"readout {FEATURES} --samples 1000 --lam 1") == 0
    assert "more samples" not in caplog.text


def test_several_classes(capsys):
    """Their confusion as text, data and a picture."""
    of = np.arange(600) % 3
    features = np.random.default_rng(2).standard_normal((600, 4)) + np.eye(3, 4)[of]
    np.save("F.npy", features)
    np.save("of.npy", np.array(["ape", "bee", "cow"])[of])
    np.save("vectors.npy", features[:, :2])
    line = "readout --features F.npy --labels of.npy --lam 0.1"
    assert theory(f"{line} --samples 100 --confusion --plot of.png") == 0
    assert Path("of.png").read_bytes()[1:4] == b"PNG"
    shown = [row.split() for row in capsys.readouterr().out.splitlines()[-4:]]
    assert shown[0] == ["of", "class", "ape", "bee", "cow"]
    expected = solve(FeatureSample(features=features, labels=of), samples=100, lam=0.1).confusion
    found = document(capsys, f"{line} --samples 100 --confusion")["confusion"]
    for name, row, shares in zip(["ape", "bee", "cow"], shown[1:], expected, strict=True):
        assert [*found[name].values()] == pytest.approx(shares, rel=BESIDE_PYTHON)
        assert row == [name, *(f"{100 * share:.1f}" for share in shares)]
    for file, has_matrix in (("of.csv", False), ("of.json", True)):
        assert theory(f"{line} --samples 100 --confusion --out {file}") == 0
        assert ("--out FILE.json has" in capsys.readouterr().err) != has_matrix
        assert ("confusion" in Path(file).read_text()) == has_matrix
    for more, message in (
        ("--samples 50,100 --confusion --plot of.png", "with one --samples and one --lam"),
        ("--samples 50 --confusion --labels vectors.npy", "of labels that are classes"),
    ):
        words = line.replace("--labels of.npy", "") if "--labels" in more else line
        assert message in refusal(capsys, f"{words} {more}")
    np.save("two.npy", of > 0)
    two = document(capsys, f"{line.replace('of.npy', 'two.npy')} --samples 100 --confusion")
    assert [*two["confusion"]] == ["False", "True"]
    best = document(capsys, f"{line.replace('0.1', 'best')} --samples 100 --confusion")
    at = dict(samples=100, lam=best["points"][0]["lam"])
    expected = solve(FeatureSample(features=features, labels=of), **at).confusion
    found = [[*row.values()] for row in best["confusion"].values()]
    np.testing.assert_allclose(found, expected, rtol=BESIDE_PYTHON)


def test_inputs_of_a_mixture(files, capsys):
    """Means as lists, covariances in a file beside the one that names it."""
    folder = files / "law"
    folder.mkdir()
    np.save(folder / "C.npy", np.diag([1, 0.5]))
    text = 'means = [[1, 0], [-1, 0]]\ncovariances = "C.npy"\nfractions = [0.3, 0.7]\n'
    (folder / "inputs.toml").write_text(text)
    found = document(capsys, f"readout {LAYER} --inputs law/inputs.toml --alpha 2 --lam 1")
    law = GaussianMixture(
        means=[[1, 0], [-1, 0]], covariances=np.diag([1, 0.5]), fractions=[0.3, 0.7]
    )
    of = FirstLayer(student="tanh", target="sin", inputs=law, **layer())
    expected = errors(learning_curve(of, alpha=2, lam=1))
    np.testing.assert_allclose(printed(found), expected, rtol=BESIDE_PYTHON)


def test_a_problem_file_names_arrays(files, capsys):
    """A name with a colon is no code to import there."""
    keys = {"weights": "net.npz:fc1.weight", "directions": "D.npy"}
    keys |= {"student": "tanh", "target": "sin"}
    text = "".join(f"{name} = '{value}'\n" for name, value in keys.items())
    (files / "problem.toml").write_text(f"{text}samples = [40, 80]\nlam = 1\n")
    found = document(capsys, "readout --config problem.toml")
    assert printed(found) == printed(document(capsys, f"readout {LAYER} {POINTS}"))
    assert "--weights must be left out here" in refusal(capsys, "curve --config problem.toml")


def test_table_files_and_figure(files, capsys):
    assert theory(f"readout {LAYER} {POINTS} --out a.csv --plot a.png") == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == ["samples", "lam", "test_error", "train_error", "converged"]
    assert len((files / "a.csv").read_text().splitlines()) == len(lines) == 3
    assert (files / "a.png").stat().st_size > 10_000


def test_samples_are_whole(capsys):
    found = document(capsys, f"readout {FEATURES} --samples 40:80:3:log --lam 1")
    assert [point["samples"] for point in found["points"]] == [40, 57, 80]


def test_what_is_not_known_well_enough_is_said(capsys):
    line = f"readout {LAYER} {POINTS} --quadrature-tol 1e-14"
    points = document(capsys, line, status=1)["points"]
    assert [point["test_error"] for point in points] == [None, None]
    assert theory(line) == 1
    warning = capsys.readouterr().err
    assert "WARNING: 2 of 2 points" in warning
    assert "(a larger --quadrature-tol of replica curve, readout or spectrum, or re" in warning


@pytest.mark.parametrize("given", [LAYER, FEATURES])
def test_the_same_is_simulated(given, capsys):
    line = f"{given} {POINTS} --seeds 3 --rng 1"
    compared = document(capsys, f"compare {line}", validate)["points"]
    assert [p["test_error"] for p in compared[::2]] == pytest.approx(
        printed(document(capsys, f"readout {given} {POINTS}"))[0], rel=1e-6
    )
    simulated = document(capsys, f"simulate {line}", validate)["points"]
    assert [p["test_error"] for p in simulated] == [p["test_error"] for p in compared[1::2]]


def test_a_score_over_a_standard_error_of_zero_is_shown(capsys):
    """Both draws of the one row that is left are right."""
    assert validate(f"compare {FEATURES} --samples 1999 --lam 1 --seeds 2 --rng 0") == 0
    assert "-inf" in capsys.readouterr().out


def test_a_limit_of_time_has_the_name_of_its_option(capsys):
    np.save("many.npy", np.random.default_rng(0).standard_normal((2000, 200)))
    np.save("of.npy", np.arange(2000) % 5)
    line = "readout --features many.npy --labels of.npy --samples 500 --lam best"
    assert theory(f"{line} --time-limit 0.1") == 1
    err = capsys.readouterr().err
    assert "(a larger --time-limit gives it more seconds)" in err


@pytest.mark.parametrize("lam", ["1", "0.123456789", "1,1.23456789e-5"])
@pytest.mark.parametrize("of", ["square", "logistic"])
def test_tables_have_losses_first_and_standard_errors_last(of, lam, capsys):
    """However many digits there are."""
    assert theory(f"readout {FEATURES} --samples 100 --lam {lam} --loss {of}") == 0
    heads = capsys.readouterr().out.split("\n")[0].split()
    if of == "square":
        assert heads[-2:] == ["converged", "classification_error_stderr"]
    else:
        assert heads[2:5] == ["classification_error", "converged", "loss_error"]
