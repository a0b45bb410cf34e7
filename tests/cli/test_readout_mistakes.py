"""Arrays, classes and options that ``replica readout`` refuses, each in one line."""

from pathlib import Path

import numpy as np
import pytest

from tests.cli.commands import refusal, validate
from tests.cli.test_readout import FEATURES, LAYER, POINTS, files, layer, sample

__all__ = ["files"]  # the folder of its arrays


def test_classes_that_are_none_of_the_labels_are_refused(files, capsys):
    np.save("y.npy", np.arange(2000) % 3)
    lines = "classes = [0, 1, 2.5]", "features = 'F.npy'", "labels = 'y.npy'"
    (files / "a.toml").write_text("\n".join(lines))
    assert "--classes must be" in refusal(capsys, "readout --config a.toml --samples 40 --lam 1")
    np.save("y.npy", np.arange(2000) / 7)
    assert refusal(capsys, f"readout {FEATURES} --classes all --samples 40 --lam 1") == (
        "error: --classes must be left out of labels that are real numbers, got all"
    )


HUGE = "{'descr': '<f8', 'fortran_order': False, 'shape': (100000, 100000), }"


def bad_arrays():
    """Files that hold no such array as is wanted."""
    np.save("pickled.npy", np.array([{}, None], dtype=object), allow_pickle=True)
    np.save("ids.npy", np.full(2000, np.nan))
    np.save("gaps.npy", np.array(["a", None] * 1000).astype(str))
    np.save("WT.npy", layer()["weights"].T)
    np.save("turned.npy", sample()["features"].T)
    np.save("classes.npy", np.arange(2000) % 3)
    Path("gap.csv").write_text("a,kind\n1,x\n2,y\n3,\n")
    np.savez("empty.npz")
    header = HUGE.ljust(117).encode() + b"\n"
    head = b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little")
    Path("huge.npy").write_bytes(head + header)
    Path("pickle.npy").write_bytes(b"\x80\x04N.")
    Path("means.toml").write_text("means = [[1, 0], [1]]")
    Path("other.toml").write_text("means = [[1, 0]]\nmean = 1")


@pytest.mark.parametrize(
    ("line", "parts"),
    [
        (LAYER.replace("W.npy", "huge.npy"), ["--weights", "at most 1 GiB", "(100000, 100000)"]),
        (LAYER.replace("W.npy", "D.npy"), ["--weights", "2 axes", "(30,)", "x.reshape(len(x), -1"]),
        (LAYER.replace("W.npy", "pickled.npy"), ["--weights", "nothing pickled is read"]),
        (LAYER.replace("W.npy", "pickle.npy"), ["--weights", "a whole NPY file"]),
        (LAYER.replace("W.npy", "none.npy"), ["--weights", "No such file"]),
        (LAYER.replace("W.npy", "a\0.npy"), ["--weights", "null"]),
        (LAYER.replace("W.npy", "W.mat"), ["--weights", "FILE.npz:NAME", "W.mat"]),
        (LAYER.replace("W.npy", "net.ckpt:a.b"), ["weights.npy, which this writes: python3 -c",
                                                  'True)["state_dict"]', '["a.b"]']),
        (LAYER.replace("W.npy", "net.npz"), ["--weights must be net.npz:NAME of one of its arrays",
                                             "fc1.weight, fc1.bias"]),
        (LAYER.replace("W.npy", "empty.npz"), ["--weights must be a file with an array in it"]),
        (LAYER.replace("W.npy", "net.npz:fc2"), ["--weights", "fc1.weight, fc1.bias", "fc2"]),
        (LAYER.partition(" --directions")[0], ["--directions must be given"]),
        (f"{LAYER} --bias D.npy", ["--bias", "of shape (20,), or a number"]),
        (f"{LAYER} --bias 1,2", ["--bias", "of shape (20,), or a number"]),
        (LAYER.replace("W.npy", "WT.npy"), ["--weights", "transposed, give weights.T, in Pyth"]),
        (f"{LAYER} --noise 0,1", ["--noise", "single"]),
        (f"{LAYER} --alpha 1", ["--alpha must be left out with --samples"]),
        (f"{LAYER} --labels y.npy", ["--labels must be left out with --weights"]),
        (f"{LAYER} --features F.npy", ["must be left out with --features"]),
        (f"{LAYER} --inputs means.toml", ["--inputs", "whose means are an array of numbers"]),
        (f"{LAYER} --inputs other.toml", ["--inputs must be a table of means, covariances, frac"]),
        (f"{LAYER} --inputs none.toml", ["--inputs", "a readable TOML file"]),
        (FEATURES.replace("y.npy", "D.npy"), ["--labels", "2000 rows"]),
        (f"{FEATURES} --strata ids.npy", ["leave out rows without strata"]),
        (FEATURES.replace("y.npy", "pickled.npy"), ["--labels", "numbers or text",
                                                    "NaN, numpy.array(labels).astype(str), be"]),
        (FEATURES.replace("y.npy", "gaps.npy"), ["leave out rows without labels", "--classes all",
                                                 "in row 1, the first of 1000 such"]),
        (FEATURES.replace("y.npy", "ids.npy") + " --classes all", ["leave out rows without"]),
        (FEATURES.replace("y.npy", "y.csv"), ["--labels", "No such file"]),
        (FEATURES.replace("F.npy", "turned.npy"), ["--labels must be one for each of the 4 rows",
                                                   "transposed, give features.T, in Python"]),
        ("--features y.npy --labels F.npy", ["--features must be an array of 2 axes", "(2000,)"]),
        (f"{FEATURES} --classes a,b", ["--classes must be those of the labels"]),
        (f"{LAYER} --classes a,b", ["--classes must be left out with --weights"]),
        (f"{FEATURES} --time-limit -1", ["--time-limit"]),
        (FEATURES.replace("F.npy", "gap.csv").replace("y.npy", "gap.csv:kind"),
         ["leave out rows without labels", "in row 2, the first of 1 such rows"]),
        (f"{FEATURES} --intercept True", ["unexpected extra argument", "True"]),
        ("--features F.npy F.npy", ["unexpected extra argument", "F.npy"]),
        (f"{FEATURES} --accuracy .9", ["did you mean --reach of replica readout, an error?"]),
        (f"{FEATURES} --reach abc", ["'--reach'", "valid number"]),
        (f"{FEATURES} --reach .1,.2", ["'--reach'", "not .1,.2 (run the command once for each)"]),
        (f"{FEATURES} --reach 5%,9%", ["such as 0.05 or 5%, not 5%,9% (run the command once"]),
        (LAYER.replace("W.npy", "W.gz"), ["a table FILE.csv or FILE.tsv, also with .gz", "W.gz"]),
        (FEATURES.replace("y.npy", "classes.npy") + " --loss logistic",
         ['for a file numpy.save("y.npy", labels == c)']),
        ("--student tanh", ["--weights must be given, or --features"]),
        ("--features F.npy", ["--labels must be given: Their labels (N,)"]),
    ],
)  # fmt: skip
def test_bad_files_are_one_line(line, parts, capsys):
    bad_arrays()
    message = refusal(capsys, f"readout {line} {POINTS}")
    for part in parts:
        assert part in message


def test_samples_are_numbers_of_rows(capsys):
    bad_arrays()
    message = refusal(capsys, f"readout {LAYER} --samples .5,40 --lam 1")
    told = "positive, from 1 to 1e+30 (n), got 0.5"
    assert f"--samples must be {told}" in message
    told = "a number of rows, 1 or more (0.25 of the 2000 rows are 500), got 0.25"
    for samples in (".25", ".25:1:4 --confusion"):
        message = refusal(capsys, f"readout {FEATURES} --lam best --samples {samples}")
        assert f"--samples must be {told}" in message
    all_rows = refusal(capsys, f"compare {FEATURES} --lam 1 --samples 2000", validate)
    assert "of the 2000 rows one or more are left to test), at most 1999, got 2000" in all_rows
    message = refusal(capsys, f"compare {FEATURES} --lam 1 --samples .25", validate)
    assert f"--samples must be {told}" in message


@pytest.mark.parametrize(
    ("line", "part"),
    [
        ("", "--samples must be given"),
        ("--alpha 1 --samples 40", "--alpha must be left out with --samples"),
        ("--samples 40 --dimension 30", "--dimension must be left out"),
        ("--samples 40 --ladder 30,40", "--ladder must be left out"),
        ("--samples 40 --theory srf", "--theory must be left out"),
    ],
)
def test_options_that_do_not_fit_a_comparison(line, part, capsys):
    assert part in refusal(capsys, f"compare {LAYER} --lam 1 {line}", validate)
