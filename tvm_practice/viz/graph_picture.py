"""Graphs as columns of boxes, an SVG: each box a kernel, each line in it an operator."""

from collections.abc import Mapping
from html import escape
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tvm_practice.viz.graph import Graph

_WIDTH, _GAP, _ROW, _PAD = 240, 36, 18, 6  # pixels: of a column, between columns, of a line
_TOP = 30
_OPERATOR, _KERNEL = "#8a8f98", "#0084c7"


def graphs_svg(graphs: Mapping[str, "Graph"], *, title: str) -> str:
    """The graphs side by side, their calls in the order in which they run.

    Args:
        graphs: by heading of their column.
        title: for a screen reader.

    Returns:
        An SVG element. Its text has the colour of the page around it. A call that is a kernel has a
        blue box, an operator that is none yet a grey one.
    """
    parts: list[str] = []
    bottom = 0.0
    for number, (heading, shown) in enumerate(graphs.items()):
        x = number * (_WIDTH + _GAP)
        parts.append(f'<text x="{x}" y="16" font-weight="bold">{escape(heading)}</text>')
        bottom = max(bottom, _column(shown, x, parts))
    width = len(graphs) * (_WIDTH + _GAP) - _GAP
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" role="img" '
        f'aria-label="{escape(title, quote=True)}" viewBox="0 0 {width} {bottom:.0f}" '
        f'width="{width}" height="{bottom:.0f}" fill="currentColor" '
        f'font-family="ui-monospace, monospace" font-size="12">{"".join(parts)}</svg>'
    )


def _column(shown: "Graph", x: float, parts: list[str]) -> float:
    """Draw a graph's calls below each other; returns the lower edge."""
    y: float = _TOP
    for number, call in enumerate(shown.calls):
        if number:
            middle = x + _WIDTH / 2
            parts.append(
                f'<path d="M{middle} {y - 10}v8m-3 -3l3 3l3 -3" fill="none" stroke="currentColor"/>'
            )
        height = _ROW * len(call.operators) + 2 * _PAD - 4
        colour = _KERNEL if call.kernel else _OPERATOR
        lines = "".join(
            f'<text x="{x + 8}" y="{y + _PAD + 10 + _ROW * line}">{escape(name)}</text>'
            for line, name in enumerate(call.operators)
        )
        parts.append(
            f"<g><title>{escape(str(call))}</title>"
            f'<rect x="{x + 0.5}" y="{y}" width="{_WIDTH - 1}" height="{height}" rx="4" '
            f'fill="{colour}" fill-opacity="0.16" stroke="{colour}"/>{lines}</g>'
        )
        y += height + 12
    return y
