"""An ONNX model in Relax: TVM's importer, with converters of our own, and nothing ignored."""

import contextlib
import functools
import importlib
import io
import re
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

from tvm_practice.tvm_export.errors import CannotImport
from tvm_practice.tvm_export.importers.onnx.graphs import STANDARD, opset, static_shape
from tvm_practice.tvm_export.importers.onnx.heeding import HeededAttributes, HeededInputs
from tvm_practice.tvm_export.importers.onnx.preparing import all_nodes, prepared
from tvm_practice.tvm_export.importers.onnx.reading import choosing_inputs
from tvm_practice.tvm_export.loading import describe
from tvm_practice.tvm_export.rules.cpu.loops import Cpu, cpu_of

# TVM's converters of these names are of ONNX Runtime's own operators, of which it looks at the
# name alone; ONNX's of the same name are functions.
_OF_RUNTIME = frozenset(("Attention",))
_TYPES = frozenset(
    ("bool", "bfloat16", "float16", "float32", "float64", "int8", "int16", "int32", "int64",
     "uint8", "uint16", "uint32", "uint64")
)  # fmt: skip
_DOMAINS = (*STANDARD, "com.microsoft")
# Operators whose function is right where TVM's converter is not.
_BY_FUNCTION = frozenset(("CastLike", "RMSNormalization"))


def import_model(model: Any, inputs: Sequence[Mapping[str, Any]], target: Any = None) -> Any:
    """The model as a Relax module.

    Args:
        model: an onnx.ModelProto.
        inputs: as `input_tensors` gives them; their shapes are the module's.
        target: a tvm.target.Target that the module will be for alone; None: for any.

    Raises:
        CannotImport: an operator that TVM does not know or cannot convert, or that it converts
            without heeding all that the model says; the message names it.
    """
    importer_class = _importer()
    said = io.StringIO()
    problem = ""
    try:
        with warnings.catch_warnings(), contextlib.redirect_stdout(said):
            # Of inputs it renames, and of what onnx's checker finds but it does without.
            warnings.simplefilter("ignore")
            made = prepared(model, inputs, importer_class.converted)
            _require_known(made, importer_class.converted)
            _require_types(made)
            shapes = {each["name"]: list(each["shape"]) for each in inputs}
            return _imported(importer_class(shapes, "float32"), made, target)
    except CannotImport as error:
        problem = str(error)
    except Exception as error:
        # Which operator it was is printed, with the whole graph, and not in the exception.
        found = re.search(r"Error converting operator (\w+)", said.getvalue())
        use = f"this use of {found[1]}" if found else "the model"
        problem = f"TVM's importer cannot convert {use}: {describe(error)}"
    # Not within the except block: that would keep the builder, which complains when it ends.
    if wanted := choosing_inputs(model):
        names = ", ".join(wanted)
        problem += f"; it may need the values of {names}: --value {next(iter(wanted))}=…"
    raise CannotImport(problem)


def _imported(importer: Any, model: Any, target: Any) -> Any:
    """The model as a Relax module, by an importer of its inputs' shapes."""
    if target is not None and target.kind.name == "llvm":
        importer.cpu = cpu_of(target)
    return importer.from_onnx(model.graph, opset(model))


def _require_known(model: Any, converted: frozenset[str]) -> None:
    """Raise CannotImport for operators without a converter, of other domains too."""
    unknown = {
        node.op_type if node.domain in STANDARD else f"{node.domain}.{node.op_type}"
        for node in all_nodes(model.graph)
        if node.domain not in _DOMAINS
        or not (node.op_type in converted | {"If", "Constant"}
                or (node.op_type in _OF_RUNTIME and node.domain not in STANDARD))
    }  # fmt: skip
    if unknown:
        names = ", ".join(sorted(unknown))
        raise CannotImport(f"TVM's importer does not know these operators: {names}")


def _require_types(model: Any) -> None:
    """Raise CannotImport for a tensor of a type that TVM does not compute right, or at all."""
    graph = model.graph
    helper: Any = importlib.import_module("onnx.helper")
    codes = {each.name: each.data_type for each in graph.initializer}
    for each in (*graph.input, *graph.value_info, *graph.output):
        kind = each.type.WhichOneof("value")
        if kind != "tensor_type":
            raise CannotImport(f"{each.name} is no tensor but a {kind}")
        codes[each.name] = each.type.tensor_type.elem_type
    for name, code in codes.items():
        if code and str(helper.tensor_dtype_to_np_dtype(code)) not in _TYPES:
            kind = helper.tensor_dtype_to_string(code).removeprefix("TensorProto.").lower()
            raise CannotImport(f"{name} is of type {kind}, which TVM does not compute")


@functools.cache
def _importer() -> Any:
    """TVM's importer, a class that exists where TVM is the current engine's."""
    from tvm.relax.frontend.onnx import onnx_frontend as frontend

    from tvm_practice.tvm_export.importers.onnx.converters import CONVERTERS
    from tvm_practice.tvm_export.importers.onnx.converters.base import Node

    known = frozenset(frontend._get_convert_map()) - _OF_RUNTIME - _BY_FUNCTION

    class Importer(frontend.ONNXGraphImporter):  # type: ignore[misc]
        """Converts by our converters first, and heeds what TVM's would ignore."""

        converted = known | CONVERTERS.keys()
        cpu: Cpu | None = None

        def _check_for_unsupported_ops(self, graph: Any) -> None:
            """Done by `_require_known`."""

        def _construct_nodes(self, graph: Any) -> None:
            super()._construct_nodes(graph)
            for each in graph.value_info:
                _require_type(self._nodes.get(each.name), each)
            for each in graph.output:
                _require_type(self._nodes.get(each.name), each)

        def _convert_operator(
            self, op_name: str, inputs: Any, attrs: dict[str, Any], opset: int
        ) -> Any:
            if op_name not in CONVERTERS:
                return self._by_tvm(op_name, inputs, attrs)
            given = dict(attrs)
            custom = given.pop("tvm_custom", {})
            node = Node(
                operator=op_name,
                builder=self.bb,
                inputs=list(inputs),
                attributes=given,
                opset=opset,
                outputs=custom.get("num_outputs", 1),
                from_tvm=self._by_tvm,
                cpu=self.cpu,
            )
            return self.bb.normalize(CONVERTERS[op_name](node))

        def _by_tvm(self, op_name: str, inputs: Any, attrs: dict[str, Any]) -> Any:
            attributes, given = HeededAttributes(attrs), HeededInputs(inputs)
            made = super()._convert_operator(op_name, given, attributes, self.opset)
            attributes.require_all(op_name, self.opset)
            given.require_all(op_name)
            return made

    return Importer


def _require_type(expression: Any, described: Any) -> None:
    """Raise CannotImport if an expression has another type than ONNX infers for its tensor."""
    import tvm
    from tvm import relax

    kind = getattr(expression, "ty", None)
    if not isinstance(kind, relax.TensorType) or not described.type.HasField("tensor_type"):
        return
    helper: Any = importlib.import_module("onnx.helper")
    tensor = described.type.tensor_type
    dtype = str(helper.tensor_dtype_to_np_dtype(tensor.elem_type)) if tensor.elem_type else ""
    made = str(kind.dtype.dtype if hasattr(kind.dtype, "dtype") else kind.dtype)
    if dtype and made != dtype:
        raise CannotImport(f"TVM's importer makes {described.name} {made}, and it is {dtype}")
    wanted = static_shape(tensor)
    if wanted is None or kind.shape is None:
        return
    fixed = [int(each) if isinstance(each, tvm.tirx.IntImm) else None for each in kind.shape]
    if len(fixed) != len(wanted) or any(
        one is not None and one != other for one, other in zip(fixed, wanted, strict=True)
    ):
        raise CannotImport(
            f"TVM's importer makes {described.name} of shape {fixed}, and it is {list(wanted)}"
        )
