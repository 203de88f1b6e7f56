"""An operator that no compiler knows, registered with PyTorch, and a model that uses it.

    y = weight * h / sqrt(mean(h²) + eps)        h = x * silu(z),  silu(z) = z / (1 + exp(-z))

It is the gated RMS normalization at the end of each layer of Mamba-2 (Dao and Gu, 2024,
https://arxiv.org/abs/2405.21060). In PyTorch it is eight operators, six of which pass a whole
tensor through memory; libraries have a kernel of their own for it.
"""

import torch
from torch import library, nn

from tvm_practice.models.seeding import SEED, Loaded, seeded

EPS = 1e-5


@library.custom_op("tvm_practice::rms_norm_gate", mutates_args=())
def rms_norm_gate(
    x: torch.Tensor, z: torch.Tensor, weight: torch.Tensor, eps: float
) -> torch.Tensor:
    """The formula above over the last dimension of x and z (…, columns); weight (columns,)."""
    gated = x * nn.functional.silu(z)
    scale = torch.rsqrt(gated.square().mean(-1, keepdim=True) + eps)
    return weight * gated * scale


@rms_norm_gate.register_fake
def _shape_of_result(
    x: torch.Tensor, z: torch.Tensor, weight: torch.Tensor, eps: float
) -> torch.Tensor:
    """What torch.export runs in the operator's place: the result's shape and type, no values."""
    return x.new_empty(x.shape)


class GatedLayer(nn.Module):
    """A residual layer with Mamba-2's two projections and its norm, without the state space.

    It maps (…, width) to (…, width); x and z in between are (…, inner).
    """

    def __init__(self, width: int, inner: int):
        super().__init__()
        self.expand = nn.Linear(width, 2 * inner)
        self.weight = nn.Parameter(torch.empty(inner).uniform_(0.5, 1.5))
        self.contract = nn.Linear(inner, width, bias=False)

    def forward(self, hidden: torch.Tensor) -> torch.Tensor:
        x, z = self.expand(hidden).chunk(2, dim=-1)
        contracted: torch.Tensor = self.contract(rms_norm_gate(x, z, self.weight, EPS))
        return hidden + contracted


def load_gated(
    *, layers: int = 4, width: int = 768, inner: int = 1536, tokens: int = 128, seed: int = SEED
) -> Loaded:
    """Gated layers of Mamba-2 130M's sizes (14 M parameters) and an input (1, tokens, width)."""
    with seeded(seed):
        stack = nn.Sequential(*(GatedLayer(width, inner) for _ in range(layers)))
        return stack.eval(), (torch.randn(1, tokens, width),)
