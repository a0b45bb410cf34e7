r"""Displayed formulas for any width, and their numbers.

A formula of several parts, set apart by ``\quad``, is shown as that many, which go side by side
where there is room and below each other where there is not (``pages.css``).  Its number,
``\tag{4.3}``, is text beside it, which can be found and linked to; wherever (4.3) is cited, it is a
link there.
"""

import re
from typing import Any

from docutils import nodes
from sphinx.transforms.post_transforms import SphinxPostTransform
from sphinx.util.nodes import make_refnode

TAG = re.compile(r"\\tag\{(\d+\.\d+)\}")
CITED = re.compile(r"(?<!\w)\((\d{1,2}\.\d{1,2})\)")
GAP = re.compile(r"(\\q?quad\b)|(\{|\\left\b|\\begin\b)|(\}|\\right\b|\\end\b)")
POINTS = re.compile(r"[.,;:)\]?!]+")
SHORT = 40  # characters of TeX, on a line of a phone
WITHOUT_LINKS = (nodes.literal, nodes.literal_block, nodes.math, nodes.math_block, nodes.reference)


def parts(formula: str) -> list[str]:
    r"""What ``\quad`` sets apart, inside of no bracket."""
    found, start, depth = [], 0, 0
    for mark in GAP.finditer(formula):
        gap, opened, closed = mark.groups()
        depth += bool(opened) - bool(closed)
        if gap and depth == 0:
            found.append(formula[start : mark.start()])
            start = mark.end()
    return [part.strip() for part in (*found, formula[start:])]


def prepare(app: Any, doctree: nodes.document) -> None:
    """Divide every formula; give those with a tag their number, and a place to be linked to."""
    domain = app.env.get_domain("math")
    for formula in doctree.findall(nodes.math_block):
        text = formula.astext()
        bare = TAG.sub("", text)
        if r"\\" not in bare:  # rows, which Sphinx sets as one
            bare = r"\] \[".join(parts(bare))
        formula.children = [nodes.Text(bare)]
        if tag := TAG.search(text):
            formula["number"] = formula["label"] = tag[1]
            formula["ids"] = [nodes.make_id(f"equation-{tag[1]}")]
            domain.equations[tag[1]] = (app.env.docname, tag[1])


def keep_points(_app: Any, doctree: nodes.document) -> None:
    """Let no line begin with the point or bracket that follows a short formula in the text; a long
    one may have to be broken, and a matrix is not set right where no line may end."""
    for formula in list(doctree.findall(nodes.math)):
        if len(formula.astext()) > SHORT or "matrix" in formula.astext():
            continue
        after = formula.next_node(descend=False, siblings=True)
        if isinstance(after, nodes.Text) and (points := POINTS.match(after)):
            # by place, as equal texts of a paragraph are one to replace()
            parent = formula.parent
            at = next(k for k, node in enumerate(parent.children) if node is formula)
            line = nodes.inline("", "", formula, nodes.Text(points[0]), classes=["kept"])
            parent[at : at + 2] = [line, nodes.Text(after[points.end() :])]


class LinkCitations(SphinxPostTransform):
    """Make links of the numbers that the text cites."""

    default_priority = 5

    def run(self, **_: Any) -> None:
        known = self.env.get_domain("math").equations
        for text in list(self.document.findall(nodes.Text)):
            if any(isinstance(parent, WITHOUT_LINKS) for parent in ancestors(text)):
                continue
            pieces = CITED.split(str(text))  # text, number, text, number, ..., text
            if not any(label in known for label in pieces[1::2]):
                continue
            shown = [self.link(p) if at % 2 else nodes.Text(p) for at, p in enumerate(pieces)]
            text.parent.replace(text, shown)

    def link(self, label: str) -> nodes.Node:
        """The number in brackets, a link where there is such an equation."""
        text = nodes.Text(f"({label})")
        page = self.env.get_domain("math").equations.get(label, (None,))[0]
        if page is None:
            return text
        place = nodes.make_id(f"equation-{label}")
        return make_refnode(self.app.builder, self.env.docname, page, place, text)


def ancestors(node: nodes.Node) -> list[nodes.Node]:
    """All nodes that a node is in."""
    found = []
    while node := node.parent:
        found.append(node)
    return found


def setup(app: Any) -> dict[str, bool]:
    """Register all three with Sphinx."""
    app.connect("doctree-read", prepare)
    app.connect("doctree-read", keep_points)
    app.add_post_transform(LinkCitations)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
