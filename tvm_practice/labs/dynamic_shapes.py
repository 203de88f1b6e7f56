"""Lab 4: dynamic shapes.

Requests differ in their number of rows, sentences in their number of tokens. Relax uses a symbol
for an extent that is known only at the call: `R.Tensor(("n", 512), "float32")`. One *artifact*,
the result of a compilation, then serves every n, and TVM must do for a symbol what it did for a
number: decide where loops end, allocate memory, choose tiles. The lab measures the cost.

Current TVM provides:

    n = tirx.Var("n", "int64")          a symbol; equal extents are the same symbol
    te.placeholder((n, 512))            a symbol in a shape of a tensor expression; in Relax it is
                                        relax.TensorType((n, 512), "float32")
    main.attrs["tir_var_upper_bound"]   {"n": 64}: the largest n, for the memory planner;
                                        main.with_attr(name, value) and main.without_attr(name)
                                        return a changed copy of main; copy = mod.clone() copies a
                                        module, and copy["main"] = main sets a function of it
    schedule.pad_einsum(block, [8, 1, 1])
                                        rounds the extents of the loops of a sum of products up to
                                        multiples of these numbers. It copies each input that this
                                        enlarges; schedule.get_producers(block) is the list of the
                                        copying blocks
    torch.export.Dim("n", min=1, max=64)
                                        an extent of an exported program that may vary
    torch.export.export(model, tensors, dynamic_shapes=({0: dim}, {}))
                                        a dictionary for each tensor: its axes that may vary, and
                                        the Dim of each
    tensor.repeat_interleave(2, dim=0)  a tensor of PyTorch with each of its rows twice

At each call the virtual machine takes n from the first tensor that has it, checks the others
against it, computes every shape that depends on it, and passes it to the kernels that need it.

The worked example adds two tensors of n rows. Write the functions below it, then run

    python -m tvm_practice.labs.dynamic_shapes
    pytest -m lab4
"""

import itertools  # noqa: F401  # for verify_over_range
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tvm_practice.course.phase import phase_command


def added(width: int) -> Any:  # a tvm.IRModule
    """Worked example: main(x, y) = x + y for x and y of shape (n, width), for any n, float32."""
    from tvm import relax, tirx

    n = tirx.Var("n", "int64")
    x, y = (relax.Var(name, relax.TensorType((n, width), "float32")) for name in "xy")
    builder = relax.BlockBuilder()
    with builder.function("main", [x, y]):
        builder.emit_func_output(builder.emit(relax.op.add(x, y)))
    return builder.get()


def symbolic_matmul(k: int, m: int) -> Any:  # a tvm.IRModule
    """A matrix product whose number of rows is a symbol.

    The product is a tensor expression with that symbol in its shapes, and a Relax function calls
    it: `BlockBuilder.emit_te(expression, a, b)` calls `expression` with placeholders of the shapes
    of a and b (so `A.shape[0]` is n), turns the result into a PrimFunc, and emits a call_tir of it.
    TVM infers the shapes of the call and of main's result.

    Args:
        k: columns of A, rows of B.
        m: columns of B and C.

    Returns:
        The IRModule: main takes A (n, k) and B (k, m) and returns C = A @ B (n, m), float32; n is
        one symbol. It calls one PrimFunc.
    """
    raise NotImplementedError("a tirx.Var in the shape of A, and BlockBuilder.emit_te")


def schedule_dynamic(schedule: Any, block: Any, rows: int, columns: int) -> None:
    """Tile a matrix product whose number of rows is a symbol, with no guard in its inner loops.

    If TVM cannot prove that `rows` divides the extent of i, split guards the block inside the
    innermost loops: each step of the sum checks whether its row exists. `pad_einsum` rounds the
    iterations up instead. It copies A to a buffer with n rows rounded up to the next multiple of
    `rows`, zero where A has none. The block then computes a C with as many rows, and a second copy
    takes the rows that exist to C. After that every split is exact, and only the copies check.

    The block's loops are i (a symbol), j and k. Afterwards they are, outermost first, i_outer
    (parallel), j_outer, k, i_inner (unrolled) and j_inner (vectorized); a separate statement
    before k sets C to zero. The copy of A is made inside i_outer, one tile's rows at a time, by
    the thread that will read it.

    Args:
        schedule: a tvm.s_tir.Schedule, changed in place.
        block: the matmul block, directly under its three loops; its tensors may have any names.
        rows: rows of a tile, the extent of i_inner, at least 2: tiles of one row need no padding.
        columns: columns of a tile, the extent of j_inner; it divides the extent of j.
    """
    raise NotImplementedError("pad_einsum, then split, reorder and compute_at as in phase 2")


def import_dynamic(
    model: Any,
    example: tuple[Any, ...],
    axes: Sequence[Mapping[int, str]],
    bounds: Mapping[str, int],
) -> Any:  # a tvm.IRModule
    """Export a PyTorch model with named extents, and convert the exported program to Relax.

    torch.export takes a torch.export.Dim for each axis that may vary, from 1 to its bound. The
    importer turns each into a symbol (under PyTorch's name for it) and an upper bound for the
    memory planner. PyTorch treats an axis whose extent is 1 in the example as a constant: if that
    axis may vary, repeat the tensor along it before exporting.

    Args:
        model: a torch.nn.Module in eval mode, which returns one tensor.
        example: the tensors it is called with.
        axes: for each tensor, the axes that may vary and the name of their extent,
            ({0: "batch", 1: "length"}, {0: "batch"}); axes of the same name have the same extent.
        bounds: the largest extent of each name, at least 3: for a range from 1 to 2 PyTorch makes
            a separate symbol of each axis.

    Returns:
        The IRModule as imported, weights as constants: main has one symbol per name and the bounds
        in its attribute "tir_var_upper_bound", and returns a tensor.
    """
    raise NotImplementedError("torch.export.export with dynamic_shapes, then from_exported_program")


def plan_memory(mod: Any, bounds: Mapping[str, int] | None = None) -> Any:  # a tvm.IRModule
    """Lower the calls of a Relax function to kernels and storages, and reuse storages.

    In this order: give main the attribute "tir_var_upper_bound" (or remove it), then run seven
    passes of relax.transform: RewriteDataflowReshape (a reshape copies nothing), ToNonDataflow,
    RemovePurityChecking (after these two, calls may have side effects), CallTIRRewrite (a call_tir
    becomes an allocation and a call), StaticPlanBlockMemory (allocations become tensors in
    storages, which are reused once free), LowerAllocTensor (unplanned allocations, such as the
    result, get storages of their own) and KillAfterLastUse (tensors and storages are freed).

    Args:
        mod: an IRModule of fused functions, as `optimize_relax` of phase 4 leaves it; it is not
            changed.
        bounds: the largest value of each symbol, by its name. Any mapping will do; TVM itself takes
            a dict. None or an empty mapping plans without bounds, whatever mod has.

    Returns:
        A new IRModule, whose main allocates with relax.memory.alloc_storage and keeps the
        attribute.
    """
    raise NotImplementedError("the attribute, then the seven passes in a Sequential")


def verify_over_range(
    run: Callable[..., Any],
    reference: Callable[..., Any],
    draw: Callable[..., tuple[Any, ...]],
    bounds: Sequence[int],
    *,
    tolerance: float = 1e-4,
) -> dict[tuple[int, ...], float]:
    """Compare an artifact of symbolic shapes with its reference, over the range of its symbols.

    One shape proves nothing about the others: guards fail at the edges, an extent of 1 may have
    been broadcast, a tile may be right only where it divides. So try every combination of 1 and
    the bound of each symbol; one shape whose every extent is a prime above 2 and below the bound,
    which no smaller tile divides; and at least eight shapes drawn at random from the whole range,
    anew at each call: an extent from 1 to the bound, both included, for each symbol by itself.

    Args:
        run: the artifact: takes arrays, returns an array of float32, float64 or int64.
        reference: takes the same arrays, returns the expected array, of the same type.
        draw: takes an extent for each symbol, returns a tuple of arrays.
        bounds: the largest value of each symbol, at least 4.
        tolerance: the largest absolute error that passes.

    Returns:
        {shape: the largest absolute error} of every shape that was tried, a tuple of extents as
        given to `draw`. If a shape is tried twice, the larger error stays.

    Raises:
        ValueError: an output of another shape, an error above the tolerance, or NaN. It names the
            shape, and the error or the two output shapes. What `run` raises is not caught.
    """
    raise NotImplementedError(
        "corners, primes and random shapes; compare each, raise with its name"
    )


def bucketed(artifacts: Mapping[int, Callable[..., Any]], x: Any) -> Any:  # an array
    """Serve a sequence of any length with artifacts of a few fixed lengths.

    Take the smallest bucket that holds x, pad x to it with zeros after its last token, tell the
    artifact which tokens to keep, and cut its result to the length of x.

    Args:
        artifacts: artifacts by length. Each takes tokens (batch, length, width) and keep (batch,
            length), both float32, and returns (batch, length, width). keep is 1 for a token and 0
            for padding, which no token attends to.
        x: an array of tokens (batch, length, width), float32; it is only read.

    Returns:
        (batch, length, width), as an artifact of exactly that length would return it.

    Raises:
        ValueError: x is longer than the longest bucket; it names both lengths.
    """
    raise NotImplementedError("choose the bucket, pad x, make keep, call, cut")


main = phase_command("labs.dynamic_shapes", "Lab 4: one artifact for many shapes.")

if __name__ == "__main__":
    main()
