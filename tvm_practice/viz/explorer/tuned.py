"""The best schedule of each task in MetaSchedule's records, made again."""

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

from tvm_practice.tvm_export.errors import BadInput
from tvm_practice.tvm_export.tuners.history import json_lines
from tvm_practice.tvm_export.tuners.metaschedule import history
from tvm_practice.tvm_export.tuners.metaschedule.database import WORKLOADS
from tvm_practice.tvm_export.tuners.records import RECORDS


def tuned_makers(folder: Path, task: str = "") -> dict[str, Callable[[], Any]]:
    """What makes the best schedule of each task, the slowest task first.

    Args:
        folder: with the tuner's records, or an export's that has them in a folder below.
        task: a part of a task's name; empty for all.

    Raises:
        BadInput: there are no records, or none of that task.
    """
    files = sorted(folder.rglob(RECORDS))
    if not files:
        raise BadInput(f"{folder}: there are no records of MetaSchedule's ({RECORDS})")
    found = [each for file in files for each in _best(file.parent)]
    chosen = [each for each in found if task in each[1]]
    if not chosen:
        names = ", ".join(sorted({name for _, name, _ in found})) or "none that ran"
        raise BadInput(f"{folder}: no task {task}; there are {names}")
    chosen.sort(key=lambda each: -each[0])
    made: dict[str, Callable[[], Any]] = {}
    for _, name, record in chosen:
        unique = name if name not in made else f"{name} ({len(made) + 1})"
        made[unique] = partial(_made, record)
    return made


def _best(folder: Path) -> Iterator[tuple[float, str, Any]]:
    """(seconds, task, record as JSON with its workload) of each workload's fastest record."""
    best: dict[int, tuple[float, str, Any]] = {}
    workloads = list(json_lines(folder / WORKLOADS))
    for trial, (number, record) in zip(history(folder), json_lines(folder / RECORDS), strict=False):
        if trial.seconds is None:
            continue
        if number not in best or trial.seconds < best[number][0]:
            best[number] = (trial.seconds, trial.task, (workloads[number], record))
    yield from best.values()


def _made(kept: Any) -> Any:
    import tvm
    from tvm.s_tir.meta_schedule.database import TuningRecord, Workload

    from tvm_practice.tvm_export.rules.cpu import in_tiles
    from tvm_practice.tvm_export.rules.cpu.loops import cpu_of
    from tvm_practice.tvm_export.rules.cpu.register_tiles import advice_of

    workload = Workload.from_json(kept[0])
    record = TuningRecord.from_json(kept[1], workload)
    schedule = tvm.s_tir.Schedule(workload.mod, debug_mask="none")
    record.trace.apply_to_schedule(schedule, remove_postproc=False)
    function = schedule.mod["main"]
    if advice_of(function) is None:
        return schedule
    # The record has a tile's sizes only; the primitives are those of the rule that takes them.
    return in_tiles(function, cpu_of(record.target))
