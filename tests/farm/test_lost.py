"""Servers that are lost, told from candidates that fail."""

import pytest

from tvm_practice.farm import is_lost

# Last lines of what MetaSchedule's runner said on a farm; tests/labs makes it say them.
_SHUT = "tvm.error.InternalError: Check failed: (code == RPCCode::kReturn) is false: code=1"


@pytest.mark.parametrize(
    ("error", "lost"),
    [
        (None, False),
        (_SHUT, True),
        ("tvm.error.InternalError: Socket SockChannel::Send Error:Broken pipe", True),
        ("RPCRunner: Timeout, killed after 20 seconds", True),
        (f"RPCSessionTimeoutError: Your 20s session has expired\n{_SHUT}", False),
        ("tvm.error.RPCError: Error caught from RPC call:\nValueError: cannot find file", False),
    ],
)
def test_a_lost_server_is_told_from_a_failed_candidate(error: str | None, lost: bool) -> None:
    assert is_lost(error) is lost
