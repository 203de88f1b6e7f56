"""The report of `main`: the tables of the exported models, and report.html.

A lane is the result of `viz.exported.export_with_pictures` for one engine. For an engine that is
not installed it is {"engine", "unavailable": why, "variants": []}.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tvm_practice.course.catalog import SOLUTIONS
from tvm_practice.tvm_export.artifacts.schema import LatencyRecord, RatioRecord
from tvm_practice.tvm_export.compilers import IR, variant_label
from tvm_practice.tvm_export.variants import VariantRecord
from tvm_practice.viz import report as pages
from tvm_practice.viz.report import Block, Section
from tvm_practice.viz.tables import (
    OWN,
    about_ratios,
    above_interval,
    explanation,
    largest_error,
    median,
    results_table,
)

if TYPE_CHECKING:
    from rich.table import Table

Lane = Mapping[str, Any]

_HEADINGS = ("built by", "ms", "/ PyTorch", "error", "verified", "trials", "s")


def summary(title: str, lanes: Sequence[Lane]) -> "Table":
    """The table of one model: each variant's median latency, its ratio to PyTorch, its cost.

    Each engine's part begins with PyTorch as it was timed in turns with that part's variants.
    """
    return results_table(title, _HEADINGS, [_rows(lane, "PyTorch") for lane in lanes])


def explanations(lanes: Sequence[Lane]) -> list[str]:
    """What the ratios are, where that is unclear, and a line for each engine that is missing.

    And one for each variant that is to do, failed, or has something to say of its tuning.
    """
    missing = [str(lane["unavailable"]) for lane in lanes if "unavailable" in lane]
    said = [f"{label}: {said}" for label, each in _labelled(lanes) if (said := explanation(each))]
    return [*about_ratios(_timed(lanes)), *missing, *said]


def failures(lanes: Sequence[Lane]) -> list[str]:
    """A line for each variant that failed."""
    return [
        f"{label}: {variant.reason}"
        for label, variant in _labelled(lanes)
        if variant.status == "failed"
    ]


def write_page(report: Mapping[str, Any], out: Path, *, titles: Mapping[str, str]) -> Path:
    """Write `out`/report.html, the pictures of `main.run`'s report; returns the file.

    Args:
        report: the result of `main.run`.
        out: an existing folder.
        titles: of the models' tables, by the model's name.
    """
    sections = [
        _summary_section(report, titles),
        *_study_sections(report),
        pages.environment_section(report["environment"], report["engines"]),
        pages.commands_section(
            [report["command"]]
            + [f"python -m tvm_practice.{name} --quick" for name in report["phases"]]
        ),
    ]
    whose = "the reference solutions" if report["source"] == SOLUTIONS else "your functions"
    facts = [
        whose,
        str(report["environment"]["date"]),
        str(report["environment"]["processor"]),
        f"{report['seconds']['total']:.0f} s",
        f"{len(report['failures'])} failed" if report["failures"] else "no failures",
    ]
    return pages.write(pages.Page("tvm-practice", facts, sections), out / "report.html")


def _labelled(lanes: Sequence[Lane]) -> Iterator[tuple[str, VariantRecord]]:
    """Each variant and its name in tables."""
    for lane in lanes:
        for each in lane["variants"]:
            variant = VariantRecord.model_validate(each)
            yield variant_label(lane["engine"], variant.tuner), variant


def _timed(lanes: Sequence[Lane]) -> Iterator[tuple[LatencyRecord, LatencyRecord, RatioRecord]]:
    """The latency of each variant, that of PyTorch in turns with it, and their ratio."""
    for lane in lanes:
        if not lane.get("pytorch"):
            continue
        pytorch = LatencyRecord.model_validate(lane["pytorch"])
        for _, variant in _labelled([lane]):
            if variant.latency and variant.ratio:
                yield variant.latency, pytorch, variant.ratio
            if own := variant.tuners_own:
                yield own.latency, pytorch, own.ratio_to_pytorch


def _rows(lane: Lane, pytorch: str) -> list[list[str]]:
    """A row for PyTorch, which is called `pytorch`, if it was timed; and one for each variant.

    Beneath a tuner's is its own result, where the artifact is another.
    """
    rows = (
        [[pytorch, median(LatencyRecord.model_validate(lane["pytorch"])), "1"]]
        if lane.get("pytorch")
        else []
    )
    for label, variant in _labelled([lane]):
        rows.append([label, *_cells(variant)])
        if own := variant.tuners_own:
            rows.append([OWN, median(own.latency), above_interval(own.ratio_to_pytorch)])
    return rows


def _cells(variant: VariantRecord) -> list[str]:
    if variant.status == "todo":
        return ["to do", str(variant.reason)]
    if variant.latency is None or variant.ratio is None:
        return ["failed"]
    return [
        median(variant.latency),
        above_interval(variant.ratio),
        largest_error(variant.max_error),
        "yes" if variant.verified else "NO",
        str((variant.tuning.trials if variant.tuning else None) or 0),
        f"{sum((variant.seconds or {}).values()):.0f}",
    ]


def _summary_section(report: Mapping[str, Any], titles: Mapping[str, str]) -> Section:
    """The exercises, the models' tables, and the failures."""
    blocks = [_exercises_block(report["exercises"])]
    for name, lanes in report["models"].items():
        rows = [
            row for lane in lanes for row in _rows(lane, f"PyTorch, beside {IR[lane['engine']]}")
        ]
        blocks.append(pages.table_block(_HEADINGS, rows, title=titles[name]))
        blocks += [Block("text", text=said) for said in about_ratios(_timed(lanes))]
        # What is not known to compute the same is no faster or slower.
        ratios = {
            label: each.ratio for label, each in _labelled(lanes) if each.ratio and each.verified
        }
        if ratios:
            blocks.append(pages.latency_block(ratios, baseline="PyTorch"))
    if report["failures"]:
        blocks.append(Block("code", text="\n".join(report["failures"])))
    return Section("summary", "Summary", blocks)


def _exercises_block(exercises: Mapping[str, str]) -> Block:
    """How many exercises of each phase have each status."""
    counts: dict[str, dict[str, int]] = {}
    for exercise, status in exercises.items():
        phase = counts.setdefault(exercise.partition(".")[0], {})
        phase[status] = phase.get(status, 0) + 1
    statuses = list(dict.fromkeys(exercises.values()))
    rows = [
        [phase, *(str(found.get(status, "")) for status in statuses)]
        for phase, found in counts.items()
    ]
    return pages.table_block(["phase", *statuses], rows, title="Exercises")


def _study_sections(report: Mapping[str, Any]) -> list[Section]:
    """The pictures that the phases made, and those of the exported models."""
    figures = {
        phase: {engine: lane.get("figures", {}) for engine, lane in lanes.items()}
        for phase, lanes in report["phases"].items()
    }
    sections: list[Section | None] = []
    if study := figures.get("manual_schedule", {}).get("current", {}).get("study"):
        sections += pages.schedule_sections(json.loads(Path(study).read_text()))
    if roofline := figures.get("schedule_analysis", {}).get("current", {}).get("roofline"):
        sections.append(pages.roofline_section(json.loads(Path(roofline).read_text())))
    tuned = [each for each in figures.get("auto_tune", {}).values() if each.get("tuners")]
    sections.append(pages.tuning_section(tuned))
    graphs = {
        f"{model}, {IR[engine]}": found["fusion"]
        for engine, models in figures.get("relay_import", {}).items()
        for model, found in models.items()
        if "fusion" in found
    } | {
        f"{name}, {IR[lane['engine']]}": lane["graph"]
        for name, lanes in report["models"].items()
        for lane in lanes
        if "graph" in lane
    }
    sections.append(pages.graph_section(graphs))
    return [section for section in sections if section is not None]
