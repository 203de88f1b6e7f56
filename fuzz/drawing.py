"""A graph as it is drawn: the values there are, and how to draw among them.

A step is drawn among those that suit the values there are, and run in PyTorch at once: one that
PyTorch refuses, or whose result is too large in values or in size, is not taken.
"""

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any, TypeVar

import torch
from torch.nn import functional

from fuzz.graphs import RARE, Graph, Step, made

# Extents: 0, 1, primes, and what the rules' tiles and vectors divide, by chance or not.
EXTENTS = (1, 2, 3, 4, 5, 7, 8, 11, 13, 16, 17, 23, 31, 32, 33)
CHANNELS = (1, 2, 3, 4, 6, 8, 13, 16, 17, 32, 33, 48, 64, 96)
FLOATING = ("float32", "float16", "bfloat16", "float64")
TYPES = (*["float32"] * 8, "float16", "bfloat16", "float64", "int32", "int64", "bool")
_ELEMENTS, _BOUND, _INTEGER_BOUND = 1 << 17, 300.0, 1 << 15
_RARE = 5  # one in so many floating-point inputs has rare values

_T = TypeVar("_T")


@dataclass(frozen=True)
class Value:
    """What a step can take.

    Attributes:
        name: in code.
        tensor: its example.
        exact: whether it holds no rounded numbers.
        rare: whether it is a floating-point value made of NaN, infinities, very small or very
            large numbers.
    """

    name: str
    tensor: torch.Tensor
    exact: bool
    rare: bool = False

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(self.tensor.shape)

    @property
    def rank(self) -> int:
        return self.tensor.ndim

    @property
    def dtype(self) -> str:
        return str(self.tensor.dtype).removeprefix("torch.")

    @property
    def is_real(self) -> bool:
        return self.tensor.is_floating_point()

    @property
    def is_bool(self) -> bool:
        return self.tensor.dtype == torch.bool

    @property
    def is_integer(self) -> bool:
        return not self.is_real and not self.is_bool

    @property
    def filled(self) -> bool:
        """Whether it has an element."""
        return self.tensor.numel() > 0


class Unsuitable(Exception):
    """No value there is suits the step."""


class Drawn:
    """A graph on its way: the values there are, and how to draw.

    Attributes:
        values: inputs and results of steps so far.
    """

    def __init__(self, random: Random):
        self._random = random
        self.values: list[Value] = []
        self._inputs: dict[str, str] = {}
        self._constants: dict[str, str] = {}
        self._tensors: dict[str, torch.Tensor] = {}
        self._steps: list[Step] = []
        self._used: set[str] = set()

    # What makers of steps draw with.

    def among(self, choices: Sequence[_T]) -> _T:
        """One of the choices; Unsuitable without one."""
        if not choices:
            raise Unsuitable
        return self._random.choice(choices)

    def integer(self, low: int, high: int) -> int:
        if high < low:
            raise Unsuitable
        return self._random.randint(low, high)

    def chance(self) -> bool:
        return self._random.random() < 0.5

    def value(self, suits: Callable[[Value], bool] = lambda value: True) -> Value:
        """A value that suits, more often than not the last one; Unsuitable without one."""
        found = [each for each in reversed(self.values) if suits(each)]
        if not found:
            raise Unsuitable
        return found[0] if len(found) == 1 or self.chance() else self.among(found)

    def real(self, rank: int = 0, most: int = 9) -> Value:
        """A floating-point value with elements, of at least and at most so many axes."""
        return self.value(lambda it: it.is_real and it.filled and rank <= it.rank <= most)

    def axis(self, value: Value, *, negative: bool = True) -> int:
        """An axis of a value, counted from the front or from the back."""
        axis = self.integer(0, value.rank - 1)
        return axis - value.rank if negative and self.chance() else axis

    def extent(self, most: int = 33) -> int:
        return self.among([each for each in EXTENTS if each <= most])

    def constant(self, code: str) -> str:
        """A constant of the model; returns what code calls it."""
        name = f"c{len(self._constants)}"
        self._constants[name] = code
        self._tensors[name] = made(code)
        return f"self.{name}"

    def weight(self, shape: tuple[int, ...], dtype: str, size: float = 1.0) -> str:
        """A constant of normally distributed values, or of integers or bools."""
        seed = len(self._constants)
        if dtype in FLOATING:
            return self.constant(f"weights({shape}, {dtype!r}, {seed}, {size:.4g})")
        return self.constant(f"values({shape}, {dtype!r}, {seed})")

    def indices(self, shape: tuple[int, ...], bound: int) -> str:
        """A constant, or an input, of indices below the bound."""
        kind = self.among(("int64", "int64", "int32"))
        seed = len(self._constants) + len(self._inputs)
        code = f"indices({shape}, {bound}, {seed}, {kind!r})"
        return self.constant(code) if self.chance() else self._input(code).name

    # What graphs are made by.

    def input(self) -> None:
        """One more input: of any type, strides as they come."""
        dtype = self.among(TYPES)
        rank = self.among((2, 3, 4, 4, 1, 0))
        shape = tuple(self.extent(17) for _ in range(rank))
        if rank > 1 and self.integer(0, 60) == 60:
            shape = (*shape[:-1], 0)
        if rank >= 3 and self.chance():
            shape = (self.among((1, 2, 3)), self.among(CHANNELS), *shape[2:])
        seed = len(self._inputs)
        kind = ""
        if dtype in FLOATING and self.integer(1, _RARE) == 1:
            kind = self.among(RARE)

        def filled(shape: tuple[int, ...]) -> str:
            if kind:
                return f"rare({shape}, {dtype!r}, {seed}, {kind!r})"
            return f"values({shape}, {dtype!r}, {seed})"

        layout = self.among(("contiguous",) * 5 + ("turned", "every other", "expanded", "flipped"))
        if layout == "turned" and rank > 1:
            code = f"{filled(shape[::-1])}.permute({tuple(range(rank))[::-1]})"
        elif layout == "every other" and rank:
            code = f"{filled((2 * shape[0] + 1, *shape[1:]))}[1::2]"
        elif layout == "expanded" and rank:
            code = f"{filled((1, *shape[1:]))}.expand({shape})"
        else:
            code = filled(shape)
        self._input(code, rare=bool(kind))

    def _input(self, code: str, *, rare: bool = False) -> Value:
        name = f"x{len(self._inputs)}"
        self._inputs[name] = code
        value = Value(name, made(code), True, rare)
        self._tensors[name] = value.tensor
        self.values.append(value)
        return value

    def take(self, operator: str, code: str, *, of: Sequence[Value], exact: bool) -> None:
        """Run a step, and keep it.

        Raises Unsuitable if its result has too many elements, or values that are too large or not
        finite though its operands have no rare ones.
        """
        own = type("Constants", (), {k: v for k, v in self._tensors.items() if k[0] == "c"})
        names: dict[str, Any] = {"torch": torch, "F": functional, "self": own}
        names |= {k: v for k, v in self._tensors.items() if k[0] != "c"}
        try:
            with warnings.catch_warnings(), torch.inference_mode():
                warnings.simplefilter("ignore")
                result = eval(code, names)
        except (RuntimeError, ValueError, IndexError, TypeError, NotImplementedError):
            raise Unsuitable from None
        rare = any(each.rare for each in of)
        if not isinstance(result, torch.Tensor) or not _is_small(result, rare=rare):
            raise Unsuitable
        name = f"v{len(self._steps)}"
        exact = exact and all(each.exact for each in of)
        self._steps.append(Step(name, code, operator, exact))
        self._tensors[name] = result
        self._used |= {each.name for each in of}
        rare = rare and result.is_floating_point()
        self.values.append(Value(name, result, exact, rare))

    def graph(self) -> Graph:
        """What was drawn: everything that no step reads is an output."""
        outputs = [each.name for each in self._steps if each.name not in self._used]
        code = " ".join(each.code for each in self._steps).replace(",", " ").replace(")", " ")
        inputs = {name: each for name, each in self._inputs.items() if _reads(code, name)}
        constants = {n: each for n, each in self._constants.items() if _reads(code, f"self.{n}")}
        return Graph(inputs, constants, self._steps, outputs)


def _reads(code: str, name: str) -> bool:
    """Whether code names it, as a whole word."""
    import re

    return re.search(rf"(?<![\w.]){re.escape(name)}\b", code) is not None


def _is_small(result: torch.Tensor, *, rare: bool) -> bool:
    if result.numel() > _ELEMENTS or result.is_complex() or result.ndim > 6:
        return False
    if not result.numel() or result.dtype == torch.bool or (rare and result.is_floating_point()):
        return True
    bound = _BOUND if result.is_floating_point() else _INTEGER_BOUND
    return bool(torch.isfinite(result).all()) and bool((result.abs() <= bound).all())
