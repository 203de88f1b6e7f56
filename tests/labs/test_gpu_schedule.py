"""Lab 1: its kernels, what the page says of them, and what is said without a GPU."""

import json
import re
from pathlib import Path

import pytest

from tests.pages import ROOT
from tvm_practice import engines
from tvm_practice.course.catalog import SOLUTIONS
from tvm_practice.course.phase import run_phase

PAGE = ROOT / "docs" / "labs" / "1-gpu_schedule.md"


@pytest.mark.pages
@pytest.mark.slow
def test_the_page_has_what_is_counted(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """Each row of the traffic table, as the run at full size prints it."""
    results = run_phase("labs.gpu_schedule", source=SOLUTIONS, engine=engines.CURRENT, out=tmp_path)
    figures = results[engines.CURRENT]["figures"]
    assert not results[engines.CURRENT]["failed"] and figures["size"] == 4096
    rows = {
        cells[0]: cells[1:]
        for line in PAGE.read_text().splitlines()
        if (cells := [each.strip() for each in line.strip("|").split("|")])[0] in figures["traffic"]
        and len(cells) == 6
    }
    assert rows.keys() == figures["traffic"].keys()
    for name, row in figures["traffic"].items():
        assert rows[name] == [
            f"{row['global_bytes'] / 1e9:.2f}",
            f"{row['needed']:.0%}",
            f"{row['intensity']:.3g}",
            f"{row['wavefronts']:.3f}",
            f"{row['conflicts']:.3f}",
        ]
    said = capfd.readouterr().out
    assert "python -m tvm_practice.labs.gpu_schedule --solutions" in said or figures["measured"]
    folder = tmp_path / "gpu_schedule"
    assert {each.stem for each in folder.glob("*.cu")} == {
        re.sub(r"\W", "_", name) for name in figures["traffic"]
    }
    kept = json.loads((folder / "figures.json").read_text())
    assert kept["current"]["traffic"] == figures["traffic"]
    assert (folder / "traffic.png").stat().st_size > 10_000
