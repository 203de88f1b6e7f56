"""Functions that the tests of the default schedules call in a process of the current engine."""

import json
import re
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from tvm_practice.tvm_export.rules.first_match import STRICT, Decision

Random = np.random.Generator
# A draw: operators as a function of relax variables, their shapes, constants, the inputs' type.
Draw = tuple[Callable[..., Any], list[tuple[int, ...]], list[np.ndarray]]


def _sizes(random: Random, count: int, low: int, high: int) -> tuple[int, ...]:
    return tuple(int(each) for each in random.integers(low, high, count, endpoint=True))


def _normal(random: Random, shape: tuple[int, ...]) -> np.ndarray:
    return random.standard_normal(shape).astype("float32")


def _matmul(random: Random) -> Draw:
    """Batched or not, either operand transposed."""
    from tvm.relax import op

    m, n, k = _sizes(random, 3, 8, 90)
    batch = _sizes(random, int(random.integers(0, 3)), 1, 4)
    first, second = random.random(2) < 0.4

    def build(a: Any, b: Any) -> Any:
        axes = [*range(len(batch)), len(batch) + 1, len(batch)]
        a = op.permute_dims(a, axes) if first else a
        return op.matmul(a, op.permute_dims(b, axes) if second else b)

    shapes = [(*batch, k, m) if first else (*batch, m, k)]
    return build, [*shapes, (*batch, n, k) if second else (*batch, k, n)], []


def _dense(random: Random) -> Draw:
    """A constant weight, a bias, a residual, an activation."""
    from tvm.relax import op

    n, k = _sizes(random, 2, 8, 300)
    rows = _sizes(random, int(random.integers(1, 3)), 1, 40)
    activation = [op.nn.relu, op.nn.gelu, op.nn.silu, op.tanh][random.integers(4)]

    def build(x: Any, residual: Any, weight: Any, bias: Any) -> Any:
        product = op.add(op.matmul(x, weight), bias)
        return activation(op.add(product, residual))

    constants = [_normal(random, (k, n)) / np.float32(k**0.5), _normal(random, (n,))]
    return build, [(*rows, k), (*rows, n)], constants


def _convolution(random: Random, *, group_filters: bool = False) -> Draw:
    from tvm.relax import op

    groups = int(random.integers(2, 5)) if group_filters else 1
    inputs, filters = groups * int(random.integers(1, 9)), groups * int(random.integers(8, 40))
    if group_filters and random.random() < 0.5:
        filters = groups * 16 * int(random.integers(1, 3))  # whole registers
    kernel = _sizes(random, 2, 1, 4)
    stride, padding = int(random.integers(1, 4)), int(random.integers(0, 3))
    dilation = int(random.integers(1, 3))
    scale = _normal(random, (1, filters, 1, 1))

    def build(x: Any, weight: Any, scale: Any) -> Any:
        out = op.nn.conv2d(
            x, weight, strides=stride, padding=padding, dilation=dilation, groups=groups
        )
        return op.nn.relu(op.multiply(out, scale))

    shape = (int(random.integers(1, 3)), inputs, *_sizes(random, 2, 9, 40))
    return build, [shape], [_normal(random, (filters, inputs // groups, *kernel)), scale]


def _convolution_3x3(random: Random) -> Draw:
    """Of many channels and pixels: two images or one, with a bias, and perhaps a residual."""
    from tvm.relax import op

    inputs, filters = (4 * int(random.integers(8, 13)) for _ in range(2))
    padding, residual = int(random.integers(0, 3)), bool(random.integers(2))
    images = int(random.integers(1, 3))
    size = [int(random.integers(low, low + 3)) for low in random.choice([14, 30], 2)]
    bias = _normal(random, (1, filters, 1, 1))

    def build(x: Any, other: Any, weight: Any, bias: Any) -> Any:
        out = op.add(op.nn.conv2d(x, weight, padding=padding), bias)
        return op.nn.relu(op.add(out, other) if residual else op.multiply(out, other))

    shape = (images, inputs, *(each + 2 - 2 * padding for each in size))
    return (
        build,
        [shape, (images, filters, *size)],
        [_normal(random, (filters, inputs, 3, 3)), bias],
    )


def _convolution_3x3_last(random: Random) -> Draw:
    """Like `_convolution_3x3`, with the channels last, and up to three images."""
    from tvm.relax import op

    inputs, filters = (16 * int(random.integers(2, 5)) for _ in range(2))
    residual, padded = bool(random.integers(2)), bool(random.integers(2))
    images = int(random.integers(1, 4))
    size = [int(random.integers(low, low + 3)) for low in random.choice([14, 30], 2)]

    def build(x: Any, other: Any, weight: Any, bias: Any) -> Any:
        if padded:
            x = op.nn.pad(x, (0, 0, 1, 1, 1, 1, 0, 0))
        out = op.nn.conv2d(x, weight, data_layout="NHWC", kernel_layout="HWIO")
        out = op.add(out, bias)
        return op.nn.relu(op.add(out, other) if residual else op.multiply(out, other))

    shape = (images, *(each + (0 if padded else 2) for each in size), inputs)
    return (
        build,
        [shape, (images, *size, filters)],
        [_normal(random, (3, 3, inputs, filters)), _normal(random, (filters,))],
    )


def _grouped(random: Random) -> Draw:
    return _convolution(random, group_filters=True)


def _convolution_nhwc(random: Random) -> Draw:
    from tvm.relax import op

    inputs, filters = _sizes(random, 2, 1, 40)

    def build(x: Any, weight: Any) -> Any:
        return op.nn.relu(
            op.nn.conv2d(x, weight, padding=1, data_layout="NHWC", kernel_layout="OHWI")
        )

    shape = (1, *_sizes(random, 2, 5, 30), inputs)
    return build, [shape], [_normal(random, (filters + 8, 3, 3, inputs))]


def _channels_last(
    random: Random, *, images: int, size: tuple[int, int], channels: int, filters: int, groups: int
) -> Draw:
    """Of strides and dilations, with a residual or a scale per image, perhaps padded after."""
    from tvm.relax import op

    kernel = _sizes(random, 2, 1, 3) if groups == 1 else (int(random.choice([3, 5, 7])),) * 2
    strides, dilation = _sizes(random, 2, 1, 2), _sizes(random, 2, 1, 2)
    kind, pad = int(random.integers(4)), _sizes(random, 4, 0, 2)
    reach = [d * (k - 1) for d, k in zip(dilation, kernel, strict=True)]
    shape = [(s - 1) * t + 1 + r for s, t, r in zip(size, strides, reach, strict=True)]
    other = (images, *((1, 1) if kind == 1 else size), filters)

    def build(x: Any, other: Any, weight: Any, bias: Any) -> Any:
        out = op.nn.conv2d(
            x,
            weight,
            strides=strides,
            dilation=dilation,
            groups=groups,
            data_layout="NHWC",
            kernel_layout="HWIO",
        )
        out = op.add(out, bias)
        if kind == 3:
            return op.reshape(op.add(out, other), (images * size[0], size[1] * filters))
        out = op.multiply(out, other) if kind == 1 else op.nn.relu(op.add(out, other))
        return op.nn.pad(out, (0, 0, *pad, 0, 0)) if kind == 2 else out

    weight = _normal(random, (*kernel, channels // groups, filters))
    return build, [(images, *shape, channels), other], [weight, _normal(random, (filters,))]


def _by_pixels(random: Random) -> Draw:
    size = (int(random.integers(2, 12)), int(random.choice([5, 7, 9, 11, 13, 14])))
    channels, filters = int(random.integers(2, 40)), int(random.integers(8, 80))
    images = int(random.integers(1, 4))
    return _channels_last(
        random, images=images, size=size, channels=channels, filters=filters, groups=1
    )


def _in_blocks(random: Random) -> Draw:
    """Of more input than the cache of a core; tiles that blocks do not divide."""
    size, images = [((29, 31), 3), ((37, 36), 2)][random.integers(2)]
    return _channels_last(random, images=images, size=size, channels=300, filters=72, groups=1)


def _depthwise_last(random: Random) -> Draw:
    """Neighbours that divide the line, and that do not; a few filters per channel as well."""
    size = (int(random.integers(3, 12)), int(random.choice([5, 7, 8, 12, 13, 14, 28])))
    channels, each = 4 * int(random.integers(2, 20)), int(random.choice([1, 1, 2, 3]))
    images = int(random.integers(1, 3))
    return _channels_last(
        random,
        images=images,
        size=size,
        channels=channels,
        filters=channels * each,
        groups=channels,
    )


def _convolution_transposed(random: Random) -> Draw:
    from tvm.relax import op

    inputs, filters = _sizes(random, 2, 8, 20)
    stride = int(random.integers(1, 3))

    def build(x: Any, weight: Any) -> Any:
        return op.nn.conv2d_transpose(x, weight, strides=stride, padding=1)

    shape = (1, inputs, *_sizes(random, 2, 4, 20))
    return build, [shape], [_normal(random, (inputs, filters, 3, 3))]


def _depthwise(random: Random) -> Draw:
    from tvm.relax import op

    channels, size = int(random.integers(1, 30)), int(random.integers(2, 6))
    stride = int(random.integers(1, 3))

    def build(x: Any, weight: Any) -> Any:
        out = op.nn.conv2d(x, weight, strides=stride, padding=1, groups=channels)
        return op.clip(out, 0, 6)

    images = int(random.choice([1, 2, 8, 16]))  # the last two would fill vectors
    shape = (images, channels, *_sizes(random, 2, 8, 70))
    return build, [shape], [_normal(random, (channels, 1, size, size))]


def _softmax(random: Random) -> Draw:
    from tvm.relax import op

    shape = _sizes(random, int(random.integers(1, 4)), 1, 12) + _sizes(random, 1, 1, 150)
    axis = -1 if random.random() < 0.5 else int(random.integers(len(shape)))
    function = op.nn.softmax if random.random() < 0.5 else op.nn.log_softmax
    return lambda x: function(x, axis), [shape], []


def _normalization(random: Random) -> Draw:
    from tvm.relax import op

    kind = int(random.integers(3))
    channels = 2 * int(random.integers(1, 60))
    scales = [_normal(random, (channels,)) for _ in range(2)]
    rows = _sizes(random, 2, 1, 20)
    if kind == 0:
        return lambda x, g, b: op.nn.layer_norm(x, g, b, axes=-1), [(*rows, channels)], scales
    if kind == 1:
        return lambda x, g: op.nn.rms_norm(x, g, axes=-1), [(*rows, channels)], scales[:1]
    return (
        lambda x, g, b: op.nn.group_norm(x, g, b, 2, channel_axis=1, axes=[2, 3]),
        [(2, channels, *rows)],
        scales,
    )


def _pooling(random: Random) -> Draw:
    from tvm.relax import op

    function = [op.nn.max_pool2d, op.nn.avg_pool2d][random.integers(2)]
    size = int(random.integers(2, 4))
    stride, padding = int(random.integers(1, 3)), int(random.integers(0, 2))
    shape = (*_sizes(random, 2, 1, 20), *_sizes(random, 2, 6, 70))
    return lambda x: function(x, (size, size), stride, padding), [shape], []


def _sums(random: Random) -> Draw:
    from tvm.relax import op

    shape = _sizes(random, int(random.integers(1, 4)), 1, 40)
    axes = sorted({int(each) for each in random.integers(0, len(shape), 2)})
    function = [op.sum, op.mean, op.max, op.min, op.variance][random.integers(5)]
    return lambda x: op.nn.relu(function(op.multiply(x, x), axes)), [shape], []


def _movement(random: Random) -> Draw:
    from tvm import relax
    from tvm.relax import op

    shape = _sizes(random, int(random.integers(2, 5)), 1, 33)
    axes = [int(each) for each in random.permutation(len(shape))]

    def build(x: Any) -> Any:
        double = op.multiply(op.nn.gelu(x), relax.const(2.0, "float32"))
        joined = relax.Tuple([op.permute_dims(x, axes), op.permute_dims(double, axes)])
        return op.exp(op.flip(op.concat(joined, axis=-1), axis=0))

    return build, [shape], []


def _gather(random: Random) -> Draw:
    from tvm import relax
    from tvm.relax import op

    rows, columns = _sizes(random, 2, 1, 70)
    where = relax.const(random.integers(0, rows, (3, 7)), "int64")
    return lambda x: op.take(x, where, axis=0), [(rows, columns)], []


FAMILIES = {
    "matmul": _matmul,
    "dense": _dense,
    "convolution": _convolution,
    "3x3 convolution": _convolution_3x3,
    "3x3 convolution, channels last": _convolution_3x3_last,
    "grouped convolution": _grouped,
    "convolution, channels last": _convolution_nhwc,
    "convolution, by pixels": _by_pixels,
    "convolution, in blocks": _in_blocks,
    "depthwise convolution, channels last": _depthwise_last,
    "transposed convolution": _convolution_transposed,
    "depthwise convolution": _depthwise,
    "softmax": _softmax,
    "normalization": _normalization,
    "pooling": _pooling,
    "sums": _sums,
    "movement": _movement,
    "gather": _gather,
}


def _padded(out: Any, *amounts: int) -> Any:
    """Zeros before and after the two innermost of four axes."""
    from tvm.relax import op

    return op.nn.pad(out, (0, 0, 0, 0, *amounts))


def _convolution_then_padding(
    random: Random, kernel: int, channels: tuple[int, int], size: int, amounts: tuple[int, ...]
) -> Draw:
    """As in MaxViT: bias, GELU by tanh, zeros around."""
    from tvm.relax import op

    inputs, filters = channels

    def build(x: Any, weight: Any, bias: Any) -> Any:
        out = op.add(op.nn.conv2d(x, weight, padding=kernel // 2), bias)
        return _padded(op.nn.gelu_tanh(out), *amounts)

    weight = _normal(random, (filters, inputs, kernel, kernel))
    return build, [(1, inputs, size, size)], [weight, _normal(random, (1, filters, 1, 1))]


def _padded_alone(random: Random) -> Draw:
    from tvm.relax import op

    def build(x: Any, weight: Any) -> Any:
        return _padded(op.nn.conv2d(x, weight), 0, 1, 0, 2)

    return build, [(1, 24, 20, 20)], [_normal(random, (40, 24, 1, 1))]


def _padded_pooling(random: Random) -> Draw:
    from tvm.relax import op

    return lambda x: _padded(op.nn.max_pool2d(x, (2, 2)), 0, 1, 0, 1), [(1, 24, 20, 20)], []


def _padded_depthwise(random: Random) -> Draw:
    from tvm.relax import op

    def build(x: Any, weight: Any) -> Any:
        out = op.nn.conv2d(x, weight, padding=1, groups=24)
        return _padded(op.nn.gelu_tanh(out), 0, 1, 0, 1)

    return build, [(1, 24, 20, 20)], [_normal(random, (24, 1, 3, 3))]


def _log_softmax(shape: tuple[int, ...], axis: int) -> Draw:
    from tvm.relax import op

    return lambda x: op.nn.log_softmax(x, axis), [shape], []


def _log_of_softmax(random: Random) -> Draw:
    """Whose smallest exponentials are the smallest normal numbers of float32."""
    from tvm import relax
    from tvm.relax import op

    def build(x: Any, added: Any) -> Any:
        little = op.multiply(x, relax.const(0.01, "float32"))
        return op.log(op.nn.softmax(op.add(little, added), -1))

    added = np.zeros((4, 64), "float32")
    added[:, 5:7] = 87.2
    return build, [added.shape], [added]


def _columns(random: Random) -> Draw:
    """A column of a few rows, one stage of which is read three times."""
    from tvm import relax
    from tvm.relax import op

    def build(x: Any) -> Any:
        once = op.exp(op.tanh(x)) - relax.const(1.0, "float32")
        below = op.less(once, relax.const(0.0, "float32"))
        return op.where(below, once + relax.const(5.0, "float32"), once)

    return build, [(3, 1)], []


# Operators at sizes of which one rule was wrong, or failed.
CASES: dict[str, Callable[[Random], Draw]] = {
    "1x1 convolution, padded": partial(
        _convolution_then_padding, kernel=1, channels=(64, 512), size=56, amounts=(0, 1, 0, 1)
    ),
    "3x3 convolution, padded": partial(
        _convolution_then_padding, kernel=3, channels=(64, 32), size=28, amounts=(0, 1, 0, 1)
    ),
    "convolution, padded at once": _padded_alone,
    "pooling, padded": _padded_pooling,
    "depthwise convolution, padded": _padded_depthwise,
    "log of a softmax": _log_of_softmax,
    "a column of three": _columns,
    "log_softmax, short axis": lambda random: _log_softmax((11, 5, 13), -1),
    "log_softmax, axis 1": lambda random: _log_softmax((11, 20, 8, 13), 1),
}


def _module(draw: Draw, rewrite: Callable[[Any], Any] = lambda module: module) -> Any:
    """The drawn operators, rewritten, as a fused module, constants bound."""
    from tvm import relax

    from solutions.relay_import import optimize_relax

    build, shapes, constants = draw
    builder = relax.BlockBuilder()
    inputs = [
        relax.Var(f"x{number}", relax.TensorType(shape, "float32"))
        for number, shape in enumerate(shapes)
    ]
    with builder.function("main", inputs):
        with builder.dataflow():
            weights = [relax.const(each, str(each.dtype)) for each in constants]
            output = builder.emit_output(builder.emit(build(*inputs, *weights)))
        builder.emit_func_output(output)
    return optimize_relax(rewrite(builder.finalize()))


def _run(module: Any, target: Any, inputs: list[np.ndarray]) -> np.ndarray:
    """The output of a module, in memory that was full of NaN: what it does not write shows."""
    import tvm
    from tvm import relax

    machine = relax.VirtualMachine(tvm.compile(module, target), tvm.cpu())
    given, nothing = (
        [tvm.runtime.tensor(each) for each in arrays]
        for arrays in (inputs, [_nan_like(each) for each in inputs])
    )
    for _ in range(2):  # the C library hands out again what it got back, a large block from then on
        before = machine["main"](*nothing)
        before.copyfrom(_nan_like(before.numpy()))
        del before
    result: np.ndarray = machine["main"](*given).numpy()
    return result


def unoptimized(target: Any) -> Any:
    """`target` for loops whose values alone matter: LLVM's optimizer takes longer than they do."""
    import tvm

    return tvm.target.Target({**json.loads(str(target)), "opt-level": 1})


def _nan_like(array: np.ndarray) -> np.ndarray:
    """NaN in an array's shape; the array itself where its type has none."""
    return np.full_like(array, np.nan) if array.dtype.kind == "f" else array


def _target(mcpu: str | None) -> Any:
    import tvm

    from tvm_practice import engines

    return tvm.target.Target({"kind": "llvm", "mcpu": mcpu}) if mcpu else engines.host_target()


def _check_bounds(module: Any) -> None:
    """Raise if a function of the module reads or writes outside a buffer.

    Without those that pack columns which are not whole tiles: the checker does not see the guard.
    """
    import tvm

    functions = {
        name: each
        for name, each in module.functions_items()
        if isinstance(each, tvm.tirx.PrimFunc)
        and not re.search(r"_pack\[.*\] = T\.if_then_else", each.script())
    }
    tvm.s_tir.analysis.OOBChecker()(tvm.IRModule(functions))


def _advised(module: Any, random: Random, target: Any) -> Any:
    """The module with a drawn choice of tile at each contraction, as a tuner would leave it."""
    import tvm

    from tvm_practice.tvm_export.rules.cpu.contraction import find_contraction
    from tvm_practice.tvm_export.rules.cpu.loops import cpu_of
    from tvm_practice.tvm_export.rules.cpu.register_tiles import advice_of, advise
    from tvm_practice.tvm_export.tuners.tile_space import ranked_choices

    advised = module.clone()
    for name, func in module.functions_items():
        if not isinstance(func, tvm.tirx.PrimFunc) or not (ranked := ranked_choices(func, target)):
            continue
        found = find_contraction(func, cpu_of(target))
        tile = ranked[random.integers(len(ranked))]
        drawn = {"rows": tile.rows, "vectors": tile.vectors}
        schedule = tvm.s_tir.Schedule(func.with_attr("global_symbol", "main"))
        block = schedule.get_sblock(found.block.name_hint)

        def decide(key: str, values: list[int], drawn: dict[str, int] = drawn) -> int:
            return drawn.get(key, int(random.choice(values)))

        advise(schedule, block, decide)
        tuned = schedule.mod["main"].with_attr("global_symbol", name.name_hint)
        advised[name] = tuned.with_attr("tirx.is_scheduled", True)
        assert advice_of(advised[name]) is not None
    return advised


def compare(
    family: str, seed: int, mcpu: str | None = None, advised: bool = False
) -> dict[str, Any]:
    """The largest error of a family's drawn operators, scheduled against not, and their rules.

    The error is in units of the largest value; the unscheduled functions are TVM's own loops.

    Args:
        family: of `FAMILIES` or `CASES`.
        seed: of the draw.
        mcpu: the processor; None: this machine's.
        advised: with a drawn tile at each contraction in place of the rule's.
    """
    from tvm_practice.tvm_export.rules.cpu import mark_constants, schedule_defaults

    random = np.random.default_rng(seed)
    draw = (FAMILIES | CASES)[family](random)
    module, target = _module(draw), _target(mcpu)
    inputs = [_normal(random, shape) for shape in draw[1]]
    report: list[Decision] = []
    given = _advised(mark_constants(module), random, target) if advised else module
    scheduled_module = schedule_defaults(given, target, report=report)
    # The checker does not see the guards of drawn tiles, nor one of 2 * x + odd.
    if not advised and "winograd" not in {each.rule for each in report}:
        _check_bounds(scheduled_module)
    scheduled = _run(scheduled_module, target, inputs)
    reference = _run(module, unoptimized(target), inputs)
    error = np.abs(scheduled - reference).max() / max(np.abs(reference).max(), 1e-3)
    return {
        "error": float(error),
        "shapes": [list(scheduled.shape), list(reference.shape)],
        "finite": bool(np.isfinite(scheduled).all()),
        "inputs": draw[1],
        "rules": [each.rule for each in report],
    }


class _Attention:
    """Built lazily: a class of PyTorch's cannot be named before it is imported."""

    @staticmethod
    def model() -> tuple[Any, tuple[Any, ...]]:
        """A transformer encoder layer, 5 heads of 12, and an input (2, 33, 60)."""
        import torch
        from torch import nn

        class Layer(nn.Module):
            def __init__(self) -> None:
                super().__init__()
                self.project = nn.Linear(60, 180)
                self.out, self.up, self.down = (
                    nn.Linear(60, 60),
                    nn.Linear(60, 250),
                    nn.Linear(250, 60),
                )
                self.first, self.second = nn.LayerNorm(60), nn.LayerNorm(60)

            def forward(self, x: torch.Tensor) -> torch.Tensor:
                heads = self.project(x).view(2, 33, 3, 5, 12).permute(2, 0, 3, 1, 4)
                query, key, value = heads[0], heads[1], heads[2]
                weights = torch.softmax(query @ key.transpose(-1, -2) / 12**0.5, -1)
                mixed = (weights @ value).transpose(1, 2).reshape(2, 33, 60)
                x = self.first(x + self.out(mixed))
                y: torch.Tensor = self.second(x + self.down(nn.functional.gelu(self.up(x))))
                return y

        torch.manual_seed(0)
        return Layer().eval(), (torch.randn(2, 33, 60),)


def model(name: str) -> dict[str, Any]:
    """A model built with the default schedules: its error against PyTorch, its rules."""
    import torch
    import tvm
    from tvm import relax

    from solutions.relay_import import import_relax, optimize_relax
    from tvm_practice import models
    from tvm_practice.tvm_export.quiet import quiet_frontends
    from tvm_practice.tvm_export.rules.cpu import schedule_defaults

    module, example = _Attention.model() if name == "transformer" else getattr(models, name)()
    with quiet_frontends():
        imported = optimize_relax(import_relax(module, example))
    report: list[Decision] = []
    scheduled = schedule_defaults(imported, _target(None), report=report)
    output = _run(scheduled, _target(None), [each.numpy() for each in example])
    with torch.no_grad():
        expected = module(*example).numpy()
    functions = [
        name for name, each in scheduled.functions_items() if isinstance(each, tvm.tirx.PrimFunc)
    ]
    reshapes = [
        relax.analysis.has_reshape_pattern(scheduled[each])
        for each in functions
        if str(each.name_hint).startswith("reshape")
    ]
    return {
        "error": float(np.abs(output - expected).max() / np.abs(expected).max()),
        "rules": {each.function: each.rule for each in report},
        "prepacked": sum(str(each.name_hint).endswith("_prepacked") for each in functions),
        "left_to_pack": sum("weight_prepack" in str(each.name_hint) for each in functions),
        "views": all(reshapes),
    }


def dense_loops(rows: int) -> dict[str, Any]:
    """The loops of a scheduled dense layer, innermost of the sum last, and of its write-back."""
    import tvm

    from tvm_practice.tvm_export.rules.cpu import schedule_defaults
    from tvm_practice.viz.loop_nest import loop_nest, paths

    random = np.random.default_rng(0)

    def build(x: Any, weight: Any) -> Any:
        from tvm.relax import op

        return op.nn.relu(op.matmul(x, weight))

    module = _module((build, [(rows, 256)], [_normal(random, (256, 512))]))
    scheduled = schedule_defaults(module, _target(None))
    (function,) = (
        each for _, each in scheduled.functions_items() if isinstance(each, tvm.tirx.PrimFunc)
    )
    loops = {
        statement.name: [loop.kind for loop in above]
        for above, statement in paths(loop_nest(function))
    }
    weight = [int(each) for each in function.params[1].shape]
    return {"loops": loops, "weight": weight, "attributes": sorted(dict(function.attrs))}


def prefetches(rows: int, chunks: int, terms: int) -> dict[str, Any]:
    """Of a dense layer of so many rows, its sum of so many terms taken in so many chunks.

    Returns:
        Lines prefetched, lines of the weights, the error.
    """
    from unittest.mock import patch

    import tvm

    from tvm_practice.tvm_export.rules.cpu import register_tiles, schedule_defaults
    from tvm_practice.tvm_export.rules.cpu.contraction import TileChoice, tile_of
    from tvm_practice.viz.loop_nest import loop_nest

    random = np.random.default_rng(0)
    weight = _normal(random, (terms, 768))

    def build(x: Any, weight: Any) -> Any:
        from tvm.relax import op

        return op.matmul(x, weight)

    module = _module((build, [(rows, terms)], [weight]))
    target = _target(None)

    def chosen(found: Any, cpu: Any) -> list[Any]:
        choice = TileChoice(4, 2, chunks=chunks)
        return [(choice, tile_of(found, cpu, choice))]

    with patch.object(register_tiles, "ranked_tiles", chosen):
        scheduled = schedule_defaults(module, target)
    (function,) = (
        each for _, each in scheduled.functions_items() if isinstance(each, tvm.tirx.PrimFunc)
    )
    loop_nest(function)  # it can still be shown
    executed = lines_asked_for(function)
    x = _normal(random, (rows, terms))
    error = np.abs(_run(scheduled, target, [x]) - x @ weight).max()
    return {"asked for": executed, "weights": weight.nbytes // 64, "error": float(error)}


def lines_asked_for(function: Any) -> int:
    """How many prefetches a scheduled function executes."""
    import tvm

    executed = 0

    def count(statement: Any, times: int) -> None:
        nonlocal executed
        if isinstance(statement, tvm.tirx.For):
            count(statement.body, times * int(statement.extent))
        elif isinstance(statement, tvm.tirx.SeqStmt):
            for each in statement.seq:
                count(each, times)
        elif isinstance(statement, tvm.s_tir.SBlockRealize):
            count(statement.block.body, times)
        elif isinstance(statement, tvm.tirx.Evaluate):
            executed += times * ("llvm.prefetch" in str(statement))

    count(function.body, 1)
    return executed


def long_sums() -> dict[str, dict[str, float]]:
    """Sums of many terms: their error, by kind of sum.

    Returns:
        The root mean square of the error to float64, as a share of the sums' own, by number of
        terms; here a sum that is added term by term grows with their root.
    """
    from tvm.relax import op

    from tvm_practice.tvm_export.rules.cpu.contraction import TileChoice

    random, target = np.random.default_rng(4), _target(None)

    def product(x: Any, weight: Any) -> Any:
        return op.matmul(x, weight)

    def convolution(x: Any, weight: Any) -> Any:
        return op.nn.conv2d(x, weight, data_layout="NHWC", kernel_layout="HWIO")

    def share(module: Any, choice: Any, x: np.ndarray, exact: np.ndarray) -> float:
        scheduled = _scheduled_with(module, target, choice)
        error = _run(scheduled, target, [x]) - exact
        return float(np.sqrt((error**2).mean() / (exact**2).mean()))

    found: dict[str, dict[str, float]] = {"product": {}, "in chunks": {}, "convolution": {}}
    for terms in (256, 1536, 6144, 6141, 1031):  # 6141 is 3 * 23 * 89; the last is prime
        x, weight = _normal(random, (40, terms)), _normal(random, (terms, 96))
        module = _module((product, [x.shape], [weight]))
        exact = x.astype("float64") @ weight
        found["product"][str(terms)] = share(module, TileChoice(4, 2), x, exact)
        if terms % 4 == 0:
            chunks = TileChoice(4, 2, 8, chunks=4)
            found["in chunks"][str(terms)] = share(module, chunks, x, exact)
    for channels in (16, 512):
        x, weight = _normal(random, (1, 9, 9, channels)), _normal(random, (3, 3, channels, 32))
        module = _module((convolution, [x.shape], [weight]))
        windows = np.lib.stride_tricks.sliding_window_view(x[0], (3, 3), axis=(0, 1))
        exact = np.einsum("ijcrs,rscf->ijf", windows.astype("float64"), weight)[None]
        found["convolution"][str(9 * channels)] = share(module, TileChoice(7, 2), x, exact)
    return found


def parts_of_blocks(rows: int) -> dict[str, Any]:
    """Of a dense layer of so many rows and 768 inputs, its sum taken in four parts.

    Returns:
        The loops in which sums start, those around a tile's sum, and the error.
    """
    from tvm_practice.tvm_export.rules.cpu.contraction import TileChoice

    random = np.random.default_rng(3)
    weight, bias = _normal(random, (768, 256)), _normal(random, (256,))

    def build(x: Any, weight: Any, bias: Any) -> Any:
        from tvm.relax import op

        return op.add(op.matmul(x, weight), bias)

    module, target = _module((build, [(rows, 768)], [weight, bias])), _target(None)

    scheduled = _scheduled_with(module, target, TileChoice(4, 2, chunks=4))
    lines = _nest(scheduled)
    start = next(
        number for number, each in enumerate(lines) if each.startswith("matmul_total_init")
    )
    update = next(n for n, each in enumerate(lines) if each.startswith("matmul_tile_update"))
    x = _normal(random, (rows, 768))
    error = np.abs(_run(scheduled, target, [x]) - (x @ weight + bias)).max()
    return {
        "starting": lines[1:start],
        "summing": [each for each in lines[start + 1 : update] if each.startswith("for")],
        "error": float(error),
    }


def sums_of_many(of_open_extents: bool) -> dict[str, dict[str, Any]]:
    """Reductions over up to 2^22 numbers near 100, whose float32 sum has digits above 1.

    Args:
        of_open_extents: whether the functions are compiled for any shapes.

    Returns:
        The largest relative error to float64 and the rule that scheduled each, by name.
    """
    from tvm import tirx
    from tvm.relax import op

    from tvm_practice.tvm_export.rules.cpu import schedule_defaults

    random, target = np.random.default_rng(6), _target(None)
    cases: dict[str, tuple[tuple[int, ...], Any, Any]] = {
        "all": ((4, 1024, 1024), op.sum, np.sum),
        "all, prime": ((4_000_037,), op.mean, np.mean),
        "rows": ((3, 7, 1031, 250), lambda x: op.sum(x, [1, 2, 3]), lambda x: x.sum((1, 2, 3))),
        "rows, prime": ((2, 1_000_003), lambda x: op.mean(x, -1), lambda x: x.mean(-1)),
        "columns": ((300_000, 9), lambda x: op.sum(x, 0), lambda x: x.sum(0)),
        "columns, prime": ((100_003, 33), lambda x: op.sum(x, 0), lambda x: x.sum(0)),
        "variances": ((2, 8, 512, 600), lambda x: op.variance(x, [2, 3]), lambda x: x.var((2, 3))),
    }
    found = {}
    for name, (shape, build, exact) in cases.items():
        x = (100 + random.random(shape) / 2).astype("float32")
        report: list[Decision] = []
        extents = [tirx.Var(f"n{axis}", "int64") for axis in range(len(shape))]
        taken: Any = extents if of_open_extents else shape
        scheduled = schedule_defaults(_module((build, [taken], [])), target, report=report)
        _check_bounds(scheduled)
        wanted = exact(x.astype("float64"))
        error = np.abs(_run(scheduled, target, [x]) - wanted) / wanted
        found[name] = {"error": float(error.max()), "rules": [each.rule for each in report]}
    return found


def a_short_sum_of_a_long_one() -> float:
    """The error of a sum of three products with the sum of sixty-four, in one function."""
    import tvm
    from tvm import te

    from tvm_practice.tvm_export.rules.cpu.loops import cpu_of
    from tvm_practice.tvm_export.rules.cpu.reduction import schedule_reduction

    many, few = te.placeholder((64,), name="many"), te.placeholder((3,), name="few")
    i, j = te.reduce_axis((0, 64), name="i"), te.reduce_axis((0, 3), name="j")
    total = te.compute((), lambda: te.sum(many[i], i), name="total")
    out = te.compute((), lambda: te.sum(few[j] * total(), j), name="out")
    target = _target(None)
    scheduled = schedule_reduction(te.create_prim_func([many, few, out]), cpu_of(target))
    random = np.random.default_rng(2)
    given = [_normal(random, (64,)), _normal(random, (3,))]
    result = tvm.runtime.tensor(np.zeros((), "float32"))
    tvm.compile(scheduled.mod, target)(*map(tvm.runtime.tensor, given), result)
    return float(abs(result.numpy() - given[0].sum() * given[1].sum()))


def _scheduled_with(module: Any, target: Any, choice: Any) -> Any:
    """A module with the default schedules, of contractions with this tile."""
    from unittest.mock import patch

    from tvm_practice.tvm_export.rules.cpu import register_tiles, schedule_defaults
    from tvm_practice.tvm_export.rules.cpu.contraction import tile_of

    def chosen(found: Any, cpu: Any) -> list[Any]:
        return [(choice, tile_of(found, cpu, choice))]

    with patch.object(register_tiles, "ranked_tiles", chosen):
        return schedule_defaults(module, target)


def _nest(scheduled: Any) -> list[str]:
    """The lines of the loop nest of a module's one function that computes at run time."""
    import tvm

    from tvm_practice.viz.loop_nest import format_nest, loop_nest

    (function,) = (
        each for _, each in scheduled.functions_items() if isinstance(each, tvm.tirx.PrimFunc)
    )
    return [each.strip() for each in format_nest(loop_nest(function)).splitlines()]


def rows_written_back() -> dict[str, Any]:
    """Of a convolution over one axis whose tiles' sums are all taken in four parts.

    Returns:
        The longest vectorized loop, and the error.
    """
    from tvm_practice.tvm_export.rules.cpu.contraction import TileChoice

    random = np.random.default_rng(3)
    x, weight = _normal(random, (4, 8, 367)), _normal(random, (8, 8, 4))

    def build(x: Any, weight: Any) -> Any:
        from tvm.relax import op

        return op.nn.conv1d(x, weight)

    module, target = _module((build, [x.shape], [weight])), _target(None)
    scheduled = _scheduled_with(module, target, TileChoice(28, 1, chunks=4))
    vectors = [each for each in _nest(scheduled) if "vectorized(" in each]
    windows = np.lib.stride_tricks.sliding_window_view(x, 4, axis=2)
    error = np.abs(_run(scheduled, target, [x]) - np.einsum("ncxk,fck->nfx", windows, weight)).max()
    return {
        "longest": max(int(each.rpartition("(")[2][:-2]) for each in vectors),
        "error": float(error),
    }


def rows_of_full_sets(steps: int) -> dict[str, float]:
    """Cycles a step that rows of a product wait for the second cache, by the rows of a tile."""
    import tvm

    from tvm_practice.tvm_export.rules.cpu import contraction
    from tvm_practice.tvm_export.rules.cpu.loops import CONSTANTS, Cpu

    def build(x: Any, weight: Any) -> Any:
        from tvm.relax import op

        return op.matmul(x, weight)

    module = _module((build, [(126, steps)], [np.zeros((steps, 256), "float32")]))
    (func,) = (each for _, each in module.functions_items() if isinstance(each, tvm.tirx.PrimFunc))
    cpu = Cpu(512, 32, 2, 1 << 20)
    found = contraction.find_contraction(func.with_attr(CONSTANTS, [1]), cpu)
    waits = {}
    for rows in (8, 9, 14):
        choice = contraction.TileChoice(rows, 2)
        tile = contraction.tile_of(found, cpu, choice)
        waits[str(rows)] = contraction._from_full_sets(found, tile, choice)
    return waits


def tile_of_product(rows: int, steps: int, columns: int, bits: int = 512) -> dict[str, int]:
    """The tile that a matrix product by a constant is written in.

    Returns:
        Its rows, vectors, unrolled steps and parts of the sum; "of no tuner": how many of the
        tiles that were ranked have a value that a tuner cannot choose.
    """
    import dataclasses

    import tvm

    from tvm_practice.tvm_export.rules.cpu.contraction import find_contraction, ranked_tiles
    from tvm_practice.tvm_export.rules.cpu.loops import CONSTANTS, Cpu
    from tvm_practice.tvm_export.rules.cpu.register_tiles import CHOICES

    def build(x: Any, weight: Any) -> Any:
        from tvm.relax import op

        return op.matmul(x, weight)

    module = _module((build, [(rows, steps)], [np.zeros((steps, columns), "float32")]))
    (func,) = (each for _, each in module.functions_items() if isinstance(each, tvm.tirx.PrimFunc))
    cpu = Cpu(bits, 32, 2, 1 << 20)
    ranked = ranked_tiles(find_contraction(func.with_attr(CONSTANTS, [1]), cpu), cpu)
    choice, _ = ranked[0]
    values = [dataclasses.asdict(each) for each, _ in ranked]
    return {
        "of no tuner": sum(
            any(int(value) not in CHOICES[name] for name, value in each.items()) for each in values
        ),
        "rows": choice.rows,
        "vectors": choice.vectors,
        "unroll": choice.unroll,
        "chunks": choice.chunks,
    }


def blocks_of_rows() -> dict[str, int]:
    """Row tiles in a block of 1x1 convolutions on 256-bit vectors, 0 for no blocks, by the case."""
    import tvm

    from tvm_practice.tvm_export.rules.cpu.contraction import (
        block_of,
        find_contraction,
        ranked_tiles,
    )
    from tvm_practice.tvm_export.rules.cpu.loops import CONSTANTS, Cpu

    def tiles(cache: int, filters: int, images: int = 8, prepack: bool = True) -> int:
        from tvm.relax import op

        def build(x: Any, weight: Any) -> Any:
            return op.nn.conv2d(x, weight, data_layout="NHWC", kernel_layout="HWIO")

        weight = np.zeros((1, 1, 256, filters), "float32")
        module = _module((build, [(images, 28, 28, 256)], [weight]))
        (func,) = (
            each for _, each in module.functions_items() if isinstance(each, tvm.tirx.PrimFunc)
        )
        cpu = Cpu(256, 16, 2, cache)
        found = find_contraction(func.with_attr(CONSTANTS, [1] if prepack else []), cpu)
        choice, tile = ranked_tiles(found, cpu)[0]
        return block_of(found, tile, choice, cpu)

    return {
        "larger than the cache": tiles(1 << 19, 128),
        "of one panel": tiles(1 << 19, 16),
        "that fits": tiles(1 << 25, 128),
        "with weights of the call": tiles(1 << 19, 128, prepack=False),
        "with more weights": tiles(1 << 19, 4096, images=2),
    }


def shifted_rows() -> dict[str, Any]:
    """Rows that begin one element later each, of a matrix that is computed before.

    Returns:
        Loop extents around each stage, those that differ between iterations as text; the error.
    """
    import tvm
    from tvm import te

    from tvm_practice.tvm_export.rules.cpu.injective import schedule_injective
    from tvm_practice.tvm_export.rules.cpu.loops import cpu_of
    from tvm_practice.viz.loop_nest import loop_nest, paths

    def shifted(h: Any, i: Any, j: Any) -> Any:
        at = i * 15 + j + 8
        return te.tanh(whole[h, at // 8, at % 8])

    x = te.placeholder((4, 16, 8), "float32", name="x")
    whole = te.compute((4, 16, 8), lambda h, i, j: te.exp(x[h, i, j]), name="whole")
    out = te.compute((4, 8, 8), shifted, name="out")
    target = _target(None)
    module = schedule_injective(te.create_prim_func([x, out]), cpu_of(target)).mod
    nests = paths(loop_nest(module["main"]))
    extents = {statement.name: [each.extent for each in loops] for loops, statement in nests}
    given = _normal(np.random.default_rng(0), (4, 16, 8))
    made = tvm.runtime.tensor(np.zeros((4, 8, 8), "float32"))
    tvm.compile(module, target=target)(tvm.runtime.tensor(given), made)
    row, column = np.indices((8, 8))
    expected = np.tanh(np.exp(given.reshape(4, -1)[:, row * 15 + column + 8]))
    return {"extents": extents, "error": float(np.abs(made.numpy() - expected).max())}


def left_out() -> list[list[str]]:
    """The rules of a 3x3 convolution: as it is, without Winograd's, without contractions' too."""
    from tvm_practice.tvm_export.rules.cpu import schedule_defaults

    module = _module(_convolution_3x3(np.random.default_rng(0)))
    taken = []
    for without in ((), ("winograd",), ("winograd", "contraction")):
        report: list[Decision] = []
        schedule_defaults(module, _target(None), report=report, without=without)
        taken.append([each.rule for each in report])
    return taken


def winograd_beside_nan(channels_last: bool) -> dict[str, Any]:
    """A padded 3x3 convolution by Winograd's algorithm, with and without NaN and infinities.

    Returns:
        "rules"; "error" of the sums of finite inputs, to float64's, in units of the largest;
        "touched", how many outputs have a window with NaN or an infinity, and how many of those
        are "finite"; "changed", how many of the others differ by a bit.
    """
    import torch
    from tvm.relax import op

    from tvm_practice.tvm_export.rules.cpu import schedule_defaults

    random = np.random.default_rng(5)
    x, weight = _normal(random, (2, 48, 29, 31)), _normal(random, (64, 48, 3, 3))
    wide = torch.from_numpy(x).double(), torch.from_numpy(weight).double()
    exact = torch.conv2d(*wide, padding=1).numpy()
    rare = x.copy()
    places = [(0, 3, 0, 0), (0, 9, 28, 30), (0, 47, 13, 14), (1, 0, 6, 3), (1, 8, 21, 20)]
    for place, value in zip(places, (np.nan, np.inf, -np.inf, np.inf, np.nan), strict=True):
        rare[place] = value
    unknown = torch.from_numpy(~np.isfinite(rare)).any(1, keepdim=True).float()
    touched = torch.max_pool2d(unknown, 3, 1, 1).bool().expand(exact.shape).numpy()

    def convolution(x: Any, weight: Any) -> Any:
        if not channels_last:
            return op.nn.conv2d(x, weight, padding=1)
        return op.nn.conv2d(x, weight, padding=1, data_layout="NHWC", kernel_layout="HWIO")

    if channels_last:
        weight = weight.transpose(2, 3, 1, 0).copy()
        x, rare = (each.transpose(0, 2, 3, 1).copy() for each in (x, rare))
    report: list[Decision] = []
    module = _module((convolution, [x.shape], [weight]))
    scheduled = schedule_defaults(module, _target(None), report=report)
    found, beside = (_run(scheduled, _target(None), [each]) for each in (x, rare))
    if channels_last:
        found, beside = (each.transpose(0, 3, 1, 2) for each in (found, beside))
    return {
        "rules": [each.rule for each in report],
        "error": float(np.abs(found - exact).max() / np.abs(exact).max()),
        "touched": int(touched.sum()),
        "finite": int(np.isfinite(beside[touched]).sum()),
        "changed": int((beside != found)[~touched].sum()),
    }


def winograd_cuts() -> dict[str, list[int] | str]:
    """How a processor with 2 MiB of second cache cuts convolutions for Winograd's algorithm.

    Returns:
        By the layer's name its tiles in a row, rows, tiles of a register tile, parts of filters;
        with the channels last its images and rows of tiles, parts of filters, tiles and vectors of
        a register tile; or why the rule declines.
    """
    from tvm import te, topi

    from tvm_practice.tvm_export.errors import NotApplicable
    from tvm_practice.tvm_export.rules.cpu.contraction import find_contraction
    from tvm_practice.tvm_export.rules.cpu.loops import CONSTANTS, Cpu
    from tvm_practice.tvm_export.rules.cpu.winograd import channels_first, channels_last
    from tvm_practice.tvm_export.rules.cpu.winograd.convolution import find_convolution

    wide = Cpu(vector_bits=512, registers=32, threads=2, cache_bytes=2 << 20)
    narrow = Cpu(vector_bits=256, registers=16, threads=8, cache_bytes=1 << 18)

    def cut(
        channels: int,
        size: int,
        cpu: Cpu = wide,
        *,
        filters: int | None = None,
        kernel: int = 3,
        stride: int = 1,
        dilation: int = 1,
        groups: int = 1,
        constant: bool = True,
        dtype: str = "float32",
    ) -> list[int] | str:
        filters = filters or channels
        x = te.placeholder((1, channels, size, size), dtype)
        weight = te.placeholder((filters, channels // groups, kernel, kernel), dtype)
        if groups == 1:
            out = topi.nn.conv2d(x, weight, stride, kernel // 2, dilation, "NCHW")
        else:
            out = topi.nn.group_conv2d_nchw(x, weight, stride, kernel // 2, dilation, groups)
        func = te.create_prim_func([x, weight, out]).with_attr(CONSTANTS, [1] if constant else [])
        try:
            layer = channels_first.cut_of(find_convolution(find_contraction(func, cpu)), cpu)
        except NotApplicable as declined:
            return str(declined)
        return [layer.row, layer.rows, layer.block, layer.parts]

    def cut_last(channels: int, size: int, cpu: Cpu = wide, *, images: int = 1) -> list[int] | str:
        x = te.placeholder((images, size + 2, size + 2, channels))
        weight = te.placeholder((3, 3, channels, channels))
        out = topi.nn.conv2d(x, weight, 1, 0, 1, "NHWC", "HWIO")
        func = te.create_prim_func([x, weight, out]).with_attr(CONSTANTS, [1])
        try:
            layer = find_convolution(find_contraction(func, cpu))
            cut = channels_last.gaining_cut(func, layer, cpu)
        except NotApplicable as declined:
            return str(declined)
        return [cut.together, cut.rows, cut.parts, cut.size, cut.vectors]

    return {
        "64x56": cut(64, 56),
        "128x28": cut(128, 28),
        "256x14": cut(256, 14),
        "64x56, AVX2": cut(64, 56, narrow),
        "256x14, small cache": cut(256, 14, narrow),
        "few pixels": cut(512, 7),
        "few channels": cut(16, 56, filters=64),
        "few filters": cut(64, 56, filters=16),
        "much beyond the edge": cut(64, 18),
        "1x1": cut(64, 56, kernel=1),
        "5x5": cut(64, 56, kernel=5),
        "stride": cut(64, 56, stride=2),
        "dilation": cut(64, 56, dilation=2),
        "groups": cut(64, 56, groups=2),
        "weights given": cut(64, 56, constant=False),
        "float64": cut(64, 56, dtype="float64"),
        "64x56, channels last": cut_last(64, 56),
        "256x14, channels last": cut_last(256, 14),
        "512x7, channels last, 8 images": cut_last(512, 7, images=8),
        "64x56, channels last, AVX2": cut_last(64, 56, narrow),
        "few pixels, channels last": cut_last(512, 7),
        "odd channels, channels last": cut_last(24, 56),
        "few channels, channels last": cut_last(8, 56, narrow),
    }


def other_window_sums() -> dict[str, dict[str, Any]]:
    """Reductions over 3x3 windows and 64 channels of constant weights: rules, why not Winograd's.

    Returns:
        By the step of the reduction: the rule, Winograd's reason if it declined, the error.
    """
    import tvm
    from tvm import te

    from tvm_practice.tvm_export.rules import cpu as cpu_rules
    from tvm_practice.tvm_export.rules.cpu.loops import cpu_of

    steps: dict[str, tuple[Any, Any]] = {
        "sum x*w": (te.sum, lambda a, b: a * b),
        "sum w*x": (te.sum, lambda a, b: b * a),
        "sum |x-w|": (te.sum, lambda a, b: te.abs(a - b)),
        "max x*w": (te.max, lambda a, b: a * b),
        "sum 2*x*w": (te.sum, lambda a, b: 2.0 * a * b),
    }
    random = np.random.default_rng(8)
    x, weight = _normal(random, (1, 64, 30, 30)), _normal(random, (64, 64, 3, 3))
    found = {}

    def reduction(reduce: Any, step: Any) -> Any:
        A = te.placeholder(x.shape, "float32", name="A")
        W = te.placeholder(weight.shape, "float32", name="W")
        c, r, s = axes = [te.reduce_axis((0, size)) for size in weight.shape[1:]]

        def value(n: Any, f: Any, i: Any, j: Any) -> Any:
            return reduce(step(A[n, c, i + r, j + s], W[f, c, r, s]), axis=axes)

        Y = te.compute((1, 64, 28, 28), value)
        return te.create_prim_func([A, W, Y]).with_attr("global_symbol", "main")

    for name, (reduce, step) in steps.items():
        plain = reduction(reduce, step)
        func, decision = cpu_rules._schedule("main", plain, {1}, cpu_of(_target(None)))
        outs = []
        for each in (func, plain):
            out = tvm.runtime.tensor(np.full((1, 64, 28, 28), np.nan, "float32"))
            library = tvm.compile(tvm.IRModule({"main": each}), target=_target(None))
            library["main"](tvm.runtime.tensor(x), tvm.runtime.tensor(weight), out)
            outs.append(out.numpy())
        found[name] = {
            "rule": decision.rule,
            "why": decision.declined.get("winograd"),
            "error": float(np.abs(outs[0] - outs[1]).max() / np.abs(outs[1]).max()),
        }
    return found


def caches() -> dict[str, int]:
    """Bytes of second cache that the rules count on, on a machine of 7 MiB, by target."""
    from importlib import import_module
    from unittest.mock import patch

    import tvm

    from tvm_practice import engines
    from tvm_practice.tvm_export.rules.cpu.loops import cpu_of

    environment = import_module("tvm_practice.measure.environment")
    other = "znver4" if engines.host_target().attrs["mcpu"] == "znver5" else "znver5"
    elsewhere = {"kind": "llvm", "mtriple": "x86_64-linux-gnu", "mcpu": other}
    arm = {"kind": "llvm", "mtriple": "aarch64-linux-gnu", "mcpu": "cortex-a72"}
    targets = {
        "here": engines.host_target(),
        "any": tvm.target.Target("llvm"),
        "another": tvm.target.Target(elsewhere),
        "arm": tvm.target.Target(arm),
    }
    with patch.object(environment, "cache_bytes", lambda: {"L2": 7 << 20}):
        return {name: cpu_of(target).cache_bytes for name, target in targets.items()}


def left_alone() -> dict[str, bool]:
    """What scheduling must not change: the module given, and functions scheduled before."""
    import tvm
    import tvm_ffi

    from tvm_practice.tvm_export.rules.cpu import schedule_defaults

    module = _module(_dense(np.random.default_rng(1)))
    before = module.clone()
    (name,) = (
        name for name, each in module.functions_items() if isinstance(each, tvm.tirx.PrimFunc)
    )
    marked = module.clone()
    marked[name] = marked[name].with_attr("tirx.is_scheduled", True)
    report: list[Decision] = []
    after = schedule_defaults(marked, _target(None), report=report)
    schedule_defaults(module, _target(None))
    return {
        "given": bool(tvm_ffi.structural_equal(module, before)),
        "scheduled before": bool(tvm_ffi.structural_equal(after[name], marked[name])),
        "reported": bool(report),
    }


def refused() -> dict[str, Any]:
    """The decisions and error where every rule but the last one fails, and where even that does.

    By "strict" what a mistake of a rule is raised as where the environment asks for that.
    """
    import os
    import unittest
    from unittest.mock import patch

    from tvm_practice.tvm_export.errors import NotApplicable
    from tvm_practice.tvm_export.rules import cpu as cpu_rules

    def broken(func: Any, cpu: Any) -> Any:
        raise ZeroDivisionError("a mistake in a rule")

    def unfit(func: Any, cpu: Any) -> Any:
        raise NotApplicable("not this one")

    kept = cpu_rules._RULES
    results: dict[str, Any] = {}
    random = np.random.default_rng(2)
    draw = _matmul(random)
    module, target = _module(draw), _target(None)
    inputs = [_normal(random, shape) for shape in draw[1]]
    reference = _run(module, target, inputs)
    rules = (("broken", broken), ("unfit", unfit))
    for case, tried in (("fallback", (*rules, kept[-1])), ("unscheduled", rules)):
        report: list[Decision] = []
        with patch.object(cpu_rules, "_RULES", tried):
            quietly = unittest.TestCase().assertNoLogs(level="WARNING")  # a good run says nothing
            with patch.dict(os.environ, {STRICT: ""}), quietly:
                scheduled = cpu_rules.schedule_defaults(module, target, report=report)
            try:
                with patch.dict(os.environ, {STRICT: "1"}):
                    cpu_rules.schedule_defaults(module, target)
            except ZeroDivisionError as raised:
                results["strict"] = str(raised)
        error = float(np.abs(_run(scheduled, target, inputs) - reference).max())
        results[case] = {
            "error": error,
            "rules": [each.rule for each in report],
            "declined": report[0].declined,
        }
    return results


def unknown_operator() -> dict[str, Any]:
    """An operator that no rule is made for, argmax: right, in parallel, and told as fallback."""
    from tvm.relax import op

    from tvm_practice.tvm_export.rules.cpu import schedule_defaults

    x = _normal(np.random.default_rng(3), (17, 9, 31))
    module = _module((lambda x: op.argmax(x, axis=1), [x.shape], []))
    report: list[Decision] = []
    scheduled = schedule_defaults(module, _target(None), report=report)
    same = (_run(scheduled, _target(None), [x]) == x.argmax(1)).all()
    text = str(scheduled.script(show_meta=False))
    return {
        "same": bool(same),
        "rules": [each.rule for each in report],
        "parallel": text.count("parallel("),
    }


def _product(kind: str, total: str) -> Any:
    """The PrimFunc C = A B of shapes (21, 35) and (35, 50), summed in type `total`."""
    from tvm import te

    A = te.placeholder((21, 35), kind, name="A")
    B = te.placeholder((35, 50), kind, name="B")
    k = te.reduce_axis((0, 35), name="k")
    C = te.compute(
        (21, 50),
        lambda i, j: te.sum(A[i, k].astype(total) * B[k, j].astype(total), axis=k),
        name="C",
    )
    return te.create_prim_func([A, B, C]).with_attr("global_symbol", "main")


def other_types() -> dict[str, float]:
    """Relative errors of matrix products in other types than float32."""
    import tvm

    from tvm_practice.tvm_export.rules.cpu import schedule_defaults

    random = np.random.default_rng(4)
    errors = {}
    for kind, total in (("float64", "float64"), ("float16", "float32"), ("int8", "int32")):
        a, b = (random.integers(-9, 9, shape).astype(kind) for shape in ((21, 35), (35, 50)))
        module = tvm.IRModule({"main": _product(kind, total)})
        report: list[Decision] = []
        scheduled = schedule_defaults(module, _target(None), report=report)
        assert [each.rule for each in report] == ["contraction"], report
        out = tvm.runtime.tensor(np.zeros((21, 50), total))
        library = tvm.compile(scheduled, target=_target(None))
        library["main"](tvm.runtime.tensor(a), tvm.runtime.tensor(b), out)
        exact = a.astype("float64") @ b.astype("float64")
        errors[kind] = float(np.abs(out.numpy() - exact).max() / np.abs(exact).max())
    return errors


def any_batch() -> list[dict[str, Any]]:
    """A model exported for any batch size, built once, against PyTorch at several sizes."""
    import torch
    import tvm
    from torch import nn
    from tvm import relax
    from tvm.relax.frontend.torch import from_exported_program

    from solutions.relay_import import optimize_relax
    from tvm_practice.tvm_export.quiet import quiet_frontends
    from tvm_practice.tvm_export.rules.cpu import schedule_defaults

    torch.manual_seed(0)
    net = nn.Sequential(
        nn.Conv2d(3, 20, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(500, 30),
        nn.LayerNorm(30),
        nn.Softmax(-1),
    ).eval()
    batch = torch.export.Dim("batch", min=2, max=64)
    with quiet_frontends(), torch.no_grad():
        exported = torch.export.export(
            net, (torch.randn(4, 3, 11, 11),), dynamic_shapes=({0: batch},)
        )
        imported = from_exported_program(exported, unwrap_unit_return_tuple=True)
    report: list[Decision] = []
    scheduled = schedule_defaults(optimize_relax(imported), _target(None), report=report)
    machine = relax.VirtualMachine(tvm.compile(scheduled, _target(None)), tvm.cpu())
    results = []
    for size in (2, 7, 33):
        x = torch.randn(size, 3, 11, 11)
        with torch.no_grad():
            error = np.abs(machine["main"](tvm.runtime.tensor(x.numpy())).numpy() - net(x).numpy())
        results.append({"batch": size, "error": float(error.max())})
    assert not {each.rule for each in report} - {"contraction", "reduction", "injective"}, report
    return results


def deep_chain() -> dict[str, Any]:
    """Operators that use their input more than once, one after the other, after a product."""
    import time

    from tvm.relax import op

    from tvm_practice.tvm_export.rules.cpu import schedule_defaults

    def build(x: Any, weight: Any) -> Any:
        y = op.matmul(x, weight)
        for _ in range(6):
            y = op.multiply(y, op.tanh(op.log(op.add(op.exp(y), op.sigmoid(y)))))
        return y

    random = np.random.default_rng(7)
    module = _module((build, [(30, 40)], [_normal(random, (40, 50))]))
    x = _normal(random, (30, 40))
    started = time.process_time()  # whatever else the machine does
    scheduled = _run(schedule_defaults(module, _target(None)), _target(None), [x])
    seconds = time.process_time() - started
    reference = _run(module, _target(None), [x])
    return {"error": float(np.abs(scheduled - reference).max()), "seconds": seconds}


def weight_or_not() -> dict[str, Any]:
    """One function called with a constant and with an input in the place of its weight."""
    from tvm import relax

    from solutions.relay_import import optimize_relax
    from tvm_practice.tvm_export.rules.cpu import schedule_defaults

    random = np.random.default_rng(5)
    x, weight = _normal(random, (40, 48)), _normal(random, (48, 48))
    builder = relax.BlockBuilder()
    shapes = {"x": (40, 48), "given": (48, 48)}
    inputs = [relax.Var(key, relax.TensorType(shape, "float32")) for key, shape in shapes.items()]
    with builder.function("main", inputs):
        with builder.dataflow():
            first = builder.emit(relax.op.matmul(inputs[0], relax.const(weight, "float32")))
            output = builder.emit_output(relax.op.matmul(first, inputs[1]))
        builder.emit_func_output(output)
    module = optimize_relax(builder.finalize())
    scheduled = schedule_defaults(module, _target(None))
    exact = x.astype("float64") @ weight @ weight
    error = np.abs(_run(scheduled, _target(None), [x, weight]) - exact).max() / np.abs(exact).max()
    names = [str(name.name_hint) for name, _ in scheduled.functions_items()]
    return {"error": float(error), "functions": names}


def _elementwise(function: Callable[[Any], Any], size: int) -> Any:
    """The PrimFunc Y[i] = function(X[i]) of a float32 X."""
    from tvm import te

    X = te.placeholder((size,), "float32", name="X")
    Y = te.compute((size,), lambda i: function(X[i]), name="Y")
    return te.create_prim_func([X, Y]).with_attr("global_symbol", "main")


def arithmetic() -> dict[str, dict[str, Any]]:
    """Of each function that becomes arithmetic: errors in units in the last place, special values.

    Against float64 where that is normal in float32; the special values are NaN, both infinities,
    zero and 1e-30.
    """
    import tvm
    from scipy import special
    from tvm import tirx

    from tvm_practice.tvm_export.rules.cpu.vector_math import vectorizable_math

    random = np.random.default_rng(6)
    results: dict[str, dict[str, Any]] = {}
    for name, low, high, exact in (
        ("exp", -87.33, 88.7, np.exp),
        ("log", 1e-3, 1e3, np.log),
        ("log", 1e-3, 1e30, np.log),
        ("log", 1e-44, 1e-38, np.log),
        ("erf", -5.0, 5.0, special.erf),
        ("tanh", -10.0, 10.0, np.tanh),
        ("sigmoid", -80.0, 80.0, special.expit),
        ("cube", -9.0, 9.0, lambda x: x**3),
    ):
        wide = random.uniform(low, high, 50_000)
        small = random.uniform(-1, 1, 50_000) * 10.0 ** random.uniform(-6, 0, 50_000)
        if name == "log":
            small = np.abs(small)
        x = np.concatenate([[np.nan, np.inf, -np.inf, 0.0, 1e-30], wide, small]).astype("float32")
        function = getattr(tirx, name, lambda value: tirx.power(value, tirx.const(3.0, "float32")))
        before = _elementwise(function, len(x))
        after = vectorizable_math(before)
        out = tvm.runtime.tensor(np.zeros_like(x))
        library = tvm.compile(tvm.IRModule({"main": after}), target=_target(None))
        library["main"](tvm.runtime.tensor(x), out)
        want = exact(x[5:].astype("float64"))
        unit = np.spacing(np.abs(want).astype("float32"))
        worst = results.get(name, {"ulp": 0.0})["ulp"]
        results[name] = {
            "ulp": max(worst, float((np.abs(out.numpy()[5:] - want) / unit).max())),
            "special": [str(each) for each in out.numpy()[:5]],
            "called": f"T.{name}(" in after.script() or "T.pow(" in after.script(),
            "called before": f"T.{name}(" in before.script() or "T.pow(" in before.script(),
        }
    return results


def rounded_bytes() -> dict[str, dict[str, Any]]:
    """Quantized halves, quarters and infinities: how many are wrong, and whether any is rounded."""
    import tvm
    from tvm import tirx

    from tvm_practice.tvm_export.rules.cpu.vector_math import vectorizable_math

    def number(value: float) -> Any:
        return tirx.const(value, "float32")

    near = np.arange(-700, 700, 0.25)
    x = np.concatenate([near, np.nextafter(near, 9e9, dtype="float32"), [np.inf, -np.inf, 1e30]])
    x = x.astype("float32")
    results: dict[str, dict[str, Any]] = {}
    for dtype, low, high, zero, through in (
        ("uint8", 0, 255, 0, "float32"),
        ("uint8", 0, 255, 3, "int32"),
        ("uint8", 0, 127, 128, "float32"),
        ("int8", -128, 127, 0, "int32"),
        ("int8", -127, 127, -5, "float32"),
        ("int8", -127, 127, 0.5, "float32"),  # no zero point: stays as it is
        ("uint8", 0, 255, np.nan, "int32"),  # a sum of two values: as well
    ):

        def quantized(
            value: Any,
            dtype: str = dtype,
            low: float = low,
            high: float = high,
            zero: float = zero,
            through: str = through,
        ) -> Any:
            rounded = tirx.nearbyint(value * number(0.5))
            if np.isnan(zero):
                rounded = rounded + tirx.nearbyint(value)
            elif zero:
                rounded = rounded + number(zero)
            limited = tirx.max(tirx.min(rounded, number(high)), number(low))
            return limited.astype(through).astype(dtype)

        after = vectorizable_math(_elementwise(quantized, len(x)))
        out = tvm.runtime.tensor(np.zeros(len(x), dtype))
        library = tvm.compile(tvm.IRModule({"main": after}), target=_target(None))
        library["main"](tvm.runtime.tensor(x), out)
        added = np.rint(x) if np.isnan(zero) else np.float32(zero)
        want = np.clip(np.rint(x * np.float32(0.5)) + added, low, high).astype(dtype)
        results[f"{dtype} {zero} {low} {high}"] = {
            "wrong": int((out.numpy() != want).sum()),
            "rounds": "nearbyint" in after.script(),
        }
    return results


def functions_of_shared_values() -> dict[str, float]:
    """By function, the error of x - f(y) tanh(y), where one y or one of a row meets each x."""
    import torch

    from tvm_practice.tvm_export import ExportConfig, compile_pytorch_module

    class Scaled(torch.nn.Module):
        def __init__(self, function: Any) -> None:
            super().__init__()
            self.function = function

        def forward(self, x: Any, y: Any) -> Any:
            return x - self.function(y) * torch.tanh(y)

    torch.manual_seed(0)
    found: dict[str, float] = {}
    for name in ("rsqrt", "asinh", "round", "isnan"):
        model, x = Scaled(getattr(torch, name)), torch.randn(3, 5)
        for y in (torch.rand(()), torch.rand(3, 1)):
            given = ExportConfig(example_input=(x, y))
            [got] = compile_pytorch_module(model, given, verify=False)(x, y)
            error = float(np.abs(got - model(x, y).numpy()).max())
            found[name] = max(found.get(name, 0.0), error)
    return found
