"""`nonzero` on current TVM, whose result has as many rows as values are not 0.

They are counted first. Their number becomes a symbolic extent of the operators after it, like an
extent of an input that may vary. `decompositions` make masks and other operators of it.
"""

from typing import Any

from tvm_practice.tvm_export.importers.constants import require_constants
from tvm_practice.tvm_export.importers.converters.arguments import settings_of
from tvm_practice.tvm_export.importers.converters.kernels import call_kernel

_POSITIONS = """@T.prim_func(private=True, s_tir=True)
def positions(a: T.handle, y: T.handle):
    T.func_attr({attributes})
    extent = T.int64()
    count = T.int64()
    A = T.match_buffer(a, (extent,), "bool")
    Y = T.match_buffer(y, (count,), "int64")
    found = T.sblock_alloc_buffer((1,), "int64")
    with T.sblock("positions"):
        T.reads(A[0:extent])
        T.writes(Y[0:count])
        found[0] = T.int64(0)
        for i in range(extent):
            if A[i]:
                Y[found[0]] = i
                found[0] = found[0] + T.int64(1)
"""


def nonzero(node: Any, importer: Any) -> Any:
    """A converter (node, importer): the indices of each element that is not 0, a row for each.

    Raises DependsOnValues unless the values of constants have been tried.
    """
    require_constants(f"the shape of {node.target.__name__}'s output depends on values")
    x = importer.env[settings_of(node)["self"]]
    return indices_of_nonzero(importer.block_builder, x, f"rows_{node.name}")


def indices_of_nonzero(builder: Any, x: Any, name: str) -> Any:
    """The same of a Relax variable.

    Args:
        builder: a relax.BlockBuilder.
        x: the variable; its extents may be symbolic.
        name: of the symbolic extent that counts the rows.
    """
    from tvm import relax, te, tirx

    extents = list(x.ty.shape)
    flat = builder.emit(relax.op.reshape(x, (-1,)))
    if str(x.ty.dtype) != "bool":
        flat = builder.emit(relax.op.not_equal(flat, relax.const(0, x.ty.dtype)))
    count = builder.emit(relax.op.sum(relax.op.astype(flat, "int64"), axis=0, keepdims=True))
    rows = tirx.Var(name, "int64")
    shape = builder.emit(relax.op.tensor_to_shape(count))
    builder.match_cast(shape, relax.ShapeType([rows]))
    [found] = call_kernel(builder, _POSITIONS, "positions", [flat], [(rows,)], "int64")

    def index(positions: Any, *inner: Any) -> Any:
        """The indices of positions, from all extents but the first."""

        def of_axis(row: Any, axis: Any) -> Any:
            rest, made = positions[row], tirx.const(0, "int64")
            for place, extent in reversed(list(enumerate(inner, 1))):
                made = tirx.Select(axis == place, rest % extent, made)
                rest = rest // extent
            return tirx.Select(axis == 0, rest, made)

        return te.compute((rows, tirx.const(len(extents), "int64")), of_axis, name="index")

    return builder.emit_te(index, found, *extents[1:])
