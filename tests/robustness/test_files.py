"""Files that are written: whole or not at all, on full disks, through links, and when stopped."""

import os
import resource
import shutil
import signal
import stat
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

from replica.files import TEMPORARY, open_regular, write_file
from tests.cli.commands import refusal, theory
from tests.places import ROOT
from tests.processes import python

POINT = "curve --student tanh --target sin --r 1 --c 1 --gamma .9 --alpha 1 --lam .1"


def names(folder):
    return sorted(path.name for path in folder.iterdir())


@contextmanager
def full_disk(size):
    """Files end at ``size`` bytes: the system refuses what follows, as where no space is left."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@pytest.mark.parametrize(
    ("option", "name", "size"),
    [
        ("--out", "a.nc", 4000), ("--out", "a.csv", 10), ("--out", "a.json", 10),
        ("--plot", "a.pdf", 4000), ("--plot", "a.png", 0), ("--plot", "a.svg", 4000),
    ],
)  # fmt: skip
def test_a_full_disk_is_one_line(tmp_path, capsys, option, name, size):
    """HDF5 used to end the process there, and the writer of PDF to raise as it closed."""
    target = tmp_path / name
    target.write_text("old")
    with full_disk(size):
        assert theory(f"{POINT} {option} {target}") == 2
    assert capsys.readouterr().err == f"error: {target}: File too large\n"
    assert target.read_text() == "old"
    assert names(tmp_path) == [name]


def test_a_link_stays_and_a_mode_too(tmp_path):
    file, link, dangling = tmp_path / "file.csv", tmp_path / "link.csv", tmp_path / "new.csv"
    file.write_text("old")
    file.chmod(0o640)
    link.symlink_to(file.name)
    dangling.symlink_to("made.csv")
    for path in (link, dangling):
        assert theory(f"{POINT} --out {path}") == 0
        assert path.is_symlink()
    assert file.read_text() == (tmp_path / "made.csv").read_text() != "old"
    assert stat.S_IMODE(file.stat().st_mode) == 0o640
    umask = os.umask(0)
    os.umask(umask)
    assert stat.S_IMODE((tmp_path / "made.csv").stat().st_mode) == 0o666 & ~umask


def circle(path):
    path.symlink_to(path)


@pytest.mark.parametrize("option", ["--out a.csv", "--plot a.png"])
@pytest.mark.parametrize("make", [os.mkdir, os.mkfifo, circle])
def test_what_is_no_file_is_not_replaced(tmp_path, monkeypatch, capsys, make, option):
    monkeypatch.chdir(tmp_path)
    flag, name = option.split()
    make(tmp_path / name)
    assert f"{flag} must be a file that can be written" in refusal(capsys, f"{POINT} {option}")
    assert names(tmp_path) == [name]


def test_the_longest_name_can_be_written(tmp_path):
    write_file(tmp_path / ("x" * 255), b"1")
    assert (tmp_path / ("x" * 255)).read_bytes() == b"1"


def test_pipes_and_devices_are_not_read(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", "/dev/zero", tmp_path):
        with pytest.raises(OSError, match="neither a folder, a pipe nor a device"):
            open_regular(path)


def test_a_terminated_command_sweeps_its_files(tmp_path):
    """SIGTERM between the temporary file and its renaming, as from a scheduler of jobs."""
    code = (
        "import os, sys, time\n"
        "say = lambda: print('writing', flush=True, file=sys.__stdout__)\n"
        "os.fsync = lambda handle: (say(), time.sleep(60))\n"
        "from replica.cli.main import main; main()"
    )
    command = [sys.executable, "-c", code, *POINT.split(), "--out", str(tmp_path / "a.csv")]
    options = dict(stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    with subprocess.Popen(command, **options) as process:
        assert process.stdout.readline() == "writing\n"
        assert [bool(TEMPORARY.fullmatch(name)) for name in names(tmp_path)] == [True]
        process.send_signal(signal.SIGTERM)
        _, err = process.communicate(timeout=30)
    assert (process.returncode, err) == (130, "error: interrupted; no file was left half-written\n")
    assert not names(tmp_path)


@pytest.mark.slow  # compiles twice
def test_what_numba_kept_of_another_version_is_compiled_anew(tmp_path):
    """Where a function has changed that the kept one calls."""
    for package in ("replica", "solvers"):
        shutil.copytree(ROOT / package, tmp_path / package)
    code = (
        "import numpy, replica\n"
        "from replica.saddle_point import ridge\n"
        "model = replica.SpikedRandomFeatures(student='tanh', target='sin', r=1, c=1, gamma=0.9)\n"
        "print(replica.solve(model, alpha=1.0, lam=0.1).test_error)\n"  # by Python
        "ridge.calls_of_one_group[0] = numpy.inf\n"
        "ridge.responses_of.cache_clear()\n"  # these are Python's
        "print(replica.solve(model, alpha=1.0, lam=0.1).test_error)"  # by the core
    )

    def errors():
        own = {"NUMBA_CACHE_DIR": str(tmp_path / "kept"), "PYTHONPATH": ""}
        done = python("-c", code, variables=own, cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        return [float(word) for word in done.stdout.split()]

    before = errors()
    file = tmp_path / "replica/saddle_point/compiled_responses.py"
    text = file.read_text()
    assert text.count("R0 += wR") == 1
    file.write_text(text.replace("R0 += wR", "R0 += 1.5 * wR"))  # of (i) and (ii)
    after = errors()
    assert before == pytest.approx([before[0]] * 2, rel=1e-12)
    # Python has the point as before; that of the new core fails the equations, which Python checks
    assert after[0] == before[0]
    assert np.isnan(after[1])


def test_no_file_is_two_things(tmp_path, monkeypatch, capsys):
    """What is read is not written, and nothing is written twice, also through a link."""
    monkeypatch.chdir(tmp_path)
    Path("p.json").write_text('student = "tanh"\ntarget = "sin"\nalpha0 = 20\neta = 3.0\n')
    before = Path("p.json").read_bytes()
    Path("b.png").symlink_to("a.json")
    for line in ("--config p.json --out p.json", "--out a.json --plot b.png"):
        assert theory(f"{POINT} {line}") == 2
        assert "a file that no other option names" in capsys.readouterr().err
    assert Path("p.json").read_bytes() == before
    assert not Path("a.json").exists()


@pytest.mark.slow
def test_a_closed_pipe_is_one_line_at_most(tmp_path):
    """The reader of standard output goes away, as ``head`` does."""
    command = [sys.executable, "-m", "replica", *POINT.split(), "--alpha", "1:2:200"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        process.stdout.close()
        err = process.stderr.read().decode()
    deadline = time.monotonic() + 60
    while process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.05)
    assert process.returncode in (0, 1, 2, 141), err
    assert "Traceback" not in err
    assert len(err.splitlines()) <= 3
