"""Recurrent layers as one kernel for all steps of a direction, on current TVM.

What a step takes from the layer's input does not depend on the steps before: one product computes
it for all of them. A step then adds the product of the state and the recurrent weights, which lie
in the order in which they are read: tile by tile of units, each unit with all of its gates, so
that a tile's new state is computed in registers.
"""

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from tvm_practice.tvm_export.importers.converters.kernels import call_kernel
from tvm_practice.tvm_export.importers.recurrent_layers import CONVERTED
from tvm_practice.tvm_export.rules.cpu.loops import Cpu

# Multiplications of a step from which threads share it: to hand it out takes microseconds.
_SHARED_FROM = 1 << 17
# Sums that a processor adds to at once: a multiply-add takes 4 cycles, and 2 begin in each.
_AT_ONCE = 8
# Vector registers that a step needs beside those of its sums.
_OTHERS = 4


@dataclass(frozen=True)
class Cell:
    """What a step computes.

    Attributes:
        gates: rows of weights of a unit.
        lines: TVMScript for unit `{u}` of row `{b}`: gate i's sum is `{s[i]}`, the input's part of
            it `{x[i]}`; `{old}` is the state, `{new}` the next one, and `C` a second state.
        apart: the gate whose sum is without the input's part.
        has_memory: whether there is a second state.
    """

    gates: int
    lines: tuple[str, ...]
    apart: int | None = None
    has_memory: bool = False


CELLS = {
    "lstm": Cell(
        4,
        (
            "C[{b}, {u}] = T.sigmoid({s[1]}) * C[{b}, {u}] + T.sigmoid({s[0]}) * T.tanh({s[2]})",
            "{new} = T.sigmoid({s[3]}) * T.tanh(C[{b}, {u}])",
        ),
        has_memory=True,
    ),
    "gru": Cell(
        3,
        (
            "{s[2]} = T.tanh({x[2]} + T.sigmoid({s[0]}) * {s[2]})",
            "{new} = {s[2]} + T.sigmoid({s[1]}) * ({old} - {s[2]})",
        ),
        apart=2,
    ),
    "rnn_tanh": Cell(1, ("{new} = T.tanh({s[0]})",)),
    "rnn_relu": Cell(1, ("{new} = T.max({s[0]}, T.Cast({dtype!r}, 0))",)),
}

# What a cell with a second state has besides, by placeholder; empty for the others.
_MEMORY = {
    "c_handle": "c: T.handle, ",
    "d_handle": ", d: T.handle",
    "memory_buffers": """C0 = T.match_buffer(c, ({batch}, {hidden}), "{dtype}")
    C1 = T.match_buffer(d, ({batch}, {hidden}), "{dtype}")
    C = T.sblock_alloc_buffer(({batch}, {padded}), "{dtype}")""",
    "memory_reads": ", C0[0:{batch}, 0:{hidden}]",
    "memory_writes": ", C1[0:{batch}, 0:{hidden}]",
    "memory_begins": "C[i, j] = T.if_then_else(j < {hidden}, C0[i, j], T.Cast('{dtype}', 0))",
    "memory_ends": "C1[i, j] = C[i, j]",
    "memory_kept": ", C[0:{batch}, 0:{padded}]",
}

# What padded sequences have besides.
_LENGTHS = {
    "lengths_handle": "l: T.handle, ",
    "lengths_buffer": 'L = T.match_buffer(l, ({batch},), "int64")',
    "lengths_reads": ", L[0:{batch}]",
}

_TEXT = """@T.prim_func(private=True, s_tir=True)
def kernel(
    x: T.handle, w: T.handle, b: T.handle, h: T.handle, {c_handle}{lengths_handle}
    y: T.handle, f: T.handle{d_handle}
):
    T.func_attr({attributes})
    {names}
    X = T.match_buffer(x, ({steps}, {batch}, {tiles}, {gates}, {width}), "{dtype}")
    W = T.match_buffer(w, ({tiles}, {hidden}, {gates}, {width}), "{dtype}")
    B = T.match_buffer(b, ({tiles}, {width}), "{dtype}")
    H0 = T.match_buffer(h, ({batch}, {hidden}), "{dtype}")
    Y = T.match_buffer(y, ({steps}, {batch}, {hidden}), "{dtype}")
    H1 = T.match_buffer(f, ({batch}, {hidden}), "{dtype}")
    H = T.sblock_alloc_buffer((2, {batch}, {padded}), "{dtype}")
    {memory_buffers}
    {lengths_buffer}
    with T.sblock("kernel"):
        T.reads(
            X[0:{steps}, 0:{batch}, 0:{tiles}, 0:{gates}, 0:{width}],
            W[0:{tiles}, 0:{hidden}, 0:{gates}, 0:{width}],
            B[0:{tiles}, 0:{width}],
            H0[0:{batch}, 0:{hidden}]{memory_reads}{lengths_reads},
        )
        T.writes(Y[0:{steps}, 0:{batch}, 0:{hidden}], H1[0:{batch}, 0:{hidden}]{memory_writes})
        for i, j in T.grid({batch}, {padded}):
            H[0, i, j] = T.if_then_else(j < {hidden}, H0[i, j], T.Cast("{dtype}", 0))
            {memory_begins}
        for t in range({steps}):
            for n in {shared}({tiles}):
                for p in range({passes}):
                    with T.sblock("tile"):
                        T.reads(
                            X[0:{steps}, 0:{batch}, 0:{tiles}, 0:{gates}, 0:{width}],
                            W[0:{tiles}, 0:{hidden}, 0:{gates}, 0:{width}],
                            B[0:{tiles}, 0:{width}],
                            H[0:2, 0:{batch}, 0:{padded}]{memory_kept}{lengths_reads},
                        )
                        T.writes(
                            Y[0:{steps}, 0:{batch}, 0:{hidden}],
                            H[0:2, 0:{batch}, 0:{padded}]{memory_kept},
                        )
                        s = T.sblock_alloc_buffer(({rows}, {gates}, {width}), "{dtype}")
                        for r in T.unroll({rows}):
                            for g in T.unroll({gates}):
                                for l in T.vectorized({width}):
                                    s[r, g, l] = {start}
                        for k in range({hidden}):
                            for r in T.unroll({rows}):
                                for g in T.unroll({gates}):
                                    for l in T.vectorized({width}):
                                        s[r, g, l] = (
                                            s[r, g, l]
                                            + H[t % 2, p * {rows} + r, k] * W[n, k, g, l]
                                        )
                        for r in T.unroll({rows}):
                            for l in T.vectorized({width}):
                                {lines}
                            for l in range({width}):
                                if n * {width} + l < {hidden}:
                                    Y[{at}, {row}, n * {width} + l] = {new}
        for i, j in T.grid({batch}, {hidden}):
            H1[i, j] = H[{steps} % 2, i, j]
            {memory_ends}
"""


def recurrent_converters(cpu: Cpu) -> dict[str, Callable[[Any, Any], Any]]:
    """The converter (node, importer) of whole recurrent layers, by its operator's name.

    Args:
        cpu: what the kernels are for.
    """

    def convert(node: Any, importer: Any) -> Any:
        return _layers(cpu, node, importer)

    return {CONVERTED: convert}


def _layers(cpu: Cpu, node: Any, importer: Any) -> Any:
    from tvm import relax

    name, x, states, weights, _, layers, both, batch_first, *rest = node.args
    emit = importer.block_builder.emit
    x, states, weights = (
        importer.env[x],
        *([importer.env[each] for each in group] for group in (states, weights)),
    )
    lengths = importer.env[rest[0]] if rest else None
    if batch_first:
        x = emit(relax.op.permute_dims(x, [1, 0, 2]))
    ways = (False, True) if both else (False,)
    per_way = len(weights) // (layers * len(ways))
    last: list[list[Any]] = []
    for layer in range(layers):
        outputs = []
        for way, backward in enumerate(ways):
            place = layer * len(ways) + way
            own = weights[place * per_way : (place + 1) * per_way]
            before = [_at(emit, each, place) for each in states]
            given = (importer.block_builder, cpu, name, x, own, before)
            made, after = direction(*given, backward=backward, lengths=lengths)
            outputs.append(made)
            last.append(after)
        x = emit(relax.op.concat(outputs, 2)) if both else outputs[0]
    if batch_first:
        x = emit(relax.op.permute_dims(x, [1, 0, 2]))
    return (x, *(emit(relax.op.stack(list(each), 0)) for each in zip(*last, strict=True)))


def direction(
    builder: Any,
    cpu: Cpu,
    name: str,
    x: Any,
    weights: Sequence[Any],
    states: Sequence[Any],
    *,
    backward: bool = False,
    lengths: Any = None,
) -> tuple[Any, list[Any]]:
    """One direction of one layer.

    Args:
        builder: a relax.BlockBuilder.
        cpu: what the kernel is for.
        name: of `CELLS`.
        x: of (steps, batch, features).
        weights: of the input (gates * hidden, features), of the state (gates * hidden, hidden),
            and their two biases (gates * hidden,) where there are any, gates in PyTorch's order.
        states: of (batch, hidden) each, before the first step.
        backward: from the last step to the first.
        lengths: of (batch,), int64: a row's state stays as it is at steps beyond its length. None:
            every row is as long as all steps.

    Returns:
        The outputs (steps, batch, hidden), and the states after the last step. An output beyond
        a row's length is the state there.
    """
    from tvm import relax

    cell, emit = CELLS[name], builder.emit
    steps, batch = (_extent(each) for each in list(x.ty.shape)[:2])
    dtype = str(x.ty.dtype)
    hidden = int(states[0].ty.shape[1])
    known_batch = batch if isinstance(batch, int) else 1
    width, rows = _tile(cpu, cell.gates, known_batch, hidden, dtype)
    tiles = -(-hidden // width)
    padded = tiles * width

    def in_tiles(tensor: Any) -> Any:
        """(gates * hidden, …) as (tiles, gates, width, …), with zeros for missing units."""
        rest = [int(each) for each in tensor.ty.shape][1:]
        apart = emit(relax.op.reshape(tensor, (cell.gates, hidden, *rest)))
        wide = _padded(emit, apart, 1, padded)
        split = emit(relax.op.reshape(wide, (cell.gates, tiles, width, *rest)))
        axes = [1, 0, 2, *range(3, 3 + len(rest))]
        return emit(relax.op.permute_dims(split, axes))

    of_input, of_state = map(in_tiles, weights[:2])
    features = int(of_input.ty.shape[-1])
    matrix = emit(relax.op.reshape(of_input, (tiles * cell.gates * width, features)))
    given = emit(relax.op.matmul(x, emit(relax.op.permute_dims(matrix))))
    apart = emit(relax.op.zeros((tiles, width), dtype))
    if len(weights) > 2:
        one, other = map(in_tiles, weights[2:])
        if cell.apart is None:
            bias = emit(relax.op.add(one, other))
        else:
            apart = _at(emit, other, cell.apart, axis=1)
            bias = emit(relax.op.add(one, _without(emit, other, cell.apart)))
        given = emit(relax.op.add(given, emit(relax.op.reshape(bias, (-1,)))))
    given = emit(relax.op.reshape(given, (steps, batch, tiles, cell.gates, width)))
    packed = emit(relax.op.permute_dims(of_state, [0, 3, 1, 2]))

    # Open extents have names in the kernel.
    count, examples = (
        str(each) if isinstance(each, int) else name
        for each, name in ((steps, "open_steps"), (batch, "open_batch"))
    )
    at = f"{count} - 1 - t" if backward else "t"
    row, unit = f"p * {rows} + r", f"n * {width} + l"
    parts = [f"X[{at}, {row}, n, {gate}, l]" for gate in (*range(cell.gates), "g")]
    start = parts.pop()
    if cell.apart is not None:
        start = f"T.if_then_else(g == {cell.apart}, B[n, l], {start})"
    old, new = (f"H[{turn} % 2, {row}, {unit}]" for turn in ("t", "(t + 1)"))
    sums = [f"s[r, {gate}, l]" for gate in range(cell.gates)]
    lines = [
        each.format(b=row, u=unit, s=sums, x=parts, old=old, new=new, dtype=dtype)
        for each in cell.lines
    ]
    if lengths is not None:
        lines = [_unless_ended(each, f"{at} < L[{row}]", {new: old}) for each in lines]
    sizes = {
        "steps": count,
        "batch": examples,
        "hidden": hidden,
        "padded": padded,
        "tiles": tiles,
        "gates": cell.gates,
        "width": width,
    }
    memory = {
        name: text.format(**sizes, dtype=dtype) if cell.has_memory else ""
        for name, text in _MEMORY.items()
    }
    padding = {
        name: text.format(**sizes) if lengths is not None else "" for name, text in _LENGTHS.items()
    }
    work = known_batch * cell.gates * hidden * hidden
    states_after = [(batch, hidden)] * len(states)
    outputs, *after = call_kernel(
        builder,
        _TEXT,
        name,
        [given, packed, apart, *states, *([] if lengths is None else [lengths])],
        [(steps, batch, hidden), *states_after],
        dtype,
        **sizes,
        **memory,
        **padding,
        names="\n    ".join(
            f"{each} = T.int64()" for each in (count, examples) if each.isidentifier()
        ),
        at=at,
        row=row,
        new=new,
        rows=rows,
        start=start,
        lines=("\n" + " " * 32).join(lines),
        passes=known_batch // rows if isinstance(batch, int) else examples,
        shared="T.parallel" if work >= _SHARED_FROM and tiles > 1 else "range",
    )
    return outputs, after


def _unless_ended(line: str, lasts: str, kept: dict[str, str]) -> str:
    """An assignment of a cell's, by which a target keeps its value where a sequence has ended.

    Args:
        line: "target = value".
        lasts: the condition.
        kept: by target what to assign where it does not hold, if that is not the target's value.
    """
    target, value = line.split(" = ", 1)
    return f"{target} = T.if_then_else({lasts}, {value}, {kept.get(target, target)})"


def _extent(extent: Any) -> Any:
    """Of a shape: an int where it is known."""
    return int(extent) if hasattr(extent, "value") else extent


def _tile(cpu: Cpu, gates: int, batch: int, hidden: int, dtype: str) -> tuple[int, int]:
    """Units and rows of a tile: sums enough for the processor, few loads for each of them."""
    lanes = cpu.lanes(dtype)
    widths = [lanes << more for more in range(4) if not more or lanes << more - 1 < hidden]
    rows = [each for each in range(1, batch + 1) if batch % each == 0]

    def cost(tile: tuple[int, int]) -> tuple[float, ...]:
        vectors = gates * tile[0] // lanes
        sums = vectors * tile[1]
        return -min(sums, _AT_ONCE), (vectors + tile[1]) / sums, tile[0]

    room = max(cpu.registers - _OTHERS, gates)
    fitting = [
        tile
        for tile in itertools.product(widths, rows)
        if gates * tile[0] // lanes * tile[1] <= room
    ]
    return min(fitting, key=cost)


def _padded(emit: Callable[[Any], Any], tensor: Any, axis: int, extent: int) -> Any:
    """A tensor with zeros at the end of an axis, so that it has an extent."""
    from tvm import relax

    missing = extent - int(tensor.ty.shape[axis])
    if not missing:
        return tensor
    widths = [0] * (2 * len(tensor.ty.shape))
    widths[2 * axis + 1] = missing
    return emit(relax.op.nn.pad(tensor, widths))


def _at(emit: Callable[[Any], Any], tensor: Any, place: Any, axis: int = 0) -> Any:
    """A tensor at one place of an axis, without the axis."""
    from tvm import relax

    part = emit(relax.op.strided_slice(tensor, [axis], [place], [place + 1]))
    return emit(relax.op.squeeze(part, [axis]))


def _without(emit: Callable[[Any], Any], tensor: Any, gate: int) -> Any:
    """(tiles, gates, width) with zeros for the last gate."""
    from tvm import relax

    kept = emit(relax.op.strided_slice(tensor, [1], [0], [gate]))
    return _padded(emit, kept, 1, gate + 1)
