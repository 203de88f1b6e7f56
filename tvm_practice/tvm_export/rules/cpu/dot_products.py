"""Contractions of 16-bit and 8-bit numbers on the instructions made for them.

Such an instruction adds the products of a *group* of neighbours to each of its sums: two pairs of
bfloat16 to a float32, four pairs of bytes to an int32. A contraction is written anew over groups of
steps of its sum. Its operands then hold a group's elements side by side in 32 bits:

    Y[i, j] = sum_k X[i, k] W[k, j]
    Y[i, j] = sum_g dot(X'[i, g], W'[g, j])       X'[i, g] the bits of X[i, 4g] to X[i, 4g + 3]

It is a contraction again, of 32-bit operands, and is tiled like any other: a constant W is grouped
and packed at compile time. An X whose innermost axis is summed is read as it lies; of any other,
such as an image, the groups are formed at every call.

`dot` is an operator of TVM's that is registered here. TVM widens it to whole vectors with the loop
around it, and makes the instruction of it when it lowers intrinsics. TVM has no vectors of bfloat16
for LLVM: that instruction is called through a function of LLVM's own language, which takes 32-bit
words and is inlined.
"""

import functools
from dataclasses import dataclass
from typing import Any

from tvm_practice.tvm_export.errors import NotApplicable
from tvm_practice.tvm_export.rules.cpu.bfloat16 import is_bfloat16, rounded_bits
from tvm_practice.tvm_export.rules.cpu.contraction import Contraction, find_contraction
from tvm_practice.tvm_export.rules.cpu.loops import (
    SPATIAL,
    Cpu,
    both_orders,
    constant,
    cpu_of,
    is_copy,
    kind_of,
    nest,
    only_block,
    stages,
    substitute,
    variables,
    with_stages,
)

_WORD = 32  # bits of a group
_ZMM = 512  # bits of the vectors of AVX-512
# For an instruction whose arguments TVM cannot write: a function of words around it.
_WRAPPER = """
declare <{lanes} x float> @{llvm}(<{lanes} x float>, <{count} x bfloat>, <{count} x bfloat>)

define <{lanes} x float> @{name}(<{lanes} x float> %sum, <{lanes} x i32> %a, <{lanes} x i32> %b) {{
  %x = bitcast <{lanes} x i32> %a to <{count} x bfloat>
  %y = bitcast <{lanes} x i32> %b to <{count} x bfloat>
  %result = call <{lanes} x float> @{llvm}(
    <{lanes} x float> %sum, <{count} x bfloat> %x, <{count} x bfloat> %y)
  ret <{lanes} x float> %result
}}
"""


@dataclass(frozen=True)
class Instruction:
    """A vector instruction that adds products of groups to sums.

    Attributes:
        operator: of TVM, by which a scalar step is written.
        llvm: the name of LLVM's intrinsic, without the bits of its vectors.
        operands: types of the two factors, in the intrinsic's order.
        element: type of an element in a group, in the same order.
        argument: type of LLVM's arguments, by element; bfloat16: it is called through `_WRAPPER`.
        total: type of the sums.
        features: what a processor needs for vectors of so many bits, by LLVM's names.
    """

    operator: str
    llvm: str
    operands: tuple[str, str]
    element: tuple[str, str]
    argument: str
    total: str
    features: tuple[tuple[int, str], ...]

    @property
    def group(self) -> int:
        """Elements of a group."""
        return _WORD // _bits(self.element[0])

    def is_on(self, cpu: Cpu) -> bool:
        """Whether the processor has it, for the vectors that rules use."""
        return any(
            bits == cpu.vector_bits and name in cpu.instructions for bits, name in self.features
        )


INSTRUCTIONS = (
    Instruction(
        "tvm_practice.dot_bfloat16",
        "llvm.x86.avx512bf16.dpbf16ps",
        operands=("bfloat16", "bfloat16"),
        element=("bfloat16", "bfloat16"),
        argument="bfloat16",
        total="float32",
        features=((_ZMM, "avx512bf16"),),
    ),
    Instruction(
        "tvm_practice.dot_uint8_int8",
        "llvm.x86.avx512.vpdpbusd",
        operands=("uint8", "int8"),
        element=("uint8", "int8"),
        argument="int8",
        total="int32",
        features=((_ZMM, "avx512vnni"), (256, "avxvnni")),
    ),
    # Both signed: 16-bit products, of half as many at once. See also `unsigned_products`.
    Instruction(
        "tvm_practice.dot_int16",
        "llvm.x86.avx512.vpdpwssd",
        operands=("int8", "int8"),
        element=("int16", "int16"),
        argument="int16",
        total="int32",
        features=((_ZMM, "avx512vnni"), (256, "avxvnni")),
    ),
)


def takes_unsigned(target: Any) -> bool:
    """Whether a target is a processor with an instruction for uint8 by int8."""
    if str(target.kind.name) != "llvm":
        return False
    cpu = cpu_of(target)
    return any(each.operands == ("uint8", "int8") and each.is_on(cpu) for each in INSTRUCTIONS)


def in_groups(func: Any, found: Contraction, cpu: Cpu) -> tuple[Any, Contraction]:
    """A function whose contraction adds groups of products, if the processor can, and that.

    Args:
        func: an unscheduled PrimFunc.
        found: its contraction.
        cpu: the processor.

    Returns:
        The function and its contraction anew; as they were where no instruction suits them.
    """
    if _find_step(found, cpu) is None:
        return func, found
    func = _without_copies(func)
    found = find_contraction(func, cpu)
    step = _find_step(found, cpu)
    assert step is not None
    for as_it_lies in (True, False):
        grouped = _Grouping(func, found, step, as_it_lies=as_it_lies).func
        try:
            again = find_contraction(grouped, cpu)
        except NotApplicable:
            continue
        # What is packed has to be of whole groups: an operand that is read as it lies is not.
        if str(again.packed.source.dtype) == "int32":
            return grouped, again
    return func, found


def _without_copies(func: Any) -> Any:
    """The function without stages that only copy an input, as a convolution's without padding."""
    import tvm

    schedule = tvm.s_tir.Schedule(func)
    for block in schedule.get_child_blocks(schedule.get_sblock("root")):
        statement = schedule.get(block)
        if not schedule.get_consumers(block) or not is_copy(statement):
            continue
        if any(statement.reads[0].source.same_as(each) for each in func.params):
            schedule.compute_inline(block)
    return schedule.mod["main"]


@dataclass(frozen=True)
class _Step:
    """How a contraction's step is computed by an instruction.

    Attributes:
        instruction: which.
        operands: the two loads that are multiplied, in the instruction's order.
        summed: the block's iterator that is taken in groups.
        extent: its extent.
    """

    instruction: Instruction
    operands: tuple[Any, Any]
    summed: Any
    extent: int


def _find_step(found: Contraction, cpu: Cpu) -> _Step | None:
    """An instruction for a contraction; None without one."""
    operands = _multiplied(found.block)
    if operands is None:
        return None
    total = str(found.block.body.buffer.dtype)
    for instruction in INSTRUCTIONS:
        for order in (operands, operands[::-1]):
            types = tuple(str(each.source.dtype) for each in order)
            if (types, total) != (instruction.operands, instruction.total):
                continue
            if instruction.is_on(cpu) and (summed := _grouped_iterator(found, order, instruction)):
                return _Step(instruction, order, *summed)
    return None


def _multiplied(block: Any) -> tuple[Any, Any] | None:
    """The loads whose product, in the sums' type, a block adds to its output; None if it does not.

    Both are in the block's own iterators.
    """
    import tvm_ffi
    from tvm import tirx
    from tvm.ir.expr import TensorLoad

    store = block.body
    own = tirx.BufferLoad(store.buffer, store.indices)
    for total, product in both_orders(store.value, tirx.Add):
        if not tvm_ffi.structural_equal(total, own) or not isinstance(product, tirx.Mul):
            continue
        factors = product.a, product.b
        if not all(isinstance(each, tirx.Cast) for each in factors):
            continue
        one, other = (each.value for each in factors)
        if isinstance(one, TensorLoad) and isinstance(other, TensorLoad):
            return one, other
    return None


def _grouped_iterator(
    found: Contraction, operands: tuple[Any, Any], instruction: Instruction
) -> tuple[Any, int] | None:
    """The longest iterator of the sum that alone indexes an axis of both operands, its extent."""
    longest: tuple[Any, int] | None = None
    for each in found.reduced:
        extent = constant(found.extents[each])
        if extent is None or extent < instruction.group:
            continue
        if longest is not None and extent <= longest[1]:
            continue
        if all(_axis(load, each, extent) is not None for load in operands):
            longest = each, extent
    return longest


def _axis(load: Any, iterator: Any, extent: int) -> int | None:
    """The axis that an iterator alone indexes, from end to end; None where it is used otherwise."""
    axes = [axis for axis, index in enumerate(load.indices) if iterator in variables(index)]
    if len(axes) != 1 or not load.indices[axes[0]].same_as(iterator):
        return None
    return axes[0] if constant(load.source.shape[axes[0]]) == extent else None


class _Grouping:
    """Writes a contraction anew, in groups.

    Attributes:
        func: the function that does it.
    """

    def __init__(self, func: Any, found: Contraction, step: _Step, *, as_it_lies: bool):
        self._given, self._found, self._step = func, found, step
        self._as_it_lies = as_it_lies
        self._stages: list[Any] = []
        self._buffers = list(func.body.block.alloc_buffers)
        self.func = self._rewritten()

    def _rewritten(self) -> Any:
        words = [self._words(number) for number in range(2)]
        whole = self._sum_nest(words)
        statements = []
        for stage in stages(self._given):
            is_sum = self._found.block.same_as(only_block(stage))
            statements += [*self._stages, whole] if is_sum else [stage]
        return with_stages(self._given, statements, self._buffers)

    def _words(self, number: int) -> Any:
        """A function from the number of a group to an operand's elements in it, as an int32."""
        from tvm import tirx

        load = self._step.operands[number]
        axis = _axis(load, self._step.summed, self._step.extent)
        assert axis is not None
        if self._as_it_lies and self._lies_in_groups(number, axis):

            def read(group: Any) -> Any:
                size = self._step.instruction.group
                ramp = tirx.Ramp(group * size, tirx.const(1, str(group.ty.dtype)), size)
                at = [*list(load.indices)[:axis], ramp]
                return tirx.reinterpret("int32", tirx.BufferLoad(load.source, at))

            return read
        grouped = self._group_nest(number, axis)

        def indexed(group: Any) -> Any:
            at = [group if i == axis else index for i, index in enumerate(load.indices)]
            return tirx.BufferLoad(grouped, at)

        return indexed

    def _lies_in_groups(self, number: int, axis: int) -> bool:
        """Whether an operand is an input whose groups are words of memory."""
        instruction, load = self._step.instruction, self._step.operands[number]
        return (
            axis == len(load.indices) - 1
            and self._step.extent % instruction.group == 0
            and instruction.operands[number] == instruction.element[number]
            and not load.source.same_as(self._found.packed.source)
            and any(load.source.same_as(each) for each in self._given.params)
        )

    def _group_nest(self, number: int, axis: int) -> Any:
        """The buffer of an operand's groups; adds the stage that forms them."""
        from tvm import tirx

        size, source = self._step.instruction.group, self._step.operands[number].source
        index = str(self._step.summed.ty.dtype)
        shape = [
            tirx.const(-(-self._step.extent // size), index) if i == axis else extent
            for i, extent in enumerate(source.shape)
        ]
        name = f"{self._found.block.name_hint}_group_{number}"
        grouped = tirx.decl_buffer(shape, "int32", name)

        def store(values: dict[Any, Any]) -> Any:
            at = list(values.values())
            words = []
            for element in range(size):
                place = at[axis] * size + element
                value = self._bits(number, [*at[:axis], place, *at[axis + 1 :]])
                if self._step.extent % size:
                    inside = place < self._step.extent
                    value = tirx.if_then_else(inside, value, tirx.const(0, str(value.ty)))
                words.append(
                    value.astype("uint32") << tirx.const(_WORD // size * element, "uint32")
                )
            word = functools.reduce(lambda a, b: a | b, words)
            return tirx.BufferStore(grouped, tirx.reinterpret("int32", word), at)

        axes = [(i, extent, SPATIAL) for i, extent in enumerate(shape)]
        self._buffers.append(grouped)
        self._stages.append(nest(name, axes, store))
        return grouped

    def _bits(self, number: int, at: list[Any]) -> Any:
        """An element of an operand as an unsigned number of the same bits."""
        from tvm import tirx

        element = self._step.instruction.element[number]
        source = self._step.operands[number].source
        value = tirx.BufferLoad(source, at)
        if is_bfloat16(element):
            if any(source.same_as(each) for each in self._given.params):
                return tirx.reinterpret("uint16", value)
            # TVM keeps what a function allocates as float32, and does not round it.
            return rounded_bits(value.astype("float32"))
        return tirx.reinterpret(f"uint{_bits(element)}", value.astype(element))

    def _sum_nest(self, words: list[Any]) -> Any:
        from tvm import tirx

        block, step = self._found.block, self._step
        index = str(step.summed.ty.dtype)
        groups = tirx.const(-(-step.extent // step.instruction.group), index)
        axes = [
            (each.var, groups if each.var.same_as(step.summed) else each.dom.extent, kind_of(each))
            for each in block.iter_vars
        ]
        out = block.body.buffer

        def at(values: dict[Any, Any]) -> list[Any]:
            return [substitute(each, values) for each in block.body.indices]

        def store(values: dict[Any, Any]) -> Any:
            first, second = (substitute(each(step.summed), values) for each in words)
            total = tirx.BufferLoad(out, at(values))
            return tirx.BufferStore(out, _dot(step.instruction, total, first, second), at(values))

        def init(values: dict[Any, Any]) -> Any:
            return tirx.BufferStore(out, substitute(block.init.value, values), at(values))

        name = str(block.name_hint)
        return nest(name, axes, store, init=init, annotations=block.annotations)


def operator_of(found: Contraction) -> str | None:
    """The operator of the steps of a contraction in groups; None if it has no groups."""
    import tvm
    import tvm_ffi

    called: list[str] = []
    tvm_ffi.structural_walk(
        found.block.body.value,
        (tvm.ir.Call, lambda call: called.append(str(getattr(call.op, "name", "")))),
    )
    return next((each.operator for each in INSTRUCTIONS if each.operator in called), None)


def wrapper_of(found: Contraction) -> str | None:
    """LLVM's text of the function that a contraction in groups calls; None if it calls none."""
    operator = operator_of(found)
    for each in INSTRUCTIONS:
        if each.operator == operator and is_bfloat16(each.argument):
            lanes = _ZMM // _WORD
            names = {"name": _wrapper_name(each), "llvm": f"{each.llvm}.{_ZMM}"}
            return _WRAPPER.format(lanes=lanes, count=lanes * each.group, **names)
    return None


def _wrapper_name(instruction: Instruction) -> str:
    return instruction.operator.replace(".", "_")


def _dot(instruction: Instruction, total: Any, first: Any, second: Any) -> Any:
    """A scalar step: `total` and the products of two groups, each an int32."""
    from tvm import tirx

    _register(instruction)
    return tirx.call_intrin(instruction.total, instruction.operator, total, first, second)


@functools.cache
def _register(instruction: Instruction) -> None:
    """Make the instruction's operator known to TVM, once a process."""
    from tvm.ir import op
    from tvm.tirx import register_intrin_lowering

    pure = 1  # CallEffectKind::kPure
    op.register_op_attr(instruction.operator, "TCallEffectKind", pure)
    op.register_op_attr(instruction.operator, "TVectorizable", True)
    op.Op.get(instruction.operator).set_num_inputs(3)
    register_intrin_lowering(
        instruction.operator, "llvm", f=functools.partial(_lowered, instruction)
    )


def _lowered(instruction: Instruction, call: Any) -> Any:
    """LLVM's intrinsic for a step of a whole vector."""
    import tvm
    from tvm import tirx

    dtype = str(call.ty)
    bits = _WORD * int(tvm.DataType(dtype).lanes)
    total, *words = call.args
    argument = f"{instruction.argument}x{bits // _bits(instruction.argument)}"
    if is_bfloat16(instruction.argument):
        return tirx.call_pure_extern(dtype, _wrapper_name(instruction), total, *words)
    given = [tirx.reinterpret(argument, each) for each in words]
    return tirx.call_llvm_pure_intrin(dtype, f"{instruction.llvm}.{bits}", total, *given)


def _bits(dtype: str) -> int:
    import tvm

    return int(tvm.DataType(dtype).bits)
