"""How a schedule came to be: its primitives one by one, and the loop nest after each.

    schedule, steps = recorded(lambda: packed_matmul(64, 64, 64, rows=8, columns=16))

Current TVM keeps a trace of a schedule's primitives, which is replayed on the module that the
schedule began with. Classic TVM keeps a copy of the schedule at each primitive, if asked to.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any
from unittest import mock

from tvm_practice.viz.loop_nest import Node, classic_statement, loop_nest

REWRITTEN = "(rewritten, not by a primitive)"


@dataclass(frozen=True)
class ScheduleStep:
    """One primitive.

    Attributes:
        primitive: as Python, its loops and blocks by name: `split(i, factors=[None, 8])`; empty
            for the loops before any, REWRITTEN for a change by other means.
        nest: the loops after it.
        function: the PrimFunc after it, of the current engine.
    """

    primitive: str
    nest: list[Node]
    function: Any = field(default=None, compare=False, repr=False)


def recorded(make: Callable[[], Any]) -> tuple[Any, list[ScheduleStep]]:
    """Call a function that makes a schedule, on either engine; what it returns, and the steps.

    Args:
        make: returns a tvm.s_tir.Schedule or a PrimFunc; on the classic engine a tvm.te.Schedule,
            alone or with its tensors.
    """
    import tvm

    from tvm_practice import engines

    if engines.active() == engines.CLASSIC:
        with tvm.transform.PassContext(config={"te.keep_schedule_record": True}):
            made = make()
        return made, classic_history(made[0] if isinstance(made, tuple) else made)

    begun: list[tuple[Any, Any]] = []
    initialize = tvm.s_tir.Schedule.__init__

    def remember(schedule: Any, mod: Any, *arguments: Any, **options: Any) -> None:
        initialize(schedule, mod, *arguments, **options)
        begun.append((schedule, mod))

    with mock.patch.object(tvm.s_tir.Schedule, "__init__", remember):
        made = make()
    if isinstance(made, tvm.tirx.PrimFunc):
        return made, [ScheduleStep("", loop_nest(made), made)]
    ours = [at for at, (each, _) in enumerate(begun) if each.same_as(made)]
    if ours:
        return made, _steps_of(begun[: ours[-1] + 1])
    raise TypeError(
        f"expected a tvm.s_tir.Schedule made by the function, not {type(made).__name__}"
    )


def _steps_of(begun: Sequence[tuple[Any, Any]]) -> list[ScheduleStep]:
    """The steps of the last schedule, or of the one that it rewrites, if it has none itself."""
    schedule, original = begun[-1]
    steps = history(schedule, original)
    scheduled = [each for each in begun[:-1] if each[0].trace.insts]
    if len(steps) > 1 or not scheduled:
        return steps
    before = history(*scheduled[-1])
    if steps[0].nest == before[-1].nest:
        return before
    return [*before, replace(steps[0], primitive=REWRITTEN)]


def history(schedule: Any, original: Any, *, function: str = "main") -> list[ScheduleStep]:
    """The steps of a schedule of the current engine.

    Args:
        schedule: a tvm.s_tir.Schedule with its trace.
        original: the IRModule that it began with.
        function: of which the nest is shown.

    Returns:
        The loops as they were, then a step for each primitive that changed the IR. What only looks
        something up (get_loops, get_sblock) or samples a number is no step; a sampled number is
        written into the primitive that takes it.
    """
    import tvm

    if isinstance(original, tvm.tirx.PrimFunc):
        original = tvm.IRModule({function: original})
    replayed = tvm.s_tir.Schedule(original, seed=1, debug_mask="none")
    steps = [_step("", replayed.mod[function])]
    # The trace as Python is TVM's own; running it line by line gives every loop of it a name.
    names: dict[str, Any] = {"sch": replayed, "tvm": tvm, "T": tvm.script.tirx}
    for line in _lines(schedule.trace):
        call = line.partition("sch.")[2]
        shown = _VARIABLE.sub(lambda found: _name(replayed, names, found[0]), call)
        before = replayed.mod
        exec(line, names)
        if not call.startswith(("get_", "sample_")) and not replayed.mod.same_as(before):
            steps.append(_step(_shorter(shown), replayed.mod[function]))
    return steps


def _step(primitive: str, function: Any) -> ScheduleStep:
    return ScheduleStep(primitive, loop_nest(function), function)


_VARIABLE = re.compile(r"\b[blv]\d+\b")


def _lines(trace: Any) -> list[str]:
    """The statements of a trace, those over several lines joined."""
    lines: list[str] = []
    for line in trace.as_python():
        text = str(line)
        if text.strip():
            lines.append(text)
    return lines


def _name(schedule: Any, names: dict[str, Any], variable: str) -> str:
    """What a trace's variable stands for: a loop's or a block's name, or a number."""
    if variable not in names:
        return variable  # the result
    value = names[variable]
    found = schedule.get(value) if not isinstance(value, int) else value
    if hasattr(found, "loop_var"):
        return str(found.loop_var.name)
    return str(getattr(found, "name_hint", found))


def _shorter(call: str) -> str:
    """A call without the arguments that have their usual values."""
    for usual in (
        ", preserve_unit_iters=True", ", disable_predication=False", ", preserve_unit_loops=False",
        ", index=-1", ", preserve_unit_iters=False",
    ):  # fmt: skip
        call = call.replace(usual, "")
    return re.sub(r"\b(loop|block|block_or_loop)=", "", call)


def classic_history(schedule: Any) -> list[ScheduleStep]:
    """The steps of a classic schedule that was made with te.keep_schedule_record on.

    TVM notes the primitives' names alone; that their arguments are missing shows in the nests.
    """
    steps: list[ScheduleStep] = []
    for primitive, kept in zip(schedule.primitive_record, schedule.schedule_record, strict=True):
        nest = loop_nest(classic_statement(kept))
        name = "" if not steps else str(primitive)
        if not steps or nest != steps[-1].nest:  # `fuse` of two loops is noted twice
            steps.append(ScheduleStep(name, nest))
    return steps
