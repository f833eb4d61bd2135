"""Sphinx configuration. Nothing here reaches for the network, neither while building nor in the pages."""

import sys
from importlib.metadata import version as installed_version
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "_ext"))

project = "pegasos"
author = "the pegasos authors"
copyright = "2026, the pegasos authors"
version = release = installed_version("pegasos")

extensions = [
    "mathml",
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
]
myst_enable_extensions = ["dollarmath", "deflist"]
myst_heading_anchors = 3
autosummary_generate = True
templates_path = ["_templates"]
autodoc_typehints = "none"
autodoc_member_order = "bysource"
numpydoc_show_class_members = False
numpydoc_class_members_toctree = False
exclude_patterns = ["_build", "_templates"]
html_math_renderer = "mathml"

html_theme = "pydata_sphinx_theme"
html_title = "pegasos"
html_show_sourcelink = False
html_theme_options = {
    "navbar_end": ["theme-switcher", "navbar-icon-links"],
    "show_toc_level": 2,
    "secondary_sidebar_items": ["page-toc"],
}


def escape_bars(app, what, name, obj, options, lines):
    """|x| is an absolute value in our docstrings, not a substitution of reStructuredText."""
    if name.startswith("pegasos.losses"):
        lines[:] = [line if "``" in line else line.replace("|", r"\|") for line in lines]


def setup(app):
    app.connect("autodoc-process-docstring", escape_bars, priority=400)
