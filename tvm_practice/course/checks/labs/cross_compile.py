"""Lab 3's exercises and how they are graded: object files, features, what programs compute."""

import copy
import json
import os
import platform
import re
import subprocess
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest import mock

import numpy as np

from tvm_practice.course.catalog import Phase
from tvm_practice.course.expect import (
    draw_distinct,
    draw_normal,
    expect,
    expect_close,
    fail,
    fresh_rng,
)
from tvm_practice.engines import CURRENT, host_target
from tvm_practice.tvm_export.errors import Missing
from tvm_practice.wording import number_of

PHASE = Phase(
    number=3,
    module="labs.cross_compile",
    title="one function for other machines",
    lanes=(CURRENT,),
    builds_on=(
        "te_basics.matmul",
        "manual_schedule.register_block",
        "relay_import.verify",
    ),
    question=(
        "The same scheduled function is compiled for another processor. Which decisions does LLVM "
        "make again, and which has the schedule already made?"
    ),
)

Function = Callable[..., Any]

# What a target of each machine must say: architecture, processor, features it has and has not.
_MACHINES: dict[str, tuple[str, str | None, tuple[str, ...], tuple[str, ...]]] = {
    "x86-64-v2": ("x86_64", "x86-64-v2", ("sse4.2",), ("avx",)),
    "x86-64-v3": ("x86_64", "x86-64-v3", ("avx2", "fma"), ("avx512f",)),
    "x86-64-v4": ("x86_64", "x86-64-v4", ("avx512f", "avx512vl"), ("prefer-256-bit",)),
    "aarch64": ("aarch64", "cortex-a72", ("neon",), ("sve",)),
    "wasm32": ("wasm32", None, ("simd128",), ("relaxed-simd",)),
}

# Object files begin with the machine's number: e_machine of ELF.
_ELF_MACHINES = {62: "x86_64", 183: "aarch64", 243: "riscv", 40: "arm"}
_RELOCATABLE = 1


def _has(target: Any, feature: str) -> bool:
    from tvm.target import codegen

    return bool(codegen.llvm_cpu_has_features(feature, target))


def _architecture_of(file: Path) -> str:
    """Which machine an object file is for, or what the file is instead."""
    content = file.read_bytes() if file.exists() else b""
    if content[:4] == b"\0asm":
        return "wasm32"
    if content[:4] == b"\x7fELF":
        kind, machine = (int.from_bytes(content[at : at + 2], "little") for at in (16, 18))
        name = _ELF_MACHINES.get(machine, f"ELF machine {machine}")
        return name if kind == _RELOCATABLE else f"{name}, linked"
    return "no object file" if content else "no file"


@PHASE.exercise(
    "target_for",
    engine=CURRENT,
    title="name five machines to TVM",
    hints=(
        "A dictionary of dictionaries, and a ValueError for any other machine. The docstring's "
        "table has all the words; the module's docstring names the key for each.",
        "mattr is a list of words that begin with + or -: ['-prefer-256-bit'] for x86-64-v4, "
        "['+simd128'] for wasm32. Leave out mcpu and mattr where the table has none.",
        "aarch64 is {'kind': 'llvm', 'mtriple': 'aarch64-linux-gnu', 'mcpu': 'cortex-a72'}; the "
        "others are like it.",
    ),
    looks_like="""
        x86-64-v2  x86_64-linux-gnu     mcpu x86-64-v2   mattr -
        x86-64-v3  x86_64-linux-gnu     mcpu x86-64-v3   mattr -
        x86-64-v4  x86_64-linux-gnu     mcpu x86-64-v4   mattr -prefer-256-bit
        aarch64    aarch64-linux-gnu    mcpu cortex-a72  mattr -
        wasm32     wasm32-unknown-wasi  mcpu -           mattr +simd128
    """,
    demonstrate=lambda target_for: "\n".join(
        f"{machine:<10} {target['mtriple']:<20} mcpu {target.get('mcpu', '-'):<11} "
        f"mattr {' '.join(target.get('mattr', ())) or '-'}"
        for machine, target in ((each, target_for(each)) for each in _MACHINES)
    ),
)
def check_target_for(target_for: Function) -> None:
    import tvm

    for machine, (architecture, mcpu, has, has_not) in _MACHINES.items():
        described = target_for(machine)
        expect(
            isinstance(described, dict) and described.get("kind") == "llvm",
            expected=f"{machine}: a dictionary whose kind is llvm",
            seen=repr(described),
            look="TVM 0.27 takes dictionaries; strings such as 'llvm -mcpu=…' are classic TVM's",
        )
        triple = described.get("mtriple", "")
        expect(
            triple.partition("-")[0] == architecture,
            expected=f"{machine}: mtriple begins with {architecture}",
            seen=f"mtriple {triple!r}" if triple else "no mtriple, which means this machine",
            look="the key mtriple; the processor's name alone does not change the architecture",
        )
        expect(
            described.get("mcpu") == mcpu,
            expected=f"{machine}: mcpu {mcpu}" if mcpu else f"{machine}: no mcpu",
            seen=f"mcpu {described.get('mcpu')}",
            look="the table in the docstring; LLVM silently takes a wrong name for the "
            "architecture's oldest processor",
        )
        wanted_triple, wanted_mattr = _TABLE[machine]
        expect(
            triple == wanted_triple,
            expected=f"{machine}: mtriple {wanted_triple}",
            seen=f"mtriple {triple}",
            look="the table in the docstring",
        )
        resolved = tvm.target.Target(described)
        for feature, wanted in [(each, True) for each in has] + [(each, False) for each in has_not]:
            expect(
                _has(resolved, feature) == wanted,
                expected=f"{machine}: {'with' if wanted else 'without'} {feature}",
                seen=f"mattr {described.get('mattr', 'is left out')}",
                look="mattr: a list of words, + for a feature more and - for one less",
            )
        keys = {
            "kind",
            "mtriple",
            *(["mcpu"] if mcpu else []),
            *(["mattr"] if wanted_mattr else []),
        }
        expect(
            set(described) == keys and list(described.get("mattr", ())) == wanted_mattr,
            expected=f"{machine}: the keys {', '.join(sorted(keys))}"
            + (f", mattr {wanted_mattr}" if wanted_mattr else ""),
            seen=", ".join(f"{key} {value}" for key, value in sorted(described.items())),
            look="the last column of the table, as a list: + for with, - for without",
        )
        _expect_own_target(target_for, machine, described)
    _expect_others_refused(target_for)


def _expect_own_target(target_for: Function, machine: str, described: dict[str, Any]) -> None:
    """What the caller does to the dictionary does not change what the next one is given."""
    first = copy.deepcopy(described)
    if isinstance(described.get("mattr"), list):
        described["mattr"].append("+other")
    described["mcpu"] = "other"
    again = target_for(machine)
    expect(
        again == first,
        expected=f"{machine}: a dictionary of its own, and a list, for each call",
        seen=f"{first} became {again} after the caller had changed it",
        look="where the dictionaries are made: at each call, or copied with their lists",
    )


def _expect_others_refused(target_for: Function) -> None:
    """A machine that is not in the table is refused by name, however near it is to one."""
    near = [
        f"{machine[:at]}{letter}{machine[at + skip :]}"
        for machine in _MACHINES
        for at, letter, skip in ((len(machine) - 1, "1", 1), (len(machine), "5", 0), (0, "i", 0))
    ]
    # As other programs call the same machines, or ones like them.
    elsewhere = (
        *("arm64", "armv8", "cortex-a72", "amd64", "x86_64", "x86_64-v3", "x86-64-v1", "x64"),
        *("wasm", "wasm64", "wasi", "x86_64-linux-gnu", "aarch64-linux-gnu", "native"),
    )
    for other in ("pdp-11", "x86-64", "X86-64-V3", "aarch64 ", "", *near, *elsewhere):
        try:
            got = target_for(other)
        except KeyError as error:
            raise fail(
                "ValueError for a machine that is not in the table",
                f"KeyError: {error}",
                "the exception: a table's KeyError is not a ValueError",
            ) from error
        except ValueError as error:
            expect(
                other in str(error),
                expected="a ValueError that names the machine",
                seen=str(error),
                look="the text of the error",
            )
        else:
            expect(
                False,
                expected="ValueError for a machine that is not in the table",
                seen=f"{got!r} for {other!r}",
                look="the case of a name that is not in the table",
            )


_TABLE: dict[str, tuple[str, list[str]]] = {
    "x86-64-v2": ("x86_64-linux-gnu", []),
    "x86-64-v3": ("x86_64-linux-gnu", []),
    "x86-64-v4": ("x86_64-linux-gnu", ["-prefer-256-bit"]),
    "aarch64": ("aarch64-linux-gnu", []),
    "wasm32": ("wasm32-unknown-wasi", ["+simd128"]),
}


def _with(triple: str, mcpu: str = "", *mattr: str) -> dict[str, Any]:
    described: dict[str, Any] = {"kind": "llvm", "mtriple": triple}
    return described | ({"mcpu": mcpu} if mcpu else {}) | ({"mattr": list(mattr)} if mattr else {})


_X86, _ARM, _WASM = "x86_64-linux-gnu", "aarch64-linux-gnu", "wasm32-unknown-wasi"
_DESCRIBED: tuple[tuple[dict[str, Any], str, int, bool, str], ...] = (
    (_with(_X86, "skylake-avx512"), "x86_64", 512, True, "avx512f, of mcpu"),
    (_with(_X86, "haswell"), "x86_64", 256, True, "avx and fma, of mcpu"),
    (_with(_X86, "sandybridge"), "x86_64", 256, False, "avx, which came before avx2, and fma"),
    (_with(_X86, "bdver1"), "x86_64", 256, False, "fma: fma4 is another feature"),
    (_with(_X86, "haswell", "-fma"), "x86_64", 256, False, "mattr, which takes fma away"),
    (_with(_X86, "haswell", "+avx512f"), "x86_64", 512, True, "avx512f, without its extensions"),
    (
        _with(_X86, "skylake-avx512", "+prefer-256-bit"),
        *("x86_64", 512, True, "the table: 512 with avx512f, whatever is preferred"),
    ),
    # Words of mattr count in their order; one that is there twice, by the last of its signs.
    (_with(_X86, "haswell", "-fma", "+fma"), "x86_64", 256, True, "the order of mattr"),
    (_with(_X86, "nehalem", "+fma", "-fma"), "x86_64", 256, False, "the order of mattr"),
    (_with(_X86, "haswell", "-fma", "+avx512f"), "x86_64", 512, True, "the order of mattr"),
    (_with(_X86, "haswell", "+avx512f", "-fma"), "x86_64", 256, False, "the order of mattr"),
    (_with(_X86, "nehalem"), "x86_64", 128, False, "avx"),
    (_with(_X86, "", "+avx2", "+fma"), "x86_64", 256, True, "mattr, which adds avx2 and fma"),
    (_with(_X86), "x86_64", 128, False, "no mcpu: the oldest x86_64"),
    (_with(_ARM, "cortex-a53"), "aarch64", 128, True, "the architecture"),
    (_with(_ARM), "aarch64", 128, True, "the architecture"),
    (_with(_ARM, "neoverse-v1"), "aarch64", 128, True, "the table: 128, also with SVE"),
    (_with("aarch64-apple-darwin"), "aarch64", 128, True, "the first word of the triple"),
    (_with("x86_64-pc-windows-msvc", "haswell"), "x86_64", 256, True, "the triple's first word"),
    (_with("x86_64-unknown-linux-musl"), "x86_64", 128, False, "the first word of the triple"),
    (_with("wasm32-unknown-unknown"), "wasm32", 32, False, "the first word of the triple"),
    (_with(_WASM), "wasm32", 32, False, "simd128"),
    (_with(_WASM, "", "+simd128"), "wasm32", 128, False, "simd128 and relaxed-simd"),
    (_with(_WASM, "", "+simd128", "+relaxed-simd"), "wasm32", 128, True, "relaxed-simd"),
    (_with(_WASM, "", "-simd128", "+simd128"), "wasm32", 128, False, "the order of mattr"),
)


@PHASE.exercise(
    "describe_target",
    engine=CURRENT,
    title="vector width and FMA of a target",
    hints=(
        "Do not parse names: haswell with -fma in mattr has no FMA. LLVM combines mtriple, mcpu "
        "and mattr.",
        "tvm.target.codegen.llvm_cpu_has_features('avx512f', tvm.target.Target(target)) is True "
        "or False. Ask for the widest first.",
        "The architecture is target['mtriple'].partition('-')[0], or that of "
        "tvm.target.codegen.llvm_get_system_triple(); then one branch for x86_64, one for wasm32, "
        "and one for aarch64, which needs no question.",
    ),
    looks_like="""
        haswell     {"architecture": "x86_64", "vector_bits": 256, "fma": true}
        cortex-a53  {"architecture": "aarch64", "vector_bits": 128, "fma": true}
        wasm32      {"architecture": "wasm32", "vector_bits": 32, "fma": false}
    """,
    demonstrate=lambda describe_target: "\n".join(
        f"{target.get('mcpu', 'wasm32'):<11} {json.dumps(describe_target(target))}"
        for target in (_with(_X86, "haswell"), _with(_ARM, "cortex-a53"), _with(_WASM))
    ),
)
def check_describe_target(describe_target: Function) -> None:
    import tvm

    # This machine's own: without mtriple it is of this machine's architecture.
    here = str(tvm.target.codegen.llvm_get_system_triple())
    own = {"kind": "llvm"}
    cases = [*_DESCRIBED, *_drawn_targets(60)]
    cases += [  # of this machine's architecture, by mcpu and mattr alone
        ({key: value for key, value in target.items() if key != "mtriple"}, name, bits, fma, look)
        for target, name, bits, fma, look in cases
        if name == here.partition("-")[0]
    ]
    if here.startswith("x86_64"):
        cases.append((own, "x86_64", 128, False, "no mtriple: this machine's"))
    if here.startswith("aarch64"):
        cases.append((own, "aarch64", 128, True, "no mtriple: this machine's"))
    for at, (target, architecture, bits, fma, look) in enumerate(cases):
        said = (
            " ".join(f"{key} {value}" for key, value in target.items() if key != "kind")
            or "no mtriple"
        )
        given = copy.deepcopy(target)
        # TVM's current target: none, or another one.
        other = [None, _with(_X86, "x86-64-v2"), _with(_X86, "x86-64-v4")][at % 3]
        with tvm.target.Target(other) if other else nullcontext():
            got = describe_target(given)
        _expect_target_kept(given, target)
        wanted = {"architecture": architecture, "vector_bits": bits, "fma": fma}
        if isinstance(got, dict) and got == wanted:
            expect(
                isinstance(got["fma"], bool | np.bool_),
                expected=f"fma as {fma}, of {said}",
                seen=repr(got["fma"]),
                look="whether there is one: True or False",
            )
        expect(
            got == wanted,
            expected=f"{wanted} of {said}",
            seen=repr(got),
            look=f"{look}; tvm.target.codegen.llvm_cpu_has_features takes mtriple, mcpu and mattr "
            "into account",
        )
    with _on_aarch64():
        elsewhere = describe_target({"kind": "llvm"})
    wanted = {"architecture": "aarch64", "vector_bits": 128, "fma": True}
    expect(
        elsewhere == wanted,
        expected=f"{wanted} without mtriple, on a machine that says it is an aarch64",
        seen=repr(elsewhere),
        look="tvm.target.codegen.llvm_get_system_triple(), for a target without mtriple",
    )


def _drawn_targets(count: int) -> Iterator[tuple[dict[str, Any], str, int, bool, str]]:
    """Processors with features added and taken away, as in `_DESCRIBED`; so many of x86_64.

    A feature may be added and taken away again.
    """
    import tvm

    rng = fresh_rng()
    for _ in range(count):
        mcpu = str(rng.choice(("x86-64-v2", "x86-64-v3", "x86-64-v4", "znver2", "icelake-server")))
        mattr = rng.choice(("avx512f", "avx2", "avx", "fma"), int(rng.integers(1, 5)))
        target = _with(_X86, mcpu, *(f"{rng.choice(('+', '-'))}{each}" for each in mattr))
        resolved = tvm.target.Target(target)
        wide = next(
            (bits for bits, each in ((512, "avx512f"), (256, "avx")) if _has(resolved, each)), 128
        )
        yield target, "x86_64", wide, _has(resolved, "fma"), "mcpu and mattr together"
    for mcpu in ("mvp", "generic", "lime1", "bleeding-edge"):
        for sign in "+-":
            target = _with(_WASM, mcpu, f"{sign}{rng.choice(('simd128', 'relaxed-simd'))}")
            for each in (target, _with(_WASM, mcpu)):
                resolved = tvm.target.Target(each)
                wide = 128 if _has(resolved, "simd128") else 32
                yield each, "wasm32", wide, _has(resolved, "relaxed-simd"), "mcpu has some as well"


@contextmanager
def _on_aarch64() -> Iterator[None]:
    """In this context, TVM and Python say that this machine is an aarch64 with Linux."""
    import tvm

    triple = "aarch64-unknown-linux-gnu"
    plain = tvm.target.Target.__init__

    def made(self: Any, target: Any, *given: Any, **named: Any) -> None:
        described = {"kind": target} if isinstance(target, str) else target
        if isinstance(described, dict) and described.get("kind") == "llvm":
            described = {"mtriple": triple, **described}
        plain(self, described, *given, **named)

    system = SimpleNamespace(system="Linux", sysname="Linux", machine="aarch64")
    with (
        mock.patch.object(tvm.target.codegen, "llvm_get_system_triple", lambda: triple),
        mock.patch.object(tvm.target.Target, "__init__", made),
        mock.patch.object(platform, "machine", lambda: system.machine),
        mock.patch.object(platform, "uname", lambda: system),
        mock.patch.object(os, "uname", lambda: system),
    ):
        yield


def _expect_target_kept(given: dict[str, Any], before: dict[str, Any]) -> None:
    expect(
        given == before,
        expected="the target that is given stays as it was",
        seen=f"{before} became {given}",
        look="pop, update and assignments to its keys: change a copy",
    )


def _scaled_sum(rows: int, columns: int, name: str = "main", factor: float = 1) -> Any:
    """A module with name(X, W, Y): Y[i] = sum over j of X[i, j] * W[j], in vectors of 8 rows.

    With `factor`, that many times as much, by the same loops.
    """
    import tvm
    from tvm import te

    X = te.placeholder((columns, rows), name="X")
    W = te.placeholder((columns,), name="W")
    j = te.reduce_axis((0, columns), name="j")
    scaled = (lambda i: X[j, i] * W[j] * np.float32(factor)) if factor != 1 else None
    Y = te.compute(
        (rows,), lambda i: te.sum(scaled(i) if scaled else X[j, i] * W[j], axis=j), name="Y"
    )
    function = te.create_prim_func([X, W, Y]).with_attr("global_symbol", name)
    schedule = tvm.s_tir.Schedule(tvm.IRModule({name: function}))
    block = schedule.get_sblock("Y", func_name=name)
    i, j = schedule.get_loops(block)
    i_outer, i_inner = schedule.split(i, [None, 8])
    schedule.reorder(i_outer, j, i_inner)
    schedule.vectorize(i_inner)
    return schedule.mod


def _with_a_buffer(size: int) -> Any:
    """A module with main(A, B, C), C = A B, which adds up in a buffer of its own."""
    import tvm
    from tvm import te

    from solutions.manual_schedule import register_block
    from solutions.te_basics import matmul

    function = te.create_prim_func(matmul(size, size, size)).with_attr("global_symbol", "main")
    schedule = tvm.s_tir.Schedule(tvm.IRModule({"main": function}))
    register_block(schedule, schedule.get_sblock("C"), 4, 8, 1)
    return schedule.mod


def _product(size: int) -> Any:
    """A module with main(A, B, C), C = A B, which nobody has scheduled."""
    import tvm
    from tvm import te

    from solutions.te_basics import matmul

    function = te.create_prim_func(matmul(size, size, size)).with_attr("global_symbol", "main")
    return tvm.IRModule({"main": function})


def _compiled(module: Any, target: dict[str, Any]) -> str:
    """The assembly of a module, as TVM compiles it."""
    import tvm

    return str(tvm.compile(module, target=tvm.target.Target(target)).mod.inspect_source("asm"))


def _expect_as_given(assembly: str, usual: str) -> None:
    """The assembly is that of the module's own loops, which is `usual`."""
    ours, theirs = (text.splitlines() for text in (assembly, usual))
    differing = [one for one, other in zip(ours, theirs, strict=False) if one != other]
    expect(
        assembly == usual,
        expected="the assembly of the module's own loops, as TVM compiles them",
        seen=f"{number_of(len(ours), 'line')} where that has {len(theirs)}; the first that "
        f"differs is {(differing or [''])[0].strip()!r}",
        look="schedules and pass contexts of your own: the module has its schedule already",
    )


def _names_in(folder: str) -> str:
    return ", ".join(sorted(each.name for each in Path(folder).iterdir())) or "none"


def _object_facts(compile_object: Function) -> str:
    """What the object file and the assembly of a foreign target are."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "f.o"
        assembly = compile_object(_scaled_sum(64, 32), _with(_ARM, "cortex-a72"), str(file))
        symbol = b"__tvm_ffi_main" in file.read_bytes()
        return (
            f"object file of {_architecture_of(file)}\n"
            f"symbol __tvm_ffi_main: {'yes' if symbol else 'no'}\n"
            f"assembly with fmla: {'yes' if 'fmla' in assembly else 'no'}"
        )


@PHASE.exercise(
    "compile_object",
    engine=CURRENT,
    title="an object file for another machine",
    hints=(
        "tvm.compile takes the module and a target, and returns an executable; its .mod is the "
        "module that LLVM made.",
        "tvm.target.Target(target) of the dictionary. .mod.write_to_file(path, format) and "
        ".mod.inspect_source(format) have the formats 'o', 'asm', 'll'.",
        "library = tvm.compile(module, target=tvm.target.Target(target)); "
        "library.mod.write_to_file(path, 'o'); return library.mod.inspect_source('asm').",
    ),
    looks_like="""
        object file of aarch64
        symbol __tvm_ffi_main: yes
        assembly with fmla: yes
    """,
    demonstrate=_object_facts,
)
def check_compile_object(compile_object: Function) -> None:
    import tvm

    rng = fresh_rng()
    # Rows that 8 divides: a guard in the vectorized loop would leave single floats.
    rows, columns = 8 * int(rng.integers(2, 12)), int(rng.integers(16, 99))
    cases = (
        (_with(_ARM, "cortex-a72"), "aarch64", r"\bfmla\b"),
        (_with(_WASM, "", "+simd128"), "wasm32", r"f32x4\.mul"),
        (_with(_X86, "x86-64-v3"), "x86_64", r"%ymm\d"),
        (_with(_X86, "x86-64-v2"), "x86_64", r"\bmulps\b"),
        (_with(_ARM, "cortex-a72"), "aarch64", r"\bfmla\b"),  # again, of another function
        (_with(_X86, "x86-64-v4", "-prefer-256-bit"), "x86_64", r"%[yz]mm\d"),
    )
    compared = draw_distinct(2, range(len(cases)))
    scoped = draw_distinct(3, range(len(cases)))  # of these calls TVM's current target is another
    with tempfile.TemporaryDirectory() as folder:
        for number, (target, architecture, instruction) in enumerate(cases):
            name = f"scaled_sum_{number}{rng.integers(100)}"
            # The path decides alone: a name without an ending, and a file to replace.
            file = (
                Path(folder) / (f"no {number}.o", str(number), f"{number}.v1.0.2.so")[number // 2]
            )
            if number == 1:
                file.write_text("an older file\n" * 100_000)
            before = {*Path(folder).iterdir(), file}
            given = copy.deepcopy(target)
            around = cases[number - 1][0] if number in scoped else None
            scope = tvm.target.Target(around) if around else nullcontext()
            with _attributes_used() as used, scope:
                assembly = compile_object(_scaled_sum(rows, columns, name), given, str(file))
            _expect_target_kept(given, target)
            words = _words(target) + (
                f" (TVM's current target: {_words(around)})" if around else ""
            )
            found = _architecture_of(file)
            expect(
                found == architecture,
                expected=f"an object file of {architecture} for {words}",
                seen=found
                if found != "no file"
                else f"no file at {file.name}, but {_names_in(folder)}",
                look="write_to_file(path, 'o') of tvm.compile's result for the target given, to "
                "the path given, even if the file exists",
            )
            others = [each.name for each in Path(folder).iterdir() if each not in before]
            expect(
                not others,
                expected="one file written, the object file",
                seen=f"beside it {', '.join(others)}",
                look="write_to_file: the assembly is returned",
            )
            expect(
                f"__tvm_ffi_{name}".encode() in file.read_bytes(),
                expected=f"the symbol __tvm_ffi_{name} in the object file",
                seen="another function's",
                look="the module given to tvm.compile, at each call",
            )
            _expect_assembly(assembly, name, instruction, words)
            wanted_attributes = _attributes(tvm.target.Target(target))
            expect(
                all(each == wanted_attributes for each in used),
                expected=f"the function compiled for {wanted_attributes}",
                seen="; ".join(dict.fromkeys(used)),
                look="tvm.target.Target(target), all of it and no more: "
                "mcpu and mattr select the instructions",
            )
            if number in compared:
                _expect_as_given(assembly, _compiled(_scaled_sum(rows, columns, name), target))
        # Loops that nobody has scheduled, and the same loops with another number in them.
        target = draw_distinct(1, (_with(_X86, "x86-64-v3"), _with(_ARM, "cortex-a72")))[0]
        for module in (
            _product(columns + 3),
            *(_scaled_sum(rows, columns, "main", factor) for factor in (2.5, 0.75)),
        ):
            assembly = compile_object(module, dict(target), str(Path(folder) / "loops.o"))
            _expect_as_given(assembly, _compiled(module, target))
        # One function for two targets that differ in nothing but the last field.
        for attributes in ((), ("-fma",), ("-avx2",), ("-avx2", "-fma", "+sse4a")):
            target = _with(_X86, "x86-64-v3", *attributes)
            assembly = compile_object(module, dict(target), str(Path(folder) / "less.o"))
            _expect_as_given(assembly, _compiled(module, target))
        _expect_every_function(compile_object, Path(folder) / "many.o", rows, columns)


def _expect_every_function(compile_object: Function, file: Path, rows: int, columns: int) -> None:
    """A module may have many functions, main among them; the assembly is as long as they are."""
    import tvm

    rng = fresh_rng()
    names = [f"of_many_{at}" for at in range(int(rng.integers(5, 9)))]
    names[int(rng.integers(len(names)))] = "main"
    one = _scaled_sum(rows, columns)["main"]
    many = {name: one.with_attr("global_symbol", name) for name in names}
    try:
        assembly = compile_object(tvm.IRModule(many), _with(_X86, "haswell"), str(file))
    except Exception as error:
        reason = (str(error).strip().splitlines() or [type(error).__name__])[-1]
        look = "the module given to tvm.compile, as it is"
        raise fail("a module of many functions compiled", reason[:200], look) from error
    written = file.read_bytes()
    for name in names:
        expect(
            f"__tvm_ffi_{name}".encode() in written,
            expected=f"the symbol __tvm_ffi_{name} of a module of {len(names)} functions",
            seen="it is not there",
            look="the module given to tvm.compile: all of it",
        )
        _expect_assembly(assembly, name, r"%ymm\d", "x86_64, haswell")
    _expect_as_given(assembly, _compiled(tvm.IRModule(many), _with(_X86, "haswell")))


def _words(target: dict[str, Any]) -> str:
    return f"{target['mtriple']}, {target.get('mcpu', 'no mcpu')}"


def _attributes(target: Any) -> str:
    """What a target says of the processor, in the order of its names."""
    said = {str(key): value for key, value in target.attrs.items() if "feature" not in str(key)}
    return ", ".join(f"{key} {said[key]}" for key in sorted(said))


@contextmanager
def _attributes_used() -> Iterator[list[str]]:
    """The targets for which TVM compiles loops meanwhile."""
    import tvm

    seen: list[str] = []
    build = tvm.tirx.build

    def recording(mod: Any, *arguments: Any, **options: Any) -> Any:
        given = arguments[0] if arguments else options.get("target")
        target = given or tvm.target.Target.current()
        if target is not None:
            seen.append(_attributes(tvm.target.Target(target)))
        return build(mod, *arguments, **options)

    with mock.patch.object(tvm.tirx, "build", recording):
        yield seen


def _expect_assembly(assembly: Any, name: str, instruction: str, words: str) -> None:
    """The whole text of the function of that name, with such an instruction."""
    expect(
        isinstance(assembly, str) and f"__tvm_ffi_{name}:" in assembly,
        expected="the assembly returned, with the label of the function",
        seen=f"{type(assembly).__name__} {str(assembly)[:60]!r}",
        look="inspect_source('asm'); 'll' is LLVM's IR, before it chose instructions",
    )
    missing = {*re.findall(r"\.LBB\w+", assembly)} - {
        *re.findall(r"^(\.LBB\w+):", assembly, re.MULTILINE)
    }
    expect(
        not missing,
        expected="the whole assembly: each label that an instruction jumps to",
        seen=f"no {', '.join(sorted(missing))}",
        look="the text of inspect_source('asm'): return all of its lines",
    )
    shown = re.sub(r"\\[bd]|\\", "", instruction)
    expect(
        re.search(instruction, assembly) is not None,
        expected=f"instructions like {shown} for {words}",
        seen="none of them",
        look="the target given to tvm.compile: mcpu and mattr select the instructions",
    )


# Instructions with vectors of float32 that the table of the docstring has not.
_NOT_COUNTED = (
    *(
        f"{each} %ymm1, %ymm0, %ymm0"
        for each in (
            *("vmaxps", "vminps", "vsubps", "vdivps", "vandps", "vandnps", "vorps", "vxorps"),
            *("vunpcklps", "vhaddps", "vaddsubps", "vpaddd", "vpmulld", "vmulph", "vmulsd"),
            # Older and newer ones than the table's: of four operands, of four registers.
            *("vfmaddps", "vfmaddsubps", "v4fmaddps", "vdpps", "vfmadd231ss", "vfmadd132pd"),
        )
    ),
    *(f"{each} %xmm1, %xmm0" for each in ("maxps", "minps", "subps", "xorps", "movaps", "dpps")),
    *(f"{each} %zmm1, %zmm0" for each in ("vsqrtps", "vrcp14ps", "vrsqrt14ps", "vmovups")),
    *(
        f"{each} v0.4s, v1.4s, v2.4s"
        for each in (
            *("fmls", "fsub", "fmax", "fmaxnm", "fdiv", "fabd", "faddp", "fmulx", "add"),
            *("fcmla", "fcadd", "fmlal", "fmlal2", "bfmlalb", "frecps", "mla", "mul"),
        )
    ),
    # Of other registers and types than float32 in v: SVE's are as long as the machine makes them.
    *(
        f"{each} {register}"
        for each in ("fmul", "fadd", "fmla")
        for register in (
            *("z0.s, z1.s, z2.s", "z0.s, p0/m, z1.s, z2.s", "v0.2s, v1.2s, v2.2s", "h0, h1, h2"),
            *("v0.8h, v1.8h, v2.8h", "v0.2d, v1.2d, v2.2d", "d0, d1, d2", "za.s[w8, 0], z0.s"),
        )
    ),
    *(
        f"f32x4.{each}"
        for each in ("sub", "max", "min", "pmax", "div", "neg", "relaxed_nmadd", "relaxed_max")
    ),
    *(
        f"{lanes}.{each}"
        for lanes in ("i32x4", "i64x2", "f64x2", "f16x8")
        for each in ("mul", "add", "relaxed_madd")
    ),
)

_LOOPS: tuple[tuple[list[str], dict[str, int], str], ...] = (
    (
        ["vbroadcastss (%rax), %zmm4", "vfmadd231ps (%rdx,%rcx,4){1to16}, %zmm1, %zmm0"],
        {"fma zmm": 1},
        "vfmadd231ps, and vbroadcastss, which does not compute",
    ),
    (
        ["vfmadd213ps %ymm2, %ymm1, %ymm0", "vfmadd132ps (%rax), %ymm1, %ymm3", "jne .LBB0_1"],
        {"fma ymm": 2},
        "the three orders of operands: 132, 213 and 231",
    ),
    (
        ["mulps %xmm1, %xmm0", "addps %xmm0, %xmm2", "vmulps (%rax), %xmm1, %xmm3"],
        {"mul xmm": 2, "add xmm": 1},
        "mulps and vmulps, the same with two and with three operands",
    ),
    (
        ["mulss %xmm1, %xmm0", "vaddss %xmm0, %xmm2, %xmm2", "vfmadd231ss %xmm0, %xmm1, %xmm2"],
        {},
        "ss: one float of a register",
    ),
    (
        ["vaddpd %ymm1, %ymm0, %ymm0", "vfmadd231pd %zmm1, %zmm0, %zmm2", "paddd %xmm1, %xmm0"],
        {},
        "pd and paddd: doubles and integers",
    ),
    (
        ["fmla v0.4s, v1.4s, v2.s[0]", "fmla v3.4s, v1.4s, v2.4s", "fmul v4.4s, v5.4s, v6.4s"],
        {"fma v": 2, "mul v": 1},
        "fmla, also by one element of a register: v2.s[0]",
    ),
    (
        ["fmul s0, s1, s2", "fadd s0, s0, s3", "fmadd s0, s1, s2, s3", "fmla v0.2d, v1.2d, v2.2d"],
        {},
        "the first operand: s0 is one float, v0.2d are doubles, v0.4s four floats",
    ),
    (
        ["f32x4.mul", "local.get 3", "f32x4.add", "f32x4.add", "f64x2.mul", "f32.add", "i32.mul"],
        {"mul v128": 1, "add v128": 2},
        "f32x4; f32 is one float, f64x2 are doubles",
    ),
    (["f32x4.relaxed_madd"], {"fma v128": 1}, "relaxed_madd"),
    (
        ["mulps 4096, %xmm0", "vaddps table, %ymm1, %ymm0", "addps table(%rip), %xmm4"],
        {"mul xmm": 1, "add ymm": 1, "add xmm": 1},
        "the register that is written, where no other is named",
    ),
    (
        ["vsubps %ymm1, %ymm0, %ymm0", "vfnmadd231ps %ymm1, %ymm0, %ymm2", "vdivps %xmm1, %xmm0"],
        {},
        "subtractions, divisions and negated products, which are not in the table",
    ),
    (
        ["vhaddps %ymm1, %ymm0, %ymm0", "haddps %xmm1, %xmm0", "vaddsubps %ymm1, %ymm0, %ymm0"],
        {},
        "haddps adds neighbours, addsubps subtracts half: neither is in the table",
    ),
    (
        [
            *(
                f"vf{name}{order}ps %zmm1, %zmm0, %zmm2"
                for name in ("maddsub", "msubadd", "msub", "nmadd", "nmsub")
                for order in (132, 213, 231)
            ),
            "vaddph %zmm1, %zmm0, %zmm2",
            "vfmadd231ph %zmm1, %zmm0, %zmm2",
            "addpsx %xmm1, %xmm0",
        ],
        {},
        "vfmaddsub, vfmsub and others, which subtract; ph: half precision",
    ),
    (
        [
            "fmla v12.4s, v31.4s, v0.s[3]",
            "fadd v30.4s, v0.4s, v1.4s",
            "vaddps %zmm1, %zmm2, %zmm31",
        ],
        {"fma v": 1, "add v": 1, "add zmm": 1},
        "registers have numbers up to 31",
    ),
    (
        ["faddp v0.4s, v1.4s, v2.4s", "fmls v0.4s, v1.4s, v2.4s", "fmul v0.2s, v1.2s, v2.2s"],
        {},
        "faddp adds pairs, fmls subtracts, and v0.2s is half a register",
    ),
    (
        ["fadd v0.8h, v1.8h, v2.8h", "fmul v0.4h, v1.4h, v2.4h", "fadd v0.2d, v1.2d, v2.2d"],
        {},
        "the type of the first operand: h are halves, d are doubles",
    ),
    (
        ["vaddps %zmm17, %zmm20, %zmm31", "vmulps (%rax), %ymm16, %ymm18"],
        {"add zmm": 1, "mul ymm": 1},
        "registers of two digits",
    ),
    (
        ["vaddps (%rax), %ymm1, %ymm0", "vmulps 32(%rsp,%rcx,8), %zmm3, %zmm7"],
        {"add ymm": 1, "mul zmm": 1},
        "the register that is written, whatever registers are in the address",
    ),
    (
        [
            "vaddps %zmm1, %zmm2, %zmm3 {%k1}",
            "vmulps (%rax), %zmm2, %zmm4 {%k1} {z}",
            "vfmadd231ps (%rdx){1to16}, %zmm1, %zmm0 {%k2}",
        ],
        {"add zmm": 1, "mul zmm": 1, "fma zmm": 1},
        "a mask in braces may stand behind the register that is written",
    ),
    (
        [
            *("vfmadd231ps {rn-sae}, %zmm4, %zmm5, %zmm6", "vaddps {rz-sae}, %zmm1, %zmm2, %zmm9"),
            "vfmadd213ps (%rax){1to8}, %ymm4, %ymm5",
        ],
        {"fma zmm": 1, "add zmm": 1, "fma ymm": 1},
        "the register that is written, the last operand, whatever the first one is",
    ),
    (["f32x4.sub", "f32x4.relaxed_nmadd", "f32x4.splat", "v128.load"], {}, "nothing else counts"),
    ([], {}, "a loop without instructions"),
)


@PHASE.exercise(
    "vector_arithmetic",
    engine=CURRENT,
    title="count an inner loop's vector instructions",
    hints=(
        "Take the instruction's name and its operands apart at the first blank, then ask three "
        "questions: x86, aarch64, wasm32. Their names have nothing in common.",
        "On x86 re.fullmatch(r'v?(mul|add)ps|v(fma)dd\\d+ps', name) and the last of "
        "re.findall(r'%([xyz]mm)', operands). On aarch64 the operands must begin with v, a number "
        "and .4s.",
        "fmla and relaxed_madd are 'fma'. counts[key] = counts.get(key, 0) + 1 with the key "
        "f'{what} {registers}'; return a dictionary without zeros.",
    ),
    looks_like="""
        vfmadd231ps (%rdx,%rcx,4){1to16}, %zmm1, %zmm0  {"fma zmm": 1}
        vmulps (%rax), %xmm1, %xmm3                     {"mul xmm": 1}
        fmla v0.4s, v1.4s, v2.s[0]                      {"fma v": 1}
        fmadd s0, s1, s2, s3                            {}
        f32x4.add                                       {"add v128": 1}
    """,
    demonstrate=lambda vector_arithmetic: "\n".join(
        f"{line:<47} {json.dumps(vector_arithmetic([line]))}"
        for line in (
            "vfmadd231ps (%rdx,%rcx,4){1to16}, %zmm1, %zmm0",
            "vmulps (%rax), %xmm1, %xmm3",
            "fmla v0.4s, v1.4s, v2.s[0]",
            "fmadd s0, s1, s2, s3",
            "f32x4.add",
        )
    ),
)
def check_vector_arithmetic(vector_arithmetic: Function) -> None:
    rng = fresh_rng()
    for loop, once, look in _LOOPS:
        times = int(rng.integers(2, 7))
        wanted = {key: count * times for key, count in once.items()}
        given = [str(each) for each in rng.permutation(loop * times)]
        got = vector_arithmetic(before := list(given))
        expect(
            given == before,
            expected="the list of instructions only read",
            seen="its order, or the instructions in it, changed",
            look="what is done to `loop`: sort, pop and the like change the caller's list",
        )
        expect(
            isinstance(got, dict) and dict(got) == wanted,
            expected=f"{wanted} of {times} times {'; '.join(loop)}",
            seen=repr(got),
            look=look,
        )
    times = int(rng.integers(300, 900))  # a long loop of all of these, unrolled
    together: Counter[str] = Counter()
    for _, once, _ in _LOOPS:
        together.update({key: count * times for key, count in once.items()})
    got = vector_arithmetic([str(each) for loop, _, _ in _LOOPS for each in loop * times])
    expect(
        isinstance(got, dict) and dict(got) == dict(together),
        expected=f"{dict(together)} of a loop with {times} times as many instructions",
        seen=repr(got),
        look="how counts are added up: each instruction is one more",
    )
    for instruction in _NOT_COUNTED:
        got = vector_arithmetic([instruction, "vaddps %ymm1, %ymm0, %ymm0"])
        expect(
            isinstance(got, dict) and dict(got) == {"add ymm": 1},
            expected=f"{{'add ymm': 1}} of vaddps and {instruction}, which is not in the table",
            seen=repr(got),
            look="the names of the instructions: whole, and those of the table alone",
        )


def _called(source: str, module: Any, inputs: Sequence[np.ndarray]) -> np.ndarray | None:
    """What the program of `source` and `module` writes; None where there is no C compiler.

    The module is an IRModule, or a function that was written in C.
    RuntimeError for a program that does not compile or that fails, with what it wrote.
    """
    import tvm

    from tvm_practice.tvm_export import cross

    triple = str(tvm.target.codegen.llvm_get_system_triple())
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        (folder / "harness.c").write_text(source)
        function = folder / ("f.c" if isinstance(module, str) else "f.o")
        if isinstance(module, str):
            function.write_text(module)
        else:
            tvm.compile(module, target=host_target()).mod.write_to_file(str(function), "o")
        try:
            cross.link([folder / "harness.c", function], triple, folder / "program")
        except Missing:
            return None
        data = b"".join(each.tobytes() for each in inputs)
        ended: list[Any] = []

        def run(*given: Any, **named: Any) -> Any:
            ended.append(plain(*given, **named))
            return ended[-1]

        plain = subprocess.run
        with mock.patch.object(subprocess, "run", run):
            try:
                written = cross.run_program(folder / "program", triple, data)
            except RuntimeError as error:
                wrote = f"; on its standard output: {ended[-1].stdout[:40]!r}"
                raise RuntimeError(f"{error}{wrote * bool(ended[-1].stdout)}") from error
    return np.frombuffer(written, "float32") if len(written) % 4 == 0 else np.array([])


@PHASE.exercise(
    "c_harness",
    engine=CURRENT,
    title="call a compiled function from C",
    hints=(
        "Write the program for two tensors by hand first, as lines. For each shape it has a static "
        "array of its size, its shape, its strides and a DLTensor; main reads the inputs, fills a "
        "TVMFFIAny for each tensor, calls, and writes the last.",
        "static DLTensor tensor_0 = {.data = data_0, .device = {kDLCPU, 0}, .ndim = 2, .dtype = "
        "{kDLFloat, 32, 1}, .shape = shape_0, .strides = strides_0}; strides are in elements: "
        "{columns, 1} for rows x columns, math.prod of the extents after each axis. "
        "static _Alignas(64) float data_0[6]; static int64_t shape_0[] = {2, 3}; in main, "
        "fread(data_0, sizeof data_0, 1, stdin) and fwrite. Of the docstring's names, the first "
        "prints each part with fprintf(stderr, ...), and memory comes from "
        "aligned_alloc(64, (bytes + 63) / 64 * 64) and goes to free.",
        "TVMFFIAny arguments[3] = {0}; arguments[0].type_index = kTVMFFIDLTensorPtr; "
        "arguments[0].v_ptr = &tensor_0; then __tvm_ffi_NAME(NULL, arguments, 3, &result), with "
        "the function declared above as the lab's docstring has it; void* "
        "(*__TVMBackendAllocWorkspace)(int, int, uint64_t, int, int) = allocate; for a function "
        "allocate of your own.",
    ),
    looks_like="""
        int __tvm_ffi_f(void*, const TVMFFIAny*, int32_t, TVMFFIAny*);
        void TVMFFIErrorSetRaisedFromCStrParts(const char* kind, const char** parts, int32_t n) {
        void* (*__TVMBackendAllocWorkspace)(int, int, uint64_t, int, int) = allocate;
        int (*__TVMBackendFreeWorkspace)(int, int, void*) = release;
        TVMFFIAny arguments[2] = {0};
        arguments[0].type_index = kTVMFFIDLTensorPtr;
        arguments[1].type_index = kTVMFFIDLTensorPtr;
        TVMFFIAny result = {.type_index = kTVMFFINone};
        if (__tvm_ffi_f(NULL, arguments, 2, &result) != 0) return 1;
    """,
    demonstrate=lambda c_harness: "\n".join(
        line.strip()
        for line in c_harness("f", [(4,), (4,)]).splitlines()
        if re.search(r"__tvm_ffi_f|TVMFFIA|TVMFFIE|kTVMFFI|TVMBackend", line)
    ),
)
def check_c_harness(c_harness: Function) -> None:
    rng = fresh_rng()
    rows, columns = (int(each) for each in rng.choice(np.arange(3, 40), 2, replace=False))
    name = f"Weighted_Sum_of_the_Columns_of_a_Matrix_by_Vectors_{rng.integers(1000)}"
    shapes = [(columns, rows), (columns,), (rows,)]
    source = c_harness(name, shapes)
    expect(
        isinstance(source, str) and f"__tvm_ffi_{name}" in source,
        expected=f"C source that declares and calls __tvm_ffi_{name}",
        seen=f"{type(source).__name__} without that name",
        look="the symbol of a PrimFunc: __tvm_ffi_ and its name",
    )
    x, w = (rng.standard_normal(shape, dtype="float32") for shape in shapes[:2])
    try:
        y = _called(source, _scaled_sum(rows, columns, name), [x, w])
    except RuntimeError as error:
        expect(
            False,
            expected=f"the program to compile, run and end with 0 on shapes {shapes}",
            seen=str(error),
            look="the message: TVM's function checks each DLTensor's type, shape, strides and "
            "alignment, and names the one that it refuses",
        )
    if y is not None:
        expect_close(
            y,
            w @ x,
            what="the output",
            look="the order of the inputs, and the tensor that is written",
        )
    _expect_workspace(c_harness)
    _expect_refused(c_harness, name, rows, columns)
    _expect_promises(c_harness)


def _expect_workspace(c_harness: Function) -> None:
    """A function with a buffer between its stages, for which it asks the program, runs."""
    size = 4 * int(fresh_rng().integers(2, 8))
    a, b = draw_normal((size, size), (size, size))
    try:
        c = _called(c_harness("main", [(size, size)] * 3), _with_a_buffer(size), [a, b])
    except RuntimeError as error:
        expect(
            False,
            expected="a function with a buffer between its stages to run",
            seen=str(error),
            look="__TVMBackendAllocWorkspace and __TVMBackendFreeWorkspace: pointers, with these "
            "names, to functions of the program; the object's own are null",
        )
    if c is not None:
        expect_close(c, (a @ b).ravel(), what="the output", look="the memory of the workspace")


def _expect_refused(c_harness: Function, name: str, rows: int, columns: int) -> None:
    """The program says so and fails where a shape is not the function's."""
    wrong = [(columns, rows), (columns + 1,), (rows,)]
    data = draw_normal(*wrong[:2])
    try:
        got = _called(c_harness(name, wrong), _scaled_sum(rows, columns, name), data)
    except RuntimeError as error:
        expect(
            "exit code 1" in str(error) and "shape" in str(error).lower(),
            expected="exit code 1 and TVM's message where a shape is wrong",
            seen=str(error),
            look="TVMFFIErrorSetRaisedFromCStrParts: print all parts to stderr and skip a NULL; "
            "return 1 unless the function returns 0",
        )
        return
    expect(
        got is None,
        expected="exit code 1 where the function refuses a shape",
        seen="exit code 0",
        look="the result of the call",
    )


# Asks for memory of several sizes at a time, and fails with a message of 99 parts, one long.
_DEMANDING = """
#define _POSIX_C_SOURCE 200112L
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <tvm/ffi/c_api.h>

void TVMFFIErrorSetRaisedFromCStrParts(const char*, const char**, int32_t);
extern void* (*__TVMBackendAllocWorkspace)(int, int, uint64_t, int, int);
extern int (*__TVMBackendFreeWorkspace)(int, int, void*);

// As the C standard had it: the size is a multiple of the alignment.
void* aligned_alloc(size_t alignment, size_t bytes) {
  void* memory = NULL;
  if (bytes % alignment != 0 || posix_memalign(&memory, alignment, bytes) != 0) return NULL;
  return memory;
}

int __tvm_ffi_demanding(void* self, const TVMFFIAny* given, int32_t count, TVMFFIAny* result) {
  enum { COUNT = 8 };
  const uint64_t sizes[COUNT] = {4, 24, 100, 1000, 4159, 4159, 4159, 6000000};
  unsigned char* held[COUNT];
  const char* aligned = "aligned";
  for (int i = 0; i < COUNT; ++i) {
    held[i] = __TVMBackendAllocWorkspace(1, 0, sizes[i], 2, 32);
    if (held[i] == NULL || (uintptr_t)held[i] % 64 != 0) aligned = "not to 64 bytes";
    if (held[i] != NULL) memset(held[i], i + 1, sizes[i]);
  }
  for (int i = 0; i < COUNT; ++i) {
    for (uint64_t at = 0; held[i] != NULL && at < sizes[i]; ++at) {
      if (held[i][at] != i + 1) aligned = "given twice";
    }
  }
  for (int i = 0; i < COUNT; ++i) __TVMBackendFreeWorkspace(1, 0, held[i]);
  // A buffer of 16 MB at each of many calls: as much as a program may have, if they are not freed.
  const struct rlimit little = {(rlim_t)1 << 30, (rlim_t)1 << 30};
  const int limited = setrlimit(RLIMIT_AS, &little) == 0;
  for (int i = 0; limited && i < 128; ++i) {
    void* buffer = __TVMBackendAllocWorkspace(1, 0, 16 << 20, 2, 32);
    if (buffer == NULL) {
      aligned = "never freed";
      break;
    }
    __TVMBackendFreeWorkspace(1, 0, buffer);
  }
  static char dots[5001];
  memset(dots, '.', 5000);
  const char* parts[99] = {"memory is ", NULL, aligned, dots, ",", " ", "a", "s"};
  parts[98] = " said by %d";
  TVMFFIErrorSetRaisedFromCStrParts("ValueError", parts, 99);
  return -1;
}
"""


# Copies its last input to its output, and adds the first value of each other input, weighted by
# its number. Of one tensor, the output alone, the first value is 7. It checks its arguments as
# TVM's functions do, and writes that it returns nothing.
_COPYING = """
#include <string.h>
#include <tvm/ffi/c_api.h>

void TVMFFIErrorSetRaisedFromCStrParts(const char*, const char**, int32_t);

int __tvm_ffi_copying(void* self, const TVMFFIAny* given, int32_t count, TVMFFIAny* result) {
  if (result == NULL) {
    const char* parts[] = {"no place for a result: it is NULL"};
    TVMFFIErrorSetRaisedFromCStrParts("ValueError", parts, 1);
    return -1;
  }
  memset(result, 0, sizeof *result);  // as by a function that returns nothing
  for (int t = 0; t < count; ++t) {
    const DLTensor* tensor = given[t].v_ptr;
    if ((uintptr_t)tensor->data % 64 != 0) {
      const char* parts[] = {"data that is not aligned to 64 bytes"};
      TVMFFIErrorSetRaisedFromCStrParts("ValueError", parts, 1);
      return -1;
    }
    if (tensor->byte_offset != 0) {
      const char* parts[] = {"a byte_offset other than 0"};
      TVMFFIErrorSetRaisedFromCStrParts("ValueError", parts, 1);
      return -1;
    }
    int64_t step = 1;
    for (int i = tensor->ndim - 1; i >= 0; --i) {
      if (tensor->strides != NULL && tensor->strides[i] != step) {
        const char* parts[] = {"strides that are not those of a compact tensor"};
        TVMFFIErrorSetRaisedFromCStrParts("ValueError", parts, 1);
        return -1;
      }
      step *= tensor->shape[i];
    }
  }
  float* to = ((const DLTensor*)given[count - 1].v_ptr)->data;
  if (count == 1) {
    to[0] = 7;
    return 0;
  }
  const DLTensor* from = given[count - 2].v_ptr;
  uint64_t bytes = 4;
  for (int i = 0; i < from->ndim; ++i) bytes *= from->shape[i];
  memcpy(to, from->data, bytes);
  for (int t = 0; t < count - 2; ++t) {
    to[0] += (t + 1) * ((const float*)((const DLTensor*)given[t].v_ptr)->data)[0];
  }
  return 0;
}
"""


def _expect_any_tensors(c_harness: Function) -> None:
    """Tensors may be larger than a stack, and any number; the output may be the only one."""
    rng = fresh_rng()
    large = (int(rng.integers(1000, 1100)), 5, 800)  # 16 MB
    many = [(int(each),) for each in rng.integers(1, 9, int(rng.integers(70, 200)))]
    deep = tuple(int(each) for each in rng.integers(1, 4, int(rng.integers(9, 13))))
    long = (int(rng.integers(70_000, 90_000)), 3)
    for shapes in ([(2,), (1, 3), large], [deep[1:], deep], [long[::-1], long], many, []):
        inputs = draw_normal(*shapes)
        want = inputs[-1].ravel().copy() if inputs else np.array([7], "float32")
        for number, each in enumerate(inputs[:-1], 1):
            want[0] += number * each.flat[0]
        output = shapes[-1] if shapes else (1,)
        told = f"{len(shapes)} inputs and an output of shape {output}"
        try:
            got = _called(c_harness("copying", [*shapes, output]), _COPYING, inputs)
        except RuntimeError as error:
            raise fail(
                f"the program to run with {told}",
                str(error),
                "the arrays: as many elements as there are shapes; the data: static or from "
                "aligned_alloc, because a stack has a few MB; its alignment; the strides; and the "
                "last argument, a TVMFFIAny that the function may write to",
            ) from error
        if got is not None:
            expect_close(
                got,
                want,
                what=f"the output, with {told}",
                look="the number of inputs that are read, their order and size; one read() "
                "of a pipe may return a part of what was asked for",
            )


def _expect_promises(c_harness: Function) -> None:
    """What the program defines for a function is as the lab's docstring says."""
    _expect_any_tensors(c_harness)
    try:
        _called(c_harness("demanding", [(2,), (2,)]), _DEMANDING, [np.zeros(2, "float32")])
    except RuntimeError as error:
        said = str(error)
        expect(
            "not to 64 bytes" not in said,
            expected="memory for buffers between stages, aligned to 64 bytes",
            seen="an address that is not a multiple of 64",
            look="__TVMBackendAllocWorkspace: aligned_alloc(64, bytes rounded up to a multiple)",
        )
        expect(
            "never freed" not in said,
            expected="buffers that are freed, so that there is memory for the next call's",
            seen="no memory left after 60 buffers of 16 MB, each of which was given back",
            look="__TVMBackendFreeWorkspace: free(memory), and return 0",
        )
        expect(
            "given twice" not in said and ("signal" not in said or "ValueError" in said),
            expected="memory of its own for each buffer, with as many bytes as requested",
            seen="buffers that overlap"
            if "given twice" in said
            else f"a program that writes as many bytes ended: {said}",
            look="__TVMBackendAllocWorkspace: aligned_alloc(64, bytes rounded up to a multiple); "
            "if that is right, the function's error, most of whose parts are NULL",
        )
        expect(
            "on its standard output" not in said,
            expected="nothing on standard output of a function that fails: it has values alone",
            seen=said[-80:],
            look="the stream that TVMFFIErrorSetRaisedFromCStrParts prints to, all parts: stderr",
        )
        expect(
            "exit code 1" in said and f"memory is aligned{'.' * 5000}, as said by %d" in said,
            expected="exit code 1 and 'memory is aligned', 5000 dots and ', as said by %d', an "
            "error of 99 parts, most of them NULL",
            seen=re.sub(r"\.{4,}", lambda dots: f"({len(dots[0])} dots)", said)[:300],
            look="TVMFFIErrorSetRaisedFromCStrParts: print all parts to stderr, whole and as they "
            "are, no format of printf, and skip a NULL",
        )


def _bound(size: int, name: str = "main") -> Any:
    """A module with name(X, Y): Y = X * 3 for a GPU."""
    import tvm
    from tvm import te

    X = te.placeholder((size,), name="X")
    Y = te.compute((size,), lambda i: X[i] * np.float32(3), name="Y")
    function = te.create_prim_func([X, Y]).with_attr("global_symbol", name)
    schedule = tvm.s_tir.Schedule(tvm.IRModule({name: function}))
    [i] = schedule.get_loops(schedule.get_sblock("Y", func_name=name))
    block, thread = schedule.split(i, [None, 64])
    schedule.bind(block, "blockIdx.x")
    schedule.bind(thread, "threadIdx.x")
    return schedule.mod


_KERNELS = 9


def _several_bound(size: int, name: str) -> Any:
    """A module of such functions; the first has the name, the others begin with it."""
    import tvm

    functions: dict[str, Any] = {}
    for number in range(_KERNELS):
        each = f"{name}_{number}" if number else name
        functions[each] = _bound(size, each)[each]
    return tvm.IRModule(functions)


def _kernel(source: str) -> str:
    found = re.search(r"__global__ void.*?(\w+_kernel\w*)\(", source, re.DOTALL)
    return f"kernel {found[1]}" if found else "no kernel"


@PHASE.exercise(
    "cuda_source",
    engine=CURRENT,
    title="CUDA source for an architecture",
    hints=(
        "tvm.compile makes two modules for a GPU: one for the host, which launches, and one for "
        "the device. The second is imported by the first.",
        "tvm.target.Target({'kind': 'cuda', 'arch': arch}, host='llvm'); the host's module is "
        "tvm.compile(module, target=…).mod, and .imports is a list.",
        "[device] = tvm.compile(module, target=target).mod.imports; return "
        "device.inspect_source().",
    ),
    looks_like="kernel triple_kernel",
    demonstrate=lambda cuda_source: _kernel(cuda_source(_bound(256, "triple"), "sm_90")),
)
def check_cuda_source(cuda_source: Function) -> None:
    import tvm

    rng = fresh_rng()
    known = ("sm_60", "sm_70", "sm_75", "sm_80", "sm_86", "sm_89", "sm_90", "sm_90a", "sm_120")
    name = f"triple_{rng.integers(1000)}"
    module: Any = None
    # Twice the same, of different functions; of one name, too; and the same functions for another.
    for at, arch in enumerate((*known, "sm_75", "sm_75", "sm_86")):
        name = name if at > len(known) else f"triple_{rng.integers(1000)}"
        size = 64 * int(rng.integers(2, 9)) + (at > len(known))
        module = module if at > len(known) + 1 else _several_bound(size, name)
        # TVM's current target at every second call: of another arch, and without a host.
        around = tvm.target.Target({"kind": "cuda", "arch": "sm_87" if at % 4 == 1 else "sm_72"})
        scope = around if at % 2 else nullcontext()
        with scope, _targets() as (targets, texts, settings):
            source = cuda_source(module, arch)
        expect(
            isinstance(source, str) and "__global__" in source and f"{name}_kernel" in source,
            expected=f"CUDA source, whole, with the kernel {name}_kernel",
            seen=str(source)[:60].replace("\n", " ") or "an empty text",
            look="all of the text of inspect_source, called on .mod.imports[0] of the module "
            "given: .mod itself is the host's module",
        )
        kernels = re.findall(rf"{name}\w*_kernel(?=\()", source)
        expect(
            len({*kernels}) == _KERNELS,
            expected=f"the kernels of all {_KERNELS} functions of the module",
            seen=", ".join(kernels),
            look="the text of inspect_source(): return all of it",
        )
        begins = source.strip().splitlines()[0]
        expect(
            begins.startswith("#")
            and "#include" in source
            and all(
                each.strip().startswith("#include")
                for each in source.splitlines()
                if "#include" in each
            ),
            expected="the whole source, from its #include lines on",
            seen=f"it begins with {begins[:60]}",
            look="the text of inspect_source(): return all of it",
        )
        seen = {str(each.attrs.get("arch")) for each in targets}
        expect(
            arch in seen,
            expected=f"compiled for {arch}"
            + f" (TVM's current target: {around.attrs['arch']})" * (at % 2),
            seen=f"for {', '.join(sorted(seen)) or 'no target object'}",
            look="the key arch of the target, which is the one given: tvm.target.Target.current() "
            "is the caller's",
        )
        wanted = _without_host(tvm.target.Target({"kind": "cuda", "arch": arch}))
        expect(
            any(_without_host(each) == wanted for each in targets),
            expected=f"the target {wanted}, with a host",
            seen="; ".join(dict.fromkeys(str(_without_host(each)) for each in targets)),
            look='tvm.target.Target({"kind": "cuda", "arch": arch}, host="llvm"): no other key',
        )
        expect(
            not settings,
            expected="TVM's own settings: the module has its schedule already",
            seen=", ".join(sorted(settings)),
            look="config= of a tvm.transform.PassContext around tvm.compile",
        )
        hosts = [each.host for each in targets]
        expect(
            any(str(host) == str(tvm.target.Target("llvm")) for host in hosts),
            expected='a target whose host is "llvm", for any processor',
            seen=f"host {', '.join(map(str, hosts))}",
            look='tvm.target.Target({...}, host="llvm")',
        )
        expect(
            source in texts,
            expected="the device's source as TVM wrote it, all of it",
            seen=f"{len(source)} characters, of {' or '.join(str(len(each)) for each in texts)}",
            look="the text of inspect_source(), which is returned as it is",
        )


def _without_host(target: Any) -> dict[str, Any]:
    """All that a target says, but of its host."""
    said = {str(key): value for key, value in dict(target.export()).items()}
    return {key: said[key] for key in sorted(said) if key != "host"}


@contextmanager
def _targets() -> Iterator[tuple[list[Any], list[str], set[str]]]:
    """In this context, the targets of each compilation, given to it or around it.

    And the sources of the devices of each, and the settings of the pass context around it.
    """
    import tvm

    seen: list[Any] = []
    texts: list[str] = []
    settings: set[str] = set()

    def noting(compile_: Function) -> Function:
        def compiling(*given: Any, **named: Any) -> Any:
            around = tvm.target.Target.current(allow_none=True)
            for each in (*given[1:], *named.values(), around):
                if isinstance(each, tvm.target.Target | dict):
                    seen.append(tvm.target.Target(each))
            settings.update(map(str, tvm.transform.PassContext.current().config.keys()))
            compiled = compile_(*given, **named)
            module: Any = getattr(compiled, "mod", compiled)
            texts.extend(str(each.inspect_source()) for each in module.imports)
            return compiled

        return compiling

    with (
        mock.patch.object(tvm, "compile", noting(tvm.compile)),
        mock.patch.object(tvm.tirx, "build", noting(tvm.tirx.build)),
    ):
        yield seen, texts, settings
