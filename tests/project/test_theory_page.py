"""The theory page and those who cite it: every equation number has one place in the docs."""

import re
from collections import Counter

from tests.places import DOCS, PAGES, ROOT

# From the first section to the 23rd, where it is no argument of a function and no index.
ONE = r"\((2[0-3]|1\d|[1-9])\.([1-9]\d?)\)"
CITATION = re.compile(rf"(?<![\w\])]){ONE}(?:\s*[-–]\s*{ONE})?")  # noqa: RUF001
TAG = re.compile(r"\\tag\{([^}]*)\}")


def python_files():
    folders = ("solvers", "replica", "validation", "benchmarks", "tests")
    return [ROOT / "run.py", *(path for name in folders for path in (ROOT / name).rglob("*.py"))]


def text_of_page(path):
    """Prose, formulas and the comments of code blocks; not what the blocks compute."""
    text = path.read_text()

    def comments(block):
        return "\n".join(line.partition("#")[2] for line in block.group(0).splitlines())

    return re.sub(r"^```.*?^```", comments, text, flags=re.M | re.S)


def cited(text):
    """Every (n, m) that is cited, and what lies in a range."""
    for match in CITATION.finditer(text):
        section, first, end_section, last = (int(x) if x else 0 for x in match.groups())
        if not end_section:
            yield section, first
            continue
        assert section == end_section, match.group(0)
        assert first < last, match.group(0)
        yield from ((section, m) for m in range(first, last + 1))


def citations():
    """All of them, with who cites."""
    found = {}
    pages = (*PAGES, ROOT / "README.md", *ROOT.glob("benchmarks/*.md"))
    texts = {p: p.read_text() for p in python_files()} | {p: text_of_page(p) for p in pages}
    for path, text in texts.items():
        for number in cited(text):
            found.setdefault(number, set()).add(str(path.relative_to(ROOT)))
    return found


def tags():
    """How often each number is given to an equation."""
    return Counter(tag for page in PAGES for tag in TAG.findall(page.read_text()))


def test_every_citation_has_one_equation():
    found, given = citations(), tags()
    assert len(found) > 40
    lost = {f"({n}.{m})": who for (n, m), who in found.items() if f"{n}.{m}" not in given}
    assert not lost
    assert set(given.values()) == {1}


def test_tagged_equations_are_of_one_line():
    """Sphinx puts what has a line break into an environment in which MathJax refuses tags."""
    for page in PAGES:
        for formula in page.read_text().split("$$")[1::2]:
            assert not (TAG.search(formula) and r"\\" in formula), formula


def sections():
    """The pages of the theory, in their order."""
    return [page.read_text() for page in sorted((DOCS / "theory").glob("*.md"))]


def test_numbers_are_in_order_on_the_theory_page():
    numbers = [tuple(map(int, x.split("."))) for x in TAG.findall("".join(sections()))]
    assert numbers == sorted(numbers)
    each = {n: [m for k, m in numbers if k == n] for n, _ in numbers}
    assert all(found == list(range(1, len(found) + 1)) for found in each.values())


def test_every_section_is_there():
    headings = [int(re.search(r"^# (\d+)\. ", text, flags=re.M)[1]) for text in sections()]
    assert headings == [*range(1, 24)]
