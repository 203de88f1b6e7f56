"""TVM's intrinsics for tensor cores by CUDA's `wmma`, the five that a float16 matmul needs."""

import ast
import types
from functools import cache
from pathlib import Path

_PREFIX = "tvm_practice_"


@cache
def wmma_intrinsics() -> dict[str, str]:
    """Register them once; returns their names for `tensorize`.

    They work on fragments of 16 x 16 (x 16), float16 in and float32 out, B not transposed:

    - "load_a", "load_b": a piece of a "shared" buffer to one of scope "wmma.matrix_a", "…_b";
    - "init": zeros in a "wmma.accumulator";
    - "compute": accumulator += a · b;
    - "store": an accumulator to a "global" buffer.

    `import tvm.s_tir.tensor_intrin` would parse all of TVM's intrinsics, of all processors, which
    takes tens of seconds. The functions that make these five are taken from its file instead.
    """
    import tvm

    path = Path(tvm.__file__).parent / "s_tir" / "tensor_intrin" / "cuda.py"
    tree = ast.parse(path.read_text())
    tree.body = [each for each in tree.body if not _registers(each)]
    made = types.ModuleType("tvm_practice.labs.gpu._intrinsics")
    made.__file__ = str(path)  # TVMScript reads its source again
    exec(compile(tree, str(path), "exec"), made.__dict__)
    functions = {
        "load_a": made.get_wmma_load_intrin(16, 16, 16, "float16", "shared", False, False),
        "load_b": made.get_wmma_load_intrin(16, 16, 16, "float16", "shared", True, False),
        "init": made.get_wmma_fill_intrin(16, 16, 16, "float32"),
        "compute": made.get_wmma_sync_intrin(16, 16, 16, "float16", "float32", False),
        "store": made.get_wmma_store_intrin(16, 16, 16, "float32", "global"),
    }
    for name, (described, implemented) in functions.items():
        tvm.s_tir.TensorIntrin.register(_PREFIX + name, described, implemented)
    return {name: _PREFIX + name for name in functions}


def _registers(statement: ast.stmt) -> bool:
    """Whether a statement of TVM's file registers something, an intrinsic or a function."""
    if isinstance(statement, ast.FunctionDef):
        return bool(statement.decorator_list)
    return (
        isinstance(statement, ast.Expr)
        and isinstance(statement.value, ast.Call)
        and ast.unparse(statement.value.func) == "TensorIntrin.register"
    )
