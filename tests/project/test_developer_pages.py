"""The developers' pages: nothing is named that is gone."""

import re

import pytest

from tests.places import DOCS, PAGES, ROOT

ARCHITECTURE = (DOCS / "architecture.md").read_text(encoding="utf-8")
FILE = re.compile(r"`([\w./-]+/[\w.-]+\.(?:py|md|json|cfg|cff))`")
PATH = re.compile(r"`((?:\w+/)+\w+(?:\.py)?)`")


@pytest.mark.parametrize("page", [ROOT / "CONTRIBUTING.md", *PAGES], ids=lambda p: p.name)
def test_files_named_on_pages_exist(page):
    for name in FILE.findall(page.read_text(encoding="utf-8")):
        assert (ROOT / name).exists(), f"{page.name} names {name}, which does not exist"


def test_modules_named_on_the_architecture_page_exist():
    found = PATH.findall(ARCHITECTURE)
    assert len(found) > 10
    for name in found:
        module = name.removesuffix(".py")
        places = [ROOT / module, ROOT / "replica" / module]
        assert any(place.is_dir() or place.with_suffix(".py").exists() for place in places), name
