"""ONNX Runtime's operators of attention and of embeddings, as ONNX's own one after the other.

They stand in models of transformers that were saved after ONNX Runtime's optimization, or that
its tools for generation wrote. All need the shapes of their inputs, which are known once the
operators before them are replaced.
"""

import itertools
import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from tvm_practice.tvm_export.importers.onnx.graphs import (
    attributes,
    constants,
    static_shape,
    tensor_types,
)
from tvm_practice.tvm_export.importers.onnx.quantized_functions import (
    Body,
    float32,
    int32,
    int64,
)

_MASKED = -10000.0  # what is added to the score of a key that the mask leaves out
_LOWEST = float(np.finfo(np.float32).min)  # the score of a key after its query


def body_of(node: Any, graph: Any) -> list[Any] | None:
    """The nodes that compute the same as a node of a graph.

    None for an unknown operator, one whose inputs' shapes are not known, and a use of one that
    is not carried over.
    """
    make = _MADE.get(node.op_type)
    if make is None:
        return None
    body = _Tensors(node, graph)
    return make(body, attributes(node)) if body.are_known else None


class _Tensors(Body):
    """A node's replacement, and what is known of the node's inputs.

    Attributes:
        are_known: whether every input that is given has a known shape.
    """

    def __init__(self, node: Any, graph: Any):
        super().__init__(node)
        given = [name for name in node.input if name]
        types = tensor_types(graph)
        self._values: Mapping[str, np.ndarray] = {
            name: value for name, value in constants(graph).items() if name in given
        }
        self._shapes = {name: static_shape(types.get(name)) for name in given}
        self._shapes |= {name: value.shape for name, value in self._values.items()}
        self.are_known = all(each is not None for each in self._shapes.values())
        codes = {each.name: each.data_type for each in graph.initializer}
        first = types.get(node.input[0])
        self.dtype = codes.get(node.input[0], 0) if first is None else first.elem_type

    def has(self, place: int) -> bool:
        return bool(self.input(place))

    def shape(self, place: int) -> tuple[int, ...]:
        """An input's shape; () where it is left out."""
        return self._shapes.get(self.input(place)) or ()

    def value(self, place: int) -> np.ndarray | None:
        """An input that is constant; None for others."""
        return self._values.get(self.input(place))

    def reshaped(self, made: str, *shape: int) -> str:
        return self.add("Reshape", [made, self.constant(np.array(shape, np.int64))])

    def sliced(self, made: str, start: int, end: int, axis: int = -1) -> str:
        ends = [self.constant(np.array([each], np.int64)) for each in (start, end, axis)]
        return self.add("Slice", [made, *ends])

    def heads(self, made: str, batch: int, count: int) -> str:
        """(batch, length, heads * size) as (batch, heads, length, size)."""
        rows = self.reshaped(made, batch, 0, count, -1)
        return self.add("Transpose", [rows], perm=[0, 2, 1, 3])

    def joined(self, before: str, made: str) -> str:
        """Keys or values of (batch, heads, length, size) after those of earlier calls."""
        return self.add("Concat", [before, made], axis=2) if before else made

    def number(self, value: float) -> str:
        return self.constant(np.array(value, np.float32))

    def wide(self, made: str) -> str:
        return self.add("Cast", [made], to=float32())

    def narrow(self, made: str) -> str:
        """As the node's first input."""
        return self.add("Cast", [made], to=self.dtype)

    def attended(
        self,
        query: str,
        key: str,
        value: str,
        rows: tuple[int, int, int],
        masked: Callable[[str], str],
        *,
        scale: float,
        groups: int = 1,
        sink: str = "",
    ) -> list[Any]:
        """All nodes, of which the last writes the first output, (batch, length, heads * size).

        Args:
            query: (batch, heads, length, size).
            key: (batch, heads / groups, keys, size).
            value: as the keys, of any size.
            rows: batch, heads, and length of the queries.
            masked: makes the scores, (batch, heads, length, keys) in float32, those of the keys
                that each query sees.
            scale: of the scores.
            groups: heads that share keys and values.
            sink: scores of a key without a value, (batch, heads, length, 1); none if empty.
        """
        batch, heads, length = rows
        alone = groups == 1
        if not alone:  # the queries of all heads of a group, one after the other
            query = self.reshaped(query, batch, heads // groups, groups * length, -1)
        turned = self.add("Transpose", [key], perm=[0, 1, 3, 2])
        scores = self.wide(self.add("MatMul", [query, turned]))
        scores = self.add("Mul", [scores, self.number(scale)])
        if not alone:
            scores = self.reshaped(scores, batch, heads, length, -1)
        scores = masked(scores)
        if sink:
            scores = self.add("Concat", [scores, sink], axis=-1)
        weights = self.add("Softmax", [scores], axis=-1)
        if sink:
            weights = self.sliced(weights, 0, -1)
        if not alone:
            weights = self.reshaped(weights, batch, heads // groups, groups * length, -1)
        found = self.add("MatMul", [self.narrow(weights), value])
        if not alone:
            found = self.reshaped(found, batch, heads, length, -1)
        turned = self.add("Transpose", [found], perm=[0, 2, 1, 3])
        return self.ended(self.reshaped(turned, batch, length, -1), ())


def _attention(body: _Tensors, given: Mapping[str, Any]) -> list[Any] | None:
    """Attention: queries, keys and values are one product, (batch, length, 3 * heads * size)."""
    if given.get("do_rotary") or given.get("past_present_share_buffer"):
        return None
    batch, length, _ = body.shape(0)
    heads, width = int(given["num_heads"]), body.shape(1)[-1]
    sizes = [int(each) for each in given.get("qkv_hidden_sizes", [])] or [width // 3] * 3
    made = body.biased(body.add("MatMul", [body.input(0), body.input(1)]), 2)
    ends = np.cumsum([0, *sizes])
    query, key, value = (
        body.heads(body.sliced(made, int(start), int(end)), batch, heads)
        for start, end in itertools.pairwise(ends)
    )
    before = 0
    if body.has(4):
        before = body.shape(4)[3]
        earlier = (body.sliced(body.input(4), place, place + 1, 0) for place in (0, 1))
        pasts = (body.reshaped(each, batch, heads, before, -1) for each in earlier)
        key, value = map(body.joined, pasts, (key, value))
    if body.asks(1):
        extents = 1, batch, heads, before + length, -1
        both = [body.reshaped(each, *extents) for each in (key, value)]
        body.output(body.add("Concat", both, axis=0), 1)
    masked = _mask(body, given, 3, 5, (batch, length, before + length))
    scale = _scale(given, sizes[0] // heads)
    if masked is None:
        return None
    return body.attended(query, key, value, (batch, heads, length), masked, scale=scale)


def _multi_head(body: _Tensors, given: Mapping[str, Any]) -> list[Any] | None:
    """MultiHeadAttention. None of packed inputs, shared buffers and scores as an output."""
    if any(map(body.has, (8, 9))) or body.asks(3):
        return None
    if [len(body.shape(place)) for place in range(3)] not in ([3, 3, 3], [3, 4, 4]):
        return None
    (batch, length, hidden), heads = body.shape(0), int(given["num_heads"])
    ready = len(body.shape(1)) == 4  # keys of another sequence, which a call before computed
    width = body.shape(2)[1] * body.shape(2)[3] if ready else body.shape(2)[2]
    ends = np.cumsum([0, hidden, hidden, width])

    def made(place: int) -> str:
        found = body.input(place)
        if ready and place:
            return found
        if body.has(3):
            part = body.sliced(body.input(3), int(ends[place]), int(ends[place + 1]))
            found = body.add("Add", [found, part])
        return body.heads(found, batch, heads)

    query = made(0)
    key, value = (body.joined(body.input(place + 5), made(place)) for place in (1, 2))
    keys = body.shape(1)[2 if ready else 1] + (body.shape(6)[2] if body.has(6) else 0)
    body.output(key, 1)
    body.output(value, 2)
    masked = _mask(body, given, 4, 5, (batch, length, keys))
    if masked is None:
        return None
    scale = _scale(given, hidden // heads)
    return body.attended(query, key, value, (batch, heads, length), masked, scale=scale)


def _embedded(body: _Tensors, given: Mapping[str, Any]) -> list[Any]:
    """EmbedLayerNormalization: of a word's, its position's and perhaps its segment's rows."""
    batch, length = body.shape(0)
    places = body.input(8) or body.constant(np.arange(length, dtype=np.int64))
    words = body.add("Gather", [body.input(2), body.input(0)], axis=0)
    total = body.add("Add", [words, body.add("Gather", [body.input(3), places], axis=0)])
    if body.has(1):
        segments = body.add("Gather", [body.input(4), body.input(1)], axis=0)
        total = body.add("Add", [total, segments])
    body.output(total, 2)
    if body.asks(1):  # how many words the mask has
        counts = body.constant(np.zeros(batch, np.int32))
        if body.has(7):
            ones = body.constant(np.ones(length, np.float32))
            sums = body.add("MatMul", [body.wide(body.input(7)), ones])
            counts = body.add("Cast", [sums], to=int32())
        body.output(counts, 1)
    tensors, epsilon = [total, body.input(5), body.input(6)], float(given.get("epsilon", 1e-12))
    return body.ended(body.add("LayerNormalization", tensors, axis=-1, epsilon=epsilon), ())


def _scale(given: Mapping[str, Any], size: int) -> float:
    return float(given.get("scale") or 1 / math.sqrt(size))


def _mask(
    body: _Tensors, given: Mapping[str, Any], mask: int, bias: int, extents: tuple[int, int, int]
) -> Callable[[str], str] | None:
    """What masks scores of (batch, heads, length, keys).

    Args:
        body: of the node.
        given: the node's attributes.
        mask: the place of the mask: (batch, keys) or (batch, length, keys), 1 where a key is seen,
            or (batch), how many are; (2 * batch), and from which on.
        bias: the place of what is added to the scores.
        extents: batch, length and keys.

    Returns:
        None for a mask of another shape.
    """
    batch, length, keys = extents
    shape, added = body.shape(mask), ""
    if body.has(mask):
        places = body.constant(np.arange(keys, dtype=np.int64))
        whole = body.add("Cast", [body.input(mask)], to=int64())
        zero = body.constant(np.array(0, np.int64))
        if shape in ((batch,), (2 * batch,)):
            columns = body.reshaped(whole, -1, batch, 1)
            seen = body.add("Less", [places, body.sliced(columns, 0, 1, 0)])
            if shape != (batch,):
                started = body.add("GreaterOrEqual", [places, body.sliced(columns, 1, 2, 0)])
                seen = body.add("And", [seen, started])
        elif shape in ((batch, keys), (batch, length, keys)):
            seen = body.add("Greater", [whole, zero])
        else:
            return None
        seen = body.reshaped(seen, batch, 1, length if len(shape) == 3 else 1, keys)
        hidden = body.number(float(given.get("mask_filter_value", _MASKED)))
        added = body.add("Where", [seen, body.number(0.0), hidden])

    def masked(scores: str) -> str:
        if added:
            scores = body.add("Add", [scores, added])
        if given.get("unidirectional"):
            before = np.tri(length, keys, keys - length, dtype=bool)
            lowest = body.number(_LOWEST)
            scores = body.add("Where", [body.constant(before), scores, lowest])
        return body.add("Add", [scores, body.wide(body.input(bias))]) if body.has(bias) else scores

    return masked


def _grouped(body: _Tensors, given: Mapping[str, Any]) -> list[Any] | None:
    """GroupQueryAttention: each batch has as many earlier keys as its length says.

    None where the total length is not constant, and for keys in fewer bits.
    """
    total = body.value(6)
    if total is None or any(map(body.has, range(12, 16))) or body.asks(3):
        return None
    if any(given.get(each) not in (None, b"NONE", "NONE", 0, 1) for each in _OF_FEWER_BITS):
        return None
    (batch, length, width), heads = body.shape(0), int(given["num_heads"])
    shared = int(given["kv_num_heads"])
    if body.has(1):
        size = width // heads
        parts = [body.input(place) for place in range(3)]
    else:
        size = width // (heads + 2 * shared)
        ends = np.cumsum([0, heads * size, shared * size, shared * size])
        parts = [
            body.sliced(body.input(0), int(start), int(end))
            for start, end in itertools.pairwise(ends)
        ]
    query, key, value = (
        body.heads(each, batch, count)
        for each, count in zip(parts, (heads, shared, shared), strict=True)
    )
    buffer = body.shape(3)[2] if body.has(3) else 0
    keys = max(buffer, int(total.item()))
    first = int(total.item()) == length
    steps = body.constant(np.arange(length, dtype=np.int64))
    if first:
        earlier = body.constant(np.zeros((batch, 1), np.int64))
    else:
        ending = body.reshaped(body.add("Cast", [body.input(5)], to=int64()), batch, 1)
        behind = body.constant(np.array(1 - length, np.int64))
        earlier = body.add("Add", [ending, behind])
    own = body.add("Add", [earlier, steps])  # (batch, length): which key each query's own is
    if given.get("do_rotary"):
        turning = body.input(9) or own
        interleaved = bool(given.get("rotary_interleaved"))
        query, key = (
            _turned(body, each, turning, (7, 8), size, interleaved=interleaved)
            for each in (query, key)
        )
    pasts = [body.input(place) for place in (3, 4)]
    key, value = (
        _placed(body, past, new, earlier, (batch, buffer, length, keys), first=first)
        for past, new in zip(pasts, (key, value), strict=True)
    )
    body.output(key, 1)
    body.output(value, 2)
    masked, sink = _seen(body, given, own, (batch, heads, length, keys))
    return body.attended(
        query,
        key,
        value,
        (batch, heads, length),
        masked,
        scale=_scale(given, size),
        groups=heads // shared,
        sink=sink,
    )


def _placed(
    body: _Tensors,
    past: str,
    new: str,
    earlier: str,
    extents: tuple[int, int, int, int],
    *,
    first: bool,
) -> str:
    """Keys or values with new ones after as many earlier ones as each batch has; 0 after those.

    Args:
        body: of the node.
        past: earlier ones, (batch, heads, buffer, size); none if empty.
        new: (batch, heads, length, size).
        earlier: (batch, 1), how many of `past` count.
        extents: batch, the lengths of `past`, of `new` and of the result.
        first: whether none of `past` counts.
    """
    batch, buffer, length, keys = extents
    if first and keys == length:
        return new
    places = body.constant(np.arange(keys, dtype=np.int64))
    since = body.add("Sub", [places, earlier])  # (batch, keys): which new one is there

    def picked(made: str, rows: str) -> str:
        return body.add("GatherND", [body.add("Transpose", [made], perm=[0, 2, 1, 3]), rows],
                        batch_dims=1)  # fmt: skip

    def within(index: str, count: int) -> str:
        ends = [body.constant(np.array(each, np.int64)) for each in (0, count - 1)]
        return body.reshaped(body.add("Clip", [index, *ends]), batch, keys, 1)

    def column(truths: str) -> str:
        return body.reshaped(truths, batch, keys, 1, 1)

    zero, end = (body.constant(np.array(each, np.int64)) for each in (0, length))
    nothing = body.narrow(body.number(0.0))
    is_new = column(body.add("Less", [since, end]))
    found = body.add("Where", [is_new, picked(new, within(since, length)), nothing])
    is_old = column(body.add("Less", [since, zero]))
    if buffer:
        held = within(body.add("Add", [places, body.add("Mul", [earlier, zero])]), buffer)
        found = body.add("Where", [is_old, picked(past, held), found])
    return body.add("Transpose", [found], perm=[0, 2, 1, 3])


def _seen(
    body: _Tensors, given: Mapping[str, Any], own: str, extents: tuple[int, int, int, int]
) -> tuple[Callable[[str], str], str]:
    """What masks the scores of grouped heads, and the scores of the key without a value."""
    batch, heads, length, keys = extents
    window, softcap = int(given.get("local_window_size", -1)), float(given.get("softcap", 0.0))
    last = body.reshaped(own, batch, 1, length, 1)
    places = body.constant(np.arange(keys, dtype=np.int64))

    def masked(scores: str) -> str:
        if softcap > 0:
            cap = body.number(softcap)
            scores = body.add("Mul", [body.add("Tanh", [body.add("Div", [scores, cap])]), cap])
        if body.has(10):
            bias = body.wide(body.input(10))
            scores = body.add("Add", [scores, bias])
        seen = body.add("LessOrEqual", [places, last])
        if window >= 0:
            width = body.constant(np.array(window, np.int64))
            started = body.add("Greater", [body.add("Add", [places, width]), last])
            seen = body.add("And", [seen, started])
        return body.add("Where", [seen, scores, body.number(_LOWEST)])

    sink = ""
    if body.has(11) or given.get("smooth_softmax", 0) == 1:
        rows = body.constant(np.array([batch, heads, length, 1], np.int64))
        sink = body.number(0.0)
        if body.has(11):
            sink = body.reshaped(body.wide(body.input(11)), 1, heads, 1, 1)
        sink = body.add("Expand", [sink, rows])
    return masked, sink


def _rotary(body: _Tensors, given: Mapping[str, Any]) -> list[Any] | None:
    """RotaryEmbedding of (batch, length, heads * size) or (batch, heads, length, size)."""
    if given.get("is_packed_batching") or given.get("scale", 1.0) != 1:
        return None
    shape, part = body.shape(0), 2 * body.shape(2)[-1]
    is_flat = len(shape) == 3
    batch, length = shape[0], shape[1 if is_flat else 2]
    heads = int(given.get("num_heads", 0)) or shape[-1] // part
    size = shape[-1] // heads if is_flat else shape[-1]
    made = body.heads(body.input(0), batch, heads) if is_flat else body.input(0)
    positions = body.input(1)
    if body.shape(1) != (batch, length):
        steps = np.arange(length, dtype=np.int64)
        positions = body.add("Add", [positions, body.constant(np.tile(steps, (batch, 1)))])
    interleaved = bool(given.get("interleaved"))
    made = _turned(body, made, positions, (2, 3), size, interleaved=interleaved)
    if is_flat:
        turned = body.add("Transpose", [made], perm=[0, 2, 1, 3])
        made = body.reshaped(turned, batch, length, heads * size)
    return body.ended(made, ())


def _turned(
    body: _Tensors,
    made: str,
    positions: str,
    caches: tuple[int, int],
    size: int,
    *,
    interleaved: bool,
) -> str:
    """Heads whose first elements are turned by their positions' angles, in pairs.

    Args:
        body: of the node.
        made: (batch, heads, length, size).
        positions: (batch, length).
        caches: the places of cosines and sines, each (positions, pairs).
        size: of a head; elements after the pairs stay as they are.
        interleaved: whether a pair's two are neighbours, and not half of all pairs apart.
    """
    pairs = body.shape(caches[0])[1]
    factors = (body.add("Gather", [body.input(each), positions], axis=0) for each in caches)
    # A pair's two lie along a new last axis, or along the one before.
    shape, wide = ((pairs, 2), (pairs, 1)) if interleaved else ((2, pairs), (1, pairs))
    axis = 4 if interleaved else 3
    turning = body.reshaped(body.sliced(made, 0, 2 * pairs), 0, 0, 0, *shape)
    cosine, sine = (body.reshaped(each, 0, 1, -1, *wide) for each in factors)
    one, other = (body.sliced(turning, each, each + 1, axis) for each in (0, 1))

    def product(first: str, second: str) -> str:
        return body.add("Mul", [first, second])

    rows = [
        body.add("Sub", [product(one, cosine), product(other, sine)]),
        body.add("Add", [product(one, sine), product(other, cosine)]),
    ]
    both = body.reshaped(body.add("Concat", rows, axis=axis), 0, 0, 0, 2 * pairs)
    if size == 2 * pairs:
        return both
    return body.add("Concat", [both, body.sliced(made, 2 * pairs, size)], axis=-1)


_OF_FEWER_BITS = ("k_quant_type", "v_quant_type", "kv_cache_bit_width")
_MADE: dict[str, Callable[[_Tensors, Mapping[str, Any]], list[Any] | None]] = {
    "Attention": _attention,
    "EmbedLayerNormalization": _embedded,
    "GroupQueryAttention": _grouped,
    "MultiHeadAttention": _multi_head,
    "RotaryEmbedding": _rotary,
}
