"""A random model: its inputs, its constants, and its steps, all of them lines of PyTorch."""

import linecache
import math
import re
import warnings
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

import torch
from torch.nn import functional

_FLOATING = re.compile(r"torch\.(bfloat16|float16|float32)\b")
Watch = Callable[["Step", torch.Tensor], torch.Tensor]


@dataclass(frozen=True)
class Step:
    """One line of a model.

    Attributes:
        name: of its result.
        code: an expression of earlier names; constants are `self.c0`, `self.c1`, …
        operator: what it is counted under.
        exact: whether its result is the same however it is computed: nothing in it is rounded.
    """

    name: str
    code: str
    operator: str
    exact: bool


@dataclass(frozen=True)
class Graph:
    """A model.

    Attributes:
        inputs: the code of each, by name; see `values`, `indices`.
        constants: the code of each, by name without `self.`.
        steps: in their order.
        outputs: names of inputs or steps.
    """

    inputs: dict[str, str]
    constants: dict[str, str]
    steps: list[Step]
    outputs: list[str]
    _kept: dict[str, Any] = field(default_factory=dict, repr=False, compare=False)

    def to_dict(self) -> dict[str, Any]:
        """As JSON."""
        found = asdict(self)
        del found["_kept"]
        return found

    @classmethod
    def of(cls, given: Mapping[str, Any]) -> "Graph":
        """The graph that `to_dict` gave."""
        steps = [Step(**each) for each in given["steps"]]
        return cls(given["inputs"], given["constants"], steps, given["outputs"])

    @property
    def operators(self) -> list[str]:
        """Of each step."""
        return [each.operator for each in self.steps]

    @property
    def is_rare(self) -> bool:
        """Whether an input has rare values."""
        return any("rare(" in code for code in self.inputs.values())

    def tensors(self) -> tuple[torch.Tensor, ...]:
        """The example inputs, with the strides that they were drawn with."""
        return tuple(made(code) for code in self.inputs.values())

    def module(self) -> torch.nn.Module:
        """The model, in eval mode; its constants are buffers."""
        text = self.source()
        file = f"<graph {hash(text)}>"
        linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
        names: dict[str, Any] = {"torch": torch, "F": functional}
        exec(compile(text, file, "exec"), names)
        model: torch.nn.Module = torch.nn.Module.__new__(names["Model"])
        torch.nn.Module.__init__(model)
        for name, code in self.constants.items():
            model.register_buffer(name, made(code))
        return model.eval()

    def source(self) -> str:
        """The model's class."""
        lines = [f"        {each.name} = {each.code}" for each in self.steps]
        return "\n".join(
            [
                "class Model(torch.nn.Module):",
                f"    def forward(self, {', '.join(self.inputs)}):",
                *lines,
                f"        return ({', '.join(self.outputs)},)",
                "",
            ]
        )

    def evaluated(
        self, *, exactly: bool = False, watch: Watch = lambda step, value: value
    ) -> list[torch.Tensor]:
        """The outputs, step by step in PyTorch.

        Args:
            exactly: in float64, whatever types the steps ask for.
            watch: is given each step and its result, and returns what later steps take for it.
        """

        def converted(tensor: torch.Tensor) -> torch.Tensor:
            return tensor.double() if exactly and tensor.is_floating_point() else tensor

        constants = {name: converted(made(code)) for name, code in self.constants.items()}
        own = type("Constants", (), constants)
        names: dict[str, Any] = {"torch": torch, "F": functional, "self": own}
        for name, code in self.inputs.items():
            names[name] = converted(made(code))
        usual = torch.get_default_dtype()  # of quotients of integers
        torch.set_default_dtype(torch.float64 if exactly else usual)
        try:
            with warnings.catch_warnings():  # as of the variance of one number
                warnings.simplefilter("ignore")
                for step in self.steps:
                    code = _FLOATING.sub("torch.float64", step.code) if exactly else step.code
                    names[step.name] = watch(step, eval(code, names))
        finally:
            torch.set_default_dtype(usual)
        return [names[each] for each in self.outputs]


def made(code: str) -> torch.Tensor:
    """The tensor that an input's or a constant's code stands for."""
    names = {
        "torch": torch,
        "values": values,
        "rare": rare,
        "weights": weights,
        "indices": indices,
        "resized": resized,
    }
    tensor: torch.Tensor = eval(code, names)
    return tensor


def values(shape: tuple[int, ...], dtype: str, seed: int) -> torch.Tensor:
    """Eighths from -2 to 2, which every floating-point type holds; integers from -8 to 8; bools."""
    kind = getattr(torch, dtype)
    generator = torch.Generator().manual_seed(seed)
    if kind == torch.bool:
        return torch.randint(0, 2, shape, generator=generator).bool()
    if not kind.is_floating_point:
        return torch.randint(-8, 9, shape, generator=generator).to(kind)
    return (torch.randint(-16, 17, shape, generator=generator) / 8).to(kind)


RARE = ("nan", "infinite", "tiny", "large", "any")
"""Kinds of rare values."""


def rare(shape: tuple[int, ...], dtype: str, seed: int, kind: str) -> torch.Tensor:
    """`values` of a floating-point type, an eighth of them replaced by rare ones of a kind.

    Tiny numbers are subnormal. All are powers of two that every wider type holds, so that a cast
    rounds none of them.

    Args:
        kind: of `RARE`.
    """
    tiny, large = (2.0**-20, 2.0**15) if dtype == "float16" else (2.0**-130, 2.0**100)
    kinds = {
        "nan": (math.nan,),
        "infinite": (math.inf, -math.inf),
        "tiny": (tiny, -tiny, 0.0, -0.0),
        "large": (large, -large),
    }
    kinds["any"] = tuple(each for found in kinds.values() for each in found)
    chosen = torch.tensor(kinds[kind], dtype=torch.float64)
    generator = torch.Generator().manual_seed(seed)
    found = chosen[torch.randint(0, len(chosen), shape, generator=generator)]
    is_rare = torch.rand(shape, generator=generator) < 1 / 8
    plain = values(shape, dtype, seed)
    return torch.where(is_rare, found.to(plain.dtype), plain)


def weights(shape: tuple[int, ...], dtype: str, seed: int, size: float = 1.0) -> torch.Tensor:
    """Normally distributed values of this size."""
    generator = torch.Generator().manual_seed(seed)
    return (torch.randn(shape, generator=generator) * size).to(getattr(torch, dtype))


def indices(shape: tuple[int, ...], bound: int, seed: int, dtype: str = "int64") -> torch.Tensor:
    """Integers from 0 to below the bound."""
    generator = torch.Generator().manual_seed(seed)
    return torch.randint(0, bound, shape, generator=generator).to(getattr(torch, dtype))


def resized(tensor: torch.Tensor, axis: int, extent: int) -> torch.Tensor:
    """The tensor with another extent of an axis: cut off, or begun again."""
    return tensor.index_select(axis, torch.arange(extent) % tensor.shape[axis])
