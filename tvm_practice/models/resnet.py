"""Residual networks (He et al., 2015, https://arxiv.org/abs/1512.03385)."""

import torch
from torch import nn

from tvm_practice.models.seeding import (
    SEED,
    Loaded,
    randomize_batch_norms,
    randomize_convolutions,
    seeded,
)

_WEIGHTS = {  # torchvision's, whose parameter names these classes share
    "resnet18": "https://download.pytorch.org/models/resnet18-f37072fd.pth",
    "resnet50": "https://download.pytorch.org/models/resnet50-11ad3fa6.pth",
}


class BasicBlock(nn.Module):
    """Two 3x3 convolutions and a shortcut (figure 2).

    Where the shape changes, the shortcut is a 1x1 convolution called `downsample`.
    """

    expansion = 1

    def __init__(self, inputs: int, outputs: int, stride: int):
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, outputs, 3, stride=stride, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(outputs)
        self.relu = nn.ReLU()
        self.conv2 = nn.Conv2d(outputs, outputs, 3, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(outputs)
        self.downsample = _shortcut(inputs, outputs, stride)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.relu(self.bn1(self.conv1(x)))
        y = self.bn2(self.conv2(y)) + self.downsample(x)
        joined: torch.Tensor = self.relu(y)
        return joined


class Bottleneck(nn.Module):
    """1x1, 3x3 and 1x1 convolutions and a shortcut (figure 5); the 3x3 one has the stride.

    The last convolution has four times as many channels as the others.
    """

    expansion = 4

    def __init__(self, inputs: int, channels: int, stride: int):
        super().__init__()
        outputs = channels * self.expansion
        self.conv1 = nn.Conv2d(inputs, channels, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(channels)
        self.conv2 = nn.Conv2d(channels, channels, 3, stride=stride, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(channels)
        self.conv3 = nn.Conv2d(channels, outputs, 1, bias=False)
        self.bn3 = nn.BatchNorm2d(outputs)
        self.relu = nn.ReLU()
        self.downsample = _shortcut(inputs, outputs, stride)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.relu(self.bn1(self.conv1(x)))
        y = self.relu(self.bn2(self.conv2(y)))
        y = self.bn3(self.conv3(y)) + self.downsample(x)
        joined: torch.Tensor = self.relu(y)
        return joined


def _shortcut(inputs: int, outputs: int, stride: int) -> nn.Module:
    """The identity, or where the shape changes a 1x1 convolution."""
    if stride == 1 and inputs == outputs:
        return nn.Identity()
    return nn.Sequential(
        nn.Conv2d(inputs, outputs, 1, stride=stride, bias=False), nn.BatchNorm2d(outputs)
    )


class ResNet(nn.Module):
    """A residual network, with torchvision's names for its parameters.

    Args:
        block: BasicBlock or Bottleneck.
        blocks: how many in each stage; every stage but the first halves the image.
        width: channels of the first stage; each further stage doubles them.
        classes: logits.

    `ResNet(BasicBlock, (2, 2, 2, 2))` is ResNet-18: (batch, 3, 224, 224) to (batch, 1000).
    """

    def __init__(
        self,
        block: type[BasicBlock] | type[Bottleneck],
        blocks: tuple[int, ...],
        width: int = 64,
        classes: int = 1000,
    ):
        super().__init__()
        self.conv1 = nn.Conv2d(3, width, 7, stride=2, padding=3, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.relu = nn.ReLU()
        self.maxpool = nn.MaxPool2d(3, stride=2, padding=1)
        self._stages = [f"layer{number}" for number in range(1, len(blocks) + 1)]
        inputs = width
        for number, (name, count) in enumerate(zip(self._stages, blocks, strict=True)):
            channels = width * 2**number
            outputs = channels * block.expansion
            first = block(inputs, channels, stride=1 if number == 0 else 2)
            rest = [block(outputs, channels, stride=1) for _ in range(count - 1)]
            self.add_module(name, nn.Sequential(first, *rest))
            inputs = outputs
        self.avgpool = nn.AdaptiveAvgPool2d(1)
        self.fc = nn.Linear(inputs, classes)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.maxpool(self.relu(self.bn1(self.conv1(x))))
        for name in self._stages:
            x = self.get_submodule(name)(x)
        logits: torch.Tensor = self.fc(torch.flatten(self.avgpool(x), 1))
        return logits


def _load(name: str, model: ResNet, pretrained: bool) -> nn.Module:
    if pretrained:
        model.load_state_dict(torch.hub.load_state_dict_from_url(_WEIGHTS[name]))
    else:
        randomize_convolutions(model)
        randomize_batch_norms(model)
    return model.eval()


def load_small_resnet(*, batch: int = 1, seed: int = SEED) -> Loaded:
    """A residual network of two blocks (0.08 M parameters), input (batch, 3, 64, 64).

    ResNet-18's operators at a size that builds and runs in a moment even unscheduled.
    """
    with seeded(seed):
        model = _load("small", ResNet(BasicBlock, (1, 1), width=32, classes=10), False)
        return model, (torch.randn(batch, 3, 64, 64),)


def load_resnet18(*, batch: int = 1, seed: int = SEED, pretrained: bool = False) -> Loaded:
    """ResNet-18 (11.69 M parameters) and an input of shape (batch, 3, 224, 224)."""
    with seeded(seed):
        model = _load("resnet18", ResNet(BasicBlock, (2, 2, 2, 2)), pretrained)
        return model, (torch.randn(batch, 3, 224, 224),)


def load_resnet50(*, batch: int = 1, seed: int = SEED, pretrained: bool = False) -> Loaded:
    """ResNet-50 (25.56 M parameters) and an input of shape (batch, 3, 224, 224)."""
    with seeded(seed):
        model = _load("resnet50", ResNet(Bottleneck, (3, 4, 6, 3)), pretrained)
        return model, (torch.randn(batch, 3, 224, 224),)
