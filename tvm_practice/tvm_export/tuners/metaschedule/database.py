"""MetaSchedule's database, the times of its trials, and the journal of those not yet in it."""

import json
from pathlib import Path
from typing import Any

from tvm_practice.tvm_export.tuners.history import (
    FAILED_SECONDS,
    Row,
    Trial,
    json_lines,
    mean_seconds,
    number_trials,
    prepare_log,
)
from tvm_practice.tvm_export.tuners.journal import Journal
from tvm_practice.tvm_export.tuners.records import RECORDS
from tvm_practice.tvm_export.writing import naming

WORKLOADS = "database_workload.json"
TIMES = "trial_times.jsonl"
_JOURNAL = "journal.jsonl"


def open_database(work_dir: str | Path) -> Any:
    """The database that tuning left in `work_dir`."""
    from tvm.s_tir import meta_schedule as ms

    return ms.database.JSONDatabase(work_dir=str(work_dir), allow_missing=False)


def has_records(work_dir: str | Path) -> bool:
    """Whether a tuner has measured something into `work_dir`."""
    return (Path(work_dir) / RECORDS).exists()


def history(work_dir: str | Path, *, started: float | None = None) -> list[Trial]:
    """The trials in `work_dir`, oldest first; no TVM is needed to read them.

    Args:
        work_dir: the folder given to the tuner.
        started: when tuning began, `time.time()`; None counts from the first result.
    """
    folder = Path(work_dir)
    times = {}
    if (folder / TIMES).exists():
        for line in json_lines(folder / TIMES):
            times[line["record"]] = line
    rows = []
    for index, (workload, (_, run_seconds, *_rest)) in enumerate(json_lines(folder / RECORDS)):
        known = times.get(index, {})
        failed = not run_seconds or min(run_seconds) > FAILED_SECONDS
        error = (known.get("error") or "it failed to build or to run") if failed else None
        seconds = None if failed else mean_seconds(run_seconds)
        task = known.get("task") or f"workload {workload}"
        rows.append(Row(seconds, error, known.get("timestamp"), task))
    return number_trials(rows, started)


def recover(folder: Path) -> Journal:
    """The journal of a database, empty: what a killed run had measured is in the database.

    Every line of the database is whole then; the folder is made if it is missing.
    """
    for name in (WORKLOADS, RECORDS, TIMES):
        prepare_log(folder / name)
    journal = Journal(
        folder / _JOURNAL,
        folder / RECORDS,
        line_of=lambda entry: entry["record"],
        key=lambda record: (record[0], record[1][0]),  # times are not written to the last digit
    )
    journal.recover()
    _add_times({journal.number(each): each["trial"] for each in journal.entries()}, folder / TIMES)
    journal.settle()
    return journal


def _add_times(trials: dict[int | None, Any], file: Path) -> None:
    """Append the times of those trials, by their records' numbers, that the file lacks."""
    known = {line["record"] for line in json_lines(file)} if file.exists() else set()
    lines = [{"record": number, **trial} for number, trial in trials.items() if number not in known]
    if lines:
        with naming(file), file.open("a") as stream:
            stream.write("".join(json.dumps(line) + "\n" for line in lines))
