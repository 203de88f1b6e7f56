"""What test_c_source.py runs in a process of the current engine: models written as C."""

from pathlib import Path
from typing import Any

import torch
from torch import nn

from tvm_practice.tvm_export import pipeline
from tvm_practice.tvm_export.c_source import checking
from tvm_practice.tvm_export.errors import ExportError
from tvm_practice.tvm_export.export import Export
from tvm_practice.tvm_export.request import ExportRequest

ROWS = 10


class Small(nn.Module):
    """A convolution, an embedding, and results that no function computes."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(ROWS, 8)
        self.convolution = nn.Conv2d(3, 8, 3, padding=1)
        self.head = nn.Linear(16, 5)

    def forward(self, image: torch.Tensor, ids: torch.Tensor) -> tuple[torch.Tensor, ...]:
        features = self.convolution(image).relu().mean((2, 3))
        joined = torch.cat([features, self.embedding(ids).sum(1)], 1)
        return self.head(joined).softmax(1), image.reshape(2, -1), self.embedding(ids) > 0


class Sorted(nn.Module):
    """Sorting is a function of TVM's runtime."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.sort(-1).values


def small() -> tuple[nn.Module, tuple[torch.Tensor, ...]]:
    torch.manual_seed(0)
    ids = torch.randint(0, ROWS, (2, 4))
    return Small().eval(), (torch.randn(2, 3, 24, 24), ids)


def sorts() -> tuple[nn.Module, tuple[torch.Tensor, ...]]:
    return Sorted(), (torch.randn(4, 8),)


def _imported(model: str, target: str, folder: Path) -> Export:
    request = ExportRequest(
        model=f"{__name__}:{model}", artifacts=folder / "artifacts", engine="current", target=target
    )
    return pipeline.import_model(pipeline.load(request))


def written(folder: str, target: str) -> dict[str, Any]:
    """`small` as C in `folder`/net: what `export_c` tells, and the outputs on its example."""
    export = _imported("small", target, Path(folder))
    checking.require_possible(export, Path(folder) / "net")
    built = pipeline.build(pipeline.schedule(export))
    found = checking.export_c(built, Path(folder) / "net", pipeline.judged)
    inputs = b"".join(each.numpy().tobytes() for each in export.call.tensors)
    with torch.no_grad():
        results = export.call.module(*export.call.tensors)
    outputs = b"".join(each.numpy().tobytes() for each in results)
    (Path(folder) / "inputs").write_bytes(inputs)
    (Path(folder) / "outputs").write_bytes(outputs)
    return found


def refusals(folder: str) -> dict[str, str]:
    """What is said of what cannot be written as C."""
    here = Path(folder)
    (here / "full").mkdir()
    (here / "full" / "thesis.tex").write_text("")
    said = {}
    for name, model, target, into in (
        ("sorts", "sorts", "llvm", here / "net"),
        ("full", "small", "llvm", here / "full"),
        ("gpu", "small", "opencl", here / "net"),
    ):
        try:
            checking.require_possible(_imported(model, target, here), into)
        except ExportError as error:
            said[name] = str(error)
    return said
