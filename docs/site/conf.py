"""The site: pages of docs/ as they stand, and a reference from docstrings; nothing is fetched."""

from __future__ import annotations

import sys
from pathlib import Path

from didyma import __version__

sys.path.insert(0, str(Path(__file__).parent))

project = "didyma"
author = "The didyma developers"
copyright = author
version = release = __version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    # This folder's own.
    "docstrings",
    "mathml",
    "offline",
    "outside",
    "reference",
    "sections",
    "signatures",
]
root_doc = "index"
source_suffix = {".md": "markdown", ".rst": "restructuredtext"}
exclude_patterns = ["site"]

myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 4

default_role = "py:obj"
napoleon_use_ivar = True
autodoc_member_order = "bysource"
autodoc_typehints = "none"  # the parameters of a docstring say it in words
autodoc_preserve_defaults = True
add_module_names = False
toc_object_entries_show_parents = "hide"
python_use_unqualified_type_names = True

html_theme = "pydata_sphinx_theme"
html_title = "didyma"
html_favicon = "static/didyma.svg"  # twins
html_static_path = ["static"]
html_css_files = ["site.css"]
html_math_renderer = "mathml"
html_copy_source = False
html_show_sourcelink = False
html_show_copyright = False
html_show_sphinx = False
html_sidebars = {"index": [], "search": []}
html_context = {"default_mode": "auto"}  # light or dark, as the reader's machine is
html_theme_options = {
    "logo": {"text": "didyma"},
    "navbar_align": "left",
    "header_links_before_dropdown": 6,
    "navbar_end": ["theme-switcher"],
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": [],
    "footer_end": [],
    "show_prev_next": True,
    "navigation_with_keys": False,
}
pygments_style = "tango"
