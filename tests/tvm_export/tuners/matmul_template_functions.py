"""What the test of the packed template calls in a child process."""

from typing import Any

import numpy as np


def largest_errors(sizes: list[int]) -> dict[str, float]:
    """The largest error: of the product rows first, and of a point of the space."""
    import tvm

    from tvm_practice.engines import host, host_target
    from tvm_practice.tvm_export.tuners.autotvm import make_task
    from tvm_practice.tvm_export.tuners.matmul_template import (
        packed_matmul,
        packed_matmul_template,
    )

    m, n, k = sizes
    columns, target = 2 * host().vector_lanes, host_target()
    task = make_task(packed_matmul_template, sizes, target, name="packed")
    assert task.flop == 2 * m * n * k
    space = task.config_space
    with target:
        made: dict[str, Any] = {
            "rows first": packed_matmul(
                *sizes, rows=4, columns=columns, unroll_k=8, rows_first=True
            ),
            "template": task.instantiate(space.get(space.get_next_index(len(space) // 3))),
        }
    rng = np.random.default_rng(0)
    a, b = rng.standard_normal((m, k), "float32"), rng.standard_normal((k, n), "float32")
    errors = {}
    for name, (schedule, tensors) in made.items():
        product = tvm.nd.array(np.full((m, n), np.nan, "float32"))
        function = tvm.build(schedule, tensors, target=target)
        function(tvm.nd.array(a), tvm.nd.array(b), product)
        errors[name] = float(np.abs(product.numpy() - a @ b).max())
    return errors
