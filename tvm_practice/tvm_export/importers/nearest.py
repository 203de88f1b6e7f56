"""Resizing to the nearest, as programs in core ATen have it."""

import math
from typing import Any

from tvm_practice.tvm_export.importers.converters.arguments import settings_of

_OPERATORS = {
    f"aten.{kind}{axes}d"
    for kind in ("upsample_nearest", "_upsample_nearest_exact")
    for axes in (1, 2, 3)
}


def resize_as_models_do(program: Any) -> None:
    """Write nearest resizing by an argument per axis as the operator that models call, in place.

    PyTorch does not take the first apart when it decomposes a program. A resizing by factors that
    give another size than the one it has stays as it is, which is refused later.
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
    program.graph_module.recompile()


def _sizes(extents: Any, factors: list[float]) -> list[Any]:
    return [math.floor(each * by) for each, by in zip(extents, factors, strict=True)]
