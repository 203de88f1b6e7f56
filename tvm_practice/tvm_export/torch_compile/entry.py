"""The function that PyTorch finds by its entry point."""

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import fx

from tvm_practice import engines
from tvm_practice.tvm_export.errors import BadInput
from tvm_practice.tvm_export.torch_compile.options import Options
from tvm_practice.tvm_export.torch_compile.telling import say_once


def backend(
    graph: fx.GraphModule,
    example_inputs: Sequence[Any],
    *,
    options: Mapping[str, Any] | None = None,
    mode: str | None = None,
) -> Callable[..., Any]:
    """Compile one graph of TorchDynamo's; what `torch.compile(backend="tvm_practice")` calls.

    Activates the current engine in this process. A graph that autograd has to go through, with
    gradients enabled and an input or weight that requires one, stays with PyTorch.

    Args:
        graph: as TorchDynamo traced it.
        example_inputs: its fake inputs.
        options: see `options.Options`.
        mode: of torch.compile; there is none but the default.

    Raises:
        BadInput: an option, the mode or the target; one line.
        engines.EngineUnavailable: current TVM is not installed, or the process holds the other.
    """
    from torch._dynamo.backends.common import aot_autograd
    from torch._dynamo.utils import counters

    chosen = Options.of(options)
    if mode not in (None, "default"):
        raise BadInput(f"mode={mode!r}: backend tvm_practice has none; see its options instead")
    if _needs_gradients(graph, example_inputs):
        counters["tvm_practice"]["gradients"] += 1
        say_once(
            "gradients are enabled and asked for, so PyTorch runs this graph; TVM compiles it "
            "under torch.no_grad() or torch.inference_mode()"
        )
        return graph.forward
    _activate()

    from torch._functorch.compilers import nop

    from tvm_practice.tvm_export.importers.converters.relax import attention_as_products
    from tvm_practice.tvm_export.torch_compile.building import require_own_target
    from tvm_practice.tvm_export.torch_compile.parts import divided

    require_own_target(chosen.target)

    def compile_inference(functional: fx.GraphModule, _: Sequence[Any]) -> Callable[..., Any]:
        whole = divided(functional, _constants(), chosen)

        def run(arguments: list[Any]) -> Any:
            given = tuple(arguments)
            arguments.clear()  # which frees what the caller holds no longer
            return whole(*given)

        run._boxed_call = True  # type: ignore[attr-defined]
        return run

    made = aot_autograd(fw_compiler=nop, inference_compiler=compile_inference)
    with attention_as_products(), _recurrent_layers_as_products():
        compiled: Callable[..., Any] = made(graph, example_inputs)
    return compiled


def _needs_gradients(graph: fx.GraphModule, example_inputs: Sequence[Any]) -> bool:
    if not torch.is_grad_enabled():
        return False
    tensors = [each for each in example_inputs if isinstance(each, torch.Tensor)]
    return any(each.requires_grad for each in [*tensors, *graph.parameters()])


def _constants() -> frozenset[int]:
    """Which inputs of the graph that is being compiled are weights that it does not change."""
    from torch._guards import TracingContext

    context = TracingContext.try_get()
    if context is None or context.fw_metadata is None:
        return frozenset()
    metadata = context.fw_metadata
    return frozenset(metadata.static_input_indices) - frozenset(
        metadata.mutated_inp_runtime_indices
    )


@contextmanager
def _recurrent_layers_as_products() -> Iterator[None]:
    """In the block, PyTorch takes them apart; oneDNN's are one operator, which TVM has not.

    The public switch sets TF32 too, and warns where there is no GPU.
    """
    enabled = torch._C._get_mkldnn_enabled()
    torch._C._set_mkldnn_enabled(False)
    try:
        yield
    finally:
        torch._C._set_mkldnn_enabled(enabled)


def _activate() -> None:
    """Current TVM in this process, on as many threads as PyTorch has unless told otherwise."""
    if engines.active() is None:
        os.environ.setdefault("TVM_NUM_THREADS", str(torch.get_num_threads()))
    engines.activate(engines.CURRENT)
