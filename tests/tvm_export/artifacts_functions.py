"""Functions that the tests of artifacts call in a child process, on either engine."""

import errno
import hashlib
import os
import shutil
import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unittest import mock

import numpy as np

from tvm_practice import engines
from tvm_practice.tvm_export.artifacts import export_artifacts, files, load_artifacts, whole
from tvm_practice.tvm_export.graph_module import GraphModule

if TYPE_CHECKING:
    import torch

MODEL = f"{__name__}:small_model"
WIDTH = 5


def small_model() -> "tuple[torch.nn.Module, tuple[torch.Tensor]]":
    """A model for `pipeline.export_model`."""
    import torch

    return torch.nn.Linear(WIDTH, 3).eval(), (torch.randn(2, WIDTH),)


@cache
def compiled(seed: int = 0, rows: int = 2) -> GraphModule:
    """The model with weights of its own for each seed."""
    import torch

    from tvm_practice.tvm_export import ExportConfig, compile_pytorch_module

    torch.manual_seed(seed)
    engine = engines.active()
    assert engine is not None
    config = ExportConfig(example_input=torch.randn(rows, WIDTH), engine=engine)
    return compile_pytorch_module(torch.nn.Linear(WIDTH, 3).eval(), config)


def _ones(rows: int = 2) -> np.ndarray:
    return np.ones((rows, WIDTH), "float32")


def expected(seed: int = 0, rows: int = 2) -> list[Any]:
    """The compiled model's output on ones, before it is written."""
    outputs: list[Any] = compiled(seed, rows)(_ones(rows))[0].tolist()
    return outputs


def export(
    folder: str,
    model: str | None = "tests:one",
    *,
    seed: int = 0,
    rows: int = 2,
    force: bool = False,
    single_file: bool = False,
    report: dict[str, Any] | None = None,
) -> list[Any]:
    """Export the model under a name; returns what `expected` does."""
    outputs = expected(seed, rows)
    named = {"model": model, **(report or {})} if model else report
    module = compiled(seed, rows)
    export_artifacts(module, folder, report=named, force=force, single_file=single_file)
    return outputs


def loaded(folder: str, sha256: str | None = None) -> list[Any]:
    """The output of what is in a folder, on ones."""
    graph_module = load_artifacts(folder, sha256=sha256)
    assert graph_module.input_names == ["input_0"]
    outputs: list[Any] = graph_module(_ones())[0].tolist()
    return outputs


def loaded_without_tools(artifact: str) -> list[Any] | str:
    """The output of an artifact on ones, or why it is not loaded where no compiler is found."""
    with mock.patch.dict(os.environ, PATH=os.devnull):
        for name in ("CC", "CXX"):
            os.environ.pop(name, None)
        try:
            module = load_artifacts(artifact)
        except ValueError as error:
            return str(error)
    outputs: list[Any] = module(_ones())[0].tolist()
    return outputs


def graph(folder: str, seed: int = 0) -> dict[str, Any]:
    """What the current engine's deploy_graph.json says of constants, and what the model has.

    Returns:
        {"inputs": how many, "input": the first one's name, "parameters": {name: shape} of main's,
        "constants": {name: SHA-256}, "expected": SHA-256 of the model's own, a weight's
        transposed too}.
    """
    import tvm

    graph_module = compiled(seed)
    main = tvm.ir.load_json((Path(folder) / whole.GRAPH).read_text())["main"]
    return {
        "inputs": int(main.attrs["num_input"]),
        "input": str(main.params[0].name),
        "parameters": {
            str(each.name): [int(extent) for extent in each.ty.shape] for each in main.params
        },
        "constants": {str(name): str(digest) for name, digest in main.attrs["constants"].items()},
        "expected": _digests(seed),
        "weight_bytes": graph_module.weight_bytes,
    }


def _digests(seed: int) -> list[str]:
    import torch

    torch.manual_seed(seed)
    torch.randn(2, WIDTH)
    layer = torch.nn.Linear(WIDTH, 3)
    arrays = [each.detach().numpy() for each in (layer.weight, layer.weight.T, layer.bias)]
    return [hashlib.sha256(np.ascontiguousarray(each).tobytes()).hexdigest() for each in arrays]


def failing(folder: str, how: str, step: int = 0, seed: int = 1) -> str:
    """An export in which something goes wrong: the error, as its type and its message.

    Args:
        folder: where to.
        how: what goes wrong, one of the functions below.
        step: at which move of a file, for those that tell.
        seed: of the model's weights.
    """
    graph_module = compiled(seed)
    try:
        with globals()[f"_{how}"](graph_module, step):
            export_artifacts(graph_module, folder, report={"model": "tests:one"})
    except (OSError, RuntimeError, KeyboardInterrupt) as error:
        return f"{type(error).__name__}: {error}"
    return "no error"


@contextmanager
def _read_only(graph_module: GraphModule, step: int) -> Iterator[None]:
    make = tempfile.mkdtemp

    def made(suffix: str | None = None, prefix: str | None = None, dir: Any = None) -> str:
        if dir is None:  # in the system's folder
            return make(suffix, prefix)
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))

    with mock.patch("tempfile.mkdtemp", made):
        yield


@contextmanager
def _full_disk(graph_module: GraphModule, step: int) -> Iterator[None]:
    full = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    with mock.patch.object(Path, "write_text", side_effect=full):
        yield


@contextmanager
def _no_room(graph_module: GraphModule, step: int) -> Iterator[None]:
    usage = shutil.disk_usage("/")._replace(free=10**6)
    with mock.patch("shutil.disk_usage", return_value=usage):
        yield


@contextmanager
def _broken_engine(graph_module: GraphModule, step: int) -> Iterator[None]:
    broken = RuntimeError("no such export")
    with (
        mock.patch.object(files, "_write_classic", side_effect=broken),
        mock.patch.object(files, "_write_current", side_effect=broken),
    ):
        yield


@contextmanager
def _moves(error: BaseException, step: int) -> Iterator[None]:
    """Raise at one of the moves, once."""
    move, count = Path.replace, Counter[str]()

    def moved(self: Path, target: Path) -> Path:
        count["moves"] += 1
        if count["moves"] == step:
            raise error
        return move(self, target)

    with mock.patch.object(Path, "replace", moved):
        yield


def _failing_move(graph_module: GraphModule, step: int) -> Any:
    return _moves(OSError(errno.EIO, os.strerror(errno.EIO)), step)


def _interrupted_move(graph_module: GraphModule, step: int) -> Any:
    return _moves(KeyboardInterrupt(), step)


def states_between_moves(folder: str) -> dict[str, int]:
    """Export over an export; how often its folder could be loaded, after each move of a file.

    A process that is killed leaves one of these. One with metadata.json beside files that are
    not its own raises ValueError.
    """
    export(folder, seed=0)
    move, seen = Path.replace, Counter[str]()

    def moved(self: Path, target: Path) -> Path:
        result = move(self, target)
        if (Path(folder) / "metadata.json").exists():
            load_artifacts(folder)
            seen["whole"] += 1
        else:
            seen["without metadata"] += 1
        return result

    with mock.patch.object(Path, "replace", moved):
        export(folder, seed=1)
    return dict(seen)


def load_error(folder: str) -> str:
    """The error with which a folder is refused, as its type and its message."""
    try:
        load_artifacts(folder)
    except (OSError, ValueError) as error:
        return f"{type(error).__name__}: {error}"
    return "no error"


def export_job(
    folder: str,
    tuner: str | None = None,
    trials: int = 0,
    *,
    reuse: bool = False,
    single_file: bool = False,
) -> dict[str, Any]:
    """What `run_autotvm` calls, on the small model."""
    from tvm_practice.tvm_export.pipeline import export_model

    asked = {"tuner": tuner, "tuning_trials": trials, "reuse": reuse, "warmup": 1, "repeats": 3}
    given = {"model": MODEL, "artifacts": folder, "single_file": single_file, **asked}
    return export_model(given)


def peak_of_writing(folder: str) -> dict[str, int]:
    """Bytes of 200 MB of weights, of their graph, and of the most memory that writing them takes.

    The compiled model, which is there before, is not counted.
    """
    import torch

    from tvm_practice.tvm_export import ExportConfig, compile_pytorch_module

    model = torch.nn.Embedding(400_000, 128).eval()
    config = ExportConfig(example_input=torch.tensor([[1, 2]]), engine=engines.active())
    built = compile_pytorch_module(model, config)
    Path("/proc/self/clear_refs").write_text("5")  # the peak begins anew
    before = _memory("VmRSS")
    export_artifacts(built, folder)
    graph = (Path(folder) / whole.GRAPH).stat().st_size
    return {"weights": built.weight_bytes, "graph": graph, "peak": _memory("VmHWM") - before}


def _memory(name: str) -> int:
    [line] = [each for each in Path("/proc/self/status").read_text().splitlines() if name in each]
    return 1024 * int(line.split()[1])
