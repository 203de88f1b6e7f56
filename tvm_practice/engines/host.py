"""This machine's processor, as each engine's LLVM knows it."""

import ctypes
import functools
import platform
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tvm_practice.engines.errors import EngineError
from tvm_practice.engines.selection import CLASSIC, active, thread_count

# The x86-64 micro-architecture levels, best first, by the flags that Linux reports, and the
# processor of each that LLVM 10 (classic TVM) knows. https://gitlab.com/x86-psABIs/x86-64-ABI
_LEVELS: tuple[tuple[str, set[str], str], ...] = (
    ("x86-64-v4", {"avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"}, "skylake-avx512"),
    ("x86-64-v3", {"avx2", "fma", "bmi2", "f16c"}, "haswell"),
    ("x86-64-v2", {"sse4_2", "ssse3", "popcnt"}, "nehalem"),
    ("x86-64", set(), "x86-64"),
)
_VECTOR_BITS = {"x86-64-v4": 512, "x86-64-v3": 256}
OLD_NAMES = {level: old for level, _, old in _LEVELS}
_SAME_ARCHITECTURE = {"amd64": "x86_64", "arm64": "aarch64"}
TILES = {f"amx-{part}": f"amx_{part}" for part in ("tile", "int8", "bf16")}
"""LLVM's names of what tile registers have, and Linux's."""
# Instructions that only schedules call for: LLVM's names, and Linux's. LLVM's processors have them
# by their names alone; a hypervisor may hide them, or show them under an older processor's name.
_CALLED_FOR = {
    **{f"avx512{each}": f"avx512_{each}" for each in ("bf16", "vnni")},
    "avxvnni": "avx_vnni",
    **TILES,
}
# How a process asks Linux on x86-64 for tile registers: number and arguments of a system call.
# https://docs.kernel.org/arch/x86/xstate.html
ASK_FOR_TILES = (158, 0x1023, 18)  # arch_prctl, ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA


@dataclass(frozen=True)
class Host:
    """What schedules need to know of the processor.

    Attributes:
        level: x86-64 micro-architecture level, or the machine type elsewhere.
        vector_lanes: float32 values in a vector register.
        vector_registers: how many such registers there are.
        threads: what TVM and its rivals are given.
    """

    level: str
    vector_lanes: int
    vector_registers: int
    threads: int


@functools.cache
def flags() -> frozenset[str]:
    try:
        text = Path("/proc/cpuinfo").read_text()
    except OSError:
        return frozenset()
    for line in text.splitlines():
        if line.startswith(("flags", "Features")):
            return frozenset(line.partition(":")[2].split())
    return frozenset()


@functools.cache
def tiles_allowed() -> bool:
    """Whether this processor has tile registers (AMX), and Linux lets this process use them.

    It asks for them, once for the whole process.
    """
    if "amx_tile" not in flags():
        return False
    return int(ctypes.CDLL(None).syscall(*ASK_FOR_TILES)) == 0


def architecture(triple: str) -> str:
    """LLVM's name of the architecture of a triple: `aarch64` of `arm64-apple-darwin`."""
    name = triple.partition("-")[0]
    return _SAME_ARCHITECTURE.get(name, name)


def own_architecture() -> str:
    """LLVM's name of this machine's architecture."""
    return architecture(platform.machine().lower())


def host() -> Host:
    """This machine's processor."""
    machine = own_architecture()
    if machine != "x86_64":
        return Host(machine, vector_lanes=4, vector_registers=32, threads=thread_count())
    level = next(name for name, needed, _ in _LEVELS if needed <= flags())
    bits = _VECTOR_BITS.get(level, 128)
    return Host(level, bits // 32, 32 if bits == 512 else 16, thread_count())


def host_target() -> Any:
    """The active engine's `tvm.target.Target` for this machine's processor and threads.

    Raises EngineError while no engine is active.
    """
    if active() is None:
        raise EngineError("no engine is active in this process; call activate() first")
    import tvm

    here = host()
    # LLVM would use half of each AVX-512 register to spare old processors their clock drop.
    mattr = ["-prefer-256-bit"] if here.vector_lanes == 16 else []
    if active() == CLASSIC:
        name = OLD_NAMES.get(here.level, "generic")
        text = f"llvm -mcpu={name} -num-cores={here.threads}"
        return tvm.target.Target(text + "".join(f" -mattr={each}" for each in mattr))
    description: dict[str, Any] = {"kind": "llvm", "num-cores": here.threads}
    mcpu = _current_mcpu(here)
    if mcpu:
        description["mcpu"] = mcpu
    mattr += _otherwise_than(mcpu)
    if mattr:
        description["mattr"] = mattr
    return tvm.target.Target(description)


def _current_mcpu(here: Host) -> str | None:
    """LLVM's name for this processor, unless it promises vectors that a hypervisor took away."""
    import tvm

    name = str(tvm.target.codegen.llvm_get_system_cpu())
    if not here.level.startswith("x86-64"):
        return name or None
    if name in ("", "generic"):
        return here.level
    named = tvm.target.Target({"kind": "llvm", "mcpu": name})
    promised = [
        feature
        for feature in ("avx512f", "avx512bw", "avx2", "fma", "sse4.2")
        if tvm.target.codegen.llvm_cpu_has_features(feature, named)
    ]
    missing = [each for each in promised if each.replace(".", "_") not in flags()]
    return here.level if missing and flags() else name


def _otherwise_than(mcpu: str | None) -> list[str]:
    """What of `_CALLED_FOR` this processor has, or lacks, other than LLVM's `mcpu`, as -mattr."""
    import tvm

    if not flags() or own_architecture() != "x86_64":
        return []
    named = tvm.target.Target({"kind": "llvm", **({"mcpu": mcpu} if mcpu else {})})
    has = tvm.target.codegen.llvm_cpu_has_features
    usable = flags() if tiles_allowed() else flags() - {*TILES.values()}
    return [
        f"{'+' if linux in usable else '-'}{name}"
        for name, linux in _CALLED_FOR.items()
        if (linux in usable) != bool(has(name, named))
    ]
