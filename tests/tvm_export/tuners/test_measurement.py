"""What surrounds MetaSchedule's measurements."""

import logging
from pathlib import Path

import pytest

from tvm_practice.tvm_export.tuners.metaschedule.measurement import _log_to


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full")
def test_a_full_disk_costs_the_tables_alone(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "tuning.log").symlink_to("/dev/full")
    with _log_to(tmp_path / "tuning.log"):
        logging.getLogger("tvm.s_tir.meta_schedule").info("a table")
    assert capsys.readouterr().err == ""
    with _log_to(tmp_path / "kept.log"):
        logging.getLogger("tvm.s_tir.meta_schedule").info("a table")
    assert "a table" in (tmp_path / "kept.log").read_text()
