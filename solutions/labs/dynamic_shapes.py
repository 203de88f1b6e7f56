"""Reference answers of lab 4."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any


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
    from tvm import relax, te, tirx

    def product(A: Any, B: Any) -> Any:
        r = te.reduce_axis((0, k), name="k")
        return te.compute((A.shape[0], m), lambda i, j: te.sum(A[i, r] * B[r, j], axis=r), name="C")

    n = tirx.Var("n", "int64")
    a = relax.Var("A", relax.TensorType((n, k), "float32"))
    b = relax.Var("B", relax.TensorType((k, m), "float32"))
    builder = relax.BlockBuilder()
    with builder.function("main", [a, b]):
        builder.emit_func_output(builder.emit_te(product, a, b))
    return builder.get()


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
    # Padded rows cost a copy and save the guard around every step of the inner loops.
    schedule.pad_einsum(block, [rows, 1, 1])
    copies = schedule.get_producers(block)
    i, j, k = schedule.get_loops(block)
    i_outer, i_inner = schedule.split(i, [None, rows])
    j_outer, j_inner = schedule.split(j, [None, columns])
    schedule.reorder(i_outer, j_outer, k, i_inner, j_inner)
    for copy in copies:
        schedule.compute_at(copy, i_outer)
    schedule.parallel(i_outer)
    schedule.unroll(i_inner)
    schedule.vectorize(j_inner)
    schedule.decompose_reduction(block, k)


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
    import torch
    from tvm.relax.frontend.torch import from_exported_program

    # One object per name: two axes are equal if they have the same object.
    dimensions = {name: torch.export.Dim(name, min=1, max=most) for name, most in bounds.items()}
    tensors = list(example)
    for index, named in enumerate(axes):
        for axis in named:
            if tensors[index].shape[axis] == 1:  # torch.export makes an extent of 1 a constant
                tensors[index] = tensors[index].repeat_interleave(2, dim=axis)
    shapes = tuple({axis: dimensions[name] for axis, name in named.items()} for named in axes)
    exported = torch.export.export(model, tuple(tensors), dynamic_shapes=shapes)
    return from_exported_program(exported, unwrap_unit_return_tuple=True)


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
    import tvm
    from tvm import relax

    main = mod["main"]
    marked = mod.clone()
    if bounds is None:
        marked["main"] = main.without_attr("tir_var_upper_bound")
    else:
        marked["main"] = main.with_attr("tir_var_upper_bound", dict(bounds))
    passes = tvm.transform.Sequential(
        [
            relax.transform.RewriteDataflowReshape(),
            relax.transform.ToNonDataflow(),
            relax.transform.RemovePurityChecking(),
            relax.transform.CallTIRRewrite(),
            relax.transform.StaticPlanBlockMemory(),
            relax.transform.LowerAllocTensor(),
            relax.transform.KillAfterLastUse(),
        ]
    )
    return passes(marked)


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
    import itertools
    import math
    import random

    import numpy as np

    def is_prime(number: int) -> bool:
        return all(number % divisor for divisor in range(2, math.isqrt(number) + 1))

    shapes = set(itertools.product(*((1, bound) for bound in bounds)))
    primes = [[each for each in range(3, bound) if is_prime(each)] for bound in bounds]
    shapes.add(tuple(random.choice(each) for each in primes))
    for _ in range(8):
        shapes.add(tuple(random.randint(1, bound) for bound in bounds))
    errors = {}
    for shape in sorted(shapes):
        inputs = draw(*shape)
        got, want = run(*inputs), reference(*inputs)
        if got.shape != want.shape:
            raise ValueError(f"at {shape} the output has shape {got.shape}, not {want.shape}")
        error = float(np.abs(got - want).max())
        if not error <= tolerance:  # NaN is neither below nor above
            raise ValueError(f"at {shape} the largest error is {error:.3g}, above {tolerance:g}")
        errors[shape] = error
    return errors


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
    import numpy as np

    batch, length, width = x.shape
    fitting = [bucket for bucket in artifacts if bucket >= length]
    if not fitting:
        raise ValueError(f"length {length} is above the longest bucket, {max(artifacts)}")
    bucket = min(fitting)
    padded = np.zeros((batch, bucket, width), "float32")
    keep = np.zeros((batch, bucket), "float32")
    # The mask, not the zeros, keeps padding out of the result.
    padded[:, :length], keep[:, :length] = x, 1
    return artifacts[bucket](padded, keep)[:, :length]
