"""A graph with an extent of its inputs left open, and the same graph at other extents."""

from collections.abc import Iterator
from dataclasses import replace
from random import Random

from fuzz.graphs import Graph

NAME = "n"
_EXTENTS = (2, 3, 4, 5, 7, 8, 13, 16, 17, 33)
_OTHERS = 3


def opened(graph: Graph, seed: int) -> dict[str, tuple[int | str, ...]]:
    """The shapes of the inputs, with a name for the extent that is open.

    Args:
        graph: a graph; if PyTorch does not run it at any other extents, none is open.
        seed: of the axis. Every second one is open in all inputs that have its extent there, as a
            batch would be.
    """
    chosen = _chosen(graph, seed)
    return {
        name: tuple(NAME if chosen.get(name) == axis else each for axis, each in enumerate(shape))
        for name, shape in _shapes(graph).items()
    }


def at_other_extents(graph: Graph, seed: int) -> Iterator[tuple[int, Graph]]:
    """Other extents of the open axes, and the graph with inputs of each."""
    chosen = _chosen(graph, seed)
    for extent in _others(graph, chosen, seed):
        yield extent, _at(graph, chosen, extent)


def _chosen(graph: Graph, seed: int) -> dict[str, int]:
    """The open axis of each input that has one."""
    random = Random(seed)
    shapes = _shapes(graph)
    axes = [
        (name, axis)
        for name, shape in shapes.items()
        for axis, extent in enumerate(shape)
        if extent > 1
    ]
    random.shuffle(axes)
    for name, axis in axes:
        chosen = {name: axis}
        if random.random() < 0.5:
            chosen |= {
                other: axis
                for other, shape in shapes.items()
                if len(shape) > axis and shape[axis] == shapes[name][axis]
            }
        if all(_runs(_at(graph, chosen, extent)) for extent in _others(graph, chosen, seed)):
            return chosen
    return {}


def _others(graph: Graph, chosen: dict[str, int], seed: int) -> list[int]:
    if not chosen:
        return []
    name, axis = next(iter(chosen.items()))
    own = _shapes(graph)[name][axis]
    return Random(seed).sample([each for each in _EXTENTS if each != own], _OTHERS)


def _at(graph: Graph, chosen: dict[str, int], extent: int) -> Graph:
    inputs = {
        name: f"resized({code}, {chosen[name]}, {extent})" if name in chosen else code
        for name, code in graph.inputs.items()
    }
    return replace(graph, inputs=inputs)


def _shapes(graph: Graph) -> dict[str, tuple[int, ...]]:
    found = zip(graph.inputs, graph.tensors(), strict=True)
    return {name: tuple(each.shape) for name, each in found}


def _runs(graph: Graph) -> bool:
    """Whether PyTorch runs it."""
    try:
        graph.evaluated()
    except (RuntimeError, ValueError, IndexError, TypeError):
        return False
    return True
