"""Functions that the tests of the adapter call in a child process."""

from typing import Any

import numpy as np


def round_trip(folder: str, tuner: str | None, trials: int, engine: str) -> dict[str, Any]:
    """Export a small MLP; return its inputs and PyTorch's outputs as lists."""
    import torch

    from tvm_practice.tvm_export import (
        ExportConfig,
        compile_pytorch_module,
        export_artifacts,
        verify_runtime,
    )

    layers = torch.nn.Linear(13, 7), torch.nn.ReLU(), torch.nn.Linear(7, 5)
    model = torch.nn.Sequential(*layers).eval()
    x = torch.randn(3, 13)
    config = ExportConfig.model_validate(
        {"example_input": x, "tuner": tuner, "tuning_trials": trials, "engine": engine}
    )
    graph_module = compile_pytorch_module(model, config)
    graph_module.run()
    expected = model(x).detach().numpy()
    verify_runtime(graph_module, [("input_0", x.numpy())], [expected])
    latency = graph_module.benchmark(warmup=1, repeats=5)
    export_artifacts(graph_module, folder, report={"latency": latency})
    return {
        "x": x.tolist(),
        "expected": expected.tolist(),
        "latency": latency,
        "tuning": graph_module.tuning,
        "seconds": graph_module.seconds,
    }


def run_loaded(folder: str, x: list[list[float]]) -> dict[str, Any]:
    """Run artifacts on an input, and say whether PyTorch was imported for it."""
    import sys

    from tvm_practice.tvm_export.artifacts import load_artifacts

    outputs = load_artifacts(folder)(np.array(x, "float32"))
    return {"outputs": [each.tolist() for each in outputs], "torch": "torch" in sys.modules}


def wrong_reference() -> str:
    """The message of verify_runtime for a reference that differs at one place."""
    import torch

    from tvm_practice.tvm_export import ExportConfig, compile_pytorch_module, verify_runtime

    model = torch.nn.Linear(4, 3).eval()
    x = torch.randn(2, 4)
    graph_module = compile_pytorch_module(model, ExportConfig(example_input=x))
    reference = model(x).detach().numpy()
    reference[1, 2] += 1
    try:
        verify_runtime(graph_module, [("input_0", x.numpy())], [reference])
    except ValueError as error:
        return str(error)
    return "no error"


def misuse() -> dict[str, str]:
    """What a graph module says to inputs that are not there or not set."""
    import torch

    from tvm_practice.tvm_export import ExportConfig, compile_pytorch_module

    model = torch.nn.Linear(4, 3).eval()
    graph_module = compile_pytorch_module(model, ExportConfig(example_input=torch.randn(2, 4)))
    said = {}
    try:
        graph_module.set_input("image", np.zeros((2, 4), "float32"))
    except KeyError as error:
        said["unknown"] = str(error)
    try:
        graph_module()
    except TypeError as error:
        said["count"] = str(error)
    return said


def targets(texts: list[str]) -> list[str]:
    """What each target text becomes on the active engine, or its error."""
    from tvm_practice.tvm_export.targets import resolve_target

    found = []
    for text in texts:
        try:
            found.append(str(resolve_target(text)))
        except ValueError as error:
            found.append(f"ValueError: {error}")
    return found


def nothing_to_tune(tuner: str, space: str | None) -> dict[str, Any]:
    """What is said of tuning a softmax, and how far its outputs are from PyTorch's."""
    import torch

    from tvm_practice.tvm_export import ExportConfig, compile_pytorch_module

    x = torch.randn(3, 40)
    config = ExportConfig.model_validate(
        {"example_input": x, "tuner": tuner, "tuning_trials": 4, "search": {"space": space}}
    )
    model = torch.nn.Softmax(-1)
    built = compile_pytorch_module(model, config)
    error = float(np.abs(built(x)[0] - model(x).numpy()).max())
    return {"tuning": built.tuning, "error": error}


def of_a_function() -> None:
    import torch

    from tvm_practice.tvm_export import ExportConfig, compile_pytorch_module

    compile_pytorch_module(lambda x: x, ExportConfig(example_input=torch.zeros(2)))


def of_a_sparse_tensor() -> None:
    import torch

    from tvm_practice.tvm_export import ExportConfig, compile_pytorch_module

    config = ExportConfig(example_input=torch.eye(2).to_sparse())
    compile_pytorch_module(torch.nn.Linear(2, 2), config)


def verified_or_not() -> dict[str, str | None]:
    """What `compile_pytorch_module` says of an operator that is converted to another one."""
    import torch
    from tvm import relax

    from tvm_practice.tvm_export import ExportConfig, compile_pytorch_module
    from tvm_practice.tvm_export.errors import NotVerified

    def doubled(node: Any, importer: Any) -> Any:
        return importer.block_builder.emit(relax.op.add(*[importer.env[node.args[0]]] * 2))

    def compiled(verify: bool) -> str | None:
        given = {"example_input": torch.ones(2, 3), "converters": {"relu.default": doubled}}
        config = ExportConfig.model_validate(given)
        try:
            compile_pytorch_module(torch.nn.ReLU().train(), config, verify=verify)
        except NotVerified as error:
            return str(error)
        return None

    return {"verified": compiled(True), "not": compiled(False)}


def variants_one_of_which_fails(folder: str, failing: str | None, calls: int) -> dict[str, Any]:
    """Export a model untuned and tuned, where `failing`'s calls fail after the first `calls`."""
    from tvm_practice.tvm_export.export import Export
    from tvm_practice.tvm_export.pipeline import export_variants

    def spoil(export: Export) -> None:
        if export.built is None or export.tuner != failing:
            return
        run, left = export.built.run, iter(range(calls))

        def run_a_few_times() -> Any:
            if next(left, None) is None:
                raise RuntimeError("the run failed")
            return run()

        object.__setattr__(export.built, "run", run_a_few_times)

    request = {"model": "tests.icd.models:small", "artifacts": folder, "tuning_trials": 2}
    return export_variants(request, ["metaschedule"], seen=spoil)


def masked_by_a_made_input() -> dict[str, Any]:
    """A model whose mask only `input_shapes` names, compiled: its inputs, and if it masks."""
    import torch

    from tvm_practice.tvm_export import ExportConfig, compile_pytorch_module

    class Masked(torch.nn.Module):
        def forward(
            self, input_ids: torch.Tensor, attention_mask: torch.Tensor | None = None
        ) -> torch.Tensor:
            return input_ids if attention_mask is None else input_ids * attention_mask

    ids = torch.arange(8).reshape(1, 8)
    config = ExportConfig(
        example_input=ids, input_shapes={"input_ids": (1, 8), "attention_mask": (1, 8)}
    )
    compiled = compile_pytorch_module(Masked(), config)
    mask = np.arange(8).reshape(1, 8) % 2
    compiled.set_input("input_ids", ids.numpy())
    compiled.set_input("attention_mask", mask)
    compiled.run()
    right = bool(np.array_equal(compiled.get_output(0), ids.numpy() * mask))
    return {"names": compiled.input_names, "right": right}


def relay_calls_on_constants() -> list[str]:
    """Of a convolution with a bias and a normalized one, optimized by the classic steps."""
    import torch
    from tvm import relay

    from tvm_practice.tvm_export.steps import Steps

    layers = (
        torch.nn.Conv2d(3, 4, 3),
        torch.nn.ReLU(),
        torch.nn.Conv2d(4, 5, 3),
        torch.nn.BatchNorm2d(5),
    )
    model = torch.nn.Sequential(*layers).eval()
    steps = Steps()
    module = steps.optimize_relay(*steps.import_relay(model, (torch.zeros(1, 3, 8, 8),)))
    found: list[str] = []

    def visit(node: Any) -> None:
        if isinstance(node, relay.Call):
            kinds = {type(each) for each in node.args}
            found.extend([str(node.op.name)] * (kinds == {relay.Constant}))

    relay.analysis.post_order_visit(module["main"], visit)
    return found
