"""Only the frontends' notices are hidden, and only inside the block."""

import logging
import warnings

import pytest

from tvm_practice.tvm_export.quiet import quiet_frontends


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
