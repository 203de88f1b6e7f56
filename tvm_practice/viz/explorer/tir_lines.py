"""The lines of a function as TVMScript, and the function with those lines as its locations.

TVM's LLVM code generator writes a statement's `Span` into LLVM's debug information, from where the
line can be read off each instruction. Two things keep loops from it, and both are mended here: the
pass LowerOpaqueBlock makes new loops without spans, so that a loop's line travels as an
annotation; and the code that counts a loop up takes the location of the last statement in it,
unless its body ends with a statement of the loop's line. That binds a constant, which is no code.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

# The printer's two lines of imports are no part of the function.
_HEAD = re.compile(r"\A(#.*\n)*\n*")
_ANNOTATION = "explorer_line"
# What a line begins with, by the kind of statement that it prints.
_PRINTED = {
    "For": re.compile(r" *for "),
    "SBlock": re.compile(r" *with T\.sblock\("),
    "BufferStore": re.compile(r" *\w+\[.*\] = "),
    "IfThenElse": re.compile(r" *if "),
}


@dataclass(frozen=True)
class Lines:
    """A function's text and what its lines are.

    Attributes:
        text: one entry a line.
        kinds: by line, from 1: "For", "SBlock", "BufferStore" or "IfThenElse"; other lines
            (axes, regions, buffers) have none.
        loops: by line, the loop that the line opens.
    """

    text: tuple[str, ...]
    kinds: dict[int, str]
    loops: dict[int, Any]

    def inside(self, line: int) -> range:
        """The lines of the body that a line opens."""
        depth = indent(self.text[line - 1])
        end = line + 1
        while end <= len(self.text) and indent(self.text[end - 1]) > depth:
            end += 1
        return range(line + 1, end)

    def around(self, line: int) -> Iterator[int]:
        """The lines that a line is in the body of, innermost first."""
        depth = indent(self.text[line - 1])
        for above in range(line - 1, 0, -1):
            if indent(self.text[above - 1]) < depth:
                depth = indent(self.text[above - 1])
                yield above


def indent(text: str) -> int:
    """How many blanks a line begins with."""
    return len(text) - len(text.lstrip(" "))


def script(function: Any) -> tuple[str, ...]:
    """The lines of a PrimFunc in TVMScript, each loop on a line of its own."""
    text = _HEAD.sub("", str(function.script(syntax_sugar=False)))
    return tuple(text.rstrip().splitlines())


def located(function: Any) -> tuple[Lines, Any]:
    """The lines of a function of the current engine, and it with spans and annotations.

    Args:
        function: a PrimFunc, scheduled, before any lowering.

    Raises:
        ValueError: the printed lines and the statements do not correspond.
    """
    text = script(function)
    writer = _Locator(text)
    changed = function.with_body(writer.statement(function.body), None)
    writer.require_all_taken()
    return Lines(text, writer.kinds, writer.loops), changed


class _Locator:
    """Copies statements in the order in which they are printed, each with its line."""

    def __init__(self, text: tuple[str, ...]):
        import tvm

        self.kinds: dict[int, str] = {}
        self.loops: dict[int, Any] = {}
        self._source = tvm.ir.SourceName("TIR")
        self._lines = {
            kind: [at for at, line in enumerate(text, start=1) if printed.match(line)][::-1]
            for kind, printed in _PRINTED.items()
        }

    def require_all_taken(self) -> None:
        if any(self._lines.values()):
            raise ValueError("the printed lines of this function are not its statements")

    def _span(self, kind: str) -> Any:
        import tvm

        if not self._lines[kind]:
            raise ValueError(f"a {kind} of this function has no line of its own")
        line = self._lines[kind].pop()
        self.kinds[line] = kind
        return tvm.ir.Span(self._source, line, line, 1, 1)

    def statement(self, node: Any) -> Any:
        from tvm import s_tir, tirx

        kind = type(node).__name__
        if kind == "For":
            span = self._span(kind)
            self.loops[span.line] = node
            return _with_body(
                node, self.statement(node.body), span, {**node.annotations, _ANNOTATION: span.line}
            )
        if kind == "SBlockRealize":
            return s_tir.SBlockRealize(
                node.iter_values, node.predicate, self.statement(node.block), node.span
            )
        if kind == "SBlock":
            span = self._span(kind)
            init = self.statement(node.init) if node.init is not None else None
            return s_tir.SBlock(
                node.iter_vars, node.reads, node.writes, node.name_hint, self.statement(node.body),
                init, node.alloc_buffers, node.match_buffers, node.annotations, span,
            )  # fmt: skip
        if kind == "BufferStore":
            return tirx.BufferStore(node.buffer, node.value, node.indices, self._span(kind))
        if kind == "SeqStmt":
            return tirx.SeqStmt([self.statement(each) for each in node.seq])
        if kind == "IfThenElse":
            span = self._span(kind)
            then = self.statement(node.then_case)
            otherwise = self.statement(node.else_case) if node.else_case is not None else None
            return tirx.IfThenElse(node.condition, then, otherwise, span)
        return node


def _with_body(loop: Any, body: Any, span: Any, annotations: Any) -> Any:
    from tvm import tirx

    return tirx.For(
        loop.loop_var, loop.min, loop.extent, loop.kind, body, loop.thread_binding, annotations,
        loop.step, span,
    )  # fmt: skip


def restored(module: Any) -> Any:
    """A lowered module whose loops have the spans that their annotations tell of."""
    import tvm

    functions = {
        variable: function.with_body(_restored(function.body), None)
        if isinstance(function, tvm.tirx.PrimFunc)
        else function
        for variable, function in module.functions.items()
    }
    return tvm.IRModule(functions, attrs=module.attrs)


def _restored(node: Any) -> Any:
    import tvm
    from tvm import tirx

    kind = type(node).__name__
    if kind == "For":
        body = _restored(node.body)
        annotations = dict(node.annotations)
        line = annotations.pop(_ANNOTATION, None)
        if line is None:
            return _with_body(node, body, node.span, annotations)
        span = tvm.ir.Span(tvm.ir.SourceName("TIR"), int(line), int(line), 1, 1)
        mark = tirx.Bind(tirx.Var("line", "int32"), tirx.const(int(line), "int32"), span)
        ended = tirx.SeqStmt([body, mark])
        return _with_body(node, ended, span, annotations)
    if kind == "SeqStmt":
        return tirx.SeqStmt([_restored(each) for each in node.seq])
    if kind == "IfThenElse":
        otherwise = _restored(node.else_case) if node.else_case is not None else None
        return tirx.IfThenElse(node.condition, _restored(node.then_case), otherwise, node.span)
    if kind == "AttrStmt":
        return tirx.AttrStmt(node.node, node.attr_key, node.value, _restored(node.body), node.span)
    if kind == "While":
        return tirx.While(node.condition, _restored(node.body), node.span)
    return node
