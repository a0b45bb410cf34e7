"""The built pages: nothing is dead, nothing is cut off, and formulas are set, at any width.

``sphinx-build -W -b html docs docs/_build/html`` builds them; these tests build nothing.
"""

import re
from functools import cache
from html.parser import HTMLParser
from urllib.parse import unquote, urlsplit

import pytest

from tests.places import DOCS

chromium = pytest.importorskip("tests.chromium", reason="websockets is not installed: .[test]")

HTML = DOCS / "_build/html"
PAGES = sorted(p for p in HTML.rglob("*.html") if "_static" not in p.parts)
WIDTHS = (1400, 390)  # a desk and a phone

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not PAGES, reason="the pages are not built: python3 run.py rest does it"),
]
each_page = pytest.mark.parametrize("page", PAGES, ids=[str(p.relative_to(HTML)) for p in PAGES])


class Content(HTMLParser):
    """What a page has: places that can be linked to, links, and pictures."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.places, self.links, self.pictures = set(), [], []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        has = dict(attrs)
        self.places |= {has.get("id"), has.get("name")} - {None}
        self.links += [has[key] for key in ("href", "src") if has.get(key)]
        if tag == "img":
            self.pictures.append((has.get("src"), has.get("alt")))


@cache
def content(page):
    return Content(page.read_text("utf-8"))


@each_page
def test_a_point_after_a_formula_is_there_once(page):
    assert not re.findall(r"</span>([,.;:)]+)</span>\1", page.read_text("utf-8"))


@each_page
def test_links_lead_somewhere(page):
    for link in content(page).links:
        parts = urlsplit(link)
        if parts.scheme or parts.netloc:
            continue
        target = (page.parent / unquote(parts.path)).resolve() if parts.path else page
        assert target.exists(), link
        if parts.fragment and target.suffix == ".html":
            assert unquote(parts.fragment) in content(target).places, link


@each_page
def test_pictures_are_described(page):
    """Thumbnails are not: the title that says what they show is part of the same link."""
    found = [source for source, told in content(page).pictures if not (told or "").strip()]
    assert [source for source in found if not source.endswith("_thumb.png")] == []


@pytest.fixture(scope="module")
def browser():
    if chromium.find() is None:
        pytest.skip(chromium.MISSING)
    with chromium.open_page(chromium.Page) as page:
        yield page


# Formulas wider than their box that cannot be scrolled; text and pictures wider than the page;
# formulas that were not understood; TeX that was not set; and by how much the page is wider than
# the window.
FLAWS = r"""
(typeof MathJax === "undefined" ? Promise.resolve() : MathJax.startup.promise).then(() => {
  const scrolls = box => ["auto", "scroll"].includes(getComputedStyle(box).overflowX);
  const name = box => box.closest("[id]")?.id + ": " + box.textContent.slice(0, 60);
  const walker = document.createTreeWalker(document.querySelector("main"), NodeFilter.SHOW_TEXT);
  const raw = [];
  while (walker.nextNode()) {
    const inside = walker.currentNode.parentElement.closest("pre, code, script, mjx-container");
    if (!inside && /\\[(\[]|\\(frac|tag|quad|alpha|lambda)\b|\$\$/.test(walker.currentNode.data))
      raw.push(walker.currentNode.data.trim().slice(0, 60));
  }
  const formulas = [...document.querySelectorAll("div.math mjx-container")];
  const edge = document.documentElement.clientWidth;
  return {
    cut: formulas.filter(f => f.scrollWidth > f.clientWidth + 1 && !scrolls(f)).map(name),
    outside: formulas.filter(f => f.getBoundingClientRect().right > edge + 1).map(name),
    long: [...document.querySelectorAll(".bd-article :is(h1, h2, h3, p, li, dt, img)")]
      .filter(text => !text.closest("table, pre, nav, .sd-tab-set"))
      .filter(text => text.scrollWidth > text.clientWidth + 1 && text.clientWidth > 0
        || text.getBoundingClientRect().right > edge + 1).map(name),
    unset: [...document.querySelectorAll("div.math, span.math")]
      .filter(f => !f.querySelector("mjx-container")).map(name),
    wrong: [...document.querySelectorAll("mjx-merror")].map(name),
    raw,
    wider: Math.max(0, document.documentElement.scrollWidth - edge),
  };
})
"""


@each_page
@pytest.mark.parametrize("width", WIDTHS)
def test_page_fits(browser, page, width):
    browser.errors.clear()
    browser.size(width)
    browser.go(page.as_uri())
    found = browser.run(FLAWS)
    assert {what: which for what, which in found.items() if which} == {}
    assert browser.errors == []
