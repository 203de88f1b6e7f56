"""Graphs with an open extent: which is open, the same graph at others, and faults seen there."""

from typing import Any
from unittest.mock import patch

import torch

from fuzz.graphs import Graph, Step, made
from fuzz.judging import judge
from fuzz.open_extents import NAME, at_other_extents, opened
from tests.conftest import Processes

_SUM = Graph(
    {"x0": "values((7, 5), 'float32', 0)", "x1": "values((7, 1), 'float32', 1)"},
    {"c0": "weights((5,), 'float32', 0, 1.0)"},
    [Step("v0", "(x0 * self.c0 + x1).cumsum(0)", "cumsum", False)],
    ["v0"],
)


_SEED = next(seed for seed in range(20) if NAME in opened(_SUM, seed)["x0"])


def test_the_open_axis_is_one_that_pytorch_runs_at_other_extents() -> None:
    for seed in range(20):  # the weight fixes the second axis, the sum joins both first ones
        assert opened(_SUM, seed) in (
            {"x0": (NAME, 5), "x1": (NAME, 1)},
            {"x0": (7, 5), "x1": (7, 1)},
        )
    found = list(at_other_extents(_SUM, _SEED))
    assert len({extent for extent, _ in found} | {7}) == 4
    for extent, other in found:
        assert [tuple(each.shape) for each in other.tensors()] == [(extent, 5), (extent, 1)]
        assert other.evaluated()[0].shape == (extent, 5)


def test_rare_values_are_rare_at_other_extents() -> None:
    """They are held against PyTorch in another way: it overflows elsewhere."""
    graph = Graph(
        {"x0": "rare((7, 5), 'float32', 0, 'large')"}, {}, [Step("v0", "-x0", "neg", True)], ["v0"]
    )
    others = [other for _, other in at_other_extents(graph, 0)]
    assert others and all(each.is_rare for each in (graph, *others))


def test_every_second_axis_is_open_alone() -> None:
    apart = Graph(
        {"x0": "values((7, 5), 'float32', 0)", "x1": "values((7, 2), 'float32', 1)"},
        {},
        [Step("v0", "-x0", "neg", True), Step("v1", "-x1", "neg", True)],
        ["v0", "v1"],
    )
    found = [opened(apart, seed) for seed in range(20)]
    numbers = {sum(NAME in shape for shape in each.values()) for each in found}
    assert numbers == {1, 2}


def test_a_tensor_of_another_extent() -> None:
    tensor = torch.arange(6).reshape(3, 2)
    assert made("resized(torch.arange(6).reshape(3, 2), 0, 2)").equal(tensor[:2])
    assert made("resized(torch.arange(6).reshape(3, 2), 0, 4)").equal(
        torch.cat([tensor, tensor[:1]])
    )


def test_other_extents_are_judged(process_of: Processes) -> None:
    found = process_of("current").call(f"{__name__}:with_a_fault")
    assert found["right"] == {"verdict": "right", "reason": ""}
    assert found["wrong"]["verdict"] == "wrong" and "at extent " in found["wrong"]["reason"]


def with_a_fault() -> dict[str, Any]:
    """Verdicts on a graph compiled right, and one that errs at other extents than the example's."""
    from tvm_practice.tvm_export.graph_module import GraphModule

    found = {"right": judge(_SUM.to_dict(), "open", _SEED)}
    run = GraphModule.__call__

    def elsewhere(*given: Any) -> Any:
        return [each if len(each) == 7 else each + 1 for each in run(*given)]

    with patch.object(GraphModule, "__call__", elsewhere):
        found["wrong"] = judge(_SUM.to_dict(), "open", _SEED)
    return found


# What this mode found: expressions of x0, whose one axis above 1 is open.
_FOUND = {
    "shifted": ("(x0 * 4).int() >> 1", (7, 1)),
    "the last of an axis": ("x0[:, -1] + 1", (1, 7, 1)),
    "cubic, twice as wide": (
        "F.interpolate(x0, scale_factor=2.0, mode='bicubic')",
        (1, 1, 7, 1),
    ),
    "twice as wide": (
        "F.interpolate(x0, scale_factor=2.0, mode='bilinear')",
        (1, 1, 7, 1),
    ),
    "the largest along a negative axis": ("torch.topk(x0, 2, -1).values", (1, 7)),
    "attention over keys of open size": (
        "F.scaled_dot_product_attention(x0, x0 * 0.5, x0)",
        (1, 1, 7),
    ),
    "added by a shorter index": (
        "x0.repeat(1, 5).scatter_add(1, torch.arange(4).reshape(1, 4), torch.ones(1, 4))",
        (7, 1),
    ),
    "pixels of fewer rows": ("F.pixel_shuffle(x0[:, :, 1:].repeat(2, 64, 1, 10), 2)", (1, 1, 7, 1)),
    "edges from the other side": ("F.pad(x0, (2, 1), mode='circular')", (1, 7)),
    "averages that begin before an axis": ("F.avg_pool1d(x0, 4, 3, 1, ceil_mode=True)", (1, 7)),
    "groups": ("F.group_norm(x0.repeat(4, 17, 1, 5), 1)", (1, 1, 7, 1)),
    "turned over after an index": (
        "F.pad(x0.repeat(5, 4, 8, 1).flatten(2), (0, 3, 0, 2))"
        "[torch.tensor([1, 0]), torch.tensor([[2], [3]])].flip(0)",
        (1, 1, 1, 7),
    ),
    "moved by one": (
        "torch.cat([x0[:, :1] * 2, x0], 1)[:, :-1] + torch.cat([x0, x0[:, :1]], 1)[:, 1:]",
        (1, 7),
    ),
    "without its last": ("x0[:, :-1] + x0[:, 1:]", (1, 7)),
    "joined of nothing": (
        "torch.cat([x0[..., :0], torch.zeros(1, 2, 3, 0)[:, :1]], 2).unsqueeze(2)",
        (1, 1, 7, 1),
    ),
    "a diagonal beside a row": (
        "torch.maximum(torch.diagonal(x0.repeat(1, 2)), torch.arange(2))",
        (7, 1),
    ),
    "a product with a diagonal": (
        "F.linear(torch.diagonal(x0.repeat(1, 1, 2), 0, 1, 2), "
        "torch.arange(768.0).reshape(384, 2) / 99)",
        (1, 7, 1),
    ),
    "the median": ("x0.median(1).values", (1, 7)),
}


def test_faults_found_are_mended(process_of: Processes) -> None:
    found = process_of("current").call(f"{__name__}:of_those_found")
    assert found == {name: ["right", ""] for name in _FOUND}


def of_those_found() -> dict[str, Any]:
    """Verdicts on the models of earlier faults."""
    verdicts = {}
    for name, (code, shape) in _FOUND.items():
        inputs = {"x0": f"values({shape}, 'float32', 0)"}
        one = Graph(inputs, {}, [Step("v0", code, "any", False)], ["v0"])
        assert NAME in opened(one, 0)["x0"], name
        verdicts[name] = list(judge(one.to_dict(), "open", 0).values())
    return verdicts
