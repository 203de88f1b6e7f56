"""A model in operators that Relay's frontend converts.

TVM's frontend takes a trace, whose operators are as many as PyTorch's. PyTorch's rules, and those
of `decompositions`, make fewer of them.
"""

import functools
from collections.abc import Sequence
from typing import Any

from tvm_practice.tvm_export.importers.asking import nothing_asked
from tvm_practice.tvm_export.importers.assertions import leave_out_assertions
from tvm_practice.tvm_export.importers.decompositions import decompositions, special
from tvm_practice.tvm_export.importers.exporting import by_whatever_helps
from tvm_practice.tvm_export.importers.frontend import refuse_effects, refuse_random
from tvm_practice.tvm_export.importers.packed_sequences import padded_sequences

# Relay has them for some arguments alone, see `relay_arguments`: an index as long as the tensor and
# the source.
_MENDED = frozenset({"scatter.src", "scatter_add.default", "scatter_reduce.two"})


def in_known_operators(model: Any, example: Sequence[Any], known: frozenset[str]) -> Any:
    """A module that computes the same, of fewer kinds of operators.

    Args:
        model: a torch.nn.Module in eval mode.
        example: the tensors it is called with.
        known: operators to leave as they are: "aten::relu".

    Raises Refused, and what torch.export raises.
    """
    import torch

    with torch.no_grad(), nothing_asked(), padded_sequences(whole=False):
        program = by_whatever_helps(
            lambda module: torch.export.export(module, tuple(example)), model, example
        )
        refuse_random(program.graph_module)
        program = program.run_decompositions(_table(known))
    refuse_effects(program.graph_module)
    leave_out_assertions(program)
    return program.module(check_guards=False)


def _table(known: frozenset[str]) -> dict[Any, Any]:
    """The rules for operators that are not known, nor what PyTorch's own rules end in."""
    import torch

    kept = _overloads(known)
    rules = decompositions(kept | _of_core())
    # Classic TVM repeats a part of a formula wherever it is used, and these take it minutes.
    long = special.formulas()
    return {
        **{
            operator: rule
            for operator, rule in rules.items()
            if operator.__name__ in _MENDED
            or (operator.__name__ not in kept and operator not in long)
        },
        torch.ops.prims.convert_element_type.default: lambda x, dtype: x.to(dtype),
    }


@functools.cache
def _overloads(known: frozenset[str]) -> frozenset[str]:
    """The forms of operators, "add.Tensor" and "add.Scalar", of those named as in a trace."""
    import torch

    names = [each.removeprefix("aten::") for each in known if each.startswith("aten::")]
    packets = [getattr(torch.ops.aten, each, None) for each in names]
    return frozenset(
        f"{name}.{form}"
        for name, packet in zip(names, packets, strict=True)
        if packet is not None
        for form in packet.overloads()
    )


@functools.cache
def _of_core() -> frozenset[str]:
    """The forms of the operators of core ATen."""
    import torch

    found = []
    for name in dir(torch.ops.aten):
        packet = getattr(torch.ops.aten, name)
        for form in getattr(packet, "overloads", list)():
            if torch.Tag.core in getattr(packet, form).tags:
                found.append(f"{name}.{form}")
    return frozenset(found)
