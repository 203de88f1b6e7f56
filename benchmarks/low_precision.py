"""Matrix products of 16-bit and 8-bit numbers beside torch's, and docs/low_precision.md of them.

    python benchmarks/low_precision.py                    # all products, a minute
    python benchmarks/low_precision.py --product bfloat16 --seconds 20
    python benchmarks/low_precision.py --table            # only write the page again

All sides use the same threads and are called in turns.
"""

import functools
from pathlib import Path
from typing import Any

import click
from beside_torch import measure_all, options, rates, ratio_cell, write_page

# The operands' types, and the sums'.
PRODUCTS = {
    "bfloat16": ("bfloat16", "bfloat16", "float32"),
    "uint8 × int8": ("uint8", "int8", "int32"),
    "int8 × int8": ("int8", "int8", "int32"),
}
SIZE = 1024
_BOUNDS = {"uint8": (0, 256), "int8": (-128, 128)}
_HEAD = """# Products of 16 and 8 bits

Made by `python benchmarks/low_precision.py`. It compares 1024³ products of the default schedule
with torch's products of the same types, and with the default schedule's own float32 product. The
right operand is a constant, packed at compile time. All sides use the same threads and are called
in turns in one process. A ratio is the median with its 95% interval; under 1 is faster.

torch multiplies 8-bit numbers with `torch._int_mm`, which takes int8 on both sides, so it is the
rival of both 8-bit rows. Its bfloat16 product has a bfloat16 result, ours a float32 result. The
error is the largest difference from the exact product of the same rounded operands.

On AVX-512, one instruction does 16 multiply-adds of float32, 32 of bfloat16 (`vdpbf16ps`), 64 of
uint8 × int8 (`vpdpbusd`), or 32 of int8 × int8, widened to 16 bits (`vpdpwssd`). The exporter adds
128 to an int8 operand whose partner is a constant, which makes it uint8, and subtracts 128 times
the constant's sums from the product. The last row includes both. A product of full tile registers
(AMX) is 8,192 multiply-adds of bfloat16, or 16,384 of 8-bit numbers.
"""


def measure(product: str, seconds: float) -> dict[str, Any]:
    """One product on all sides.

    Args:
        product: a name in PRODUCTS.
        seconds: for each of two comparisons.

    Returns:
        {"product", "instructions": those for such products that the target has, "max_error",
        "comparison": with torch's, "beside_float32": both see measure.Comparison.to_dict}.
    """
    import numpy as np

    from tvm_practice import engines
    from tvm_practice.measure import compare_interleaved
    from tvm_practice.tvm_export.rules.cpu.loops import cpu_of

    left, right, total = PRODUCTS[product]
    rng = np.random.default_rng(0)
    a, b = (_drawn(rng, each) for each in (left, right))
    own = _compiled(a, b, total)
    wide = _compiled(a.astype("float32"), b.astype("float32"), "float32")
    error = np.abs(own().numpy() - a.astype("float64") @ b.astype("float64")).max()
    compare = functools.partial(compare_interleaved, rounds=200, warmup=5, time_limit=seconds)
    return {
        "product": product,
        "instructions": sorted(cpu_of(engines.host_target()).instructions),
        "max_error": float(error),
        "comparison": compare({"torch": _torchs(a, b), "tvm": own}, baseline="torch").to_dict(),
        "beside_float32": compare({"float32": wide, "tvm": own}, baseline="float32").to_dict(),
    }


def _drawn(rng: Any, dtype: str) -> Any:
    """A square operand; ml_dtypes gives numpy the name bfloat16."""
    import ml_dtypes  # noqa: F401

    shape = (SIZE, SIZE)
    if dtype in _BOUNDS:
        return rng.integers(*_BOUNDS[dtype], shape).astype(dtype)
    return rng.standard_normal(shape, "float32").astype(dtype)


def _torchs(a: Any, b: Any) -> Any:
    """A call of torch's product; uint8 becomes int8 of other values."""
    import torch

    if str(a.dtype) == "bfloat16":
        left, right = (torch.from_numpy(each.astype("float32")).bfloat16() for each in (a, b))
        return functools.partial(torch.matmul, left, right, out=torch.empty_like(left))
    return functools.partial(torch._int_mm, *(torch.from_numpy(e.view("int8")) for e in (a, b)))


def _compiled(a: Any, b: Any, total: str) -> Any:
    """A call of the default schedule's product with a constant right operand; returns a tensor."""
    import tvm
    from tvm import relax

    from tvm_practice import engines
    from tvm_practice.tvm_export.compiling import compiling
    from tvm_practice.tvm_export.relax_passes.unsigned_products import with_unsigned_operands
    from tvm_practice.tvm_export.rules.cpu import schedule_defaults
    from tvm_practice.tvm_export.steps.relax import optimize_relax

    builder = relax.BlockBuilder()
    x = relax.Var("x", relax.TensorType(a.shape, str(a.dtype)))
    with builder.function("main", [x]):
        with builder.dataflow():
            product = relax.op.matmul(x, relax.const(b), out_dtype=total)
            result = builder.emit_output(builder.emit(product))
        builder.emit_func_output(result)
    target = engines.host_target()
    known = with_unsigned_operands(builder.get(), target)
    module = schedule_defaults(optimize_relax(known), target)
    with compiling(target):
        machine = relax.VirtualMachine(tvm.compile(module, target), tvm.cpu())
    return functools.partial(machine["main"], tvm.runtime.tensor(a))


def table_lines(rows: list[dict[str, Any]]) -> list[str]:
    """The page's table; below it, the processor's instructions and what disturbed the ratios."""
    lines = [
        "| product | ours, GOP/s | torch | float32 | ours / torch | ours / own float32 | error |",
        "|---|---|---|---|---|---|---|",
    ]
    disturbed = set()
    for row in rows:
        pairs = row["comparison"], row["beside_float32"]
        rate = rates(pairs[1], SIZE**3) | rates(pairs[0], SIZE**3)
        ratios = [each["ratio"]["tvm"] for each in pairs]
        disturbed |= {each["disturbance"] for each in ratios if each["disturbance"]}
        cells = " | ".join(map(ratio_cell, ratios))
        lines.append(
            f"| {row['product']} | {rate['tvm']:.0f} | {rate['torch']:.0f} | {rate['float32']:.0f} "
            f"| {cells} | {row['max_error']:.1e} |"
        )
    used = ", ".join(rows[0]["instructions"]) or "none"
    lines += ["", f"Instructions for such products on this processor: {used}."]
    if disturbed:
        worst = max(disturbed, key=lambda each: (len(each), each))
        lines += [
            "",
            f"The machine was not quiet. In the worst case, {worst}. The rates are lower than a "
            "quiet machine's, and the ratios are less certain than their intervals say: see "
            "[ratios on a busy machine](busy_machine.md).",
        ]
    return lines


@click.command(
    epilog="\b\nExamples:\n  python benchmarks/low_precision.py\n"
    "  python benchmarks/low_precision.py --product bfloat16 --seconds 20\n"
    "  python benchmarks/low_precision.py --table"
)
@click.option("--product", "products", type=click.Choice(list(PRODUCTS)), multiple=True)
@options("low_precision")
def main(products: tuple[str, ...], seconds: float, out: Path, table: bool) -> None:
    """Compare 16-bit and 8-bit products with torch's; write docs/low_precision.md."""
    if not table:
        asked = products or tuple(PRODUCTS)
        cases = {each: functools.partial(measure, each, seconds) for each in asked}
        measure_all(cases, out, side="tvm")
        if products:
            return  # a part of the products is no page
    write_page("low_precision", out, _HEAD, table_lines)


if __name__ == "__main__":
    main()
