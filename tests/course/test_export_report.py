"""The report of exported models: to do, failed, tuned."""

import io
from collections.abc import Mapping
from typing import Any

import pytest
from rich.console import Console

from tvm_practice.course.export_report import explanations, failures, summary, write_page
from tvm_practice.measure import Latency, Ratio
from tvm_practice.measure.comparison import OF_ROUNDS
from tvm_practice.viz.report import Block

LATENCY = Latency((2.0, 2.0, 2.0)).to_dict()
TUNED = {
    "tuner": "metaschedule", "status": "ok", "reason": None, "latency": LATENCY,
    "ratio": Ratio(0.5, 0.4, 0.6).to_dict(), "verified": True, "max_error": 1.26e-7,
    "verification": {"verified": True, "max_error": 1.26e-7, "atol": 1e-3, "rtol": 1e-3},
    "seconds": {"import": 1.0, "tune": 41.0}, "tuning": {"trials": 64, "note": "3 records kept"},
}  # fmt: skip
LANES: list[dict[str, Any]] = [
    {"engine": "classic", "unavailable": "it is not here", "variants": []},
    {
        "engine": "current",
        "pytorch": LATENCY,
        "variants": [{"tuner": None, "status": "todo", "reason": "import_relax"}, TUNED],
    },
    {"engine": "classic", "variants": [{"tuner": "ansor", "status": "failed", "reason": "why"}]},
]


def test_the_table_has_a_row_for_each_variant() -> None:
    screen = io.StringIO()
    Console(file=screen, width=80).print(summary("MLP", LANES))
    drawn = screen.getvalue()
    rows = {line.strip().split("  ")[0]: " ".join(line.split()) for line in drawn.splitlines()}
    assert rows["PyTorch"] == "PyTorch 2.00 1"
    assert rows["Relax, untuned"] == "Relax, untuned to do import_relax"
    assert rows["Relax, MetaSchedule"] == "Relax, MetaSchedule 2.00 0.500 1e-07 yes 64 42"
    assert rows["Relay, Ansor"] == "Relay, Ansor failed"
    assert "0.400–0.600" in drawn and max(map(len, drawn.splitlines())) <= 80


def test_what_is_not_there_or_failed_is_said() -> None:
    assert explanations(LANES) == [
        OF_ROUNDS,  # 2 ms beside 2 ms, and 0.5
        "it is not here",
        "Relax, untuned: import_relax",
        "Relax, MetaSchedule: 3 records kept",
        "Relay, Ansor: why",
    ]
    assert failures(LANES) == ["Relay, Ansor: why"]


def test_the_page_has_the_exercises_and_the_models(tmp_path: Any) -> None:
    from tvm_practice.measure import environment

    report = {
        "command": "python -m tvm_practice.main", "source": "tvm_practice",
        "environment": environment(), "engines": {}, "phases": {}, "seconds": {"total": 3.0},
        "exercises": {"te_basics.matmul": "passed", "te_basics.conv2d": "todo"},
        "models": {"mlp": LANES}, "failures": ["mlp, Relay, Ansor: why"],
    }  # fmt: skip
    page = write_page(report, tmp_path, titles={"mlp": "MLP (64 trials per tuner)"})
    text = page.read_text(encoding="utf-8")
    for shown in (
        *("MLP (64 trials per tuner)", "0.500 (0.400–0.600)", "your functions", "1 failed"),
        "not the quotient of two medians",
    ):
        assert shown in text, shown


def test_only_what_is_verified_is_charted(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from tvm_practice.measure import environment

    timed = {"status": "todo", "reason": "verify", "verified": False, "tuner": None}
    lane = {"engine": "classic", "pytorch": LATENCY, "variants": [{**TUNED, **timed}]}
    charted: list[str] = []

    def chart(ratios: Mapping[str, Any], *, baseline: str) -> Block:
        charted.extend(ratios)
        return Block("text", text="a chart")

    monkeypatch.setattr("tvm_practice.viz.report.latency_block", chart)
    report = {
        "command": "python -m tvm_practice.main", "source": "tvm_practice",
        "environment": environment(), "engines": {}, "phases": {}, "seconds": {"total": 3.0},
        "exercises": {}, "models": {"mlp": [lane, *LANES]}, "failures": [],
    }  # fmt: skip
    page = write_page(report, tmp_path, titles={"mlp": "MLP"})
    assert charted == ["Relax, MetaSchedule"]
    assert "to do" in page.read_text(encoding="utf-8")
