"""Default schedules for processors: what a function gets that no tuner has a record for.

    module = schedule_defaults(module, target)

Left to itself the current engine turns an operator into plain scalar loops on one thread. The
rules here, first match first, are

    attention      scores, softmax and values of some rows at a time
    winograd       3x3 convolutions of many channels, with fewer multiplications
    contraction    matrix products, convolutions: register tiles, weights packed at compile time
    reduction      softmax, normalizations, pooling, means, depthwise convolutions
    injective      elementwise, reshape, transpose, concatenate, gather
    fallback       anything else: the outer loops in parallel, where that is allowed
    unscheduled    what not even that could be done for

A rule that a function does not suit says why and leaves it to the next one. exp, erf, tanh and the
like become arithmetic that vectorizes.

A tuner may choose a contraction's tile: `advise` annotates the function with it, and the rule
follows.
"""

from collections.abc import Callable, Collection
from functools import partial
from typing import Any

from tvm_practice.tvm_export.constant_folding import computed_constants
from tvm_practice.tvm_export.errors import NotApplicable
from tvm_practice.tvm_export.rules.cpu.attention import schedule_attention
from tvm_practice.tvm_export.rules.cpu.fallback import schedule_loops
from tvm_practice.tvm_export.rules.cpu.flat import flat
from tvm_practice.tvm_export.rules.cpu.injective import schedule_injective
from tvm_practice.tvm_export.rules.cpu.loops import (
    CONSTANTS,
    Cpu,
    cpu_of,
    has_stages,
    is_empty,
    stages,
    with_stages,
)
from tvm_practice.tvm_export.rules.cpu.padded import padded
from tvm_practice.tvm_export.rules.cpu.reduction import schedule_reduction
from tvm_practice.tvm_export.rules.cpu.register_tiles import advice_of, schedule_contraction
from tvm_practice.tvm_export.rules.cpu.scheduling import can_be_lowered, parts_are_small
from tvm_practice.tvm_export.rules.cpu.vector_math import vectorizable_math
from tvm_practice.tvm_export.rules.cpu.winograd import schedule_winograd
from tvm_practice.tvm_export.rules.first_match import UNSCHEDULED, Decision, first_match

# A rule makes a `Schedule` of an unscheduled PrimFunc, or raises NotApplicable.
_Rule = Callable[[Any, Cpu], Any]
in_tiles: _Rule = padded(flat(schedule_contraction))
"""The rule of contractions, which follows a tuner's advice."""
_RULES: tuple[tuple[str, _Rule], ...] = (
    ("attention", schedule_attention),
    ("winograd", padded(schedule_winograd)),
    ("contraction", in_tiles),
    ("reduction", padded(schedule_reduction)),
    ("injective", padded(schedule_injective)),
    ("fallback", schedule_loops),
)
_SCHEDULED = "tirx.is_scheduled"


def schedule_defaults(
    mod: Any,
    target: Any,
    *,
    report: list[Decision] | None = None,
    without: Collection[str] = (),
) -> Any:
    """Schedule every PrimFunc of a module that is not scheduled yet.

    Args:
        mod: an IRModule of fused functions, as `optimize_relax` leaves it, some perhaps scheduled
            by a tuner; it is left as it was.
        target: a tvm.target.Target of kind llvm.
        report: receives the decision on each function that no tuner has scheduled.
        without: names of rules that are left out.

    Returns:
        A new IRModule. Constant weights that a schedule packs are packed in it already, in
        functions whose names end in "_prepacked".
    """
    import tvm

    if target.kind.name != "llvm":
        raise ValueError(f"default schedules are for targets of kind llvm, not {target.kind.name}")
    cpu = cpu_of(target)
    constants = _constant_arguments(mod)
    scheduled = mod.clone()
    for name, func in mod.functions_items():
        if not isinstance(func, tvm.tirx.PrimFunc):
            continue
        hint = str(name.name_hint)
        tuned = bool((func.attrs or {}).get(_SCHEDULED))
        if tuned and advice_of(func) is None:
            scheduled[name] = vectorizable_math(func)
            continue
        scheduled[name], decision = _schedule(hint, func, constants.get(name, set()), cpu, without)
        if report is not None and not tuned:
            report.append(decision)
    if not constants:  # no call of any function, so nothing to pack ahead
        return scheduled
    return _packing_ahead(scheduled)


def _packing_ahead(mod: Any) -> Any:
    """The module with its constant weights packed already.

    TVM's pass fails on functions without stages, such as a scatter's: they are kept from it.
    """
    import tvm
    from tvm import relax

    passes = tvm.ir.transform.Sequential(
        [
            relax.transform.SplitLayoutRewritePreproc(),
            computed_constants(),
            relax.transform.FoldConstant(),
            relax.transform.DeadCodeElimination(),
        ]
    )
    plain = {
        name: func
        for name, func in mod.functions_items()
        if isinstance(func, tvm.tirx.PrimFunc) and not has_stages(func)
    }
    if not plain:
        return passes(mod)
    packed = passes(tvm.IRModule({k: v for k, v in mod.functions_items() if k not in plain}))
    for name, func in plain.items():
        packed[name] = func
    return packed


def mark_constants(mod: Any) -> Any:
    """A module whose functions say which of their parameters are constants of the model.

    MetaSchedule's layout rewriting reads the same attribute: it packs those at compile time.
    """
    import tvm

    constants = _constant_arguments(mod)
    marked = mod.clone()
    for name, func in mod.functions_items():
        if isinstance(func, tvm.tirx.PrimFunc) and constants.get(name):
            marked[name] = func.with_attr(CONSTANTS, sorted(constants[name]))
    return marked


def schedule_candidate(func: Any, target: Any) -> Any:
    """A tuner's candidate as it is to be built: its advice followed, if it has any.

    Args:
        func: a scheduled PrimFunc, or one with advice.
        target: a tvm.target.Target.

    Returns:
        An IRModule with the function as its "main". A weight that it packs is a parameter of the
        packed shape.
    """
    if advice_of(func) is not None:
        func = in_tiles(func, cpu_of(target)).mod["main"]
    if target.kind.name == "llvm":
        func = vectorizable_math(func)
    return _packed_before(func)


def schedule_default(func: Any, target: Any) -> Any:
    """One function with the schedule that `schedule_defaults` gives it.

    Args:
        func: an unscheduled PrimFunc of a module that `mark_constants` made.
        target: a tvm.target.Target of kind llvm.

    Returns:
        As `schedule_candidate`.
    """
    constants = {int(each) for each in (func.attrs or {}).get(CONSTANTS, ())}
    return _packed_before(_schedule("main", func, constants, cpu_of(target))[0])


def _packed_before(func: Any) -> Any:
    """A module of `func` in which weights to be packed are parameters, packed.

    TVM's RemoveWeightLayoutRewriteBlock does so too, where packing does not pad.
    """
    import tvm

    params = list(func.params)
    left, packed = [], []
    for stage in stages(func):
        block = _preprocessing(stage)
        if block is None:
            left.append(stage)
            continue
        packed.append(block.writes[0].source)
        source = block.reads[0].source
        params = [packed[-1] if each.same_as(source) else each for each in params]
    if packed:
        kept = [
            each
            for each in func.body.block.alloc_buffers
            if not any(each.same_as(buffer) for buffer in packed)
        ]
        body = with_stages(func, left, kept).body
        func = tvm.tirx.PrimFunc(params, body, func.ret_type, func.attrs)
    return tvm.IRModule({"main": func.with_attr("global_symbol", "main")})


def _preprocessing(stage: Any) -> Any | None:
    """The block in a stage that packs a weight ahead of time."""
    import tvm_ffi
    from tvm.s_tir import SBlock

    found: list[Any] = []

    def look(block: Any) -> None:
        if "meta_schedule.layout_rewrite_preproc" in block.annotations:
            found.append(block)

    tvm_ffi.structural_walk(stage, (SBlock, look))
    return found[0] if found else None


def _schedule(
    hint: str, func: Any, constants: set[int], cpu: Cpu, without: Collection[str] = ()
) -> tuple[Any, Decision]:
    """A PrimFunc by the first rule that takes it, and the decision."""
    if is_empty(func):
        nothing = "no element is computed"
        return func, Decision(hint, UNSCHEDULED, {name: nothing for name, _ in _RULES})
    given = func.with_attr(CONSTANTS, sorted(constants))
    rules = [
        (name, partial(_checked, rule, given, cpu)) for name, rule in _RULES if name not in without
    ]
    schedule, decision = first_match(hint, rules)
    if schedule is None:
        return func, decision
    done = vectorizable_math(schedule.mod["main"]).without_attr(CONSTANTS)
    return done.with_attr(_SCHEDULED, True), decision


def _checked(rule: _Rule, func: Any, cpu: Cpu) -> Any:
    """A rule's schedule. Raises NotApplicable if TVM would allocate too much for it, or fail."""
    schedule = rule(func, cpu)
    if not parts_are_small(schedule.mod["main"]):
        raise NotApplicable("TVM would allocate more for a part of a stage than for all of it")
    if not can_be_lowered(schedule.mod["main"]):
        raise NotApplicable("TVM cannot lower the schedule with open extents")
    return schedule


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
