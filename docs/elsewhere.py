"""Links to the pages of other projects, for the types that parameters and results have.

Sphinx asks an inventory for them.  Those of whole projects are fetched from the network, which the
pages are built without; the few names that are met here are written down.
"""

import zlib
from pathlib import Path

# Where the pages of a project are, and below that those of its names, which a $ stands for.
PROJECTS: dict[str, tuple[str, dict[str, str]]] = {
    "numpy": (
        "https://numpy.org/doc/stable/",
        {
            "numpy.ndarray": "reference/generated/$.html",
            "numpy.random.Generator": "reference/random/generator.html#$",
            "numpy.random.SeedSequence": "reference/random/bit_generators/generated/$.html",
        },
    ),
    "xarray": ("https://docs.xarray.dev/en/stable/", {"xarray.Dataset": "generated/$.html"}),
    "pandas": ("https://pandas.pydata.org/docs/", {"pandas.DataFrame": "reference/api/$.html"}),
    "matplotlib": (
        "https://matplotlib.org/stable/",
        {"matplotlib.axes.Axes": "api/_as_gen/$.html"},
    ),
    "python": (
        "https://docs.python.org/3/",
        {"concurrent.futures.Executor": "library/concurrent.futures.html#$"},
    ),
}
ALIASES = {  # what docstrings call them
    "array": "numpy.ndarray",
    "arrays": "numpy.ndarray",
    "Generator": "numpy.random.Generator",
    "SeedSequence": "numpy.random.SeedSequence",
    "Axes": "matplotlib.axes.Axes",
}
OWN = (
    "SpikedRandomFeatures", "GradientStep", "FirstLayer", "FeatureSample", "GaussianMixture",
    "Activation", "MultiIndex", "Loss", "Solution", "Staircase",
)  # fmt: skip
ALIASES |= {name: f"replica.{name}" for name in OWN}


def mapping(folder: Path) -> dict[str, tuple[str, str]]:
    """The inventories of all projects, written into a folder, as intersphinx takes them."""
    folder.mkdir(parents=True, exist_ok=True)
    found = {}
    for name, (address, pages) in PROJECTS.items():
        lines = "".join(f"{one} py:class 1 {page} -\n" for one, page in pages.items())
        head = f"# Sphinx inventory version 2\n# Project: {name}\n# Version: \n"
        head += "# The remainder of this file is compressed using zlib.\n"
        path = folder / f"{name}.inv"
        path.write_bytes(head.encode() + zlib.compress(lines.encode()))
        found[name] = (address, str(path))
    return found
