"""The developers' pages: every module has its place there, and nothing is named that is gone."""

import ast
import importlib.util
import re

import pytest

from tests.places import DOCS, PAGES, ROOT
from tests.project.test_structure import FILES

ARCHITECTURE = (DOCS / "architecture.md").read_text(encoding="utf-8")
FILE = re.compile(r"`([\w./-]+/[\w.-]+\.(?:py|md|json|cfg|cff))`")
PATH = re.compile(
    r"`((?:cli|convex|equivalence|observables|problem|saddle_point|solvers|steps)/\w+)`"
)


@pytest.mark.parametrize("page", [ROOT / "CONTRIBUTING.md", *PAGES], ids=lambda p: p.name)
def test_files_named_on_pages_exist(page):
    for name in FILE.findall(page.read_text(encoding="utf-8")):
        assert (ROOT / name).exists(), f"{page.name} names {name}, which does not exist"


def sections():
    """The parts of the architecture page on one package each, or on several, by heading."""
    parts = re.split(r"^### (.*)$", ARCHITECTURE, flags=re.MULTILINE)[1:]
    return {
        title.strip("`"): text.partition("\n## ")[0]
        for title, text in zip(parts[::2], parts[1::2], strict=True)
        if title != "Beside the packages"
    }


def section_of(package):
    """The text that describes a package, or the one that it is in."""
    known = sections()
    for name in (package, package.rpartition(".")[0]):
        if name in known:
            return known[name]
    return known["validation" if package.startswith("validation") else "The rest of `replica"]


def has_a_place(name):
    """Whether a module has something in it, and is no figure or command."""
    return not FILES[name].stem.startswith("__") and not re.match(
        r"validation\.(figures|cli)", name
    )


@pytest.mark.parametrize("name", list(filter(has_a_place, FILES)))
def test_every_module_has_its_place_on_the_architecture_page(name):
    package, _, module = name.rpartition(".")
    text = section_of(package)
    assert f"`{module}`" in text or f"`{package}.{module}`" in text, (
        f"docs/architecture.md does not say what {package}.{module} holds"
    )


def test_the_architecture_page_names_nothing_that_is_gone():
    """Words in code font that describe packages are modules, packages or names defined in them."""
    known = {"axes", "replica-validate", "__init__"}
    for name, path in FILES.items():
        known |= {name, *name.split(".")}
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
                known.add(node.name)
    for title, text in sections().items():
        for word in re.findall(r"`([\w.]+)`", text):
            parts = word.split(".")
            assert word in known or all(part in known for part in parts), (title, word)
    for path in PATH.findall(ARCHITECTURE):
        folder = ROOT if path.startswith("solvers") else ROOT / "replica"
        assert (folder / f"{path}.py").exists(), path


@pytest.fixture(scope="module")
def floors():
    """The module that draws the picture."""
    spec = importlib.util.spec_from_file_location("floors", DOCS / "floors.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_packages_use_what_the_page_lets_them(floors):
    arrows = floors.counts()[2]
    rows = re.findall(r"^\| `(replica\.\w+)` \|.*\| ([^|]*) \|$", ARCHITECTURE, re.MULTILINE)
    assert len(rows) > 6
    for package, allowed in rows:
        used = {other.removeprefix("replica.") for user, other in arrows if user == package}
        listed = {*re.findall(r"`(\w+)`", allowed), "solvers", "errors"}
        assert allowed.startswith("all") or used <= listed, (package, used - listed)


def test_the_picture_of_the_floors_can_be_drawn(floors, tmp_path):
    """Every package is in it."""
    sizes, *_ = floors.counts()
    assert {"solvers", "replica.convex", "validation.cli"} <= set(sizes)
    floors.draw(tmp_path / "floors.svg")
    picture = (tmp_path / "floors.svg").read_text("utf-8")
    assert all(f"<!-- {name} -->" in picture for name in sizes)
