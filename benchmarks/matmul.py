"""Phase 2's packed matmul beside torch.matmul and numpy, and docs/matmul.md made of it.

    python benchmarks/matmul.py                    # all shapes, some minutes
    python benchmarks/matmul.py --shape 1024 1024 1024
    python benchmarks/matmul.py --table            # only write the page again

Both sides use the same threads and are called in turns; a ratio is time over torch's time.
"""

import functools
from pathlib import Path
from typing import Any

import click
from beside_torch import geometric_mean, measure_all, options, rates, ratio_cell, write_page

SQUARES = tuple((size, size, size) for size in (256, 512, 1024, 2048, 4096))
# (rows, columns, steps) of BERT-base's products at 128 tokens: projections, feed-forward up and
# down; and at 8 x 128 tokens.
BERT = (
    (128, 768, 768), (128, 3072, 768), (128, 768, 3072),
    (1024, 768, 768), (1024, 3072, 768), (1024, 768, 3072),
)  # fmt: skip
_NAIVE_UP_TO = 1024**3  # multiply-adds; beyond it a naive product takes minutes
_HEAD = """# A matmul written by hand

Made by `python benchmarks/matmul.py`. It compares phase 2's `packed_matmul`
(solutions/manual_schedule.py) with `torch.matmul` and numpy on the same threads, called in turns in
one process. The tile is computed from this processor's vector registers. A ratio is the time
divided by torch's: the median with its 95% interval; under 1 is faster than PyTorch.
"""


def measure(shape: tuple[int, int, int], seconds: float) -> dict[str, Any]:
    """One shape on all sides.

    Args:
        shape: m, n, k of an m x k by k x n product, float32.
        seconds: for measuring.

    Returns:
        {"shape", "blocking", "max_error" (to numpy), "comparison": see measure.Comparison.to_dict}.
    """
    import numpy as np
    import torch
    import tvm
    from tvm import te

    from solutions.manual_schedule import packed_matmul
    from solutions.te_basics import matmul
    from tvm_practice import engines
    from tvm_practice.engines.blocking import packed_blocking
    from tvm_practice.measure import compare_interleaved

    m, n, k = shape
    rng = np.random.default_rng(0)
    a = rng.standard_normal((m, k), dtype="float32")
    b = rng.standard_normal((k, n), dtype="float32")
    blocking = packed_blocking(n)
    target = engines.host_target()
    out = {name: tvm.runtime.tensor(np.zeros((m, n), "float32")) for name in ("packed", "naive")}
    inputs = [tvm.runtime.tensor(each) for each in (a, b)]
    packed = tvm.compile(packed_matmul(m, n, k, **blocking).mod, target=target)
    left, right = torch.from_numpy(a), torch.from_numpy(b)
    runs: dict[str, Any] = {
        "torch": functools.partial(torch.matmul, left, right, out=torch.zeros(m, n)),
        "packed": functools.partial(packed["main"], *inputs, out["packed"]),
        "numpy": functools.partial(np.matmul, a, b, out=np.zeros((m, n), "float32")),
    }
    if m * n * k <= _NAIVE_UP_TO:
        function = te.create_prim_func(matmul(m, n, k)).with_attr("global_symbol", "main")
        naive = tvm.compile(tvm.IRModule({"main": function}), target=target)
        slow = functools.partial(naive["main"], *inputs, out["naive"])
        # By itself and seldom: it takes seconds, and the others would have few rounds.
        beside = compare_interleaved(
            {"packed": runs["packed"], "naive": slow}, baseline="packed", rounds=5, warmup=1
        )
    else:
        beside = None
    compared = compare_interleaved(runs, baseline="torch", rounds=200, warmup=5, time_limit=seconds)
    return {
        "shape": list(shape),
        "blocking": blocking,
        "max_error": float(np.abs(out["packed"].numpy() - a @ b).max()),
        "comparison": compared.to_dict(),
        "naive": None if beside is None else beside.to_dict(),
    }


def table_lines(rows: list[dict[str, Any]]) -> list[str]:
    """The page's table, and the mean below it."""
    lines = [
        "| m × n × k | packed, GFLOP/s | torch | numpy | packed / torch | naive / packed |",
        "|---|---|---|---|---|---|",
    ]
    within = []
    for row in rows:
        m, n, k = shape = tuple(row["shape"])
        rate, ratio = rates(row["comparison"], m * n * k), row["comparison"]["ratio"]["packed"]
        if shape in BERT or 512 <= m <= 2048:
            within.append(ratio["value"])
        naive = "" if row["naive"] is None else f"{row['naive']['ratio']['naive']['value']:.0f}"
        lines.append(
            f"| {m} × {n} × {k} | {rate['packed']:.0f} | {rate['torch']:.0f} | {rate['numpy']:.0f} "
            f"| {ratio_cell(ratio)} | {naive} |"
        )
    if within:
        mean = geometric_mean(within)
        lines += ["", f"Geometric mean of packed / torch over 512 to 2048 and BERT: {mean:.2f}."]
    return lines


@click.command(
    epilog="\b\nExamples:\n  python benchmarks/matmul.py\n"
    "  python benchmarks/matmul.py --shape 128 768 768 --seconds 5\n"
    "  python benchmarks/matmul.py --table"
)
@click.option("--shape", "shapes", type=int, nargs=3, multiple=True, help="m n k [all]")
@options("matmul")
def main(shapes: tuple[tuple[int, int, int], ...], seconds: float, out: Path, table: bool) -> None:
    """Compare phase 2's matmul with torch.matmul and numpy; write docs/matmul.md."""
    if not table:
        cases = {
            " x ".join(map(str, shape)): functools.partial(measure, shape, seconds)
            for shape in shapes or (*SQUARES, *BERT)
        }
        measure_all(cases, out)
        if shapes:
            return  # a part of the shapes is no page
    write_page("matmul", out, _HEAD, table_lines)


if __name__ == "__main__":
    main()
