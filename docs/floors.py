"""The picture of the packages and of what they import, drawn from the sources themselves.

``python docs/floors.py FILE`` draws it; building the documentation draws ``figures/floors.svg``.
"""

import ast
import sys
from collections import Counter
from functools import cache
from pathlib import Path

from matplotlib.figure import Figure
from matplotlib.patches import FancyBboxPatch

ROOT = Path(__file__).resolve().parents[1]
LIBRARIES = ("solvers", "replica", "validation")  # from the ground up
COLOURS = {"solvers": "#8c8c8c", "replica": "#3b75af", "validation": "#c2703d"}


def modules() -> dict[str, Path]:
    """The file of every module, by its dotted name; a package is its ``__init__``."""
    files = [path for library in LIBRARIES for path in sorted((ROOT / library).rglob("*.py"))]
    names = (".".join(path.relative_to(ROOT).with_suffix("").parts) for path in files)
    return {name.removesuffix(".__init__"): path for name, path in zip(names, files, strict=True)}


def box(module: str) -> str:
    """The row of the picture that a module belongs to: its package, or itself."""
    library, *rest = module.replace("__main__", "cli").split(".")  # which is all that it runs
    return library if library == "solvers" or not rest else f"{library}.{rest[0]}"


def imported(module: str, files: dict[str, Path]) -> set[str]:
    """The modules that ``module`` imports, anywhere in its text."""
    path = files[module]
    package = module if path.name == "__init__.py" else module.rpartition(".")[0]
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            parents = package.split(".")[: package.count(".") + 2 - node.level]
            above = ".".join(parents) + "." * bool(node.module) if node.level else ""
            base = above + (node.module or "")
            found |= {
                name if (name := f"{base}.{alias.name}") in files else base for alias in node.names
            }
    return found & set(files)


@cache
def counts() -> tuple[Counter[str], Counter[str], Counter[tuple[str, str]]]:
    """Modules and lines of each box, and how many modules of a box import from another."""
    files = modules()
    sizes, lines, arrows = Counter[str](), Counter[str](), Counter[tuple[str, str]]()
    for module, path in files.items():
        own = box(module)
        sizes[own] += 1
        lines[own] += len(path.read_text(encoding="utf-8").splitlines())
        arrows.update({(own, box(other)) for other in imported(module, files)} - {(own, own)})
    return sizes, lines, arrows


def order(boxes: Counter[str], arrows: Counter[tuple[str, str]]) -> list[str]:
    """The boxes from the ground up: each after all that it imports, the libraries in turn."""

    @cache
    def depth(box: str) -> int:
        """Rooms in the longest chain of imports below this one."""
        return max((1 + depth(used) for user, used in arrows if user == box), default=0)

    return sorted(boxes, key=lambda box: (LIBRARIES.index(box.split(".")[0]), depth(box), box))


def draw(path: Path) -> None:
    """Write the picture: a box for every box, and beside it what its modules import."""
    sizes, lines, arrows = counts()
    boxes = order(sizes, arrows)
    top = len(boxes)
    picture = Figure(figsize=(9.9, 0.31 * top + 1.2), layout="constrained")
    ax = picture.subplots()
    left, modules_at, lines_at = -11.0, -2.9, -0.8
    for y, name in enumerate(boxes):
        library, _, own = name.partition(".")
        colour = COLOURS[library]
        shape = FancyBboxPatch(
            (left, y - 0.4), 7.0, 0.8, boxstyle="round,pad=0,rounding_size=0.18",
            facecolor=colour, edgecolor="none", alpha=0.9,
        )  # fmt: skip
        ax.add_patch(shape)
        ax.text(left + 0.2, y, name, va="center", color="white", fontsize=10, weight="bold")
        for x, number in ((modules_at, sizes[name]), (lines_at, lines[name])):
            ax.text(x, y, f"{number:,}", va="center", ha="right", fontsize=10)
        ax.plot([-0.5, y - 0.4], [y, y], color="0.9", linewidth=0.6, zorder=0)
        ax.plot([y, y], [y + 0.6, top - 0.4], color="0.9", linewidth=0.6, zorder=0)
        for x, other in enumerate(boxes[:y]):
            number = arrows[name, other]
            if number:
                shade, strength = COLOURS[other.split(".")[0]], min(0.2 + 0.05 * number, 0.7)
                ax.scatter(x, y, s=170, color=shade, alpha=strength, lw=0)
                ax.text(x, y, f"{number}", ha="center", va="center", fontsize=9)
        label = own or name
        ax.text(
            y, top - 0.25, label, rotation=60, ha="left", va="bottom", fontsize=10,
            color=colour, rotation_mode="anchor",
        )  # fmt: skip
    for x, text in ((modules_at, "modules"), (lines_at, "lines")):
        ax.text(x, top - 0.25, text, ha="right", va="bottom", fontsize=10)
    ax.set_xlim(left - 0.2, top + 0.8)
    ax.set_ylim(-0.6, top + 3.2)
    ax.set_axis_off()
    picture.savefig(path, metadata={"Date": None} if path.suffix == ".svg" else None, dpi=110)


if __name__ == "__main__":
    draw(Path(sys.argv[1]))
