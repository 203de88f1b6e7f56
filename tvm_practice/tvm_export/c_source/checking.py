"""A model's C compiled, run, and held against PyTorch as every export is.

The program runs by itself, or for another machine under an emulator, see `cross`.
"""

import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from tvm_practice import engines
from tvm_practice.engines.host import own_architecture
from tvm_practice.tvm_export.c_source import writing
from tvm_practice.tvm_export.c_source.program import program_of
from tvm_practice.tvm_export.errors import BadInput, DoesNotCompile, Missing, NotVerified
from tvm_practice.tvm_export.export import Export
from tvm_practice.tvm_export.linking import is_own

Judge = Callable[[Export], dict[str, Any]]
_SOME = b"\0"  # no tensor is without bytes in C


@dataclass
class ProgramRunner:
    """Runs a model's program anew for each call; see `graph_module.Runner`."""

    program: Path
    written: writing.Written
    triple: str
    _given: bytes = field(default=b"", repr=False)
    _outputs: list[np.ndarray] = field(default_factory=list, repr=False)

    def set_inputs(self, inputs: Sequence[np.ndarray]) -> None:
        """Take the inputs of the next run."""
        self._given = b"".join(np.ascontiguousarray(each).tobytes() or _SOME for each in inputs)

    def run(self) -> None:
        """Run the program. Raises RuntimeError with its message."""
        from tvm_practice.tvm_export.cross import run_program

        arguments: list[str] = [str(self.written.weights), str(engines.thread_count())]
        data = self._given
        if self.triple.startswith("wasm"):  # which has no files here
            data, arguments = self.written.weights.read_bytes() + data, []
        told = run_program(self.program, self.triple, data, arguments=arguments)
        self._outputs, begin = [], 0
        for each in self.written.program.outputs:
            dtype = _numpy_type(each.dtype)
            count = each.nbytes // dtype.itemsize
            values = np.frombuffer(told, dtype, count, begin)
            self._outputs.append(values.reshape(each.shape))
            begin += max(each.nbytes, dtype.itemsize)

    def outputs(self) -> list[np.ndarray]:
        """All outputs of the last run."""
        return self._outputs


def require_possible(export: Export, folder: Path) -> None:
    """Raise BadInput, before the work, if the imported model cannot be written as C to `folder`."""
    kind = str(export.target.kind.name)
    if kind != "llvm":
        raise BadInput(f"--c-source is for processors; the target is {kind}")
    writing.require_free(folder)
    program_of(export.module, export.target)


def export_c(export: Export, folder: Path, judge: Judge) -> dict[str, Any]:
    """Write an export's model as C, compile and run it where possible, and compare.

    Args:
        export: built.
        folder: for the C; it is as it was where anything fails.
        judge: what verifies an export, `pipeline.judged`.

    Returns:
        {"folder", "name", "program": its size in bytes without the weights, None where it was not
        linked, "weights", "workspace": bytes, "calls", "verification": see
        `verification.verify_model`, None where it was not run, "not_run": why}.

    Raises:
        BadInput: see `require_possible`.
        DoesNotCompile: the C compiler refuses; its first error.
        NotVerified: its outputs are not PyTorch's.
        OSError: the folder cannot be written.
    """
    with writing.making(folder) as made:
        written = writing.write(
            export.result.scheduled,
            export.target,
            export.call.names,
            Path(made),
            name=writing.name_of(folder),
        )
        program = written.program
        found: dict[str, Any] = {
            "folder": str(folder),
            "name": written.name,
            "weights": program.weights,
            "workspace": program.workspace,
            "calls": len(program.calls),
            "program": None,
            "verification": None,
            "not_run": None,
        }
        try:
            found |= _verified(export, written, judge)
        except Missing as missing:
            found["not_run"] = str(missing)
        writing.publish(Path(made), folder)
    return found


def build(written: writing.Written, triple: str, program: Path) -> None:
    """Compile and link a model's program. Raises Missing and DoesNotCompile."""
    from tvm_practice.tvm_export.cross import link

    threads = [] if triple.startswith("wasm") else ["-pthread"]
    options = ["-std=c11", "-D_POSIX_C_SOURCE=200809L", "-lm", "-s", *threads]
    try:
        link(written.sources, triple, program, options=options)
    except RuntimeError as error:
        raise DoesNotCompile(str(error)) from None


def _verified(export: Export, written: writing.Written, judge: Judge) -> dict[str, Any]:
    """The program's size and how it was verified. Raises as `export_c`, and Missing."""
    triple = str(export.target.attrs.get("mtriple", "")) or f"{own_architecture()}-linux-gnu"
    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder) / written.name
        build(written, triple, program)
        found: dict[str, Any] = {"program": program.stat().st_size}
        # Code for another architecture runs under an emulator.
        if is_own(triple) and (reason := export.not_run):
            return found | {"not_run": reason}
        runner = ProgramRunner(program, written, triple)
        built = replace(export.result, runner=runner, _given={}, _ready=False)
        try:
            found["verification"] = judge(replace(export, built=built))
        except Missing as missing:
            return found | {"not_run": str(missing)}
        except (ValueError, RuntimeError) as error:
            raise NotVerified(f"the C program: {error}") from None
    return found


def _numpy_type(name: str) -> np.dtype[Any]:
    if name == "bfloat16":
        import ml_dtypes

        narrow: np.dtype[Any] = np.dtype(ml_dtypes.bfloat16)
        return narrow
    return np.dtype(name)
