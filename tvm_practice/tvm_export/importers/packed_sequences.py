"""Packed sequences (torch.nn.utils.rnn) exported with their padding.

The rows of a packed sequence are as many as its elements, which depends on the lengths' values.
Here its data has a row for each step of each sequence, padding too. Recurrent layers keep the state
of a sequence that has ended, and rows beyond its length are left out when it is padded again.
"""

import functools
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

from tvm_practice.tvm_export.importers.decompositions.sized_by_values import size_of
from tvm_practice.tvm_export.importers.recurrent_layers import (
    CELLS,
    is_plain_layer,
    recurrent_layers_operator,
)
from tvm_practice.tvm_export.importers.refusals import Refused


class _Longest(int):
    """The steps of a packed sequence, where a model asks for those of its longest one."""


class _Packed(NamedTuple):
    """What is known by a packed sequence's `batch_sizes`: of all steps, padding too."""

    batch_sizes: Any
    lengths: Any
    steps: Any
    batch: Any


@contextmanager
def padded_sequences(*, whole: bool) -> Iterator[None]:
    """Inside the block, torch.nn's packed sequences keep their padding.

    Args:
        whole: whether recurrent layers of them are one operator each; else they are written out.
    """
    import torch
    from torch.overrides import TorchFunctionMode

    functions: Any = torch._VF
    names = ("_pack_padded_sequence", "_pad_packed_sequence", *CELLS)
    kept = {name: getattr(functions, name) for name in names}
    known: dict[int, _Packed] = {}
    asked = (torch.Tensor.__getitem__, torch.Tensor.size)

    class Sizes(TorchFunctionMode):
        """Answers what torch.nn asks of `batch_sizes`: its first element, and its length."""

        def __torch_function__(
            self, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            if known and func in asked and id(args[0]) in known and args[1:] == (0,):
                packed = known[id(args[0])]
                return packed.batch if func == asked[0] else _Longest(packed.steps)
            return func(*args, **(kwargs or {}))

    def pack(x: Any, lengths: Any, batch_first: bool) -> Any:
        x = x.transpose(0, 1) if batch_first else x
        steps, batch = x.shape[:2]
        if not isinstance(steps, int):
            raise Refused("a packed sequence of an open number of steps")
        places = torch.arange(steps, device=lengths.device).unsqueeze(1)
        batch_sizes = (places < lengths).sum(1)
        known[id(batch_sizes)] = _Packed(batch_sizes, lengths, steps, batch)
        return x.reshape(steps * batch, *x.shape[2:]), batch_sizes

    def pad(data: Any, batch_sizes: Any, batch_first: bool, value: float, steps: Any) -> Any:
        packed = _found(known, batch_sizes)
        x = data.reshape(packed.steps, packed.batch, *data.shape[1:])
        places = torch.arange(packed.steps, device=data.device).unsqueeze(1)
        is_padding = places >= packed.lengths
        x = x.masked_fill(is_padding.reshape(*is_padding.shape, *[1] * (x.ndim - 2)), value)
        if isinstance(steps, _Longest):
            x = x[: size_of(packed.lengths.max())]
        else:
            more = x.new_full((steps - packed.steps, *x.shape[1:]), value)
            x = torch.cat([x, more])
        return x.transpose(0, 1) if batch_first else x, packed.lengths

    def calling(cell: str) -> Callable[..., Any]:
        @functools.wraps(kept[cell])
        def call(*args: Any) -> Any:
            if id(args[1]) not in known:
                return kept[cell](*args)
            data, batch_sizes, state, weights, biases, layers, dropout, training, both = args
            packed = known[id(batch_sizes)]
            x = data.reshape(packed.steps, packed.batch, -1)
            states = list(state) if cell == "lstm" else [state]
            given = (x, states, weights, biases, layers, both)
            if whole and is_plain_layer(x, weights, biases, layers, dropout, training, both):
                made = recurrent_layers_operator()(cell, *given, False, packed.lengths)
            else:
                made = with_ended_states_kept(cell, *given, packed.lengths)
            return made[0].reshape(packed.steps * packed.batch, -1), *made[1:]

        return call

    try:
        functions._pack_padded_sequence, functions._pad_packed_sequence = pack, pad
        for cell in CELLS:
            setattr(functions, cell, calling(cell))
        with Sizes():
            yield
    finally:
        for name, function in kept.items():
            setattr(functions, name, function)


def _found(known: dict[int, _Packed], batch_sizes: Any) -> _Packed:
    if id(batch_sizes) not in known:
        raise Refused("a packed sequence that the model makes of its parts")
    return known[id(batch_sizes)]


def with_ended_states_kept(
    cell: str,
    x: Any,
    states: Sequence[Any],
    weights: Sequence[Any],
    biases: bool,
    layers: int,
    both: bool,
    lengths: Any,
) -> list[Any]:
    """Recurrent layers step by step, of padded sequences.

    Args:
        cell: of `CELLS`.
        x: of (steps, batch, features).
        states: before the first step, each of (layers and directions, batch, hidden size).
        weights, biases, layers, both: as torch.lstm takes them.
        lengths: of (batch,).

    Returns:
        The outputs (steps, batch, directions times hidden size), of padding undefined, and the
        states after each sequence's last step.
    """
    import torch

    directions = 1 + both
    per_direction = len(weights) // (layers * directions)
    if per_direction != 2 * (1 + biases):
        raise Refused("packed sequences of a recurrent layer with a projection")
    step: Any = getattr(torch, f"{cell}_cell")
    last = []
    for layer in range(layers):
        outputs = []
        for direction in range(directions):
            place = layer * directions + direction
            own = weights[place * per_direction : (place + 1) * per_direction]
            now = [each[place] for each in states]
            made: dict[int, Any] = {}
            for t in reversed(range(x.shape[0])) if direction else range(x.shape[0]):
                after = step(x[t], tuple(now) if cell == "lstm" else now[0], *own)
                after = after if cell == "lstm" else [after]
                lasts = (lengths > t).unsqueeze(1)
                now = [torch.where(lasts, *each) for each in zip(after, now, strict=True)]
                made[t] = now[0]
            outputs.append(torch.stack([made[t] for t in range(x.shape[0])]))
            last.append(now)
        x = torch.cat(outputs, 2)
    return [x, *map(torch.stack, zip(*last, strict=True))]
