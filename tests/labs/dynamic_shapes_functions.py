"""Functions that the tests of lab 4 call in a process of the current engine."""

from typing import Any

import numpy as np


def bert(*, given_positions: bool) -> dict[str, Any]:
    """A small BERT of the transformers library, imported with a symbolic batch and length.

    Args:
        given_positions: whether positions and token types are inputs, rather than cut from
            buffers of the model.

    Returns:
        {"slices": the types of what is cut from a constant, "error": why it was not compiled, in
        a line, or else "errors": the largest absolute error by shape}.
    """
    import torch
    import transformers

    from solutions.labs.dynamic_shapes import import_dynamic
    from solutions.relay_import import build_relax, optimize_relax
    from tvm_practice import engines
    from tvm_practice.tvm_export.quiet import quiet_frontends
    from tvm_practice.tvm_export.running import run_relax

    class Bert(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.bert = transformers.BertModel(
                transformers.BertConfig(
                    hidden_size=64,
                    num_hidden_layers=1,
                    num_attention_heads=2,
                    intermediate_size=128,
                    vocab_size=100,
                )
            ).eval()

        def forward(self, tokens: Any, mask: Any, positions: Any, kinds: Any) -> Any:
            more = {"position_ids": positions, "token_type_ids": kinds} if given_positions else {}
            return self.bert(input_ids=tokens, attention_mask=mask, **more).last_hidden_state

    def draw(batch: int, length: int) -> tuple[torch.Tensor, ...]:
        tokens = torch.randint(0, 100, (batch, length))
        positions = torch.arange(length).repeat(batch, 1)
        return tokens, torch.ones_like(tokens), positions, torch.zeros_like(tokens)

    model = Bert().eval()
    axes = ({0: "batch", 1: "length"},) * 4
    with quiet_frontends():
        module = import_dynamic(model, draw(2, 8), axes, {"batch": 4, "length": 64})
    found: dict[str, Any] = {
        "slices": [
            str(binding.var.ty)
            for block in module["main"].body.blocks
            for binding in block.bindings
            if "strided_slice" in str(getattr(binding.value, "op", ""))
        ]
    }
    try:
        executable = build_relax(optimize_relax(module), engines.host_target())
    except Exception as error:
        return {**found, "error": str(error).strip().splitlines()[-1]}
    errors = {}
    for batch, length in ((1, 1), (3, 17), (4, 64)):
        inputs = draw(batch, length)
        [got] = run_relax(executable, [each.numpy() for each in inputs])
        with torch.inference_mode():
            want = model(*inputs).numpy()
        errors[f"{batch}x{length}"] = float(np.abs(got - want).max())
    return {**found, "errors": errors}
