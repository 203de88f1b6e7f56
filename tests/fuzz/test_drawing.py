"""Drawn graphs: PyTorch runs them, and what they say of themselves is so."""

from collections import Counter

import torch
from hypothesis import HealthCheck, Phase, given, seed, settings

from fuzz.drawing import graphs
from fuzz.graphs import Graph
from fuzz.operators import MAKERS, NAMES

_DRAWN = settings(
    max_examples=60,
    database=None,
    deadline=None,
    suppress_health_check=list(HealthCheck),
    phases=[Phase.generate],
)


@seed(0)
@_DRAWN
@given(graphs())
def test_every_graph_runs_in_pytorch(graph: Graph) -> None:
    again = Graph.of(graph.to_dict())
    assert again == graph
    outputs = again.module()(*again.tensors())
    assert len(outputs) == len(graph.outputs) > 0
    for one, other in zip(outputs, graph.evaluated(), strict=True):
        torch.testing.assert_close(one, other, rtol=0, atol=0)
        assert bool(torch.isfinite(one).all())
    # Nothing is drawn in vain: every step's result is read by another or is an output.
    source = graph.source()
    for step in graph.steps:
        assert step.name in graph.outputs or source.count(step.name) > 1


def test_many_operators_shapes_and_types_come_up() -> None:
    found: Counter[str] = Counter()
    types: set[torch.dtype] = set()
    shapes: set[int] = set()
    lengths: list[int] = []

    @seed(1)
    @settings(_DRAWN, max_examples=100)
    @given(graphs())
    def draw(graph: Graph) -> None:
        found.update(graph.operators)
        types.update(each.dtype for each in graph.evaluated())
        shapes.update(extent for each in graph.tensors() for extent in each.shape)
        lengths.append(len(graph.steps))

    draw()
    assert len(found) > 0.6 * len(NAMES)
    assert {torch.float32, torch.float16, torch.int64, torch.bool} <= types
    assert {1, 2, 7, 17} <= shapes
    assert sum(length >= 5 for length in lengths) > 50 and max(lengths) > 15


def test_what_is_exact_is_the_same_in_float64() -> None:
    @seed(2)
    @_DRAWN
    @given(graphs())
    def compare(graph: Graph) -> None:
        exact = {each.name for each in graph.steps if each.exact}
        for name, one, other in zip(
            graph.outputs, graph.evaluated(), graph.evaluated(exactly=True), strict=True
        ):
            if name in exact:
                assert torch.equal(one.double(), other.double()), graph.source()

    compare()


def test_each_family_is_named_once() -> None:
    assert len(NAMES) == len(set(NAMES)) > 100
    assert all(MAKERS[f"{each} 2"] is MAKERS[each] for each in ("elementwise", "moving"))
