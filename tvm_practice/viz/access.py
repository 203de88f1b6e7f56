"""Which elements a function touches, in which order: read from its IR and followed, not computed.

program = access_program(schedule.mod["main"])      # or access_program(te_schedule, tensors)
trace = follow(program, limit=2048)
trace.of("B").strides()

A function is lowered to plain loops, and those are written down as a Python program in which every
access is a call of `touch(buffer, element, write)` and nothing is computed. The same text is run
as Python here, a few ten thousand touches, and compiled by TVM in `viz.cache`, billions of them.

On a CPU, a buffer of scope "local" stands for registers: TVM allocates it on the stack, and once
its loops are unrolled LLVM keeps it in registers. It is followed, and marked.
"""

import textwrap
from array import array
from collections import Counter, OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from math import prod
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np

# Where one buffer ends and the next begins: a page apart at least, as allocators have it.
_PAGE = 4096
_COMPARISONS = {"LT": "<", "LE": "<=", "GT": ">", "GE": ">=", "EQ": "==", "NE": "!="}
_OPERATORS = {
    "Add": "+", "Sub": "-", "Mul": "*", "FloorDiv": "//", "FloorMod": "%", **_COMPARISONS,
}  # fmt: skip
# Non-negative indices: truncating and flooring division are the same there.
_OPERATORS |= {"Div": "//", "Mod": "%"}
_CALLS = {"shift_left": "<<", "shift_right": ">>", "bitwise_and": "&", "bitwise_or": "|"}


class CannotFollow(ValueError):
    """The function's accesses depend on data or on sizes that are not known; one line."""


@dataclass(frozen=True)
class AccessedBuffer:
    """A buffer of a function.

    Attributes:
        shape: extents; those of a buffer inside the function after TVM has cut it.
        item_bytes: of an element.
        scope: "global"; "local" for registers; "shared" on a GPU.
        address: of its first element, in bytes.
    """

    name: str
    shape: tuple[int, ...]
    dtype: str
    item_bytes: int
    scope: str
    address: int

    @property
    def in_registers(self) -> bool:
        return self.scope.startswith("local")


@dataclass(frozen=True)
class AccessProgram:
    """The accesses of a function as a program.

    Attributes:
        buffers: in the order of their numbers in `source`.
        source: Python statements that call touch(buffer: int, element: int, write: int).
        lines: of each such call in `source`, the line that its statement's span names; 0 for none.
    """

    name: str
    buffers: tuple[AccessedBuffer, ...]
    source: str
    lines: tuple[int, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """As JSON takes it."""
        return asdict(self)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> "AccessProgram":
        buffers = (
            AccessedBuffer(**{**each, "shape": tuple(each["shape"])}) for each in values["buffers"]
        )
        return cls(values["name"], tuple(buffers), values["source"], tuple(values["lines"]))


def access_program(
    function: Any,
    tensors: Sequence[Any] | None = None,
    *,
    name: str = "main",
    sizes: Mapping[str, int] | None = None,
) -> AccessProgram:
    """Write down the accesses of a function on the active engine.

    Args:
        function: a PrimFunc or an IRModule with a `main` of the current engine, or a classic
            tvm.te.Schedule.
        tensors: the inputs and outputs of a classic schedule.
        name: what to call it.
        sizes: values of symbolic extents by name.

    Raises:
        CannotFollow: indices or conditions depend on data, or a size is not known.
    """
    lowered = plain_loops(function) if tensors is None else classic_loops(function, tensors)
    return ProgramWriter(sizes or {}).program(lowered, name)


def plain_loops(function: Any) -> Any:
    """To plain loops over buffers cut to the part in use; annotations stay on the loops."""
    import tvm
    from tvm import s_tir, tirx

    if isinstance(function, tvm.tirx.PrimFunc):
        function = tvm.IRModule({"main": function.with_attr("global_symbol", "main")})
    passes = [
        s_tir.transform.CanonicalizeLoop(),
        s_tir.transform.LowerCrossThreadReduction(),
        s_tir.transform.LowerInitBlock(),
        s_tir.transform.PlanAndUpdateBufferAllocationLocation(),
        s_tir.transform.ConvertBlocksToOpaque(),
        s_tir.transform.CompactBufferAllocation(),
        s_tir.transform.LowerMatchBuffer(),
        s_tir.transform.LowerOpaqueBlock(),
        tirx.transform.StmtSimplify(),
    ]
    return tvm.ir.transform.Sequential(passes)(function)["main"]


def classic_loops(schedule: Any, tensors: Sequence[Any]) -> Any:
    """A classic tvm.te.Schedule as plain loops, each buffer with the part that is in use."""
    from tvm.driver.build_module import schedule_to_module

    return schedule_to_module(schedule.normalize(), list(tensors))["main"]


class ProgramWriter:
    """Walks lowered IR of either engine and writes the program."""

    def __init__(self, sizes: Mapping[str, int]):
        self._sizes = sizes
        self._buffers: list[AccessedBuffer] = []
        self._numbers: dict[Any, int] = {}  # by the IR's buffer
        self._origins: dict[int, list[str]] = {}  # of a classic buffer that was cut
        self._names: dict[Any, str] = {}  # by the IR's variable
        self._used: Counter[str] = Counter()
        self._next_address = _PAGE
        self._lines: list[str] = []
        self._span_line = 0
        self._touch_lines: list[int] = []

    def program(self, function: Any, name: str) -> AccessProgram:
        # A classic function maps its parameters to buffers; a current one's are buffers.
        buffers = getattr(function, "buffer_map", None)
        for parameter in function.params:
            buffer = parameter if buffers is None else buffers.get(parameter)
            if buffer is not None and hasattr(buffer, "shape"):
                self._number(buffer)
        self._statement(function.body, 0)
        source = "\n".join(self._lines) + "\n"
        return AccessProgram(name, tuple(self._buffers), source, tuple(self._touch_lines))

    def _number(self, buffer: Any, shape: Sequence[Any] | None = None) -> int:
        """The number of a buffer, given when it is first seen."""
        if buffer in self._numbers:
            return self._numbers[buffer]
        extents = tuple(self._extent(each) for each in (buffer.shape if shape is None else shape))
        dtype = str(buffer.dtype)
        digits = "".join(filter(str.isdigit, dtype)) or "8"
        item_bytes = max(1, int(digits) // 8)
        scope = buffer.scope() if callable(buffer.scope) else buffer.scope
        found = AccessedBuffer(
            str(buffer.name), extents, dtype, item_bytes, str(scope) or "global", self._next_address
        )
        size = prod(extents) * item_bytes
        self._next_address += -(-size // _PAGE) * _PAGE + _PAGE
        self._buffers.append(found)
        self._numbers[buffer] = len(self._buffers) - 1
        return self._numbers[buffer]

    def _extent(self, value: Any) -> int:
        text = self._expression(value)
        try:
            return int(eval(text, {"__builtins__": {}, "min": min, "max": max}))
        except NameError:
            raise CannotFollow(f"the size {value} is not a number; give it in `sizes`") from None

    def _write(self, depth: int, line: str) -> None:
        self._lines.append("    " * depth + line)

    def _variable(self, variable: Any) -> str:
        """A Python name for a loop variable, one of its own."""
        text = str(getattr(variable, "name", variable))
        base = "".join(each if each.isalnum() else "_" for each in text)
        self._used[base] += 1
        name = base if self._used[base] == 1 else f"{base}__{self._used[base]}"
        self._names[variable] = f"i_{name}"
        return self._names[variable]

    def _statement(self, node: Any, depth: int) -> None:
        kind = type(node).__name__
        self._span_line = int(node.span.line) if getattr(node, "span", None) is not None else 0
        if kind == "SeqStmt":
            for each in node.seq if hasattr(node, "seq") else node:
                self._statement(each, depth)
        elif kind == "For":
            low, extent = self._expression(node.min), self._expression(node.extent)
            name = self._variable(node.loop_var)
            stop = extent if low == "0" else f"{low} + {extent}"
            self._write(depth, f"for {name} in range({low}, {stop}):")
            self._block(node.body, depth + 1)
        elif kind == "IfThenElse":
            self._loads(node.condition, depth)
            self._write(depth, f"if {self._expression(node.condition)}:")
            self._block(node.then_case, depth + 1)
            if node.else_case is not None:
                self._write(depth, "else:")
                self._block(node.else_case, depth + 1)
        elif kind == "BufferStore":
            self._loads(node.value, depth)
            self._touch(node.buffer, node.indices, depth, write=True)
        elif kind == "BufferRealize":  # classic: a buffer, cut to the ranges that are used
            number = self._number(node.buffer, [each.extent for each in node.bounds])
            self._origins[number] = [self._expression(each.min) for each in node.bounds]
            self._statement(node.body, depth)
        elif kind in ("AllocBuffer", "DeclBuffer"):
            self._number(node.buffer)
            if getattr(node, "body", None) is not None:
                self._statement(node.body, depth)
        elif kind in ("LetStmt", "Bind"):
            self._loads(node.value, depth)
            value = self._expression(node.value)
            self._write(depth, f"{self._variable(node.var)} = {value}")
            if getattr(node, "body", None) is not None:
                self._statement(node.body, depth)
        elif kind == "AttrStmt" and str(node.attr_key) == "thread_extent":
            axis = node.node.var
            self._write(
                depth, f"for {self._variable(axis)} in range(0, {self._expression(node.value)}):"
            )
            self._block(node.body, depth + 1)
        elif kind == "Evaluate":
            self._loads(node.value, depth)
        elif getattr(node, "body", None) is not None:
            self._statement(node.body, depth)
        else:
            raise CannotFollow(f"a {kind} cannot be followed without computing")

    def _block(self, node: Any, depth: int) -> None:
        before = len(self._lines)
        self._statement(node, depth)
        if len(self._lines) == before:
            self._write(depth, "pass")

    def _touch(self, buffer: Any, indices: Sequence[Any], depth: int, *, write: bool) -> None:
        number = self._number(buffer)
        flat = "0"
        for position, extent in zip(
            self._positions(number, indices), self._buffers[number].shape, strict=True
        ):
            flat = position if flat == "0" else f"({flat}) * {extent} + {position}"
        self._write(depth, f"touch({number}, {flat}, {int(write)})")
        self._touch_lines.append(self._span_line)

    def _positions(self, number: int, indices: Sequence[Any]) -> list[str]:
        """Indices counted from where a buffer begins: a classic one is cut to a part."""
        origins = self._origins.get(number, ["0"] * len(indices))
        return [
            position if origin == "0" else f"({position} - ({origin}))"
            for position, origin in zip(map(self._expression, indices), origins, strict=True)
        ]

    def _loads(self, node: Any, depth: int) -> None:
        """The loads of an expression in the order of its evaluation."""
        kind = type(node).__name__
        if kind in ("BufferLoad", "TensorLoad"):
            for index in node.indices:
                self._loads(index, depth)
            source = node.buffer if kind == "BufferLoad" else node.source
            self._touch(source, node.indices, depth, write=False)
        elif kind == "Call" and str(getattr(node.op, "name", "")).endswith("if_then_else"):
            condition, then, otherwise = node.args
            self._loads(condition, depth)
            before = len(self._lines)
            self._write(depth, f"if {self._expression(condition, data='1')}:")
            self._loads(then, depth + 1)
            if len(self._lines) == before + 1:
                del self._lines[before:]
            between = len(self._lines)
            if between == before:
                self._write(depth, f"if not ({self._expression(condition, data='1')}):")
            else:
                self._write(depth, "else:")
            self._loads(otherwise, depth + 1)
            if len(self._lines) == between + 1:
                del self._lines[between:]
        else:
            for child in _children(node):
                self._loads(child, depth)

    def _expression(self, node: Any, *, data: str | None = None) -> str:
        """An integer expression in Python; `data` stands for what is loaded, if anything may."""
        kind = type(node).__name__
        if isinstance(node, int):
            return str(node)
        if kind == "IntImm":
            return str(int(node.value))
        if kind in ("Var", "SizeVar"):
            if node in self._names:
                return self._names[node]
            if str(node.name) in self._sizes:
                return str(self._sizes[str(node.name)])
            raise CannotFollow(f"the size {node.name} is not a number; give it in `sizes`")
        if kind in _OPERATORS:
            a, b = (self._expression(each, data=data) for each in (node.a, node.b))
            return f"({a} {_OPERATORS[kind]} {b})"
        if kind in ("Min", "Max"):
            a, b = (self._expression(each, data=data) for each in (node.a, node.b))
            return f"{kind.lower()}({a}, {b})"
        if kind in ("And", "Or"):
            a, b = (self._expression(each, data=data) for each in (node.a, node.b))
            return f"({a} {kind.lower()} {b})"
        if kind == "Not":
            return f"(not {self._expression(node.a, data=data)})"
        if kind == "Cast":
            return self._expression(node.value, data=data)
        if kind == "Select":
            condition, a, b = (
                self._expression(each, data=data)
                for each in (node.condition, node.true_value, node.false_value)
            )
            return f"({a} if {condition} else {b})"
        if kind == "Call":
            called = str(getattr(node.op, "name", "")).rpartition(".")[2]
            if called == "likely":
                return self._expression(node.args[0], data=data)
            if called in _CALLS:
                a, b = (self._expression(each, data=data) for each in node.args)
                return f"({a} {_CALLS[called]} {b})"
        if kind in ("BufferLoad", "TensorLoad") and data is not None:
            return data
        what = "data" if kind in ("BufferLoad", "TensorLoad") else f"a {kind}"
        raise CannotFollow(f"an index or a condition depends on {what}: {node}".splitlines()[0])


def _children(node: Any) -> Iterator[Any]:
    for name in ("a", "b", "value", "condition", "true_value", "false_value"):
        child = getattr(node, name, None)
        if child is not None and not isinstance(child, int | float | str):
            yield child
    if type(node).__name__ == "Call":
        yield from node.args


@dataclass(frozen=True)
class BufferTrace:
    """The touches of one buffer, in order.

    Attributes:
        elements: flat, row-major index of each touch.
        steps: when: the number of the touch among those of all buffers.
        writes: 1 where it is written.
    """

    buffer: AccessedBuffer
    elements: "np.ndarray"
    steps: "np.ndarray"
    writes: "np.ndarray"

    def strides(self) -> list[tuple[int, float]]:
        """Elements from one touch to the next and the share of the touches, the commonest first.

        A touch of the element that was just touched does not count: `C[i, j] = C[i, j] + …` reads
        and writes one place.
        """
        import numpy as np

        moved = np.diff(self.elements)
        moved = moved[moved != 0]
        if not moved.size:
            return []
        values, counts = np.unique(moved, return_counts=True)
        order = np.argsort(-counts, kind="stable")
        return [(int(values[at]), float(counts[at] / moved.size)) for at in order]

    def lines(self, line_bytes: int = 64) -> "np.ndarray":
        """The cache line of each touch."""
        found: np.ndarray = (self.buffer.address + self.elements * self.buffer.item_bytes) // (
            line_bytes
        )
        return found


@dataclass(frozen=True)
class Trace:
    """The first touches of a program.

    Attributes:
        numbers: of the buffer of each touch, in `program.buffers`.
        elements: flat, row-major index in that buffer.
        writes: 1 where it is written.
        complete: whether the program ended within the limit.
    """

    program: AccessProgram
    numbers: "np.ndarray"
    elements: "np.ndarray"
    writes: "np.ndarray"
    complete: bool

    def of(self, name: str) -> BufferTrace:
        """The touches of one buffer. Raises KeyError if there is none of that name."""
        import numpy as np

        for number, buffer in enumerate(self.program.buffers):
            if buffer.name == name:
                steps = np.flatnonzero(self.numbers == number)
                return BufferTrace(buffer, self.elements[steps], steps, self.writes[steps])
        raise KeyError(f"no buffer {name}; there are {[b.name for b in self.program.buffers]}")

    def in_memory(self) -> Iterator[BufferTrace]:
        """The buffers that are not registers."""
        for buffer in self.program.buffers:
            if not buffer.in_registers:
                yield self.of(buffer.name)

    def reuse_distances(self, line_bytes: int = 64) -> dict[str, "np.ndarray"]:
        """For each touch of a cache line, how many other lines were touched since its last touch.

        A fully associative LRU cache of n lines hits where the distance is below n (Mattson et
        al., Evaluation techniques for storage hierarchies, 1970). First touches have none: -1.

        Returns:
            By buffer, one distance a touch. Registers are left out.
        """
        import numpy as np

        buffers = self.program.buffers
        recent: OrderedDict[tuple[int, int], None] = OrderedDict()
        found: dict[str, list[int]] = {b.name: [] for b in buffers if not b.in_registers}
        for number, element in zip(self.numbers.tolist(), self.elements.tolist(), strict=True):
            buffer = buffers[number]
            if buffer.in_registers:
                continue
            line = (number, (buffer.address + element * buffer.item_bytes) // line_bytes)
            distance = -1
            if line in recent:
                distance = 0
                for other in reversed(recent):
                    if other == line:
                        break
                    distance += 1
            recent[line] = None
            recent.move_to_end(line)
            found[buffer.name].append(distance)
        return {name: np.array(each, "int64") for name, each in found.items()}


class _Enough(Exception):
    pass


def follow(program: AccessProgram, *, limit: int | None = None) -> Trace:
    """Run a program and note its touches.

    Args:
        limit: stop after that many touches of memory (registers are not counted); None: all of
            them, some ten million a second and 17 bytes each.
    """
    import numpy as np

    numbers, elements, writes = array("q"), array("q"), array("b")
    left = -1 if limit is None else limit
    registers = [buffer.in_registers for buffer in program.buffers]

    def touch(number: int, element: int, write: int) -> None:
        nonlocal left
        if not registers[number]:
            if left == 0:
                raise _Enough
            left -= 1
        numbers.append(number)
        elements.append(element)
        writes.append(write)

    # The text was written above, from IR: names of loops are made identifiers, the rest is numbers.
    code = f"def run(touch):\n{textwrap.indent(program.source or 'pass', '    ')}"
    names: dict[str, Any] = {}
    exec(compile(code, f"<accesses of {program.name}>", "exec"), names)
    complete = True
    try:
        names["run"](touch)
    except _Enough:
        complete = False
    return Trace(
        program,
        np.frombuffer(numbers, "int64") if numbers else np.zeros(0, "int64"),
        np.frombuffer(elements, "int64") if elements else np.zeros(0, "int64"),
        np.frombuffer(writes, "int8") if writes else np.zeros(0, "int8"),
        complete,
    )
