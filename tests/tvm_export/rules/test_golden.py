"""The loop nest that each rule makes is the one that is kept, and the one in its docstring.

`pytest tests/tvm_export/rules/test_golden.py --refresh-golden` writes them anew.
"""

import inspect
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Processes
from tvm_practice import engines
from tvm_practice.tvm_export.rules.cpu.attention import schedule_attention
from tvm_practice.tvm_export.rules.cpu.fallback import schedule_loops
from tvm_practice.tvm_export.rules.cpu.injective import schedule_injective
from tvm_practice.tvm_export.rules.cpu.reduction import schedule_reduction
from tvm_practice.tvm_export.rules.cpu.register_tiles import schedule_contraction
from tvm_practice.tvm_export.rules.cpu.winograd.channels_first import schedule_first
from tvm_practice.tvm_export.rules.cpu.winograd.channels_last import schedule_last

GOLDEN = Path(__file__).parent / "golden"
# The functions that show the nests of a rule's first cases, in order.
RULES: dict[str, list[Callable[..., Any]]] = {
    "attention": [schedule_attention],
    "winograd": [schedule_first, schedule_last],
    "contraction": [schedule_contraction],
    "reduction": [schedule_reduction],
    "injective": [schedule_injective],
    "fallback": [schedule_loops],
}


@pytest.fixture(scope="module")
def session(process_of: Processes) -> engines.Session:
    return process_of(engines.CURRENT)


@pytest.mark.parametrize("rule", RULES)
def test_the_nests_of_a_rule_are_those_kept(
    session: engines.Session, rule: str, request: pytest.FixtureRequest
) -> None:
    made = session.call("tests.tvm_export.rules.golden_functions:nests", {"rule": rule})
    text = "\n".join(f"# {case}\n{nest}\n" for case, nest in made.items())
    kept = GOLDEN / f"{rule}.txt"
    if request.config.getoption("--refresh-golden"):
        kept.write_text(text)
    assert text == kept.read_text()


@pytest.mark.parametrize("rule", RULES)
def test_a_rules_docstring_shows_its_first_nest(rule: str) -> None:
    nests = (GOLDEN / f"{rule}.txt").read_text().split("\n\n")
    for function, nest in zip(RULES[rule], nests, strict=False):
        shown = textwrap.indent(nest.partition("\n")[2].rstrip(), "    ")
        assert shown in (inspect.getdoc(function) or ""), function
