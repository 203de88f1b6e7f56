"""A model with an operator of its own, exported with a converter that only its author has."""

from typing import Any

import torch
from torch import library


@library.custom_op("tvm_practice_tests::doubled", mutates_args=())
def doubled(x: torch.Tensor) -> torch.Tensor:
    return x * 2


@doubled.register_fake
def _(x: torch.Tensor) -> torch.Tensor:
    return torch.empty_like(x)


class Doubles(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = torch.nn.Linear(24, 8)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.relu(doubled(self.layer(x)))


def load() -> tuple[torch.nn.Module, torch.Tensor]:
    """A model, and its input, of five rows."""
    return Doubles(), torch.randn(5, 24)


def own_converters() -> dict[str, Any]:
    """For both engines."""

    def in_relax(node: Any, importer: Any) -> Any:
        from tvm.relax import op

        x = importer.env[node.args[0]]
        return importer.block_builder.emit(op.add(x, x))

    def in_relay(inputs: Any, types: Any) -> Any:
        from tvm import relay

        return inputs[0] * relay.const(2.0)

    return {"doubled.default": in_relax, "tvm_practice_tests::doubled": in_relay}


def without_code() -> dict[str, Any]:
    """An operator that TVM imports, and has no code for on processors."""

    def in_relax(node: Any, importer: Any) -> Any:
        from tvm import te, tirx

        def loaded(x: Any) -> Any:
            texture = lambda *at: tirx.call_intrin("float32", "tirx.texture2d_load", x(*at))
            return te.compute(x.shape, texture)

        return importer.block_builder.emit_te(loaded, importer.env[node.args[0]])

    def in_relay(inputs: Any, types: Any) -> Any:
        from tvm import relay

        return relay.op.copy(relay.reverse(inputs[0], axis=7))

    return {"doubled.default": in_relax, "tvm_practice_tests::doubled": in_relay}


def of_another_type() -> dict[str, Any]:
    """A converter to integers of an operator on real numbers."""

    def in_relax(node: Any, importer: Any) -> Any:
        from tvm.relax import op

        return importer.block_builder.emit(op.astype(importer.env[node.args[0]], "int32"))

    def in_relay(inputs: Any, types: Any) -> Any:
        from tvm import relay

        return relay.cast(inputs[0], "int32")

    return {"doubled.default": in_relax, "tvm_practice_tests::doubled": in_relay}


def of_another_shape() -> dict[str, Any]:
    """A converter that leaves out a row."""

    def in_relax(node: Any, importer: Any) -> Any:
        from tvm.relax import op

        x = importer.env[node.args[0]]
        return importer.block_builder.emit(op.strided_slice(x, [0], [1], [5]))

    def in_relay(inputs: Any, types: Any) -> Any:
        from tvm import relay

        return relay.strided_slice(inputs[0], [1], [5], axes=[0])

    return {"doubled.default": in_relax, "tvm_practice_tests::doubled": in_relay}


def fails() -> dict[str, Any]:
    raise ValueError("not today")


def error_with(engine: str, converters: str | None, inline: bool = False) -> float:
    """The largest difference of the exported model to PyTorch."""
    from tvm_practice.tvm_export import ExportConfig, compile_pytorch_module

    model, x = load()
    given = own_converters() if inline else converters
    config = ExportConfig.model_validate(
        {"example_input": x, "engine": engine, "converters": given}
    )
    [output] = compile_pytorch_module(model, config)(x)
    with torch.inference_mode():
        return float(abs(output - model(x).numpy()).max())
