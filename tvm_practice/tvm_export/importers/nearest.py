"""Resizing to the nearest in programs of core ATen, `upsample_nearest2d.default` and the like."""

import math
from typing import Any

from tvm_practice.tvm_export.importers.converters.arguments import settings_of

_OPERATORS = {
    f"aten.{kind}{axes}d"
    for kind in ("upsample_nearest", "_upsample_nearest_exact")
    for axes in (1, 2, 3)
}


def use_overloads_by_vector(program: Any) -> None:
    """Replace the overload `default`, an argument per axis, by `vec`, a list of them, in place.

    PyTorch's decomposition of a program passes over the first, whatever rule there is. A resizing
    whose factors give another size than its own stays, and is refused later.
    """
    for node in program.graph_module.graph.nodes:
        operator: Any = getattr(node.target, "overloadpacket", None)
        if str(operator) not in _OPERATORS or node.target is not operator.default:
            continue
        given = settings_of(node)
        factors = [given[name] for name in given if name.startswith("scales")]
        size, extents = given["output_size"], given["self"].meta["val"].shape[2:]
        if all(each is None for each in factors):
            node.args, node.kwargs = (given["self"], size, None), {}
        elif None not in factors and _sizes(extents, factors) == list(size):
            node.args, node.kwargs = (given["self"], None, factors), {}
        else:
            continue
        node.target = operator.vec


def _sizes(extents: Any, factors: list[float]) -> list[Any]:
    return [math.floor(each * by) for each, by in zip(extents, factors, strict=True)]
