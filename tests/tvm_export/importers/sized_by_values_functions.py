"""Functions that test_sized_by_values.py calls in a child process, on the current engine."""

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F

WEIGHT = torch.arange(15.0).reshape(3, 5) / 7 - 1
X = (torch.arange(20.0).reshape(4, 5) * 7 % 11 - 5) / 2
# What the compiled models are called with: as many elements are above 0 as in the example, others,
# none, and all.
CALLS = (X, -X.flip(0), torch.zeros(4, 5), torch.ones(4, 5))


def _doubled_where_above(x: torch.Tensor) -> torch.Tensor:
    mask, made = x > 0, x.clone()
    made[mask] = made[mask] * 2
    return made


def _rows_turned(x: torch.Tensor) -> torch.Tensor:
    mask, made = x[:, 0] > 0, x.clone()
    made[mask] = made[mask].flip(1)
    return made


def _put_in_order(x: torch.Tensor) -> torch.Tensor:
    made = x.clone()
    made[torch.nonzero(x[:, 0] > 0)[:, 0]] = 7
    return made


def _first(x: torch.Tensor) -> torch.Tensor:
    return x.reshape(-1)[: (x > 0).sum().item()]


def _every_second(x: torch.Tensor) -> torch.Tensor:
    return x.reshape(-1)[(x[0] > 0).sum().item() : (x > 0).sum().item() : 2]


def _above(x: torch.Tensor) -> torch.Tensor:
    return x[x[:, 0] > 0]


MODELS: dict[str, Callable[[torch.Tensor], Any]] = {
    "indices": lambda x: torch.nonzero(x > 0),
    "indices of numbers": torch.argwhere,
    "indices by axis": lambda x: x[torch.nonzero(x > 0, as_tuple=True)],
    "elements": lambda x: x[x > 0] * 2,
    "rows": _above,
    "rows and columns": lambda x: _above(x)[:, x[0] > 0],
    "selected": lambda x: torch.masked_select(x[0], x > 0),
    "layers": lambda x: F.relu(F.linear(_above(x), WEIGHT)).softmax(-1),
    "joined": lambda x: torch.cat([_above(x), x]).mean(0),
    "sorted": lambda x: x[x > 0].sort()[0].cumsum(0),
    "written": _doubled_where_above,
    "rows written": _rows_turned,
    "written in order": _put_in_order,
    "divided by counts": lambda x: (
        x / torch.bincount((x[0] > 0).long(), minlength=4).clamp(min=1)[:, None]
    ),
    "distinct": lambda x: torch.unique(x, return_inverse=True, return_counts=True),
    "distinct columns": lambda x: torch.unique(x, True, True, True, dim=1),
    "runs": lambda x: torch.unique_consecutive(x > 0, True, True),
    "runs of rows": lambda x: torch.unique_consecutive(x > 0, True, True, dim=0),
    "repeated": lambda x: x.repeat_interleave((x[:, 0] > 0).long() * 2, dim=0),
    "counted": lambda x: torch.bincount((x * 2 + 5).abs().reshape(-1).long(), minlength=3),
    "weighed": lambda x: torch.bincount((x > 0).reshape(-1).long(), weights=x.reshape(-1)),
    "first": _first,
    "every second": _every_second,
    "made": lambda x: torch.arange((x > 0).sum().item()) * 2,
}


class Model(torch.nn.Module):
    def __init__(self, name: str = "layers"):
        super().__init__()
        self.name = name

    def forward(self, x: torch.Tensor) -> Any:
        return MODELS[self.name](x)


def compiled(name: str) -> list[str]:
    """What differs from PyTorch when a model is called with more or fewer than in its example."""
    from tvm_practice.tvm_export import ExportConfig, compile_pytorch_module

    model = Model(name).eval()
    run = compile_pytorch_module(model, ExportConfig(example_input=(X,)))
    return [said for x in CALLS if (said := _difference(run(x), model(x)))]


class _OpenRows(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return F.linear(_above(x), WEIGHT), torch.unique(x[:, 1])


class _OpenRowsAndColumns(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        rest = x.reshape(-1)[(x > 0).sum().item() :]
        return x[x > 0].cumsum(0), torch.nonzero(x), x[:, x[0] > 0], rest


def of_open_extents() -> list[str]:
    """The same of models that take any number of rows, and of columns."""
    from tvm_practice.tvm_export import ExportConfig, compile_pytorch_module

    said = []
    models = (_OpenRows(), ("rows", 5)), (_OpenRowsAndColumns(), ("rows", "columns"))
    for model, shape in models:
        config = ExportConfig(example_input={"x": X}, input_shapes={"x": shape})
        run = compile_pytorch_module(model, config)
        calls = [*CALLS, X[:1], torch.cat([X, X, -X]), *[X[:, :3]] * ("columns" in shape)]
        said += [_difference(run(x), model(x)) for x in calls]
    return [each for each in said if each]


class _Put(torch.nn.Module):
    def forward(
        self, mask: torch.Tensor, columns: torch.Tensor, values: torch.Tensor
    ) -> torch.Tensor:
        return torch.zeros(5, 3).index_put((mask, columns), values)


def of_another_size() -> str:
    """The line for a mask that is true once, and three times where torch.export has seen it."""
    from tvm_practice.tvm_export import ExportConfig, compile_pytorch_module

    columns, values = torch.tensor([0, 1, 2]), torch.rand(3)
    example = (torch.tensor([True, False, True, False, True]), columns, values)
    model = _Put()
    run = compile_pytorch_module(model, ExportConfig(example_input=example), verify=False)
    assert not _difference(run(*example), model(*example))
    try:
        run(torch.arange(5) == 2, columns, values)
    except ValueError as error:
        return str(error)
    return "no error"


def written(folder: str) -> list[str]:
    """The same of an artifact that is written and loaded."""
    from tvm_practice.tvm_export import (
        ExportConfig,
        compile_pytorch_module,
        export_artifacts,
        load_artifacts,
    )

    model = Model().eval()
    export_artifacts(compile_pytorch_module(model, ExportConfig(example_input=(X,))), folder)
    run = load_artifacts(folder)
    return [said for x in CALLS if (said := _difference(run(x.numpy()), model(x)))]


def _difference(got: Any, expected: Any) -> str:
    wanted = expected if isinstance(expected, tuple) else (expected,)
    try:
        for ours, theirs in zip(got, wanted, strict=True):
            torch.testing.assert_close(torch.as_tensor(ours), theirs)
    except AssertionError as error:
        return str(error)
    return ""
