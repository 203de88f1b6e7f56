"""A backend of `torch.compile`: what TVM can take by the exporter's pipeline, the rest by PyTorch.

    model = torch.compile(model, backend="tvm_practice", options={"trials": 64})
    with torch.inference_mode():
        model(image)

TorchDynamo hands over one graph for each piece of a model that it can trace, AOTAutograd makes it
functional ATen, and `parts` divides it. Each part is built when it is first called, on the values
of that call:

    options     what `options={…}` may say
    supported   which nodes of a graph go to TVM
    parts       a graph divided; a part, its builds, and its way back to PyTorch
    building    a part through the exporter's pipeline
    caching     builds on disk
    running     calls of a build on PyTorch's tensors
    telling     what the log says

What happened is counted in `torch._dynamo.utils.counters["tvm_practice"]`: parts "built", "loaded"
from disk, "refused" by the exporter, graphs with "gradients".
"""

from tvm_practice.tvm_export.torch_compile.entry import backend

__all__ = ["backend"]
