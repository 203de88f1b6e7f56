"""Drawn graphs: PyTorch runs them, and what they say of themselves is so."""

import itertools
from collections import Counter
from random import Random

import torch

from fuzz.drawn_graphs import drawn_graph
from fuzz.graphs import Graph
from fuzz.operators import MAKERS, NAMES


def graphs(seed: int, count: int) -> list[Graph]:
    random = Random(seed)
    return [drawn_graph(random) for _ in range(count)]


def test_every_graph_runs_in_pytorch() -> None:
    for graph in graphs(0, 60):
        again = Graph.of(graph.to_dict())
        assert again == graph
        outputs = again.module()(*again.tensors())
        assert len(outputs) == len(graph.outputs) > 0
        for one, other in zip(outputs, graph.evaluated(), strict=True):
            torch.testing.assert_close(one, other, rtol=0, atol=0, equal_nan=True)
            assert bool(torch.isfinite(one).all()) or graph.is_rare
        # Nothing is drawn in vain: every step's result is read by another or is an output.
        source = graph.source()
        for step in graph.steps:
            assert step.name in graph.outputs or source.count(step.name) > 1


def test_many_operators_shapes_and_types_come_up() -> None:
    drawn = graphs(1, 100)
    found = Counter(operator for graph in drawn for operator in graph.operators)
    types = {each.dtype for graph in drawn for each in graph.evaluated()}
    shapes = {extent for graph in drawn for each in graph.tensors() for extent in each.shape}
    lengths = [len(graph.steps) for graph in drawn]
    assert len(found) > 0.9 * len(NAMES)
    assert {torch.float32, torch.float16, torch.int64, torch.bool} <= types
    assert {1, 2, 7, 17} <= shapes
    assert sum(length >= 5 for length in lengths) > 80 and max(lengths) > 15


def test_arguments_that_an_importer_may_drop_come_up() -> None:
    codes = " ".join(each.code for graph in graphs(5, 400) for each in graph.steps)
    arguments = ("alpha=", "attn_mask=", "scale=", "correction=2", "divisor_override=3")
    assert all(each in codes for each in (*arguments, "scale_factor=", "nearest-exact"))


def test_no_graph_is_like_the_one_before() -> None:
    drawn = graphs(2, 60)
    for one, other in itertools.pairwise(drawn):
        same = {each.code for each in one.steps} & {each.code for each in other.steps}
        assert len(same) < 0.5 * len(other.steps) + 1


def test_what_is_exact_is_the_same_in_float64() -> None:
    for graph in graphs(3, 60):
        exact = {each.name for each in graph.steps if each.exact}
        for name, one, other in zip(
            graph.outputs, graph.evaluated(), graph.evaluated(exactly=True), strict=True
        ):
            if name in exact:
                one, other = one.double(), other.double()
                torch.testing.assert_close(one, other, rtol=0, atol=0, equal_nan=True)


def test_each_family_is_named_once() -> None:
    assert len(NAMES) == len(set(NAMES)) > 100
    assert all(MAKERS[f"{each} 2"] is MAKERS[each] for each in ("elementwise", "moving"))


def test_a_share_of_inputs_holds_rare_values() -> None:
    drawn = [graph for graph in graphs(4, 100) if graph.is_rare]
    assert 10 < len(drawn) < 50
    given = [each for graph in drawn for each in graph.tensors() if each.is_floating_point()]
    assert any(bool(each.isnan().any()) for each in given)
    assert any(bool(each.isinf().any()) for each in given)
    assert any(bool((each == 2.0**100).any()) for each in given)
    assert any(bool(((each == 0) & each.signbit()).any()) for each in given)
    smallest = torch.finfo(torch.float32).tiny
    assert any(bool(((each != 0) & (each.abs() < smallest)).any()) for each in given)
