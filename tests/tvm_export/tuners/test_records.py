"""Logs that are refused, each with one line, and left as they are."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from filelock import FileLock

from tests.tvm_export.tuners.conftest import TunersProcesses
from tvm_practice import engines

FUNCTIONS = "tests.tvm_export.tuners.search_functions"
ANSOR = {"i": [['["k"]', "llvm -mcpu=core2"], []], "r": [[1.0], 0, 1.0, 1.0], "v": "v0.6"}
AUTOTVM = {
    "input": ["llvm -mcpu=core2", "dense_pack.x86", [], {}],
    "config": {"index": 0, "entity": []},
    "result": [[1.0], 0, 1.0, 1.0],
}


def _write(path: Path, *lines: object) -> str:
    path.write_text(
        "".join(f"{each if isinstance(each, str) else json.dumps(each)}\n" for each in lines)
    )
    return str(path)


def _database(folder: Path, *lines: object) -> str:
    folder.mkdir()
    _write(folder / "database_tuning_record.json", *lines)
    return str(folder)


def _refusal(session: engines.Session, tuner: str, log: Path) -> str:
    [said] = session.call(f"{FUNCTIONS}:refusals", {"cases": [[tuner, str(log)]]})
    return str(said)


CASES: list[tuple[str, Callable[[Path], str], str]] = [
    ("ansor", lambda folder: _write(folder / "log", ANSOR), "holds records for llvm -mcpu=core2"),
    ("autotvm", lambda folder: _write(folder / "log", AUTOTVM), "holds records for llvm -mcpu"),
    ("ansor", lambda folder: _write(folder / "log", AUTOTVM), "line 1 is no record of Ansor"),
    ("autotvm", lambda folder: _write(folder / "log", ANSOR), "line 1 is no record of AutoTVM"),
    ("ansor", lambda folder: _write(folder / "log", "nonsense"), "line 1 is no record"),
    ("ansor", lambda folder: str(folder), "is a folder; Ansor keeps its records in a file"),
    ("metaschedule", lambda folder: _write(folder / "log", "x"), "MetaSchedule keeps its records"),
    (
        "metaschedule",
        lambda folder: _database(
            folder / "log", [0, [[], [1.0], {"kind": "llvm", "mcpu": "core2"}]]
        ),
        "core2",
    ),
    ("metaschedule", lambda folder: _database(folder / "log", "{}"), "line 1 is no record"),
]


@pytest.mark.parametrize(("tuner", "make", "message"), CASES)
def test_foreign_and_broken_logs(
    tuner: str,
    make: Callable[[Path], str],
    message: str,
    tmp_path: Path,
    process_for: TunersProcesses,
) -> None:
    log = Path(make(tmp_path))
    files = [log] if log.is_file() else [each for each in log.rglob("*") if each.is_file()]
    before = {each: each.read_bytes() for each in files}
    said = _refusal(process_for(tuner), tuner, log)
    assert message in said and "\n" not in said
    assert {each: each.read_bytes() for each in files} == before


def test_two_runs_on_one_log_exclude_each_other(
    tmp_path: Path, process_for: TunersProcesses
) -> None:
    log = tmp_path / "records"
    with FileLock(f"{log}.lock"):
        said = _refusal(process_for("metaschedule"), "metaschedule", log)
    assert said == f"another run is tuning with {log}; wait for it, or name another"


def test_a_log_where_nothing_can_be_written(tmp_path: Path, process_for: TunersProcesses) -> None:
    (tmp_path / "file").touch()
    log = tmp_path / "file" / "records"
    said = _refusal(process_for("metaschedule"), "metaschedule", log)
    assert said.startswith(f"tuning records cannot be written to {log}: ")
