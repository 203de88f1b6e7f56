"""A graph that fails made smaller: fewer outputs, fewer steps, results that become inputs."""

import re
from collections.abc import Callable, Iterator
from dataclasses import replace

import torch

from fuzz.graphs import Graph

Fails = Callable[[Graph], bool]


def reduced(graph: Graph, fails: Fails) -> Graph:
    """A graph with as few steps as were found that fails as well.

    Args:
        graph: it fails.
        fails: whether another one does. It may raise, to end the search; see `reductions`.
    """
    smaller = True
    while smaller:
        smaller = False
        for other in reductions(graph):
            if _runs(other) and fails(other):
                graph, smaller = other, True
                break
    return graph


def reductions(graph: Graph) -> Iterator[Graph]:
    """Graphs with less in them, those with the least first, roughly."""
    if len(graph.outputs) > 1:
        for output in graph.outputs:
            yield _living(replace(graph, outputs=[output]))
        for output in graph.outputs:
            others = [each for each in graph.outputs if each != output]
            yield _living(replace(graph, outputs=others))
    shapes = _examples(graph)
    for at in reversed(range(len(graph.steps))):  # what comes before a step, left out
        yield from _as_input(graph, at, shapes)
    for at, step in enumerate(graph.steps):  # a step, left out
        rest = graph.steps[:at] + graph.steps[at + 1 :]
        for operand in _read_by(step.code, [*graph.inputs, *(s.name for s in graph.steps[:at])]):
            same = (shapes[operand].shape, shapes[operand].dtype)
            if same == (shapes[step.name].shape, shapes[step.name].dtype):
                renamed = [replace(s, code=_renamed(s.code, step.name, operand)) for s in rest]
                outputs = [operand if each == step.name else each for each in graph.outputs]
                if any(each not in graph.inputs for each in outputs):
                    yield _living(replace(graph, steps=renamed, outputs=outputs))
    for at in reversed(range(len(graph.steps) - 1)):  # what comes after a step, left out
        yield _living(replace(graph, outputs=[graph.steps[at].name]))


def _as_input(graph: Graph, at: int, shapes: dict[str, torch.Tensor]) -> Iterator[Graph]:
    """The graph with a step's result given to it."""
    step, example = graph.steps[at], shapes[graph.steps[at].name]
    if step.name in graph.outputs:
        return
    dtype = str(example.dtype).removeprefix("torch.")
    number = max((int(each[1:]) for each in graph.inputs), default=0) + 1
    code = f"values({tuple(example.shape)}, {dtype!r}, {number})"
    if not bool(torch.isfinite(example).all()):
        code = f"rare({tuple(example.shape)}, {dtype!r}, {number}, 'any')"
    inputs = graph.inputs | {f"x{number}": code}
    steps = [
        replace(each, code=_renamed(each.code, step.name, f"x{number}"))
        for each in graph.steps
        if each is not step
    ]
    yield _living(replace(graph, inputs=inputs, steps=steps))


def _living(graph: Graph) -> Graph:
    """The graph without what no output is made of."""
    needed = set(graph.outputs)
    steps = []
    for step in reversed(graph.steps):
        if step.name in needed:
            steps.append(step)
            needed |= set(re.findall(r"\b[vxc]\d+\b", step.code))
    return Graph(
        {name: code for name, code in graph.inputs.items() if name in needed},
        {name: code for name, code in graph.constants.items() if name in needed},
        steps[::-1],
        graph.outputs,
    )


def _read_by(code: str, names: list[str]) -> list[str]:
    found = set(re.findall(r"\b[vx]\d+\b", code))
    return [each for each in names if each in found]


def _renamed(code: str, name: str, other: str) -> str:
    return re.sub(rf"\b{name}\b", other, code)


def _examples(graph: Graph) -> dict[str, torch.Tensor]:
    """Each input and each step's result."""
    names = [*graph.inputs, *(each.name for each in graph.steps)]
    return dict(zip(names, replace(graph, outputs=names).evaluated(), strict=True))


def _runs(graph: Graph) -> bool:
    """Whether PyTorch runs it, on some input, with finite outputs unless inputs are rare."""
    if not graph.inputs:
        return False
    try:
        return all(bool(torch.isfinite(each).all()) or graph.is_rare for each in graph.evaluated())
    except (RuntimeError, ValueError, IndexError, TypeError):
        return False
