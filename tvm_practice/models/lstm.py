"""A recurrent language model."""

import torch
from torch import nn

from tvm_practice.models.seeding import SEED, Loaded, seeded


class LanguageModel(nn.Module):
    """Embedding, LSTM layers, projection to the vocabulary: tokens (batch, steps) to logits
    (batch, steps, vocabulary)."""

    def __init__(self, vocabulary: int, units: int, layers: int):
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, units)
        self.lstm = nn.LSTM(units, units, num_layers=layers, batch_first=True)
        self.projection = nn.Linear(units, vocabulary)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        states, _ = self.lstm(self.embedding(tokens))
        logits: torch.Tensor = self.projection(states)
        return logits


def load_lstm(*, batch: int = 1, steps: int = 35, seed: int = SEED) -> Loaded:
    """The medium model of Zaremba et al. (2014, https://arxiv.org/abs/1409.2329).

    Two LSTM layers of 650 units over a vocabulary of 10 000 (19.78 M parameters), and tokens of
    shape (batch, steps).
    """
    with seeded(seed):
        model = LanguageModel(vocabulary=10_000, units=650, layers=2)
        return model.eval(), (torch.randint(0, 10_000, (batch, steps)),)
