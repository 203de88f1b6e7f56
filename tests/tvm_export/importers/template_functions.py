"""What test_template.py calls in a child process, on the current engine."""

from typing import Any

import torch

from tests.tvm_export.converters_functions import load


def filled_in() -> dict[str, Any]:
    """A model refused, then with the open template, then with the template filled in."""
    from tvm_practice.tvm_export import ExportConfig, compile_pytorch_module
    from tvm_practice.tvm_export.errors import BadInput
    from tvm_practice.tvm_export.importers.converters.template import template

    text = template(["doubled.default"])
    name = 'raise NotImplementedError("doubled.default")'
    assert name in text
    model, x = load()
    said = []
    for converters in (None, _made(text)):
        try:
            config = ExportConfig(example_input=(x,), converters=converters)
            compile_pytorch_module(model, config)
        except BadInput as error:
            said.append(str(error))
    filled = _made(text.replace(name, "return emit(relax.op.add(x, x))"))
    compiled = compile_pytorch_module(
        model, ExportConfig(example_input=(x,), converters=filled), verify=False
    )
    with torch.inference_mode():
        difference = float(abs(compiled(x)[0] - model(x).numpy()).max())
    return {"refused": said[0], "open": said[1], "difference": difference}


def _made(text: str) -> Any:
    space: dict[str, Any] = {}
    exec(text, space)
    return space["converters"]()
