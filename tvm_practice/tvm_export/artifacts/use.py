"""Calls of an artifact with arrays from files: run it, time it, see where its time and memory go.

The command line `tvm_practice.artifact` calls these in a process of the artifact's engine. None
needs PyTorch.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from tvm_practice.engines import CLASSIC, Engine
from tvm_practice.tvm_export.artifacts.files import load_artifacts, require_writable
from tvm_practice.tvm_export.artifacts.packing import SINGLE, opened, pack
from tvm_practice.tvm_export.artifacts.whole import fingerprint, read_metadata, require_whole
from tvm_practice.tvm_export.errors import BadInput
from tvm_practice.tvm_export.graph_module import GraphModule
from tvm_practice.tvm_export.inputs import Input, drawn, fitted, read_npz


def described(artifact: Path, *, sha256: str | None = None) -> dict[str, Any]:
    """What metadata.json of an artifact holds, once all files are found whole.

    Loads no native code and no TVM.

    Args:
        artifact: a folder, or a single file.
        sha256: what its digest must be, see `load_artifacts`.

    Raises BadInput for a path that is no artifact, or is damaged, or has another digest.
    """
    with _in_a_line(artifact), opened(artifact, sha256=sha256) as folder:
        metadata = read_metadata(folder)
        require_whole(folder, metadata)
        return metadata


def engine_of(artifact: Path, *, sha256: str | None = None) -> Engine:
    """The engine that runs an artifact; see `described`."""
    engine: Engine = described(artifact, sha256=sha256)["engine"]
    return engine


def packed(folder: Path, file: Path | None = None) -> dict[str, Any]:
    """Write the artifact in a folder to a single file.

    Args:
        folder: of the artifact.
        file: to write; None: model.tvmp in the folder.

    Returns:
        {"file", "bytes", "sha256"}.

    Raises:
        BadInput: for the artifact, or a file that cannot be written.
        Missing, DoesNotCompile: see `packing.pack`.
    """
    file = file or folder / SINGLE
    with _in_a_line(folder):
        if not folder.is_dir():
            raise BadInput(f"{folder}: not a folder")
        require_writable(file.parent, f"{file.name} ")
        file.parent.mkdir(parents=True, exist_ok=True)
        return {"file": str(pack(folder, file)), **fingerprint(file)}


def run(artifact: str, inputs: str, outputs: str, *, sha256: str | None = None) -> dict[str, Any]:
    """Call the artifact once, arrays from a file, and write its outputs to another.

    Args:
        artifact: a folder, or a single file.
        inputs: an .npz file of its inputs by name.
        outputs: the .npz file to write: output_0, output_1, … in the model's order. numpy has no
            bfloat16: such outputs are written as float32, which holds all its values.
        sha256: see `described`.

    Returns:
        {"outputs": [{"name", "shape", "dtype"}]}, types as the model gives them.

    Raises BadInput for the artifact, for inputs that are not the model's, or if `outputs` cannot
    be written.
    """
    module, _ = _ready(artifact, sha256, inputs)
    found = {f"output_{index}": each for index, each in enumerate(module.outputs())}
    arrays = {
        name: each.astype("float32") if str(each.dtype) == "bfloat16" else each
        for name, each in found.items()
    }
    try:
        with Path(outputs).open("wb") as stream:
            np.savez(stream, **arrays)  # type: ignore[arg-type]  # given a name, it would add .npz
    except OSError as error:
        raise BadInput(f"cannot write {outputs}: {error.strerror or error}") from None
    return {
        "outputs": [
            {"name": name, "shape": list(each.shape), "dtype": str(each.dtype)}
            for name, each in found.items()
        ]
    }


def bench(
    artifact: str,
    inputs: str | None = None,
    *,
    extents: Mapping[str, int] | None = None,
    warmup: int,
    repeats: int,
    sha256: str | None = None,
) -> dict[str, Any]:
    """The artifact's latency in milliseconds; see `measure.Latency`.

    Args:
        artifact: a folder, or a single file.
        inputs: an .npz file of its inputs; None: drawn ones, see `inputs.drawn`.
        extents: of drawn inputs, where the model leaves some open.
        warmup: calls that are not kept.
        repeats: calls that are.
        sha256: see `described`.
    """
    module, _ = _ready(artifact, sha256, inputs, extents)
    return module.benchmark(warmup=warmup, repeats=repeats)


def profile(
    artifact: str,
    inputs: str | None = None,
    *,
    extents: Mapping[str, int] | None = None,
    runs: int,
    sha256: str | None = None,
) -> dict[str, Any]:
    """Where one call's time and memory go, and what made each function.

    Args:
        artifact, inputs, extents, sha256: as for `bench`.
        runs: calls that are timed.

    Returns:
        {"operators": [{"name", "calls", "milliseconds", "share", "made_by": "record", "rule",
        "fallback" or None, "rule": the default rule's name or None}], most time first,
        "memory": {"inputs", "outputs": bytes, "storages": [{"bytes", "function": the first that
        runs after the allocation}]}}.
    """
    from tvm_practice.tvm_export import profiling

    module, arrays = _ready(artifact, sha256, inputs, extents)
    outputs = module.outputs()
    if module.engine == CLASSIC:
        operators = profiling.profile_graph(module.runner, runs=runs)
        storages = profiling.graph_storages(module.graph_json)
    else:
        operators = profiling.profile_operators(module.runner, runs=runs)
        storages = profiling.machine_storages(module.runner)
    return {
        "operators": [each.to_dict() | _maker(module, each.name) for each in operators],
        "memory": {
            "inputs": sum(each.nbytes for each in arrays.values()),
            "outputs": sum(each.nbytes for each in outputs),
            "storages": [each.to_dict() for each in storages],
        },
    }


def _maker(module: GraphModule, name: str) -> dict[str, str | None]:
    from tvm_practice.tvm_export.profiling import plain_name

    plain = plain_name(name)
    return {"made_by": module.made_by.get(plain), "rule": module.rules.get(plain)}


def _ready(
    artifact: str,
    sha256: str | None,
    inputs: str | None,
    extents: Mapping[str, int] | None = None,
) -> tuple[GraphModule, dict[str, np.ndarray]]:
    """The loaded artifact after one call, and the inputs of that call."""
    with _in_a_line(Path(artifact)):
        module = load_artifacts(artifact, sha256=sha256)
    if inputs is None:
        arrays = drawn(module.inputs, extents or {})
    else:
        arrays = _read(Path(inputs), module.inputs)
    for name, array in arrays.items():
        module.set_input(name, array)
    try:
        module.run()
    except (IndexError, ZeroDivisionError) as error:
        raise BadInput(f"the model refuses its inputs: {error}") from None
    return module, arrays


def _read(file: Path, wanted: tuple[Input, ...]) -> dict[str, np.ndarray]:
    """The model's inputs of a file. Raises BadInput."""
    arrays, names = read_npz(file), [each.name for each in wanted]
    if arrays.keys() != set(names):
        held = ", ".join(sorted(arrays)) or "nothing"
        raise BadInput(f"{file} holds {held}; the model's inputs are {', '.join(names)}")
    return {each.name: fitted(each, arrays[each.name]) for each in wanted}


@contextmanager
def _in_a_line(artifact: Path) -> Iterator[None]:
    """Raise what is wrong with an artifact's files as BadInput."""
    if not (artifact.is_dir() or artifact.is_file()):
        there = artifact.exists()
        said = "neither a folder nor a file" if there else "no such folder or file"
        raise BadInput(f"{artifact}: {said}")
    try:
        yield
    except FileNotFoundError as error:
        raise BadInput(f"{artifact} is not a whole export: {error.filename} is missing") from None
    except BadInput:
        raise
    except (ValueError, OSError) as error:
        raise BadInput(str(error)) from None
