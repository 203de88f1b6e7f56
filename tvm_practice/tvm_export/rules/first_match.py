"""The first rule that takes a function, and why the rules before it declined."""

import logging
import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import TypeVar

from tvm_practice.tvm_export.errors import NotApplicable

STRICT = "TVM_PRACTICE_STRICT_RULES"
"""The environment variable that, set to anything, lets a rule's mistake end the export."""

UNSCHEDULED = "unscheduled"
"""In place of a rule's name where no rule took the function."""

_log = logging.getLogger(__name__)
_Scheduled = TypeVar("_Scheduled")


@dataclass(frozen=True)
class Decision:
    """Which rule scheduled a function.

    Attributes:
        function: the function's name.
        rule: the rule's name; `UNSCHEDULED` if none took it.
        declined: the rules tried before it, in their order, each with its reason, one line.
    """

    function: str
    rule: str
    declined: dict[str, str] = field(default_factory=dict)


def first_match(
    function: str, rules: Iterable[tuple[str, Callable[[], _Scheduled]]]
) -> tuple[_Scheduled | None, Decision]:
    """What the first rule that takes a function makes of it, None if none does; the decision.

    A rule declines by NotApplicable. Any other exception is a mistake in the rule: it is logged as
    information and recorded in the decision, and the function is left to the next rule, because a
    slower function is better than none.

    Args:
        function: the function's name.
        rules: by name, in the order in which they are tried.

    Raises:
        Exception: a rule's mistake, if the environment has the variable `STRICT`.
    """
    declined: dict[str, str] = {}
    for name, rule in rules:
        try:
            return rule(), Decision(function, name, declined)
        except NotApplicable as error:
            declined[name] = str(error)
        except Exception as error:
            if os.environ.get(STRICT):
                raise
            declined[name] = f"failed: {_one_line(error)}"
            _log.info("rule %s %s on %s", name, declined[name], function)
    return None, Decision(function, UNSCHEDULED, declined)


def _one_line(error: Exception) -> str:
    said = next((line.strip() for line in str(error).splitlines() if line.strip()), "")
    return f"{type(error).__name__}: {said}" if said else type(error).__name__
