"""TVM's PyTorch frontend, held to PyTorch's own record of every operator.

The frontend ignores arguments that it does not know, and further outputs. Here every converter's
result has the type and shape that PyTorch gave the operator, or the model is refused.
"""

import functools
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from tvm_practice.tvm_export.errors import BadInput
from tvm_practice.tvm_export.importers import complex_numbers
from tvm_practice.tvm_export.importers.assertions import leave_out_assertions
from tvm_practice.tvm_export.importers.converters.arguments import settings_of
from tvm_practice.tvm_export.importers.converters.own_relax import own_converters
from tvm_practice.tvm_export.importers.decompositions import decompositions
from tvm_practice.tvm_export.importers.distinct_operators import taken_apart_once
from tvm_practice.tvm_export.importers.empties import make_empty_results
from tvm_practice.tvm_export.importers.experts import keep_rows_together
from tvm_practice.tvm_export.importers.flex_attention import expand_flex_attention
from tvm_practice.tvm_export.importers.loops import expand_loops
from tvm_practice.tvm_export.importers.nearest import use_overloads_by_vector
from tvm_practice.tvm_export.importers.open_extents import known_extent
from tvm_practice.tvm_export.importers.refusals import (
    DependsOnValues,
    Refused,
    depends_on_values,
    place_of,
)
from tvm_practice.tvm_export.importers.repeats import keep_known_counts
from tvm_practice.tvm_export.importers.tracing import reshaped_for_views
from tvm_practice.tvm_export.loading import describe

_Converter = Callable[..., Any]


@contextmanager
def checked_frontend() -> Iterator[None]:
    """Inside the block, `from_exported_program` decomposes as `decompositions` says and checks."""
    import torch
    from tvm.relax.frontend.torch import exported_program_translator as translator

    original, run = (
        translator.ExportedProgramImporter,
        torch.export.ExportedProgram.run_decompositions,
    )
    checked = _checked(original)

    def taken_apart(program: Any, *table: Any, **settings: Any) -> Any:
        try:
            return run(program, *table, **settings)
        except ValueError as error:
            if "Cannot view a tensor" not in str(error) or not reshaped_for_views(program):
                raise
            return run(program, *table, **settings)

    @functools.wraps(run)
    def decomposed(program: Any, table: Any = None, **settings: Any) -> Any:
        refuse_random(program.graph_module)
        refuse_overlapping(program.graph_module)
        expand_loops(program)
        expand_flex_attention(program)
        keep_rows_together(program)
        keep_known_counts(program)
        use_overloads_by_vector(program)
        chosen = decompositions(checked.names()) if table is None else table
        at_first = complex_numbers.leaving_complex(chosen)
        if not taken_apart_once(program, lambda each: run(each, at_first, **settings)):
            program = taken_apart(program, at_first, **settings)
        if complex_numbers.has_complex(program):
            complex_numbers.in_pairs(program)
            program = taken_apart(program, chosen, **settings)
        refuse_effects(program.graph_module)
        leave_out_assertions(program)
        make_empty_results(program)
        return program

    translator.ExportedProgramImporter = checked
    torch.export.ExportedProgram.run_decompositions = decomposed  # type: ignore[method-assign]
    try:
        yield
    finally:
        translator.ExportedProgramImporter = original
        torch.export.ExportedProgram.run_decompositions = run  # type: ignore[method-assign]


def refuse_random(graph_module: Any) -> None:
    """Raise Refused for the first operator that draws random numbers: TVM would drop the draw."""
    import torch

    for node in graph_module.graph.nodes:
        tags = getattr(node.target, "tags", ())
        if torch.Tag.nondeterministic_seeded not in tags or not _draws(node):
            continue
        raise Refused(f"{_name_of(node)} draws random numbers{place_of(node)}")


def refuse_effects(graph_module: Any) -> None:
    """Raise Refused for the first operator that does more than compute a result, as printing is."""
    import torch

    for node in graph_module.graph.nodes:
        if node.target is torch.ops.higher_order.with_effects:
            name = getattr(node.args[1], "__name__", node.args[1])
            raise Refused(f"{name} does more than compute a result{place_of(node)}")


def refuse_overlapping(graph_module: Any) -> None:
    """Raise Refused for as_strided of a tensor whose elements share memory or have gaps.

    A decomposition may have put the elements side by side, as that of `unfold` does.
    """
    import torch
    from torch._prims_common import is_non_overlapping_and_dense_or_false

    for node in graph_module.graph.nodes:
        if node.target not in (
            torch.ops.aten.as_strided.default,
            torch.ops.aten.as_strided_scatter.default,
        ):
            continue
        x = settings_of(node)["self"].meta["val"]
        if not is_non_overlapping_and_dense_or_false(x):
            told = "as_strided of a tensor whose elements share memory or have gaps between them"
            raise Refused(f"{told}{place_of(node)}")


def _draws(node: Any) -> bool:
    """Whether an operator that can draw random numbers does, with these arguments."""
    given = settings_of(node)
    trained = [given[name] for name in ("train", "training") if name in given]
    chances = [given[name] for name in ("p", "dropout", "dropout_p") if name in given]
    never = bool(chances) and all(each in (0, 0.0) for each in chances)
    return not never and all(each is not False for each in trained)


def _checked(base: Any) -> Any:
    """`base`, TVM's importer of exported programs, with own converters, each of them checked."""

    class Checked(base):  # type: ignore[misc]
        @staticmethod
        def names() -> frozenset[str]:
            """Of the operators that have a converter."""
            return frozenset(base().convert_map) | frozenset(own_converters())

        def create_convert_map(self) -> dict[str, _Converter]:
            found = dict(super().create_convert_map())
            own = {
                name: functools.partial(_call_own, convert, self)
                for name, convert in own_converters().items()
            }
            return {
                name: functools.partial(_converted, self, each)
                for name, each in (found | own).items()
            }

        def update_convert_map(self, custom_convert_map: dict[str, _Converter]) -> None:
            super().update_convert_map(
                {
                    name: functools.partial(_converted, self, each)
                    for name, each in custom_convert_map.items()
                }
            )

        @staticmethod
        def _convert_pytorch_tensor_to_tvm(tensor: Any) -> Any:
            # What is not contiguous goes by way of NumPy, which has no bfloat16.
            dense = tensor if tensor.is_contiguous() else tensor.to_dense().contiguous()
            return base._convert_pytorch_tensor_to_tvm(dense)

        def _check_unsupported_func_type(self, nodes: Iterable[Any]) -> None:
            refuse_missing(nodes, self.convert_map)

    return Checked


def refuse_missing(nodes: Iterable[Any], converters: dict[str, _Converter]) -> None:
    """Raise Refused for the operators that have no converter, each with its line of the model."""
    missing = {}
    for node in nodes:
        if node.op == "call_function" and node.target.__name__ not in converters:
            _require_known_shape(node)
            missing[_name_of(node)] = place_of(node)
    if missing:
        raise Refused(
            "no converter for " + ", ".join(f"{name}{place}" for name, place in missing.items())
        )


def _require_known_shape(node: Any) -> None:
    """Raise DependsOnValues for an operator whose output's shape does."""
    if depends_on_values(node):
        shape = f"the shape of {_name_of(node)}'s output depends on values"
        raise DependsOnValues(f"{shape}{place_of(node)}")


def _call_own(convert: _Converter, importer: Any, node: Any) -> Any:
    return convert(node, importer)


def _converted(importer: Any, convert: _Converter, node: Any, *more: Any) -> Any:
    """What a converter makes of a node, checked. Raises Refused, naming operator and line."""
    import tvm

    try:
        _take_for_equal(importer, node)
        result = convert(node, *more)
    except (BadInput, Refused):
        raise
    except Exception as error:
        _require_known_shape(node)
        raise Refused(f"{_name_of(node)}{place_of(node)}: {describe(error)}") from None
    if isinstance(result, tvm.ir.Call):  # which some converters do not bind to a name
        result = importer.block_builder.emit(result)
    used = [each for each in node.users if each.users or each.op == "output"]
    if "val" in node.meta and used:
        _require(importer, node, result, node.meta["val"])
        return _with_known_extents(importer, result, node.meta["val"])
    return result


def _take_for_equal(importer: Any, node: Any) -> None:
    """Give the tensors that an operator combines one expression for what is one extent.

    Four times a quarter of an open height is the height again where a condition of the model says
    so. PyTorch has checked it; TVM knows no conditions.
    """
    import torch
    import tvm
    from tvm import relax

    is_cat = node.target is torch.ops.aten.cat.default
    if not is_cat and torch.Tag.pointwise not in getattr(node.target, "tags", ()):
        return
    tensors = [
        each
        for each in node.all_input_nodes
        if isinstance(getattr(importer.env.get(each), "ty", None), relax.TensorType)
    ]
    shapes = [importer.env[each].ty.shape for each in tensors]
    if len(tensors) < 2 or any(each is None for each in shapes):
        return
    analyzer = tvm.sym.Analyzer()
    joined = settings_of(node)["dim"] % len(shapes[0]) if is_cat else None
    chosen: dict[int, Any] = {}  # by the axis counted from the last
    for tensor, shape in zip(tensors, shapes, strict=True):
        extents = list(shape)
        unlike: dict[int, Any] = {}
        for axis, extent in enumerate(extents):
            if axis == joined or hasattr(extent, "value"):
                continue
            known = chosen.setdefault(len(extents) - axis, extent)
            if not analyzer.can_prove_equal(known, extent):
                unlike[axis] = known
        if unlike:
            importer.env[tensor] = importer.block_builder.emit_te(
                _with_extents(list(unlike)), importer.env[tensor], *unlike.values()
            )


def _with_extents(axes: Sequence[int]) -> Callable[..., Any]:
    """The computation of a tensor whose axes have other expressions for the same extents.

    A cast would do, if TVM did not replace an open extent by what is cast to it, over and over.
    """
    from tvm import te

    def same(x: Any, *extents: Any) -> Any:
        given = dict(zip(axes, extents, strict=True))
        shape = [given.get(axis, extent) for axis, extent in enumerate(x.shape)]
        return te.compute(shape, lambda *at: x(*at), name="same")

    return same


def _with_known_extents(importer: Any, result: Any, value: Any) -> Any:
    """`result`, whose extents are open or depend on values, with those that PyTorch knows.

    It does of a `bincount` that a tensor of five rows is divided by, and of min(n, 6) where n is 6
    or more. Another one is an error when the model runs, as it is in PyTorch.
    """
    import torch
    from tvm import relax

    kind = getattr(result, "ty", None)
    if not isinstance(value, torch.Tensor) or not isinstance(kind, relax.TensorType):
        return result
    if kind.shape is None or all(hasattr(each, "value") for each in kind.shape):
        return result
    known = [known_extent(each) for each in value.shape]
    pairs = list(zip(kind.shape, known, strict=True))
    if all(theirs is None or hasattr(ours, "value") for ours, theirs in pairs):
        return result
    shape = [ours if theirs is None else theirs for ours, theirs in pairs]
    return importer.block_builder.match_cast(result, relax.TensorType(shape, kind.dtype))


def _require(importer: Any, node: Any, result: Any, value: Any) -> None:
    """Raise Refused unless `result` has the type and shape of PyTorch's `value`."""
    import torch
    from tvm import relax

    if isinstance(value, (list, tuple)):
        parts = result if isinstance(result, (list, tuple, relax.Tuple)) else None
        for user in node.users:
            position = user.args[1] if user.target.__name__ == "getitem" else None
            if isinstance(position, int) and position > 0 and user.users and _is_one(result):
                raise Refused(f"output {position} of {_name_of(node)}{place_of(node)}")
        if parts is not None:
            for part, each in zip(parts, value, strict=False):
                _require(importer, node, part, each)
        return
    kind = getattr(result, "ty", None)
    if not isinstance(value, torch.Tensor) or not isinstance(kind, relax.TensorType):
        return
    wanted = importer._convert_data_type(value.dtype)
    if kind.dtype is not None and str(kind.dtype.dtype) != wanted:
        raise Refused(
            f"{_name_of(node)}{place_of(node)} becomes {kind.dtype.dtype}, "
            f"which is {wanted} in PyTorch"
        )
    if kind.shape is None:
        return
    shape = [getattr(each, "value", None) for each in kind.shape]
    if len(shape) != value.ndim or any(
        isinstance(theirs, int) and ours is not None and ours != theirs
        for ours, theirs in zip(shape, value.shape, strict=True)
    ):
        found = tuple(getattr(each, "value", each) for each in kind.shape)
        raise Refused(
            f"{_name_of(node)}{place_of(node)} becomes of shape {found}, "
            f"which is {tuple(value.shape)} in PyTorch"
        )


def _is_one(result: Any) -> bool:
    """Whether a converter gave a tensor alone."""
    from tvm import relax

    return isinstance(getattr(result, "ty", None), relax.TensorType)


def _name_of(node: Any) -> str:
    return str(getattr(node.target, "__name__", node.target))
