"""Reduction keeps what fails, and nothing else."""

from fuzz.graphs import Graph, Step
from fuzz.reducing import reduced

_GRAPH = Graph(
    {"x0": "values((3, 5), 'float32', 0)", "x1": "values((3, 5), 'float32', 1)"},
    {"c0": "weights((5, 5), 'float32', 0, 1)"},
    [
        Step("v0", "-x0", "neg", True),
        Step("v1", "torch.matmul(v0, self.c0)", "matmul", False),
        Step("v2", "v1 + x1", "add", False),
        Step("v3", "torch.tanh(v2)", "tanh", False),
        Step("v4", "v3.flip((0,))", "flip", True),
        Step("v5", "v3 * 2", "mul", False),
    ],
    ["v4", "v5"],
)


def test_one_step_is_left() -> None:
    found = reduced(_GRAPH, lambda graph: "tanh" in graph.operators)
    assert found.operators == ["tanh"] and len(found.inputs) == 1 and not found.constants
    assert [each.shape for each in found.evaluated()] == [(3, 5)]


def test_what_fails_only_together_stays_together() -> None:
    found = reduced(_GRAPH, lambda graph: {"matmul", "flip"} <= set(graph.operators))
    assert found.operators == ["matmul", "flip"] and list(found.constants) == ["c0"]
    assert found.source().splitlines()[-1].strip() == "return (v4,)"


def test_nothing_is_taken_away_that_passes_then() -> None:
    assert reduced(_GRAPH, lambda graph: False) is _GRAPH
