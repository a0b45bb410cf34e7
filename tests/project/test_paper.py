"""The paper for a journal of software."""

from tests.places import ROOT

PAPER = (ROOT / "paper/paper.md").read_text("utf-8")


def test_numbers_are_those_of_the_benchmarks():
    """Each is in a table that ``python -m benchmarks.networks``, ``probe`` and others write."""
    said = {
        "networks": "| 2000 | 16 | 94% | 96% | 81% |",
        "probe": "| all | 228 | 17 | 7 | 89% |",
        "probe ": "| all |  |  |  |  | +0.4 | +8.6 | +3.0 |",
        "reuse": "- d = 1000, 21 settings: test errors 95%, 3.0, rms 1.14, up to 1.5% off",
        "results": "literal point over a point of the curve | 329,750",
    }
    for name, text in said.items():
        page = ROOT / f"benchmarks/{name.strip().upper()}.md"
        assert text in page.read_text("utf-8"), name
    for text in ("94 %", "81 %", ".4 %", "3.0 %", "89 %", "330,000"):
        assert text in PAPER.replace("\n", " ")
