"""The loop nest of a function, read from its IR: the same view of both engines.

nest = loop_nest(schedule.mod["main"])
print(format_nest(nest))

for i_0 in parallel(4):
    for j_0 in serial(4):
        for k in serial(128):
            for i_1 in serial(32):
                for j_1 in vectorized(32):
                    C_update: C <- A, B, C
"""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

# The order of ForKind in both engines' IR.
LOOP_KINDS = ("serial", "parallel", "vectorized", "unrolled", "thread")

# A constant with its type, as current TVM prints it.
_TYPED = re.compile(r"\bT\.(?:u?int|b?float|bool)\d*\((True|False|-?\d[\d.]*(?:e[+-]?\d+)?)\)")
# Expressions that read a tensor, and the attribute that holds it: classic, current, classic te.
_LOADS = {"BufferLoad": "buffer", "TensorLoad": "source", "ProducerLoad": "producer"}


@dataclass
class Loop:
    """One loop: its variable, how often it runs, and how (one of LOOP_KINDS)."""

    name: str
    extent: int | str  # text where the extent is not a constant
    kind: str
    thread: str = ""  # the GPU thread axis of a "thread" loop, `threadIdx.x` say
    children: "list[Node]" = field(default_factory=list)


@dataclass
class Statement:
    """A store: the name of its block (or tensor), the buffer it writes, those it reads.

    `guards` are the conditions that it is done under: bounds that a split could not prove away.
    """

    name: str
    writes: str
    reads: tuple[str, ...]
    guards: tuple[str, ...] = ()


Node = Loop | Statement

_FOLLOWED: ContextVar[list[Any] | None] = ContextVar("_FOLLOWED", default=None)


@contextmanager
def functions_read() -> Iterator[list[Any]]:
    """A list to which `loop_nest` adds each function that it is given in this context."""
    functions: list[Any] = []
    token = _FOLLOWED.set(functions)
    try:
        yield functions
    finally:
        _FOLLOWED.reset(token)


def loop_nest(function: Any) -> list[Node]:
    """The loops and statements of a PrimFunc, or of a classic `te` schedule's statement.

    `function` is a PrimFunc of either engine before lowering, or what `classic_statement`
    returns.
    """
    if (followed := _FOLLOWED.get()) is not None:
        followed.append(function)
    nodes: list[Node] = []
    _walk(
        getattr(function, "body", function) if _kind_of(function) == "PrimFunc" else function, nodes
    )
    return nodes


def classic_statement(schedule: Any) -> Any:
    """The loops of a classic `te` schedule with their annotations still on them.

    `tvm.lower` would go further and turn vectorized loops into vector expressions.
    """
    from tvm import te

    schedule = schedule.normalize()
    return te.schedule.ScheduleOps(schedule, te.schedule.InferBound(schedule))


def without_types(expression: Any) -> str:
    """An expression as TVM prints it, its constants without their types: n // 4, not T.int64(4)."""
    return _TYPED.sub(r"\1", str(expression))


def _kind_of(node: Any) -> str:
    return type(node).__name__


def _constant(expression: Any) -> int | str:
    value = getattr(expression, "value", None)
    return int(value) if value is not None else without_types(expression)


def _walk(node: Any, out: list[Node], block: str = "", guards: tuple[str, ...] = ()) -> None:
    kind = _kind_of(node)
    if kind == "For":
        binding = getattr(node, "thread_binding", None)
        loop = Loop(
            name=str(getattr(node.loop_var, "name", node.loop_var)),
            extent=_constant(node.extent),
            kind=LOOP_KINDS[int(node.kind)],
            thread=str(binding.thread_tag) if binding is not None else "",
        )
        _walk(node.body, loop.children, block, guards)
        out.append(loop)
    elif kind in ("BlockRealize", "SBlockRealize"):
        always = getattr(node.predicate, "value", None) == 1
        _walk(
            node.block, out, block, guards if always else (*guards, without_types(node.predicate))
        )
    elif kind in ("Block", "SBlock"):
        inner: list[Node] = []
        _walk(node.body, inner, str(node.name_hint), guards)
        out.extend(inner)
    elif kind in ("BufferStore", "ProducerStore"):
        target = node.buffer if kind == "BufferStore" else node.producer.op
        reads = _reads(node.value)
        out.append(Statement(block or str(target.name), str(target.name), reads, guards))
    elif kind == "SeqStmt":
        for each in node.seq if hasattr(node, "seq") else node:
            _walk(each, out, block, guards)
    elif kind == "IfThenElse":
        guards = (*guards, without_types(node.condition))
        _walk(node.then_case, out, block, guards)
        if node.else_case is not None:
            _walk(node.else_case, out, block, guards)
    elif kind == "AttrStmt" and str(node.attr_key) == "thread_extent":
        axis = node.node
        loop = Loop(str(axis.var.name), _constant(node.value), "thread", str(axis.thread_tag))
        _walk(node.body, loop.children, block, guards)
        out.append(loop)
    elif hasattr(node, "body"):
        _walk(node.body, out, block, guards)


def _reads(expression: Any) -> tuple[str, ...]:
    """Names of the buffers an expression loads from."""
    found: list[str] = []
    pending = [expression]
    while pending:
        node = pending.pop()
        kind = _kind_of(node)
        if kind in _LOADS:
            source = getattr(node, _LOADS[kind])
            found.append(str(source.op.name if kind == "ProducerLoad" else source.name))
            pending.extend(node.indices)
            continue
        for child in ("a", "b", "value", "condition", "true_value", "false_value"):
            if hasattr(node, child) and not isinstance(getattr(node, child), int | float | str):
                pending.append(getattr(node, child))
        pending.extend(getattr(node, "args", ()))
        pending.extend(node.source if kind == "Reduce" else ())
    return _unique(sorted(found))


def _unique(names: list[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(names))


def format_nest(nest: list[Node], indent: str = "") -> str:
    """The nest as indented text, one line a loop or statement."""
    lines = []
    for node in nest:
        if isinstance(node, Loop):
            how = (
                f"{node.kind}({node.extent})"
                if not node.thread
                else f"{node.thread}({node.extent})"
            )
            lines.append(f"{indent}for {node.name} in {how}:")
            if node.children:
                lines.append(format_nest(node.children, indent + "    "))
        else:
            lines.append(
                f"{indent}{node.name}: {node.writes} <- {', '.join(node.reads) or 'constant'}"
            )
    return "\n".join(lines)


def paths(
    nest: list[Node], above: tuple[Loop, ...] = ()
) -> Iterator[tuple[tuple[Loop, ...], Statement]]:
    """Every statement with the loops around it, outermost first."""
    for node in nest:
        if isinstance(node, Loop):
            yield from paths(node.children, (*above, node))
        else:
            yield above, node


def print_nest(title: str, nest: list[Node]) -> None:
    """Print a nest under a title, in colour where the terminal has it."""
    from rich.console import Console
    from rich.panel import Panel
    from rich.syntax import Syntax

    code = Syntax(format_nest(nest), "python", background_color="default")
    Console().print(Panel(code, title=title, title_align="left"))
