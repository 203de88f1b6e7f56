"""Phase 1: tensor expressions.

A tensor expression says *what* to compute and nothing about *how*: not the order of the loops, not
the threads. Its pieces:

    te.placeholder((m, k), dtype="float32", name="A")   an input
    te.compute((m, n), lambda i, j: …, name="C")        an output: the formula of each element
    te.reduce_axis((0, k), name="k")                    an index that a reduction (a sum, a maximum)
                                                        runs over
    te.sum(expression, axis=r)                          the sum over the reduce axis r
    te.max(expression, axis=r)                          the largest value over r
    te.max(a, b)                                        the larger of two expressions
    te.exp(x)                                           the exponential
    te.all(a, b)                                        whether both conditions hold
    te.if_then_else(condition, a, b)                    a where the condition holds, else b

Each te.compute is a *stage*: it declares one tensor, which later stages may read. An expression has
no value until the compiled program runs, so Python's `max`, `and` and `if` do not work on it. TVM
turns each stage into the simplest loops that compute it; the schedules of phase 2 then rearrange
those loops without touching the formulas.

The worked example is `vector_add`. Write the functions below it, then run

    python -m tvm_practice.te_basics
    pytest -m phase1

Tensor expressions are the same in both TVMs, but they become loops in different ways: classic TVM
has `te.create_schedule(C.op)` and `tvm.lower`, current TVM has `te.create_prim_func([A, B, C])`.

The imports are inside the functions because a process holds one TVM, chosen before its first
`import tvm`.
"""

from typing import Any

from tvm_practice.course.phase import phase_command


def vector_add(n: int) -> list[Any]:
    """Worked example: C[i] = A[i] + B[i].

    Args:
        n: length of the vectors.

    Returns:
        The tensors [A, B, C], each of shape (n,), float32.
    """
    from tvm import te

    A = te.placeholder((n,), dtype="float32", name="A")
    B = te.placeholder((n,), dtype="float32", name="B")
    C = te.compute((n,), lambda i: A[i] + B[i], name="C")
    return [A, B, C]


def matmul(m: int, n: int, k: int) -> list[Any]:
    """Declare C[i, j] = sum over k of A[i, k] * B[k, j].

    Args:
        m: rows of A and of C.
        n: columns of B and of C.
        k: columns of A, rows of B: the axis that is summed over.

    Returns:
        The tensors [A, B, C] of shapes (m, k), (k, n) and (m, n), float32, named "A", "B", "C".
    """
    raise NotImplementedError("declare the matrix product with te.compute and te.reduce_axis")


def dense_bias_relu(batch: int, inputs: int, outputs: int) -> list[Any]:
    """Declare one layer of an MLP (multilayer perceptron): Y = max(X · Wᵀ + bias, 0).

    Use three stages, named "dense", "biased" and "Y", so that a schedule can place each of
    them: dense is the product, biased adds the bias, and Y takes the maximum with 0. The weight has
    PyTorch's layout, one row per output: dense[i, j] = sum over k of X[i, k] * W[j, k].

    Args:
        batch: rows of X and of Y.
        inputs: features of X.
        outputs: features of Y.

    Returns:
        The tensors [X, W, bias, Y] of shapes (batch, inputs), (outputs, inputs), (outputs,) and
        (batch, outputs), float32.
    """
    raise NotImplementedError("declare the three stages dense, biased and Y")


def softmax(rows: int, columns: int) -> list[Any]:
    """Declare a softmax over each row that does not overflow.

    Four stages: "row_max" is a reduction over a row of X, "exponent" is exp(X - row_max), "row_sum"
    is the sum over a row of exponent, and "Y" is exponent / row_sum. Each reduction has a
    reduce_axis of its own. Without subtracting the maximum, exp of a value above 88.7 is infinite
    in float32.

    Args:
        rows: independent rows of X.
        columns: elements of each row.

    Returns:
        The tensors [X, Y], both of shape (rows, columns), float32.
    """
    raise NotImplementedError("declare the four stages row_max, exponent, row_sum and Y")


main = phase_command("te_basics", "Phase 1: tensor expressions, the what without the how.")

if __name__ == "__main__":
    main()
