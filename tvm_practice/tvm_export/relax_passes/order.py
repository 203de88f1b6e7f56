"""The passes over a Relax module, from the import to fused functions, in their order."""

from collections.abc import Collection, Sequence
from typing import Any

from tvm_practice.tvm_export.config import Precision
from tvm_practice.tvm_export.constant_folding import known_constants
from tvm_practice.tvm_export.extremes import (
    compute_with_least_numbers,
    compute_with_zeros,
    find_places,
    with_infinite_edges,
)
from tvm_practice.tvm_export.legalized_once import legalize_once
from tvm_practice.tvm_export.lowering.truth import truth_in_bytes
from tvm_practice.tvm_export.relax_passes.attention import with_attention
from tvm_practice.tvm_export.relax_passes.batch_normalization import fold_batch_normalization
from tvm_practice.tvm_export.relax_passes.batched_products import without_repeated_operands
from tvm_practice.tvm_export.relax_passes.channels_last import with_channels_last
from tvm_practice.tvm_export.relax_passes.convolution_padding import with_own_padding
from tvm_practice.tvm_export.relax_passes.empty_constants import without_empty_constants
from tvm_practice.tvm_export.relax_passes.fused_padding import with_padding_fused
from tvm_practice.tvm_export.relax_passes.kept_sums import with_short_sums_stored
from tvm_practice.tvm_export.relax_passes.linear_rows import with_rows_together
from tvm_practice.tvm_export.relax_passes.one_at_a_time import apart, batch_of, in_turns, of_one
from tvm_practice.tvm_export.relax_passes.precision import with_products_in
from tvm_practice.tvm_export.relax_passes.quantization import Quantization, with_integer_layers
from tvm_practice.tvm_export.relax_passes.quantized_models import with_quantized_operators
from tvm_practice.tvm_export.relax_passes.unsigned_products import with_unsigned_operands
from tvm_practice.tvm_export.rules.cpu import mark_constants
from tvm_practice.tvm_export.rules.cpu.loops import cpu_of
from tvm_practice.tvm_export.run_time_checks.divisors import with_division_checks
from tvm_practice.tvm_export.run_time_checks.extents import with_extent_checks
from tvm_practice.tvm_export.run_time_checks.indices import with_index_checks
from tvm_practice.tvm_export.speed_passes import SpeedPass
from tvm_practice.tvm_export.steps import Steps


def optimized(
    module: Any,
    steps: Steps,
    *,
    names: Sequence[str],
    target: Any,
    precision: Precision = "float32",
    quantization: Quantization | None = None,
    without: Collection[SpeedPass] = (),
) -> Any:
    """A Relax module of fused functions, ready to be scheduled.

    Args:
        module: as imported, the weights constants of its graph; it is left as it was.
        steps: whose optimize_relax is called.
        names: of main's inputs, which the error for an index out of bounds tells.
        target: what it is to be compiled for. Code for a GPU cannot raise errors, so indices are
            not checked there.
        precision: the type of the products' operands; see `precision`.
        quantization: the layers to compute in integers; None: none.
        without: passes for speed alone that are left out. "recurrence" is the importer's,
            "claimed-loops" and "tiles-on-stack" the compiler's.

    Raises:
        CannotImport: as `with_index_checks`.
    """
    on_cpu = str(target.kind.name) == "llvm"
    compute_with_zeros()
    find_places()
    compute_with_least_numbers()
    legalize_once()
    module = with_quantized_operators(module, target)
    if "shared-operands" not in without:
        module = without_repeated_operands(module)
    if "batch-normalization" not in without:
        module = fold_batch_normalization(module)
    folded = with_products_in(module, precision)
    count = 1
    if quantization is not None:
        folded = with_integer_layers(folded, quantization)
    elif on_cpu and precision == "float32" and "one-at-a-time" not in without:
        count, folded = _one_at_a_time(folded)
    folded = with_unsigned_operands(folded, target)
    if on_cpu and precision in ("float32", "bfloat16") and "channels-last" not in without:
        folded = with_channels_last(folded)
    if quantization is not None:
        folded = with_short_sums_stored(folded)
    if "gpu" in target.keys:
        folded = with_own_padding(folded)
    if is_checked(target):
        folded = with_division_checks(with_index_checks(folded, names), names)
        folded = with_extent_checks(folded, names)
    known = _with_constants_known(folded)
    if on_cpu and "attention" not in without:
        known = with_attention(known, cpu_of(target))
    if on_cpu and "rows-together" not in without:
        known = with_rows_together(known)
    fused = steps.optimize_relax(known)
    if "padding" not in without:
        fused = with_padding_fused(fused)
    module = without_empty_constants(with_infinite_edges(truth_in_bytes(fused)))
    return mark_constants(in_turns(module, count) if count > 1 else module)


def _one_at_a_time(module: Any) -> tuple[int, Any]:
    """How many examples to compute one after the other, 1 for all at once, and that module."""
    if batch_of(module) < 2:
        return 1, module
    from tvm.relax import transform

    ready = transform.DeadCodeElimination()(_with_constants_known(module))
    count = apart(ready)
    return (count, of_one(ready)) if count > 1 else (1, module)


def is_checked(target: Any) -> bool:
    """Whether code for a target can raise errors at run time."""
    return str(target.kind.name) in ("llvm", "c")


def _with_constants_known(module: Any) -> Any:
    """A Relax module in whose normalizations what depends on constants alone is computed."""
    import tvm
    from tvm import relax

    passes = [
        relax.transform.DecomposeOpsForInference(),
        relax.transform.CanonicalizeBindings(),
        known_constants(),
    ]
    return tvm.ir.transform.Sequential(passes)(module)
