"""The report on a capstone: measured parts that a command writes, and questions to answer."""

from pathlib import Path
from typing import Any

from tvm_practice.course.capstone.running import Result
from tvm_practice.course.capstone.scoring import TIERS
from tvm_practice.course.capstone.submission import Submission
from tvm_practice.course.capstone.tracks import find_track, shown
from tvm_practice.tvm_export.writing import write_whole

_BEGIN, _END = "<!-- measured: written by the command -->", "<!-- end of measured -->"
_QUESTIONS = """
## What I did

*Which loops are where, and why? One paragraph for each track.*

## What limits it

*The processor, a cache, or memory? Which figure above says so?*

## What did not help

*A schedule that you expected to be faster, its figure, and the reason that you found.*

## What I would do next

*The size with the lowest points, and what you would change for it.*
"""


def write_report(submission: Submission, folder: Path) -> Path:
    """Write `report.md` and `score.svg` into a folder; the report's path.

    Of a report that is there, the measured part alone is replaced. Raises OSError.
    """
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / "report.md"
    results = [each for name in submission.results if (each := submission.result(name))]
    write_whole(folder / "score.svg", score_svg(results))
    measured = f"{_BEGIN}\n{measured_part(submission, results)}\n{_END}"
    text = file.read_text(encoding="utf-8") if file.exists() else ""
    if _BEGIN in text and _END in text:
        before, _, rest = text.partition(_BEGIN)
        write_whole(file, before + measured + rest.partition(_END)[2])
    else:
        write_whole(file, f"# Capstone\n\n{measured}\n{_QUESTIONS}{text}")
    return file


def measured_part(submission: Submission, results: list[Result]) -> str:
    """The machine, its limits, and a table for each track, in Markdown."""
    machine = submission.machine
    tvm = (machine.get("packages") or {}).get("apache-tvm")
    torch = (machine.get("packages") or {}).get("torch")
    lines = [
        f"Machine: {machine.get('processor')}, {machine.get('cores_physical')} cores; "
        f"apache-tvm {tvm}, torch {torch}; {machine.get('date')}; seed {submission.seed}.",
        "",
        "| threads | peak, GFLOP/s | memory, GB/s | last cache, GB/s |",
        "|---|---|---|---|",
    ]
    for threads, roof in submission.roofs.items():
        cache = f"{roof['cache_gbps']:.0f}" if roof.get("cache_gbps") else ""
        peak, memory = roof["peak_gflops"], roof["memory_gbps"]
        lines.append(f"| {threads} | {peak:.0f} | {memory:.0f} | {cache} |")
    lines += ["", "![Points of each size](score.svg)"]
    for each in results:
        lines += ["", f"## {each.track}: {each.score:.1f}, {each.tier}", ""]
        lines += _table(each)
        if each.disturbance:
            lines += ["", f"The machine was busy: {each.disturbance}."]
    return "\n".join(lines)


def _table(result: Result) -> list[str]:
    lines = [
        "| size | threads | ms | GFLOP/s | limit | share | PyTorch's time / mine | points |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for case in result.cases:
        size = shown(find_track(result.track), case["size"]) + (", drawn" if case["drawn"] else "")
        lines.append(
            f"| {size} | {case['threads']} | {case['milliseconds']:.3g} | {case['gflops']:.3g} "
            f"| {case['limit_gflops']:.3g} | {case['share']:.0%} | {case['speedup']:.2f} "
            f"| {case['points']:.1f} |"
        )
    return lines


def score_svg(results: list[Result]) -> str:
    """A bar of points for each size, tracks side by side, with the tiers as lines."""
    from tvm_practice.viz.drawing import new_figure, style, to_svg

    with style():
        figure = new_figure(3.4 * max(1, len(results)), 3.6)
        for number, result in enumerate(results, 1):
            _draw(figure.add_subplot(1, len(results), number), result)
        return to_svg(figure, title="Points of each size")


def _draw(axes: Any, result: Result) -> None:
    track = find_track(result.track)
    threads = sorted({each["threads"] for each in result.cases})
    width = 0.8 / max(1, len(threads))
    for offset, count in enumerate(threads):
        cases = [each for each in result.cases if each["threads"] == count]
        at = [index + offset * width for index in range(len(cases))]
        label = f"{count} thread{'s' * (count > 1)}"
        axes.bar(at, [each["points"] for each in cases], width, label=label)
        if not offset:
            names = [each["class"] + " *" * each["drawn"] for each in cases]
            axes.set_xticks(at, names, rotation=60, ha="right", fontsize=7)
    for name, least in zip(TIERS, track.thresholds, strict=True):
        axes.axhline(least, linewidth=0.6, color="#8a8f98")
        right = axes.get_yaxis_transform()  # along the axis from 0 to 1, upwards points
        axes.text(1.02, least, name, fontsize=6, va="center", color="#5a5f68", transform=right)
    axes.set_title(f"{result.track}: {result.score:.1f}, {result.tier}", fontsize=9)
    axes.margins(y=0.25)  # room for the legend
    axes.legend(fontsize=7)
