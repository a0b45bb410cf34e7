"""Every block of the README and the pages runs as it is, and Python's print what they say."""

import re
import subprocess
import sys

import pytest

from tests.cli.commands import theory, validate
from tests.places import PAGES as DOCS_PAGES
from tests.places import ROOT

PAGES = [ROOT / "README.md", *DOCS_PAGES]
CLAIM = re.compile(r"^\s*print\(.*\)  # ([\d{TF-].*)$")
SLOW = {"docs/simulation.md"}  # networks of 500 inputs
PROGRAMS = {"replica": theory, "replica-validate": validate}
# What no test runs: it installs, waits for Ctrl-C, takes hours, or needs what a reader has.
NOT_HERE = re.compile(
    r"pip install|replica explore|run\.py|figure cui/2 --plot|,2000 |problem\.toml"
    r"|/scratch|FOLDER|[WF]\.npy|#"
)
SECONDS = re.compile(r"replica-validate (compare|simulate|figure)|gaussian|python3")


def blocks(language):
    """Every block, with the name of its page and its place there."""
    fenced = re.compile(rf"^```{language}\n(.*?)^```$", re.DOTALL | re.MULTILINE)
    for page in PAGES:
        name = page.relative_to(ROOT).as_posix()
        for at, code in enumerate(fenced.findall(page.read_text("utf-8")), start=1):
            yield name, code, f"{name}-{at}"


def python_blocks():
    for page, code, name in blocks("python"):
        marks = [pytest.mark.slow] if page in SLOW else []
        yield pytest.param(page, code, id=name, marks=marks)


def shell_blocks():
    """The lines of each that a test can run; slowly, where they are many or take their time."""
    for page, code, name in blocks("sh"):
        lines = [line for line in code.splitlines() if not NOT_HERE.search(line)]
        slow = len(lines) > 2 or SECONDS.search(code)
        if lines:
            yield pytest.param(page, lines, id=name, marks=[pytest.mark.slow] if slow else [])


@pytest.mark.slow
@pytest.mark.parametrize(("page", "code"), list(python_blocks()))
def test_block_stands_alone(page, code, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MPLBACKEND", "agg")
    exec(compile(code, page, "exec"), {"__name__": "__main__"})
    shown = capsys.readouterr().out.splitlines()
    printed = [line for line in code.splitlines() if line.lstrip().startswith("print(")]
    if len(shown) != len(printed):  # in a loop, or of several lines
        return
    for line, output in zip(printed, shown, strict=True):
        claim = CLAIM.match(line)
        assert not claim or output == claim[1], line


@pytest.mark.slow
@pytest.mark.parametrize(("page", "lines"), list(shell_blocks()))
def test_lines_of_a_shell_run(page, lines, tmp_path, monkeypatch):
    """One after the other in a folder with nothing but what the page has saved; a comparison may
    find that it does not agree."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "mine", raising=False)  # that of another page
    for of, code, _ in blocks("python"):
        if of == page and "__main__" in code:  # a file that is imported
            (tmp_path / "mine.py").write_text(code)
    for line in lines:
        program, _, words = line.partition(" ")
        if program in PROGRAMS:
            assert PROGRAMS[program](words) in (0, words.startswith("compare")), line
        else:
            subprocess.run(line.replace("python3", sys.executable), shell=True, check=True)
