"""The errors of TVM that beginners meet most: how each is recognized, its cause, the way out.

Checks and runs add the cause to TVM's own message; `tvm-practice errors` lists them all. Each has
code that raises it and code that does not, which the tests run on both engines.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from tvm_practice.engines import CLASSIC, CURRENT, Engine

_EXPRESSIONS = """\
import tvm
from tvm import te

A = te.placeholder((64, 64), name="A")
B = te.placeholder((64, 64), name="B")
k = te.reduce_axis((0, 64), name="k")
C = te.compute((64, 64), lambda i, j: te.sum(A[i, k] * B[k, j], axis=k), name="C")
"""
_SCHEDULE: Mapping[Engine, str] = {
    CURRENT: """\
module = tvm.IRModule({"main": te.create_prim_func([A, B, C])})
sch = tvm.s_tir.Schedule(module)
block = sch.get_sblock("C")
i, j, k = sch.get_loops(block)
""",
    CLASSIC: """\
s = te.create_schedule(C.op)
i, j = s[C].op.axis
(k,) = s[C].op.reduce_axis
""",
}
_RELAY = """\
import tvm
from tvm import relay

x = relay.var("x", shape=(1, 4, 8, 8))
weight = relay.var("weight", shape=(8, 4, 3, 3))
y = relay.nn.relu(relay.nn.conv2d(x, weight, kernel_size=(3, 3), channels=8))
mod = tvm.IRModule()
mod["main"] = relay.Function([x, weight], y)
"""


@dataclass(frozen=True)
class Example:
    """Code that raises the error, and the same without it; both stand after `prelude`."""

    engine: Engine
    prelude: str
    wrong: str
    right: str


@dataclass(frozen=True)
class CommonError:
    """An error that TVM, or Python on TVM's objects, raises on code that looks right.

    Attributes:
        title: what was done, in a few words; the heading of the glossary's entry.
        pattern: found in `Type: message` of the exception, and in no other error's.
        cause: why TVM refuses it.
        instead: what to write.
    """

    title: str
    pattern: str
    cause: str
    instead: str
    examples: tuple[Example, ...]


def explained(error: BaseException) -> CommonError | None:
    """The common error that `error` is, if it is one."""
    return recognized(f"{type(error).__name__}: {error}")


def recognized(text: str) -> CommonError | None:
    """The common error whose message `text` holds: an exception's, or one that was pasted."""
    return next((each for each in COMMON if re.search(each.pattern, text, re.DOTALL)), None)


def _expressions(wrong: str, right: str) -> tuple[Example, ...]:
    """The same code on both engines, which agree on tensor expressions."""
    return tuple(Example(engine, _EXPRESSIONS, wrong, right) for engine in (CURRENT, CLASSIC))


def _current(wrong: str, right: str) -> Example:
    return Example(CURRENT, _EXPRESSIONS + _SCHEDULE[CURRENT], wrong, right)


def _classic(wrong: str, right: str) -> Example:
    return Example(CLASSIC, _EXPRESSIONS + _SCHEDULE[CLASSIC], wrong, right)


_TENSOR_EXPRESSIONS = (
    CommonError(
        "Python's max, if, and, or, not on an expression",
        r"Cannot use and / or / not operator to Expr",
        "max, min, if, and, or, not and a < b < c need True or False at once. An expression has "
        "no value until the compiled program runs.",
        "te.max(a, b), te.min(a, b), te.if_then_else(condition, a, b), te.all(a, b), te.any(a, b)",
        _expressions(
            'te.compute((64, 64), lambda i, j: max(A[i, j], 0.0), name="Y")',
            'te.compute((64, 64), lambda i, j: te.max(A[i, j], 0.0), name="Y")',
        )
        + _expressions(
            "te.compute((64, 64), lambda i, j: te.if_then_else(1 <= i < 9, A[i, j], 0.0))",
            "te.compute((64, 64), lambda i, j: "
            "te.if_then_else(te.all(i >= 1, i < 9), A[i, j], 0.0))",
        ),
    ),
    CommonError(
        "too few or too many indices; Python's sum",
        r"Need to provide \d+ index in tensor but \d+ was provided"
        r"|Type ir\.PrimType does not support subscript"
        r"|'(Mul|Add|Sub|Div)' object is not iterable",
        "A tensor is read with one index for each of its axes. Python's sum takes its argument "
        "apart, which adds an index.",
        "A[i, j], with an index for each axis; te.sum(A[i, k], axis=k) for a sum",
        _expressions(
            'te.compute((64,), lambda i: sum(A[i, k]), name="Y")',
            'te.compute((64,), lambda i: te.sum(A[i, k], axis=k), name="Y")',
        )
        + _expressions(
            'te.compute((64,), lambda i: sum(A[i, k] * B[k, i]), name="Y")',
            'te.compute((64,), lambda i: te.sum(A[i, k] * B[k, i], axis=k), name="Y")',
        )
        + _expressions(
            'te.compute((64,), lambda i: A[i] + 1.0, name="Y")',
            'te.compute((64,), lambda i: A[i, 0] + 1.0, name="Y")',
        ),
    ),
    CommonError(
        "a Python loop over a reduce axis",
        r"'(IterVar|Var)' object cannot be interpreted as an integer",
        "An axis stands for a loop of the compiled program; it has no value while Python runs.",
        "te.sum(…, axis=k) or te.max(…, axis=k), which make that loop",
        _expressions(
            'te.compute((64,), lambda i: sum(A[i, x] for x in range(k)), name="Y")',
            'te.compute((64,), lambda i: te.sum(A[i, k], axis=k), name="Y")',
        ),
    ),
    CommonError(
        "a function of numpy or math on an expression",
        r"loop of ufunc does not support argument \d+ of type (TensorSlice|Var|IterVar|\w*Imm)"
        r"|must be real number, not (TensorSlice|Var|IterVar|Mul|Add|Sub|Div)"
        r"|float\(\) argument must be a string or a real number, not '(TensorSlice|Var|IterVar)'",
        "numpy and math compute with numbers. An element of a tensor expression is a formula; it "
        "has no value until the compiled program runs.",
        "TE's own functions: te.exp, te.log, te.sqrt, te.tanh, te.power; .astype for a type",
        _expressions(
            'import numpy as np\n\nte.compute((64, 64), lambda i, j: np.exp(A[i, j]), name="Y")',
            'te.compute((64, 64), lambda i, j: te.exp(A[i, j]), name="Y")',
        )
        + _expressions(
            'import math\n\nte.compute((64, 64), lambda i, j: math.sqrt(A[i, j]), name="Y")',
            'te.compute((64, 64), lambda i, j: te.sqrt(A[i, j]), name="Y")',
        ),
    ),
    CommonError(
        "a slice of a tensor",
        r"TensorLoad.*got `Array\[index \d+: ffi\.OpaquePyObject"
        r"|convert type <class 'slice'> to object",
        "TE has no slices: a formula defines one element.",
        "an index for each axis; te.sum over a te.reduce_axis for a whole row",
        _expressions(
            'te.compute((64,), lambda i: te.sum(A[i, :], axis=k), name="Y")',
            'te.compute((64,), lambda i: te.sum(A[i, k], axis=k), name="Y")',
        ),
    ),
    CommonError(
        "a whole tensor in the formula of one element",
        r"te\.ComputeOp.*got `?Array\[index \d+: (te\.)?Tensor\]",
        "The function given to te.compute defines one element; A + B stands for all elements.",
        "A[i, j] + B[i, j]",
        _expressions(
            'te.compute((64, 64), lambda i, j: A + B, name="Y")',
            'te.compute((64, 64), lambda i, j: A[i, j] + B[i, j], name="Y")',
        ),
    ),
    CommonError(
        "something added to a reduction",
        r"Reductions are only allowed at the top level of compute",
        "te.sum, te.max and te.min must be the whole formula of their stage: its loop over the "
        "reduce axis updates one element and nothing else.",
        "two stages: the reduction in one te.compute, the rest of the formula in the next",
        _expressions(
            'te.compute((64,), lambda i: te.sum(A[i, k], axis=k) + B[i, 0], name="Y")',
            'total = te.compute((64,), lambda i: te.sum(A[i, k], axis=k), name="total")\n'
            'te.compute((64,), lambda i: total[i] + B[i, 0], name="Y")',
        ),
    ),
    CommonError(
        "a reduction without its axis",
        r"reducer\(\) missing 1 required positional argument: 'axis'",
        "te.sum needs the axis to sum over; k in the index is not enough.",
        "te.sum(…, axis=k) with k = te.reduce_axis((0, extent))",
        _expressions(
            'te.compute((64,), lambda i: te.sum(A[i, k]), name="Y")',
            'te.compute((64,), lambda i: te.sum(A[i, k], axis=k), name="Y")',
        ),
    ),
    CommonError(
        "a reduce axis given as a number",
        r"dom need to be Range",
        "te.reduce_axis takes a range (begin, end), not an extent.",
        "te.reduce_axis((0, extent))",
        _expressions('te.reduce_axis(64, name="k")', 'te.reduce_axis((0, 64), name="k")'),
    ),
    CommonError(
        "one reduce axis in two stages",
        r"Check failed: \(!out_dom_map->count\(this->reduce_axis",
        "A reduce axis is a loop of one stage. Classic TVM cannot schedule two stages that share "
        "one.",
        "a te.reduce_axis for each reduction, even where both have the same extent",
        (
            _classic(
                'low = te.compute((64,), lambda i: te.min(A[i, k], axis=k), name="low")\n'
                'Y = te.compute((64,), lambda i: te.max(A[i, k] - low[i], axis=k), name="Y")\n'
                "tvm.lower(te.create_schedule(Y.op), [A, Y])",
                'low = te.compute((64,), lambda i: te.min(A[i, k], axis=k), name="low")\n'
                'r = te.reduce_axis((0, 64), name="r")\n'
                'Y = te.compute((64,), lambda i: te.max(A[i, r] - low[i], axis=r), name="Y")\n'
                "tvm.lower(te.create_schedule(Y.op), [A, Y])",
            ),
        ),
    ),
    CommonError(
        "an assignment to an element",
        r"'Tensor' object does not support item assignment",
        "A tensor expression is declared once, by a formula; nothing can be assigned to its "
        "elements.",
        "a new stage: te.compute(shape, lambda i, j: …)",
        _expressions(
            "A[0, 0] = 1.0",
            "te.compute((64, 64), lambda i, j: "
            "te.if_then_else(te.all(i == 0, j == 0), 1.0, A[i, j]))",
        ),
    ),
    CommonError(
        "classic TVM's names on current TVM",
        r"module 'tvm\.te' has no attribute 'create_schedule'"
        r"|module 'tvm' has no attribute '(lower|tir|nd|relay|autotvm|auto_scheduler)'"
        r"|'Schedule' object has no attribute 'get_block'"
        r"|'TensorRegion' object has no attribute 'buffer'"
        r"|'(Call|Cast|Add|Sub|Mul|Div|Max|Min|FloatImm|IntImm)' object has no attribute 'dtype'",
        "This is classic TVM's name, and current TVM runs here.",
        "tvm.s_tir.Schedule(…) for te.create_schedule and tvm.tir.Schedule, get_sblock for "
        "get_block, region.source for region.buffer, expression.ty.dtype for expression.dtype, "
        "tvm.runtime.tensor for tvm.nd.array; docs/classic-to-current.md has the rest",
        (
            _current("te.create_schedule(C.op)", "tvm.s_tir.Schedule(module)"),
            _current('sch.get_block("C")', 'sch.get_sblock("C")'),
            _current("sch.get(block).reads[0].buffer", "sch.get(block).reads[0].source"),
            _current("te.exp(A[0, 0]).dtype", "te.exp(A[0, 0]).ty.dtype"),
        ),
    ),
    CommonError(
        "a layer that TE does not have",
        r"module 'tvm\.te' has no attribute",
        "TE has arithmetic and a few functions of one element. Write a layer as a formula of them.",
        "te.max(x, 0.0) for a ReLU, te.sum(a * b, axis=k) for a product of matrices",
        _expressions(
            'te.compute((64, 64), lambda i, j: te.relu(A[i, j]), name="Y")',
            'te.compute((64, 64), lambda i, j: te.max(A[i, j], 0.0), name="Y")',
        ),
    ),
    CommonError(
        "/ between integers",
        r"TVM supports multiple types of integer divisions",
        "In Python, / gives a fraction, and an index is an integer.",
        "i // 2 and i % 2",
        _expressions(
            'te.compute((64, 64), lambda i, j: A[i / 2, j], name="Y")',
            'te.compute((64, 64), lambda i, j: A[i // 2, j], name="Y")',
        ),
    ),
    CommonError(
        "an input that is not among the arguments",
        r"Cannot find the Realization point of tensor|Check failed: \(info->IsArg\(tensor\)\)",
        "A placeholder that the formulas read is not in the list of arguments, so it would never "
        "get values.",
        "all inputs, then the output: [A, B, C]",
        (
            _current("te.create_prim_func([A, C])", "te.create_prim_func([A, B, C])"),
            _classic("tvm.lower(s, [A, C])", "tvm.lower(s, [A, B, C])"),
        ),
    ),
)

_SCHEDULES = (
    CommonError(
        "a loop that split or fuse has replaced",
        r"The loop no longer exists in the IRModule|Operate on iter var .*that has already been",
        "split and fuse replace the loops that they are given, and return the new ones. The old "
        "names no longer refer to a loop.",
        "the loops that they returned; in current TVM, sch.get_loops(block) gives the present ones",
        (
            _current(
                "sch.fuse(i, j)\nsch.parallel(i)",
                "fused = sch.fuse(i, j)\nsch.parallel(fused)",
            ),
            _classic(
                "s[C].split(i, 8)\ns[C].reorder(j, i)",
                "outer, inner = s[C].split(i, 8)\ns[C].reorder(j, outer, inner)",
            ),
        ),
    ),
    CommonError(
        "an axis of another stage",
        r"Operate on iter var .*that is not part of the schedule"
        r"|Cannot find the axis .* in parent's leaf_iter_vars",
        "Each stage has its own axes. cache_write moves the computation, and its reduce axis, "
        "into a new stage.",
        "the axes of the stage that is scheduled: CC.op.axis, CC.op.reduce_axis",
        (
            _classic(
                'CC = s.cache_write(C, "global")\ns[C].split(k, 8)',
                'CC = s.cache_write(C, "global")\ns[CC].split(CC.op.reduce_axis[0], 8)',
            ),
            _classic(
                'CC = s.cache_write(C, "global")\ns[CC].compute_at(s[C], CC.op.axis[0])\n'
                "tvm.lower(s, [A, B, C])",
                'CC = s.cache_write(C, "global")\ns[CC].compute_at(s[C], C.op.axis[0])\n'
                "tvm.lower(s, [A, B, C])",
            ),
        ),
    ),
    CommonError(
        "no block of that name",
        r"Cannot find a block with the name",
        "A block has the name of its te.compute; cache_read and cache_write add blocks.",
        "name= in te.compute; print(sch.mod) shows the names",
        (_current('sch.get_sblock("D")', 'sch.get_sblock("C")'),),
    ),
    CommonError(
        "loops of two nests in one step",
        r"The loops are not in a chain",
        "reorder takes loops that lie one inside another; the loops of a copy are in another nest.",
        "the loops of one sch.get_loops(block)",
        (
            _current(
                'copy = sch.cache_write(block, 0, "global")\n'
                "sch.reorder(k, sch.get_loops(copy)[0])",
                "sch.reorder(k, j)",
            ),
        ),
    ),
    CommonError(
        "a loop named twice",
        r"appears in the input array for multiple times|Same axis can not appear more than once",
        "reorder takes the loops in their new order, in which each has one place.",
        "each loop once",
        (
            _current("sch.reorder(j, i, j)", "sch.reorder(j, i)"),
            _classic("s[C].reorder(j, i, j)", "s[C].reorder(j, i)"),
        ),
    ),
    CommonError(
        "fuse of loops that are not adjacent",
        r"The loops can't be fused because|Can only fuse iterations that are consecutive",
        "fuse makes one loop of two where the second is directly inside the first.",
        "reorder first, so that one is directly inside the other; name the outer one first",
        (
            _current("sch.fuse(i, k)", "sch.fuse(i, j)"),
            _classic("s[C].fuse(i, k)", "s[C].fuse(i, j)"),
        ),
    ),
    CommonError(
        "a sum's loop in parallel or in vector lanes",
        r'"(vectorize|parallel|bind)" cannot be fulfilled.*is not a data parallel'
        r"|Cannot vectorize on CommReduce",
        "All steps of a reduction write the same element. If they ran at the same time, additions "
        "would be lost.",
        "a loop over the output's elements; rfactor first, to give each lane a sum of its own",
        (
            _current("sch.vectorize(k)", "sch.reorder(k, j)\nsch.vectorize(j)"),
            _current("sch.parallel(k)", "sch.parallel(i)"),
            _classic(
                's[C].vectorize(k)\ntvm.build(s, [A, B, C], "llvm")',
                's[C].reorder(k, j)\ns[C].vectorize(j)\ntvm.build(s, [A, B, C], "llvm")',
            ),
        ),
    ),
    CommonError(
        "factors that do not cover the loop",
        r"The product of factors is not larger than or equal to the extent",
        "Together, the new loops make fewer steps than the loop that they replace.",
        "factors whose product is the extent, or None for the factor that TVM works out",
        (_current("sch.split(i, factors=[4, 8])", "sch.split(i, factors=[None, 8])"),),
    ),
    CommonError(
        "split with a number, or a list, where the other is meant",
        r'In "Schedule\.split", "factors" has wrong type'
        r"|te\.StageSplitByFactor.*Expected type PrimExpr but got Array"
        r"|Only one factor can be specified as -1 or none"
        r"|Either nparts or factor need to be provided",
        "Current TVM's split takes a list with a factor for each new loop, one of them None "
        "at most; classic TVM's takes one factor.",
        "sch.split(i, factors=[None, 8]); in classic TVM s[C].split(i, factor=8)",
        (
            _current("sch.split(i, 8)", "sch.split(i, [None, 8])"),
            _current("sch.split(i, [None, None])", "sch.split(i, [None, 8])"),
            _classic("s[C].split(i, [None, 8])", "s[C].split(i, 8)"),
            _classic("s[C].split(i)", "s[C].split(i, 8)"),
        ),
    ),
    CommonError(
        "more or fewer names than loops",
        r"ValueError: (too many|not enough) values to unpack",
        "get_loops returns all loops around a block, a matmul's i, j and k. split returns a loop "
        "for each factor, and .shape has an extent for each dimension.",
        "a name for each; print the list to see how many there are",
        (
            _current("i, j = sch.get_loops(block)", "i, j, k = sch.get_loops(block)"),
            _classic("i, j, k = s[C].op.axis", "i, j = s[C].op.axis\n(k,) = s[C].op.reduce_axis"),
        ),
    ),
    CommonError(
        "a block where a loop belongs, or a loop where a block does",
        r'In "Schedule\.\w+", "\w+" has wrong type\. Expected "[^"]*(LoopRV|SBlockRV)',
        "parallel, vectorize, unroll, split and fuse take loops; get_loops, compute_at, "
        "cache_read and cache_write take a block.",
        "sch.get_loops(block) for its loops",
        (
            _current("sch.parallel(block)", "sch.parallel(i)"),
            _current("sch.get_loops(i)", "sch.get_loops(block)"),
        ),
    ),
    CommonError(
        "a compute_at into loops that are already around the block",
        r"to be under the same block scope, and loop not to be the ancestor of block"
        r"|Find loop in compute_at attach group",
        "compute_at moves a producer into the loops of its consumer. It takes neither the "
        "producer's own loops, which move with it, nor a loop that it was moved into before.",
        "the producer's block, then the right loop of its consumer at the first call",
        (
            _current(
                "sch.compute_at(block, i)",
                'copy = sch.cache_write(block, 0, "global")\n'
                "sch.compute_at(block, sch.get_loops(copy)[0])",
            ),
            _classic(
                "s[C].compute_at(s[C], i)\ntvm.lower(s, [A, B, C])",
                'CC = s.cache_write(C, "global")\ns[CC].compute_at(s[C], C.op.axis[0])\n'
                "tvm.lower(s, [A, B, C])",
            ),
        ),
    ),
    CommonError(
        "a reduction inlined",
        r"The block has init statement",
        "Inlining writes a formula where its element is read. A reduction is a loop, not a "
        "formula.",
        "compute_at, which moves the loop; compute_inline for stages of elementwise formulas",
        (
            _current(
                "sch.compute_inline(block)",
                'copy = sch.cache_write(block, 0, "global")\n'
                "sch.compute_at(block, sch.get_loops(copy)[0])",
            ),
        ),
    ),
    CommonError(
        "a decompose_reduction inside the sum's loop",
        r"decompose_reduction expect the loop .* to be higher than all the loops related to reduce",
        "Zeros must be written before the first addition, so outside all loops of the sum.",
        "the outermost loop of the sum, or a loop around it",
        (
            _current(
                "sch.reorder(k, i, j)\nsch.decompose_reduction(block, i)",
                "sch.decompose_reduction(block, k)",
            ),
        ),
    ),
    CommonError(
        "no storage scope of that name",
        r'The input storage scope "[^"]*" is invalid',
        "A scope says where a buffer lies. TVM knows only a few scopes.",
        '"global" (memory), "shared" (of a GPU\'s thread block), "local" (registers)',
        (_current('sch.cache_read(block, 0, "shraed")', 'sch.cache_read(block, 0, "shared")'),),
    ),
    CommonError(
        "a function that is not called main",
        r"does not know which function to be working on",
        "A schedule looks for blocks in the function main of its module, unless it is told of "
        "another.",
        'tvm.IRModule({"main": function}); or sch.work_on("matmul") before the first get_sblock',
        (
            _current(
                "function = te.create_prim_func([A, B, C])\n"
                'sch = tvm.s_tir.Schedule(tvm.IRModule({"matmul": function}))\n'
                'sch.get_sblock("C")',
                "function = te.create_prim_func([A, B, C])\n"
                'sch = tvm.s_tir.Schedule(tvm.IRModule({"matmul": function}))\n'
                'sch.work_on("matmul")\n'
                'sch.get_sblock("C")',
            ),
        ),
    ),
    CommonError(
        "a buffer that the block does not have",
        r"`buffer_index` is required to be in",
        "The number is that of a buffer that the block reads (cache_read) or writes "
        "(cache_write), counted from 0.",
        "0 for the first, 1 for the second",
        (_current('sch.cache_read(block, 2, "global")', 'sch.cache_read(block, 1, "global")'),),
    ),
    CommonError(
        "vector lanes without a known number",
        r"Failed to vectorize loop with extent",
        "A vector has one lane per step of its loop. The compiler must know their number.",
        "split first: sch.split(i, [None, 8]), and vectorize the inner loop",
        (
            _current(
                'n = te.var("n")\nX = te.placeholder((n,), name="X")\n'
                'Y = te.compute((n,), lambda x: X[x] + 1.0, name="Y")\n'
                'sch = tvm.s_tir.Schedule(tvm.IRModule({"main": te.create_prim_func([X, Y])}))\n'
                'sch.vectorize(*sch.get_loops("Y"))\n'
                'tvm.build(sch.mod, target="llvm")',
                'n = te.var("n")\nX = te.placeholder((n,), name="X")\n'
                'Y = te.compute((n,), lambda x: X[x] + 1.0, name="Y")\n'
                'sch = tvm.s_tir.Schedule(tvm.IRModule({"main": te.create_prim_func([X, Y])}))\n'
                'outer, inner = sch.split(*sch.get_loops("Y"), [None, 8])\n'
                'sch.vectorize(inner)\ntvm.build(sch.mod, target="llvm")',
            ),
        ),
    ),
    CommonError(
        "an intrinsic that was not registered",
        r"TensorIntrin '[^']*' is not registered",
        "tensorize replaces loops by an instruction, which must be registered under this name.",
        "tvm.s_tir.TensorIntrin.register(name, description, implementation) first",
        (_current('sch.tensorize(i, "dot_16")', "sch.parallel(i)"),),
    ),
    CommonError(
        "a tensor where an operation or a stage is wanted",
        r"te\.CreateSchedule.*Expected Array\[Operation\]"
        r"|Expect schedule key to be Tensor or Operation",
        "Classic TVM makes a schedule from the operation that computes the output, and finds a "
        "stage by its tensor.",
        "te.create_schedule(C.op), then s[C]",
        (
            _classic("te.create_schedule(C)", "te.create_schedule(C.op)"),
            _classic('s["C"]', "s[C]"),
        ),
    ),
)

_GRAPHS = (
    CommonError(
        "a pass of Relay's on a function without types",
        r"type checker has not populated the checked_type"
        r"|Type inference for this Expr has not completed",
        "The types of a Relay function's parts are inferred by a pass. A function that was built "
        "node by node, or changed, has none, and many passes need them.",
        "relay.transform.InferType()(mod) first, or both passes in tvm.transform.Sequential",
        (
            Example(
                CLASSIC,
                _RELAY,
                "relay.transform.FuseOps(2)(mod)",
                "relay.transform.FuseOps(2)(relay.transform.InferType()(mod))",
            ),
            Example(
                CLASSIC,
                _RELAY,
                'mod["main"].body.checked_type',
                'relay.transform.InferType()(mod)["main"].body.checked_type',
            ),
            Example(
                CLASSIC,
                _RELAY,
                "relay.transform.ForwardFoldScaleAxis()(mod)",
                "passes = [relay.transform.InferType(), relay.transform.ForwardFoldScaleAxis()]\n"
                "tvm.transform.Sequential(passes)(mod)",
            ),
        ),
    ),
)

COMMON: tuple[CommonError, ...] = (*_TENSOR_EXPRESSIONS, *_SCHEDULES, *_GRAPHS)
