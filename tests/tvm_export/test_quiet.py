"""Notices are hidden only inside the block, and only those meant."""

import logging
import os
import warnings
from pathlib import Path

import pytest

from tvm_practice.tvm_export.quiet import native_stderr_to, quiet_frontends


def test_notices_of_the_frontends_are_hidden(caplog: pytest.LogCaptureFixture) -> None:
    with quiet_frontends():
        warnings.warn("`torch.jit.trace` is deprecated. Please switch", DeprecationWarning, 2)
        logging.getLogger("autotvm").warning("One or more operators have not been tuned.")
    assert not caplog.records


def test_other_warnings_still_show(caplog: pytest.LogCaptureFixture) -> None:
    with quiet_frontends(), pytest.warns(UserWarning, match="Python boolean"):
        warnings.warn("Converting a tensor to a Python boolean", UserWarning, 2)
    with pytest.warns(DeprecationWarning, match="trace"):
        warnings.warn("`torch.jit.trace` is deprecated. Please switch", DeprecationWarning, 2)
    logging.getLogger("autotvm").warning("One or more operators have not been tuned.")
    assert len(caplog.records) == 1


def test_native_stderr_goes_to_a_file_and_comes_back(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    with native_stderr_to(tmp_path / "stderr"):
        os.write(2, b"inside\n")
    os.write(2, b"after\n")
    assert (tmp_path / "stderr").read_text() == "inside\n"
    assert capfd.readouterr().err == "after\n"
