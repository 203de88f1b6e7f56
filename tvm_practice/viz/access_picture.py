"""Memory access drawn: which elements are touched in which order, still and moving."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tvm_practice.viz.access import AccessProgram, BufferTrace, Trace, follow
from tvm_practice.viz.drawing import new_figure, style, to_svg

if TYPE_CHECKING:
    import numpy as np
    from matplotlib.figure import Figure

_UNTOUCHED = "#8a8f9833"
_ORDER = "viridis"


@dataclass(frozen=True)
class Window:
    """A part of a program's run: so many touches of memory.

    Attributes:
        trace: those touches alone, without registers.
        caption: which part it is.
    """

    trace: Trace
    caption: str

    @property
    def buffers(self) -> list[BufferTrace]:
        """The buffers that are touched in it, by name: copies beside their originals."""
        touched = [each for each in self.trace.in_memory() if each.elements.size]
        return sorted(touched, key=lambda each: each.buffer.name)


def window(
    program: AccessProgram, touches: int, *, since: str | None = None, caption: str = ""
) -> Window:
    """Follow a program and keep a part of it.

    Args:
        touches: how many touches of memory.
        since: begin when this buffer is first read; None: at the start.
    """
    import numpy as np

    first, limit = 0, touches
    while True:
        trace = follow(program, limit=limit)
        memory = np.array([not each.in_registers for each in program.buffers])
        kept = np.flatnonzero(memory[trace.numbers]) if trace.numbers.size else trace.numbers
        if since is not None:
            number = [each.name for each in program.buffers].index(since)
            read = (trace.numbers[kept] == number) & (trace.writes[kept] == 0)
            if not read.any() and not trace.complete:
                limit *= 4
                continue
            first = int(read.argmax())
        if kept.size < first + touches and not trace.complete:
            limit = first + touches
            continue
        kept = kept[first : first + touches]
        part = Trace(
            program, trace.numbers[kept], trace.elements[kept], trace.writes[kept], trace.complete
        )
        return Window(part, caption)


def as_rows(buffer: Any, width: int) -> tuple[int, int]:
    """Rows and columns a buffer is drawn in: a matrix as it is, all else `width` to a row."""
    size = 1
    for extent in buffer.shape:
        size *= extent
    if len(buffer.shape) == 2:
        return int(buffer.shape[0]), int(buffer.shape[1])
    return -(-size // width), min(width, size)


def first_touches(trace: BufferTrace, width: int) -> "np.ndarray":
    """When each element is first touched, as a matrix in 0 (first) to 1 (last); NaN: never."""
    import numpy as np

    rows, columns = as_rows(trace.buffer, width)
    when = np.full(rows * columns, np.nan)
    elements, at = np.unique(trace.elements, return_index=True)
    order = np.argsort(np.argsort(at, kind="stable"), kind="stable")
    when[elements] = order / max(1, order.size - 1)
    return when.reshape(rows, columns)


def access_figure(windows: Mapping[str, Window], *, width: int = 32) -> "Figure":
    """Maps of the buffers, a row of panels a schedule, and its addresses over time.

    Colour says when an element is first touched, grey that it is not. The last panel of a row has
    the cache lines of the buffer that is read most, over time: a line that goes up is read through
    once, a band is used again and again.

    Args:
        windows: by schedule, parts of equal work.
        width: floats to a row for buffers that are no matrix.
    """
    columns = max(len(each.buffers) for each in windows.values()) + 1
    with style():
        figure = new_figure(2.15 * columns + 0.6, 2.45 * len(windows))
        grid = figure.subplots(len(windows), columns, squeeze=False)
        for row, (name, part) in zip(grid, windows.items(), strict=True):
            for axes, trace in zip(row, part.buffers, strict=False):
                _draw_map(axes, trace, width)
            for axes in row[len(part.buffers) : -1]:
                axes.set_axis_off()
            _draw_lines(row[-1], part)
            row[0].set_ylabel(name, fontsize=12, fontweight="bold")
    return figure


def _draw_map(axes: Any, trace: BufferTrace, width: int) -> None:
    draw_touches(axes, trace, width)
    lines = len(set(trace.lines().tolist()))
    axes.set_title(f"{trace.buffer.name}: {lines} line{'s' if lines != 1 else ''}")
    strides = trace.strides()
    if strides:
        stride, share = strides[0]
        axes.set_xlabel(f"stride {stride:+d} ({share:.0%})", fontsize=8)


def draw_touches(axes: Any, trace: BufferTrace, width: int = 32) -> None:
    """The buffer as a map of `first_touches`, without title."""
    from matplotlib import colormaps

    shades = colormaps[_ORDER].copy()
    shades.set_bad(_UNTOUCHED)
    when = first_touches(trace, width)
    axes.imshow(when, cmap=shades, vmin=0, vmax=1, interpolation="nearest", aspect="equal")
    side = max(when.shape)  # all panels are squares of one size
    axes.set_ylim(side - 0.5, -0.5)
    axes.set_xticks([])
    axes.set_yticks([])
    for spine in axes.spines.values():
        spine.set_visible(False)


def _draw_lines(axes: Any, part: Window) -> None:
    busiest = _most_lines(part.buffers)
    lines = busiest.lines()
    axes.plot(
        busiest.steps, lines - lines.min(), ".", markersize=1.2, color="#e07b00", rasterized=True
    )
    axes.set_title(f"lines of {busiest.buffer.name} over time")
    axes.set_ylim(-1, 65)
    axes.set_xticks([])
    axes.set_yticks([0, 32, 64])
    axes.tick_params(labelsize=7)


def _most_lines(buffers: Sequence[BufferTrace]) -> BufferTrace:
    """The buffer of which most cache lines are touched among those that are only read."""
    read = [each for each in buffers if not each.writes.any()] or list(buffers)
    return max(reversed(read), key=lambda each: len(set(each.lines().tolist())))


def access_svg(windows: Mapping[str, Window], *, width: int = 32, title: str) -> str:
    """`access_figure` for a page."""
    return to_svg(access_figure(windows, width=width), title=title)


def animation(part: Window, *, width: int = 32) -> dict[str, Any]:
    """A window for the page's player.

    Returns:
        {"buffers": [{"name", "rows", "columns"}], "touches": [[buffer, element, write], …]}
    """
    numbers = {
        number: place
        for place, number in enumerate(
            number
            for number, each in enumerate(part.trace.program.buffers)
            if (part.trace.numbers == number).any()
        )
    }
    buffers = [part.trace.program.buffers[number] for number in numbers]
    shapes = [as_rows(each, width) for each in buffers]
    return {
        "buffers": [
            {"name": each.name, "rows": rows, "columns": columns}
            for each, (rows, columns) in zip(buffers, shapes, strict=True)
        ],
        "touches": [
            [numbers[number], element, write]
            for number, element, write in zip(
                part.trace.numbers.tolist(),
                part.trace.elements.tolist(),
                part.trace.writes.tolist(),
                strict=True,
            )
        ],
    }


def save_gif(
    windows: Mapping[str, Window], path: Path, *, frames: int = 64, width: int = 32
) -> None:
    """The windows side by side, moving: what was touched lately bright, what once was dim."""
    import numpy as np
    from matplotlib import animation as movies
    from matplotlib.figure import Figure

    columns = max(len(each.buffers) for each in windows.values())
    figure = Figure(figsize=(2 * columns, 2.2 * len(windows)), layout="constrained")
    grid = figure.subplots(len(windows), columns, squeeze=False)
    drawn: list[tuple[Any, BufferTrace, int]] = []
    for row, (name, part) in zip(grid, windows.items(), strict=True):
        for axes in row[len(part.buffers) :]:
            axes.set_axis_off()
        row[0].set_ylabel(name)
        for axes, trace in zip(row, part.buffers, strict=False):
            empty = np.zeros(as_rows(trace.buffer, width))
            image = axes.imshow(empty, cmap="inferno", vmin=0, vmax=1, aspect="equal")
            axes.set_title(trace.buffer.name, fontsize=9)
            axes.set_xticks([])
            axes.set_yticks([])
            drawn.append((image, trace, part.trace.numbers.size))

    def draw(frame: int) -> list[Any]:
        for image, trace, total in drawn:
            upto = np.searchsorted(trace.steps, total * (frame + 1) // frames)
            since = np.searchsorted(trace.steps, total * frame // frames)
            rows, across = as_rows(trace.buffer, width)
            seen = np.zeros(rows * across)
            seen[trace.elements[:upto]] = 0.35
            seen[trace.elements[since:upto]] = 1
            image.set_data(seen.reshape(rows, across))
        return [image for image, _, _ in drawn]

    movie = movies.FuncAnimation(figure, draw, frames=frames, interval=120, blit=False)
    movie.save(path, writer=movies.PillowWriter(fps=8), dpi=80)
