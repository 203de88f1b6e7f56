"""The guard against environment variables that tests leave behind."""

import os

import pytest

from tests import leaks


@pytest.fixture(autouse=True)
def variables(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OF_A_TEST_KEPT", "1")
    monkeypatch.setenv("OF_A_TEST_CHANGED", "1")
    monkeypatch.delenv("OF_A_TEST_NEW", raising=False)


def test_what_is_left_behind_is_named_and_put_back() -> None:
    with (
        pytest.raises(AssertionError, match=r"environment: OF_A_TEST_CHANGED, OF_A_TEST_NEW$"),
        leaks.forbidden(),
    ):
        os.environ["OF_A_TEST_NEW"] = "1"
        os.environ["OF_A_TEST_CHANGED"] = "2"
    assert os.environ["OF_A_TEST_CHANGED"] == "1" and "OF_A_TEST_NEW" not in os.environ
    with pytest.raises(AssertionError, match=r"OF_A_TEST_KEPT$"), leaks.forbidden():
        del os.environ["OF_A_TEST_KEPT"]
    assert os.environ["OF_A_TEST_KEPT"] == "1"


def test_what_is_put_back_in_time_is_no_leak() -> None:
    with leaks.forbidden():
        os.environ["OF_A_TEST_NEW"] = "1"
        del os.environ["OF_A_TEST_NEW"]
