"""Compile an ONNX file with current TVM: a library, what it takes and gives, C++ to call it."""

import importlib
import importlib.metadata
import json
import os
import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tvm_practice.tvm_export.cpp import PROJECT, write_project
from tvm_practice.tvm_export.errors import CannotImport

if TYPE_CHECKING:
    import numpy as np

LIBRARY = "model.so"
METADATA = "model.json"
SCHEMA_VERSION = 1
_PACKAGES = ("apache-tvm", "apache-tvm-ffi", "onnx", "onnxruntime", "numpy")
_DOMAINS = ("", "ai.onnx")  # two names of ONNX's own


# In a child process, with the current engine active.


def compile_file(
    file: str, out: str, shapes: Mapping[str, Sequence[int]], target: str = "llvm"
) -> dict[str, Any]:
    """Compile an ONNX file to `out`/model.so.

    Args:
        file: the ONNX file; its external data, if it has any, lies beside it.
        out: folder, made if it is not there. A model.json in it, of another library, is removed.
        shapes: extents by input, for inputs with symbolic dimensions.
        target: see `targets.resolve_target`.

    Returns:
        {"opset", "target", "not_runnable": why this machine cannot run it, or None, "inputs":
        [{"name", "shape", "dtype"}], "outputs": the same, "seconds": by stage}.

    Raises:
        BadInput: the file, a shape or the target; the message is one line.
        CannotImport: the model, for an operator in it.
        RuntimeError: no C++ compiler to link the library with.
    """
    from solutions.relay_import import build_relax, optimize_relax
    from tvm_practice import engines
    from tvm_practice.measure import Stopwatch
    from tvm_practice.tvm_export.quiet import native_stderr_to
    from tvm_practice.tvm_export.relax import (
        fold_batch_normalization,
        schedule_defaults,
        with_host,
    )
    from tvm_practice.tvm_export.rules.gpu import compiling_kernels
    from tvm_practice.tvm_export.targets import (
        require_buildable,
        resolve_target,
        why_not_runnable,
    )

    watch = Stopwatch()
    require_buildable(target, engines.CURRENT, tuned=False)
    resolved = with_host(resolve_target(target))
    _require_linker()
    with watch("read"):
        model = read_model(file)
        inputs = input_tensors(model, shapes)
    with watch("import"), native_stderr_to(os.devnull):
        module = _imported(model, inputs)
    with watch("optimize"), native_stderr_to(os.devnull):
        module = optimize_relax(fold_batch_normalization(module))
    with watch("build"), native_stderr_to(os.devnull), compiling_kernels(resolved):
        executable = build_relax(schedule_defaults(module, resolved), resolved)
    with watch("link"), native_stderr_to(os.devnull):  # it says "Scope Saving" for each constant
        Path(out).mkdir(parents=True, exist_ok=True)
        making = Path(out) / f".making-{LIBRARY}"  # the linker goes by the ending
        try:
            try:
                executable.export_library(str(making))
            except RuntimeError as error:
                raise RuntimeError(_link_problem(str(error))) from error
            (Path(out) / METADATA).unlink(missing_ok=True)
            making.replace(Path(out) / LIBRARY)
        finally:
            making.unlink(missing_ok=True)
    return {
        "opset": next(e.version for e in model.opset_import if e.domain in _DOMAINS),
        "target": str(resolved),
        "not_runnable": why_not_runnable(resolved),
        "inputs": inputs,
        "outputs": _output_tensors(model, module),
        "seconds": watch.seconds,
    }


def check(
    file: str, library: str, inputs: Sequence[Mapping[str, Any]], target: str
) -> dict[str, Any]:
    """Run a library and ONNX Runtime on the same random inputs and compare their outputs.

    Args:
        file: the ONNX file.
        library: what was compiled from it.
        inputs: [{"name", "shape", "dtype"}] in the model's order.
        target: that it was compiled for, as `compile_file` says it.

    Returns:
        {"status": "ok" | "failed", "reason", "max_error", "atol", "rtol"}.
    """
    import numpy as np
    import tvm

    from solutions.relay_import import verify
    from tvm_practice.tvm_export.baselines import open_onnx_session
    from tvm_practice.tvm_export.config import ATOL, RTOL
    from tvm_practice.tvm_export.loading import describe
    from tvm_practice.tvm_export.rules.gpu import compiling_kernels
    from tvm_practice.tvm_export.running import RelaxRunner
    from tvm_practice.tvm_export.targets import device_of, to_dictionary

    compiled_for = tvm.target.Target(to_dictionary(target))
    random = np.random.default_rng(0)
    feed = {each["name"]: _draw(random, each["shape"], each["dtype"]) for each in inputs}
    judged: dict[str, Any] = {"status": "ok", "reason": None, "max_error": None}
    judged |= {"atol": ATOL, "rtol": RTOL}
    try:
        reference = open_onnx_session(file).run(None, feed)
    except Exception as error:  # it has none to catch but Exception
        return judged | {"status": "failed", "reason": f"ONNX Runtime: {describe(error)}"}
    with compiling_kernels(compiled_for):
        runner = RelaxRunner.from_file(library, device=device_of(compiled_for))
    runner.set_inputs(list(feed.values()))
    runner.run()
    try:
        return judged | {"max_error": verify(runner.outputs(), reference, atol=ATOL, rtol=RTOL)}
    except ValueError as error:
        return judged | {"status": "failed", "reason": str(error)}


def _draw(random: "np.random.Generator", shape: Sequence[int], dtype: str) -> "np.ndarray":
    """Standard normal values, or zeros and ones, which any embedding has a row for."""
    import numpy as np

    if np.issubdtype(np.dtype(dtype), np.floating):
        return random.standard_normal(shape).astype(dtype)
    return random.integers(0, 2, shape).astype(dtype)


def read_model(file: str) -> Any:
    """The ModelProto in a file, its external data loaded and its own functions inlined.

    Raises BadInput if it is none.
    """
    onnx: Any = importlib.import_module("onnx")  # optional, hence not a plain import
    from tvm_practice.tvm_export.errors import BadInput
    from tvm_practice.tvm_export.loading import describe

    try:
        model = onnx.load(file, load_external_data=False)
    except OSError as error:
        raise BadInput(f"{file}: {error.strerror or error}") from error
    except Exception as error:  # protobuf's DecodeError
        raise BadInput(f"{file} is not an ONNX model: {describe(error)}") from error
    if not model.ir_version or not model.graph.output:
        raise BadInput(f"{file} is not an ONNX model: it has no graph")
    try:
        onnx.load_external_data_for_model(model, str(Path(file).parent))
    except Exception as error:  # of the operating system or onnx's checker
        raise BadInput(f"{file}: its external data does not load: {describe(error)}") from error
    if model.functions:
        model = importlib.import_module("onnx.inliner").inline_local_functions(model)
    return model


def input_tensors(model: Any, shapes: Mapping[str, Sequence[int]]) -> list[dict[str, Any]]:
    """A model's inputs as [{"name", "shape", "dtype"}], symbolic dimensions as `shapes` has them.

    Raises BadInput for a symbolic dimension without a shape, a shape that does not fit, and a
    name of `shapes` that is no input.
    """
    from tvm_practice.tvm_export.errors import BadInput
    from tvm_practice.tvm_export.loading import did_you_mean

    weights = {each.name for each in model.graph.initializer}
    inputs = {each.name: each for each in model.graph.input if each.name not in weights}
    for name in shapes.keys() - inputs.keys():
        raise BadInput(
            f"--shape {name}: the model has no such input, only {', '.join(inputs)}"
            f"{did_you_mean(name, list(inputs))}"
        )
    declared: dict[str, list[int | str] | None] = {}
    bound: dict[str, int] = {}  # extents of the symbolic dimensions
    for name, described in inputs.items():
        if not described.type.HasField("tensor_type"):
            raise BadInput(f"input {name} is not a tensor")
        declared[name] = _declared(described.type.tensor_type)
        before = dict(bound)
        if name in shapes and not _fits(declared[name], shapes[name], bound):
            given = "x".join(map(str, shapes[name]))
            known = ", ".join(f"{symbol} = {extent}" for symbol, extent in before.items())
            raise BadInput(
                f"--shape {name}={given} does not fit the input, which is "
                f"{_spelled(declared[name])}" + (f", with {known}" if known else "")
            )
    tensors = []
    for name, described in inputs.items():
        extents = shapes.get(name) or _extents(name, declared[name], bound)
        dtype = _dtype_name(described.type.tensor_type.elem_type)
        tensors.append({"name": name, "shape": list(extents), "dtype": dtype})
    return tensors


def _declared(tensor: Any) -> list[int | str] | None:
    """A tensor type's extents; a symbolic one is its name, or "?"."""
    if not tensor.HasField("shape"):
        return None
    return [
        int(each.dim_value) if each.HasField("dim_value") and each.dim_value > 0
        else each.dim_param or "?"
        for each in tensor.shape.dim
    ]  # fmt: skip


def _fits(
    declared: Sequence[int | str] | None, extents: Sequence[int], bound: dict[str, int]
) -> bool:
    """Whether `extents` are an instance of `declared`; their symbols are added to `bound`."""
    if declared is None:
        return True
    return len(declared) == len(extents) and all(
        extent == (each if isinstance(each, int) else bound.setdefault(each, extent))
        for each, extent in zip(declared, extents, strict=True)
        if each != "?"
    )


def _extents(
    name: str, declared: Sequence[int | str] | None, bound: Mapping[str, int]
) -> list[int]:
    """The extents of an input that --shape does not name. Raises BadInput if one is unknown."""
    from tvm_practice.tvm_export.errors import BadInput

    if declared is None:
        raise BadInput(f"input {name} has no shape; give it, as in --shape {name}=1x3x224x224")
    extents = [each if isinstance(each, int) else bound.get(each) for each in declared]
    known = [each for each in extents if each is not None]
    if len(known) < len(extents):
        example = "x".join(str(each or 1) for each in extents)
        raise BadInput(
            f"input {name} has a symbolic dimension, it is {_spelled(declared)}; give its shape, "
            f"as in --shape {name}={example}"
        )
    return known


def _spelled(declared: Sequence[int | str] | None) -> str:
    return "×".join(map(str, declared or ())) or "a scalar"


def _dtype_name(code: int) -> str:
    helper: Any = importlib.import_module("onnx.helper")
    return str(helper.tensor_dtype_to_np_dtype(code))


def _imported(model: Any, inputs: Sequence[Mapping[str, Any]]) -> Any:
    """The model as a Relax module with the shapes of `inputs`. Raises CannotImport."""
    import contextlib
    import io
    import warnings

    import tvm
    from tvm.relax.frontend.onnx import from_onnx

    from tvm_practice.tvm_export.loading import describe

    said = io.StringIO()
    try:
        with warnings.catch_warnings(), contextlib.redirect_stdout(said):
            # Of inputs it renames, and of what onnx's checker finds but it does without.
            warnings.simplefilter("ignore")
            return from_onnx(model, {each["name"]: list(each["shape"]) for each in inputs})
    except tvm.error.OpNotImplemented as error:
        names = ", ".join(sorted(str(error).rpartition(": ")[2].split(", ")))
        problem = f"does not know these operators: {names}"
    except Exception as error:
        # Which operator it was is printed, with the whole graph, and not in the exception.
        found = re.search(r"Error converting operator (\w+)", said.getvalue())
        use = f"this use of {found[1]}" if found else "the model"
        problem = f"cannot convert {use}: {describe(error)}"
    # Not within the except block: that would keep the builder, which complains when it ends.
    raise CannotImport(f"TVM's importer {problem}")


def _output_tensors(model: Any, module: Any) -> list[dict[str, Any]]:
    """The outputs as [{"name", "shape", "dtype"}]; an extent that depends on values is a name."""
    from tvm_practice.tvm_export.cpp import describe_tensor, result_types

    return [
        describe_tensor(output.name, kind)
        for output, kind in zip(model.graph.output, result_types(module), strict=True)
    ]


def _link_problem(text: str) -> str:
    """What a C++ compiler said, in a line; TVM adds the command and its own words."""
    said = re.search(r"^.+: .*error.*$", text, re.MULTILINE)
    problem = "linking failed; for another architecture set CXX to its C++ compiler"
    return f"{problem}: {said[0]}" if said else problem


def _require_linker() -> None:
    from tvm.support import cc

    if cc.get_cc() is None:
        raise RuntimeError("a C++ compiler (g++ or clang++) is needed to link the library")


# The command line.


@click.command(
    epilog="\b\nExamples:\n"
    "  python -m tvm_practice.compile_onnx model.onnx --out runs/model\n"
    "  python -m tvm_practice.compile_onnx bert.onnx --out runs/bert \\\n"
    "      --shape input_ids=1x128 --shape attention_mask=1x128\n"
    '  python -m tvm_practice.compile_onnx model.onnx --out runs/old --target "llvm '
    '-mcpu=haswell"'
)
@click.argument("file", metavar="MODEL.ONNX", type=click.Path(path_type=Path))
@click.option(
    "--out",
    required=True,
    type=click.Path(file_okay=False, path_type=Path),
    help=f"Folder for {LIBRARY} and {METADATA}.",
)
@click.option("--target", default="llvm", help="TVM target [default: llvm, this processor].")
@click.option(
    "--shape",
    "shapes",
    metavar="NAME=1x3x224x224",
    multiple=True,
    help="Shape of an input with symbolic dimensions; again for a further one.",
)
@click.option(
    "--check/--no-check",
    default=None,
    help="Compare with ONNX Runtime on random inputs [default: where it is installed and the "
    "library can run].",
)
@click.option(
    "--cpp/--no-cpp",
    default=True,
    help="Write a C++ project around the library to the folder cpp in --out [default: yes].",
)
@click.option("--json", "as_json", is_flag=True, help=f"Print {METADATA} on standard output only.")
def main(
    file: Path,
    out: Path,
    target: str,
    shapes: tuple[str, ...],
    check: bool | None,
    cpp: bool,
    as_json: bool,
) -> None:
    """Compile an ONNX model with current TVM to a library.

    The library is called by tvm.runtime.load_module and relax.VirtualMachine, its inputs in the
    order of model.json, or from C++ by the project in cpp, which CMake builds. Exit code 0 if it
    was compiled and, where checked, computes what ONNX Runtime computes; 1 if not, 2 for a mistake
    in what was asked.
    """
    from tvm_practice import engines

    given = dict(map(_parse_shape, shapes))
    try:
        if not file.is_file():
            problem = "it is a folder" if file.is_dir() else "no such file"
            click.echo(f"compile_onnx: {file}: {problem}", err=True)
            sys.exit(2)
        metadata = run(file, out, target=target, shapes=given, checked=check, quiet=as_json)
        if cpp:
            write_project(out)
    except engines.RemoteError as error:
        click.echo(f"compile_onnx: {error.line}", err=True)
        sys.exit(1)
    except engines.PlainError as error:
        click.echo(f"compile_onnx: {error}", err=True)
        sys.exit(error.exit_code)
    except OSError as error:
        click.echo(f"compile_onnx: {error}", err=True)
        sys.exit(1)
    except KeyboardInterrupt:
        click.echo("\nstopped", err=True)
        sys.exit(130)
    click.echo(json.dumps(metadata, indent=2)) if as_json else _print(metadata, out, cpp=cpp)
    sys.exit(1 if metadata["check"]["status"] == "failed" else 0)


def run(
    file: Path,
    out: Path,
    *,
    target: str,
    shapes: dict[str, list[int]],
    checked: bool | None,
    quiet: bool,
) -> dict[str, Any]:
    """Compile, check, write `out`/model.json, and return what is in it.

    Args:
        file: the ONNX file.
        out: folder; made if it is not there.
        target: see `targets.resolve_target`.
        shapes: extents by input, for inputs with symbolic dimensions.
        checked: whether to compare with ONNX Runtime; None: if it is installed.
        quiet: send what the child prints to standard error.

    Raises:
        engines.EngineError: as `engines.Session.call` does, or where a package is missing.
    """
    from tvm_practice import engines
    from tvm_practice.tvm_export.baselines import onnx_missing
    from tvm_practice.tvm_export.writing import write_json

    if missing := onnx_missing(["onnx"] + ["onnxruntime"] * bool(checked)):
        raise engines.EngineError(missing)
    if checked is False:
        judged: dict[str, Any] = {"status": "off", "reason": "--no-check"}
    elif reason := onnx_missing(["onnxruntime"]):
        judged = {"status": "off", "reason": reason}
    else:
        judged = {"status": "to do"}
    module = "tvm_practice.compile_onnx"
    arguments = {"file": str(file), "out": str(out), "shapes": shapes, "target": target}
    with engines.Session(engines.CURRENT, output=sys.stderr if quiet else None) as session:
        compiled = session.call(f"{module}:compile_file", arguments)
        if judged["status"] == "to do" and compiled["not_runnable"]:
            judged = {"status": "off", "reason": compiled["not_runnable"]}
        if judged["status"] == "to do":
            library = str((out / LIBRARY).resolve())
            given = {"file": arguments["file"], "library": library, "inputs": compiled["inputs"]}
            given["target"] = compiled["target"]
            try:
                judged = session.call(f"{module}:check", given)
            except engines.EngineError as error:  # a target that is not this machine's, say
                reason = str(error).strip().splitlines()[-1]
                judged = {"status": "failed", "reason": f"the check did not end: {reason}"}
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


def _parse_shape(text: str) -> tuple[str, list[int]]:
    name, equals, extents = text.rpartition("=")  # a name may have a "=" of its own
    if not (equals and name and re.fullmatch(r"[1-9]\d*(x[1-9]\d*)*", extents)):
        raise click.UsageError(f"--shape {text!r} is not of the form NAME=1x3x224x224")
    return name, [int(each) for each in extents.split("x")]


def _version(package: str) -> str | None:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def _print(metadata: dict[str, Any], out: Path, *, cpp: bool) -> None:
    for kind in ("input", "output"):
        for each in metadata[f"{kind}s"]:
            shape = "×".join(map(str, each["shape"])) or "scalar"
            click.echo(f"{kind:8}{each['name']}  {shape}  {each['dtype']}")
    click.echo(f"target  {metadata['target']}")
    judged = metadata["check"]
    if judged["status"] == "ok":
        click.echo(f"check   as ONNX Runtime, largest error {judged['max_error']:.2g}")
    elif judged["status"] == "off":
        click.echo(f"check   off: {judged['reason']}")
    else:
        click.echo(f"check   FAILED: {judged['reason']}")
    click.echo(f"written {out / LIBRARY}, {out / METADATA}")
    if cpp:
        click.echo(f"C++     cmake -S {out / PROJECT} -B {out / PROJECT / 'build'}")


if __name__ == "__main__":
    main()
