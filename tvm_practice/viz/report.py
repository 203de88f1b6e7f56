"""report.html: one page that needs nothing beside it, made from a run's files.

A page is a title, facts, and sections of blocks; `page/report.html.j2` draws each kind of block.
Styles, scripts and pictures are inside: it opens from a disk without network, in light and dark,
on a phone, and printed.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib import resources
from pathlib import Path
from typing import Any, Literal

from tvm_practice.tvm_export.artifacts.schema import RatioRecord
from tvm_practice.tvm_export.writing import write_whole
from tvm_practice.wording import number_of

_MOST_OPERATORS = 60  # of a graph that are drawn


@dataclass(frozen=True)
class Block:
    """A part of a section; `kind` says which of the other fields it has.

    text and code have `text`; table has `title`, `headings`, `rows`; picture has `svg`,
    `caption`; steps has `schedules`, {name: [{"primitive", "svg"}]}, nests the same with one step
    each; player has `players`, see
    `access_picture.animation`, and `caption`; fusion has `graphs`, {name: {"operators",
    "kernels"}}.
    """

    kind: Literal["text", "code", "table", "picture", "steps", "nests", "player", "fusion"]
    text: str = ""
    title: str = ""
    headings: Sequence[str] = ()
    rows: Sequence[Sequence[str]] = ()
    svg: str = ""
    caption: str = ""
    schedules: Mapping[str, Any] = field(default_factory=dict)
    players: Mapping[str, Any] = field(default_factory=dict)
    graphs: Mapping[str, Any] = field(default_factory=dict)
    most: int = _MOST_OPERATORS


@dataclass(frozen=True)
class Section:
    """A heading and what is under it. `id` is its anchor in the page."""

    id: str
    title: str
    blocks: Sequence[Block]


@dataclass(frozen=True)
class Page:
    """A report. `facts` are said in a line under the title."""

    title: str
    facts: Sequence[str]
    sections: Sequence[Section]


def render(page: Page) -> str:
    """The page as HTML."""
    import jinja2
    from markupsafe import Markup

    folder = resources.files("tvm_practice.viz") / "page"
    text = {
        name: (folder / name).read_text(encoding="utf-8")
        for name in ("report.html.j2", "report.css", "report.js")
    }
    environment = jinja2.Environment(
        autoescape=True, trim_blocks=True, lstrip_blocks=True, undefined=jinja2.StrictUndefined
    )
    return environment.from_string(text["report.html.j2"]).render(
        page=page, css=Markup(text["report.css"]), javascript=Markup(text["report.js"])
    )


def write(page: Page, file: Path) -> Path:
    """Write the page; returns its file."""
    write_whole(file, render(page))
    return file


def table_block(headings: Sequence[str], rows: Sequence[Sequence[str]], title: str = "") -> Block:
    """A table of which some rows may be short, and some cells of two lines."""
    from tvm_practice.viz.tables import in_one_line

    filled = [[*map(in_one_line, row), *[""] * (len(headings) - len(row))] for row in rows]
    return Block("table", title=title, headings=headings, rows=filled)


def latency_block(ratios: Mapping[str, RatioRecord], *, baseline: str) -> Block:
    """Time over a baseline's, with 95% intervals, as bars.

    Args:
        ratios: by name.
        baseline: what 1 is.
    """
    from tvm_practice.viz.drawing import new_figure, style, to_svg

    measured = {
        name: (each.value, each.ci95)
        for name, each in ratios.items()
        if each.value is not None and each.ci95 is not None
    }
    if not measured:
        return Block("text", text=next(iter(ratios.values())).verdict)
    with style():
        figure = new_figure(7, 0.7 + 0.36 * len(measured))
        axes = figure.subplots()
        values = [value for value, _ in measured.values()]
        low = [value - interval[0] for value, interval in measured.values()]
        high = [interval[1] - value for value, interval in measured.values()]
        places = range(len(values))
        colours = ["#009e73" if value < 1 else "#e07b00" for value in values]
        bars = axes.barh(
            places, values, xerr=[low, high], color=colours, height=0.66, ecolor="#8a8f98"
        )
        axes.bar_label(bars, [f"{value:.2f}" for value in values], padding=6, fontsize=8)
        axes.axvline(1, color="#8a8f98", linestyle="--")
        axes.set_yticks(places, list(measured))
        axes.invert_yaxis()
        axes.margins(x=0.1)
        axes.set_xlim(left=0)
        axes.set_xlabel(f"time / {baseline}: left of 1 is faster")
        svg = to_svg(figure, title=f"Time against {baseline}: {', '.join(measured)}")
    return Block("picture", svg=svg, caption="Bars are medians, lines their 95% intervals.")


def schedule_sections(study: Mapping[str, Any]) -> list[Section]:
    """What a schedule does, from a study of the course's matmul."""
    return [_loops_section(study), _access_section(study), _caches_section(study)]


def _loops_section(study: Mapping[str, Any]) -> Section:
    rows, columns = study["tile"]
    left_out = [f"{name} is left out: {why}." for name, why in study["left_out"].items()]
    return Section(
        "loops",
        "Loops, primitive by primitive",
        [
            Block(
                "text",
                text=f"A matmul of {study['size']}³ under the schedules of phase 2, tiles of "
                f"{rows} x {columns}. The slider goes through the primitives; what one changed has "
                "a thick border. Point at a loop for how often its body runs. "
                + " ".join(left_out),
            ),
            Block("steps", schedules=study["steps"]),
        ],
    )


def _access_section(study: Mapping[str, Any]) -> Section:
    return Section(
        "access",
        "Memory access",
        [
            Block(
                "text",
                text="2048 multiply-adds of a 32³ matmul, as many for each schedule, followed "
                "through its IR.",
            ),
            Block(
                "picture",
                svg=study["access"],
                caption="Dark elements are touched first, yellow ones last, grey ones not at "
                "all. Naive walks down the columns of B, a new cache line at every step, and "
                "does so again for each row of C. Tiled stays in a stripe. Packed reads "
                "copies that lie in the order of use, half as many lines. C is in registers "
                "there.",
            ),
            Block(
                "player",
                players=study["players"],
                caption="Each touch in order; orange is recent, blue was touched before.",
            ),
        ],
    )


def _caches_section(study: Mapping[str, Any]) -> Section:
    cache = study["cache"]
    levels = [each.partition(":")[0] for each in cache["levels"]]
    known = (
        "this machine's" if cache["known"] else "usual sizes, the system does not tell this one's"
    )
    return Section(
        "caches",
        "Cache misses",
        [
            Block(
                "text",
                text=f"All accesses of the {study['size']}³ matmul through a model of the caches "
                f"({known}): {'; '.join(cache['levels'])}. Each replaces the line used longest "
                "ago; there is no prefetcher.",
            ),
            Block("picture", svg=cache["svg"], caption="Log scale: a step is a factor of ten."),
            Block(
                "table",
                title="Accesses per multiply-add, and misses per 1000",
                headings=["schedule", "accesses", *levels],
                rows=_misses(cache, levels),
            ),
            Block(
                "text",
                text="Packed does not win by L1 misses: it halves the accesses, for its tile "
                "of C is in registers, and its copies need few pages (TLB).",
            ),
        ],
    )


def _misses(cache: Mapping[str, Any], levels: Sequence[str]) -> list[list[str]]:
    """A row for each schedule: accesses per multiply-add, misses per 1000."""
    return [
        [
            name,
            f"{sum(counts['accesses'].values()) / cache['work']:.2f}",
            *(
                f"{1000 * sum(counts['misses'][level].values()) / cache['work']:.4g}"
                for level in levels
            ),
        ]
        for name, counts in cache["counts"].items()
    ]


def roofline_section(study: Mapping[str, Any]) -> Section:
    """The roofline, from a study of the course's matmul."""
    limits = study["limits"]
    return Section(
        "roofline",
        "Roofline",
        [
            Block(
                "picture",
                svg=study["svg"],
                caption=f"A {study['size']}³ matmul on {limits['threads']} threads. Peak: "
                "multiply-adds in registers. Bandwidths: a = a / 2 + b on arrays that fit the last "
                "cache, and on arrays of at least four times its size. TVM made these kernels, and "
                f"they were measured here. Right of {limits['ridge']:.1f} operations per byte from "
                "memory, memory is not the limit; nor is it for matrices that fit the last cache, "
                "once they are there. Naive and tiled use one thread, and naive no vectors, so "
                "they stay far below the roofs.",
            )
        ],
    )


def tuning_section(lanes: Sequence[Mapping[str, Any]]) -> Section | None:
    """The tuners on phase 5's matmul, from its lanes' figures; None if nothing was tuned."""
    from tvm_practice.tvm_export.tuners.history import Trial
    from tvm_practice.tvm_export.tuners.prediction import Prediction
    from tvm_practice.viz.tuning import best_svg, distribution_svg, prediction_svg

    histories: dict[str, list[Trial]] = {}
    predictions: dict[str, list[Prediction]] = {}
    levels: dict[str, float] = {}
    for lane in lanes:
        flop = 2 * lane["size"] ** 3
        for name, each in lane["tuners"].items():
            histories[name] = [Trial(**trial) for trial in each["history"]]
            foreseen = [Prediction(**made) for made in each["predictions"]]
            if foreseen:
                predictions[name] = foreseen
        if lane["comparison"]:
            by_hand = lane["comparison"]["latency"][lane["hand_written"]]
            levels[f"{lane['hand_written']} (by hand)"] = flop / by_hand["p50"] / 1e6
    if not histories:
        return None
    size, trials = lanes[0]["size"], lanes[0]["trials"]
    flop = 2 * size**3
    blocks = [
        Block(
            "picture",
            svg=best_svg(histories, flop=flop, title="Best so far", levels=levels),
            caption=f"The best schedule so far of a {size}³ matmul, "
            f"{number_of(trials, 'trial')} per tuner, by trial and by second. A cross is a trial "
            "that failed.",
        ),
        Block(
            "picture",
            svg=distribution_svg(histories, flop=flop, title="Trials by speed"),
            caption="Every trial, first to last from left to right; the bar is the median. A "
            "tuner that learns has its later trials higher.",
        ),
    ]
    if predictions:
        blocks.append(
            Block(
                "picture",
                svg=prediction_svg(predictions, flop=flop, title="Predicted and measured"),
                caption="Ranks by the cost model before a trial was measured, and by the "
                "measurement. tau is Kendall's: 1 for the same order, 0 for chance. With so few "
                "trials it varies much from run to run.",
            )
        )
    return Section("tuning", "Tuning", blocks)


def graph_section(graphs: Mapping[str, Mapping[str, Any]]) -> Section | None:
    """Operators before and after fusion; None if there are none.

    Args:
        graphs: by model and IR, {"operators": names, "kernels": [names]}.
    """
    if not graphs:
        return None
    text = (
        "Operators as imported, and the kernels that the graph passes made of them: a frame is one "
        "kernel, launched once."
    )
    return Section("graphs", "Graphs", [Block("text", text=text), Block("fusion", graphs=graphs)])


def environment_section(
    environment: Mapping[str, Any], engines: Mapping[str, Mapping[str, Any]] | None = None
) -> Section:
    """Machine, packages and engines."""
    rows = [
        ["processor", str(environment["processor"])],
        ["cores", f"{environment['cores_physical']} ({environment['cores_logical']} logical)"],
        ["memory", f"{environment['memory_gib']} GiB"],
        ["load when it began", str(environment["load_1min"])],
        ["system", str(environment["system"])],
        ["Python", str(environment["python"])],
    ]
    rows += [[name, version] for name, version in environment["packages"].items() if version]
    for name, facts in (engines or {}).items():
        rows.append(
            [f"engine {name}", str(facts.get("unavailable") or f"TVM {facts.get('version')}")]
        )
    return Section("environment", "Environment", [Block("table", headings=["", ""], rows=rows)])


def commands_section(commands: Sequence[str]) -> Section:
    """The commands that made it."""
    text = "\n".join(commands)
    return Section("commands", "Made by", [Block("code", text=text)])
