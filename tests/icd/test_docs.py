"""Every command of docs/icd.md runs, one after the other, with small numbers and a small model."""

import json
import re
from pathlib import Path

import pytest

from tests.conftest import needs_classic
from tests.pages import ROOT, run_blocks

_SMALLER = (
    (r"load_resnet18\b", "load_mlp"),
    (r"tvm_trials=\d+", "tvm_trials=4"),
    (r"--tuning-trials \d+", "--tuning-trials 4 --measure-warmup 1 --measure-repeats 5"),
    (r"repeats=\d+", "repeats=5"),
    (r"warmup=\d+", "warmup=1"),
    (r"mode=(iterative|compiled)", "mode=eager"),  # test_command_line.py runs these for real
)


def small(text: str) -> str:
    for pattern, replacement in _SMALLER:
        text = re.sub(pattern, replacement, text)
    return text


@pytest.mark.pages
@pytest.mark.slow
@needs_classic  # AutoTVM is the guides' default
def test_the_pages_commands_run_in_order(tmp_path: Path) -> None:
    (tmp_path / "configs").mkdir()
    for file in (ROOT / "configs").glob("*.json"):
        content = json.loads(small(file.read_text()))
        content["measure"] |= {"warmup": 1, "repeats": 5, "tvm_warmup": 1, "tvm_repeats": 5}
        content["pipeline"]["rounds"] = 6
        (tmp_path / "configs" / file.name).write_text(json.dumps(content))
    run_blocks("icd.md", tmp_path, smaller=small)
    runs = tmp_path / "runs"
    for name in ("resnet18_vs_tvm", "mine"):
        baseline = json.loads((runs / name / "metrics.json").read_text())["tvm_baseline"]
        assert baseline["status"] == "ok" and baseline["verification"]["verified"], baseline
    comparison = json.loads((runs / "resnet18_vs_tvm" / "tvm_comparison.json").read_text())
    assert comparison["tvm_verification"]["verified"] and comparison["speedup_vs_tvm"] > 0
    assert (tmp_path / "docs" / "schemas" / "icd_config.json").exists()
