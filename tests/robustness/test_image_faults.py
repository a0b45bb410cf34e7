"""Image files that are damaged, locked, endless or hostile: one sentence, and little memory."""

import gzip
import io
import os
import tracemalloc
import zipfile
from pathlib import Path

import numpy as np
import pytest

from replica import InvalidArgument
from tests.idx import idx
from validation.figures import Run, mixtures
from validation.mixtures import images
from validation.run.store import open_folder

PIXELS = np.random.default_rng(0).integers(0, 256, size=(20, 3, 3), dtype=np.uint8)
LABELS = (np.arange(20) % 2).astype(np.uint8)
CLASSES = (0, 1)
MEMORY = 20e6  # bytes: some chunks, and what Python takes by itself


def pair(folder, pixels, labels=None, suffix=""):
    (folder / f"t-images-idx3-ubyte{suffix}").write_bytes(pixels)
    (folder / "t-labels-idx1-ubyte").write_bytes(idx(LABELS) if labels is None else labels)


def archive(**members):
    """A ZIP file of these members' bytes."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as packed:
        for name, content in members.items():
            packed.writestr(name, content)
    return stream.getvalue()


def npy(array, shape=None, descr=None):
    """An NPY file, of which the header may say something else."""
    stream = io.BytesIO()
    header = {"descr": descr or array.dtype.str, "fortran_order": False}
    np.lib.format.write_array_header_1_0(stream, header | {"shape": shape or array.shape})
    return stream.getvalue() + array.tobytes()


def npz(pixels=None, labels=None, names=("images.npy", "labels.npy")):
    content = pixels or npy(PIXELS), labels or npy(LABELS)
    return archive(**dict(zip(names, content, strict=True)))


def refused(path):
    """The sentence with which a file is refused, without taking memory."""
    tracemalloc.start()
    try:
        with pytest.raises(InvalidArgument) as caught:
            images(path, classes=CLASSES)
        assert tracemalloc.get_traced_memory()[1] < MEMORY
    finally:
        tracemalloc.stop()
    sentence = str(caught.value)
    assert caught.value.name == "images"
    assert len(sentence) < 600 + len(str(path))
    assert "\n" not in sentence
    return sentence


@pytest.mark.parametrize(
    ("content", "part"),
    [
        (idx(PIXELS, (20,) + (1,) * 64), "1 to 8 axes"),
        (idx(PIXELS, (20, 3, 3), axes=255), "ends inside its header"),
        (idx(PIXELS, (2**32 - 1, 10_000)), "at most 1 GiB"),  # 43 TiB
        (idx(PIXELS, (20, 0, 9)), "with numbers in it"),
        (idx(PIXELS, (0, 3, 3)), "with numbers in it"),
        (
            idx(PIXELS, (1000, 1000, 1000)),
            "(1000, 1000, 1000); this one holds 180",
        ),
        (idx(PIXELS) + b"xy", "(20, 3, 3); this one holds more"),
        (b"\x89PNG" + idx(PIXELS), "begins with 00 00, not '89 50 4e 47'"),
        (b"\0\0\x07" + idx(PIXELS)[3:], "an IDX file"),
        (idx(LABELS), "1 axis, as labels have"),
        (b"", "begins with 00 00"),
    ],
)
@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_headers_that_lie(tmp_path, content, part, pack):
    pair(tmp_path, pack(content))
    assert part in refused(tmp_path)


def test_broken_gzip(tmp_path):
    packed = gzip.compress(idx(PIXELS))
    for broken in (packed[:-40], packed[:40] + b"????" + packed[44:]):
        pair(tmp_path, broken)
        assert "a whole IDX file, plain or gzip" in refused(tmp_path)


def test_a_gzip_bomb(tmp_path):
    """300 MB of zeros after an honest header of 180 numbers: not unfolded."""
    packed = io.BytesIO()
    with gzip.GzipFile(fileobj=packed, mode="wb", compresslevel=1) as stream:
        stream.write(idx(PIXELS))
        for _ in range(300):
            stream.write(bytes(10**6))
    pair(tmp_path, packed.getvalue())
    assert "(20, 3, 3); this one holds more" in refused(tmp_path)


def locked(content):
    """An archive whose members are said to be encrypted: bit 0 of the flags, in both places."""
    spoiled = bytearray(content)
    for mark, offset in ((b"PK\3\4", 6), (b"PK\1\2", 8)):
        start = spoiled.find(mark)
        while start >= 0:
            spoiled[start + offset] |= 1
            start = spoiled.find(mark, start + 1)
    return bytes(spoiled)


@pytest.mark.parametrize(
    ("content", "part"),
    [
        (locked(npz()), "encrypted"),
        (npz()[:-30], "not a zip file"),
        (npz().replace(b"\x08\x00", b"\x63\x00"), "compression"),
        (npz(names=("images", "labels")), "images.npy"),
        (npz(names=("a.txt", "b.npy")), "not ['a.txt', 'b']"),
        (npz(pixels=b"not an array"), "magic"),
        (npz(pixels=npy(PIXELS)[:60]), "NPZ file"),
        (npz(pixels=npy(PIXELS)[:-5]), "180 bytes of (20, 3, 3); this one holds 175"),
        (npz(pixels=npy(PIXELS) + b"more"), "(20, 3, 3); this one holds more"),
        (npz(pixels=npy(PIXELS, shape=(2**40, 43))), "at most 1 GiB"),
        (npz(pixels=npy(PIXELS, shape=(20,) + (1,) * 64)), "1 to 8 axes"),
        (npz(pixels=npy(PIXELS, shape=(-20, 9))), "axes with numbers in it"),
        (npz(pixels=npy(PIXELS, descr="|O")), "is of object"),
        (npz(pixels=npy(PIXELS, descr="<c16")), "is of complex128"),
        (npz(labels=npy(LABELS.astype(float))), "one integer each"),
        (npz(pixels=npy(np.full((20, 9), 1e300))), "finite pixels"),
        (npz(pixels=npy(PIXELS) + bytes(3 * 10**7)), "(20, 3, 3); this one holds more"),
        (b"", "not a zip file"),
    ],
)  # fmt: skip
def test_archives_that_are_none(tmp_path, content, part):
    path = tmp_path / "set.npz"
    path.write_bytes(content)
    assert part in refused(path)


def test_pipes_devices_and_folders(tmp_path):
    os.mkfifo(tmp_path / "pipe.npz")
    assert "neither a folder, a pipe" in refused(tmp_path / "pipe.npz")
    os.mkfifo(tmp_path / "t-images-idx3-ubyte")
    assert "neither a folder, a pipe" in refused(tmp_path)
    assert "neither a folder, a pipe" in refused(Path("/dev/zero"))
    (tmp_path / "b" / "images").mkdir(parents=True)
    assert "neither a folder, a pipe" in refused(tmp_path / "b")


def test_columns_first(tmp_path):
    """Arrays that numpy stores by columns have the same pixels."""
    np.savez(tmp_path / "rows.npz", images=PIXELS, labels=LABELS)
    np.savez(tmp_path / "columns.npz", images=np.asfortranarray(PIXELS), labels=LABELS)
    rows, columns = (images(tmp_path / f"{n}.npz", classes=CLASSES) for n in ("rows", "columns"))
    np.testing.assert_array_equal(rows.first, columns.first)
    assert rows.digest == columns.digest


@pytest.mark.slow
def test_replaced_images_are_computed_again(tmp_path, monkeypatch):
    """A panel's cells are named by the pixels: not by the file, which may have been replaced."""
    panel = mixtures.SWEEP_PANELS["3"]
    small = mixtures.replace(panel, few=(0.5,), small={"samples": 20, "students": ("relu",)})
    monkeypatch.setitem(mixtures.SWEEP_PANELS, "3", small)
    monkeypatch.setattr(mixtures, "LARGEST_ORDER", 1)
    path, cells = tmp_path / "im.npz", open_folder(tmp_path / "cells")
    rng = np.random.default_rng(1)
    labels = np.tile([0, 1, 5, 9], 10)
    sets = [rng.integers(0, 256, size=(40, 4, 4), dtype=np.uint8) for _ in range(2)]
    found = []
    for i in (0, 1, 0):
        np.savez(path, images=sets[i], labels=labels)
        found.append(mixtures.data("3", Run(True, store=cells), images=str(path))["points"])
    assert found[0] == found[2] != found[1]
    assert len(list(cells.glob("*.json"))) == 2 * 4 * 3 * 2  # sets, columns, draws, theory
