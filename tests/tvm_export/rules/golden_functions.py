"""Operators whose loop nests are kept, by rule; run in a process of the current engine."""

from collections.abc import Callable
from typing import Any

import numpy as np

from tests.tvm_export.rules.cpu_functions import _module

# Operators as a function of relax variables, the shapes of its inputs, those of its constants.
Case = tuple[Callable[..., Any], list[tuple[int, ...]], list[tuple[int, ...]]]

# Of TVM's names for stages: without them a line of a nest fits a docstring.
_PREFIXES = ("conv2d_nchw_", "conv2d_nhwc_", "T_softmax_")


def _dense(x: Any, weight: Any, bias: Any) -> Any:
    from tvm.relax import op

    return op.nn.relu(op.add(op.matmul(x, weight), bias))


def _convolution(x: Any, weight: Any, bias: Any) -> Any:
    from tvm.relax import op

    return op.nn.relu(op.add(op.nn.conv2d(x, weight, padding=_same_size(weight)), bias))


def _same_size(weight: Any) -> int:
    """What keeps the size of a convolution's output that of its input."""
    return int(weight.ty.shape[2]) // 2


def _cases() -> dict[str, dict[str, Case]]:
    from tvm import relax
    from tvm.relax import op

    def joined(x: Any) -> Any:
        return op.concat(relax.Tuple([op.exp(x), op.multiply(x, x)]), axis=-1)

    def depthwise(x: Any, weight: Any) -> Any:
        return op.nn.relu(op.nn.conv2d(x, weight, padding=1, groups=64))

    def convolution_last(x: Any, weight: Any, bias: Any) -> Any:
        out = op.nn.conv2d(x, weight, data_layout="NHWC", kernel_layout="HWIO")
        return op.nn.relu(op.add(out, bias))

    def norm(x: Any, scale: Any, shift: Any) -> Any:
        return op.nn.layer_norm(x, scale, shift, axes=-1)

    def attention(queries: Any, keys: Any, values: Any) -> Any:
        return op.matmul(op.nn.softmax(op.matmul(queries, keys), -1), values)

    return {
        "attention": {
            "attention": (attention, [(12, 128, 64), (12, 64, 128), (12, 128, 64)], []),
        },
        "winograd": {
            "3x3 convolution": (
                _convolution,
                [(1, 64, 56, 56)],
                [(64, 64, 3, 3), (1, 64, 1, 1)],
            ),
            "3x3 convolution, channels last": (
                convolution_last,
                [(1, 58, 58, 64)],
                [(3, 3, 64, 64), (64,)],
            ),
        },
        "contraction": {
            "dense layer": (_dense, [(128, 256)], [(256, 3072), (3072,)]),
            "dense layer, a long sum": (_dense, [(128, 768)], [(768, 3072), (3072,)]),
            "dense layer, odd sizes": (_dense, [(131, 300)], [(300, 333), (333,)]),
            "batched product": (op.matmul, [(12, 128, 64), (12, 64, 128)], []),
            "1x1 convolution": (
                _convolution,
                [(1, 64, 56, 56)],
                [(256, 64, 1, 1), (1, 256, 1, 1)],
            ),
        },
        "reduction": {
            "softmax": (lambda x: op.nn.softmax(x, -1), [(12, 128, 128)], []),
            "layer norm": (norm, [(128, 768)], [(768,), (768,)]),
            "max pooling": (
                lambda x: op.nn.max_pool2d(x, (3, 3), 2, 1),
                [(1, 64, 112, 112)],
                [],
            ),
            "depthwise convolution": (depthwise, [(1, 64, 56, 56)], [(64, 1, 3, 3)]),
        },
        "injective": {
            "transpose": (lambda x: op.permute_dims(x, [0, 2, 1]), [(12, 128, 64)], []),
            "concatenation": (joined, [(300, 400)], []),
        },
        "fallback": {"argmax": (lambda x: op.argmax(x, axis=1), [(17, 9, 31)], [])},
    }


def nests(rule: str) -> dict[str, str]:
    """The loop nests that a rule makes of its cases, as text, on a processor that is fixed.

    It has 256-bit vectors, 16 of them, 8 threads, 512 KiB of second cache.
    """
    import tvm

    from tvm_practice.tvm_export.extremes import find_places
    from tvm_practice.tvm_export.relax_passes.attention import with_attention
    from tvm_practice.tvm_export.rules import cpu as cpu_rules
    from tvm_practice.tvm_export.rules.cpu.loops import Cpu
    from tvm_practice.viz.loop_nest import format_nest, loop_nest

    find_places()  # as an export, earlier in this process, may have done
    cpu = Cpu(vector_bits=256, registers=16, threads=8, cache_bytes=1 << 19)
    made = {}
    for name, (build, shapes, constants) in _cases()[rule].items():
        weights = [np.zeros(shape, "float32") for shape in constants]
        module = _module((build, shapes, weights), lambda module: with_attention(module, cpu))
        known = cpu_rules._constant_arguments(module)
        (function,) = (
            each for each, func in module.functions_items() if isinstance(func, tvm.tirx.PrimFunc)
        )
        scheduled, decision = cpu_rules._schedule(
            name, module[function], known.get(function, set()), cpu
        )
        assert decision.rule == rule, decision
        nest = format_nest(loop_nest(scheduled))
        for prefix in _PREFIXES:
            nest = nest.replace(prefix, "")
        made[name] = nest
    return made
