"""Each operator's result on classic TVM, held against the type and shape that PyTorch traced."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from tvm_practice.engines import PlainError
from tvm_practice.tvm_export.importers.converters.relay_arguments import heeded
from tvm_practice.tvm_export.importers.refusals import Refused
from tvm_practice.tvm_export.loading import describe

# TVM's names of the types that a trace names, by kind.
_TYPES = {
    "Double": "float64",
    "Float": "float32",
    "Half": "float16",
    "Long": "int64",
    "Int": "int32",
    "Short": "int16",
    "Char": "int8",
    "Byte": "uint8",
    "Bool": "bool",
}
# TVM leaves layers and directions of the state in two axes where there are several of both.
_OF_SEVERAL_LAYERS = ("aten::gru",)
# TVM returns the tensor that was written to, the trace the part that was written.
_OTHERWISE = ("aten::copy_",)

# Operators (input, p, train) that set elements to 0 with the probability p.
_DROPPING = ("aten::dropout", "aten::feature_dropout", "aten::alpha_dropout")
# Operators whose results lie in their inputs' memory.
_PARTS = frozenset(
    {
        *("aten::alias", "aten::as_strided", "aten::detach", "aten::diagonal", "aten::expand"),
        *("aten::expand_as", "aten::flatten", "aten::movedim", "aten::narrow", "aten::numpy_T"),
        *("aten::permute", "aten::real", "aten::reshape", "aten::select", "aten::slice"),
        *("aten::squeeze", "aten::swapaxes", "aten::swapdims", "aten::t", "aten::transpose"),
        *("aten::unflatten", "aten::unfold", "aten::unsqueeze", "aten::view", "aten::view_as"),
        "prim::ListUnpack",
    }
)


@contextmanager
def results_as_traced() -> Iterator[None]:
    """Inside the block, what `from_pytorch` makes of an operator is as PyTorch traced it.

    TVM's converters drop arguments without a word. A result of another width is cast, axes of
    extent 1 are added or dropped; any other difference raises Refused, which names the operator.
    """
    from tvm.relay.frontend.pytorch import PyTorchOpConverter

    original = PyTorchOpConverter.update_convert_map

    def update(importer: Any, more: dict[str, Any]) -> None:
        original(importer, more)
        for name, convert in importer.convert_map.items():
            importer.convert_map[name] = _held(importer, convert)

    PyTorchOpConverter.update_convert_map = update
    try:
        yield
    finally:
        PyTorchOpConverter.update_convert_map = original


def _held(importer: Any, convert: Callable[..., Any]) -> Callable[..., Any]:
    """A converter whose results are as traced."""

    def converted(inputs: Sequence[Any], types: Sequence[str]) -> Any:
        node = importer.current_op[-1]
        _refuse_shared_writes(node)
        _refuse_dropout(node.kind(), inputs)
        with _naming(node.kind()):
            made = convert(*heeded(node.kind(), inputs, types))
        if node.kind() in _OTHERWISE:
            return made
        traced = [each.type() for each in node.outputs()]
        if isinstance(made, tuple):
            _require_outputs(node, made)
            pairs = zip(made, traced, strict=False)  # some converters return more
            return tuple(_as_traced(importer, node.kind(), *pair) for pair in pairs)
        return _as_traced(importer, node.kind(), made, traced[0])

    return converted


@contextmanager
def _naming(operator: str) -> Iterator[None]:
    """Raise what a converter fails with as Refused: TVM's often say nothing but AssertionError."""
    try:
        yield
    except (Refused, PlainError, NotImplementedError):
        raise
    except Exception as error:
        raise Refused(f"{operator}: {describe(error)}") from error


def _refuse_dropout(operator: str, inputs: Sequence[Any]) -> None:
    """Raise Refused where a part is drawn at random: TVM's importer would keep all of it."""
    drawn = (
        operator.removesuffix("_") in _DROPPING and bool(inputs[2]) and inputs[1] not in (0, 0.0)
    )
    if drawn or (operator == "aten::scaled_dot_product_attention" and inputs[4] not in (0, 0.0)):
        raise Refused(f"{operator} draws random numbers")


def _require_outputs(node: Any, made: Sequence[Any]) -> None:
    """Raise Refused unless a converter made each output that is used."""
    for position, output in enumerate(node.outputs()):
        if output.uses() and (position >= len(made) or made[position] is None):
            raise Refused(f"output {position} of {node.kind()}")


def _refuse_shared_writes(node: Any) -> None:
    """Raise Refused where an operator writes to memory that two tensors share.

    Only one of them would change: TVM's importer heeds some assignments to slices, and no more.
    """
    kind = node.kind()
    if not kind.endswith("_") or kind.endswith("__"):
        return
    if kind.removesuffix("_") in _DROPPING:  # refused where it drops anything, else nothing changes
        return
    written = next(node.inputs())
    parts = [each.user for each in written.uses() if each.user.kind() in _PARTS]
    used_later = any(
        use.user.isAfter(node)
        for part in parts
        if part.isBefore(node)
        for output in part.outputs()
        for use in output.uses()
    )
    if written.node().kind() in _PARTS or used_later:
        raise Refused(f"{kind} writes to memory that another tensor shares")


def _as_traced(importer: Any, operator: str, made: Any, traced: Any) -> Any:
    """A result in the type and shape of the trace. Raises Refused where it cannot be."""
    import tvm
    from tvm import relay

    if not isinstance(made, relay.Expr) or traced.kind() != "TensorType":
        return made
    found = importer.infer_type_with_prelude(made)
    dtype = _TYPES.get(traced.scalarType())
    if dtype is None or not isinstance(found, tvm.ir.TensorType):
        return made
    if _kind(found.dtype) != _kind(dtype):
        raise Refused(f"{operator} becomes {found.dtype}, which is {dtype} in PyTorch")
    if found.dtype != dtype:
        made = relay.cast(made, dtype)
    shape, wanted = list(found.shape), traced.sizes()
    if wanted is None or not all(isinstance(each, tvm.tir.IntImm) for each in shape):
        return made
    shape = [int(each) for each in shape]
    if operator in _OF_SEVERAL_LAYERS and [shape[0] * shape[1], *shape[2:]] == wanted:
        return relay.reshape(made, wanted)
    if _filled(shape) != _filled(wanted):
        raise Refused(
            f"{operator} becomes of shape {tuple(shape)}, which is {tuple(wanted)} in PyTorch"
        )
    return made if shape == wanted else relay.reshape(made, wanted)


def _filled(extents: Sequence[int]) -> list[int]:
    """The extents that are not 1."""
    return [each for each in extents if each != 1]


def _kind(dtype: str) -> str:
    return dtype.rstrip("0123456789")
