"""Reading and writing the loop nests of a PrimFunc: what the rules share.

A PrimFunc as legalization leaves it is a root block over its *stages*: perfect loop nests, each
around one block whose iterators are the loops.
"""

import platform
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tvm_practice import engines
from tvm_practice.tvm_export.errors import NotApplicable

SPATIAL, REDUCTION = "S", "R"

# The attribute that names those parameters of a PrimFunc that are constants of the model.
CONSTANTS = "layout_free_buffers"

# Instructions for products of 16-bit and 8-bit numbers, see `dot_products`, `tile_registers`.
_FOR_PRODUCTS = ("avx512bf16", "avx512vnni", "avxvnni", "amx-bf16", "amx-int8")

# Bytes of the second cache of a usual core, by the bits of its vectors.
_USUAL_CACHE = {512: 1 << 20, 256: 1 << 19, 128: 1 << 19}

Axis = tuple[Hashable, Any, str]
"""An iterator of a nest: what it is called when the body is made, its extent, its kind."""


@dataclass(frozen=True)
class Cpu:
    """What the rules need to know of the processor they schedule for.

    Attributes:
        vector_bits: width of a vector register.
        registers: how many there are.
        threads: how many threads will run.
        cache_bytes: of a core's second cache.
        instructions: which sets of `_FOR_PRODUCTS` it has, by LLVM's names.
    """

    vector_bits: int
    registers: int
    threads: int
    cache_bytes: int
    instructions: frozenset[str] = frozenset()

    def lanes(self, dtype: Any) -> int:
        """Elements of `dtype` in a vector register, at least 4."""
        import tvm

        return max(self.vector_bits // max(int(tvm.DataType(str(dtype)).bits), 8), 4)


def cpu_of(target: Any) -> Cpu:
    """The processor that `target` describes; this machine's where it leaves something open.

    A target leaves its caches open. One that names another processor gets the usual cache.
    """
    import tvm

    from tvm_practice.measure.environment import cache_bytes

    machine = str(target.attrs.get("mtriple", platform.machine())).lower()
    if machine.startswith(("x86", "amd64", "i686")):
        has = tvm.target.codegen.llvm_cpu_has_features
        bits = 512 if has("avx512f", target) else 256 if has("avx2", target) else 128
        registers = 32 if bits == 512 else 16
        on_linux = "linux" in str(target.attrs.get("mtriple", platform.system())).lower()
        instructions = frozenset(
            each
            for each in _FOR_PRODUCTS
            if has(each, target) and (on_linux or not each.startswith("amx"))
        )
    else:
        bits, registers, instructions = 128, 32, frozenset[str]()
    threads = int(target.attrs.get("num-cores", 0)) or engines.thread_count()
    here = cache_bytes() if _is_this_machine(target) else {}
    cache = here.get("L2", _USUAL_CACHE[bits])
    return Cpu(bits, registers, threads, cache, instructions)


def _is_this_machine(target: Any) -> bool:
    """Whether a target of kind llvm is for this machine's processor, or for any."""
    import tvm

    machine = str(target.attrs.get("mtriple", platform.machine())).partition("-")[0]
    system = tvm.target.codegen.llvm_get_system_cpu()
    names = {system, engines.host().level}
    if engines.active() is not None:
        names.add(engines.host_target().attrs.get("mcpu"))
    return machine.lower() == platform.machine().lower() and (
        target.attrs.get("mcpu", system) in names
    )


def has_stages(func: Any) -> bool:
    """Whether a function is a root block over stages: a scatter, say, is one block of loops."""
    from tvm.s_tir import SBlockRealize

    return isinstance(func.body, SBlockRealize) and func.body.block.name_hint == "root"


def stages(func: Any) -> list[Any]:
    """The statements under the root block, in order; NotApplicable where there is no such block."""
    import tvm

    if not has_stages(func):
        raise NotApplicable("the function has no root block")
    body = func.body.block.body
    return list(body.seq) if isinstance(body, tvm.tirx.SeqStmt) else [body]


def with_stages(func: Any, statements: Sequence[Any], buffers: Sequence[Any]) -> Any:
    """`func` with other statements under its root block and other buffers allocated there."""
    import tvm
    from tvm.s_tir import SBlock, SBlockRealize

    body = statements[0] if len(statements) == 1 else tvm.tirx.SeqStmt(list(statements))
    root = SBlock([], [], [], "root", body, alloc_buffers=list(buffers))
    return func.with_body(SBlockRealize([], True, root))


def only_block(stage: Any) -> Any:
    """The block of a perfect loop nest whose iterators are its loops; None for anything else.

    A block without dimensions has an iterator that is always 0, and no loop.
    """
    import tvm
    from tvm.s_tir import SBlockRealize

    loops = []
    while isinstance(stage, tvm.tirx.For):
        loops.append(stage)
        stage = stage.body
    if not isinstance(stage, SBlockRealize):
        return None
    if not loops and all(constant(each) == 0 for each in stage.iter_values):
        return stage.block
    if len(stage.iter_values) != len(loops):
        return None
    plain = all(
        value.same_as(loop.loop_var) and constant(loop.min) == 0
        for value, loop in zip(stage.iter_values, loops, strict=True)
    )
    return stage.block if plain and constant(stage.predicate) == 1 else None


def blocks_of(func: Any) -> list[Any]:
    """The one block of each stage; NotApplicable where a stage is more than a perfect loop nest."""
    blocks = [only_block(each) for each in stages(func)]
    if any(each is None for each in blocks):
        raise NotApplicable("a stage is no perfect loop nest around one block")
    return blocks


def is_empty(func: Any) -> bool:
    """Whether a loop of `func` never runs: TVM's arithmetic divides by such extents."""
    import tvm
    import tvm_ffi

    found: list[Any] = []

    def look(loop: Any) -> None:
        if constant(loop.extent) == 0:
            found.append(loop)

    tvm_ffi.structural_walk(func.body, (tvm.tirx.For, look))
    return bool(found)


def kind_of(iterator: Any) -> str:
    """SPATIAL, REDUCTION, or "?" of a block's iterator."""
    from tvm.tirx import IterVar

    kinds = {IterVar.DataPar: SPATIAL, IterVar.CommReduce: REDUCTION}
    return kinds.get(int(iterator.iter_type), "?")


def is_reduction(block: Any) -> bool:
    """Whether a block has anything but spatial iterators."""
    return any(kind_of(each) != SPATIAL for each in block.iter_vars)


def constant(expression: Any) -> int | None:
    """The value of an integer constant; None for any other expression."""
    value = getattr(expression, "value", expression)
    return int(value) if isinstance(value, int) else None


def both_orders(expression: Any, kind: type) -> list[tuple[Any, Any]]:
    """The operands of a commutative expression of that kind, in both orders; else none."""
    if not isinstance(expression, kind):
        return []
    a, b = expression.a, expression.b  # type: ignore[attr-defined]
    return [(a, b), (b, a)]


def loads(expression: Any) -> list[Any]:
    """The buffer loads in an expression or statement, each once."""
    import tvm_ffi
    from tvm.ir.expr import TensorLoad

    found: list[Any] = []

    def keep(load: Any) -> None:
        if not any(tvm_ffi.structural_equal(load, each) for each in found):
            found.append(load)

    tvm_ffi.structural_walk(expression, (TensorLoad, keep))
    return found


def is_copy(block: Any) -> bool:
    """Whether a block copies a buffer element by element."""
    own = [each.var for each in block.iter_vars]
    value = loads(block.body.value)
    return (
        len(value) == 1
        and block.body.value.same_as(value[0])
        and len(value[0].indices) == len(own)
        and all(
            a.same_as(b) and a.same_as(c)
            for a, b, c in zip(value[0].indices, block.body.indices, own, strict=True)
        )
    )


def variables(*expressions: Any) -> set[Any]:
    """The variables in the expressions (buffers are variables too)."""
    import tvm
    import tvm_ffi

    found: set[Any] = set()
    for each in expressions:
        tvm_ffi.structural_walk(each, (tvm.ir.Var, lambda var: found.add(var)))
    return found


def substitute(expression: Any, values: Mapping[Any, Any]) -> Any:
    """The expression with variables replaced."""
    import tvm
    import tvm_ffi

    return tvm_ffi.structural_map(
        expression, (tvm.ir.Var, lambda var: values.get(var, var)), order="post"
    )


def nest(
    name: str,
    axes: Sequence[Axis],
    store: Callable[[dict[Hashable, Any]], Any],
    *,
    init: Callable[[dict[Hashable, Any]], Any] | None = None,
    annotations: Mapping[str, Any] | None = None,
) -> Any:
    """A loop nest, in the order of `axes`, around a block of that name.

    `store` and `init` make a BufferStore from the block's iterators.
    """
    import tvm
    from tvm import tirx
    from tvm.s_tir import SBlock, SBlockRealize
    from tvm.s_tir.analysis import get_sblock_access_region

    loop_vars, iterators = [], []
    for number, (_, extent, kind) in enumerate(axes):
        dtype = str(extent.ty.dtype)
        iter_type = tirx.IterVar.CommReduce if kind == REDUCTION else tirx.IterVar.DataPar
        span = tvm.ir.Range(tirx.const(0, dtype), extent)
        loop_vars.append(tirx.Var(f"i{number}", dtype))
        iterators.append(tirx.IterVar(span, tirx.Var(f"v{number}", dtype), iter_type))
    values = {key: each.var for (key, _, _), each in zip(axes, iterators, strict=True)}
    body = store(values)
    start = init(values) if init else None
    block = SBlock(iterators, [], [], name, body, start)
    touched = {each.source for each in loads(body)} | {body.buffer}
    reads, writes, _ = get_sblock_access_region(block, {each: each for each in touched})
    reads = [each for each in reads if not each.source.same_as(body.buffer)]
    block = SBlock(iterators, reads, writes, name, body, start, annotations=annotations)
    statement = SBlockRealize(loop_vars, True, block)
    for loop_var, iterator in reversed(list(zip(loop_vars, iterators, strict=True))):
        statement = tirx.For(
            loop_var, iterator.dom.min, iterator.dom.extent, tirx.ForKind.SERIAL, statement
        )
    return statement
