"""Matrix products and convolutions."""

import math
from typing import Any

from fuzz.drawing import CHANNELS, Drawn, Unsuitable, Value

_MULTIPLICATIONS = 1 << 23


def _size(terms: int) -> float:
    """The size of weights that keeps a sum of so many products as large as its terms."""
    return 1 / math.sqrt(max(terms, 1))


def _linear(drawn: Drawn, name: str) -> None:
    given = drawn.real(1)
    terms, out = given.shape[-1], drawn.among(CHANNELS)
    weight = drawn.weight((out, terms), given.dtype, _size(terms))
    bias = drawn.weight((out,), given.dtype) if drawn.chance() else "None"
    drawn.take(name, f"F.linear({given.name}, {weight}, {bias})", of=[given], exact=False)


def _matmul(drawn: Drawn, name: str) -> None:
    """With a constant on either side, of its own batch axes or not."""
    given = drawn.real(2)
    terms, out = given.shape[-1], drawn.among(CHANNELS)
    if drawn.chance():
        batch = given.shape[:-2] if drawn.chance() else ()
        other = drawn.weight((*batch, terms, out), given.dtype, _size(terms))
        code = f"torch.matmul({given.name}, {other})"
    else:
        other = drawn.weight((out, given.shape[-2]), given.dtype, _size(given.shape[-2]))
        code = f"torch.matmul({other}, {given.name})"
    drawn.take(name, code, of=[given], exact=False)


def _product(drawn: Drawn, name: str) -> None:
    """Of two values, or of one with itself, turned."""
    one = drawn.real(2)
    other = drawn.value(
        lambda it: (
            it.is_real
            and it.dtype == one.dtype
            and it.rank >= 2
            and it.shape[-1] == one.shape[-1]
            and it.filled
        )
    )
    size = _size(one.shape[-1])
    code = f"torch.matmul({one.name} * {size:.4g}, {other.name}.transpose(-1, -2))"
    drawn.take(name, code, of=[one, other], exact=False)


_EQUATIONS = (
    ("...i,oi->...o", 1),
    ("...ij,jo->...oi", 2),
    ("...ij,oi->...jo", 2),
    ("bij,bjo->bio", 3),
    ("bij,bio->bjo", 3),
    ("bchw,co->bohw", 4),
    ("bchw,hwo->bco", 4),
)


def _einsum(drawn: Drawn, name: str) -> None:
    equation, rank = drawn.among(_EQUATIONS)
    given = drawn.real(rank, 9 if "..." in equation else rank)
    first, second = equation.split("->")[0].replace("...", "").split(",")
    extents = dict(zip(first, given.shape[-len(first) :], strict=True))
    extents["o"] = drawn.among(CHANNELS)
    summed = set(first) & set(second) - set(equation.split("->")[1])
    size = _size(math.prod(extents[each] for each in summed))
    other = drawn.weight(tuple(extents[each] for each in second), given.dtype, size)
    code = f'torch.einsum("{equation}", {given.name}, {other})'
    drawn.take(name, code, of=[given], exact=False)


def _convolution(drawn: Drawn, name: str) -> None:
    axes = int(name[-2])
    given = drawn.real(axes + 2, axes + 2)
    channels, extents = given.shape[1], given.shape[2:]
    kernel = drawn.among((3, 1, 2, 5, 7)) if drawn.chance() else drawn.among((3, 1))
    window = tuple(kernel if drawn.chance() else min(kernel, 3) for _ in range(axes))
    stride, dilation = drawn.among((1, 1, 1, 2, 3)), drawn.among((1, 1, 1, 2))
    padding = drawn.among((kernel // 2, 0, 1, kernel - 1))
    if any(
        extent + 2 * padding < dilation * (each - 1) + 1
        for extent, each in zip(extents, window, strict=True)
    ):
        raise Unsuitable
    groups = drawn.among([1, 1, *(each for each in (channels, 2, 4, 8) if not channels % each)])
    filters = groups * drawn.among(
        [each for each in (1, 2, 3, 8, 16, 33, 64) if each * groups < 200]
    )
    terms = channels // groups * math.prod(window)
    _affordable(given, filters * terms)
    weight = drawn.weight((filters, channels // groups, *window), given.dtype, _size(terms))
    bias = drawn.weight((filters,), given.dtype) if drawn.chance() else "None"
    code = (
        f"F.{name}({given.name}, {weight}, {bias}, stride={stride}, padding={padding}, "
        f"dilation={dilation}, groups={groups})"
    )
    drawn.take(name, code, of=[given], exact=False)


def _transposed(drawn: Drawn, name: str) -> None:
    axes = int(name[-2])
    given = drawn.real(axes + 2, axes + 2)
    channels = given.shape[1]
    kernel, stride = drawn.among((3, 1, 2, 4)), drawn.among((1, 2, 3))
    padding, dilation = drawn.among((0, 1)), drawn.among((1, 1, 2))
    output_padding = drawn.integer(0, stride - 1)
    groups = drawn.among([1, *(each for each in (2, channels) if not channels % each)])
    filters = drawn.among((1, 2, 3, 8, 16))
    added = dilation * (kernel - 1) + output_padding + 1 - 2 * padding
    if any((each - 1) * stride + added < 1 for each in given.shape[2:]):
        raise Unsuitable  # PyTorch makes nothing of it in some types alone
    terms = channels // groups * kernel**axes
    _affordable(given, filters * groups * terms)
    shape = (channels, filters, *[kernel] * axes)
    weight = drawn.weight(shape, given.dtype, _size(terms))
    bias = drawn.weight((filters * groups,), given.dtype) if drawn.chance() else "None"
    code = (
        f"F.{name}({given.name}, {weight}, {bias}, stride={stride}, padding={padding}, "
        f"output_padding={output_padding}, groups={groups}, dilation={dilation})"
    )
    drawn.take(name, code, of=[given], exact=False)


def _affordable(given: Value, multiplications: int) -> None:
    if math.prod(given.shape) // given.shape[1] * multiplications > _MULTIPLICATIONS:
        raise Unsuitable


def _attention(drawn: Drawn, name: str) -> None:
    given = drawn.real(3, 4)
    if given.rare:  # of which PyTorch's own ways to compute it make different values
        raise Unsuitable
    rows = given.shape[-2]
    kind = drawn.among(("none", "causal", "bool", "added"))
    more = f"is_causal={kind == 'causal'}"
    if kind in ("bool", "added"):  # of all leading axes, or of none
        shape = (*(given.shape[:-2] if drawn.chance() else ()), rows, rows)
        more = f"attn_mask={drawn.weight(shape, 'bool' if kind == 'bool' else given.dtype)}"
    if drawn.chance():
        # PyTorch masks before it scales: -inf times a negative scale is inf.
        scales = (1.0, 0.125) if kind == "causal" else (1.0, 0.125, -0.5)
        more += f", scale={drawn.among(scales)}"
    operands = f"{given.name}, {given.name} * 0.5, {given.name}"
    code = f"F.scaled_dot_product_attention({operands}, {more})"
    drawn.take(name, code, of=[given], exact=False)


# The gates of each kind, and whether it has a memory beside its state.
_RECURRENT = {"lstm": (4, True), "gru": (3, False), "rnn_tanh": (1, False), "rnn_relu": (1, False)}
# Of all layers and directions: classic TVM writes them out, and takes minutes for sixty.
_MOST_STEPS = 33


def _recurrent(drawn: Drawn, name: str) -> None:
    """What `nn.LSTM`, `nn.GRU` and `nn.RNN` call; its outputs of all steps, or its last states."""
    given = drawn.value(
        lambda it: it.dtype in ("float32", "float64") and it.rank == 3 and it.filled and not it.rare
    )
    gates, has_memory = _RECURRENT[name]
    layers, directions = drawn.integer(1, 2), drawn.integer(1, 2)
    batch_first, biased = drawn.chance(), drawn.chance()
    size = given.shape[2]
    hidden = drawn.among([each for each in CHANNELS if each <= 33])
    if max(given.shape[:2]) * layers * directions > _MOST_STEPS:
        raise Unsuitable
    if math.prod(given.shape[:2]) * gates * hidden * (size + hidden) * 4 > _MULTIPLICATIONS:
        raise Unsuitable

    def weight(*shape: int) -> str:
        return drawn.weight(shape, given.dtype, _size(hidden))

    weights = []
    for layer in range(layers):
        terms = size if layer == 0 else hidden * directions
        for _ in range(directions):
            weights += [weight(gates * hidden, terms), weight(gates * hidden, hidden)]
            weights += [weight(gates * hidden), weight(gates * hidden)] if biased else []
    # As many as there are rows: PyTorch does not check that, and reads what lies beside them.
    rows = f"{given.name}.shape[{0 if batch_first else 1}]"
    states = [
        f"{weight(layers * directions, 1, hidden)}.expand(-1, {rows}, -1)"
        for _ in range(2 if has_memory else 1)
    ]
    state = f"({', '.join(states)})" if has_memory else states[0]
    code = (
        f"torch._VF.{name}({given.name}, {state}, [{', '.join(weights)}], {biased}, {layers}, 0.0, "
        f"False, {directions == 2}, {batch_first})[{drawn.integer(0, 2 if has_memory else 1)}]"
    )
    drawn.take(name, code, of=[given], exact=False)


MAKERS: dict[str, Any] = {
    "linear": _linear,
    "matmul": _matmul,
    "matmul of two": _product,
    "einsum": _einsum,
    "conv1d": _convolution,
    "conv2d": _convolution,
    "conv3d": _convolution,
    "conv_transpose1d": _transposed,
    "conv_transpose2d": _transposed,
    "scaled_dot_product_attention": _attention,
    **dict.fromkeys(_RECURRENT, _recurrent),
}
