"""Models to import: real architectures with seeded random weights, so that nothing is downloaded.

Each loader returns the model in eval mode and a tuple of example inputs. The same seed gives the
same weights and inputs; PyTorch's global random state is left as it was.

    model, example = load_resnet18()
    model(*example)
"""

from tvm_practice.models.encoder import load_encoder
from tvm_practice.models.hugging_face import (
    load_bert_base,
    load_bert_large,
    load_gpt2,
    load_mamba,
    load_mobilenet_v2,
    load_vit,
)
from tvm_practice.models.lstm import load_lstm
from tvm_practice.models.mlp import MLP, load_mlp
from tvm_practice.models.resnet import ResNet, load_resnet18, load_resnet50, load_small_resnet
from tvm_practice.models.seeding import SEED, Loaded

__all__ = [
    "MLP",
    "SEED",
    "Loaded",
    "ResNet",
    "load_bert_base",
    "load_bert_large",
    "load_encoder",
    "load_gpt2",
    "load_lstm",
    "load_mamba",
    "load_mlp",
    "load_mobilenet_v2",
    "load_resnet18",
    "load_resnet50",
    "load_small_resnet",
    "load_vit",
]
