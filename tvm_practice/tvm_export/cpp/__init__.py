"""C++ around a compiled model: the project that `compile_onnx` writes, and how it is built.

    write_project(folder)                    folder/cpp: tvm_model.h, programs, CMakeLists.txt
    programs = build_project(folder)         with CMake
    subprocess.run([programs / "main", folder])

Nothing here imports TVM before it is needed.
"""

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tvm_practice.tvm_export.errors import DoesNotCompile, Missing

PROJECT = "cpp"  # the project's folder, beside the library
_FILES = Path(__file__).with_name("project")


def describe_tensor(name: str, kind: Any) -> dict[str, Any]:
    """A tensor of a Relax function as model.json has it.

    Args:
        name: what to call it.
        kind: its type; an extent that depends on values is described by its name.

    Returns:
        {"name", "shape", "dtype"}.
    """
    import tvm

    extents = [
        int(each) if isinstance(each, tvm.tirx.IntImm) else str(each) for each in kind.shape.values
    ]
    return {"name": name, "shape": extents, "dtype": str(kind.dtype)}


def result_types(module: Any) -> list[Any]:
    """The types of the tensors that a Relax module's main returns.

    Extents that depend on values have their names, which main's own type does not know.
    """
    kind = module["main"].body.body.ty
    return list(kind.fields) if hasattr(kind, "fields") else [kind]


def describe_main(module: Any) -> dict[str, list[dict[str, Any]]]:
    """What a Relax module's main takes and gives, as model.json has it.

    Outputs, which have no names in Relax, are output_0, output_1 and so on.
    """
    parameters = module["main"].params
    return {
        "inputs": [describe_tensor(str(each.name), each.ty) for each in parameters],
        "outputs": [
            describe_tensor(f"output_{position}", kind)
            for position, kind in enumerate(result_types(module))
        ],
    }


def write_project(folder: Path) -> Path:
    """Write the C++ project for the library in a folder.

    What a person has added to it stays; its own files are written anew.

    Args:
        folder: with model.so and model.json, or soon to have them.

    Returns:
        folder/cpp.
    """
    project = folder / PROJECT
    project.mkdir(parents=True, exist_ok=True)
    for file in sorted(_FILES.iterdir()):
        shutil.copyfile(file, project / file.name)
    return project


def missing_tool() -> str | None:
    """Why the project cannot be built here, and what to install; None if it can."""
    if _cmake() is None:
        return "CMake is not installed: pip install -c constraints.txt -e '.[cpp]', or the system's"
    return missing_compiler()


def missing_compiler() -> str | None:
    """Why no C++ can be compiled here; None if it can."""
    if compiler() is None:
        return "a C++ compiler (g++ or clang++) is needed"
    return None


def build_project(
    folder: Path, *, build: Path | None = None, options: Sequence[str] = (), threads: int = 2
) -> Path:
    """Configure and build the project of a folder with CMake.

    Args:
        folder: as given to `write_project`.
        build: CMake's own folder; folder/cpp/build if None.
        options: for CMake, "-DTVM_MODEL_SANITIZE=address" say.
        threads: programs that are compiled at a time.

    Returns:
        The folder with the programs.

    Raises:
        Missing: no CMake or no compiler.
        DoesNotCompile: a file that is refused.
    """
    if reason := missing_tool():
        raise Missing(reason)
    build = build or folder / PROJECT / "build"
    cmake = str(_cmake())
    python = f"-DPython_EXECUTABLE={sys.executable}"
    run_tool([cmake, "-S", str(folder / PROJECT), "-B", str(build), python, *options])
    run_tool([cmake, "--build", str(build), "--parallel", str(threads)])
    return build


def run_tool(command: list[str]) -> None:
    """Run a compiler or CMake; raises DoesNotCompile with its first error."""
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        lines = [each for each in (done.stdout + done.stderr).splitlines() if each.strip()]
        first = next((at for at, each in enumerate(lines) if "error" in each.lower()), 0)
        # CMake says where in one line, and what in those below it.
        count = 4 if "CMake Error" in "".join(lines[first : first + 1]) else 1
        said = " ".join(each.strip() for each in lines[first : first + count])
        raise DoesNotCompile(said or f"{command[0]} failed")


def _cmake() -> str | None:
    beside = os.pathsep.join([os.environ.get("PATH", ""), str(Path(sys.executable).parent)])
    return shutil.which("cmake", path=beside)


def compiler() -> str | None:
    """The C++ compiler, CXX's or the system's; None if there is none."""
    return os.environ.get("CXX") or shutil.which("g++") or shutil.which("clang++")
