"""ONNX Runtime's operators of attention beside ONNX Runtime; called in the current engine."""

import importlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from tests.tvm_export.importers.onnx_functions import single

_random = np.random.default_rng(0)
_BATCH, _LENGTH, _HEADS, _SIZE, _PAST = 2, 5, 3, 16, 6
_HIDDEN = _HEADS * _SIZE
Case = tuple[Sequence[np.ndarray | None], Mapping[int, np.ndarray], int, Mapping[str, Any]]
"""Inputs, weights by position, outputs and attributes."""


def _draw(*shape: int) -> np.ndarray:
    return _random.standard_normal(shape).astype("float32")


def _words(*values: Any) -> np.ndarray:
    return np.array(values, "int32")


def _rows(heads: int = _HEADS, length: int = _LENGTH) -> np.ndarray:
    return _draw(_BATCH, length, heads * _SIZE)


def _held(heads: int = _HEADS) -> np.ndarray:
    return _draw(_BATCH, heads, _PAST, _SIZE)


def off(operator: str) -> dict[str, float]:
    """By case, the largest difference from ONNX Runtime's outputs, over their largest number."""
    cases = {"Attention": _attention, "MultiHeadAttention": _multi_head,
             "GroupQueryAttention": _grouped, "RotaryEmbedding": _rotary}  # fmt: skip
    return {name: _off(operator, name, *case) for name, case in cases[operator]()}


def _attention() -> Iterator[tuple[str, Case]]:
    def case(
        *more: np.ndarray | None, outputs: int = 1, width: int = 3 * _HIDDEN, **given: Any
    ) -> Case:
        x, bound = _draw(_BATCH, _LENGTH, 7), {1: _draw(7, width), 2: _draw(width)}
        return [x, *more], bound, outputs, {"num_heads": _HEADS, **given}

    padded = _words([1, 1, 1, 0, 0], [0, 1, 1, 1, 1])
    yield "no mask", case()
    yield "keys", case(padded)
    yield "no key", case(padded * 0)
    yield "lengths", case(_words(3, 5))
    yield "lengths and starts", case(_words(3, 5, 0, 1))
    yield "a mask per query", case(np.tril(np.ones((2, 5, 5), "int32")))
    yield "another filter", case(padded, mask_filter_value=-1.0)
    yield "causal", case(unidirectional=1)
    yield "causal, padded", case(padded, unidirectional=1)
    yield "scaled", case(scale=0.3)
    yield "bias", case(None, None, _draw(1, _HEADS, 5, 5))
    yield "wider values", case(width=105, qkv_hidden_sizes=[48, 48, 9])
    past = _draw(2, _BATCH, _HEADS, _PAST, _SIZE)
    yield "earlier keys", case(None, past, outputs=2)
    yield "earlier keys, causal", case(None, past, outputs=2, unidirectional=1)
    yield "earlier keys, masked", case(np.tile(padded, 3)[:, :11], past, outputs=2)


def _multi_head() -> Iterator[tuple[str, Case]]:
    def case(*inputs: np.ndarray | None, outputs: int = 1, **given: Any) -> Case:
        return inputs, {}, outputs, {"num_heads": _HEADS, **given}

    keys, mask = [_rows(length=7), _rows(length=7)], _words([1] * 7, [1, 1, 0, 1, 0, 0, 1])
    yield "of others", case(_rows(), *keys)
    yield "one query", case(_rows(length=1), *keys)
    yield "biases", case(_rows(), *keys, _draw(3 * _HIDDEN))
    yield "masked", case(_rows(), *keys, None, mask)
    yield "added", case(_rows(), *keys, None, mask, _draw(1, _HEADS, 5, 7))
    yield "causal", case(_rows(), _rows(), _rows(), unidirectional=1)
    yield "scaled", case(_rows(), *keys, scale=0.2)
    yield "wider values", case(_rows(), keys[0], _rows(6, 7))
    yield "keys by head", case(_rows(), _held(), _held())
    past = [None] * 3 + [_held(), _held()]
    yield "earlier keys", case(_rows(), _rows(), _rows(), *past, outputs=3)


def _grouped() -> Iterator[tuple[str, Case]]:
    def case(
        length: int,
        lengths: Sequence[int],
        total: int,
        *,
        pasts: bool = True,
        packed: bool = False,
        rotary: bool = False,
        more: Sequence[np.ndarray | None] = (),
        **given: Any,
    ) -> Case:
        batch = len(lengths)
        parts = [_rows(heads, length)[:batch] for heads in (4, 2, 2)]
        own = [np.concatenate(parts, -1), None, None] if packed else parts
        past = [_held(2)[:batch], _held(2)[:batch]] if pasts else [None, None]
        angles = _random.uniform(-3, 3, (16, _SIZE // 2)).astype("float32")
        caches = [np.cos(angles), np.sin(angles)] if rotary else [None, None]
        inputs = [*own, *past, _words(*lengths), *caches, *more]
        given = {"num_heads": 4, "kv_num_heads": 2, "do_rotary": int(rotary), **given}
        return inputs, {6: _words(total)[0]}, 3, given

    yield "a prompt", case(5, [4, 4], 5, pasts=False)
    yield "a prompt, packed and turned", case(5, [4, 4], 5, pasts=False, packed=True, rotary=True)
    yield "a token", case(1, [6, 6], 7, rotary=True)
    yield "a token after fewer keys", case(1, [6, 3], 7, rotary=True, rotary_interleaved=1)
    yield "a token, windowed", case(1, [6, 3], 7, local_window_size=3)
    yield "tokens after keys", case(3, [8], 9, rotary=True)
    yield (
        "windowed, with a softcap",
        case(5, [4, 4], 5, pasts=False, local_window_size=2, softcap=1.5),
    )
    yield "smooth", case(5, [4, 4], 5, pasts=False, smooth_softmax=1, scale=0.4)
    yield "a sink per head", case(1, [6, 6], 7, more=[None, None, _draw(4)])
    yield "added", case(5, [4, 4], 5, pasts=False, more=[None, _draw(2, 4, 5, 5)])


def _rotary() -> Iterator[tuple[str, Case]]:
    def case(x: np.ndarray, positions: Any, pairs: int = _SIZE // 2, **given: Any) -> Case:
        caches = {2: _draw(9, pairs), 3: _draw(9, pairs)}
        return [x, np.array(positions, "int64")], caches, 1, given

    each, heads = [[0, 1, 2, 3, 4], [4, 0, 8, 1, 2]], _draw(_BATCH, _HEADS, _LENGTH, _SIZE)
    yield "halves", case(_rows(), each)
    yield "neighbours", case(_rows(), each, interleaved=1)
    yield "from a position on", case(heads, [2])
    yield "by head, neighbours", case(heads, each, interleaved=1)
    yield "a part", case(_rows(), each, 1, num_heads=_HEADS, rotary_embedding_dim=2)


def _off(
    operator: str,
    name: str,
    inputs: Sequence[np.ndarray | None],
    bound: Mapping[int, np.ndarray],
    outputs: int,
    given: Mapping[str, Any],
) -> float:
    onnx: Any = importlib.import_module("onnx")
    model, arrays = single(
        operator, inputs, bound, outputs=outputs, opset=17, domain="com.microsoft", **given
    )
    for each in model.graph.output:
        each.type.tensor_type.elem_type = onnx.TensorProto.FLOAT
    names = [each.name for each in model.graph.input]
    return _worst(model, dict(zip(names, arrays, strict=True)), name)


def _worst(model: Any, given: Mapping[str, np.ndarray], name: str) -> float:
    """A model's largest difference from ONNX Runtime's outputs, over their largest number."""
    from tests.tvm_export.relax_passes.quantized_models_functions import built

    onnxruntime: Any = importlib.import_module("onnxruntime")
    session = onnxruntime.InferenceSession(model.SerializeToString())
    wanted = session.run(None, dict(given))
    *_, run = built(model)
    worst = 0.0
    for got, want in zip(run(list(given.values())), wanted, strict=True):
        assert got.dtype == want.dtype and got.shape == want.shape, (name, got.shape, want.shape)
        worst = max(worst, float(np.abs(got - want).max() / np.abs(want).max()))
    return worst


def blocks() -> dict[str, float]:
    """As `off`, by opset: an encoder's first layers, whose types nothing but their bodies tells."""
    cases: dict[str, dict[str, Any]] = {
        "all": {},
        "without": {"beta": "", "bias": "", "sum": ""},
        "repeated": {"skip": (1, _LENGTH, _HIDDEN)},
    }
    return {
        f"{opset}, {name}": _encoder_off(opset, **given)
        for opset in (11, 14, 17)
        for name, given in cases.items()
    }


def _encoder_off(
    opset: int,
    *,
    beta: str = "b",
    bias: str = "c",
    sum: str = "sum",
    skip: tuple[int, ...] = (_BATCH, _LENGTH, _HIDDEN),
) -> float:
    onnx: Any = importlib.import_module("onnx")
    helper, of = importlib.import_module("onnx.helper"), {"domain": "com.microsoft"}
    embedded = ["ids", "", "words", "places", "", "g", "b", "mask"]
    nodes = [
        helper.make_node("EmbedLayerNormalization", embedded, ["e", "count", "total"], **of),
        helper.make_node("Attention", ["e", "w", "v", "mask"], ["a"], num_heads=_HEADS, **of),
        helper.make_node(
            "SkipLayerNormalization",
            ["a", "skip", "g", beta, bias],
            ["s", "", "", sum] if sum else ["s"],
            **of,
        ),
        helper.make_node("LayerNormalization", ["s", "g", "b"], ["n"], axis=-1),
        helper.make_node("MultiHeadAttention", ["n", "n", "n"], ["y"], num_heads=_HEADS, **of),
    ]
    weights = {
        "words": _draw(9, _HIDDEN),
        "places": _draw(8, _HIDDEN),
        "w": _draw(_HIDDEN, 3 * _HIDDEN),
        "v": _draw(3 * _HIDDEN),
        **{name: _draw(_HIDDEN) for name in "gbc"},
    }
    given = {
        "ids": _words(*_random.integers(0, 9, (_BATCH, _LENGTH))),
        "mask": _words([1, 1, 1, 0, 0], [1, 1, 1, 1, 1]),
        "skip": _draw(*skip),
    }
    codes = {"count": onnx.TensorProto.INT32}
    graph = helper.make_graph(
        nodes,
        "encoder",
        [
            helper.make_tensor_value_info(
                name, helper.np_dtype_to_tensor_dtype(each.dtype), each.shape
            )
            for name, each in given.items()
        ],
        [
            helper.make_tensor_value_info(name, codes.get(name, onnx.TensorProto.FLOAT), None)
            for name in ["y", "count", "total", *filter(None, [sum])]
        ],
        [onnx.numpy_helper.from_array(each, name) for name, each in weights.items()],
    )
    domains = [helper.make_opsetid("", opset), helper.make_opsetid("com.microsoft", 1)]
    return _worst(helper.make_model(graph, opset_imports=domains, ir_version=8), given, str(opset))
