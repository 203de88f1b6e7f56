import logging

import pytest

from tvm_practice.tvm_export.errors import NotApplicable
from tvm_practice.tvm_export.rules.first_match import STRICT, UNSCHEDULED, first_match


def _declines() -> str:
    raise NotApplicable("no loop over k")


def _breaks() -> str:
    raise KeyError("axis")


def test_an_export_that_goes_well_says_nothing_of_rules(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A rule that breaks is information for --verbose, no warning: the next one took over."""
    monkeypatch.delenv(STRICT, raising=False)
    rules = (("declines", _declines), ("breaks", _breaks), ("takes", lambda: "scheduled"))
    with caplog.at_level(logging.WARNING):
        made, decision = first_match("fused_add", rules)
    assert (made, decision.rule, caplog.text) == ("scheduled", "takes", "")
    assert decision.declined == {
        "declines": "no loop over k",
        "breaks": "failed: KeyError: 'axis'",
    }


def test_without_a_rule_the_function_is_left_as_it_is(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.delenv(STRICT, raising=False)
    with caplog.at_level(logging.INFO):
        made, decision = first_match("fused_add", (("breaks", _breaks),))
    assert (made, decision.rule) == (None, UNSCHEDULED)
    assert "rule breaks failed: KeyError: 'axis' on fused_add" in caplog.text


def test_tests_do_not_let_a_broken_rule_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(STRICT, "1")
    with pytest.raises(KeyError):
        first_match("fused_add", (("breaks", _breaks), ("takes", lambda: "scheduled")))
