"""PyTorch operators taken apart into those that TVM's frontend converts, and converts rightly.

PyTorch has rules of its own for most operators; they apply wherever the frontend has no converter.
The rules of this package come before both: they serve operators that neither has, and arguments and
types of which the frontend's converter makes something else. Such a rule returns NotImplemented
where the converter is right, and the operator stays.
"""

import functools
from collections.abc import Callable, Collection
from typing import Any

from tvm_practice.tvm_export.importers.decompositions import (
    elementwise,
    grouping,
    images,
    indexing,
    linear,
    losses,
    normalizing,
    orthogonal,
    pooling,
    precise,
    products,
    quantized,
    reductions,
    sized_by_values,
    special,
    spectra,
)
from tvm_practice.tvm_export.importers.decompositions.elementwise import operator_of

Rule = Callable[..., Any]

_MODULES = (
    elementwise,
    grouping,
    images,
    indexing,
    linear,
    losses,
    normalizing,
    orthogonal,
    pooling,
    precise,
    products,
    quantized,
    reductions,
    sized_by_values,
    special,
    spectra,
)

# PyTorch's rules in place of TVM's converters, which are wrong for most arguments.
_PYTORCHS = (
    "_native_batch_norm_legit_functional.default",
    "_native_batch_norm_legit.no_stats",
    "_native_batch_norm_legit.default",
    "upsample_bilinear2d.vec",
    "upsample_nearest2d.vec",
    "upsample_bicubic2d.vec",
    "grid_sampler_2d.default",
)

# These have a rule for engines without a converter, which is better: a rule cannot look at bits.
_BY_CONVERTERS = ("signbit.default",)


# Copies of views, which are the views here, and of which PyTorch has no rule.
_COPIES = ("detach_copy.default", "select_copy.int", "slice_copy.Tensor", "split_copy.Tensor")


@functools.cache
def decompositions(converted: Collection[str]) -> dict[Any, Rule]:
    """The table for `ExportedProgram.run_decompositions`.

    Args:
        converted: names of the operators that have a converter: "add.Tensor".
    """
    import torch

    defaults: Any = torch.export.default_decompositions()
    table: dict[Any, Rule] = dict(defaults.items())
    for operator, rule in _of_pytorch().items():
        name = operator.__name__
        if operator in table or name.endswith((".out", "_out")) or "_." in name:
            continue
        if name not in converted or name in _PYTORCHS:
            table[operator] = rule
    table |= _of_prims(converted)
    table |= {operator_of(name): operator_of(name.replace("_copy", "")) for name in _COPIES}
    for module in _MODULES:
        for operator, rule in module.rules().items():
            name = operator.__name__
            if name in _BY_CONVERTERS and name in converted:
                continue
            table[operator] = _first(rule, table[operator]) if operator in table else rule
    return table


def _first(rule: Rule, otherwise: Rule) -> Rule:
    """`rule`, and where it takes no action the one that it has come before."""

    def either(*args: Any, **kwargs: Any) -> Any:
        found = rule(*args, **kwargs)
        return otherwise(*args, **kwargs) if found is NotImplemented else found

    return either


def _of_pytorch() -> dict[Any, Rule]:
    """PyTorch's rules by operator; not those that only name a primitive of the same meaning."""
    import torch
    import torch._refs
    import torch._refs.linalg
    import torch._refs.nn.functional
    import torch._refs.special
    from torch._decomp import global_decomposition_table

    prims = {name.removeprefix("bessel_") for name in dir(torch.ops.prims)}
    found = {}
    for operator, rule in global_decomposition_table["post_autograd"].items():
        if not isinstance(operator, torch._ops.OpOverload):
            continue
        name = operator._schema.name.rpartition("::")[2]
        plain = name.removeprefix("special_").removeprefix("bessel_")
        if rule.__module__.startswith("torch._refs") and plain in prims and plain not in _NOT_PRIM:
            continue
        found[operator] = rule
    return found


# Names that PyTorch's references and its primitives share, though the reference does more.
_NOT_PRIM = frozenset({"where", "clone", "sum", "var", "empty_strided", "normal", "svd"})


def _of_prims(converted: Collection[str]) -> dict[Any, Rule]:
    """PyTorch's primitives, which its references end in, as the operators they stand for."""
    import torch

    found: dict[Any, Rule] = {}
    for name in dir(torch.ops.prims):
        primitive = getattr(getattr(torch.ops.prims, name), "default", None)
        if primitive is not None and hasattr(primitive, "impl_aten"):
            found[primitive] = primitive.impl_aten
    # PyTorch's writes into a new tensor; the order of its elements in memory means nothing here.
    found[torch.ops.prims.copy_strided.default] = lambda x, stride: x.clone()
    return found
