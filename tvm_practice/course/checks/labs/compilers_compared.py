"""Lab 6's exercises and how they are graded."""

import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np

from tvm_practice.course.catalog import Phase
from tvm_practice.course.expect import (
    expect,
    expect_close,
    fail,
    fresh_rng,
    show,
    show_nest,
)
from tvm_practice.course.lowering import build_expression
from tvm_practice.course.nests import accepted
from tvm_practice.engines import CURRENT, host_target
from tvm_practice.viz.loop_nest import format_nest, loop_nest, paths
from tvm_practice.wording import number_of

PHASE = Phase(
    number=6,
    module="labs.compilers_compared",
    title="compilers compared",
    lanes=(CURRENT,),
    builds_on=("manual_schedule.register_block",),
    question=(
        "You have one function to make faster, on one machine, this week. Which of these "
        "compilers do you try, in which order, and what must a table show before you write a "
        "schedule by hand?"
    ),
)

Function = Callable[..., Any]


def _stages(output: Any) -> list[Any]:
    """The compute operations that a tensor is made of, each once, producers first."""
    found: list[Any] = []

    def visit(operation: Any) -> None:
        if type(operation).__name__ != "ComputeOp":
            return
        for each in operation.input_tensors:
            visit(each.op)
        if not any(operation.same_as(each) for each in found):
            found.append(operation)

    visit(output.op)
    return found


def _described(tensors: Sequence[Any]) -> str:
    """The stages of an expression, a line each."""
    lines = []
    for stage in _stages(tensors[-1]):
        reads = ", ".join(sorted({str(each.op.name) for each in stage.input_tensors}))
        over = [str(axis.dom.extent) for axis in stage.reduce_axis]
        text = f"{stage.name}: {stage.num_outputs} tensor{'s' * (stage.num_outputs > 1)} of {reads}"
        lines.append(text + (f", reduced over {', '.join(over)}" if over else ""))
    return "\n".join(lines)


@PHASE.exercise(
    "online_softmax",
    engine=CURRENT,
    title="declare a softmax that reads each row once for maximum and sum",
    hints=(
        "Follow the worked example: a reducer, applied to a tuple inside te.compute, gives one "
        "tensor for each element of the tuple. An element's state is (x, 1).",
        "te.comm_reducer(merge, nothing) makes the reducer. merge takes two states: the maximum "
        "is te.max of both; each sum is multiplied by te.exp of its own maximum minus that one, "
        "and then both are added. nothing(*types) returns te.min_value(types[0]) and "
        "tirx.const(0, types[1]).",
        "maximum, total = te.compute((rows,), lambda i: reducer((X[i, j], tirx.const(1, "
        "'float32')), axis=j), name='state'), and Y[i, c] is te.exp(X[i, c] - maximum[i]) / "
        "total[i].",
    ),
    looks_like="""
        state: 2 tensors of X, reduced over 8
        Y: 1 tensor of X, state
    """,
    demonstrate=lambda online_softmax: _described(online_softmax(4, 8)),
)
def check_online_softmax(online_softmax: Function) -> None:
    rng = fresh_rng()
    rows, columns = (int(size) for size in rng.choice(np.arange(7, 40), 2, replace=False))
    _check_state(online_softmax(rows, columns), rows, columns)
    for shape in ((2, 1), (1, 40), (9, 9), (3, 128), (rows, columns + 1)):
        _check_state(online_softmax(*shape), *shape)
    for shape in ((2, 1_000_003), (300_007, 5)):  # which are declared, not run
        tensors = online_softmax(*shape)
        _expect_one_reduction(tensors)
        stages = _stages(tensors[-1])
        (axis,) = next(each.reduce_axis for each in stages if each.reduce_axis)
        expect(
            int(axis.dom.extent) == shape[1],
            expected=f"a reduction of all {shape[1]} columns",
            seen=f"of {int(axis.dom.extent)}",
            look="te.reduce_axis((0, columns))",
        )


def _check_state(tensors: Any, rows: int, columns: int) -> None:
    rng = fresh_rng()
    expect(
        isinstance(tensors, list | tuple) and len(tensors) == 2,
        expected="online_softmax returns [X, Y]",
        seen=f"{type(tensors).__name__}"
        + (f" of length {len(tensors)}" if isinstance(tensors, list | tuple) else ""),
        look="the return statement",
    )
    shapes = [tuple(int(extent) for extent in each.shape) for each in tensors]
    expect(
        shapes == [(rows, columns)] * 2,
        expected=f"X and Y of shape {(rows, columns)}",
        seen=f"shapes {shapes}",
        look="te.placeholder, and the shape given to the te.compute of Y",
    )
    types = {str(each.dtype) for each in (*tensors, *tensors[1].op.input_tensors)}
    expect(
        types == {"float32"},
        expected="float32 throughout",
        seen=", ".join(sorted(types)),
        look="dtype= of te.placeholder, and tirx.const",
    )
    _expect_one_reduction(tensors)
    _expect_merge(tensors[1].op.input_tensors)
    function = build_expression(tensors)
    for inputs, what, look in _rows_to_try(rng.uniform(-4, 4, (rows, columns))):
        x = np.ascontiguousarray(inputs, dtype="float32")
        exponent = np.exp(x.astype("float64") - x.max(axis=1, keepdims=True))
        wanted = exponent / exponent.sum(axis=1, keepdims=True)
        got = function(x)
        # Far below the maximum an element is as exact as elsewhere, and then 0.
        expect_close(got, wanted, what=what, look=look, atol=1e-37, rtol=2e-4)
        if columns == 1:
            look = "the division by the sum: it is 1 at least, and needs nothing added to it"
            expect_close(got, wanted, what="Y of single elements", look=look, atol=0, rtol=0)


def _expect_one_reduction(tensors: Sequence[Any]) -> None:
    """The only stage before Y is a reduction of two numbers."""
    stages = _stages(tensors[-1])
    reductions = [each for each in stages if len(each.reduce_axis)]
    expect(
        len(reductions) == 1,
        expected="one reduction, which finds the maximum and the sum together",
        seen=f"{len(reductions)}: {', '.join(str(each.name) for each in reductions)}",
        look="te.comm_reducer of a tuple, in place of a maximum and then a sum",
    )
    state = reductions[0]
    expect(
        int(state.num_outputs) == 2,
        expected="a state of two: the maximum and the sum",
        seen=f"{number_of(state.num_outputs, 'tensor')} of {state.name}",
        look="the tuple given to the reducer",
    )
    expect(
        [str(each.name) for each in stages] == ["state", "Y"],
        expected='two stages, "state" and "Y"',
        seen=_described(tensors).replace("\n", "; "),
        look="name= of each te.compute, and whether it needs a stage between them",
    )


def _expect_merge(read: Sequence[Any]) -> None:
    """Two states of several elements merge to that of all: the loops merge a state with one."""
    state = next(each.op for each in read if type(each.op).__name__ == "ComputeOp")
    least = state.body[0].combiner.identity_element[1]
    expect(
        float(getattr(least, "value", 1)) == 0,
        expected="a sum of 0 in the identity, the state of no elements",
        seen=f"a sum of {least}",
        look="identity, the second number: tirx.const(0, type)",
    )
    merge = _merger(state.body[0].combiner)
    rng = fresh_rng()
    # One far below the other, with a sum that counts all the same.
    for apart, far in ((0, 0), (0, 1), (12, 0), (24, 1), (40, 0), (40, 1), (70, 0), (70, 1)):
        maxima, sums = rng.uniform(-4, 4, 2), rng.uniform(2, 9, 2)
        maxima[far] -= apart
        sums[far] *= np.exp(apart)
        expect_close(
            merge(maxima[0], sums[0], maxima[1], sums[1])[1],
            np.sum(sums * np.exp(maxima - maxima.max())),
            what="the sum of two merged states",
            look="merge: each sum is multiplied by exp(its own maximum - the larger one)",
        )
    nothing, masked = (np.finfo("float32").min, 0.0), (-np.inf, 1.0)
    for states, which in (((nothing, masked), "right"), ((masked, nothing), "left")):
        largest, total = merge(*states[0], *states[1])
        # An answer may return the masked element as it is: merged with nothing, it stays itself.
        expect_close(
            0.0 if largest == -np.inf else total,
            np.zeros(()),
            what=f"the sum of the identity merged with a masked score, (-inf, 1), on the {which},",
            look=f"merge: the factor of the {which} sum, exp(-inf) here, is 0",
            atol=1e-37,
        )


def _merger(combiner: Any) -> Callable[..., np.ndarray]:
    """A reducer's `merge` of two states of two numbers, compiled."""
    import tvm
    from tvm import tirx

    merged = tirx.decl_buffer((2,), "float32")
    stores = [tirx.BufferStore(merged, each, [at]) for at, each in enumerate(combiner.result)]
    parameters = [*combiner.lhs, *combiner.rhs, merged]
    function = tirx.PrimFunc(parameters, tirx.SeqStmt(stores))
    built = tvm.compile(function.with_attr("global_symbol", "main"), host_target())["main"]

    def run(*numbers: float) -> np.ndarray:
        result = tvm.runtime.empty((2,), "float32")
        built(*map(float, numbers), result)
        return np.asarray(result.numpy())

    return run


def _rows_to_try(ordinary: np.ndarray) -> tuple[tuple[np.ndarray, str, str], ...]:
    """From values near 0: inputs that a wrong merge fails on, what they are, where to look.

    From the smallest to the largest first, and the other way: a new maximum at every element, and
    at none but the first. Far from 0 either way.
    """
    return (
        (
            ordinary,
            "Y",
            "merge: each sum is scaled to the larger maximum, and the operands of Y's division",
        ),
        (
            np.sort(ordinary, axis=1),
            "Y of a row that rises",
            "merge: when the right maximum is the larger one, the left sum has to shrink",
        ),
        (
            np.sort(ordinary, axis=1)[:, ::-1],
            "Y of a row that falls",
            "merge: when the left maximum is the larger one, the right sum has to shrink",
        ),
        (
            ordinary + 500,
            "Y of values near 500",
            "whether the maximum is subtracted before every exp: exp(89) is infinite in float32",
        ),
        (
            ordinary * 2500,
            "Y of values of ±1e4",
            "whether the maximum is subtracted before every exp",
        ),
        (
            ordinary - 500,
            "Y of values near -500",
            "the identity: its maximum must be below every float32",
        ),
        (
            np.full_like(ordinary, np.finfo("float32").min),
            "Y of a row of the most negative finite float32",
            "the identity: that same number, and a sum of 0",
        ),
        (
            np.where(np.arange(ordinary.shape[1]) < ordinary.shape[1] // 3, -np.inf, ordinary),
            "Y of a row that begins with -inf, as masked scores do",
            "the identity: te.min_value(type), the smallest finite value; -inf - (-inf) is NaN",
        ),
    )


def _tiled_product(
    m: int, n: int, k: int, stages: Sequence[str], rows: int, columns: int
) -> Any:  # a tvm.s_tir.Schedule
    """A product in register blocks, and elementwise stages after it."""
    import tvm
    from tvm import te

    from solutions.manual_schedule import register_block

    A, B = te.placeholder((m, k), name="A"), te.placeholder((k, n), name="B")
    bias = te.placeholder((n,), name="bias")
    r = te.reduce_axis((0, k), name="k")
    last = te.compute((m, n), lambda i, j: te.sum(A[i, r] * B[r, j], axis=r), name="C")

    def stage(name: str, before: Any) -> Any:
        formulas: dict[str, Callable[[Any, Any], Any]] = {
            "biased": lambda i, j: before[i, j] + bias[j],
            "scaled": lambda i, j: before[i, j] * 0.5,
            "Y": lambda i, j: te.max(before[i, j], 0.0),
        }
        return te.compute((m, n), formulas[name.partition("_")[0]], name=name)

    for name in stages:
        last = stage(name, last)
    function = te.create_prim_func([A, B, bias, last]).with_attr("global_symbol", "main")
    schedule = tvm.s_tir.Schedule(tvm.IRModule({"main": function}))
    register_block(schedule, schedule.get_sblock("C"), rows, columns, 4)
    return schedule


def _demonstrate_fuse(fuse_epilogue: Function) -> str:
    schedule = _tiled_product(64, 48, 32, ["biased", "Y"], 8, 16)
    fuse_epilogue(schedule, ["biased", "Y"])
    return format_nest(loop_nest(schedule.mod["main"]))


@PHASE.exercise(
    "fuse_epilogue",
    engine=CURRENT,
    title="bring bias and activation into the product's tile",
    hints=(
        "The block that copies the tile to memory is the stages' producer. A primitive puts a "
        "consumer into its only producer: it is the reverse of compute_inline.",
        "schedule.reverse_compute_inline(block) makes the computation of `block` part of the "
        "block whose result it reads. schedule.get_sblock(name) finds a stage's block.",
        "for stage in stages: schedule.reverse_compute_inline(schedule.get_sblock(stage)). The "
        "first stage goes into the copy, and the next into the block that results.",
    ),
    looks_like="""
        for i_0 in serial(8):
            for j_0 in serial(3):
                for i_1_init in unrolled(8):
                    for j_1_init in vectorized(16):
                        C_init: C_local <- constant
                for k_0 in serial(8):
                    for k_1 in unrolled(4):
                        for i_1 in unrolled(8):
                            for j_1 in vectorized(16):
                                C_update: C_local <- A, B, C_local
                for ax0 in serial(8):
                    for ax1 in vectorized(16):
                        C_local: Y <- C_local, bias
    """,
    demonstrate=_demonstrate_fuse,
)
def check_fuse_epilogue(fuse_epilogue: Function) -> None:
    import tvm

    rng = fresh_rng()
    long = ["scaled", "biased", "scaled_again", "biased_again", "Y"]
    many = [
        f"{kind}_{at}" for at in range(int(rng.integers(4, 7))) for kind in ("scaled", "biased")
    ]
    for names in (["Y"], ["biased", "Y"], ["scaled", "biased", "Y"], long, [*many, "Y"]):
        m, n, k = (int(rng.integers(3, 6)) * each for each in (6, 8, 4))
        given = list(names)
        schedule = _tiled_product(m, n, k, names, 6, 8)
        accepted(fuse_epilogue, schedule, names if len(names) % 2 else tuple(names))
        expect(
            names == given,
            expected=f"the stages given as they were: {', '.join(given)}",
            seen=", ".join(names) or "none left",
            look="pop and remove of `stages`, which belong to the caller",
        )
        nest = loop_nest(schedule.mod["main"])
        found = list(paths(nest))
        adds = [loops for loops, each in found if each.writes in each.reads]
        expect(
            bool(adds),
            expected="the product's statement is left as it is",
            seen=show_nest(nest),
            look="primitives that were called on the block C",
        )
        after = [(loops, each) for loops, each in found if "A" not in each.reads and each.reads]
        expect(
            len(after) == 1,
            expected=f"one statement after the product does all of {', '.join(names)}",
            seen="; ".join(f"{each.writes} <- {', '.join(each.reads)}" for _, each in after)
            or "none",
            look="reverse_compute_inline of each stage, in the order in which they are computed",
        )
        loops, statement = after[0]
        expect(
            statement.writes == "Y" and "C" not in statement.reads,
            expected="that statement reads the local buffer and writes Y",
            seen=f"{statement.writes} <- {', '.join(statement.reads)}",
            look="reverse_compute_inline: the stage goes into the block that copies the tile",
        )
        shared = sum(one is other for one, other in zip(loops, adds[0], strict=False))
        expect(
            shared == 2,
            expected="inside i_outer and j_outer, after the tile's sum has ended",
            seen=show(loops),
            look="the statement's place: after each tile, not after all of them",
        )
        a, b, bias = (
            rng.standard_normal(shape, dtype="float32") for shape in ((m, k), (k, n), (n,))
        )
        wanted = a @ b
        for name in names:
            if name.startswith("biased"):
                wanted = wanted + bias
            elif name.startswith("scaled"):
                wanted = wanted * 0.5
            else:
                wanted = np.maximum(wanted, 0)
        output = tvm.runtime.tensor(np.full((m, n), np.nan, "float32"))
        function = tvm.compile(schedule.mod, target=host_target())["main"]
        function(*(tvm.runtime.tensor(each) for each in (a, b, bias)), output)
        expect_close(output.numpy(), wanted, what="Y", look="the stages that are brought in")


# Source and its logical lines.
_PIECES: tuple[tuple[str, int, str], ...] = (
    ("x = 1\n", 1, "a statement"),
    ("from __future__ import annotations\nimport os\n", 2, "two imports"),
    ("\n\n   \n", 0, "blank lines"),
    ("# a comment\n#: another\n", 0, "comments"),
    ("y = 2  # beside\n", 1, "a comment beside a statement"),
    ("total = sum(\n    [1,\n\n     2],  # inside\n)\n", 1, "a statement over five lines"),
    ("long = 1 + \\\n    2\n", 1, "a line that goes on after a backslash"),
    ('text = """a\nb\n\nc"""\n', 1, "a string over four lines that is assigned"),
    (
        'def f(a, b):\n    """What it does.\n\n    And how.\n    """\n\n    return a + b\n',
        2,
        "a function with a docstring over four lines",
    ),
    (
        "@property\n@classmethod\ndef g(\n    self,\n):\n    # only this\n    pass\n",
        4,
        "a function with two decorators",
    ),
    ("if x:\n    y = 3\nelse:\n    y = 4\n", 4, "if and else"),
    ("class C:\n    'One line.'\n\n    z = 1\n", 2, "a class with a docstring"),
    ("'no docstring, and no code either'\n", 0, "a line that is nothing but a string"),
    ('"one" "and another"\n', 0, "two strings side by side"),
    ("x = 1\n'in the middle'\ny = 2\n", 2, "a string between two statements"),
    ('def r():\n    r"""A raw \\d."""\n    R"and another"\n', 1, "docstrings that are raw"),
    ('u"text"\nU"""and\nmore"""\n', 0, "strings that begin with u"),
    ("def h():\n    'why'  # beside\n    return 'text'\n", 2, "a docstring with a comment"),
    ("try:\n    a()\nexcept E:\n    b()\nfinally:\n    c()\n", 6, "try, except and finally"),
    ("s = '#' + \"'\"\n", 1, "marks of comments and strings inside strings"),
    ('t = "#" + """\nmore\nlines"""\n', 1, "a string of three lines after one with a mark"),
    ("print('said')\n", 1, "a call with a string"),
    ("'a, b'.split(', ')\n", 1, "a call that begins with a string"),
    ("'%s' % name\n", 1, "an expression that begins with a string"),
    ("a = 1; b = 2; c()\n", 1, "statements joined by semicolons"),
    ("for x in y: a(x); b(x)\n", 1, "a head with its body on the same line"),
    ("()\n", 1, "a statement that is an empty tuple"),
    ("...\n", 1, "a statement that is an ellipsis"),
    ("-1\n", 1, "a statement that is a number and its sign"),
    ("5\n", 1, "a statement that is a number"),
    ("name\n", 1, "a statement that is a name"),
    ("'note: x = 1; y = 2'\n", 0, "a string with code in it"),
    ("x: int = 1\n", 1, "a statement with a type"),
    ("g = lambda: 0\n", 1, "a lambda"),
    ("# if x: y = 1\n", 0, "code in a comment"),
    (
        "def m():\n    global a, b\n    del a\n    assert b\n    raise E\n",
        5,
        "global, del, assert and raise",
    ),
    (
        "async def n():\n    nonlocal c\n    async with c:\n        await c\n    return\n",
        5,
        "async, nonlocal, await and return",
    ),
    ("while x:\n    break\nelse:\n    pass\nwith y as z:\n    yield z\n", 6, "while and with"),
    ("match x:\n    case 1:\n        pass\n    case _:\n        ...\n", 5, "match and case"),
    (
        'z = "a\x0cb\x1cc\x85d\u2028e"  # \x0b\x0c\n',
        1,
        "a string with characters that end a line to str.splitlines, and not to Python",
    ),
)


@PHASE.exercise(
    "count_lines",
    engine=CURRENT,
    title="count the logical lines of Python source",
    hints=(
        "Python's own tokenizer knows where a statement ends: a token of type NEWLINE is the end "
        "of a logical line, NL a line break that ends none. Both are in the module tokenize.",
        "tokenize.generate_tokens(io.StringIO(source).readline) gives the tokens. For each logical "
        "line, note whether anything other than strings came, leaving out COMMENT, NL, INDENT and "
        "DEDENT.",
        "only_strings = True; for each token: at NEWLINE add one unless only_strings, and set it "
        "again; any token but those four and STRING makes it False.",
    ),
    looks_like="""
        '# nothing' has 0
        'x = (1 +\\n     2)' has 1
        'def f():\\n    "A docstring."\\n    return 1' has 2
    """,
    demonstrate=lambda count_lines: "\n".join(
        f"{source!r} has {count_lines(source)}"
        if '"' not in source
        else f"'{source}' has {count_lines(source)}".replace("\n", "\\n")
        for source in (
            "# nothing",
            "x = (1 +\n     2)",
            'def f():\n    "A docstring."\n    return 1',
        )
    ),
)
def check_count_lines(count_lines: Function) -> None:
    for source, wanted, what in _PIECES:
        got = count_lines(source)
        expect(
            got == wanted,
            expected=f"{wanted} logical lines in {what}: {source!r}",
            seen=repr(got),
            look="where a logical line ends, and which of them are nothing but a string",
        )
    for source, wanted in (("", 0), ("x = 1", 1), ("if x:\n    y = 2", 2)):
        got = count_lines(source)
        expect(
            got == wanted,
            expected=f"{wanted} logical lines in {source!r}, which does not end with a newline",
            seen=repr(got),
            look="the last line",
        )
    rng = fresh_rng()
    chosen = rng.choice(len(_PIECES), 12)
    source = "".join(_PIECES[each][0] for each in chosen)
    wanted = sum(_PIECES[each][1] for each in chosen)
    got = count_lines(source)
    expect(
        got == wanted,
        expected=f"{wanted} logical lines in twelve pieces of code, one after the other",
        seen=repr(got),
        look="what is remembered from one logical line to the next",
    )
    from tvm_practice.labs.workloads.counting import implementation

    counted = {
        name: count_lines(implementation(f"tvm_practice.labs.workloads.in_{name}", "softmax"))
        for name in ("torch", "numpy")
    }
    expect(
        counted == {"torch": 2, "numpy": 3},
        expected="2 lines of softmax in in_torch.py, 3 in in_numpy.py",
        seen=str(counted),
        look="a def and its statements are logical lines",
    )


def _program(*lines: str) -> list[str]:
    return [sys.executable, "-S", "-E", "-c", "\n".join(("import sys, time", *lines))]


@PHASE.exercise(
    "time_to_first_result",
    engine=CURRENT,
    title="time a program from its start to its first line of output",
    hints=(
        "subprocess.run would wait for the end of the program. What starts it and returns at once, "
        "and what returns as soon as a line is there?",
        "subprocess.Popen(command, stdout=subprocess.PIPE, text=True), and readline() of its "
        "stdout. Read time.perf_counter() before Popen and after readline. Then let the process "
        "end (read the rest, wait) before the next one starts, and look at its returncode; "
        "statistics.median of the runs.",
        "Send standard error to a tempfile.TemporaryFile: a pipe that nobody reads fills up and "
        "stops the program. If process.returncode or not line: raise RuntimeError(f'exit status "
        "{process.returncode}: {last line of it}').",
    ),
    looks_like="""
        a line at once, 2 s of cleaning up: without the 2 s
        exit status 3: RuntimeError, exit status 3: no such device
    """,
    demonstrate=lambda function: _demonstrate_first(function),
)
def check_time_to_first_result(time_to_first_result: Function) -> None:
    slow_start = _program(
        "print('a warning', file=sys.stderr, flush=True)",
        "print('veri', end='', flush=True)",
        "time.sleep(0.25)",
        "print('fied', flush=True)",
    )
    before = time.perf_counter()
    seconds = time_to_first_result(slow_start, runs=1)
    whole = time.perf_counter() - before
    expect(
        isinstance(seconds, float) and 0.25 <= seconds <= whole,
        expected=f"between 0.25 and {whole:.2f} seconds, for a program whose first line is "
        "complete after 0.25 s",
        seen=repr(seconds),
        look="the unit, where standard error goes, and that the clock is read before Popen and "
        "after readline",
    )
    _check_says_more(time_to_first_result)
    _check_empty_line(time_to_first_result)
    _check_started_here(time_to_first_result)
    _check_begins_with_the_process(time_to_first_result)
    with tempfile.TemporaryDirectory() as folder:
        _check_stops_at_the_line(time_to_first_result, Path(folder) / "printed")
    with tempfile.TemporaryDirectory() as folder:
        _check_runs(time_to_first_result, Path(folder))
        _check_every_run_counts(time_to_first_result, Path(folder))
        _check_first_fails(time_to_first_result, Path(folder) / "failed")
    for lines, status, said in (
        (("print('first\\nbye', file=sys.stderr)", "sys.exit(3)"), 3, "bye"),
        (("print(1, flush=True)", "print('late', file=sys.stderr)", "sys.exit(4)"), 4, "late"),
        (("print('quiet', file=sys.stderr)",), 0, "quiet"),
        (_STRUCK, -9, "struck"),
        # What shells make of signals, and what a byte makes of other numbers.
        *(
            (
                ("print(1, flush=True)", "print('late', file=sys.stderr)", f"sys.exit({each})"),
                each,
                "late",
            )
            for each in (1, 141, int(fresh_rng().integers(120, 255)), 255)
        ),
        (_TALKATIVE, 5, "and done"),
        (_TALKATIVE_FIRST, 5, "and done"),
    ):
        try:
            got = time_to_first_result(_program(*lines), runs=1)
        except RuntimeError as error:
            expect(
                str(abs(status)) in str(error) and said in str(error),
                expected=f"a RuntimeError with the exit status {status} and {said!r}, the last "
                "line of its standard error",
                seen=f"RuntimeError: {error}",
                look="process.returncode after it has ended, and where its stderr went",
            )
        except Exception as error:
            raise fail("a RuntimeError", type(error).__name__, "what is raised") from error
        else:
            why = f"ends with status {status}" if status else "prints no line"
            raise fail(
                f"a RuntimeError for a program that {why}",
                f"{got!r} returned",
                "process.returncode, and whether readline gave a line",
            )
    _check_any_letters(time_to_first_result)


_STRUCK = (  # a program that a signal ends after its line
    "print(1, flush=True)",
    "print('struck', file=sys.stderr, flush=True)",
    "import os",
    "os.kill(os.getpid(), 9)",
)


_UNREAD = ("import signal", "signal.alarm(15)")  # ends a program if nobody reads what it says
_MUCH = "print('all is well\\n' * 20000, file=sys.stderr)"  # more than a pipe holds
_LINE = "print('verified', flush=True)"
_LAST = ("print('and done', file=sys.stderr)", "sys.exit(5)")
_TALKATIVE, _TALKATIVE_FIRST = (*_UNREAD, _LINE, _MUCH, *_LAST), (*_UNREAD, _MUCH, _LINE, *_LAST)


def _check_empty_line(time_to_first_result: Function) -> None:
    """A line with nothing in it is one."""
    try:
        time_to_first_result(_program("print(flush=True)", "print('verified')"), runs=1)
    except RuntimeError as error:
        raise fail(
            "seconds, of a program whose first line is empty",
            f"RuntimeError: {error}",
            "readline gives '' at the end of the output, and a newline for an empty line",
        ) from error


def _check_any_letters(time_to_first_result: Function) -> None:
    """A line may have letters beyond ASCII, on either stream."""
    line = "\u7d50\u679c: 3 \u00b5s".encode()
    program = _program(
        f"sys.stdout.buffer.write({line!r} + b'\\n')",
        f"sys.stderr.buffer.write({line!r} + b'\\n')",
        "sys.exit(int(sys.argv[1]))",
    )
    for status in (0, 7):
        seen = "seconds"
        try:
            time_to_first_result([*program, str(status)], runs=1)
        except RuntimeError as error:
            seen = f"RuntimeError: {error}"
        except UnicodeError as error:
            seen = f"{type(error).__name__}: {error}"
        expect(
            seen == "seconds" if status == 0 else line.decode() in seen and "7" in seen,
            expected=f"{'a RuntimeError with 7 and the last line' if status else 'seconds'} of a "
            f"program that prints {line.decode()!r} and ends with status {status}",
            seen=seen,
            look="text=True decodes as the programs of this machine encode",
        )


def _check_says_more(time_to_first_result: Function) -> None:
    """A program that prints more after its first line is read to its end, however much it is."""
    for size in (10, 1000, 100_000, 3_000_000):
        more = _program(*_UNREAD, "print('verified', flush=True)", f"print('more' * {size})")
        try:
            time_to_first_result(more, runs=1)
        except RuntimeError as error:
            raise fail(
                f"the seconds of a program that prints {4 * size} letters after its first line",
                f"RuntimeError: {error}",
                "process.stdout.read() before it is closed: a closed pipe ends the program",
            ) from error


def _check_started_here(time_to_first_result: Function) -> None:
    """A program runs in the caller's folder, with the caller's environment."""
    marker = f"GRADED_{fresh_rng().integers(10**9)}"
    names = sorted({*os.environ, marker} - {"LC_CTYPE"})  # which Python may set as it starts
    words = [" two spaces  ", "", "*", "$HOME", "\ta tab\n", "-c", "\\"]
    program = _program(
        "import os",
        "print('verified', flush=True)",
        f"if sys.argv[1:] != {words!r}: sys.exit(8)",
        f"here = os.getcwd() == {str(Path.cwd())!r} and os.environ.get({marker!r}) == 'set'",
        f"same = sorted({{*os.environ}} - {{'LC_CTYPE'}}) == {names!r}",
        "sys.exit(0 if here and same else 9)",
    )
    with mock.patch.dict(os.environ, {marker: "set"}):
        try:
            time_to_first_result([*program, *words], runs=1)
        except RuntimeError as error:
            raise fail(
                f"a program started in the caller's folder, with its environment and the arguments "
                f"{words}",
                f"RuntimeError: {error}",
                "cwd= and env= of subprocess.Popen: a command may name files by relative paths; "
                "the command goes there as it is",
            ) from error


def _check_first_fails(time_to_first_result: Function, file: Path) -> None:
    """Of several runs, each has to end with status 0, not the last one alone."""
    program = _program(
        "import os",
        "print('verified', flush=True)",
        f"failed = os.path.exists({str(file)!r})",
        f"open({str(file)!r}, 'w').close()",
        "sys.exit(0 if failed else 6)",
    )
    try:
        got = time_to_first_result(program, runs=3)
    except RuntimeError:
        return
    raise fail(
        "a RuntimeError for a program whose first run of three ends with status 6",
        f"{got!r} returned",
        "where the exit status is looked at: in each turn of the loop",
    )


def _check_begins_with_the_process(time_to_first_result: Function) -> None:
    """The clock is read before the process is started, which may take a while."""
    started: list[float] = []

    class Slow(subprocess.Popen):  # type: ignore[type-arg]
        def __init__(self, *given: Any, **named: Any) -> None:
            started.append(time.perf_counter())
            time.sleep(0.3)
            super().__init__(*given, **named)

    with mock.patch.object(subprocess, "Popen", Slow):
        seconds = time_to_first_result(_program("print('verified')"), runs=1)
    expect(
        not started or seconds >= 0.3,
        expected="the time from the start of a process that takes 0.3 s to start: 0.3 s or more",
        seen=f"{seconds:.2f} s",
        look="the clock is read before subprocess.Popen is called",
    )


def _check_stops_at_the_line(time_to_first_result: Function, file: Path) -> None:
    """A program that prints an empty line, notes when, and goes on for a while."""
    program = _program(
        "print(flush=True)",
        f"print(time.time(), file=open({str(file)!r}, 'w'), flush=True)",
        "time.sleep(2)",
        "print('cleaned up')",
    )
    before = time.time()
    seconds = time_to_first_result(program, runs=1)
    printed = (float(file.read_text()) if file.exists() else time.time()) - before
    expect(
        seconds < printed + 1.5,
        expected="the time to the first line, an empty one, of a program that goes on after it: "
        f"about {printed:.2f} s",
        seen=f"{seconds:.2f} s",
        look="readline, and the clock right after it; communicate and run wait for the end",
    )


def _check_runs(time_to_first_result: Function, folder: Path) -> None:
    """Four runs, one of them slow: new processes, one after the other, and their median."""
    seconds, events, shortest, longest = _noted_runs(
        time_to_first_result, folder / "four", (0.0, 5.0, 0.0, 1.4)
    )
    expect(
        events.count("start") == 4,
        expected="4 processes for runs=4",
        seen=f"{events.count('start')} started",
        look="the loop over range(runs)",
    )
    expect(
        events == ["start", "printed", "end"] * 4,
        expected="a process starts when the one before has ended",
        seen=", ".join(events),
        look="waiting for the process before the next turn",
    )
    median = statistics.median(longest)
    other = min(statistics.mean(shortest), statistics.median_high(shortest))
    expect(
        statistics.median(shortest) <= seconds < (median + other) / 2,
        expected=f"the median of runs that print after 0, 5, 0 and 1.4 s: about {median:.2f} s",
        seen=f"{seconds:.2f}",
        look="statistics.median: a mean is moved by one run that was disturbed, a minimum by luck",
    )


def _check_every_run_counts(time_to_first_result: Function, folder: Path) -> None:
    """Without its first run, or its last, or the slowest, a program has another median."""
    waits = (0.6, 0.0, 0.6, 0.0, 0.6)
    seconds, *_ = _noted_runs(time_to_first_result, folder / "five", waits)
    expect(
        seconds >= statistics.median(waits),
        expected="the median of runs that print after 0.6, 0, 0.6, 0 and 0.6 s: 0.6 s or more",
        seen=f"{seconds:.4f} s",
        look="the runs of which the median is taken: all of them; and the clock, which is read "
        "before subprocess.Popen",
    )


def _noted_runs(
    time_to_first_result: Function, log: Path, waits: Sequence[float]
) -> tuple[float, list[str], list[float], list[float]]:
    """The result for a program that waits so long before its line, run by run; what it noted.

    These are its events, and the shortest and the longest time that each run may have taken.
    """
    program = _program(
        "import os",
        f"log = {str(log)!r}",
        "turn = open(log).read().count('start') if os.path.exists(log) else 0",
        "print('start', time.time(), file=open(log, 'a'))",
        f"time.sleep({tuple(waits)}[turn % {len(waits)}])",
        "print('verified', flush=True)",
        "print('printed', time.time(), file=open(log, 'a'))",
        "time.sleep(0.05)",
        "print('end', time.time(), file=open(log, 'a'))",
    )
    called = time.time()
    seconds = time_to_first_result(program, runs=len(waits))
    lines = [line.split() for line in log.read_text().splitlines()]
    events = [event for event, _ in lines]
    # A process starts after the one before has ended and before it writes that it runs, which on
    # a busy machine are a second apart: a run's time lies between these two.
    started, printed, ended = ([float(when) for _, when in lines[first::3]] for first in range(3))
    shortest = [then - since for then, since in zip(printed, started, strict=False)]
    longest = [then - since for then, since in zip(printed, [called, *ended], strict=False)]
    return seconds, events, shortest, longest


def _demonstrate_first(time_to_first_result: Function) -> str:
    slow_end = _program("print('verified', flush=True)", "time.sleep(2)")
    before = time.perf_counter()
    first = time_to_first_result(slow_end, runs=1)
    after = time.perf_counter() - before - first
    fails = _program("print('no such device', file=sys.stderr)", "sys.exit(3)")
    try:
        time_to_first_result(fails, runs=1)
        said = "nothing"
    except RuntimeError as error:
        said = f"RuntimeError, {error}"
    return (
        f"a line at once, 2 s of cleaning up: {'without' if after > 1.5 else 'with'} the 2 s\n"
        f"exit status 3: {said}"
    )


@PHASE.exercise(
    "pays_after",
    engine=CURRENT,
    title="say after how many calls a compiler has paid for itself",
    hints=(
        "A call takes baseline_ms times the ratio, and saves the rest of baseline_ms. Does the "
        "interval show that it saves anything?",
        "If the high end of the interval is 1 or more, the answer is None, whatever the ratio "
        "says. Else divide what was spent by what a call saves, in the same unit, and round up.",
        "saved_ms = baseline_ms * (1 - value); return max(0, math.ceil(load_seconds * 1e3 / "
        "saved_ms)).",
    ),
    looks_like="""
        10 s, 2 ms, 0.5 (0.4 to 0.6): 10000
        10 s, 2 ms, 0.9 (0.8 to 1.1): None
        -1 s, 2 ms, 0.5 (0.4 to 0.6): 0
    """,
    demonstrate=lambda pays_after: "\n".join(
        f"{seconds} s, 2 ms, {ratio[0]} ({ratio[1]} to {ratio[2]}): "
        f"{pays_after(seconds, 2.0, ratio)}"
        for seconds, ratio in (
            (10, (0.5, 0.4, 0.6)),
            (10, (0.9, 0.8, 1.1)),
            (-1, (0.5, 0.4, 0.6)),
        )
    ),
)
def check_pays_after(pays_after: Function) -> None:
    rng = fresh_rng()
    saved = int(rng.integers(2, 9))  # ms per call, exactly: ratios are of powers of two
    baseline = float(4 * saved)
    calls = int(rng.integers(50, 500))
    ratio = (0.75, 0.7, 0.8)
    whole = calls * saved / 1e3
    look = "seconds to milliseconds, baseline_ms * (1 - ratio) saved per call, rounded up"
    # A quarter of a call's savings is missing, and three quarters: the nearest number is one off.
    for missing, wanted in ((0.25, calls), (0.75, calls), (1.25, calls - 1)):
        seconds = whole - missing * saved / 1e3
        got = pays_after(seconds, baseline, ratio)
        expect(
            got == wanted and isinstance(got, int | np.integer),
            expected=f"{wanted} calls for {seconds:.4f} s at {saved} ms saved of {baseline:g}",
            seen=repr(got),
            look=look,
        )
    # Powers of two: exact in seconds and in milliseconds, whatever is computed first.
    got = pays_after(calls * 0.25, 500.0, (0.5, 0.4, 0.6))
    expect(
        got == calls,
        expected=f"{calls} calls for {calls * 0.25:g} s at 250 ms saved of 500: they save as much",
        seen=repr(got),
        look="rounded up: a number of calls that saves exactly load_seconds is enough",
    )
    for seconds, interval, wanted, why in (
        (calls * 0.25, (0.5, 0.3, 0.96), calls, "the interval's middle is not the ratio"),
        (calls * 0.25, (0.5, 0.4, 0.998), calls, "the interval ends below 1"),
        (calls * 0.25 + 2.0**-12, (0.5, 0.4, 0.6), calls + 1, "a quarter of a millisecond more"),
        (calls * 0.25 + 2.0**-20, (0.5, 0.4, 0.6), calls + 1, "a microsecond more"),
        (1e6, (0.5, 0.4, 0.6), 4_000_000, "many calls"),
        (1e12, (0.5, 0.4, 0.6), 4_000_000_000_000, "however many"),
    ):
        got = pays_after(seconds, 500.0, interval)
        expect(
            got == wanted,
            expected=f"{wanted} calls for {seconds:.9g} s at 250 ms saved of 500 and the ratio "
            f"{interval}: {why}",
            seen=repr(got),
            look="baseline_ms * (1 - ratio) per call, with the first of the three, rounded up",
        )
    for exponent in (-7, 0, 1, 13):
        baseline_ms = 2.0**exponent
        got = pays_after((calls - 0.5) * baseline_ms / 2e3, baseline_ms, (0.5, 0.4, 0.6))
        expect(
            got == calls,
            expected=f"{calls} calls, {calls - 0.5:g} rounded up, at {baseline_ms:g} ms per call",
            seen=repr(got),
            look="baseline_ms * (1 - ratio) is saved per call, however long one is",
        )
    _check_what_never_pays(pays_after, whole, baseline, ratio)


def _check_what_never_pays(
    pays_after: Function, whole: float, baseline: float, ratio: tuple[float, float, float]
) -> None:
    """What saves nothing per call, and what there is nothing to save up for."""
    for interval, why in (
        ((0.9, 0.75, 1.05), "the interval holds 1: no significant difference"),
        ((0.9, 0.8, 1.0), "the interval ends at 1, which it holds"),
        ((1.5, 1.4, 1.6), "it is slower"),
        ((1.0, 1.0, 1.0), "it is as fast"),
    ):
        got = pays_after(whole, baseline, interval)
        expect(
            got is None,
            expected=f"None for the ratio {interval}: {why}",
            seen=repr(got),
            look="the high end of the interval, before anything is divided",
        )
    for seconds in (0.0, -whole):
        got = pays_after(seconds, baseline, ratio)
        expect(
            got == 0,
            expected=f"0 for {seconds:g} s: there is nothing to save up for",
            seen=repr(got),
            look="load_seconds of 0 or less",
        )
    got = pays_after(-whole, baseline, (1.5, 1.4, 1.6))
    expect(
        got is None,
        expected="None for a program that starts sooner but runs slower: its calls never save time",
        seen=repr(got),
        look="which of the two questions is asked first",
    )
