"""An ONNX file to a library: model.so, which TVM's runtime loads, and model.json beside it.

A TFLite file takes the same way, read by `importers.tflite` in the place of `importers.onnx`.

    compile_onnx("model.onnx", "runs/model", target="llvm", shapes={}, checked=None)

A child process with the current engine does the work, by `compile_file` and `check`.
"""

import importlib.metadata
import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from tvm_practice import engines
from tvm_practice.tvm_export.errors import CannotImport, DoesNotCompile, Missing
from tvm_practice.tvm_export.importers import tflite

if TYPE_CHECKING:
    import numpy as np

    from tvm_practice.measure import Stopwatch

LIBRARY = "model.so"
METADATA = "model.json"
SCHEMA_VERSION = 1
_PACKAGES = ("apache-tvm", "apache-tvm-ffi", "onnx", "onnxruntime", "numpy")
_HERE = __name__


def compile_onnx(
    file: Path,
    out: Path,
    *,
    target: str,
    shapes: Mapping[str, Sequence[int]],
    checked: bool | None,
    values: Mapping[str, Sequence[float]] | None = None,
    output: IO[Any] | None = None,
) -> dict[str, Any]:
    """Compile a file, check the library, write `out`/model.json, and return its content.

    Args:
        file: the ONNX file, or a TFLite file.
        out: folder; made if it is not there.
        target: see `targets.resolve_target`.
        shapes: extents by input, for inputs with symbolic dimensions.
        values: numbers by input, for inputs that choose shapes; they are none of the library.
        checked: whether to compare with ONNX Runtime, or TFLite's interpreter; None: where it is
            installed and the library can run.
        output: where the child prints, see `engines.Session`.

    Returns:
        {"schema_version", "model": the file's name, "library", "engine", the result of
        `compile_file`, "check": that of `check`, or {"status": "off", "reason"}, "versions"}.

    Raises:
        engines.EngineError: as `engines.Session.call` does.
        Missing: a package that is not installed.
        BadInput, CannotImport, DoesNotCompile: as `compile_file` does.
    """
    from tvm_practice.tvm_export.writing import write_json

    unreadable, unchecked = _missing(file)
    if missing := unreadable or (unchecked if checked else None):
        raise Missing(missing)
    off = "--no-check" if checked is False else unchecked
    arguments = {"file": str(file), "out": str(out), "shapes": dict(shapes), "target": target}
    arguments["values"] = dict(values or {})
    with engines.Session(engines.CURRENT, output=output) as session:
        compiled = session.call(f"{_HERE}:compile_file", arguments)
        off = off or compiled["not_runnable"]
        judged = {"status": "off", "reason": off} if off else _checked(session, file, out, compiled)
    metadata = {
        "schema_version": SCHEMA_VERSION,
        "model": file.name,
        "library": LIBRARY,
        "engine": engines.CURRENT,
        **compiled,
        "check": judged,
        "versions": {package: _version(package) for package in _PACKAGES},
    }
    write_json(out / METADATA, metadata)
    return metadata


def _missing(file: Path) -> tuple[str | None, str | None]:
    """What is not installed: to read the file, and to compute what the library is compared with."""
    from tvm_practice.tvm_export.baselines import missing_package

    if tflite.is_tflite(file):
        return tflite.why_not_readable(file), tflite.no_interpreter()
    return missing_package(["onnx"]), missing_package(["onnxruntime"])


def _checked(
    session: engines.Session, file: Path, out: Path, compiled: Mapping[str, Any]
) -> dict[str, Any]:
    """The result of `check`. A check that does not come to its end has failed."""
    given = {"file": str(file), "library": str((out / LIBRARY).resolve())}
    arguments = given | {name: compiled[name] for name in ("inputs", "target", "values")}
    try:
        judged: dict[str, Any] = session.call(f"{_HERE}:check", arguments)
    except engines.PlainError as error:
        return {"status": "failed", "reason": f"the check did not end: {error.line}"}
    return judged


def _version(package: str) -> str | None:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


# In a child process, with the current engine active.


def compile_file(
    file: str,
    out: str,
    shapes: Mapping[str, Sequence[int]],
    target: str = "llvm",
    values: Mapping[str, Sequence[float]] | None = None,
) -> dict[str, Any]:
    """Compile an ONNX file, or a TFLite file, to `out`/model.so.

    Args:
        file: the file; an ONNX file's external data, if it has any, lies beside it.
        out: folder, made if it is not there. A model.json in it, of another library, is removed.
        shapes: extents by input, for inputs with symbolic dimensions.
        target: see `targets.resolve_target`.
        values: numbers by input, for inputs that choose shapes.

    Returns:
        {"opset", "target", "not_runnable": why this machine cannot run it, or None, "inputs":
        [{"name", "shape", "dtype"}], "outputs": the same, "values", "seconds": by stage}.

    Raises:
        BadInput: the file, a shape or the target; the message is one line.
        CannotImport: an operator of the model, or the model as a whole in TVM's graph passes.
        DoesNotCompile: a function of it, or the library does not link.
        Missing: no C++ compiler to link the library with.
    """
    from tvm_practice.measure import Stopwatch
    from tvm_practice.tvm_export.targets import (
        require_buildable,
        resolve_target,
        why_not_runnable,
        with_host,
    )

    watch = Stopwatch()
    require_buildable(target, engines.CURRENT, tuned=False)
    resolved = with_host(resolve_target(target))
    _require_linker()
    reader = _reader(file)
    with watch("read"):
        model = reader.read_model(file)
        if values:
            model = reader.with_values(model, reader.value_arrays(model, values))
        inputs = reader.input_tensors(model, shapes)
    module, executable = compile_model(model, inputs, resolved, watch, reader=reader)
    with watch("link"):
        _link(executable, Path(out))
    return {
        "opset": reader.opset(model),
        "target": str(resolved),
        "not_runnable": why_not_runnable(resolved),
        "inputs": inputs,
        "outputs": reader.output_tensors(model, module),
        "values": dict(values or {}),
        "seconds": watch.seconds,
    }


def _reader(file: str) -> Any:
    """The package that reads the file's format."""
    from tvm_practice.tvm_export.importers import onnx

    return tflite if tflite.is_tflite(Path(file)) else onnx


def compile_model(
    model: Any,
    inputs: Sequence[Mapping[str, Any]],
    target: Any,
    watch: "Stopwatch",
    *,
    reader: Any = None,
) -> tuple[Any, Any]:
    """An ONNX model compiled in this process.

    Args:
        model: an onnx.ModelProto.
        inputs: as `input_tensors` gives them.
        target: a tvm.target.Target.
        watch: takes the seconds of each stage.
        reader: whose import_model takes the model, `importers.onnx` unless given.

    Returns:
        The optimized Relax module and the tvm.runtime.Executable.

    Raises:
        CannotImport, DoesNotCompile: as `compile_file` does.
    """
    from tvm_practice.tvm_export.importers import onnx
    from tvm_practice.tvm_export.loading import in_a_line
    from tvm_practice.tvm_export.quiet import native_stderr_to
    from tvm_practice.tvm_export.relax_passes.order import optimized
    from tvm_practice.tvm_export.steps import Steps

    with native_stderr_to(os.devnull):  # it says "Scope Saving" for each constant, say
        with watch("import"):
            module = (reader or onnx).import_model(model, inputs, target)
        with watch("optimize"), in_a_line("TVM cannot optimize the model", CannotImport):
            names = [each["name"] for each in inputs]
            module = optimized(module, Steps(), names=names, target=target)
        with watch("build"), in_a_line("TVM cannot compile the model", DoesNotCompile):
            return module, _built(module, target)


def _built(module: Any, target: Any) -> Any:
    from tvm_practice.tvm_export.compiling import compiling
    from tvm_practice.tvm_export.relax import schedule_defaults
    from tvm_practice.tvm_export.steps import Steps

    with compiling(target):
        return Steps().build_relax(schedule_defaults(module, target), target)


def _link(executable: Any, folder: Path) -> None:
    """Write the library whole or not at all, without the model.json of another."""
    folder.mkdir(parents=True, exist_ok=True)
    making = folder / f".making-{LIBRARY}"  # the linker goes by the ending
    try:
        executable.export_library(str(making))
        (folder / METADATA).unlink(missing_ok=True)
        making.replace(folder / LIBRARY)
    except RuntimeError as error:
        raise DoesNotCompile(_link_problem(str(error))) from error
    finally:
        making.unlink(missing_ok=True)


def _link_problem(text: str) -> str:
    """The message of a C++ compiler, in a line; TVM adds the command and its own words."""
    said = re.search(r"^.+: .*error.*$", text, re.MULTILINE)
    problem = "linking failed; for another architecture set CXX to its C++ compiler"
    return f"{problem}: {said[0]}" if said else problem


def _require_linker() -> None:
    from tvm.support import cc

    if cc.get_cc() is None:
        raise Missing("a C++ compiler (g++ or clang++) is needed to link the library")


def check(
    file: str,
    library: str,
    inputs: Sequence[Mapping[str, Any]],
    target: str,
    values: Mapping[str, Sequence[float]] | None = None,
) -> dict[str, Any]:
    """Run a library and ONNX Runtime on the same random inputs and compare their outputs.

    Of a TFLite file it is TFLite's interpreter.

    Args:
        file: the ONNX file, or the TFLite file.
        library: the file that was compiled from it.
        inputs: [{"name", "shape", "dtype"}] in the model's order.
        target: that it was compiled for, as `compile_file` says it.
        values: of the inputs that were fixed.

    Returns:
        {"status": "ok" | "failed", "reason", "max_error", "atol", "rtol"}; for a quantized model
        beyond the tolerances, whose outputs can be a step of some layer apart, also "cosine" and
        the "min_cosine" that it is judged by.
    """
    import numpy as np
    import tvm

    from tvm_practice.tvm_export.accuracy import accuracy
    from tvm_practice.tvm_export.config import ATOL, MIN_COSINE, RTOL
    from tvm_practice.tvm_export.loading import describe
    from tvm_practice.tvm_export.rules.gpu import compiling_kernels
    from tvm_practice.tvm_export.running import RelaxRunner
    from tvm_practice.tvm_export.steps import Steps
    from tvm_practice.tvm_export.targets import device_of, to_dictionary

    compiled_for = tvm.target.Target(to_dictionary(target))
    random = np.random.default_rng(0)
    feed = {each["name"]: _draw(random, each["shape"], each["dtype"]) for each in inputs}
    judged: dict[str, Any] = {"status": "ok", "reason": None, "max_error": None}
    judged |= {"atol": ATOL, "rtol": RTOL}
    try:
        reference = _reference(file, feed, values)
    except Exception as error:  # it has none to catch but Exception
        return judged | {"status": "failed", "reason": f"{judge(file)}: {describe(error)}"}
    with compiling_kernels(compiled_for):
        runner = RelaxRunner.from_file(library, device=device_of(compiled_for))
    runner.set_inputs(list(feed.values()))
    runner.run()
    outputs = runner.outputs()
    try:
        largest = Steps().verify(outputs, reference, atol=ATOL, rtol=RTOL)
    except ValueError as wrong:
        failed = judged | {"status": "failed", "reason": str(wrong)}
        if not _is_quantized(file) or [each.shape for each in outputs] != [
            each.shape for each in reference
        ]:
            return failed
        found = accuracy(outputs, reference)
        limits = {"cosine": found["cosine"], "min_cosine": MIN_COSINE}
        if found["cosine"] < MIN_COSINE:
            return failed | limits
        return judged | limits | {"max_error": found["max_error"]}
    return judged | {"max_error": largest}


def _is_quantized(file: str) -> bool:
    """Whether an ONNX model has quantized tensors."""
    from tvm_practice.tvm_export.importers import onnx

    if tflite.is_tflite(Path(file)):
        return False
    return any(
        each.op_type.endswith("QuantizeLinear") or each.op_type.startswith(("QLinear", "QGemm"))
        for each in onnx.read_model(file).graph.node
    )


def judge(file: Path | str) -> str:
    """What a library of the file is compared with."""
    return "TFLite's interpreter" if tflite.is_tflite(Path(file)) else "ONNX Runtime"


def _reference(
    file: str, feed: dict[str, "np.ndarray"], values: Mapping[str, Sequence[float]] | None
) -> list["np.ndarray"]:
    from tvm_practice.tvm_export.baselines import open_onnx_session
    from tvm_practice.tvm_export.importers import onnx

    if tflite.is_tflite(Path(file)):
        return tflite.interpreted(file, feed)
    fixed = onnx.value_arrays(onnx.read_model(file), values) if values else {}
    found: list[np.ndarray] = open_onnx_session(file).run(None, feed | fixed)
    return found


def _draw(random: "np.random.Generator", shape: Sequence[int], dtype: str) -> "np.ndarray":
    """Standard normal values, or zeros and ones, which any embedding has a row for."""
    import numpy as np

    if np.issubdtype(np.dtype(dtype), np.floating):
        return random.standard_normal(shape).astype(dtype)
    return random.integers(0, 2, shape).astype(dtype)
