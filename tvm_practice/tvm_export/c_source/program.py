"""A scheduled Relax module as a straight line of calls on places in memory.

program = program_of(module, target)

Relax plans the memory: each intermediate tensor gets a part of a storage, which later tensors take
over. Here the storages lie one behind the other in one workspace, and the weights in one file.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import chain
from math import prod
from typing import Any, Literal

import numpy as np

from tvm_practice.tvm_export.errors import BadInput

ALIGNMENT = 64  # bytes, of every tensor: as TVM's runtime aligns them
_NO_CODE = "cannot be written as C"
_BY_NAME = ("tirx.tvm_call_packed", "tirx.tvm_call_cpacked")


@dataclass(frozen=True)
class Tensor:
    """A tensor of the model.

    Attributes:
        kind: where it lies: in an argument of the model's function, or in a part of memory.
        offset: which argument, counted for inputs and outputs alone, or which byte.
        shape: its extents.
        dtype: numpy's name of its type, or bfloat16.
    """

    kind: Literal["input", "output", "workspace", "weights"]
    offset: int
    shape: tuple[int, ...]
    dtype: str

    @property
    def nbytes(self) -> int:
        """Its size."""
        return bytes_of(self.shape, self.dtype)


@dataclass(frozen=True)
class Call:
    """A call of a compiled function, with its inputs before its outputs; a copy has no name."""

    function: str | None
    arguments: tuple[Tensor, ...]


@dataclass
class Program:
    """What the model's function does.

    Attributes:
        inputs: as the function takes them.
        outputs: which follow them, tuples within tuples laid flat.
        calls: in their order.
        functions: the PrimFuncs that are called, by name.
        constants: the weights, each with the byte it begins at.
        workspace: bytes for all that lies between inputs and outputs.
        weights: bytes of the file of weights.
    """

    inputs: tuple[Tensor, ...] = ()
    outputs: tuple[Tensor, ...] = ()
    calls: list[Call] = field(default_factory=list)
    functions: dict[str, Any] = field(default_factory=dict)
    constants: list[tuple[int, np.ndarray]] = field(default_factory=list)
    workspace: int = 0
    weights: int = 0


def bytes_of(shape: tuple[int, ...], dtype: str) -> int:
    """The size of a tensor; a type that numpy lacks has its bits at the end of its name."""
    bits = 8 if dtype == "bool" else int("".join(filter(str.isdigit, dtype)))
    return prod(shape) * bits // 8


def program_of(module: Any, target: Any) -> Program:
    """The calls of a module's main.

    Args:
        module: a Relax module whose PrimFuncs are scheduled.
        target: a tvm.target.Target.

    Raises:
        BadInput: an open extent, a branch, or a call of TVM's runtime; which.
    """
    import tvm

    planned = _planned(module, target)
    main = planned["main"]
    reading = _Reading(main)
    for block in main.body.blocks:
        for binding in block.bindings:
            reading.bind(binding.var, binding.value)
    program = reading.finish(main.body.body)
    for name, function in planned.functions_items():
        if isinstance(function, tvm.tirx.PrimFunc) and str(name.name_hint) in reading.called:
            _require_plain(str(name.name_hint), function)
            program.functions[str(name.name_hint)] = function
    return program


def _planned(module: Any, target: Any) -> Any:
    """The module as TVM's own build has it when memory is planned, before its virtual machine."""
    import tvm
    from tvm import relax

    passes = [
        relax.backend.DispatchSampling(),
        relax.backend.DispatchSortScan(),
        relax.transform.LegalizeOps(),
        relax.transform.RewriteDataflowReshape(),
        relax.transform.ToNonDataflow(),
        relax.transform.RemovePurityChecking(),
        relax.transform.CallTIRRewrite(),
        relax.transform.StaticPlanBlockMemory(),
    ]
    with target:
        return tvm.transform.Sequential(passes)(module)


def _require_plain(name: str, function: Any) -> None:
    """Raise BadInput for a PrimFunc that calls TVM's runtime by a function's name."""
    import tvm
    import tvm_ffi

    called: list[str] = []

    def look(call: Any) -> None:
        if str(getattr(call.op, "name", "")) in _BY_NAME:
            called.append(str(getattr(call.args[0], "value", call.args[0])))

    tvm_ffi.structural_walk(function.body, (tvm.ir.Call, look))
    if called:
        raise BadInput(f"the model {_NO_CODE}: {name} calls {called[0]} of TVM's runtime")


def _flat(value: Any) -> Iterator[Any]:
    if isinstance(value, tuple):
        for each in value:
            yield from _flat(each)
    else:
        yield value


class _Reading:
    """Reads main's bindings, each variable's value being a tensor, a tuple or a storage.

    Args:
        main: the Relax function.
    """

    def __init__(self, main: Any):
        self._program = Program()
        self._values: dict[Any, Any] = {}
        self._constants: dict[Any, Tensor] = {}
        self.called: set[str] = set()
        inputs = []
        for number, each in enumerate(main.params):
            inputs.append(_tensor_of(each, "input", number))
            self._values[each] = inputs[-1]
        self._program.inputs = tuple(inputs)

    def bind(self, variable: Any, expression: Any) -> None:
        """Read one binding."""
        from tvm.ir import Call as RelaxCall
        from tvm.ir import GlobalVar

        if isinstance(expression, RelaxCall) and isinstance(expression.op, GlobalVar):
            name = str(expression.op.name_hint)
            given = chain.from_iterable(_flat(self._value(each)) for each in expression.args)
            self._program.calls.append(Call(name, tuple(given)))
            self.called.add(name)
            return
        self._values[variable] = self._value(expression)

    def finish(self, result: Any) -> Program:
        """The program, whose outputs are main's result."""
        program = self._program
        found = list(_flat(self._value(result)))
        program.outputs = tuple(
            Tensor("output", number, each.shape, each.dtype) for number, each in enumerate(found)
        )
        # A tensor that no planned storage holds is a result, and is computed where it belongs.
        own = {}
        for tensor, output in zip(found, program.outputs, strict=True):
            if tensor.kind == "output" and tensor.offset not in own:
                own[tensor.offset] = output
            else:
                program.calls.append(Call(None, (tensor, output)))
        program.calls = [
            Call(each.function, tuple(self._placed(one, own) for one in each.arguments))
            for each in program.calls
        ]
        return program

    def _placed(self, tensor: Tensor, own: dict[int, Tensor]) -> Tensor:
        """A tensor outside the planned storages: the output that it is, or a part of its own."""
        if tensor.kind != "output" or tensor in self._program.outputs:
            return tensor
        if tensor.offset not in own:
            own[tensor.offset] = self._reserve(tensor)
        place = own[tensor.offset]
        return Tensor(place.kind, place.offset, tensor.shape, tensor.dtype)

    def _reserve(self, tensor: Tensor) -> Tensor:
        offset = self._program.workspace
        self._program.workspace += _aligned(tensor.nbytes)
        return Tensor("workspace", offset, tensor.shape, tensor.dtype)

    def _value(self, expression: Any) -> Any:
        """What an expression is: a tensor, a tuple of values, or a storage's first byte."""
        from tvm import relax
        from tvm.ir import Call as RelaxCall
        from tvm.ir import GenericConst

        if isinstance(expression, relax.Var):
            return self._values[expression]
        if isinstance(expression, GenericConst):
            return self._constant(expression)
        if isinstance(expression, relax.Tuple):
            return tuple(self._value(each) for each in expression.fields)
        if isinstance(expression, relax.TupleGetItem):
            return self._value(expression.tuple_value)[int(expression.index)]
        if isinstance(expression, RelaxCall):
            return self._called(expression)
        kind = type(expression).__name__
        raise BadInput(f"the model {_NO_CODE}: it holds a Relax {kind}")

    def _called(self, call: Any) -> Any:
        """The value of a call of one of Relax's operators."""
        name = str(getattr(call.op, "name", getattr(call.op, "global_symbol", call.op)))
        if name == "relax.memory.alloc_storage":
            offset = self._program.workspace
            [extent] = _extents(call.args[0].values)
            self._program.workspace += _aligned(extent)
            return offset
        if name == "relax.memory.alloc_tensor":
            storage, begin = self._value(call.args[0]), int(call.args[1].value)
            shape, dtype = _extents(call.args[2].values), str(call.args[3].value)
            return Tensor("workspace", storage + begin, shape, dtype)
        if name == "relax.builtin.alloc_tensor":  # numbered until it is known what is a result
            number = sum(1 for each in self._values.values() if _is_unplanned(each))
            shape, dtype = _extents(call.args[0].values), str(call.args[1].value)
            return Tensor("output", -1 - number, shape, dtype)
        if name in ("relax.reshape", "relax.memory.view", "relax.memory.ensure_zero_offset"):
            source = self._value(call.args[0])
            return Tensor(source.kind, source.offset, _extents(call.ty.shape), source.dtype)
        raise BadInput(f"the model {_NO_CODE}: it calls {name} of TVM's runtime")

    def _constant(self, constant: Any) -> Tensor:
        if constant not in self._constants:
            tensor = _tensor_of(constant, "weights", self._program.weights)
            self._constants[constant] = tensor
            self._program.constants.append((tensor.offset, _raw(constant.value)))
            self._program.weights += _aligned(tensor.nbytes)
        return self._constants[constant]


def _is_unplanned(value: Any) -> bool:
    return isinstance(value, Tensor) and value.kind == "output"


def _raw(tensor: Any) -> np.ndarray:
    """A constant's bytes: of a type that numpy lacks as well."""
    shape, dtype = tuple(map(int, tensor.shape)), str(tensor.dtype)
    if dtype == "bfloat16":
        tensor = tensor._create_view(shape, dtype="uint16")
    return np.ascontiguousarray(tensor.numpy()).reshape(-1).view("uint8")


def _tensor_of(expression: Any, kind: Literal["input", "weights"], offset: int) -> Tensor:
    """The tensor that an expression of a known type is. Raises BadInput."""
    from tvm import relax

    if not isinstance(expression.ty, relax.TensorType):
        raise BadInput(f"the model {_NO_CODE}: an argument of it is no tensor")
    return Tensor(kind, offset, _extents(expression.ty.shape), str(expression.ty.dtype))


def _extents(shape: Any) -> tuple[int, ...]:
    """A shape as numbers. Raises BadInput for an open extent."""
    extents = list(getattr(shape, "values", shape))
    for each in extents:
        if not isinstance(each, int) and not hasattr(each, "value"):
            raise BadInput(f"the model {_NO_CODE}: its extent {each} is open")
    return tuple(int(each) for each in extents)


def _aligned(size: int) -> int:
    return -(-size // ALIGNMENT) * ALIGNMENT
