"""Arrays in files of other libraries, on the command line: safetensors, ONNX, torch, CSV."""

import gzip
import importlib.util
import json
import re
import shlex
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from replica.files import Wanted, read_array
from tests.cli.commands import document, refusal, theory, validate
from tests.cli.test_readout import LAYER, POINTS, files, layer, printed

__all__ = ["files"]  # the folder of its arrays

BIAS = np.linspace(-0.5, 0.5, 20)
F32 = np.float32


def state(kind=F32):
    """What a network with one hidden layer has: one matrix of as many axes, one bias."""
    return {"fc1.weight": layer()["weights"].astype(kind), "fc1.bias": BIAS.astype(kind)}


def save_safetensors(name, arrays):
    pytest.importorskip("safetensors.numpy").save_file(arrays, name)


def save_onnx(name, arrays, **options):
    onnx = pytest.importorskip("onnx")
    tensors = [onnx.numpy_helper.from_array(x, one) for one, x in arrays.items()]
    graph = onnx.helper.make_graph([], "net", [], [], initializer=tensors)
    onnx.save_model(onnx.helper.make_model(graph), name, **options)


WRITERS = {"net.safetensors": save_safetensors, "net.onnx": save_onnx}


def both(line, file, weight=":fc1.weight", bias=":fc1.bias"):
    return f"readout {line.replace('W.npy', file + weight)} --bias {file}{bias} {POINTS}"


@pytest.mark.parametrize("file", WRITERS)
@pytest.mark.parametrize("kind", ["float16", "bfloat16"])
def test_the_arrays_of_a_network(file, kind, capsys):
    """Those of NPY files of the same numbers; without a name the only one with their axes.  Numbers
    of bfloat16 have eight digits in base two, which single precision holds."""
    own = kind
    if kind == "bfloat16":
        kind, own = pytest.importorskip("ml_dtypes").bfloat16, F32
    WRITERS[file](file, state(kind))
    np.save("W.npy", state(kind)["fc1.weight"].astype(own))
    np.save("b.npy", state(kind)["fc1.bias"].astype(own))
    expected = document(capsys, f"readout {LAYER} --bias b.npy {POINTS}")
    assert printed(document(capsys, both(LAYER, file))) == printed(expected)
    assert printed(document(capsys, both(LAYER, file, "", ""))) == printed(expected)


def written(file):
    """Files that hold no such array as is wanted, and one that does."""
    save, suffix = WRITERS[file], file.partition(".")[2]
    save(file, state() | {"fc2.weight": state()["fc1.weight"]})
    save(f"complex.{suffix}", {"a": state()["fc1.weight"].astype(np.complex64)})
    save(f"empty.{suffix}", {"a": np.zeros((0, 30), F32)})
    save(f"bias.{suffix}", {"fc1.bias": BIAS})
    save(f"none.{suffix}", {})
    Path(f"short.{suffix}").write_bytes(Path(file).read_bytes()[:-100])
    Path(f"text.{suffix}").write_text("no network at all")


@pytest.mark.parametrize("file", WRITERS)
def test_bad_files_are_one_line(file, capsys):
    written(file)
    suffix = file.partition(".")[2]
    cases = {
        file: [f"{file}:NAME of one of its arrays", "fc1.weight", "fc2.weight"],
        f"{file}:fc3": [f"{file}:NAME of one of its arrays", "fc1.weight", "fc3"],
        f"{file}:fc1.bias": ["an array of 2 axes", "(20,)"],
        f"bias.{suffix}": ["an array of 2 axes", "(20,)"],
        f"empty.{suffix}": ["with numbers in it", "(0, 30)"],
        f"complex.{suffix}": ["arrays of numbers; this one is of complex64"],
        f"none.{suffix}": ["--weights must be a file with an array in it, got"],
        f"short.{suffix}": [f"a whole {suffix.upper()} file"],
        f"text.{suffix}": [f"a whole {suffix.upper()} file"],
        f"there-is-no.{suffix}": ["No such file"],
    }
    for name, parts in cases.items():
        message = refusal(capsys, f"readout {LAYER.replace('W.npy', name)} {POINTS}")
        for part in ["--weights", *parts]:
            assert part in message, (name, message)


def test_a_header_is_not_believed(capsys):
    """An array beyond a gigabyte is refused before it is read."""
    pytest.importorskip("safetensors")
    shape = [20000, 30000]
    with open("net.safetensors", "wb") as file:  # with a hole in it, of no size on a disk
        size = 4 * shape[0] * shape[1]
        entry = {"dtype": "F32", "shape": shape, "data_offsets": [0, size]}
        header = json.dumps({"a": entry}).encode()
        file.write(len(header).to_bytes(8, "little") + header)
        file.truncate(8 + len(header) + size)
    message = refusal(capsys, f"readout {LAYER.replace('W.npy', 'net.safetensors')} {POINTS}")
    assert "at most 1 GiB of them, not one of shape (20000, 30000)" in message


def test_arrays_beside_an_onnx_file_are_refused(capsys):
    large = {"a": np.ones((200, 30), F32)}  # smaller ones stay in the file
    save_onnx("net.onnx", large, save_as_external_data=True, location="net.data")
    message = refusal(capsys, f"readout {LAYER.replace('W.npy', 'net.onnx')} {POINTS}")
    assert "a file that holds its arrays, not one beside it" in message


@pytest.mark.parametrize("package", ["safetensors", "onnx"])
def test_a_package_that_lacks_is_named(package, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, package, None)
    np.save("W.npy", layer()["weights"])
    Path(f"net.{package}").touch()
    message = refusal(capsys, f"readout {LAYER.replace('W.npy', f'net.{package}')} {POINTS}")
    assert f"where {package} is not installed" in message
    assert "pip install '.[weights]' in the clone" in message


def run_what_it_says(message):
    """The line of a message, which a shell takes as it is and which makes the file that is read."""
    (command,) = re.findall(r"which this writes.*: python3 (-c '.*'), got", message)
    subprocess.run(f"{shlex.quote(sys.executable)} {command}", shell=True, check=True)


@pytest.mark.parametrize("name", ["W.csv", """it's "$HOME" \\n ü.csv"""])
def test_numbers_as_text(name, capsys):
    np.savetxt(name, layer()["weights"], fmt="%.17g", delimiter=",")
    line = LAYER.replace("W.npy", shlex.quote(name))
    expected = printed(document(capsys, f"readout {LAYER} {POINTS}"))
    np.testing.assert_allclose(printed(document(capsys, f"readout {line} {POINTS}")), expected)


KINDS = np.array(["cat", "dog", "owl"])[np.arange(60) % 3]
NUMBERS = np.random.default_rng(0).standard_normal((60, 3)) + np.eye(3)[np.arange(60) % 3]


def write_table(name, header, *columns, separator=","):
    rows = zip(*columns, strict=True)
    lines = [header] * bool(header) + [separator.join(map(str, row)) for row in rows]
    content = ("\n".join(lines) + "\n").encode("utf-8-sig")
    Path(name).write_bytes(gzip.compress(content) if name.endswith(".gz") else content)


@pytest.mark.parametrize(
    ("header", "separator", "column"),
    [
        ("a\tb\tc\tkind", "\t", "3"), ("a;b;c;kind", ";", "-1"), ("", ",", "3"),
        ("0,1,2,3", ",", "3"), ("2000,2001,2002,2003", ",", "2003"),
        ("sep=;\r\na;b;c;kind", ";", "kind"), ("SEP=|\n0|1|2|3", "|", "3"),
    ],
)  # fmt: skip
def test_labels_are_a_column_of_the_table_of_features(header, separator, column, capsys):
    """With a header or none, which may count columns; the labels are no feature."""
    np.save("F.npy", NUMBERS)
    np.save("y.npy", KINDS)
    at = "--samples 30 --lam 0.1"
    expected = document(capsys, f"readout --features F.npy --labels y.npy {at}")
    assert expected["problem"] == {"features": "60 x 3", "classes": 3}
    for suffix in ("csv", "tsv", "csv.gz"):
        write_table(f"t.{suffix}", header, *NUMBERS.T, KINDS, separator=separator)
        line = f"readout --features ./t.{suffix} --labels t.{suffix}:{column} {at}"
        found = document(capsys, line)
        assert found["problem"] == expected["problem"]
        np.testing.assert_allclose(printed(found), printed(expected))


@pytest.mark.slow
def test_columns_of_tables_that_are_no_features(capsys):
    """An index as pandas writes it, strata; labels of a table of their own, of numbers or text."""
    np.save("F.npy", NUMBERS)
    np.save("y.npy", KINDS)
    at = "--samples 30 --lam 0.1"
    expected = printed(document(capsys, f"readout --features F.npy --labels y.npy {at}"))
    write_table("t.csv", ",a,b,c,kind", range(60), *NUMBERS.T, KINDS)
    write_table("names.csv", "", KINDS)
    write_table("numbers.csv", "", np.arange(60) % 3)
    write_table("named.csv", "kind", np.arange(60) % 3)
    write_table("series.csv", ",kind", range(60), KINDS)
    for labels in ("t.csv:kind", "names.csv", "numbers.csv", "named.csv", "series.csv"):
        features = "t.csv" if labels == "t.csv:kind" else "F.npy"
        found = document(capsys, f"readout --features {features} --labels {labels} {at}")
        np.testing.assert_allclose(printed(found), expected)
    write_table("twice.csv", ",Unnamed: 0,a,b,c,kind", range(60), range(60), *NUMBERS.T, KINDS)
    write_table("again.csv", "Unnamed: 0,a,b,c,kind", range(60), *NUMBERS.T, KINDS)
    for table in ("twice.csv", "again.csv"):  # as pandas reads its own index, and writes it again
        found = document(capsys, f"readout --features {table} --labels {table}:kind {at}")
        np.testing.assert_allclose(printed(found), expected)
    write_table("s.csv", "a,b,c,kind,s", *NUMBERS.T, KINDS, np.arange(60) % 3)
    found = document(capsys, f"readout --features s.csv --labels s.csv:kind --strata s.csv:s {at}")
    assert found["problem"]["features"] == "60 x 3"


@pytest.mark.slow
def test_which_columns_were_taken_is_said(capsys):
    """Of tables, also of labels alone; by their names, or by their numbers where they have none."""
    np.save("F.npy", NUMBERS)
    np.save("y.npy", KINDS)
    write_table("t.csv", "a,b,c,d,kind,size", *NUMBERS.T, NUMBERS[:, 0], KINDS, NUMBERS[:, 1])
    write_table("bare.csv", "", *NUMBERS.T, np.arange(60) % 2)
    for tables, words in (
        ("t.csv --labels t.csv:-1 --strata t.csv:kind",
         "features: 4 columns, a ... d; labels: column size, numbers"),
        ("bare.csv --labels bare.csv:-1", "features: 3 columns, 0, 1, 2; labels: column 3, 2 clas"),
        ("bare.csv --labels y.npy", "features: 4 columns, 0 ... 3; labels: 3 classes"),
        ("F.npy --labels t.csv:kind", "features: 3 columns; labels: column kind, 3 classes"),
        ("F.npy --labels F.npy", "features: 3 columns; labels: 3 outputs"),
        ("F.npy --labels y.npy", ""),
    ):  # fmt: skip
        for points in ("--samples 30", *["--reach 0.2"] * bool(words)):
            line = f"readout --features {tables} --lam 0.1 {points}"
            assert theory(line) in (0, 1)
            err = capsys.readouterr().err
            assert words in err
            assert ("note: features: " in err) == bool(words)


@pytest.mark.parametrize(
    ("table", "taken"),
    [
        ("t.csv", "abo"), ("t.csv:a,b", "ab"), ("t.csv:0", "a"), ("t.csv:without=b", "ao"),
        ("t.csv:a, kind, o", "ao"),
    ],
)  # fmt: skip
def test_columns_that_are_chosen_or_left_out(table, taken, capsys):
    """True and False are 1 and 0; the labels are no feature, though they are named."""
    columns = {"a": NUMBERS[:, 0], "b": NUMBERS[:, 1], "o": NUMBERS[:, 2] > 0}
    write_table("t.csv", "a,b,o,kind", *columns.values(), KINDS)
    np.save("F.npy", np.array([columns[name] for name in taken], dtype=float).T)
    np.save("y.npy", KINDS)
    at = "--samples 30 --lam 0.1"
    expected = document(capsys, f"readout --features F.npy --labels y.npy {at}")
    assert theory(f"readout --features '{table}' --labels t.csv:kind {at} --json") == 0
    found, notes = capsys.readouterr()
    np.testing.assert_allclose(printed(json.loads(found)), printed(expected), rtol=1e-12)
    assert f"column{'s' * (len(taken) > 1)}, {', '.join(taken)}; labels: column kind" in notes


@pytest.mark.parametrize("words", [int, bool])
@pytest.mark.parametrize("file", ["y.csv", "t.csv:cat,dog,owl"])
def test_labels_of_a_column_for_each_class(words, file, capsys):
    np.save("F.npy", NUMBERS)
    np.save("y.npy", KINDS)
    one_hot = (KINDS[:, None] == np.unique(KINDS)).astype(words).T
    write_table("y.csv", "cat,dog,owl", *one_hot)
    write_table("t.csv", "a,b,c,cat,dog,owl", *NUMBERS.T, *one_hot)
    features, at = file.partition(":")[0].replace("y.csv", "F.npy"), "--samples 30 --lam 0.1"
    expected = document(capsys, f"readout --features F.npy --labels y.npy {at} --confusion")
    line = f"readout --features {features} --labels {file} {at} --confusion"
    assert "--classes all if they are classes, or --classes none" in refusal(capsys, line)
    for classes in ("all", "cat,dog,owl"):
        found = document(capsys, f"{line} --classes {classes}")
        np.testing.assert_allclose(printed(found), printed(expected))
        assert found["confusion"].keys() == expected["confusion"].keys()


@pytest.mark.parametrize(
    ("command", "line"), [(theory, "optimum"), (validate, "simulate --lam 0.1 --seeds 2")]
)
def test_other_commands_say_which_columns_were_taken(command, line, capsys):
    write_table("t.csv", "a,b,c,kind", *NUMBERS.T, KINDS == "cat")
    assert command(f"{line} --features t.csv --labels t.csv:kind --samples 30") == 0
    words = "note: features: 3 columns, a, b, c; labels: column kind, 2 classes"
    assert words in capsys.readouterr().err


GAP = "a,kind\n1,cat\n,cat\n"
BAD_TABLES = {
    "a,b,kind\n1,2,cat\n\n3,red,dog\n": [
        "--features",
        "'red' at [1, 1], column 'b'",
        "(leave out the column: --features t.csv:without=b), got",
    ],
    "a,b,c d,kind,e\n1,2,x,cat,1\n3,red,y,dog,\n": [
        "'x' at [0, 2], column 'c d'",
        "(leave out the columns with text or gaps: --features 't.csv:without=b,c d,e'), got",
    ],
    GAP: [
        "--features must be finite",
        "keep the rows of numpy.isfinite",
        "got nan at [1, 0]",
        "(leave out the column: --features t.csv:without=a, or keep",
        "[1, 0], column 'a', the first of 1",
    ],
    "a,kind\n1,cat\nnan,dog\n": ["--features must be finite", "got nan at [1, 0]"],
    "a,kind\ninf,cat\n2,dog\n": ["--features must be finite", "got inf at [0, 0]"],
    "1,cat\n2,dog\n3,cat\n": ["t.csv:NAME of one of its columns, 0, 1, got t.csv:kind"],
    "a,b,kind\n1,2,cat\n3,4\n": [
        "a whole CSV file",
        "3 cells in its first line, 2 in line 3 of the",
    ],
    "sep=,\na,kind\n\nx,1,cat\n": ["2 cells in its first line, 3 in line 4 of the file"],
    "a,kind\nx,1,cat\ny,2,cat\n": ["2 cells in its first line, 3 in line 2 of the file"],
    "f,Kind\n1,2\n": ["t.csv:NAME of one of its columns, f, Kind (did you mean Kind?), got"],
    ",".join(f"column_{k:02}" for k in range(30)) + "\n" + "1," * 29 + "1\n": [
        "column_00, ",
        "column_17 and 12 more, got t.csv:kind",
    ],
    "a,kind\n1,cat\n2,\n": [
        "(--classes all if such text names a class), got '' in row 1, the first of 1 such",
    ],
    "a,kind\n1,3\n2,\n": [
        "of the features too (pandas.read_csv(...).dropna(subset=['kind'])), in P"
    ],
    "a,kind\n1,cat\n2,cat\n": ["--labels must be of two classes or more", "cat in all rows"],
    "a,kind\n1,1.0\n2,2.0\n": ["--labels must be given with --classes all if they are classes"],
    "a,kind\n": ["--labels", "with numbers in it", "(0,)"],
    "": ["--labels must be a file with an array in it"],
    "# a comment\nkind,a\n1,2\n": [
        "line 2 of the file; no comments before its header: pandas.read"
    ],
    "kind\n1\n2\n": ["--features must be a table with columns beside its index, labels and strata"],
}


@pytest.mark.parametrize("table", BAD_TABLES)
def test_bad_tables_are_one_line(table, capsys):
    Path("t.csv").write_text(table)
    at = "--samples 2 --lam 1"
    message = refusal(capsys, f"readout --features t.csv --labels t.csv:kind {at}")
    for part in BAD_TABLES[table]:
        assert part in message
    Path("t.csv").write_text("a,b,kind\n1,2,3\n")
    message = refusal(capsys, f"readout --features t.csv --labels t.csv {at}")
    assert "--labels must be t.csv:NAME of one of its columns, a, b, kind, got" in message


@pytest.mark.parametrize("same", [True, False])
def test_tables_of_other_indices_are_not_paired_by_line(same, capsys):
    """As of pandas in Python."""
    write_table("t.csv", ",a,b,c", range(60), *NUMBERS.T)
    write_table("y.csv", ",kind", range(60)[::-1] if same else range(1, 61), KINDS)
    at = "--samples 30 --lam 0.1"
    message = refusal(capsys, f"readout --features t.csv --labels y.csv {at}")
    assert message.startswith("error: --labels must be in the order of the rows of features: ")
    assert message.endswith("same index in another order" if same else "index of other rows")
    assert ("labels.loc[features.index]" in message) == same
    assert "in Python, before the file is written" in message


@pytest.mark.parametrize("separator", [";", "\t"])
def test_labels_with_decimal_commas_are_numbers_not_names(separator, capsys):
    write_table("t.csv", "", *[["0", "2,5", "1,0"] * 9] * 3, separator=separator)
    message = refusal(capsys, "readout --features t.csv --labels t.csv:2 --samples 9 --lam 1")
    words = "a table with decimal points, not commas as in '2,5' (pandas.read_csv"
    assert f"--labels must be {words}" in message


def test_whole_numbers_that_a_table_has_again_are_no_header():
    Path("t.csv").write_text("1,2,3\n3,1,3\n1,2,2\n")
    assert read_array("features", "t.csv", Wanted((2, 2))).values.tolist()[0] == [1, 2, 3]


@pytest.mark.parametrize("encoding", ["latin-1", "utf-16"])
@pytest.mark.parametrize("packed", [True, False])
def test_a_table_in_another_encoding_is_made_one_in_utf_8(encoding, packed, capsys):
    content = "a,größe\n1,2\n3,5\n".encode(encoding)
    name = "t.csv.gz" if packed else "t.csv"
    Path(name).write_bytes(gzip.compress(content) if packed else content)
    run_what_it_says(refusal(capsys, f"readout --features {name} --labels y.npy {POINTS}"))
    assert Path("features.csv").read_text(encoding="utf-8") == content.decode(encoding)


@pytest.mark.parametrize("name", ["A.txt", "A.dat", "A.csv"])
def test_text_with_spaces_between_cells_has_the_line_that_writes_a_table(name, capsys):
    np.savetxt(name, NUMBERS, header="a b c")
    run_what_it_says(refusal(capsys, f"readout --features {name} --labels y.npy {POINTS}"))
    np.testing.assert_array_equal(np.loadtxt("A-commas.csv", delimiter=","), NUMBERS)
    named = pd.DataFrame({"a": [1, 2], "b": ["yes", "no"]})
    named.to_csv(name, sep=" ", index=False)
    run_what_it_says(refusal(capsys, f"readout --features {name} --labels y.npy {POINTS}"))
    pd.testing.assert_frame_equal(pd.read_csv("A-commas.csv"), named)
    Path(name).write_text('"a" "b"\n"1" "C#" NA\n"2" 2 3\n')  # as write.table of R has it
    run_what_it_says(refusal(capsys, f"readout --features {name} --labels y.npy {POINTS}"))
    assert Path("A-commas.csv").read_text().split() == ["a,b", "C#,NA", "2,3"]


@pytest.mark.parametrize("suffix", ["parquet", "feather", "xlsx", "json", "pkl"])
def test_tables_that_pandas_reads_have_the_line_that_writes_a_csv_file(suffix, capsys):
    line = f"readout --features it.{suffix} --labels it.{suffix}:kind {POINTS}"
    message = refusal(capsys, line)
    assert (
        "--labels must be a file it.csv, which this writes: python3 -c 'import pandas; " in message
    )
    reader = {"xlsx": "excel", "pkl": "pickle"}.get(suffix, suffix)
    assert f'pandas.read_{reader}("it.{suffix}").to_csv("it.csv", index=False)' in message


@pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="torch is not installed")
@pytest.mark.parametrize("file", ["net.pt", "net.pth"])
@pytest.mark.parametrize("kind", ["float32", "float64", "bfloat16"])
def test_the_state_of_a_network_in_torch(file, kind, capsys):
    import torch

    linear = torch.nn.Linear(30, 20, dtype=getattr(torch, kind))
    torch.save(torch.nn.Sequential(linear).state_dict(), file)
    line = f"readout {LAYER.replace('W.npy', f'{file}:0.weight')} {POINTS}"
    run_what_it_says(refusal(capsys, line))
    expected = linear.weight.detach().double().numpy()
    np.testing.assert_array_equal(np.load("weights.npy"), expected)


def test_a_table_of_any_size_is_not_read(capsys):
    with open("t.csv", "wb") as file:
        file.write(b"a,b\n")
        file.truncate(2**26 + 1)
    message = refusal(capsys, "readout --features t.csv --labels t.csv:b --samples 9 --lam 1")
    assert "--labels must be a file of at most 64 MiB (numpy.save" in message


def test_a_sparse_file_of_scipy_is_answered_with_how_to_make_it_dense(files, capsys):
    sparse = pytest.importorskip("scipy.sparse")
    sparse.save_npz("X.npz", sparse.csr_matrix(np.eye(20)))
    for name in ("X.npz", "X.npz:data"):
        said = refusal(capsys, f"readout --features {name} --labels y.npy --lam 1 --samples 5")
        assert "scipy.sparse.load_npz('X.npz').toarray())" in said
