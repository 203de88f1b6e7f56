"""Compile an ONNX or a TFLite file with current TVM: a library, its description, C++ to call it."""

import json
import re
import sys
from pathlib import Path
from typing import Any

import click

from tvm_practice.engines.command_line import Command, Folder
from tvm_practice.tvm_export.cli import child_output, one_line
from tvm_practice.tvm_export.cpp import PROJECT, write_project
from tvm_practice.tvm_export.errors import BadInput
from tvm_practice.tvm_export.importers.tflite import is_tflite, why_not_readable
from tvm_practice.tvm_export.onnx_library import LIBRARY, METADATA, compile_onnx, judge


@click.command(
    cls=Command,
    epilog="\b\nExamples:\n"
    "  python -m tvm_practice.compile_onnx model.onnx --out runs/model\n"
    "  python -m tvm_practice.compile_onnx bert.onnx --out runs/bert \\\n"
    "      --shape input_ids=1x128 --shape attention_mask=1x128\n"
    '  python -m tvm_practice.compile_onnx model.onnx --out runs/old --target "llvm '
    '-mcpu=haswell"',
)
@click.argument("file", metavar="MODEL", type=click.Path(path_type=Path))
@click.option(
    "--out",
    required=True,
    type=Folder(),
    help=f"Folder for {LIBRARY} and {METADATA}.",
)
@click.option("--target", default="llvm", help="TVM target [default: llvm, this processor].")
@click.option(
    "--shape",
    "shapes",
    metavar="NAME=1x3x224x224",
    multiple=True,
    help="Shape of an input with symbolic dimensions; repeat for each.",
)
@click.option(
    "--value",
    "values",
    metavar="NAME=0,2",
    multiple=True,
    help="Fix an input that chooses shapes (axes, a number of rows) to these numbers; the library "
    "does not take it then. Again for a further one.",
)
@click.option(
    "--check/--no-check",
    default=None,
    help="Compare with ONNX Runtime, or TFLite's interpreter, on random inputs [default: where it "
    "is installed and the library can run].",
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
    values: tuple[str, ...],
    check: bool | None,
    cpp: bool,
    as_json: bool,
) -> None:
    """Compile an ONNX model, or a TFLite one, with current TVM to a library.

    The library is called by tvm.runtime.load_module and relax.VirtualMachine, its inputs in the
    order of model.json, or from C++ by the project in cpp, which CMake builds. Exit code 0 if it
    was compiled and, where checked, computes what ONNX Runtime computes; 1 if not, 2 for a mistake
    in the request. A TFLite file needs the package tflite, and is compared with TFLite's
    interpreter (package ai-edge-litert).
    """
    from tvm_practice.tvm_export.artifacts import require_writable

    given = dict(map(_parse_shape, shapes))
    fixed = dict(map(_parse_value, values))
    with one_line("compile_onnx", stopped="\nstopped"), child_output(as_json=as_json) as output:
        if reason := _why_not_read(file):
            raise BadInput(reason)
        if fixed and is_tflite(file):
            raise BadInput("--value fixes inputs of ONNX files, and this is TFLite's")
        if not file.is_file():
            problem = "it is a folder" if file.is_dir() else "no such file"
            raise BadInput(f"{file}: {problem}")
        require_writable(out, "")
        metadata = compile_onnx(
            file,
            out,
            target=target,
            shapes=given,
            values=fixed,
            checked=check,
            output=output,
        )
        if cpp:
            write_project(out)
        click.echo(json.dumps(metadata, indent=2)) if as_json else _print(
            metadata, out, judge(file), cpp=cpp
        )
    sys.exit(1 if metadata["check"]["status"] == "failed" else 0)


def _why_not_read(file: Path) -> str | None:
    """One line for a model of a format that is not read here, and what to do; None for others."""
    if (file / "saved_model.pb").is_file():
        return _of_tensorflow(file, "--saved-model")
    if not file.is_file():
        return None
    if file.suffix in (".keras", ".h5"):
        return _of_tensorflow(file, "--keras")
    if is_stablehlo(file):
        return (
            f"{file} is StableHLO, which is not read here: TVM's importer of it has 21 operations "
            "and needs an older jaxlib; export the model to ONNX or TFLite in its framework"
        )
    return why_not_readable(file) if is_tflite(file) else None


def _of_tensorflow(file: Path, option: str) -> str:
    return (
        f"{file} is TensorFlow's, not ONNX; convert it first: python -m tf2onnx.convert {option} "
        f"{file} --output model.onnx"
    )


def is_stablehlo(file: Path) -> bool:
    """Whether a file is StableHLO: MLIR's bytecode, or a text with its operations."""
    with file.open("rb") as opened:
        begin = opened.read(4096)
    return begin.startswith(b"ML\xefR") or (b"module" in begin and b"stablehlo." in begin)


def _parse_shape(text: str) -> tuple[str, list[int]]:
    name, equals, extents = text.rpartition("=")  # a name may have a "=" of its own
    if not (equals and name and re.fullmatch(r"[1-9]\d*(x[1-9]\d*)*", extents)):
        raise click.UsageError(f"--shape {text!r} is not of the form NAME=1x3x224x224")
    return name, [int(each) for each in extents.split("x")]


def _parse_value(text: str) -> tuple[str, list[float]]:
    name, equals, numbers = text.rpartition("=")
    try:
        found = [
            float(each) if set(each) & set(".en") else int(each) for each in numbers.split(",")
        ]
    except ValueError:
        found = []
    if not (equals and name and found):
        raise click.UsageError(f"--value {text!r} is not of the form NAME=0,2")
    return name, found


def _print(metadata: dict[str, Any], out: Path, judge: str, *, cpp: bool) -> None:
    for kind in ("input", "output"):
        for each in metadata[f"{kind}s"]:
            shape = "×".join(map(str, each["shape"])) or "scalar"
            click.echo(f"{kind:8}{each['name']}  {shape}  {each['dtype']}")
    click.echo(f"target  {metadata['target']}")
    judged = metadata["check"]
    if judged["status"] == "ok":
        cosine = f", cosine {judged['cosine']:.6f}" if "cosine" in judged else ""
        click.echo(f"check   as {judge}, largest error {judged['max_error']:.2g}{cosine}")
    elif judged["status"] == "off":
        click.echo(f"check   off: {judged['reason']}")
    else:
        click.echo(f"check   FAILED: {judged['reason']}")
    click.echo(f"written {out / LIBRARY}, {out / METADATA}")
    if cpp:
        click.echo(f"C++     cmake -S {out / PROJECT} -B {out / PROJECT / 'build'}")


if __name__ == "__main__":
    main()
