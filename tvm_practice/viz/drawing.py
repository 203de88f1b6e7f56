"""What every plot shares: a figure whose text takes the page's colour, as SVG."""

import io
import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# A colour that no plot uses; in the SVG it becomes the text colour of the page around it.
_INK = "#010203"
_STYLE: dict[Any, Any] = {
    "text.color": _INK, "axes.edgecolor": _INK, "axes.labelcolor": _INK, "axes.titlecolor": _INK,
    "xtick.color": _INK, "ytick.color": _INK, "grid.color": _INK, "legend.labelcolor": _INK,
    "grid.alpha": 0.15, "axes.grid": False, "legend.framealpha": 0.0, "legend.edgecolor": "none",
    "figure.facecolor": "none", "axes.facecolor": "none", "savefig.facecolor": "none",
    "font.size": 9, "axes.titlesize": 10, "svg.fonttype": "none",
    "font.family": "sans-serif", "axes.spines.top": False, "axes.spines.right": False,
    # Readable on white and on near-black (Okabe and Ito's colours for the colour-blind).
    "axes.prop_cycle": "cycler('color', ['#0084c7', '#e07b00', '#009e73', '#cc6699', '#b08a00'])",
}  # fmt: skip


def new_figure(width: float, height: float) -> "Figure":
    """A figure in the project's style, inches wide and high; draw on it, then `to_svg`."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    with mpl.rc_context(_STYLE):
        return Figure(figsize=(width, height), layout="constrained")


def style() -> Any:
    """A context in which axes made and drawn on have the project's style."""
    import matplotlib as mpl

    return mpl.rc_context(_STYLE)


def to_svg(figure: "Figure", *, title: str) -> str:
    """The figure as an SVG element for a page, its text in the page's colour.

    Args:
        title: what is to be seen, for a screen reader.
    """
    import matplotlib as mpl

    text = io.StringIO()
    with mpl.rc_context({**_STYLE, "svg.hashsalt": title}):
        figure.savefig(text, format="svg", metadata={"Date": None, "Creator": None})
    svg = text.getvalue()
    svg = svg[svg.index("<svg") :].replace(_INK, "currentColor")
    # Its ids are of this figure only, and several figures share a page.
    mark = re.sub(r"\W+", "-", title.lower())
    svg = re.sub(r'\bid="([^"]+)"', rf'id="{mark}-\1"', svg)
    svg = re.sub(r'(href="|url\()#([^")]+)', rf"\1#{mark}-\2", svg)
    name = title.replace("&", "&amp;").replace('"', "&quot;").replace("<", "&lt;")
    return svg.replace("<svg ", f'<svg role="img" aria-label="{name}" ', 1)


def standalone(svg: str) -> str:
    """An SVG as a file of its own: dark text on white, which any viewer shows."""
    with_colours = svg.replace("<svg ", '<svg style="color:#1a1a1a;background:#ffffff" ', 1)
    return '<?xml version="1.0" encoding="utf-8"?>\n' + with_colours
