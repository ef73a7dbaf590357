"""Turns matplotlib's figures into SVG that is part of a page: scalable, in the page's colors, without addresses."""

import contextlib
import io
import re
import warnings
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterator
from typing import Any

COLORS = {
    "ink": "#010001",
    "muted": "#010002",
    "line": "#010003",
    "accent": "#010004",
    "second": "#010005",
    "surface": "#010006",
}
"""Colors to draw with; each becomes the page's color of that name, in its light and its dark scheme."""

_INCHES_WIDE = 4.4
_SETTINGS = {
    "svg.fonttype": "none",
    "text.parse_math": False,  # a column may be called "$x"
    "path.simplify": False,
    "font.family": "DejaVu Sans",
    "font.size": 9.5,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": COLORS["muted"],
    "axes.labelcolor": COLORS["ink"],
    "axes.axisbelow": True,
    "axes.grid": True,
    "grid.color": COLORS["line"],
    "grid.linewidth": 0.7,
    "text.color": COLORS["ink"],
    "xtick.color": COLORS["muted"],
    "ytick.color": COLORS["muted"],
    "xtick.labelcolor": COLORS["ink"],
    "ytick.labelcolor": COLORS["ink"],
    "legend.frameon": False,
}
_NO_METADATA: dict[str, Any] = dict.fromkeys(["Date", "Creator", "Format", "Type"])
_DROPPED = ("metadata", "style")


class Drawing:
    """One figure while it is drawn: `axes` to draw on, and then `svg`, an element for a page.

    Args:
        name: different for each figure of a page; it goes into the ids.
        label: what the figure shows, for those who cannot see it.
        inches_high: its height; the width is the same for all.
    """

    def __init__(self, name: str, label: str, inches_high: float = 3.1):
        self._name, self._label, self._inches_high = name, label, inches_high
        self.axes: Any = None
        self.svg = ""

    @contextlib.contextmanager
    def on_axes(self) -> Iterator[Any]:
        """Give axes to draw on; afterwards `svg` holds the element."""
        Figure, rc_context = _matplotlib()
        with rc_context({**_SETTINGS, "svg.hashsalt": self._name}), warnings.catch_warnings():
            warnings.filterwarnings("ignore", "Glyph .* missing")  # the browser's fonts have it
            figure = Figure(figsize=(_INCHES_WIDE, self._inches_high), layout="constrained")
            yield figure.subplots()
            stream = io.StringIO()
            figure.savefig(stream, format="svg", transparent=True, metadata=_NO_METADATA)
        self.svg = inline(stream.getvalue(), self._name, self._label)


def inline(document: str, name: str, label: str) -> str:
    """Make an SVG document an element of a page: no namespaces or fixed size, ids of its own, the page's colors.

    Example:
        >>> from bochner.report.svg import inline
        >>> document = '<svg xmlns="http://www.w3.org/2000/svg" width="9pt" viewBox="0 0 9 9"><g id="a" /></svg>'
        >>> inline(document, "curve", "A curve")
        '<svg viewBox="0 0 9 9" role="img" aria-label="A curve"><g id="curve-a" /></svg>'
    """
    root = ElementTree.fromstring(document)
    for parent in root.iter():
        parent.tag = _local(parent.tag)
        for child in [child for child in parent if _local(child.tag) in _DROPPED]:
            parent.remove(child)
        attributes = {_local(key): _rewritten(value, name) for key, value in parent.attrib.items()}
        if "id" in attributes:
            attributes["id"] = f"{name}-{attributes['id']}"
        parent.attrib.clear()
        parent.attrib.update(attributes)
    for fixed in ("width", "height", "version"):
        root.attrib.pop(fixed, None)
    root.attrib.update({"role": "img", "aria-label": label})
    return ElementTree.tostring(root, encoding="unicode")


def _rewritten(value: str, name: str) -> str:
    """Point references to the figure's own ids, and give colors their names."""
    value = re.sub(r"url\(#([^)]+)\)", rf"url(#{name}-\1)", value)
    value = re.sub(r"^#([A-Za-z]\w*)$", rf"#{name}-\1", value)
    for color, code in COLORS.items():
        value = value.replace(code, f"var(--{color})")
    return value


def _local(tag: str) -> str:
    """The name without its namespace."""
    return tag.rpartition("}")[2]


def _matplotlib() -> tuple[Any, Any]:
    try:
        from matplotlib import rc_context
        from matplotlib.figure import Figure
    except ImportError as error:
        raise ImportError(
            "the report draws plots with matplotlib: install it with `pip install matplotlib`."
        ) from error
    return Figure, rc_context
