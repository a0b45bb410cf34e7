"""The theory page and those who cite it: every equation number has one place in the docs."""

import io
import re
import tokenize
from collections import Counter
from pathlib import Path

import pytest

from tests.places import DOCS, PAGES, ROOT

# (4.3) to (18.12), where it is no argument of a function and no index: f(1.2), x[0](1.5).
ONE = r"\((1[0-8]|[1-9])\.([1-9]\d?)\)"
CITATION = re.compile(rf"(?<![\w\])]){ONE}(?:\s*[-–]\s*{ONE})?")  # noqa: RUF001
TAG = re.compile(r"\\tag\{([^}]*)\}")


def python_files():
    found = {
        p for name in ("solvers", "replica", "validation") for p in ROOT.rglob(f"{name}/**/*.py")
    }
    found |= set(ROOT.glob("benchmarks/*.py")) | set(ROOT.glob("tests/**/*.py")) | {ROOT / "run.py"}
    return sorted(p for p in found if not {".venv", "build"} & set(p.relative_to(ROOT).parts))


def text_of_python(path):
    """Comments and strings, without the code: an array at (3.5) is no equation."""
    kinds = {tokenize.COMMENT, tokenize.STRING, getattr(tokenize, "FSTRING_MIDDLE", -1)}
    tokens = tokenize.generate_tokens(io.StringIO(path.read_text()).readline)
    return "\n".join(t.string for t in tokens if t.type in kinds)


def text_of_page(path):
    """Prose, formulas and the comments of code blocks; not what the blocks compute."""
    text = path.read_text()

    def comments(block):
        return "\n".join(line.partition("#")[2] for line in block.group(0).splitlines())

    return re.sub(r"^```.*?^```", comments, text, flags=re.M | re.S)


def cited(text):
    """Every (n, m) that is cited, ranges such as (4.1)-(4.4) filled."""
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
    texts = {p: text_of_python(p) for p in python_files() if p.name != Path(__file__).name}
    texts |= {p: text_of_page(p) for p in PAGES}
    texts |= {p: text_of_page(p) for p in (ROOT / "README.md", *ROOT.glob("benchmarks/*.md"))}
    for path, text in texts.items():
        for number in cited(text):
            found.setdefault(number, set()).add(str(path.relative_to(ROOT)))
    return found


def tags():
    """How often each number is given to an equation."""
    return Counter(tag for page in PAGES for tag in TAG.findall(page.read_text()))


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("Eq. (4.3)", [(4, 3)]),
        ("Eqs. (4.9)-(4.11), as for (15.8)", [(4, 9), (4, 10), (4, 11), (15, 8)]),
        ("all of (2.1)–(2.2).", [(2, 1), (2, 2)]),  # noqa: RUF001
        ("needed_order(0.74), np.sqrt(1.3), x[0](1.5), f(x)(2.5), (0.5), (1.0), (1, 2)", []),
        ("[C] Eqs. (26)-(28)", []),
    ],
)
def test_what_is_a_citation(text, numbers):
    assert list(cited(text)) == numbers


def test_every_citation_has_one_equation():
    found, given = citations(), tags()
    assert len(found) > 40
    lost = {f"({n}.{m})": who for (n, m), who in found.items() if given[f"{n}.{m}"] != 1}
    assert not lost


def test_no_number_is_given_twice():
    assert [tag for tag, count in tags().items() if count > 1] == []


def test_tagged_equations_are_of_one_line():
    """Sphinx puts what has a line break into an environment in which MathJax refuses tags."""
    for page in PAGES:
        for formula in page.read_text().split("$$")[1::2]:
            assert not (TAG.search(formula) and r"\\" in formula), formula


def test_numbers_are_in_order_on_the_theory_page():
    numbers = [tuple(map(int, x.split("."))) for x in TAG.findall((DOCS / "theory.md").read_text())]
    assert numbers == sorted(numbers)
    sections = {n: [m for k, m in numbers if k == n] for n, _ in numbers}
    assert all(found == list(range(1, len(found) + 1)) for found in sections.values())


def test_every_section_is_there():
    headings = re.findall(r"^## (\d+)\. ", (DOCS / "theory.md").read_text(), flags=re.M)
    assert headings == [str(n) for n in range(1, len(headings) + 1)]
    assert len(headings) >= 15


def test_the_theory_is_cited_by_its_page():
    """An all-capital word says nothing about where to look: docs/theory.md, section 4, does."""
    word = re.compile(r"\bTHEOR" + r"Y\b")
    files = [*python_files(), *PAGES, ROOT / "README.md", *ROOT.glob("benchmarks/*.md")]
    assert [str(p.relative_to(ROOT)) for p in files if word.search(p.read_text())] == []
