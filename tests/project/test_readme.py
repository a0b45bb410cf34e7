"""The README: a short example, which tests/docs runs, and commands that exist, as CI has them."""

import re

from tests.places import ROOT

README, SYMBOLS = ((ROOT / name).read_text() for name in ("README.md", "docs/symbols.md"))


def test_two_commands():
    commands = re.findall(r"^python3 run\.py (\w+)$", README, re.MULTILINE)
    assert commands == ["demo", "test"]
    script = (ROOT / ".ci/run").read_text().splitlines()
    steps = ["python3 run.py test", "python3 run.py rest"]
    assert [line for line in script if "run.py" in line] == steps


def test_links_point_to_files():
    for target in re.findall(r"\]\(([^)#]+)\)", README):
        if not target.startswith("http"):
            assert (ROOT / target).exists(), target


def test_symbol_table_names_exist():
    """Every field the table names is one of the problem objects' or of a call's."""
    import replica

    rows = re.findall(r"^\| \$.*?\$ \| `(\w+)`", SYMBOLS, re.MULTILINE)
    known = {
        *replica.GradientStep.__dataclass_fields__,
        *replica.SpikedRandomFeatures.__dataclass_fields__,
        *replica.Solution.__dataclass_fields__,
        "V1", "V2", "m", "theta", "psi", "Q1", "q2",
    }  # fmt: skip
    assert len(rows) > 12
    assert set(rows) <= known, set(rows) - known
