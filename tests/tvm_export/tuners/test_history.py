"""Trials as records: numbering, best so far, errors, and logs that were cut short."""

import json
from pathlib import Path

import pytest

from tvm_practice.tvm_export.errors import NothingMeasured
from tvm_practice.tvm_export.tuners import (
    Trial,
    ansor,
    autotvm,
    best_so_far,
    best_trial,
    count_errors,
    metaschedule,
    require_valid,
)
from tvm_practice.tvm_export.tuners.classic import ERRORS
from tvm_practice.tvm_export.tuners.history import (
    Row,
    json_lines,
    number_trials,
    prepare_log,
)


def test_best_so_far_skips_what_failed() -> None:
    trials = [
        Trial(1, None, "it does not compile"),
        Trial(2, 0.3),
        Trial(3, 0.5),
        Trial(4, None, "it does not compile"),
        Trial(5, 0.1),
    ]
    assert best_so_far(trials) == [None, 0.3, 0.3, 0.3, 0.1]
    assert best_trial(trials) == trials[4]
    assert count_errors(trials) == {"it does not compile": 2}
    require_valid(trials, "Ansor")


def test_nothing_valid_is_an_error_with_counts_and_reasons() -> None:
    failed = [Trial(1, None, "running took too long"), *[Trial(2, None, "it crashes")] * 2]
    with pytest.raises(NothingMeasured, match=r"Ansor.*all of its 3 trials.*2 times: it crashes"):
        require_valid(failed, "Ansor")
    with pytest.raises(NothingMeasured, match="tried no schedule"):
        require_valid([], "AutoTVM")
    assert best_trial(failed) is None


def test_time_counts_from_the_start_or_the_first_row() -> None:
    rows = [Row(0.2, None, 105.0, "a"), Row(None, "late", 107.5, "b")]
    assert [trial.elapsed for trial in number_trials(rows, 100.0)] == [5.0, 7.5]
    trials = number_trials(rows, None)
    assert [(t.number, t.elapsed, t.task) for t in trials] == [(1, 0.0, "a"), (2, 2.5, "b")]
    assert number_trials([Row(0.2, None, None, "a")], None)[0].elapsed is None
    assert Trial(**trials[1].to_dict()) == trials[1]


def test_a_line_cut_short_is_not_read_and_is_cut_off(tmp_path: Path) -> None:
    log = tmp_path / "deep" / "log.json"
    prepare_log(log)
    assert log.parent.is_dir() and not log.exists()
    log.write_text('{"whole": 1}\n{"cut sh')
    assert list(json_lines(log)) == [{"whole": 1}]
    prepare_log(log)
    assert log.read_text() == '{"whole": 1}\n'
    log.write_text("no line ever ended")
    prepare_log(log)
    assert log.read_text() == ""


def test_the_classic_logs_are_read_without_tvm(tmp_path: Path) -> None:
    log = tmp_path / "autotvm.json"
    record = {"input": ["llvm", "mm", [4, 5, 6], {}], "config": {}, "version": 0.2}
    log.write_text(
        json.dumps({**record, "result": [[0.1, 0.3], 0, 1.0, 50.0]})
        + "\n"
        + json.dumps({**record, "result": [[1e9], 6, 1.0, 52.0]})
        + "\n"
    )
    good, bad = autotvm.history(log, started=40.0)
    assert good.seconds == pytest.approx(0.2) and good.task == "mm(4, 5, 6)"
    assert bad.seconds is None and bad.error == ERRORS[6] and bad.elapsed == 12.0

    log = tmp_path / "ansor.json"
    key = json.dumps(["mm", 4, 5])
    log.write_text(
        "".join(
            json.dumps({"i": [[key, "llvm"], []], "r": result, "v": "v0.6"}) + "\n"
            for result in ([[0.5], 0, 1.0, 9.0], [[1e10], 4, 1.0, 10.0])
        )
    )
    good, bad = ansor.history(log)
    assert good.seconds == 0.5 and good.task == "mm(4, 5)" and bad.error == ERRORS[4]


def test_metaschedules_database_is_read_without_tvm(tmp_path: Path) -> None:
    records = [[0, [[], [0.2, 0.4], {}, []]], [0, [[], [1e10], {}, []]], [1, [[], [0.1], {}, []]]]
    (tmp_path / "database_tuning_record.json").write_text(
        "".join(json.dumps(record) + "\n" for record in records)
    )
    first, second, third = metaschedule.history(tmp_path)
    assert first.seconds == pytest.approx(0.3) and first.elapsed is None
    assert second.seconds is None and second.error
    assert third.task == "workload 1"
    (tmp_path / "trial_times.jsonl").write_text(
        json.dumps({"record": 1, "timestamp": 12.0, "task": "mm", "error": "no linker"}) + "\n"
    )
    assert metaschedule.history(tmp_path, started=10.0)[1] == Trial(2, None, "no linker", 2.0, "mm")
