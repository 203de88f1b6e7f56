"""Reductions, softmax, normalizations, pooling, resizing, running sums."""

from typing import Any

from fuzz.drawing import Drawn, Unsuitable, Value


def _axes(drawn: Drawn, value: Value) -> tuple[int, ...]:
    count = drawn.integer(1, min(value.rank, 3))
    return tuple(sorted({drawn.integer(0, value.rank - 1) for _ in range(count)}))


def _sum(drawn: Drawn, name: str) -> None:
    """sum, mean, amax, amin, var, std, norm, any, all over some axes."""
    given = drawn.value(lambda it: it.rank > 0 and (it.filled or name == "sum") and not it.is_bool)
    if name in ("mean", "var", "std", "norm") and not given.is_real:
        raise Unsuitable
    axes, kept = _axes(drawn, given), drawn.chance()
    exact = name in ("amax", "amin") or not given.is_real
    if name in ("var", "std"):
        arguments = f"dim={axes}, correction={drawn.among((0, 1, 2))}, keepdim={kept}"
        code = f"{given.name}.var({arguments})"
        code = f"({code} + 0.5).sqrt()" if name == "std" else code
    elif name == "norm":
        order = drawn.among((2, 1))
        code = f"torch.linalg.vector_norm({given.name}, {order}, dim={axes}, keepdim={kept})"
    else:
        code = f"{given.name}.{name}(dim={axes}, keepdim={kept})"
    drawn.take(name, code, of=[given], exact=exact)


def _truth(drawn: Drawn, name: str) -> None:
    given = drawn.value(lambda it: it.rank > 0 and it.exact)
    axis, kept = drawn.axis(given), drawn.chance()
    drawn.take(name, f"{given.name}.{name}({axis}, keepdim={kept})", of=[given], exact=True)


def _product(drawn: Drawn, name: str) -> None:
    given = drawn.real(1)
    axis = drawn.axis(given)
    code = f"torch.tanh({given.name}).prod({axis}, keepdim={drawn.chance()})"
    drawn.take(name, code, of=[given], exact=False)


def _place(drawn: Drawn, name: str) -> None:
    """Where the largest or smallest is: of exact values, the first of equal ones."""
    given = drawn.value(lambda it: it.rank > 0 and it.filled and it.exact and not it.is_bool)
    axis = drawn.axis(given)
    drawn.take(name, f"{given.name}.{name}({axis})", of=[given], exact=True)


def _largest(drawn: Drawn, name: str) -> None:
    given = drawn.value(lambda it: it.rank > 0 and it.filled and not it.is_bool)
    axis = drawn.axis(given)
    drawn.take(name, f"{given.name}.{name}({axis}).values", of=[given], exact=True)


def _ordered(drawn: Drawn, name: str) -> None:
    given = drawn.value(lambda it: it.rank > 0 and it.filled and not it.is_bool)
    axis = drawn.axis(given)
    if name == "sort":
        code = f"torch.sort({given.name}, {axis}, descending={drawn.chance()}).values"
    else:
        most = drawn.integer(1, given.shape[axis])
        code = f"torch.topk({given.name}, {most}, {axis}, largest={drawn.chance()}).values"
    drawn.take(name, code, of=[given], exact=True)


def _softmax(drawn: Drawn, name: str) -> None:
    given = drawn.real(1)
    drawn.take(name, f"F.{name}({given.name}, {drawn.axis(given)})", of=[given], exact=False)


def _masked_softmax(drawn: Drawn, name: str) -> None:
    """With minus infinity where a causal mask says so."""
    given = drawn.real(2)
    masked = f"{given.name}.masked_fill(torch.ones_like({given.name}).triu(1) > 0, float('-inf'))"
    drawn.take(name, f"F.softmax({masked}, -1)", of=[given], exact=False)


def _logsumexp(drawn: Drawn, name: str) -> None:
    given = drawn.real(1)
    code = f"torch.logsumexp({given.name}, {drawn.axis(given)}, keepdim={drawn.chance()})"
    drawn.take(name, code, of=[given], exact=False)


def _running(drawn: Drawn, name: str) -> None:
    given = drawn.value(lambda it: it.rank > 0 and it.filled)
    value = f"torch.tanh({given.name})" if name == "cumprod" else given.name
    if name == "cumprod" and not given.is_real:
        raise Unsuitable
    exact = not given.is_real
    drawn.take(name, f"{value}.{name}({drawn.axis(given)})", of=[given], exact=exact)


def _layer_norm(drawn: Drawn, name: str) -> None:
    given = drawn.real(1)
    shape = given.shape[-drawn.integer(1, min(given.rank, 2)) :]
    affine = ""
    if drawn.chance():
        affine = f", {drawn.weight(shape, given.dtype)}"
        if name == "layer_norm":
            affine += f", {drawn.weight(shape, given.dtype)}"
    eps = ", eps=0.1" if name == "layer_norm" or drawn.chance() else ""
    if not affine and name == "layer_norm":
        affine = ", None, None"
    if eps and not affine:
        affine = ", None"
    drawn.take(name, f"F.{name}({given.name}, {shape}{affine}{eps})", of=[given], exact=False)


def _normalization(drawn: Drawn, name: str) -> None:
    """Group, instance and batch normalization."""
    given = drawn.real(3 if name == "instance_norm" else 2)
    channels = given.shape[1]
    if name == "group_norm":
        groups = drawn.among([each for each in (1, 2, 3, 4, 8) if not channels % each])
        arguments = f"{groups}"
    elif name == "instance_norm":
        arguments = "None, None"
    else:
        mean = drawn.weight((channels,), given.dtype)
        arguments = f"{mean}, {drawn.weight((channels,), given.dtype)}.abs() + 0.1"
    if drawn.chance():
        own = [drawn.weight((channels,), given.dtype) for _ in range(2)]
        arguments += f", {own[0]}, {own[1]}"
    drawn.take(name, f"F.{name}({given.name}, {arguments}, eps=0.1)", of=[given], exact=False)


def _normalize(drawn: Drawn, name: str) -> None:
    given = drawn.real(1)
    code = f"F.normalize({given.name}, dim={drawn.axis(given)}, eps=0.1)"
    drawn.take(name, code, of=[given], exact=False)


def _pool(drawn: Drawn, name: str) -> None:
    axes = int(name[-2])
    given = drawn.real(axes + 2, axes + 2)
    window, stride = drawn.among((2, 3, 1, 5)), drawn.among((2, 1, 3))
    padding = drawn.integer(0, window // 2)
    more = f", ceil_mode={drawn.chance()}"
    if name.startswith("max"):
        more += f", dilation={drawn.among((1, 1, 2))}"
    else:
        more += f", count_include_pad={drawn.chance()}"
        if axes > 1:
            more += f", divisor_override={drawn.among((None, 1, 3, 7))}"
    code = f"F.{name}({given.name}, {window}, {stride}, {padding}{more})"
    drawn.take(name, code, of=[given], exact=name.startswith("max"))


def _adaptive_pool(drawn: Drawn, name: str) -> None:
    axes = int(name[-2])
    given = drawn.real(axes + 2, axes + 2)
    size = tuple(drawn.among((1, 2, 3, 5)) for _ in range(axes))
    code = f"F.{name}({given.name}, {size})"
    drawn.take(name, code, of=[given], exact="max" in name)


def _interpolate(drawn: Drawn, name: str) -> None:
    """To a size, or by a factor per axis, which is then recomputed from the sizes or not."""
    given = drawn.real(4, 4)
    mode = drawn.among(("nearest", "nearest-exact", "bilinear", "bicubic", "area"))
    if drawn.chance():
        size = tuple(drawn.among((1, 2, 3, 5, 8, 13)) for _ in range(2))
        more = f"size={size}"
    else:
        factors = tuple(drawn.among((2.0, 0.5, 1.5, 1.4, 0.7, 3.0)) for _ in range(2))
        recomputed = ", recompute_scale_factor=True" if drawn.chance() else ""
        more = f"scale_factor={factors}{recomputed}"
    corners = f", align_corners={drawn.chance()}" if mode.startswith("bi") else ""
    code = f'F.interpolate({given.name}, {more}, mode="{mode}"{corners})'
    drawn.take(name, code, of=[given], exact=mode.startswith("nearest"))


MAKERS: dict[str, Any] = {
    **dict.fromkeys(("sum", "mean", "amax", "amin", "var", "std", "norm"), _sum),
    **dict.fromkeys(("any", "all"), _truth),
    **dict.fromkeys(("argmax", "argmin"), _place),
    **dict.fromkeys(("max", "min"), _largest),
    **dict.fromkeys(("sort", "topk"), _ordered),
    **dict.fromkeys(("softmax", "log_softmax", "softmin"), _softmax),
    **dict.fromkeys(("cumsum", "cumprod"), _running),
    **dict.fromkeys(("layer_norm", "rms_norm"), _layer_norm),
    **dict.fromkeys(("group_norm", "instance_norm", "batch_norm"), _normalization),
    **dict.fromkeys(("max_pool1d", "max_pool2d", "avg_pool1d", "avg_pool2d", "avg_pool3d"), _pool),
    **dict.fromkeys(("adaptive_avg_pool2d", "adaptive_max_pool2d"), _adaptive_pool),
    "prod": _product,
    "masked softmax": _masked_softmax,
    "logsumexp": _logsumexp,
    "normalize": _normalize,
    "interpolate": _interpolate,
}
