"""Models with `scan` and `map`, in a process that has the current engine."""

from collections.abc import Callable
from typing import Any

import torch
from torch import nn
from torch._higher_order_ops import map as typed_map
from torch._higher_order_ops.scan import scan

map_rows: Callable[..., Any] = typed_map  # its type allows tuples alone


class _Model(nn.Module):
    def __init__(self, loop: Callable[..., Any]):
        super().__init__()
        self._loop = loop
        self.layer = nn.Linear(4, 4)

    def forward(self, x: torch.Tensor) -> Any:
        return self._loop(self, x)


def _recurrent(model: Any, x: torch.Tensor) -> Any:
    def step(state: torch.Tensor, row: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        state = torch.tanh(model.layer(state) + row)
        return state, state.sum(-1)

    return scan(step, x.new_zeros(3, 4), x)


def _backwards(_: Any, x: torch.Tensor) -> Any:
    def step(carried: dict[str, torch.Tensor], row: torch.Tensor) -> Any:
        total, count = carried["total"] + row, carried["count"] + 1
        return {"total": total, "count": count}, {"mean": total / count}

    start = {"total": torch.zeros(5, 4), "count": torch.zeros(())}
    return scan(step, start, x, dim=1, reverse=True)


def _rows(model: Any, x: torch.Tensor) -> Any:
    return map_rows(lambda row, add: (model.layer(row).relu(), row + add), x, 2 * x[0])


def _nested(_: Any, x: torch.Tensor) -> Any:
    def step(carried: torch.Tensor, row: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return carried + map_rows(lambda part: part.cumsum(0), row), carried * row

    return scan(step, torch.ones(3, 4), x)


_FORMS: dict[str, Callable[..., Any]] = {
    "a recurrence": _recurrent,
    "backwards along an inner axis": _backwards,
    "rows of two results": _rows,
    "a map in a scan": _nested,
}


def errors() -> dict[str, float]:
    """By form, the largest difference to PyTorch."""
    from torch.utils import _pytree as pytree

    from tvm_practice.tvm_export import ExportConfig, compile_pytorch_module

    found = {}
    for name, loop in _FORMS.items():
        torch.manual_seed(0)
        example, model = torch.randn(5, 3, 4), _Model(loop).eval()
        built = compile_pytorch_module(model, ExportConfig(example_input=example), verify=False)
        outputs = [torch.as_tensor(each) for each in built(example.numpy())]
        with torch.no_grad():
            expected = pytree.tree_leaves(model(example))
        found[name] = max(
            float((output - one).abs().max()) for output, one in zip(outputs, expected, strict=True)
        )
    return found


def refusals() -> list[str]:
    """What is said of a loop of too many steps, and of an open number of them."""
    from tvm_practice.tvm_export import ExportConfig, compile_pytorch_module
    from tvm_practice.tvm_export.errors import BadInput

    said = []
    open_rows: dict[str, tuple[int | str, ...]] = {"x": ("n", 3, 4)}
    for rows, shapes in ((300, None), (5, open_rows)):
        example, model = torch.randn(rows, 3, 4), _Model(_recurrent).eval()
        config = ExportConfig(example_input=example, input_shapes=shapes)
        try:
            compile_pytorch_module(model, config)
        except BadInput as error:
            said.append(str(error))
    return said
