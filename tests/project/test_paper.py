"""The paper for a journal of software: short, with its sections, its figures and its references."""

import re

from tests.places import ROOT

PAPER, REFERENCES = (
    (ROOT / "paper" / name).read_text("utf-8") for name in ("paper.md", "paper.bib")
)


def test_every_reference_is_cited_and_has_a_doi():
    cited = set(re.findall(r"@([a-z]+\d{4}\w+)", PAPER))
    assert cited == set(re.findall(r"^@\w+\{(\w+),$", REFERENCES, re.MULTILINE))
    assert len(re.findall(r"^  doi ", REFERENCES, re.MULTILINE)) == len(cited)


def test_figures_are_there_and_referred_to():
    figures = re.findall(r"\\label\{(.*?)\}\]\((.*?)\)", PAPER)
    assert len(figures) == 2
    for label, place in figures:
        assert f"\\autoref{{{label}}}" in PAPER
        assert (ROOT / "paper" / place).exists()


def test_numbers_are_those_of_the_benchmarks():
    """Each is in a table that ``python -m benchmarks.networks``, ``probe`` and others write."""
    said = {
        "networks": "| 2000 | 16 | 94% | 96% | 81% |",
        "probe": "| all | 228 | 33 | 7 | 90% |",
        "probe ": "| all |  |  |  |  | +0.4 | +8.6 | +3.0 |",
        "reuse": "- d = 1000, 21 settings: test errors 95%, 3.0, rms 1.14, up to 1.5% off",
        "results": "literal point over a point of the curve | 498,205",
    }
    for name, text in said.items():
        page = ROOT / f"benchmarks/{name.strip().upper()}.md"
        assert text in page.read_text("utf-8"), name
    for text in ("94 %", "81 %", ".4 %", "3.0 %", "90 %", "500,000"):
        assert text in PAPER.replace("\n", " ")
