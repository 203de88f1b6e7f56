"""Default schedules for processors: what a function gets that no tuner has a record for.

    module = schedule_defaults(module, target)

Left to itself the current engine turns an operator into plain scalar loops on one thread. The
rules here, first match first, are

    contraction    matrix products, convolutions: register tiles, weights packed at compile time
    reduction      softmax, normalizations, pooling, means, depthwise convolutions
    injective      elementwise, reshape, transpose, concatenate, gather
    fallback       anything else: the outer loops in parallel, where that is allowed
    unscheduled    what not even that could be done for

A rule that finds a function not to its liking leaves it to the next one. exp, erf, tanh and the
like become arithmetic that vectorizes.
"""

import logging
from collections.abc import Callable
from typing import Any

from tvm_practice.tvm_export.cpu_rules.injective import schedule_injective, schedule_loops
from tvm_practice.tvm_export.cpu_rules.loops import CONSTANTS, Cpu, NotApplicable, cpu_of
from tvm_practice.tvm_export.cpu_rules.reduction import schedule_reduction
from tvm_practice.tvm_export.cpu_rules.register_tiles import schedule_contraction
from tvm_practice.tvm_export.cpu_rules.vector_math import vectorizable_math

_log = logging.getLogger(__name__)
_Rule = Callable[[Any, Cpu], Any]
_RULES: tuple[tuple[str, _Rule], ...] = (
    ("contraction", schedule_contraction),
    ("reduction", schedule_reduction),
    ("injective", schedule_injective),
    ("fallback", schedule_loops),
)
_SCHEDULED = "tirx.is_scheduled"


def schedule_defaults(mod: Any, target: Any, *, report: list[tuple[str, str]] | None = None) -> Any:
    """Schedule every PrimFunc of a module that is not scheduled yet.

    Args:
        mod: an IRModule of fused functions, as `optimize_relax` leaves it, some perhaps scheduled
            by a tuner; it is left as it was.
        target: a tvm.target.Target of kind llvm.
        report: receives (function name, rule name) of each function scheduled here.

    Returns:
        A new IRModule. Constant weights that a schedule packs are packed in it already, in
        functions whose names end in "_prepacked".
    """
    import tvm
    from tvm import relax

    if target.kind.name != "llvm":
        raise ValueError(f"default schedules are for targets of kind llvm, not {target.kind.name}")
    cpu = cpu_of(target)
    constants = _constant_arguments(mod)
    scheduled = mod.clone()
    for name, func in mod.functions_items():
        if not isinstance(func, tvm.tirx.PrimFunc) or (func.attrs or {}).get(_SCHEDULED):
            continue
        hint = str(name.name_hint)
        scheduled[name], rule = _schedule(hint, func, constants.get(name, set()), cpu)
        if report is not None:
            report.append((hint, rule))
    if not constants:  # no call of any function, so nothing to pack ahead
        return scheduled
    passes = tvm.ir.transform.Sequential(
        [
            relax.transform.SplitLayoutRewritePreproc(),
            relax.transform.FoldConstant(),
            relax.transform.DeadCodeElimination(),
        ]
    )
    return passes(scheduled)


def _schedule(hint: str, func: Any, constants: set[int], cpu: Cpu) -> tuple[Any, str]:
    """A PrimFunc by the first rule that takes it, and that rule's name."""
    import tvm

    given = func.with_attr(CONSTANTS, sorted(constants))
    for name, rule in _RULES:
        try:
            schedule = rule(given, cpu)
        except (NotApplicable, tvm.s_tir.ScheduleError) as error:
            _log.debug("rule %s does not fit %s: %s", name, hint, error)
            continue
        except Exception as error:  # a mistake in a rule must not cost the build
            _log.warning("rule %s failed on %s: %s", name, hint, error)
            continue
        if schedule is not None:
            done = vectorizable_math(schedule.mod["main"]).without_attr(CONSTANTS)
            return done.with_attr(_SCHEDULED, True), name
    return func, "unscheduled"


def _constant_arguments(mod: Any) -> dict[Any, set[int]]:
    """Of each function, the positions at which every call gives it a constant."""
    import tvm
    from tvm import relax

    found: dict[Any, set[int]] = {}

    def visit(node: Any) -> None:
        if not isinstance(node, tvm.ir.Call) or not node.args:
            return
        callee = node.args[0]
        if str(getattr(node.op, "name", "")) == "relax.call_tir":
            fields = node.args[1].fields
            positions = {
                i for i, each in enumerate(fields) if isinstance(each, tvm.ir.GenericConst)
            }
            found[callee] = found.get(callee, positions) & positions
        else:
            for each in node.args:
                if isinstance(each, tvm.ir.GlobalVar):
                    found[each] = set()

    for _, func in mod.functions_items():
        if isinstance(func, relax.Function):
            relax.analysis.post_order_visit(func, visit)
    return found
