"""Every block of Python in the README and on the pages runs as it is, and prints what it says."""

import re
from pathlib import Path

import pytest

ROOT = next(p for p in Path(__file__).resolve().parents if (p / "pyproject.toml").exists())
GENERATED = {"_build", "gallery"}
PAGES = [
    ROOT / "README.md",
    *sorted(p for p in (ROOT / "docs").rglob("*.md") if not GENERATED & set(p.parts)),
]
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.DOTALL | re.MULTILINE)
CLAIM = re.compile(r"^\s*print\(.*\)  # ([\d{TF-].*)$")
SLOW = {"docs/simulation.md"}  # networks of 500 inputs


def blocks():
    """Every block, under the name of its page and its place there."""
    for page in PAGES:
        name = page.relative_to(ROOT).as_posix()
        marks = [pytest.mark.slow] if name in SLOW else []
        for at, code in enumerate(BLOCK.findall(page.read_text("utf-8")), start=1):
            yield pytest.param(name, code, id=f"{name}-{at}", marks=marks)


@pytest.mark.parametrize(("page", "code"), list(blocks()))
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
