"""Models to import: real architectures with seeded random weights, so that nothing is downloaded.

Each loader returns the model in eval mode and a tuple of example inputs. The same seed gives the
same weights and inputs; PyTorch's global random state is left as it was.

    model, example = load_resnet18()
    model(*example)
"""

import itertools
from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import nn

Loaded = tuple[nn.Module, tuple[torch.Tensor, ...]]

SEED = 0


@contextmanager
def _seeded(seed: int) -> Iterator[None]:
    """Draw from `seed` inside the block, on the CPU; the global state is put back after it."""
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(seed)
        yield


class MLP(nn.Module):
    """Linear layers with ReLU between them: (batch, sizes[0]) to (batch, sizes[-1])."""

    def __init__(self, sizes: tuple[int, ...]):
        super().__init__()
        layers: list[nn.Module] = []
        for inputs, outputs in itertools.pairwise(sizes):
            layers += [nn.Linear(inputs, outputs), nn.ReLU()]
        self.layers = nn.Sequential(*layers[:-1])

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        logits: torch.Tensor = self.layers(x)
        return logits


class BasicBlock(nn.Module):
    """Two 3x3 convolutions and a shortcut (He et al., 2015, figure 2).

    Where the shape changes, the shortcut is a 1x1 convolution called `downsample`.
    """

    def __init__(self, inputs: int, outputs: int, stride: int):
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, outputs, 3, stride=stride, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(outputs)
        self.relu = nn.ReLU()
        self.conv2 = nn.Conv2d(outputs, outputs, 3, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(outputs)
        self.downsample: nn.Module = nn.Identity()
        if stride != 1 or inputs != outputs:
            self.downsample = nn.Sequential(
                nn.Conv2d(inputs, outputs, 1, stride=stride, bias=False), nn.BatchNorm2d(outputs)
            )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.relu(self.bn1(self.conv1(x)))
        y = self.bn2(self.conv2(y)) + self.downsample(x)
        joined: torch.Tensor = self.relu(y)
        return joined


class ResNet(nn.Module):
    """A residual network of basic blocks, with torchvision's names for its parameters.

    Args:
        blocks: basic blocks in each stage; every stage but the first halves the image.
        width: channels of the first stage; each further stage doubles them.
        classes: logits.

    `ResNet((2, 2, 2, 2))` is ResNet-18: (batch, 3, 224, 224) to (batch, 1000).
    """

    def __init__(self, blocks: tuple[int, ...], width: int = 64, classes: int = 1000):
        super().__init__()
        self.conv1 = nn.Conv2d(3, width, 7, stride=2, padding=3, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.relu = nn.ReLU()
        self.maxpool = nn.MaxPool2d(3, stride=2, padding=1)
        self._stages = [f"layer{number}" for number in range(1, len(blocks) + 1)]
        channels = width
        for number, (name, count) in enumerate(zip(self._stages, blocks, strict=True)):
            outputs = width * 2**number
            first = BasicBlock(channels, outputs, stride=1 if number == 0 else 2)
            rest = [BasicBlock(outputs, outputs, stride=1) for _ in range(count - 1)]
            self.add_module(name, nn.Sequential(first, *rest))
            channels = outputs
        self.avgpool = nn.AdaptiveAvgPool2d(1)
        self.fc = nn.Linear(channels, classes)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.maxpool(self.relu(self.bn1(self.conv1(x))))
        for name in self._stages:
            x = self.get_submodule(name)(x)
        logits: torch.Tensor = self.fc(torch.flatten(self.avgpool(x), 1))
        return logits


def randomize_batch_norms(model: nn.Module) -> None:
    """Give every batch normalization statistics and weights that are not 0 and 1.

    A new layer has mean 0, variance 1, scale 1 and shift 0: a compiler that forgot all four would
    pass verification. The ranges keep a deep network's values of order one.
    """
    for module in model.modules():
        if isinstance(module, nn.BatchNorm2d):
            assert module.running_mean is not None and module.running_var is not None
            nn.init.normal_(module.running_mean, std=0.2)
            nn.init.uniform_(module.running_var, 1.0, 3.0)
            nn.init.uniform_(module.weight, 0.5, 1.5)
            nn.init.normal_(module.bias, std=0.2)


def _resnet(blocks: tuple[int, ...], width: int, classes: int) -> nn.Module:
    model = ResNet(blocks, width, classes)
    for module in model.modules():
        if isinstance(module, nn.Conv2d):
            nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")
    randomize_batch_norms(model)
    return model.eval()


def load_mlp(*, batch: int = 32, seed: int = SEED) -> Loaded:
    """MLP 784-512-256-10 (0.54 M parameters) and an input of shape (batch, 784)."""
    with _seeded(seed):
        return MLP((784, 512, 256, 10)).eval(), (torch.randn(batch, 784),)


def load_small_resnet(*, batch: int = 1, seed: int = SEED) -> Loaded:
    """A residual network of two blocks (0.08 M parameters), input (batch, 3, 64, 64).

    ResNet-18's operators at a size that builds and runs in a moment even unscheduled.
    """
    with _seeded(seed):
        return _resnet((1, 1), width=32, classes=10), (torch.randn(batch, 3, 64, 64),)


def load_resnet18(*, batch: int = 1, seed: int = SEED) -> Loaded:
    """ResNet-18 (11.69 M parameters) and an input of shape (batch, 3, 224, 224)."""
    with _seeded(seed):
        return _resnet((2, 2, 2, 2), width=64, classes=1000), (torch.randn(batch, 3, 224, 224),)
