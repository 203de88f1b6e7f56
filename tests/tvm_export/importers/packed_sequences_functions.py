"""Models of packed sequences, in a process that has an engine."""

from typing import Any

import numpy as np
import torch
from torch import nn
from torch.nn.utils import rnn

from tvm_practice import engines
from tvm_practice.tvm_export import ExportConfig, compile_pytorch_module
from tvm_practice.tvm_export.nested import flattened


class _Encoder(nn.Module):
    """A recurrent layer of sequences with lengths, and what it is called with and asked for."""

    def __init__(
        self, kind: str, *, total: int | None = None, ordered: bool = False, **settings: Any
    ):
        super().__init__()
        self.layer = getattr(nn, kind)(5, 9, batch_first=True, **settings)
        self.total, self.ordered = total, ordered

    def forward(self, x: torch.Tensor, lengths: Any) -> Any:
        packed = rnn.pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=self.ordered)
        outputs, states = self.layer(packed)
        padded, found = rnn.pad_packed_sequence(
            outputs, batch_first=True, padding_value=-3.0, total_length=self.total
        )
        return padded, found, states


class _OfRows(nn.Module):
    """What has a packed sequence's rows for its own, with the lengths of the example."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.layer = nn.Linear(5, 6), nn.GRU(6, 7)

    def forward(self, x: torch.Tensor) -> Any:
        packed = rnn.pack_padded_sequence(x, [4, 3, 1])
        data = self.first(packed.data).relu()
        packed = rnn.PackedSequence(data, packed.batch_sizes)
        outputs, state = self.layer(packed)
        return rnn.pad_packed_sequence(outputs)[0], state


def errors(engine: engines.Engine) -> dict[str, float]:
    """By model, the largest difference to PyTorch's outputs for four batches of lengths."""
    models = {"RNN of both directions": _Encoder("RNN", total=4, bidirectional=True)}
    if engine == "current":
        models |= {
            "RNN in order": _Encoder("RNN", total=5, ordered=True),
            "LSTM of layers": _Encoder("LSTM", num_layers=2, bidirectional=True),
            "GRU": _Encoder("GRU", bias=False),
            "LSTM in bfloat16": _Encoder("LSTM", total=4).bfloat16(),
        }
    torch.manual_seed(0)
    found = {}
    for name, model in models.items():
        dtype = model.layer.weight_ih_l0.dtype
        given = torch.randn(3, 4, 5, dtype=dtype), torch.tensor([4, 3, 1])
        compiled = _compiled(model, given, engine)
        found[name] = 0.0
        for lengths in ([4, 3, 1], [3, 3, 2], [1, 1, 1], [2, 4, 3]):
            if not (model.ordered and lengths != sorted(lengths, reverse=True)):
                batch = torch.randn(3, 4, 5, dtype=dtype), torch.tensor(lengths)
                for row, length in zip(batch[0], lengths, strict=True):
                    row[length:] = float("nan")
                found[name] = max(found[name], _difference(model, compiled, batch))
    if engine == "current":
        rows, x = _OfRows(), torch.randn(4, 3, 5)
        found["of rows"] = _difference(rows, _compiled(rows, (x,), engine), (x + 1,))
    return found


def _compiled(model: nn.Module, given: tuple[Any, ...], engine: engines.Engine) -> Any:
    config = ExportConfig(example_input=given, engine=engine, target="llvm")
    return compile_pytorch_module(model.eval(), config)


def _difference(model: nn.Module, compiled: Any, given: tuple[torch.Tensor, ...]) -> float:
    with torch.no_grad():
        expected = [each.float().numpy() for each in flattened(model(*given))]
    found = [np.asarray(each, "float32") for each in compiled(*given)]
    pairs = zip(found, expected, strict=True)
    return max(float(np.abs(one - other).max()) for one, other in pairs)
