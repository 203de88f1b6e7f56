"""transformers' architectures, made tiny."""

import pytest

from conformance import transformers_models
from conformance.cases import Case, try_all


def test_names_are_known_and_each_has_its_inputs() -> None:
    from transformers.models.auto.configuration_auto import CONFIG_MAPPING_NAMES

    cases = list(transformers_models.cases("float32", None))
    names = {each.group for each in cases}
    assert len(names) >= 100 and names <= set(CONFIG_MAPPING_NAMES)
    assert len({each.name for each in cases}) == len(cases)
    assert len(list(transformers_models.cases("float32", 1))) == len(names)


def test_a_configuration_is_small_in_all_its_parts() -> None:
    clip = transformers_models.configuration("clip")
    assert clip.text_config.hidden_size == clip.vision_config.hidden_size == 32
    assert clip.text_config.vocab_size == 100
    assert transformers_models.configuration("mamba2").num_heads == 8  # its own


@pytest.mark.parametrize(
    ("name", "family"), [("gpt2", "decoder"), ("bert", "encoder"), ("bart", "translator")]
)
def test_a_mask_leaves_out_the_end_of_one_example(name: str, family: str) -> None:
    import torch

    assert f"{name} mask" in [each.name for each in transformers_models.cases("float32", None)]
    model, inputs = transformers_models.made(name, family, "mask")
    mask = inputs["attention_mask"]
    assert mask.shape == inputs["input_ids"].shape and (mask.sum(1) > 0).all()
    changed = inputs | {"input_ids": torch.where(mask > 0, inputs["input_ids"], 7)}
    with torch.inference_mode():
        first, second = (model(**each)[0] for each in (inputs, changed))
        unmasked = model(**inputs | {"attention_mask": torch.ones_like(mask)})[0]
    assert torch.allclose(first[:, 0], second[:, 0], atol=1e-6)
    assert family == "decoder" or not torch.allclose(first[1, 0], unmasked[1, 0], atol=1e-6)


@pytest.mark.pages
@pytest.mark.slow
def test_a_decoder_generates() -> None:
    arguments = {"name": "gpt2", "family": "decoder", "given": "ids"}
    [outcome] = try_all(transformers_models.JUDGE, [Case("gpt2", "gpt2", arguments)], jobs=1)
    assert outcome.verdict == "right", outcome.reason


def test_other_tokens_are_wrong() -> None:
    import numpy as np
    import torch
    from transformers import GPT2LMHeadModel

    model = GPT2LMHeadModel(transformers_models.configuration("gpt2")).eval()
    ids = torch.arange(16)[None]

    def compiled(given: np.ndarray) -> list[np.ndarray]:
        with torch.inference_mode():
            logits = model(torch.as_tensor(given)).logits.numpy().copy()
        logits[:, 10] = -logits[:, 10]  # of the token after three that are right
        return [logits]

    judged = transformers_models._generated(model, compiled, ids)
    assert judged.verdict == "wrong" and "it generates" in judged.reason
