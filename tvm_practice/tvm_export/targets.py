"""Targets: one spelling in, each engine's own out, and whether this machine can run them.

target = resolve_target("llvm -mcpu=core-avx2")
if reason := why_not_runnable(target):
    print(reason)
"""

import json
import os
import re
import shlex
import tempfile
from collections.abc import Iterable
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

from tvm_practice import engines
from tvm_practice.engines.host import OLD_NAMES, TILES, architecture, flags, tiles_allowed
from tvm_practice.tvm_export.cuda import NO_COMPILER, compiler
from tvm_practice.tvm_export.errors import BadInput
from tvm_practice.tvm_export.loading import did_you_mean
from tvm_practice.tvm_export.quiet import native_stderr_to

# Processors that LLVM 10, classic TVM's, does not know, and the nearest of its own: the one whose
# instructions the newer processor has too.
_OLDER = {
    **OLD_NAMES,
    **dict.fromkeys(
        ("sapphirerapids", "emeraldrapids", "graniterapids", "graniterapids-d"), "cascadelake"
    ),
    **dict.fromkeys(("znver4", "znver5", "diamondrapids"), "cascadelake"),
    **dict.fromkeys(("alderlake", "raptorlake", "meteorlake", "arrowlake", "lunarlake"), "skylake"),
    "rocketlake": "icelake-client",
    "znver3": "znver2",
    **dict.fromkeys(("neoverse-n2", "neoverse-v1", "neoverse-v2", "grace"), "neoverse-n1"),
    **dict.fromkeys(("cortex-a77", "cortex-a78", "cortex-x1"), "cortex-a76"),
    **dict.fromkeys(("apple-m1", "apple-m2", "apple-m3", "apple-m4"), "apple-a13"),
}

# What LLVM uses of a processor unasked, and Linux's name for it. Tile registers are apart: code has
# them only where a schedule calls for them, and hypervisors hide them often.
_LINUX_NAMES = {
    **{name: name for name in ("ssse3", "sse4a", "popcnt", "cx16", "movbe", "bmi2", "f16c", "fma")},
    **{name: name for name in ("fma4", "xop", "tbm", "avx", "avx2", "gfni")},
    **{name: name for name in ("sve", "sve2", "bf16", "i8mm", "sme")},
    **{f"avx512{part}": f"avx512{part}" for part in ("f", "cd", "bw", "dq", "vl", "er", "pf")},
    **{f"avx512{part}": f"avx512{part}" for part in ("ifma", "vbmi")},
    **{f"avx512{part}": f"avx512_{part}" for part in ("vbmi2", "vnni", "bitalg", "bf16", "fp16")},
    "avx512vpopcntdq": "avx512_vpopcntdq",
    "avxvnni": "avx_vnni",
    "avxvnniint8": "avx_vnni_int8",
    "avxifma": "avx_ifma",
    "sse3": "pni",
    "sse4.1": "sse4_1",
    "sse4.2": "sse4_2",
    "lzcnt": "abm",
    "bmi": "bmi1",
    "egpr": "apx",
    "neon": "asimd",
    "fullfp16": "asimdhp",
    "dotprod": "asimddp",
    "lse": "atomics",
    "rcpc": "lrcpc",
}


# Architectures that LLVM reads in a triple besides those it lists. Others crash it.
_MORE_ARCHITECTURES = re.compile(
    r"(arm|thumb)v(4t|5te?|6|6k|6m|7|7[aklmrs]|7em|8|8[alr]|8\.[1-9]a|9a?)"
    r"|i[3-6]86|amd64|arm64|ppc|ppc64|ppc64le"
)
_OFTEN = ("x86_64-linux-gnu", "aarch64-linux-gnu", "riscv64-linux-gnu")
# What clang calls a processor that LLVM's code generators, and so TVM, know by another name.
_ALIASES = {
    "apple-m1": "apple-a14",
    "apple-m2": "apple-a15",
    "apple-m3": "apple-a16",
    "grace": "neoverse-v2",
}
_SYSTEMS = {  # what a triple may say, the more particular first
    "android": "android",
    "linux": "Linux",
    "darwin": "macOS",
    "macos": "macOS",
    "ios": "iOS",
    "windows": "Windows",
    "wasi": "WASI",
    "none": "no operating system",
}
# Kinds that exports are for besides processors, and what their devices are called.
_DEVICES = {
    "cuda": "CUDA",
    "rocm": "ROCm",
    "opencl": "OpenCL",
    "vulkan": "Vulkan",
    "metal": "Metal",
}
_CPU = 1  # DLDeviceType kDLCPU
# What every CUDA device has at least; MetaSchedule needs both.
_EVERY_CUDA = {"max_shared_memory_per_block": 48 << 10, "max_threads_per_block": 1024}


def _board(processor: str, cores: int, gpu: str | None = None) -> dict[str, Any]:
    """A target for a board that runs Linux on aarch64, or for the NVIDIA GPU on it."""
    own = {"kind": "llvm", "mtriple": _OFTEN[1], "mcpu": processor, "num-cores": cores}
    return own if gpu is None else {"kind": "cuda", "arch": gpu, "host": own}


BOARDS = {
    "raspberry-pi-3": _board("cortex-a53", 4),
    "raspberry-pi-4": _board("cortex-a72", 4),
    "raspberry-pi-5": _board("cortex-a76", 4),
    "jetson-nano": _board("cortex-a57", 4, "sm_53"),
    "jetson-agx-xavier": _board("carmel", 8, "sm_72"),
    "jetson-orin-nano": _board("cortex-a78ae", 6, "sm_87"),
    "jetson-agx-orin": _board("cortex-a78ae", 12, "sm_87"),
}


def resolve_target(text: str) -> Any:
    """The active engine's `tvm.target.Target` for `text`.

    Args:
        text: "llvm", which is this machine's processor with its vector width; a kind with
            options, "llvm -mcpu=core-avx2 -num-cores=4"; a dictionary as JSON; one of BOARDS; or a
            tag of the engine, "nvidia/nvidia-a100". Without -mcpu, further options of llvm are for
            the oldest processor of the architecture. An llvm target without -num-cores gets this
            machine's threads, which MetaSchedule needs.

    Raises:
        BadInput: an unknown kind, option, processor, feature or architecture, or a value of the
            wrong type; one line that names it and the nearest known one.
    """
    import tvm

    try:
        if text in map(str, tvm.target.list_tags() or ()):
            tagged = tvm.target.Target(text)
            if str(tagged.kind.name) != "llvm":
                return tagged
            described = to_dictionary(str(tagged))
        else:
            described = to_dictionary(text)
        if described == {"kind": "llvm"}:
            return engines.host_target()
        described = _checked(described)
        # It warns of a default arch for cuda, and for rocm prints.
        with native_stderr_to(os.devnull), redirect_stdout(None):
            return tvm.target.Target(described)
    except BadInput as error:
        raise BadInput(f"target {text!r}: {error}") from None
    except (RuntimeError, ValueError, TypeError, KeyError) as error:
        reason = str(error).strip().splitlines()[-1]
        raise BadInput(f"target {text!r} is refused by TVM: {reason}") from error


def to_dictionary(text: str) -> dict[str, Any]:
    """`"llvm -mcpu=core-avx2 -mattr=+fma,-avx512f"` as `{"kind": "llvm", "mcpu": …, "mattr": …}`.

    Values stay text, but for those of a text that is a JSON dictionary. Raises BadInput.
    """
    if text in BOARDS:
        return dict(BOARDS[text])
    if text.lstrip().startswith("{"):
        try:
            described: dict[str, Any] = json.loads(text)
        except json.JSONDecodeError as error:
            raise BadInput(f"not JSON: {error.msg}, column {error.colno}") from None
        return described
    try:
        kind, *options = shlex.split(text)
    except ValueError:
        raise BadInput("empty, or a quotation mark is missing") from None
    described = {"kind": kind}
    for option in options:
        key, _, value = option.lstrip("-").partition("=")
        if not option.startswith("-") or not key or not value:
            raise BadInput(f"{option!r} is not of the form -key=value")
        if key in described and key not in ("mattr", "keys", "libs", "cl-opt"):
            raise BadInput(f"-{key} is given twice")
        described[key] = f"{described[key]},{value}" if key in described else value
    return described


def _checked(described: dict[str, Any]) -> dict[str, Any]:
    """A description whose kind, options and values the active engine knows, typed as it wants."""
    import tvm

    kinds = [str(each) for each in tvm.target.Target.list_kinds()]
    tags = [str(each) for each in tvm.target.list_tags() or ()]
    if "kind" not in described:
        raise BadInput("no kind in it, such as llvm")
    kind = described["kind"]
    if kind not in kinds:
        near = (
            did_you_mean(str(kind), [*kinds, *BOARDS, *tags]) or f"; there are {', '.join(kinds)}"
        )
        raise BadInput(f"no target kind {kind!r}{near}")
    types = {
        str(key): str(value) for key, value in tvm.target.TargetKind.options_from_name(kind).items()
    }
    typed: dict[str, Any] = {"kind": kind}
    for key, value in described.items():
        if key == "kind" or key.startswith("feature."):  # which the engine derives and prints
            continue
        if key not in types:
            raise BadInput(f"{kind} has no option -{key}{did_you_mean(key, sorted(types))}")
        typed[key] = _typed(key, value, types[key])
    if kind == "llvm":
        _check_llvm(typed)
        typed.setdefault("num-cores", engines.thread_count())
    elif kind == "cuda":
        typed = {**_EVERY_CUDA, **typed}
    if not re.fullmatch(r"sm_\d+[a-z]?", typed.get("arch", "sm_0")):
        raise BadInput(f"-arch={typed['arch']} is not of the form sm_80")
    return typed


def _typed(key: str, value: Any, kind: str) -> Any:
    """An option's value as the engine's word for `kind`: the two have their own words."""
    if "Array" in kind:
        values = value.split(",") if isinstance(value, str) else value
        if not isinstance(values, list) or not all(isinstance(each, str) for each in values):
            raise BadInput(f"-{key}={value} is not a list of words")
        return values
    if kind in ("int", "IntImm", "bool"):
        truth = {"true": 1, "false": 0}.get(str(value).lower())
        if truth is None and not re.fullmatch(r"-?\d+", str(value)):
            raise BadInput(f"-{key}={value} is not a whole number")
        number = int(value) if truth is None else truth
        if key == "num-cores" and number < 1:
            raise BadInput(f"-{key}={value} is not a positive number")
        return bool(number) if kind == "bool" else number
    if kind.endswith("Target"):
        if not isinstance(value, str | dict):
            raise BadInput(f"-{key}={value} is not a target")
        return _checked(to_dictionary(value) if isinstance(value, str) else value)
    if not isinstance(value, str):
        raise BadInput(f"-{key}={value} is not a word")
    return value


def _check_llvm(described: dict[str, Any]) -> None:
    """Raises BadInput for an architecture, a processor or a feature that LLVM does not have."""
    import tvm
    from tvm.target import codegen

    version = codegen.llvm_version_major()
    here = str(codegen.llvm_get_system_triple())
    machine = architecture(str(described.get("mtriple") or here))
    known = sorted(map(str, codegen.llvm_get_targets()))
    if machine not in known and not _MORE_ARCHITECTURES.fullmatch(machine):
        near = did_you_mean(machine, known)
        raise BadInput(f"LLVM {version} has no architecture {machine!r}{near}")
    processors = _processors(described.get("mtriple"))
    mcpu = described.get("mcpu")
    if mcpu is not None and mcpu not in processors and _ALIASES.get(mcpu) in processors:
        mcpu = described["mcpu"] = _ALIASES[mcpu]
    if mcpu is not None and mcpu not in processors:
        elsewhere = [triple for triple in _OFTEN if mcpu in _processors(triple)]
        near = did_you_mean(mcpu, processors)
        if _OLDER.get(mcpu) in processors:
            near = f"; the nearest that it has is {_OLDER[mcpu]}"
        elif elsewhere:
            near = f"; add -mtriple={elsewhere[0]}"
        elif mcpu == "native":
            near = "; 'llvm' alone is this machine's"
        raise BadInput(f"LLVM {version} has no {machine} processor {mcpu!r}{near}")
    for feature in described.get("mattr", ()):
        if feature[:1] not in ("+", "-"):
            raise BadInput(f"-mattr={feature} does not begin with + or -")
    if unknown := _unknown_feature(described):
        features = set[str]()
        with native_stderr_to(os.devnull):
            for each in processors:
                one = tvm.target.Target({**described, "mcpu": each, "mattr": []})
                features.update(map(str, codegen.llvm_get_cpu_features(one)))
        near = did_you_mean(unknown, sorted(features))
        raise BadInput(f"LLVM {version} has no {machine} feature {unknown!r}{near}")


def _processors(triple: str | None) -> list[str]:
    """The processors that LLVM knows of an architecture; of this machine's for None."""
    import tvm
    from tvm.target import codegen

    generic = {"kind": "llvm", **({"mtriple": triple} if triple else {})}
    with native_stderr_to(os.devnull):  # LLVM 10 says that RISC-V has no generic processor
        return sorted(map(str, codegen.llvm_get_cpu_archlist(tvm.target.Target(generic))))


def _unknown_feature(described: dict[str, Any]) -> str | None:
    """The first of -mattr that LLVM does not know. It lists none, but complains of others."""
    import tvm
    from tvm.target import codegen

    if not described.get("mattr"):
        return None
    with tempfile.TemporaryDirectory() as folder:
        said = Path(folder) / "stderr"
        with native_stderr_to(said):
            codegen.llvm_get_cpu_features(tvm.target.Target(described))
        found = re.search(r"'[+-](\S+)' is not a recognized feature", said.read_text())
    return found[1] if found else None


def require_all_buildable(
    texts: list[str], engine: engines.Engine, *, tuned: bool, remote: bool = False
) -> None:
    """`require_buildable` of each, in a process that has loaded no engine yet."""
    engines.activate(engine)
    for text in texts:
        require_buildable(text, engine, tuned=tuned, remote=remote)


def require_buildable(text: str, engine: str, *, tuned: bool, remote: bool = False) -> None:
    """Raises BadInput where `engine` makes no export, or no tuned one, for the target `text`.

    Processors and CUDA are for both engines, other GPUs for the current one, as far as it generates
    code for them. The classic engine compiles CUDA kernels at once, and needs a compiler for it.
    Tuning is for processors and CUDA, where this machine, or a `remote` one, can run the code.
    """
    import tvm

    target = resolve_target(text)
    kind = str(target.kind.name)
    if kind == "llvm":
        if tuned and not remote:
            _require_runnable(text, target)
        return
    if kind not in _DEVICES:
        known = ", ".join(("llvm", *_DEVICES))
        raise BadInput(f"target {text!r}: exports are for {known}, not for {kind}")
    if engine == engines.CLASSIC and kind != "cuda":
        raise BadInput(
            f"target {text!r}: the classic engine exports for processors and CUDA only, the "
            f"current one for {_DEVICES[kind]} too"
        )
    if engine == engines.CLASSIC and compiler() is None:
        raise BadInput(f"target {text!r}: the classic engine needs one here: {NO_COMPILER}")
    if tvm.get_global_func(f"target.build.{kind}", allow_missing=True) is None:
        raise BadInput(f"target {text!r}: this TVM has no code generator for {_DEVICES[kind]}")
    if kind == "rocm" and not _has_rocm():
        raise BadInput(
            f"target {text!r}: TVM links ROCm's device libraries, which are not here; install ROCm "
            "or set ROCM_PATH"
        )
    if tuned and kind != "cuda":
        raise BadInput(
            f"target {text!r}: tuning is for processors and CUDA; without trials {_DEVICES[kind]} "
            "gets TVM's default schedules"
        )
    arch_given = text in map(str, tvm.target.list_tags() or ()) or "arch" in to_dictionary(text)
    if kind == "cuda" and not arch_given and not tvm.cuda(0).exist:
        raise BadInput(
            f"target {text!r}: there is no CUDA device to ask for its architecture; name it, "
            "cuda -arch=sm_80"
        )
    if tuned and not remote:
        _require_runnable(text, target)


def _require_runnable(text: str, target: Any) -> None:
    """Raises BadInput where this machine cannot measure code for a target."""
    if reason := why_not_runnable(target):
        raise BadInput(
            f"target {text!r} cannot be tuned for here: {reason}; --rpc-tracker "
            "measures on a machine that can"
        )


def _has_rocm() -> bool:
    from tvm.support.rocm import find_rocm_path

    try:
        return Path(find_rocm_path()).is_dir()
    except RuntimeError:
        return False


def with_host(target: Any) -> Any:
    """A target whose host code, on a GPU what launches its kernels, is for any such processor."""
    import tvm

    if str(target.kind.name) == "llvm" or target.host is not None:
        return target
    return tvm.target.Target(target, host="llvm")


def device_of(target: Any) -> Any:
    """The first `tvm.device` that runs code for `target`."""
    import tvm

    kind = str(target.kind.name)
    return tvm.device(kind, 0) if kind in _DEVICES else tvm.cpu(0)


def why_not_runnable(target: Any) -> str | None:
    """One line that says why this machine cannot run code for `target`; None if it can.

    A target for this machine's own processor can always run; of another it is asked whether this
    one has what LLVM may use unasked.
    """
    import tvm

    kind = str(target.kind.name)
    device_type = int(target.get_target_device_type())
    if device_type != _CPU:
        device = tvm.device(kind, 0)
        if not device.exist:
            return f"no {_DEVICES.get(kind, kind)} device"
        return _older_device(target, device) or (target.host and why_not_runnable(target.host))
    if kind != "llvm":
        return None
    from tvm.target import codegen

    here = str(codegen.llvm_get_system_triple())
    triple = str(target.attrs.get("mtriple", "")) or here
    if architecture(triple) != architecture(here):
        return f"code for {architecture(triple)}, this machine is {architecture(here)}"
    if _system(triple) not in (None, _system(here)):
        return f"code for {_system(triple)}, this machine runs {_system(here)}"
    return why_lacking(_needed(target))


def why_lacking(features: Iterable[str]) -> str | None:
    """One line that names those features that this machine's processor lacks; None if it has all.

    Args:
        features: by LLVM's names, as `features_of` lists them.
    """
    missing = sorted(set(features) - _available())
    if not missing:
        return None
    if {TILES.get(each) for each in missing} <= flags():
        return f"Linux does not let this process use {', '.join(missing)} (arch_prctl)"
    more = f" and {len(missing) - 4} more" if len(missing) > 4 else ""
    return f"this processor has no {', '.join(missing[:4])}{more}"


def _older_device(target: Any, device: Any) -> str | None:
    """Why a CUDA device cannot run code for the target's arch; None if it can."""
    wanted = re.fullmatch(r"sm_(\d+)[a-z]?", str(target.attrs.get("arch", "")))
    if not wanted or not device.compute_version:
        return None
    major, minor = str(device.compute_version).split(".")[:2]
    if int(wanted[1]) <= int(major) * 10 + int(minor):
        return None
    return f"code for {wanted[0]}, the CUDA device is sm_{major}{minor}"


def features_of(target: Any) -> list[str]:
    """The features that code for a processor may use, by LLVM's names, where Linux has one too.

    Of this machine's own processor they are those that it has: a hypervisor may hide some.
    """
    from tvm.target import codegen

    if str(target.kind.name) != "llvm":
        return []
    by_name = set(map(str, codegen.llvm_get_cpu_features(target))) & _LINUX_NAMES.keys()
    return sorted(_added(target) | (by_name & _available() if _is_own(target) else by_name))


def _needed(target: Any) -> set[str]:
    """LLVM's names of the features that this machine has to have for a target's code."""
    from tvm.target import codegen

    tiles = set(map(str, codegen.llvm_get_cpu_features(target))) & TILES.keys()
    return tiles | (_added(target) if _is_own(target) else set(features_of(target)))


def _added(target: Any) -> set[str]:
    """The features that a target names beside its processor."""
    mattr = [str(each) for each in target.attrs.get("mattr", ())]
    return {each[1:] for each in mattr if each.startswith("+")} & _LINUX_NAMES.keys()


def _is_own(target: Any) -> bool:
    own = str(engines.host_target().attrs.get("mcpu", ""))
    return str(target.attrs.get("mcpu", "")) == own


def _available() -> set[str]:
    """LLVM's names of this processor's features, as Linux says; elsewhere, as LLVM does."""
    import tvm
    from tvm.target import codegen

    own = str(codegen.llvm_get_system_cpu())
    by_llvm = set(
        map(str, codegen.llvm_get_cpu_features(tvm.target.Target({"kind": "llvm", "mcpu": own})))
    )
    by_linux = {name for name, linux in _LINUX_NAMES.items() if linux in flags()}
    if tiles_allowed():
        by_linux |= {name for name, linux in TILES.items() if linux in flags()}
    # In an emulator (qemu-user), Linux tells of the processor below it, LLVM of the emulated one.
    emulated = own not in ("", "generic") and {"avx2", "avx512f"} & (by_linux - by_llvm)
    return by_llvm if emulated or not by_linux else by_linux


def _system(triple: str) -> str | None:
    return next((name for word, name in _SYSTEMS.items() if word in triple), None)
