"""The site: `make docs` builds it without the network, and any broken link or example ends it."""

import logging
import os
import re
import sys
import warnings
from pathlib import Path

os.environ["MPLBACKEND"] = "Agg"
DOCS = Path(__file__).resolve().parent
ROOT = DOCS.parent
sys.path.insert(0, str(ROOT / "src"))

from bochner import __version__  # noqa: E402

project = "bochner"
author = copyright = "The bochner authors"
release = version = __version__

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx_gallery.gen_gallery"]  # fmt: skip
exclude_patterns = ["gallery/**/*.ipynb", "gallery/**/*.py"]
html_theme = "furo"
html_title = f"bochner {__version__}"
html_show_sourcelink = False

# Markdown: links to headings, and files outside this folder.
myst_heading_anchors = 3
myst_enable_extensions = ["colon_fence"]
suppress_warnings = ["myst.header", "config.cache"]

# Docstrings.
autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_preserve_defaults = True
autodoc_mock_imports = ["blackjax", "botorch", "gpytorch", "ray", "skpro", "tensorboardX", "torch"]
napoleon_custom_sections = [("Attributes", "params_style")]  # else names lose their last underscore

# Examples: every one runs; a failing one ends the build.
sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "gallery",
    "filename_pattern": r"\.py",
    "within_subsection_order": "sphinx_gallery.sorting.FileNameSortKey",
    "abort_on_example_error": True,
    "plot_gallery": True,
    "download_all_examples": False,
    "show_memory": False,
    "capture_repr": (),
    # Its page would ask other hosts for scripts.
    "write_computation_times": False,
    "remove_config_comments": True,
    "min_reported_time": 1,
    "copyfile_regex": r"GALLERY_HEADER\.rst",
}
warnings.filterwarnings("ignore", message="FigureCanvasAgg is non-interactive")
logging.getLogger("jax").setLevel(logging.WARNING)

# Pages whose text lies above this folder; the files of these names in `site/` only keep their places.
_ABOVE = {
    ROOT / "CONTRIBUTING.md": "site/contributing",
    ROOT / "CHANGELOG.md": "site/changelog",
    ROOT / "SECURITY.md": "site/security",
    ROOT / "benchmarks/README.md": "site/benchmarks",
    ROOT / "benchmarks/results/splits.md": "site/splits",
    ROOT / "benchmarks/results/suite.md": "site/suite",
    ROOT / "experiments/notes/calibration.md": "site/notes-calibration",
    ROOT / "experiments/notes/recipes.md": "site/notes-recipes",
}
_LINK = re.compile(r"\]\(([^)#\s:]+)(#[^)\s]*)?\)")
# Written by the program that measures, which may not have run yet.
_SUITE = ROOT / "benchmarks/results/suite.md"
if not _SUITE.exists():
    exclude_patterns.append("site/suite.md")


def _texts_and_links(app, name, content):
    """Fetch the texts of pages that lie above, and let links to such pages stay within the site."""
    source = next((path for path, page in _ABOVE.items() if page == name), None)
    text = content[0] if source is None else source.read_text(encoding="utf-8")
    if not text.startswith("# "):
        text = f"# {Path(name).name.capitalize()}\n\n{text}"
    place = DOCS / f"{name}.md"
    folder = place.parent if source is None else source.parent

    def linked(found):
        path, heading = Path(os.path.normpath(folder / found[1])), found[2] or ""
        if path == _SUITE and not path.exists():
            return "]"
        if path in _ABOVE:
            path = DOCS / f"{_ABOVE[path]}.md"
        return f"]({os.path.relpath(path, place.parent)}{heading})"

    content[0] = _LINK.sub(linked, text)


def _code_in_docstrings(app, what, name, obj, options, lines):
    """Set what stands between single backticks as code, as in Markdown."""
    text = re.sub(r"(?<!`)`(?!`)([^`]+)`(?!`)", r"``\1``\\ ", "\n".join(lines))
    text = re.sub(r"(``[^`]+``)|\|", lambda found: found[1] or r"\|", text)
    lines[:] = text.split("\n")


def setup(app):
    """Register what is done to sources and docstrings."""
    app.connect("source-read", _texts_and_links)
    app.connect("autodoc-process-docstring", _code_in_docstrings, priority=400)
