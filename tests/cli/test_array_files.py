"""Weights in files of other libraries, on the command line: safetensors, ONNX, torch, CSV."""

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
from tests.cli.commands import document, refusal
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
@pytest.mark.parametrize("kind", ["float16", "float32", "float64", "bfloat16"])
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


@pytest.mark.parametrize("file", WRITERS)
def test_the_size_of_an_array_is_of_its_own_numbers(file):
    """As in NPY files: 2^27 and some of one byte each are 128 MiB, of eight above a gigabyte."""
    WRITERS[file](file, {"a": np.zeros(2**27 + 8, np.int8)})
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
    """In the line that writes a file its name is quoted for a shell."""
    np.savetxt(name, layer()["weights"], delimiter=",")
    line = LAYER.replace("W.npy", shlex.quote(name))
    message = refusal(capsys, f"readout {line} {POINTS}")
    assert "of numbers alone (skiprows=1 leaves out a header)" in message
    run_what_it_says(message)
    np.testing.assert_array_equal(np.load("weights.npy"), layer()["weights"])


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
