"""Converters of ONNX operators to Relax that TVM lacks, or that are wrong in it.

A converter takes a `base.Node` and returns a Relax expression, a tuple where the node has several
outputs. The modules are named after the operators' purposes.
"""

from collections.abc import Callable
from typing import Any

from tvm_practice.tvm_export.importers.onnx.converters import (
    elementwise,
    moving,
    pooling,
    quantized,
    recurrent,
    reducing,
    resizing,
    sampling,
    selecting,
    signals,
    suppressing,
)
from tvm_practice.tvm_export.importers.onnx.converters.base import Node

CONVERTERS: dict[str, Callable[[Node], Any]] = {
    **elementwise.CONVERTERS,
    **moving.CONVERTERS,
    **pooling.CONVERTERS,
    **quantized.CONVERTERS,
    **recurrent.CONVERTERS,
    **reducing.CONVERTERS,
    **resizing.CONVERTERS,
    **sampling.CONVERTERS,
    **selecting.CONVERTERS,
    **signals.CONVERTERS,
    **suppressing.CONVERTERS,
}
