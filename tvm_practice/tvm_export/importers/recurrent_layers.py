"""torch.nn's LSTM, GRU and RNN exported as one operator for all of their steps.

PyTorch writes out each step when it exports them: a thousand steps made a module of tens of
thousands of operators, minutes of compilation, and gigabytes. It also fixes the number of steps.
"""

import functools
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

OPERATOR = "tvm_practice::recurrent_layers"
CONVERTED = "recurrent_layers.default"
"""The name that converters know it by."""
CELLS = ("lstm", "gru", "rnn_tanh", "rnn_relu")
_POSITIONAL = 9  # arguments of a call whose input is not packed


@contextmanager
def whole_recurrences() -> Iterator[None]:
    """Inside the block, torch.nn's recurrent layers call `OPERATOR`.

    Those of other types than float32 and float64, of packed sequences (for which there is
    `packed_sequences`), and with projections or dropout stay as they are.
    """
    import torch

    whole = recurrent_layers_operator()
    functions: Any = torch._VF
    kept = {cell: getattr(functions, cell) for cell in CELLS}

    def calling(cell: str) -> Callable[..., Any]:
        @functools.wraps(kept[cell])
        def call(*args: Any) -> Any:
            if not _is_plain(args):
                return kept[cell](*args)
            x, state, weights, biases, layers, _, _, both, batch_first = args
            states = list(state) if cell == "lstm" else [state]
            return tuple(whole(cell, x, states, weights, biases, layers, both, batch_first))

        return call

    try:
        for cell in CELLS:
            setattr(functions, cell, calling(cell))
        yield
    finally:
        for cell in CELLS:
            setattr(functions, cell, kept[cell])


def _is_plain(args: tuple[Any, ...]) -> bool:
    """Whether the operator takes a call's arguments."""
    if len(args) != _POSITIONAL or not isinstance(args[3], bool):
        return False  # packed sequences
    x, _, weights, biases, layers, dropout, training, both, _ = args
    return is_plain_layer(x, weights, biases, layers, dropout, training, both)


def is_plain_layer(
    x: Any,
    weights: Sequence[Any],
    biases: bool,
    layers: int,
    dropout: float,
    training: bool,
    both: bool,
) -> bool:
    """Whether the operator computes layers of these arguments of torch.lstm."""
    import torch

    if x.dtype not in (torch.float32, torch.float64) or (dropout and training):
        return False
    return len(weights) == layers * (1 + both) * 2 * (1 + biases)  # without projections


@functools.cache
def recurrent_layers_operator() -> Any:
    """`OPERATOR`, of all layers and directions of one of `CELLS`.

    Its arguments are those of torch.lstm and the like, and the lengths of padded sequences
    (batch,), each of which keeps its state when it has ended. Its results: the last layer's
    outputs, those of padding undefined, and each state (layers and directions, batch, hidden size).
    """
    import torch
    from torch import library

    schema = (
        "(str cell, Tensor x, Tensor[] states, Tensor[] weights, bool biases, int layers, "
        "bool both, bool batch_first, Tensor? lengths=None) -> Tensor[]"
    )

    @library.custom_op(OPERATOR, mutates_args=(), schema=schema)
    def recurrent_layers(
        cell: Any, x: Any, states: Any, weights: Any, biases: Any, layers: Any, *last: Any
    ) -> Any:
        both, batch_first, *lengths = last
        if any(each is not None for each in lengths):
            raise NotImplementedError("padded sequences are for an export alone")
        state = states if cell == "lstm" else states[0]
        function = getattr(torch._C._VariableFunctions, cell)
        return list(function(x, state, weights, biases, layers, 0.0, False, both, batch_first))

    @recurrent_layers.register_fake
    def shapes(
        cell: Any, x: Any, states: Any, weights: Any, biases: Any, layers: int, *last: Any
    ) -> Any:
        batch_first = last[1]
        check: Any = torch._check
        # Which torch.lstm does not ask: it reads beyond its input.
        check(x.shape[-1] == weights[0].shape[1])
        check(x.shape[0 if batch_first else 1] == states[0].shape[1])
        directions = states[0].shape[0] // layers
        outputs = x.new_empty((x.shape[0], x.shape[1], directions * states[0].shape[-1]))
        return [outputs, *map(torch.empty_like, states)]

    return recurrent_layers
