"""Functions that the tests of exported models call in a child process."""

from typing import Any

import numpy as np


def _export(model: Any, example: tuple[Any, ...]) -> dict[str, Any]:
    import torch

    from tvm_practice import engines
    from tvm_practice.tvm_export.calling import as_array, as_call
    from tvm_practice.tvm_export.config import ExportSettings
    from tvm_practice.tvm_export.export import Export
    from tvm_practice.tvm_export.pipeline import build, import_model, schedule
    from tvm_practice.viz.graph import fusion
    from tvm_practice.viz.studies import kernel_pictures

    call = as_call(model, example)
    with torch.inference_mode():
        reference = [as_array(each) for each in call.module(*call.tensors)]
    engine = engines.active()
    assert engine is not None
    export = build(schedule(import_model(Export.of(call, ExportSettings(engine=engine)))))
    outputs = export.result(*map(as_array, call.tensors))
    errors = [float(np.abs(got - want).max()) for got, want in zip(outputs, reference, strict=True)]
    drawn = fusion(export.stages["imported"], export.stages["optimized"])
    kernels = kernel_pictures(export.stages["scheduled"]) if engine == engines.CURRENT else []
    return {
        "error": max(errors),
        "rules": export.result.rules,
        "operators": len(drawn["operators"]),
        "kernels": len(drawn["kernels"]),
        "pictures": [each["work"] for each in kernels],
    }


def untuned(name: str) -> dict[str, Any]:
    """The error of one of the project's models, and which rule scheduled each function."""
    from tvm_practice import models

    return _export(*getattr(models, f"load_{name}")())


def tiny_bert() -> tuple[Any, tuple[Any, ...]]:
    """A BERT of two layers, and its inputs: token numbers and a mask, both (1, 9)."""
    import torch
    import transformers

    from tvm_practice.models.hugging_face import Positional

    config = transformers.BertConfig(
        vocab_size=101,
        hidden_size=36,
        num_hidden_layers=2,
        num_attention_heads=3,
        intermediate_size=70,
    )
    takes = ("input_ids", "attention_mask")
    gives = ("last_hidden_state", "pooler_output")
    tokens = torch.randint(0, 101, (1, 9))
    bert = Positional(transformers.BertModel(config), takes=takes, gives=gives)
    return bert.eval(), (tokens, torch.ones_like(tokens))


def small(name: str) -> dict[str, Any]:
    """The error of a two-layer model of a family."""
    import torch
    import transformers

    from tvm_practice.models.hugging_face import Positional
    from tvm_practice.models.lstm import LanguageModel

    torch.manual_seed(0)
    tokens = torch.randint(0, 101, (1, 9))
    mask = torch.ones_like(tokens)
    if name == "lstm":
        return _export(LanguageModel(vocabulary=101, units=40, layers=2).eval(), (tokens,))
    if name == "bert":
        return _export(*tiny_bert())
    if name == "gpt2":
        settings = {"vocab_size": 101, "n_embd": 36, "n_layer": 2, "n_head": 3}
        gpt2 = transformers.GPT2LMHeadModel(transformers.GPT2Config(**settings))
        takes = ("input_ids", "attention_mask")
        wrapped = Positional(gpt2, takes=takes, gives=("logits",), use_cache=False)
        return _export(wrapped.eval(), (tokens, mask))
    small = transformers.MambaConfig(vocab_size=101, hidden_size=32, num_hidden_layers=2)
    mamba = transformers.MambaForCausalLM(small)
    wrapped = Positional(mamba, takes=("input_ids",), gives=("logits",), use_cache=False)
    return _export(wrapped.eval(), (tokens,))
