"""Default schedules for CUDA: TVM's own rules (dlight), and who compiles the kernels.

    module = schedule_defaults(module, target)
    with compiling_kernels(target):
        executable = tvm.compile(module, target)

The rules, first match first: matmul, gemv, reduction, general_reduction, fallback. The first takes
convolutions too: it reads their windows as the rows of a matrix. The reductions divide each sum
among the threads of a block, so they are not given many short sums, such as a depthwise
convolution's: fallback gives each thread an element. A function whose loops are written out, such
as a scatter's, is none of theirs: parallel_loops, our own, makes kernels of them. Nor is a long
recurrence, such as a Bessel function's series: TVM's rules inline every stage wherever it is read,
which takes hours and all memory. The rule `stages`, our own too, computes each once.

No GPU is needed for any of it. Without a CUDA runtime TVM keeps the kernels as CUDA source, and
they are compiled where the library is loaded.
"""

import math
import os
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import Any
from unittest import mock

from tvm_practice.tvm_export.errors import DoesNotCompile, NotApplicable
from tvm_practice.tvm_export.extremes import keeping_nan_on_gpu
from tvm_practice.tvm_export.rules.cpu.loops import loads, substitute
from tvm_practice.tvm_export.rules.first_match import Decision, first_match

# So many outputs for each term of a sum keep a GPU busy with one thread for an output.
_ENOUGH = 128
# Thread blocks of a product that keep a GPU busy: a few for each of its multiprocessors, of which
# an H100 has 132 and an A100 108.
_ENOUGH_BLOCKS = 256
# Threads of a block over rows and columns of a product, and the rows and columns of each thread.
# The first makes the best use of what it reads, the last the most blocks.
_TILES = ((16, 16, 4, 4), (8, 16, 4, 4), (8, 16, 4, 2), (8, 16, 2, 2), (8, 8, 2, 2))
_TERMS = 32  # of each sum, which a block fetches at once
# The threads of a block where loops are divided.
_THREADS = 256
# Reads of a function with every stage inlined, beyond which TVM's rules are not asked.
_MOST_READS = 5000
# TVM's mark of a function that is not to be fused: tvm.compile would, once more, for a GPU.
_OPAQUE = 8
# The rules by which the threads of a block share a sum.
_SHARING = ("gemv", "reduction", "general_reduction")


def schedule_defaults(mod: Any, target: Any, *, report: list[Decision] | None = None) -> Any:
    """Bind every PrimFunc of a module that is not scheduled yet to threads.

    Args:
        mod: an IRModule of fused functions, as `optimize_relax` leaves it; it is left as it was.
        target: a tvm.target.Target of kind cuda.
        report: receives the decision on each function that is not scheduled yet.

    Returns:
        A new IRModule.

    Raises:
        DoesNotCompile: no rule takes a function.
    """
    import tvm

    scheduled = mod.clone()
    for name, func in mod.functions_items():
        if not isinstance(func, tvm.tirx.PrimFunc) or (func.attrs or {}).get("tirx.is_scheduled"):
            continue
        bound, decision = _scheduled(name, func, target)
        if bound is None:  # the processor would run it, on addresses of the GPU
            raise DoesNotCompile(f"no rule binds the loops of {name.name_hint} to threads")
        shares_sums = decision.rule in _SHARING
        bound = keeping_nan_on_gpu(bound, shares_sums=shares_sums)
        scheduled[name] = bound.with_attr("op_pattern", _OPAQUE)
        if report is not None:
            report.append(decision)
    return scheduled


def schedule_default(func: Any, target: Any) -> Any:
    """One function with the schedule that `schedule_defaults` gives it.

    Args:
        func: an unscheduled PrimFunc.
        target: a tvm.target.Target of kind cuda.

    Returns:
        An IRModule with the function as its "main".
    """
    import tvm

    name = tvm.ir.GlobalVar("main")
    func = func.with_attr("global_symbol", "main")
    bound, _ = _scheduled(name, func, target)
    return tvm.IRModule({name: func if bound is None else bound})


def _scheduled(name: Any, func: Any, target: Any) -> tuple[Any, Decision]:
    """What the first rule that takes a PrimFunc makes of it, None if none does; the decision."""
    from tvm.s_tir import dlight

    func = _without_single_terms(func)
    gpu = dlight.gpu
    kinds = (gpu.GEMV, gpu.Reduction, gpu.GeneralReduction, gpu.Fallback)
    rules = [("matmul", partial(_bound, name, func, _matmul(func), target))]
    rules += [
        (_words(each.__name__), partial(_bound, name, func, each(), target)) for each in kinds
    ]
    rules.append(("stages", partial(_in_stages, func)))
    rules.append(("parallel_loops", partial(_parallel_loops, func)))
    return first_match(str(name.name_hint), rules)


def _without_single_terms(func: Any) -> Any:
    """A PrimFunc whose sums of one term each are that term.

    Else TVM's rules move what is added to such a sum into its beginning and into its only step: a
    bias is then added twice.
    """
    import tvm_ffi
    from tvm import s_tir, tirx
    from tvm.ir.expr import TensorLoad

    def term(block: Any) -> Any:
        summed = [each for each in block.iter_vars if each.iter_type == tirx.IterVar.CommReduce]
        if block.init is None or any(not _is_one(each.dom.extent) for each in summed):
            return block
        begun, step = block.init, block.body
        if not isinstance(begun, tirx.BufferStore) or not isinstance(step, tirx.BufferStore):
            return block

        def value(load: Any) -> Any:
            return begun.value if load.source.same_as(begun.buffer) else load

        free = [
            tirx.IterVar(each.dom, each.var, tirx.IterVar.DataPar, each.thread_tag)
            for each in block.iter_vars
        ]
        return _block_like(block, free, tvm_ffi.structural_map(step, (TensorLoad, value)), None)

    return func.with_body(tvm_ffi.structural_map(func.body, (s_tir.SBlock, term), order="post"))


def _block_like(block: Any, iter_vars: Any, body: Any, init: Any) -> Any:
    """A block with other iterators, body and beginning."""
    from tvm import s_tir

    return s_tir.SBlock(
        iter_vars,
        block.reads,
        block.writes,
        block.name_hint,
        body,
        init,
        block.alloc_buffers,
        block.match_buffers,
        block.annotations,
    )


def _is_one(extent: Any) -> bool:
    from tvm import tirx

    return isinstance(extent, tirx.IntImm) and int(extent) == 1


def _matmul(func: Any) -> Any:
    """TVM's rule for matrix products with tiles that make enough thread blocks of this one."""
    from tvm.s_tir import dlight

    tile = _tile(func)

    class Matmul(dlight.gpu.Matmul):  # type: ignore[misc]
        def get_configs(self, target: Any) -> Any:
            own = super().get_configs(target)
            if tile is None:
                return own
            rows, columns, each_rows, each_columns = tile
            return replace(
                own,
                block_size_x=rows,
                block_size_y=columns,
                micro_size_x=each_rows,
                micro_size_y=each_columns,
                micro_size_k=_TERMS,
            )

    return Matmul()


def _tile(func: Any) -> tuple[int, int, int, int] | None:
    """One of `_TILES` for a product whose extents are known; else None."""
    import tvm
    from tvm.s_tir.dlight.gpu.matmul import IterKind, detect_iter_traits

    if not _is_of_blocks(func):
        return None
    schedule = tvm.s_tir.Schedule(func)
    blocks = map(schedule.get, schedule.get_child_blocks(schedule.get_sblock("root")))
    for block in blocks:
        if any(each.iter_type == tvm.tirx.IterVar.CommReduce for each in block.iter_vars):
            break
    else:
        return None
    found = detect_iter_traits(block)
    if not found:
        return None
    extents = dict.fromkeys((IterKind.kIter_S, IterKind.kIter_I, IterKind.kIter_J), 1)
    for trait in found[3]:
        if not isinstance(trait.extent, tvm.tirx.IntImm):
            return None
        if trait.kind in extents:
            extents[trait.kind] *= int(trait.extent)
    batch, rows, columns = extents.values()

    def blocks_of(tile: tuple[int, int, int, int]) -> int:
        return batch * -(-rows // (tile[0] * tile[2])) * -(-columns // (tile[1] * tile[3]))

    return next((each for each in _TILES if blocks_of(each) >= _ENOUGH_BLOCKS), _TILES[-1])


def _is_of_blocks(func: Any) -> bool:
    """Whether a PrimFunc has blocks of tensor expressions, not loops that are written out."""
    return str(getattr(getattr(func.body, "block", None), "name_hint", "")) == "root"


def _many_short_sums(func: Any) -> str | None:
    """One line that says that the only sums of a PrimFunc are many and short; else None."""
    import tvm

    schedule = tvm.s_tir.Schedule(func)
    found = []
    for block in schedule.get_child_blocks(schedule.get_sblock("root")):
        iterators = schedule.get(block).iter_vars
        extents: dict[bool, list[int]] = {True: [], False: []}
        for each in iterators:
            extent = each.dom.extent
            if not isinstance(extent, tvm.tirx.IntImm):
                return None
            extents[each.iter_type == tvm.tirx.IterVar.CommReduce].append(int(extent))
        if extents[True]:
            found.append((math.prod(extents[False]), math.prod(extents[True])))
    if len(found) != 1 or found[0][0] < _ENOUGH * found[0][1]:
        return None
    return f"{found[0][0]} sums of {found[0][1]} terms each: a thread for each is enough"


def _bound(name: Any, func: Any, rule: Any, target: Any) -> Any:
    """A PrimFunc as one of dlight's rules binds it; NotApplicable where the rule declines."""
    import tvm
    from tvm.s_tir import dlight

    if not _is_of_blocks(func):
        raise NotApplicable("its loops are written out, not blocks of tensor expressions")
    if (reads := _reads_if_inlined(func)) > _MOST_READS:
        raise NotApplicable(f"with its stages inlined it would have {reads:.3g} reads")
    if isinstance(rule, dlight.gpu.Reduction | dlight.gpu.GeneralReduction) and (
        sums := _many_short_sums(func)
    ):
        raise NotApplicable(sums)
    with target:
        try:
            bound = dlight.ApplyDefaultSchedule(rule)(tvm.IRModule({name: func}))[name]
        except AssertionError as error:  # how Matmul says that it cannot inline what is fused
            raise NotApplicable(f"TVM's rule declines: {error}") from None
    if bound.same_as(func):
        raise NotApplicable("TVM's rule declines without a reason")
    return bound


def _reads_if_inlined(func: Any) -> int:
    """How many elements a PrimFunc's last stage would read, with every other one inlined."""
    import tvm

    schedule = tvm.s_tir.Schedule(func)
    reads: dict[Any, int] = {}
    for each in schedule.get_child_blocks(schedule.get_sblock("root")):
        block = schedule.get(each)
        written = block.writes[0].source
        reads[written] = sum(reads.get(load.source, 1) for load in loads(block.body))
    return max(reads.values(), default=0)


def _in_stages(func: Any) -> Any:
    """A PrimFunc whose stages are each computed once, an element a thread.

    A thread keeps the element of each stage without sums that only its own later stages read; any
    other stage is a kernel of its own.
    """
    import tvm

    if not _is_of_blocks(func):
        raise NotApplicable("its loops are written out, not blocks of tensor expressions")
    schedule = tvm.s_tir.Schedule(func)
    blocks = schedule.get_child_blocks(schedule.get_sblock("root"))
    kernels: dict[str, tuple[Any, bool]] = {}  # by stage: the loop of threads, whether it has sums
    for block in reversed(blocks):
        name = str(schedule.get(block).name_hint)
        has_sums = any(
            each.iter_type == tvm.tirx.IterVar.CommReduce for each in schedule.get(block).iter_vars
        )
        readers = [
            kernels[str(schedule.get(each).name_hint)] for each in schedule.get_consumers(block)
        ]
        threads = readers[0][0] if readers else None
        if (
            has_sums
            or not all(loop is threads and not sums for loop, sums in readers)
            or not readers
        ):
            kernels[name] = _divided_stage(schedule, block), has_sums
            continue
        schedule.compute_at(block, threads, preserve_unit_loops=True)
        schedule.set_scope(block, 0, "local")
        kernels[name] = threads, False
    return schedule.mod["main"].with_attr("tirx.is_scheduled", True)


def _divided_stage(schedule: Any, block: Any) -> Any:
    """The loop over the threads of a stage's kernel; sums stay within a thread."""
    import tvm

    iterators = schedule.get(block).iter_vars
    loops = schedule.get_loops(block)
    free = [
        loop
        for loop, each in zip(loops, iterators, strict=True)
        if each.iter_type != tvm.tirx.IterVar.CommReduce
    ]
    schedule.reorder(*free, *(loop for loop in loops if loop not in free))
    fused = schedule.fuse(*free) if free else schedule.add_unit_loop(block)
    kernel, threads = schedule.split(fused, [None, _THREADS])
    schedule.bind(kernel, "blockIdx.x")
    schedule.bind(threads, "threadIdx.x")
    return threads


def _parallel_loops(func: Any) -> Any:
    """A PrimFunc with a kernel for each statement of its body, in their order.

    The iterations of an outermost loop that is parallel are divided among threads. Any other
    statement is done by one thread: slow, and right.
    """
    from tvm import s_tir, tirx

    def kernels(statement: Any) -> Any:
        if isinstance(statement, tirx.SeqStmt):
            return tirx.SeqStmt([kernels(each) for each in statement.seq])
        if isinstance(statement, s_tir.SBlockRealize) and not statement.iter_values:
            block = statement.block
            inside = _block_like(block, block.iter_vars, kernels(block.body), block.init)
            return s_tir.SBlockRealize([], statement.predicate, inside)
        if isinstance(statement, tirx.For) and statement.kind == tirx.ForKind.PARALLEL:
            return _divided(statement)
        return _on_threads(1, "threadIdx.x", "int32", lambda _: statement)

    return func.with_body(kernels(func.body))


def _divided(loop: Any) -> Any:
    """A parallel loop with its iterations divided among the threads of thread blocks."""
    import tvm
    from tvm import tirx

    dtype = str(loop.extent.ty)
    threads = tirx.IntImm(dtype, _THREADS)
    blocks = tvm.sym.Analyzer().simplify(tirx.floordiv(loop.extent + (_THREADS - 1), threads))

    def of_thread(block: Any, thread: Any) -> Any:
        number = block * threads + thread
        body = substitute(loop.body, {loop.loop_var: loop.min + number})
        return tirx.IfThenElse(number < loop.extent, body, None)

    return _on_threads(
        blocks,
        "blockIdx.x",
        dtype,
        lambda block: _on_threads(
            threads, "threadIdx.x", dtype, lambda thread: of_thread(block, thread)
        ),
    )


def _on_threads(extent: Any, axis: str, dtype: str, body: Callable[[Any], Any]) -> Any:
    """A loop that is bound to a thread axis; `body` makes what is in it of its variable."""
    from tvm import tirx

    number = tirx.Var(axis[0] + axis[-1], dtype)
    bound = tirx.IterVar(None, tirx.Var(axis, dtype), tirx.IterVar.ThreadIndex, axis)
    zero = tirx.IntImm(dtype, 0)
    extent = tirx.IntImm(dtype, extent) if isinstance(extent, int) else extent
    return tirx.For(
        number, zero, extent, tirx.ForKind.THREAD_BINDING, body(number), thread_binding=bound
    )


def _words(name: str) -> str:
    """GeneralReduction as general_reduction."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower()


@contextmanager
def compiling_kernels(target: Any) -> Iterator[None]:
    """Within the block TVM compiles CUDA kernels by the compiler that is here, if any.

    That is NVRTC or nvcc, see `cuda.compiler`; with neither, or for an architecture that it does
    not know, kernels stay CUDA source. For a target of another kind nothing changes.
    """
    from tvm_practice.tvm_export.cuda import KEEP_SOURCE, compiles_for, use_for_kernels

    if str(target.kind.name) != "cuda":
        yield
    elif not compiles_for(str(target.attrs["arch"])):
        with mock.patch.dict(os.environ, {KEEP_SOURCE: "1"}):
            yield
    else:
        use_for_kernels(str(target.attrs["arch"]))
        yield
