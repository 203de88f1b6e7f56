"""What table.txt names: each is wrong in the way of its name, but for `plain` and `other`."""

import os
import sys
from typing import Any

import torch

number = 3


class Cls(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + 1


class Body(torch.nn.Module):
    def __init__(self, body: Any):
        super().__init__()
        self.body = body
        self.layer = torch.nn.Linear(4, 4)

    def forward(self, *args: Any) -> Any:
        return self.body(self.layer, *args)


def plain() -> Any:
    return Body(lambda layer, x: layer(x)), torch.ones(2, 4)


def other() -> Any:
    return torch.nn.Linear(4, 4), torch.ones(2, 4)


def text() -> Any:
    return "resnet18"


def nothing() -> None:
    return None


def three() -> Any:
    return torch.nn.Linear(4, 4), torch.ones(2, 4), torch.ones(2, 4)


def needs_an_argument(size: int) -> Any:
    return torch.nn.Linear(size, size)


def raises() -> Any:
    raise RuntimeError("no checkpoint.pth here")


def raises_at_length() -> Any:
    raise RuntimeError("a long reason " * 1000)


def raises_lines() -> Any:
    raise ValueError("the first line\nthe second\nthe third")


def raises_escapes() -> Any:
    raise ValueError("\x1b[31mred\x1b[0m and \x07 a bell")


def raises_without_words() -> Any:
    raise AssertionError


def recurses() -> Any:
    return recurses()


def exits() -> Any:
    sys.exit("no licence")


def exits_at_once() -> Any:
    os._exit(0)


def exits_with_3() -> Any:
    os._exit(3)


def aborts() -> Any:
    os.abort()


def input_is_text() -> Any:
    return torch.nn.Linear(4, 4), "ones"


def input_is_complex() -> Any:
    return Body(lambda layer, x: x.abs()), torch.ones(2, 4, dtype=torch.complex64)


def input_is_empty() -> Any:
    return Body(lambda layer, x: layer(x)), torch.ones(0, 4)


def input_is_sparse() -> Any:
    return Body(lambda layer, x: x.to_dense()), torch.ones(2, 4).to_sparse()


def input_is_quantized() -> Any:
    given = torch.quantize_per_tensor(torch.ones(2, 4), 0.1, 0, torch.quint8)
    return Body(lambda layer, x: x.dequantize()), given


def wrong_extent() -> Any:
    return torch.nn.Linear(4, 4), torch.ones(2, 5)


def too_many_inputs() -> Any:
    return torch.nn.Linear(4, 4), (torch.ones(2, 4), torch.ones(2, 4))


def unknown_name() -> Any:
    return torch.nn.Linear(4, 4), {"inputt": torch.ones(2, 4)}


def forward_raises() -> Any:
    def body(layer: Any, x: Any) -> Any:
        raise RuntimeError("the model's own reason")

    return Body(body), torch.ones(2, 4)


def output_is_text() -> Any:
    return Body(lambda layer, x: "done"), torch.ones(2, 4)


def output_is_nothing() -> Any:
    return Body(lambda layer, x: None), torch.ones(2, 4)


def output_is_complex() -> Any:
    return Body(lambda layer, x: torch.fft.fft(x)), torch.ones(2, 4)


def output_is_not_a_number() -> Any:
    return Body(lambda layer, x: layer(x) * float("nan")), torch.ones(2, 4)


def on_meta() -> Any:
    return torch.nn.Linear(4, 4, device="meta"), torch.ones(2, 4)


def scripted() -> Any:
    model = torch.nn.Sequential(torch.nn.LSTM(4, 4))
    return torch.jit.script(model), torch.ones(2, 4)


def random_numbers() -> Any:
    return Body(lambda layer, x: layer(x) + torch.rand_like(x)), torch.ones(2, 4)


def decides_by_a_value() -> Any:
    return Body(lambda layer, x: layer(x) if x.sum() > 0 else x), torch.ones(2, 4)


def unknown_operator() -> Any:
    return Body(lambda layer, x: torch.special.hermite_polynomial_h(x, 3)), torch.ones(2, 4)


def no_task() -> Any:
    """For a tuner of products there is nothing to do."""
    return Body(lambda layer, x: x.reshape(4, 2)), torch.ones(2, 4)


def changes_its_folder() -> Any:
    os.chdir("/")
    raise RuntimeError("no weights here")


def converters_are_a_list() -> Any:
    return [print]


def converters_are_not_functions() -> Any:
    return {"aten::relu": "relu"}


def converters_of_nothing() -> Any:
    return {}


def converters_raise() -> Any:
    raise KeyError("hermite_polynomial_h")


def space_is_text() -> Any:
    return "register-tiles"


def schedule_raises() -> Any:
    raise ValueError("no such tile")


def schedule_is_nothing() -> None:
    return None
