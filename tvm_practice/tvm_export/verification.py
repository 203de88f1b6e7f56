"""Does the compiled model compute what PyTorch computes?"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from tvm_practice.tvm_export.graph_module import GraphModule
from tvm_practice.tvm_export.steps import Steps


def verify_runtime(
    graph_module: GraphModule,
    inputs: Sequence[tuple[str, np.ndarray]],
    reference: Sequence[np.ndarray],
    *,
    atol: float = 1e-3,
    rtol: float = 1e-3,
    steps: str = "solutions",
) -> list[np.ndarray]:
    """Run on named `inputs`, compare with `reference`, return the outputs.

    Raises ValueError with the output's index, the largest absolute and relative error and where
    it is, when |output - reference| > atol + rtol * |reference| anywhere, or when a shape, the
    number of outputs or a NaN differs.
    """
    for name, value in inputs:
        graph_module.set_input(name, value)
    graph_module.run()
    outputs = graph_module.outputs()
    Steps(steps).relay_import.verify(outputs, list(reference), atol=atol, rtol=rtol)
    return outputs


def pytorch_outputs(model: Any, example: Sequence[Any]) -> list[np.ndarray]:
    """What PyTorch computes on `example`, flattened to a list of arrays."""
    import torch

    with torch.inference_mode():
        given = model(*example)
    given = given if isinstance(given, tuple | list) else (given,)
    return [each.detach().cpu().numpy() for each in given]
