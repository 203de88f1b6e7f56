"""3x3 convolutions with four multiplications where the sum has nine: Winograd's F(2x2, 3x3).

    Y = A^T [(G g G^T) . (B^T d B)] A

A tile of 2x2 outputs of a filter is made from a patch d of 4x4 inputs: both the patch and the
filter's 3x3 weights g are transformed to 4x4 values, which are multiplied element by element and
summed over the channels, and the sums transformed back. What is summed are 16 matrix products, one
for each element: a filter's transformed weights, a constant of the model, times those of the
tiles. Per output that is 4 multiplications a channel instead of 9. The transforms only add; the
result differs from a direct convolution's by rounding, about as much as that from the exact one.

Source: Lavin and Gray, Fast Algorithms for Convolutional Neural Networks, 2015,
https://arxiv.org/abs/1509.09308, section 4.1.

One thread takes a few rows of tiles at a time, so that what is between the transforms stays in its
second cache:

    phases      the padded input, its even and its odd columns apart: a tile is two of each
    columns     d B          in the direction of x
    patches     B^T d B      in the direction of y
    products    the sums over the channels, in register tiles of filters x tiles
    tiles       A^T [...] A
    (copy)      to the output, through the operators fused after the convolution
"""

from typing import Any

from tvm_practice.tvm_export.errors import NotApplicable
from tvm_practice.tvm_export.rules.cpu.contraction import find_contraction
from tvm_practice.tvm_export.rules.cpu.loops import Cpu
from tvm_practice.tvm_export.rules.cpu.register_tiles import (
    WORK_AN_ELEMENT,
    advice_of,
    can_prepack,
)
from tvm_practice.tvm_export.rules.cpu.scheduling import (
    inline_epilogue,
    iterations,
    parallelize,
    schedule_stage,
    split_lanes,
)
from tvm_practice.tvm_export.rules.cpu.winograd_layer import UNROLL, Layer, find_layer
from tvm_practice.tvm_export.rules.cpu.winograd_stages import in_stages, stage_names


def schedule_winograd(func: Any, cpu: Cpu) -> Any:
    """The function by Winograd's algorithm.

    The loop nest of a 3x3 convolution of 64 channels, 56x56, on 256-bit vectors:

        for i0 in serial(16):
            for i1 in serial(4):
                for i2 in serial(4):
                    for i3 in serial(64):
                        for i4 in serial(4):
                            weights: weights <- param_0
        for i0_i1_0_i2_fused in parallel(56):
            for ax0 in serial(64):
                for ax0 in serial(4):
                    for ax1 in serial(2):
                        for ax2 in vectorized(33):
                            phases: phases <- x0
                for ax0 in serial(4):
                    for ax1 in unrolled(4):
                        for ax2_0 in serial(4):
                            for ax2_1 in vectorized(8):
                                columns: columns <- phases
                for ax1 in unrolled(4):
                    for ax2 in unrolled(4):
                        for ax3_0 in serial(4):
                            for ax3_1 in vectorized(8):
                                patches: patches <- columns
            for i1_1 in serial(8):
                for ax0 in serial(4):
                    for ax1 in serial(4):
                        for ax2 in serial(2):
                            for ax3_init in unrolled(4):
                                for ax4_0_init in unrolled(2):
                                    for ax4_1_init in vectorized(8):
                                        products_init: products <- constant
                            for ax5_0 in serial(16):
                                for ax5_1 in unrolled(4):
                                    for ax3 in unrolled(4):
                                        for ax4_0 in unrolled(2):
                                            for ax4_1 in vectorized(8):
                                                products_update: products <- patches, products, weights
                for i3 in serial(4):
                    for i4 in serial(1):
                        for i5 in unrolled(2):
                            for i7 in unrolled(2):
                                for i6_0 in serial(4):
                                    for i6_1 in vectorized(8):
                                        tiles: tiles <- products
                for ax0 in serial(4):
                    for ax1 in serial(2):
                        for ax2_0 in serial(7):
                            for ax2_1 in vectorized(8):
                                compute: compute_intermediate <- tiles, param_1

    Raises:
        NotApplicable: it is no convolution that gains by it, what is fused with it does not go
            with it, or a tuner has chosen its register tile (`advise`).
    """  # noqa: E501
    import tvm

    if advice_of(func) is not None:
        raise NotApplicable("a tuner has chosen a register tile")
    found = find_contraction(func, cpu)
    layer = find_layer(found, cpu)
    schedule = tvm.s_tir.Schedule(in_stages(func, found, layer))
    names = stage_names(str(found.block.name_hint))

    # Phase 1. Inline what comes before the convolution, and what is fused after it.
    epilogue, after = _inline_around(schedule, names)
    blocks = {each: schedule.get_sblock(names[each]) for each in names if each != "copy"}

    # Phase 2. Transform the weights at compile time.
    if not can_prepack(schedule, names["weights"]):
        raise NotApplicable("the weights are used elsewhere too, or made of more than a constant")
    schedule.annotate(blocks["weights"], "meta_schedule.layout_rewrite_preproc", True)

    # Phase 3. Nest the stages: a task is an image's rows of tiles and a part of the filters.
    work = iterations(schedule, schedule.get_loops(blocks["products"]))
    tasks = _nest_stages(schedule, blocks, epilogue, layer)

    # Phase 4. Vectorize the transforms.
    _schedule_transforms(schedule, blocks, epilogue, cpu)

    # Phase 5. Keep the products' sums in registers.
    outer = _schedule_products(schedule, blocks["products"], cpu)

    # Phase 6. Run the tasks in parallel, and then what no tile stands for.
    parallelize(schedule, tasks, None if work is None else work // WORK_AN_ELEMENT)
    schedule.decompose_reduction(blocks["products"], outer)
    for each in after:
        schedule_stage(schedule, each, cpu)
    return schedule


def _inline_around(schedule: Any, names: dict[str, str]) -> tuple[list[Any], list[Any]]:
    """Inline a padding into the phases, and operators after the convolution; see `inline_epilogue`.

    Returns what it returns.
    """
    root = schedule.get_child_blocks(schedule.get_sblock("root"))
    order = [str(schedule.get(each).name_hint) for each in root]
    for before in root[: order.index(names["phases"])]:
        schedule.compute_inline(before)
    return inline_epilogue(schedule, root[order.index(names["copy"]) :])


def _nest_stages(
    schedule: Any, blocks: dict[str, Any], epilogue: list[Any], layer: Layer
) -> list[Any]:
    """Compute each stage where the next one needs it; the loops over tasks."""
    image, some, chunk, *inside = schedule.get_loops(blocks["tiles"])
    part, some = schedule.split(some, [layer.parts, None])
    schedule.reorder(image, part, chunk, some, *inside)
    for each in epilogue:
        schedule.reverse_compute_at(each, some)
    schedule.compute_at(blocks["products"], some)
    schedule.compute_at(blocks["patches"], chunk)
    channel = schedule.get_loops(blocks["patches"])[3]
    schedule.compute_at(blocks["columns"], channel)
    schedule.compute_at(blocks["phases"], channel)
    return [image, part, chunk]


def _schedule_transforms(
    schedule: Any, blocks: dict[str, Any], epilogue: list[Any], cpu: Cpu
) -> None:
    """Unroll the loops over a transform's matrix; vectorize those over tiles, and the write-back.

    A row of a matrix is then a constant, and takes additions alone.
    """
    for each in epilogue:
        _vectorize(schedule, each, cpu)
    a, x, b = schedule.get_loops(blocks["tiles"])[-3:]
    schedule.reorder(a, b, x)
    schedule.unroll(a)
    schedule.unroll(b)
    _vectorize(schedule, blocks["tiles"], cpu)
    for name, count in (("patches", 2), ("columns", 1)):
        for loop in schedule.get_loops(blocks[name])[-1 - count : -1]:
            schedule.unroll(loop)
        _vectorize(schedule, blocks[name], cpu)
    schedule.vectorize(schedule.get_loops(blocks["phases"])[-1])


def _schedule_products(schedule: Any, block: Any, cpu: Cpu) -> Any:
    """Unroll a register tile inside the sum over the channels; the sum's outer loop."""
    *_, filter_, tile, summed = schedule.get_loops(block)
    outer, inner = schedule.split(summed, [None, UNROLL])
    vectors, lanes = schedule.split(tile, [None, cpu.lanes("float32")])
    schedule.reorder(outer, inner, filter_, vectors, lanes)
    schedule.vectorize(lanes)
    for each in (inner, filter_, vectors):
        schedule.unroll(each)
    return outer


def _vectorize(schedule: Any, block: Any, cpu: Cpu) -> None:
    """Vectorize the innermost loop of a block, as much of it as goes into a few registers."""
    inner = split_lanes(schedule, block, cpu)
    if inner is not None:
        schedule.vectorize(inner)
