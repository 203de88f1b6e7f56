"""PyTorch's `scan` and `map`, their steps written out one after the other.

An exported program keeps each as one operator, whose step is a graph of its own.
"""

from collections.abc import Callable, Sequence
from typing import Any

from tvm_practice.tvm_export.importers.refusals import Refused, place_of
from tvm_practice.tvm_export.importers.tracing import inlined, traced_by
from tvm_practice.wording import number_of

MOST_STEPS = 256  # that are written out


def expand_loops(program: Any) -> None:
    """Replace every `scan` and `map` of an exported program, in place.

    Raises:
        Refused: one has an open number of steps, none, or more than `MOST_STEPS`.
    """
    graph_module = program.graph_module
    loops = _loops()
    found = [node for node in graph_module.graph.nodes if node.target in loops]
    for node in found:
        _expand(graph_module, node)
    if found:
        graph_module.graph.eliminate_dead_code()
        graph_module.recompile()


def _loops() -> dict[Any, Callable[..., list[Any]]]:
    import torch

    operators = torch.ops.higher_order
    return {operators.scan: _scanned, operators.map_impl: _mapped}


def _expand(graph_module: Any, node: Any) -> None:
    import torch
    from torch.utils import _pytree as pytree

    step, *operands = node.args
    function = getattr(graph_module, step.target)
    leaves, tree = pytree.tree_flatten(operands)
    given = [each for each in leaves if isinstance(each, torch.fx.Node)]

    def computed(*values: Any) -> list[Any]:
        known = dict(zip(given, values, strict=True))
        filled = pytree.tree_unflatten([known.get(each, each) for each in leaves], tree)
        return _loops()[node.target](place_of(node), _interpreter(function).run, *filled)

    made = inlined(graph_module.graph, node, traced_by(computed, given), given)
    for user in list(node.users):
        user.replace_all_uses_with(made[user.args[1]])
        graph_module.graph.erase_node(user)
    graph_module.graph.erase_node(node)


def _interpreter(function: Any) -> Any:
    """An interpreter of a step's graph, which writes out the loops in it, too."""
    import torch

    class Steps(torch.fx.Interpreter):
        def call_function(self, target: Any, args: Any, kwargs: Any) -> Any:
            if target in _loops():
                return _loops()[target]("", _interpreter(args[0]).run, *args[1:])
            return super().call_function(target, args, kwargs)

    return Steps(function)


def _scanned(
    place: str,
    step: Callable[..., Sequence[Any]],
    carried: Sequence[Any],
    given: Sequence[Any],
    others: Sequence[Any],
) -> list[Any]:
    """What `scan` returns: what the last step carries on, and what the steps put out, stacked.

    Args:
        place: of the operator in the model, for a refusal.
        step: from what is carried, one slice of each of `given` and `others` to what is carried
            on and then an output.
        carried: before the first step.
        given: each along its first axis, a slice for each step.
        others: the same in all steps.
    """
    import torch

    outputs = []
    for at in range(_steps("scan", given, place)):
        found = step(*carried, *(each[at] for each in given), *others)
        carried, output = found[: len(carried)], found[len(carried) :]
        outputs.append(output)
    return [*carried, *(torch.stack(list(each)) for each in zip(*outputs, strict=True))]


def _mapped(
    place: str, step: Callable[..., Sequence[Any]], given: Sequence[Any], others: Sequence[Any]
) -> list[Any]:
    """What `map` returns: what the steps put out, stacked. The arguments are those of `scan`."""
    import torch

    steps = range(_steps("map", given, place))
    outputs = [step(*(each[at] for each in given), *others) for at in steps]
    return [torch.stack(list(each)) for each in zip(*outputs, strict=True)]


def _steps(kind: str, given: Sequence[Any], place: str) -> int:
    steps = given[0].shape[0]
    if not isinstance(steps, int):
        raise Refused(f"{kind} takes an open number of steps{place}")
    if not 1 <= steps <= MOST_STEPS:
        told = f"at least 1 and at most {MOST_STEPS} are written out"
        raise Refused(f"{kind} takes {number_of(steps, 'step')}, {told}{place}")
    return steps
