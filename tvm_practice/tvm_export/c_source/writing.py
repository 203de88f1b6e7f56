"""The folder of a model as C: the driver, the compiled functions, the weights, a program."""

import re
import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tvm_practice.tvm_export.c_source.kernels import compile_kernels
from tvm_practice.tvm_export.c_source.program import ALIGNMENT, Program, Tensor, program_of
from tvm_practice.tvm_export.errors import BadInput

_HERE = Path(__file__).parent
RUNTIME = ("model_runtime.h", "model_runtime.c")
_TYPES = {
    **{f"{sign}int{bits}": f"{sign}int{bits}_t" for sign in ("", "u") for bits in (8, 16, 32, 64)},
    "bool": "uint8_t",
    "float32": "float",
    "float64": "double",
    "float16": "uint16_t",
    "bfloat16": "uint16_t",
}
_NOTES = {"bool": "0 or 1", "float16": "bits of float16", "bfloat16": "bits of bfloat16"}


@dataclass(frozen=True)
class Written:
    """A folder of C that was written.

    Attributes:
        folder: where.
        name: of the model: of its files and functions.
        program: what its function does.
    """

    folder: Path
    name: str
    program: Program

    @property
    def sources(self) -> list[Path]:
        """What a C compiler makes the program of."""
        names = ("main.c", f"{self.name}.c", RUNTIME[1], f"{self.name}_kernels.o")
        return [self.folder / each for each in names]

    @property
    def weights(self) -> Path:
        """The file of weights."""
        return self.folder / f"{self.name}.weights"


def name_of(folder: Path) -> str:
    """The name of a model whose C goes to `folder`: the folder's, as an identifier."""
    name = re.sub(r"\W", "_", folder.resolve().name, flags=re.ASCII)
    return name if re.match(r"[A-Za-z]", name) else f"model_{name}".rstrip("_")


def require_free(folder: Path) -> None:
    """Raise BadInput if `folder` holds anything but a model's C of the same name."""
    if folder.exists() and not folder.is_dir():
        raise BadInput(f"--c-source: {folder} is no folder")
    if folder.is_dir():
        for each in sorted(folder.iterdir()):
            if each.name not in _names(name_of(folder)):
                raise BadInput(f"--c-source: {folder} holds {each.name}, which is no model's C")


def write(module: Any, target: Any, names: tuple[str, ...], folder: Path, *, name: str) -> Written:
    """Write a model's C to a folder that is there.

    Args:
        module: a Relax module whose PrimFuncs are scheduled.
        target: a tvm.target.Target of the kind llvm.
        names: of main's inputs.
        folder: its files are written over.
        name: of the model.

    Raises:
        BadInput: the model cannot be written as C; see `program.program_of`.
        OSError: the folder cannot be written.
    """
    program = program_of(module, target)
    prefix = f"{name}_k_"
    kernels = compile_kernels(program.functions, target, prefix=prefix)
    written = Written(folder, name, program)
    kernels.write_to_file(str(folder / f"{name}_kernels.o"), "o")
    with written.weights.open("wb") as stream:
        for offset, content in program.constants:
            stream.seek(offset)
            stream.write(content.data)
        stream.truncate(program.weights)
    for each in RUNTIME:
        shutil.copyfile(_HERE / each, folder / each)
    _render(written, names, prefix, str(target.attrs.get("mtriple", "this machine")))
    return written


def publish(made: Path, folder: Path) -> None:
    """Put the files of one folder in place of those of another, each of them whole."""
    folder.mkdir(parents=True, exist_ok=True)
    for each in sorted(made.iterdir()):
        each.replace(folder / each.name)


def making(folder: Path) -> tempfile.TemporaryDirectory[str]:
    """A folder for `write`, on the file system that `folder` is on."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    return tempfile.TemporaryDirectory(dir=folder.parent, prefix=f".{folder.name}-")


def _names(name: str) -> tuple[str, ...]:
    """Of the files in a folder of C."""
    own = (f"{name}.h", f"{name}.c", f"{name}_kernels.o", f"{name}.weights")
    return (*own, "main.c", *RUNTIME)


def _render(written: Written, names: tuple[str, ...], prefix: str, target: str) -> None:
    import jinja2

    program, name = written.program, written.name
    counts = {each.function: len(each.arguments) for each in program.calls if each.function}
    arguments = [*_described(program.inputs, names), *_described(program.outputs)]
    given = {
        "name": name,
        "guard": f"{name.upper()}_H",
        "target": target,
        "kernels": f"{name}_kernels.o",
        "weights": program.weights,
        "workspace": program.workspace,
        "alignment": ALIGNMENT,
        "arguments": arguments,
        "functions": [
            {"symbol": f"{prefix}{each}", "count": count} for each, count in sorted(counts.items())
        ],
        "calls": [
            {
                "symbol": f"{prefix}{each.function}" if each.function else None,
                "given": [_place(one, arguments, len(program.inputs)) for one in each.arguments],
                "bytes": each.arguments[0].nbytes,
            }
            for each in program.calls
        ],
    }
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(_HERE),
        autoescape=False,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        undefined=jinja2.StrictUndefined,
    )
    for template, file in (
        ("model.h.j2", f"{name}.h"),
        ("model.c.j2", f"{name}.c"),
        ("main.c.j2", "main.c"),
    ):
        text = environment.get_template(template).render(given)
        (written.folder / file).write_text(text, encoding="utf-8")


def _described(
    tensors: tuple[Tensor, ...], names: tuple[str, ...] | None = None
) -> Iterator[dict[str, Any]]:
    """The parameters of the model's function. A prefix keeps their names off C's own."""
    for number, each in enumerate(tensors):
        yield {
            "name": f"in_{names[number]}" if names else f"out_{number}",
            "output": names is None,
            "type": _TYPES[each.dtype],
            "note": _NOTES.get(each.dtype),
            "shape": f"({', '.join(map(str, each.shape))})",
            "count": max(1, each.nbytes // max(1, _itemsize(each))),
        }


def _itemsize(tensor: Tensor) -> int:
    from tvm_practice.tvm_export.c_source.program import bytes_of

    return bytes_of((), tensor.dtype)


def _place(tensor: Tensor, arguments: list[dict[str, Any]], inputs: int) -> str:
    """A tensor's address as C."""
    if tensor.kind == "workspace":
        return f"S({tensor.offset})"
    if tensor.kind == "weights":
        return f"W({tensor.offset})"
    number = tensor.offset + (inputs if tensor.kind == "output" else 0)
    return f"(void*){arguments[number]['name']}"
