"""3x3 convolutions with four multiplications where the sum has nine: Winograd's F(2x2, 3x3).

    Y = A^T [(G g G^T) . (B^T d B)] A

A tile of 2x2 outputs of a filter is made from a patch d of 4x4 inputs: both the patch and the
filter's 3x3 weights g are transformed to 4x4 values, which are multiplied element by element and
summed over the channels, and the sums transformed back. What is summed are 16 matrix products, one
for each element: a filter's transformed weights, a constant of the model, times those of the
tiles. Per output that is 4 multiplications a channel instead of 9. The transforms only add; the
result differs from a direct convolution's by rounding, about as much as that from the exact one.

Source: Lavin and Gray, Fast Algorithms for Convolutional Neural Networks, 2015,
https://arxiv.org/abs/1509.09308, section 4.1.
"""

from typing import Any

from tvm_practice.tvm_export.errors import NotApplicable
from tvm_practice.tvm_export.rules.cpu.contraction import find_contraction
from tvm_practice.tvm_export.rules.cpu.loops import Cpu
from tvm_practice.tvm_export.rules.cpu.register_tiles import advice_of
from tvm_practice.tvm_export.rules.cpu.winograd.channels_first import schedule_first
from tvm_practice.tvm_export.rules.cpu.winograd.channels_last import schedule_last
from tvm_practice.tvm_export.rules.cpu.winograd.convolution import find_convolution


def schedule_winograd(func: Any, cpu: Cpu) -> Any:
    """The function by Winograd's algorithm.

    Raises:
        NotApplicable: it is no convolution that gains by it, what is fused with it does not go
            with it, or a tuner has chosen its register tile (`advise`).
    """
    if advice_of(func) is not None:
        raise NotApplicable("a tuner has chosen a register tile")
    found = find_contraction(func, cpu)
    convolution = find_convolution(found)
    schedule = schedule_last if convolution.channels_last else schedule_first
    return schedule(func, found, convolution, cpu)
