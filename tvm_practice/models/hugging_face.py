"""Models of the transformers library, by their published configurations.

Random weights need no network; `pretrained=True` downloads those of the checkpoint named in the
loader. Each model is wrapped so that it takes tensors by position and returns tensors.
"""

from typing import Any

import torch
from torch import nn

from tvm_practice.models.seeding import (
    SEED,
    Loaded,
    randomize_batch_norms,
    randomize_convolutions,
    seeded,
)


class Positional(nn.Module):
    """A transformers model as a function of tensors: inputs by position, outputs by name.

    Args:
        model: the model.
        takes: the names of its inputs, in the order in which they will be given.
        gives: the names of the outputs to return: one tensor, or a tuple of them.
        settings: further arguments of its forward, the same at each call.
    """

    def __init__(
        self, model: nn.Module, *, takes: tuple[str, ...], gives: tuple[str, ...], **settings: Any
    ):
        super().__init__()
        self.model = model
        self._takes, self._gives, self._settings = takes, gives, settings

    def forward(self, *inputs: torch.Tensor) -> Any:
        named = dict(zip(self._takes, inputs, strict=True))
        outputs = self.model(**named, **self._settings)
        chosen = tuple(getattr(outputs, name) for name in self._gives)
        return chosen if len(chosen) > 1 else chosen[0]


def _library() -> Any:
    try:
        import transformers
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            "this model is the transformers library's: pip install 'tvm-practice[models]'",
            name="transformers",
        ) from error
    transformers.logging.set_verbosity_error()
    return transformers


def _make(kind: str, config: str, checkpoint: str, pretrained: bool, **settings: Any) -> nn.Module:
    """The transformers class `kind` in eval mode; `settings` are the configuration's."""
    library = _library()
    if pretrained:
        made: nn.Module = getattr(library, kind).from_pretrained(checkpoint)
    else:
        made = getattr(library, kind)(getattr(library, config)(**settings))
    return made.eval()


def _tokens(vocabulary: int, batch: int, length: int) -> torch.Tensor:
    return torch.randint(0, vocabulary, (batch, length))


def _bert(checkpoint: str, batch: int, length: int, pretrained: bool, **settings: Any) -> Loaded:
    bert = _make("BertModel", "BertConfig", checkpoint, pretrained, **settings)
    model = Positional(
        bert,
        takes=("input_ids", "attention_mask"),
        gives=("last_hidden_state", "pooler_output"),
    )
    mask = torch.ones(batch, length, dtype=torch.int64)
    return model.eval(), (_tokens(30_522, batch, length), mask)


def load_bert_base(
    *, batch: int = 1, length: int = 128, seed: int = SEED, pretrained: bool = False
) -> Loaded:
    """BERT-base, uncased (109.48 M parameters); tokens and attention mask, (batch, length) each.

    Returns the hidden states (batch, length, 768) and the pooled first one (batch, 768). Devlin
    et al., 2018, https://arxiv.org/abs/1810.04805. Checkpoint: google-bert/bert-base-uncased.
    """
    with seeded(seed):
        return _bert("google-bert/bert-base-uncased", batch, length, pretrained)


def load_bert_large(
    *, batch: int = 1, length: int = 128, seed: int = SEED, pretrained: bool = False
) -> Loaded:
    """BERT-large, uncased (335.14 M parameters); as `load_bert_base`, 1024 wide.

    Checkpoint: google-bert/bert-large-uncased.
    """
    with seeded(seed):
        return _bert(
            "google-bert/bert-large-uncased",
            batch,
            length,
            pretrained,
            hidden_size=1024,
            num_hidden_layers=24,
            num_attention_heads=16,
            intermediate_size=4096,
        )


def load_gpt2(
    *, batch: int = 1, length: int = 64, seed: int = SEED, pretrained: bool = False
) -> Loaded:
    """GPT-2 small (124.44 M parameters), prefill; tokens and attention mask, (batch, length) each.

    Returns logits (batch, length, 50257). Radford et al., 2019. Checkpoint: openai-community/gpt2.
    """
    with seeded(seed):
        gpt2 = _make("GPT2LMHeadModel", "GPT2Config", "openai-community/gpt2", pretrained)
        model = Positional(
            gpt2, takes=("input_ids", "attention_mask"), gives=("logits",), use_cache=False
        )
        mask = torch.ones(batch, length, dtype=torch.int64)
        return model.eval(), (_tokens(50_257, batch, length), mask)


def load_vit(*, batch: int = 1, seed: int = SEED, pretrained: bool = False) -> Loaded:
    """ViT-B/16 (86.57 M parameters) and images (batch, 3, 224, 224); returns 1000 logits.

    Dosovitskiy et al., 2020, https://arxiv.org/abs/2010.11929. Checkpoint:
    google/vit-base-patch16-224.
    """
    with seeded(seed):
        vit = _make(
            "ViTForImageClassification",
            "ViTConfig",
            "google/vit-base-patch16-224",
            pretrained,
            num_labels=1000,
        )
        model = Positional(vit, takes=("pixel_values",), gives=("logits",))
        return model.eval(), (torch.randn(batch, 3, 224, 224),)


def load_mobilenet_v2(*, batch: int = 1, seed: int = SEED, pretrained: bool = False) -> Loaded:
    """MobileNetV2 1.0 (3.5 M parameters) and images (batch, 3, 224, 224); returns 1001 logits.

    Sandler et al., 2018, https://arxiv.org/abs/1801.04381. Checkpoint:
    google/mobilenet_v2_1.0_224, whose first class is the background.
    """
    with seeded(seed):
        mobilenet = _make(
            "MobileNetV2ForImageClassification",
            "MobileNetV2Config",
            "google/mobilenet_v2_1.0_224",
            pretrained,
            num_labels=1001,
        )
        if not pretrained:
            randomize_convolutions(mobilenet)
            randomize_batch_norms(mobilenet)
        model = Positional(mobilenet, takes=("pixel_values",), gives=("logits",))
        return model.eval(), (torch.randn(batch, 3, 224, 224),)


def load_mamba(
    *, batch: int = 1, length: int = 16, seed: int = SEED, pretrained: bool = False
) -> Loaded:
    """Mamba-130M (129.14 M parameters) and tokens (batch, length); logits (batch, length, 50280).

    Gu and Dao, 2023, https://arxiv.org/abs/2312.00752. Checkpoint: state-spaces/mamba-130m-hf.
    """
    with seeded(seed):
        mamba = _make(
            "MambaForCausalLM",
            "MambaConfig",
            "state-spaces/mamba-130m-hf",
            pretrained,
            vocab_size=50_280,
            hidden_size=768,
            num_hidden_layers=24,
        )
        model = Positional(mamba, takes=("input_ids",), gives=("logits",), use_cache=False)
        return model.eval(), (_tokens(50_280, batch, length),)
