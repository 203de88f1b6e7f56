"""A loop nest as nested boxes, an SVG: each loop a box around what it repeats."""

from collections.abc import Sequence
from html import escape

from tvm_practice.viz.loop_nest import Loop, Node, Statement
from tvm_practice.wording import number_of

_ROW = 24  # height of a line, pixels
_PAD = 7
_WIDTH = 460
_CHARACTER = 7.25  # width of one at 12 px, monospace
# By kind of loop: fill, and what it says when pointed at.
_KINDS = {
    "serial": ("#8a8f98", "one iteration after the other"),
    "parallel": ("#0084c7", "its iterations are shared among the threads"),
    "vectorized": ("#e07b00", "its iterations are the lanes of vector instructions"),
    "unrolled": ("#009e73", "its body is written out, iteration after iteration"),
    "thread": ("#cc6699", "its iterations are GPU threads or blocks"),
}


def nest_svg(nest: Sequence[Node], *, title: str, changed: frozenset[str] = frozenset()) -> str:
    """The boxes.

    Args:
        nest: as `loop_nest.loop_nest` gives it.
        title: what it is, for a screen reader.
        changed: lines of `loop_nest.format_nest`, stripped; those loops have a thicker border.

    Returns:
        An SVG element. Its text has the colour of the page around it; a loop that is pointed at
        says how often its body runs.
    """
    parts: list[str] = []
    bottom: float = _PAD
    for node in nest:
        bottom = _box(node, _PAD, bottom, _WIDTH - 2 * _PAD, 1, parts, changed) + _PAD
    name = escape(title, quote=True)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="nest" role="img" aria-label="{name}" '
        f'viewBox="0 0 {_WIDTH} {bottom}" width="{_WIDTH}" height="{bottom}" '
        f'font-family="ui-monospace, monospace" font-size="12">{"".join(parts)}</svg>'
    )


def _box(
    node: Node,
    x: float,
    y: float,
    width: float,
    runs: int,
    parts: list[str],
    changed: frozenset[str],
) -> float:
    """Draw a node at (x, y); returns its lower edge."""
    if isinstance(node, Statement):
        text = f"{node.writes} <- {', '.join(node.reads) or 'constant'}"
        parts.append(
            f'<g class="statement"><title>{escape(node.name)}: runs {runs:,} times</title>'
            f'<rect x="{x}" y="{y}" width="{width}" height="{_ROW}" rx="3" '
            'fill="currentColor" fill-opacity="0.07"/>'
            f"{_text(x + 6, y + 16, text, width - 12)}</g>"
        )
        return y + _ROW
    colour, meaning = _KINDS[node.kind]
    header, line = _header(node), _line(node)
    times = runs * node.extent if isinstance(node.extent, int) else runs
    at = len(parts)
    bottom = y + _ROW
    for child in node.children:
        bottom = _box(child, x + _PAD, bottom, width - 2 * _PAD, times, parts, changed) + 4
    bottom += _PAD - 4 if node.children else 0
    thick = line in changed
    parts.insert(
        at,
        f'<g class="loop {node.kind}{" changed" if thick else ""}"><title>{escape(header)}: '
        f"{meaning}; its body runs {number_of(times, 'time')}</title>"
        f'<rect x="{x}" y="{y}" width="{width}" height="{bottom - y}" rx="4" fill="none" '
        f'stroke="{colour}" stroke-width="{2.5 if thick else 1}"/>'
        f'<rect x="{x}" y="{y}" width="{width}" height="{_ROW - 3}" rx="4" fill="{colour}" '
        f'fill-opacity="{0.45 if thick else 0.16}"/>'
        f"{_text(x + 6, y + 15, header, width - 12)}</g>",
    )
    return bottom


def _header(loop: Loop) -> str:
    how = "" if loop.kind == "serial" else f"  {loop.thread or loop.kind}"
    return f"for {loop.name} in {loop.extent}{how}"


def _line(loop: Loop) -> str:
    return f"for {loop.name} in {loop.thread or loop.kind}({loop.extent}):"


def _text(x: float, y: float, text: str, room: float) -> str:
    most = int(room / _CHARACTER)
    shown = text if len(text) <= most else text[: max(1, most - 1)] + "…"
    return f'<text x="{x}" y="{y}" fill="currentColor">{escape(shown)}</text>'


def changed_lines(before: str, after: str) -> frozenset[str]:
    """Lines of the nest `after`, stripped, that `before` does not have in that place."""
    import difflib

    found = difflib.ndiff(
        [line.strip() for line in before.splitlines()],
        [line.strip() for line in after.splitlines()],
    )
    return frozenset(line[2:] for line in found if line.startswith("+ "))
