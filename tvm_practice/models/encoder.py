"""A Transformer encoder whose batch and sequence may be of any extent."""

import math

import torch
from torch import nn

from tvm_practice.models.seeding import SEED, Loaded, seeded

# Added to the scores of padded tokens: exp of it is 0 in float32.
_MASKED = -1e9


class EncoderLayer(nn.Module):
    """Self-attention and a feed-forward part, each with a residual and a layer norm after it.

    Vaswani et al., 2017, https://arxiv.org/abs/1706.03762, in the order of BERT.

    Args:
        width: of a token; a multiple of `heads`.
        heads: of the attention.
    """

    def __init__(self, width: int, heads: int):
        super().__init__()
        self._heads, self._scale = heads, 1 / math.sqrt(width // heads)
        self.query, self.key, self.value, self.out = (nn.Linear(width, width) for _ in range(4))
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        self.norm_attention, self.norm = nn.LayerNorm(width), nn.LayerNorm(width)

    def forward(self, x: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
        query, key, value = (
            project(x).unflatten(-1, (self._heads, -1)).transpose(1, 2)
            for project in (self.query, self.key, self.value)
        )
        scores = query @ key.transpose(-1, -2) * self._scale + bias
        mixed = scores.softmax(-1) @ value
        x = self.norm_attention(x + self.out(mixed.transpose(1, 2).flatten(-2)))
        normed: torch.Tensor = self.norm(x + self.down(nn.functional.gelu(self.up(x))))
        return normed


class Encoder(nn.Module):
    """Layers of a Transformer over tokens that are vectors already, some of them padding.

    `forward` takes the tokens (batch, length, width), and `keep` (batch, length), 1 for a token
    and 0 for padding, which no token attends to; it returns (batch, length, width).
    """

    def __init__(self, width: int, heads: int, layers: int):
        super().__init__()
        self.layers = nn.ModuleList(EncoderLayer(width, heads) for _ in range(layers))

    def forward(self, x: torch.Tensor, keep: torch.Tensor) -> torch.Tensor:
        bias = ((1 - keep) * _MASKED)[:, None, None, :]
        for layer in self.layers:
            x = layer(x, bias)
        return x


def load_encoder(
    *,
    batch: int = 2,
    length: int = 32,
    width: int = 768,
    heads: int = 12,
    layers: int = 1,
    seed: int = SEED,
) -> Loaded:
    """Layers of BERT-base's size (7.1 M parameters each); tokens, and which of them to keep.

    All are kept. Unlike the transformers library's BERT it has no embedding and no position, and
    its extents may be symbols.
    """
    with seeded(seed):
        model = Encoder(width, heads, layers).eval()
        return model, (torch.randn(batch, length, width), torch.ones(batch, length))
