"""Arrays in files of other libraries, on the command line: safetensors, ONNX, torch, CSV."""

import importlib.util
import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from replica import InvalidArgument
from replica.array_files import Wanted, read_array
from tests.cli.commands import document, refusal, theory
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


@pytest.mark.slow
def test_the_size_of_an_array_is_of_its_own_numbers():
    """As in NPY files: 2^27 and some of one byte each are 128 MiB, of eight above a gigabyte."""
    file = "net.safetensors"
    save_safetensors(file, {"a": np.zeros(2**27 + 8, np.int8)})
    try:
        array = read_array("labels", file, Wanted((1, 1)))
        assert (array.dtype, array.nbytes) == (np.int8, 2**27 + 8)
        with pytest.raises(InvalidArgument, match=r"labels must be an array .* at most 1 GiB"):
            read_array("labels", file, Wanted((1, 1), bytes_each=8))
    finally:
        os.remove(file)


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
    Path(name).write_text("\n".join(lines) + "\n", "utf-8-sig")


@pytest.mark.parametrize(
    ("header", "separator", "column"),
    [
        ("a\tb\tc\tkind", "\t", "3"), ("a;b;c;kind", ";", "-1"), ("", ",", "3"),
        ("0,1,2,3", ",", "3"), ("2000,2001,2002,2003", ",", "2003"),
    ],
)  # fmt: skip
def test_labels_are_a_column_of_the_table_of_features(header, separator, column, capsys):
    """With a header or none, which may count columns; the labels are no feature."""
    np.save("F.npy", NUMBERS)
    np.save("y.npy", KINDS)
    at = "--samples 30 --lam 0.1"
    expected = document(capsys, f"readout --features F.npy --labels y.npy {at}")
    assert expected["problem"] == {"features": "60 x 3", "classes": 3}
    for suffix in ("csv", "tsv"):
        write_table(f"t.{suffix}", header, *NUMBERS.T, KINDS, separator=separator)
        line = f"readout --features ./t.{suffix} --labels t.{suffix}:{column} {at}"
        found = document(capsys, line)
        assert found["problem"] == expected["problem"]
        np.testing.assert_allclose(printed(found), printed(expected))


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


GAP = "a,kind\n1,cat\n,cat\n"
BAD_TABLES = {
    "a,b,kind\n1,2,cat\n\n3,red,cat\n": ["--features", "'red' in line 4, column b", "get_dummies"],
    "a,b,kind\n1,x,cat\n3,y,cat\n": [
        "column b (in Python pandas.read_csv('t.csv').drop(columns='b').to_csv('t-new.csv', index"
    ],
    GAP: ["--features", "'' in line 3, column a (in Python pandas.read_csv('t.csv').dropna().to"],
    "a,kind\n1,cat\nnan,cat\n": [
        "'nan' in line 3, column a (in Python pandas.read_csv('t.csv').dro"
    ],
    "1,cat\n2,dog\n3,cat\n": ["t.csv:NUMBER of a column, from 0 to 1: there is no header"],
    "a,b,kind\n1,2,cat\n3,4\n": ["must be a table with 3 cells in line 3, too"],
    "a,kind\nx,1,cat\ny,2,cat\n": ["must be a table with 3 cells in line 1, too"],
    "f,Kind\n1,2\n": ["--labels must be t.csv:Kind, one of its columns, got t.csv:kind"],
    "a,b\n1,2\n": ["--labels must be t.csv:NAME of one of its columns, a, b (", "got t.csv:kind"],
    "a,kind\n1,cat\n2,\n": ["--labels", "in line 3, the first of 1 such lines"],
    "a,kind\n1,cat\n2,cat\n": ["--labels must be of two classes or more", "cat in all rows"],
    "a,kind\n1,1.0\n2,2.0\n": ["--labels must be given with --classes all if they are classes"],
    "a,kind\n": ["--labels", "with numbers in it", "(0,)"],
    "": ["--labels must be a file with an array in it"],
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
    assert "--labels must be t.csv:NAME of one of its columns, a, b, kind (a .npy" in message


DECIMAL = str.maketrans(".", ",")


@pytest.mark.parametrize(
    ("separator", "header", "label", "index"),
    [(",", "a,b,c,kind", "kind", False), (";", ";a;b;c;kind", "kind", True), (",", "", "3", False)],
)
@pytest.mark.parametrize("decimal", [".", ","])
def test_what_pandas_is_told_to_write_is_taken(separator, header, label, index, decimal, capsys):
    """Another file, with the table's separator, header and index, without the lines that have no
    label, or with decimal points; the file itself is left as it is."""
    pandas = pytest.importorskip("pandas")
    kinds = np.where(np.arange(60) == 7, "", KINDS) if decimal == "." else KINDS
    columns = [[str(x) for x in column] for column in NUMBERS.T]
    if decimal == ",":
        columns = [[f'"{x.translate(DECIMAL)}"' for x in column] for column in columns]
    columns = [range(60)] * index + [*columns, kinds]
    write_table("t.csv", header, *columns, separator=separator)
    before = Path("t.csv").read_bytes()
    at = "--samples 30 --lam 0.1"
    message = refusal(capsys, f"readout --features t.csv --labels t.csv:{label} {at}")
    (code,) = re.findall(r"in Python (.*?\)) (?:leaves out|writes)", message)
    eval(code, {"pandas": pandas})
    assert Path("t.csv").read_bytes() == before
    found = document(capsys, f"readout --features t-new.csv --labels t-new.csv:{label} {at}")
    assert found["problem"] == {"features": f"{60 - (decimal == '.')} x 3", "classes": 3}
    np.save("F.npy", NUMBERS[kinds != ""])
    np.save("y.npy", KINDS[kinds != ""])
    expected = printed(document(capsys, f"readout --features F.npy --labels y.npy {at}"))
    np.testing.assert_allclose(printed(found), expected)


@pytest.mark.parametrize("same", [True, False])
def test_tables_of_other_indices_are_not_paired_by_line(same, capsys):
    """Labels are put in the order of features by their index, where it has the same rows."""
    pandas = pytest.importorskip("pandas")
    write_table("t.csv", ",a,b,c", range(60), *NUMBERS.T)
    write_table("y.csv", ",kind", range(60)[::-1] if same else range(1, 61), KINDS)
    at = "--samples 30 --lam 0.1"
    message = refusal(capsys, f"readout --features t.csv --labels y.csv {at}")
    assert message.startswith("error: --labels must be in the order of the rows of features: in")
    assert message.endswith("same index in another order" if same else "index of other rows")
    for code in re.findall(r"in Python (.*?\)) if", message):
        eval(code, {"pandas": pandas})
        found = document(capsys, f"readout --features t.csv --labels y-new.csv {at}")
        np.save("F.npy", NUMBERS)
        np.save("y.npy", KINDS[::-1] if ".loc" in code else KINDS)
        expected = printed(document(capsys, f"readout --features F.npy --labels y.npy {at}"))
        np.testing.assert_allclose(printed(found), expected)


def test_a_column_that_counts_the_lines_is_noted(caplog):
    write_table("t.csv", "a,b,c,id,kind", *NUMBERS.T, range(1, 61), KINDS)
    assert theory("readout --features t.csv --labels t.csv:kind --samples 30 --lam 0.1") == 0
    assert "have a feature, 'id', that counts the rows" in caplog.text
    assert "table.drop(columns='id') in pandas leaves it out" in caplog.text


@pytest.mark.parametrize("separator", [";", "\t"])
def test_labels_with_decimal_commas_are_numbers_not_names(separator, capsys):
    write_table("t.csv", "", *[["1,5", "2,5", "1,0"] * 9] * 3, separator=separator)
    message = refusal(capsys, "readout --features t.csv --labels t.csv:2 --samples 9 --lam 1")
    assert message.startswith(
        "error: --labels must be a table of numbers, not with '1,5' in line 1"
    )
    reading = f"pandas.read_csv('t.csv', sep={separator!r}, decimal=',', header=None).to_csv("
    assert reading in message


def test_lines_with_inf_are_left_out_by_what_is_said(capsys):
    pandas = pytest.importorskip("pandas")
    write_table("t.csv", "a,b,kind", ["inf", *range(1, 60)], NUMBERS[:, 0], KINDS)
    message = refusal(capsys, "readout --features t.csv --labels t.csv:kind --samples 9 --lam 1")
    (code,) = re.findall(r"in Python (.*) leaves out such lines", message)
    exec(code, {"pandas": pandas, "numpy": np})
    assert len(pandas.read_csv("t-new.csv")) == 59


def test_whole_numbers_that_a_table_has_again_are_no_header():
    Path("t.csv").write_text("1,2,3\n3,1,3\n1,2,2\n")
    assert read_array("features", "t.csv", Wanted((2, 2))).tolist()[0] == [1, 2, 3]


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
    assert np.load("weights.npy").itemsize == (8 if kind == "float64" else 4)


def test_a_table_of_any_size_is_not_read(capsys):
    with open("t.csv", "wb") as file:
        file.write(b"a,b\n")
        file.truncate(2**26 + 1)
    message = refusal(capsys, "readout --features t.csv --labels t.csv:b --samples 9 --lam 1")
    assert "--labels must be a file of at most 64 MiB (numpy.save" in message
