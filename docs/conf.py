"""Sphinx configuration."""

import importlib
import re
import sys
from pathlib import Path
from typing import Any

from docutils import nodes
from numpydoc.xref import DEFAULT_LINKS

DOCS = Path(__file__).resolve().parent
sys.path.insert(0, str(DOCS))

import elsewhere  # noqa: E402
import floors  # noqa: E402

import replica  # noqa: E402
from solvers.results import Status  # noqa: E402

project = "replica-srf"
author = "The replica-srf authors"
release = replica.__version__

# The names that the reference lists, each with a page of its own; and of the classes that have
# members for users, which those are (none said: all that have a docstring).
REFERENCE = re.findall(r"^   (\w+(?:\.\w+)+)$", (DOCS / "api.md").read_text("utf-8"), re.MULTILINE)
MEMBERS = {
    "replica.Activation": "moments, slope",
    "replica.GradientStep": "srf, network",
    "replica.Loss": "proximal, score",
    "replica.Staircase": "powers, leap, directions, linear_stages, learned, plot",
    "replica.Solution": "finite_size_shift, settings, plot, to_dataframe",
    "replica.observables.Bounds": "",
    "replica.observables.BoundsOverEta": "plot",
    "replica.observables.LearnedFunction": "",
    "replica.observables.Optimum": "plot",
    "replica.observables.SamplesNeeded": "plot",
    "replica.sklearn.ProbeCurve": "fit, predict, score, samples_needed",
    "replica.spectra.Spectrum": "stieltjes, companion, density, moment, grid, plot",
    "solvers.results.Status": ", ".join(Status.__members__),
    "validation.Comparison": "agrees, verdict, columns, dataset, document, plot",
    "validation.Instance": "features, targets, labels",
    "validation.Simulation": "dataset, document, plot",
    "validation.mixtures.HermiteExpansion": "polynomial, student",
    "validation.mixtures.ImageTask": "draw, given",
    "validation.mixtures.MixtureTask": "draw, given",
}
# Of the sections of the theory, what their numbers are called by in a link.
THEORY = "".join(page.read_text("utf-8") for page in sorted((DOCS / "theory").glob("*.md")))
SECTIONS = {n: label for label, n in re.findall(r"^\((.*)\)=\n# (\d+)\.", THEORY, re.MULTILINE)}

extensions = [
    "command_reference",
    "equations",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.intersphinx",
    "numpydoc",
    "myst_parser",
    "sphinx_copybutton",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
    "sphinxcontrib.bibtex",
]
bibtex_bibfiles = ["references.bib"]
bibtex_reference_style = "author_year"
myst_enable_extensions = ["amsmath", "colon_fence", "dollarmath", "substitution"]
myst_substitutions = {"release": release}
myst_heading_anchors = 3
numpydoc_show_class_members = False
numpydoc_xref_param_type = True
# of its own, those that are no types but terms of pages that are not at hand stay text
terms = {name: name for name, link in DEFAULT_LINKS.items() if link.startswith(":")}
numpydoc_xref_aliases = terms | elsewhere.ALIASES
numpydoc_xref_ignore = {"optional", "of", "or", "shape", "sequence", "callable", "path"}
intersphinx_mapping = elsewhere.mapping(DOCS / "_build" / "inventories")
autodoc_typehints = "none"
templates_path = ["_templates"]
autosummary_context = {"for_users": MEMBERS}
autosummary_filename_map = {  # replica.Loss beside replica.loss: one file on some systems
    name: f"{name}-class"
    for name in REFERENCE
    if name.lower() in REFERENCE and name != name.lower()
}
copybutton_exclude = ".linenos, .gp, .go"  # prompts and what they print

# MathJax comes with these pages: no formula waits for a network.  What is wider than its box is
# broken at a sign; it scrolls where there is none.
mathjax_path = "mathjax/startup.js"
mathjax4_config = {
    "loader": {"load": ["input/tex", "output/chtml", "a11y/assistive-mml"]},
    "output": {"fontPath": "[mathjax]/fonts", "displayOverflow": "linebreak"},
}

sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "gallery",
    "filename_pattern": r"\.py$",
    "within_subsection_order": "FileNameSortKey",
    "backreferences_dir": "gallery/backreferences",
    "doc_module": ("replica", "validation"),
    "abort_on_example_error": True,
    "show_memory": False,
    "capture_repr": (),
    "write_computation_times": False,
    "show_signature": False,
    "min_reported_time": float("inf"),  # where these pages are built, which says little
    "remove_config_comments": True,
}

html_theme = "pydata_sphinx_theme"
html_theme_options = {
    "header_links_before_dropdown": 8,
    "navbar_align": "left",
    "navigation_with_keys": True,
    "show_nav_level": 2,
}
html_context = {"default_mode": "auto"}  # light or dark as the reader has it
html_static_path = ["_static"]
html_css_files = ["pages.css"]
html_sidebars = {page: [] for page in ("index", "reliability")}  # nothing below them
html_show_sourcelink = False
html_domain_indices = False  # the reference lists its names itself
html_title = f"{project} {release}"
exclude_patterns = ["_build", "_templates", "gallery/*.ipynb", "gallery/*.py", "_static"]


def for_readers(_app: Any, _what: str, _name: str, _one: Any, _options: Any, lines: Any) -> None:
    """Let |x| in a docstring be the size of x, where reStructuredText has a substitution, and what
    it cites of these pages be links: docs/theory.md 4, 6 those to sections."""
    for at, line in enumerate(lines):
        if not line.lstrip().startswith((">>>", "...")):
            line = re.sub(r"``.*?``|\|", lambda m: "\\|" if m[0] == "|" else m[0], line)
            line = re.sub(r"docs/theory\.md (\d+(?:\.\d+)?(?:(?:, |-)\d+)*)", sections, line)
            lines[at] = re.sub(r"docs/(\w+)\.md", r":doc:`/\1`", line)


def sections(cited: re.Match[str]) -> str:
    """Links to sections of the theory, from their numbers."""
    numbers = re.sub(r"(?<!\.)\b\d+", lambda m: f":ref:`{m[0]} <{SECTIONS[m[0]]}>`", cited[1])
    return f"Section{'s' * bool(re.search('[,-]', cited[1]))} {numbers}"


def name_in_parts(_app: Any, doctree: nodes.document, _page: str) -> None:
    """Let the title of a page of the reference break after a point, on a phone."""
    for title in doctree.findall(nodes.title):
        if title.astext() in REFERENCE:
            parts = re.split(r"(?<=\.)", title.astext())
            broken = [(nodes.raw("", "<wbr>", format="html"), nodes.Text(part)) for part in parts]
            title.children = [node for pair in broken for node in pair][1:]


def setup(app: Any) -> None:
    """Draw the picture of the floors; leave out of whole faces what has its own page."""
    app.connect("autodoc-process-docstring", for_readers, priority=900)  # after numpydoc
    app.connect("doctree-resolved", name_in_parts)
    floors.draw(DOCS / "figures" / "floors.svg")
    parts = [name.rpartition(".") for name in REFERENCE]
    public = [getattr(importlib.import_module(module), name) for module, _, name in parts]

    def skip(_app: Any, what: str, _name: str, member: Any, skipped: bool, _options: Any) -> bool:
        field = type(member).__name__ == "_tuplegetter"  # of a NamedTuple, which its docstring has
        return skipped or field or (what == "module" and any(member is one for one in public))

    app.connect("autodoc-skip-member", skip)
