"""A node as a converter sees it, and what converters share."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tvm_practice.tvm_export.errors import CannotImport
from tvm_practice.tvm_export.rules.cpu.loops import Cpu


@dataclass(frozen=True)
class Node:
    """An ONNX node to be converted.

    Attributes:
        operator: its name.
        builder: a relax.BlockBuilder.
        inputs: Relax expressions, None where an optional input is left out.
        attributes: by name, those that the model gives.
        opset: the version of ONNX's operators that the model is written in.
        outputs: how many the node has.
        from_tvm: TVM's own converter: (operator, inputs, attributes) to a Relax expression. It
            raises CannotImport for a part that it would ignore.
        cpu: the processor that the module is for alone, if it is.
    """

    operator: str
    builder: Any
    inputs: Sequence[Any]
    attributes: dict[str, Any]
    opset: int
    outputs: int
    from_tvm: Callable[[str, Sequence[Any], dict[str, Any]], Any]
    cpu: Cpu | None = None

    def input(self, position: int) -> Any | None:
        return self.inputs[position] if position < len(self.inputs) else None

    def get(self, name: str, default: Any = None) -> Any:
        """An attribute; bytes as text."""
        value = self.attributes.get(name, default)
        return value.decode() if isinstance(value, bytes) else value

    def emit(self, expression: Any) -> Any:
        """The expression as a variable, its type known."""
        return self.builder.emit(expression)

    def compute(
        self, function: Callable[..., Any], *inputs: Any, name: str, given: Sequence[Any] = ()
    ) -> Any:
        """A tensor expression of the inputs, in a function of its own.

        Args:
            function: takes the inputs as te.Tensor, and then `given`.
            inputs: Relax expressions.
            name: of the function.
            given: arguments that are plain Python.
        """
        return self.builder.emit_te(
            lambda *tensors: function(*tensors, *given), *inputs, primfunc_name_hint=name
        )

    def default(self) -> Any:
        """What TVM's converter makes of the node."""
        given = self.attributes | {"tvm_custom": {"num_outputs": self.outputs}}  # as TVM adds it
        return self.from_tvm(self.operator, self.inputs, given)

    def refused(self, problem: str) -> CannotImport:
        return CannotImport(f"this use of {self.operator} is not supported: {problem}")

    def known(self, position: int) -> np.ndarray | None:
        """An input's value, None where it is left out. Raises CannotImport if it is not known."""
        import tvm

        given = self.input(position)
        if given is None:
            return None
        if not isinstance(given, tvm.ir.GenericConst):
            raise self.refused(f"its input {position} must be known beforehand")
        value: np.ndarray = given.value.numpy()
        return value

    def shape(self, position: int) -> list[int]:
        """An input's extents. Raises CannotImport if one is not known."""
        found = fixed_shape(self.inputs[position])
        if found is None:
            raise self.refused(f"the shape of input {position} depends on values")
        return found


def fixed_shape(expression: Any, *, but_first: bool = False) -> list[int] | None:
    """A tensor's extents, or all but the first; None if one of them is not known."""
    import tvm

    shape = expression.ty.shape
    if shape is not None and but_first:
        shape = list(shape)[1:]
    if shape is None or not all(isinstance(each, tvm.tirx.IntImm) for each in shape):
        return None
    return [int(each) for each in shape]


def dtype_of(expression: Any) -> str:
    kind = expression.ty.dtype
    return str(getattr(kind, "dtype", kind))


def is_float(dtype: str) -> bool:
    return dtype.startswith(("float", "bfloat"))


def constant(value: Any, dtype: str) -> Any:
    """An array or a number as a Relax constant."""
    from tvm import relax

    return relax.const(value, dtype)


def whole_axis(axis: int, rank: int) -> int:
    return axis + rank if axis < 0 else axis
