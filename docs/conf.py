"""Sphinx configuration."""

import replica

project = "replica-srf"
author = "The replica-srf authors"
release = replica.__version__

extensions = ["sphinx.ext.autodoc", "sphinx.ext.autosummary", "numpydoc", "myst_nb"]
myst_enable_extensions = ["dollarmath", "amsmath"]
nb_execution_mode = "off"
numpydoc_show_class_members = False
autodoc_typehints = "none"
html_theme = "pydata_sphinx_theme"
html_title = project
exclude_patterns = ["_build"]
