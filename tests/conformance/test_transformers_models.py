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
