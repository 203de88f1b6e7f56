"""LLVM IR and assembly of a function, each line with the line that it was made from.

From TIR to LLVM IR, the link is the debug location that TVM wrote for each instruction. From LLVM
IR to assembly, each instruction of the optimized IR is given its own line as its location, and the
same IR is translated once more: LLVM's `.loc` directives then name lines of the IR. Locations do
not change the instructions that LLVM chooses.
"""

import re
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tvm_practice.viz.explorer.tir_lines import restored

_LOCATION = re.compile(r"^(!\d+) = !DILocation\(line: (\d+)", re.MULTILINE)
_DEBUG = re.compile(r", !dbg (!\d+)")
_DEFINED = re.compile(r'define .*?@("[^"]+"|[\w.$]+)\(')
_FILE = "!900001"
_FIRST_NUMBER = 900_010  # of metadata that TVM has not used


@dataclass(frozen=True)
class CodeLine:
    """A line of LLVM IR or of assembly.

    Attributes:
        text: without its debug location.
        origin: the line before it in the chain, from 1: of TIR for LLVM IR, of the shown LLVM IR
            for assembly; 0 where none is known.
    """

    text: str
    origin: int


@dataclass(frozen=True)
class NativeCode:
    """What a function became.

    Attributes:
        llvm: optimized IR of the functions that hold a statement of TIR.
        assembly: of the same functions.
        left_out: the other functions: checks of arguments, conversions of types.
    """

    llvm: tuple[CodeLine, ...]
    assembly: tuple[CodeLine, ...]
    left_out: tuple[str, ...]


def native_code(function: Any, target: Any) -> NativeCode:
    """Compile a function for a processor and link its lines.

    Args:
        function: as `tir_lines.located` returns it.
        target: a target of LLVM's.
    """
    ir = compiled(function, target).inspect_source("ll")
    functions = _functions(ir)
    locations = dict(_LOCATION.findall(ir))
    kept: dict[str, list[CodeLine]] = {}
    for name, lines in functions.items():
        made = [_code_line(line, locations) for line in lines]
        if any(each.origin for each in made):
            kept[name] = made
    shown: list[CodeLine] = []
    places: dict[tuple[str, int], int] = {}
    for name, made in kept.items():
        for at, each in enumerate(made):
            if not each.text.lstrip().startswith("#dbg_"):
                shown.append(each)
                places[name, at] = len(shown)
    assembly = _assembly(ir, {name: functions[name] for name in kept}, places)
    return NativeCode(
        tuple(shown), tuple(assembly), tuple(each for each in functions if each not in kept)
    )


def compiled(function: Any, target: Any) -> Any:
    """The runtime module of a located function; `tvm.compile` with loops' locations put back."""
    import tvm
    from tvm.tirx.build import codegen_build

    target = tvm.target.Target(target)
    module = tvm.IRModule({"main": function.with_attr("global_symbol", "main")})
    bound = tvm.tirx.transform.BindTarget(tvm.target.Target(target, host=target))(module)
    pipeline, finalize_host, _ = tvm.tirx.get_default_tir_pipeline(target)
    lowered = restored(pipeline(bound))
    return codegen_build(finalize_host()(lowered), target)


def _functions(ir: str) -> dict[str, list[str]]:
    """The lines of each function that is defined, by its name."""
    found: dict[str, list[str]] = {}
    current: list[str] | None = None
    for line in ir.splitlines():
        if opened := _DEFINED.match(line):
            current = found.setdefault(opened[1].strip('"'), [])
        if current is not None:
            current.append(line)
        if line == "}":
            current = None
    return found


def _code_line(line: str, locations: dict[str, str]) -> CodeLine:
    known = _DEBUG.search(line)
    origin = int(locations.get(known[1], 0)) if known and line.startswith(" ") else 0
    return CodeLine(_shorter(line), origin)


def _shorter(line: str) -> str:
    """An instruction without its metadata, which are numbers; a function without attributes."""
    return re.sub(r"(, )?![\w.]+ !\d+|, !srcloc.*", "", line).rstrip()


def _assembly(
    ir: str, functions: dict[str, list[str]], places: dict[tuple[str, int], int]
) -> list[CodeLine]:
    import tvm

    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "located.ll"
        file.write_text(_relocated(ir, places), encoding="utf-8")
        text = tvm.runtime.load_module(str(file)).inspect_source("asm")
    return _instructions(text, set(functions))


def _relocated(ir: str, places: dict[tuple[str, int], int]) -> str:
    """The IR with the shown line's number as the location of each instruction of it."""
    number = _FIRST_NUMBER
    out: list[str] = []
    added = [
        '!900000 = distinct !DICompileUnit(language: DW_LANG_C, file: !900001, producer: "TVM", '
        "isOptimized: true, runtimeVersion: 0, emissionKind: LineTablesOnly)",
        f'{_FILE} = !DIFile(filename: "shown.ll", directory: ".")',
        "!900002 = !DISubroutineType(types: !{null})",
    ]
    name, at, scope = "", 0, 0
    for line in ir.splitlines():
        if opened := _DEFINED.match(line):
            name, at, scope = opened[1].strip('"'), 0, number
            number += 1
            added.append(
                f'!{scope} = distinct !DISubprogram(name: "f{scope}", scope: {_FILE}, '
                f"file: {_FILE}, type: !900002, spFlags: DISPFlagDefinition, unit: !900000)"
            )
            bare = re.sub(r" !dbg !\d+", "", line)
            out.append(re.sub(r" \{$", f" !dbg !{scope} {{", bare))
        elif line.startswith("!llvm.dbg.cu"):
            out.append("!llvm.dbg.cu = !{!900000}")
        elif not name or not line.startswith(" "):
            name = "" if line == "}" else name
            out.append(line)
        elif not line.lstrip().startswith("#dbg_"):
            bare = _DEBUG.sub("", line)
            if _ends_instruction(bare):
                added.append(
                    f"!{number} = !DILocation(line: {places.get((name, at), 0)}, scope: !{scope})"
                )
                bare += f", !dbg !{number}"
                number += 1
            out.append(bare)
        at += 1
    return "\n".join([*out, *added]) + "\n"


def _ends_instruction(line: str) -> bool:
    """Whether an instruction ends here: one that lists its cases does on a line of its own."""
    return not line.endswith("[") and not line.startswith("    ")


_LOC = re.compile(r"\s*\.loc\s+\d+\s+(\d+)")
_LABEL = re.compile(r"([\w.$\"]+):")
_SKIPPED_LABEL = re.compile(r"\.?L(tmp|func_begin|func_end|Ltmp|cfi)")


def _instructions(text: str, functions: set[str]) -> list[CodeLine]:
    """Instructions and labels of some functions, with the line of LLVM's IR that each came from."""
    found: list[CodeLine] = []
    inside, line_of_ir = False, 0
    for line in text.splitlines():
        label = _LABEL.match(line)
        if located := _LOC.match(line):
            line_of_ir = int(located[1])
        elif label and not _SKIPPED_LABEL.match(label[1]):
            name = re.sub(r'^"?(\.?L)?', "", label[1]).rstrip('"')
            if name in functions or not label[1].startswith(".L"):
                inside, line_of_ir = name in functions, 0
            if inside:
                found.append(CodeLine(line.expandtabs(8), 0))
        elif line.strip().startswith((".Lfunc_end", ".cfi_endproc")):
            inside = False
        elif inside and line.startswith("\t") and not line.strip().startswith((".", "#", "//")):
            found.append(CodeLine(line.expandtabs(8).rstrip(), line_of_ir))
    return found
