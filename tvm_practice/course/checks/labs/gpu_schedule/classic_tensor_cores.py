"""A template of AutoTVM whose knob chooses tensor cores."""

import functools
from collections.abc import Sequence
from typing import Any

from tvm_practice.course.checks.labs.gpu_schedule.classic import loops_of_classic, reads_most
from tvm_practice.course.checks.labs.gpu_schedule.common import PHASE, Function, expect_bound
from tvm_practice.course.checks.labs.gpu_schedule.tensor_cores import INTRINSICS, wmma_lines
from tvm_practice.course.checks.labs.gpu_schedule.threads import BOUND
from tvm_practice.course.expect import (
    draw_distinct,
    expect,
    expect_close,
    fail,
    fresh_rng,
)
from tvm_practice.engines import CLASSIC
from tvm_practice.viz.loop_nest import (
    format_nest,
)

_TENSOR_CORES = "use_tensorcore"
_PLAIN_THREADS = (8, 32)


@PHASE.exercise(
    "tensor_core_template",
    engine=CLASSIC,
    title="a knob of AutoTVM that chooses tensor cores",
    hints=(
        "A template is one function with two schedules in it, and a knob's value says which. Which "
        "sizes leave no choice?",
        "cfg.define_knob('use_tensorcore', [0, 1] if 16 divides m, n and k else [0]). "
        "cfg['use_tensorcore'].val is its value in this trial. te.sum(A[i, r].astype('float32') * "
        "B[r, j].astype('float32'), axis=r) adds up in float32.",
        "for name, (stage, axis) in fragment_stages(schedule, [A, B, C]).items(): "
        "schedule[stage].tensorize(axis, wmma_instructions()[name]); otherwise "
        "bind_threads_classic([A, B, C], 8, 32). Return the schedule and [A, B, C].",
    ),
    looks_like="""
        use_tensorcore = 0
        for blockIdx.y in blockIdx.y(6):
            for blockIdx.x in blockIdx.x(1):
                for threadIdx.y in threadIdx.y(8):
                    for threadIdx.x in threadIdx.x(32):
                        C: C <- constant
                        for k in serial(64):
                            C: C <- A, B, C
        use_tensorcore = 1
        nvcuda::wmma::fill_fragment
        for (int k_outer = 0; k_outer < 4; ++k_outer):
          for (int ax0_ax1_fused_outer = 0; ax0_ax1_fused_outer < 8; ++ax0_ax1_fused_outer):
          nvcuda::wmma::load_matrix_sync
          for (int ax0_ax1_fused_outer_1 = 0; ax0_ax1_fused_outer_1 < 8; ++ax0_ax1_fused_outer_1):
          nvcuda::wmma::load_matrix_sync
          nvcuda::wmma::mma_sync
        nvcuda::wmma::store_matrix_sync
        for (int i_inner_j_inner_fused_outer = 0; i_inner_j_inner_fused_outer < 8; ++i_inner_j_inner_fused_outer):
    """,  # noqa: E501
    demonstrate=lambda tensor_core_template: _shown_choices(tensor_core_template),
)
def check_tensor_core_template(tensor_core_template: Function) -> None:
    m, n, k = (16 * each for each in draw_distinct(3, range(1, 6)))
    for sizes in ((m, n, k), (16, 16, 16), (n, n, m), (16 * m, 32, n), (48, 16 * n, 16 * k)):
        task = _expect_choices(tensor_core_template, sizes, {0, 1})
        for index in range(len(task.config_space)):
            _expect_chosen(task, index)
    alone = draw_distinct(3, (1, 8, 24, 33, 40))
    odd = [[*(m, n, k)[:at], other, *(m, n, k)[at + 1 :]] for at, other in enumerate(alone)]
    for each in odd:
        task = _expect_choices(tensor_core_template, each, {0})
        _expect_chosen(task, 0)
    few, one = draw_distinct(2, range(1, 8))
    for small in ((few, n, k), (m, one, k), (few, one, k)):
        _expect_chosen(_expect_choices(tensor_core_template, small, {0}), 0)
    # Remainders that are equal, and some whose sum 16 divides; equal sizes.
    (rest,) = draw_distinct(1, range(1, 16))
    for rests in ((rest, rest, rest), (0, 8, 8), (8, 0, 8), (8, 8, 0), (rest, 16 - rest, 0)):
        uneven = [size + each for size, each in zip((m, n, k), rests, strict=True)]
        _expect_choices(tensor_core_template, uneven, {0})
    for at in range(3):  # one of them is no multiple, though of 8 or 4
        for part in (8, 4, 24):
            uneven = [16 * size + part * (axis == at) for axis, size in enumerate((3, 2, 4))]
            _expect_choices(tensor_core_template, uneven, {0})
    for size in (8, rest, 32 + rest):
        _expect_choices(tensor_core_template, (size,) * 3, {0})
    for most in ((4096, 4096, 4096), (16, 2**17, 64), (2**16, 16, 4096)):
        _expect_choices(tensor_core_template, most, {0, 1})
    for product in ((8, 32, 16), (1, 64, 64), (256, 4, 16), (4096, 1, 1)):  # 16 ** 3 divides it
        _expect_choices(tensor_core_template, product, {0})


def _template_task(template: Function, sizes: Sequence[int]) -> Any:
    import tvm

    from tvm_practice.tvm_export.tuners.autotvm import make_task

    @functools.wraps(template)
    def checked(*arguments: Any) -> Any:
        found = template(*arguments)
        expect(
            isinstance(found, Sequence)
            and len(found) == 2
            and isinstance(found[0], tvm.te.schedule.Schedule),
            expected="a schedule and the list of its tensors returned",
            seen=repr(found)[:200],
            look="the return statement: schedule, [A, B, C]",
        )
        return found

    return make_task(checked, sizes, tvm.target.Target("cuda -arch=sm_80"), name="graded.wmma")


def _expect_choices(template: Function, sizes: Sequence[int], wanted: set[int]) -> Any:
    """The space of a template for these sizes has these values of the knob; the task."""
    task = _template_task(template, sizes)
    knobs = task.config_space.space_map
    expect(
        _TENSOR_CORES in knobs,
        expected=f'a knob "{_TENSOR_CORES}"',
        seen=f"knobs {', '.join(knobs)}" if knobs else "no knobs",
        look=f'cfg.define_knob("{_TENSOR_CORES}", …) of cfg = autotvm.get_config()',
    )
    expect(
        len(knobs) == 1,
        expected=f'"{_TENSOR_CORES}" as the only knob: AutoTVM tries all values of each',
        seen=f"knobs {', '.join(knobs)}",
        look="the other calls of define_knob and its like",
    )
    values = {int(each.val) for each in knobs[_TENSOR_CORES].entities}
    expect(
        values == wanted,
        expected=f"the values {' and '.join(map(str, sorted(wanted)))} for {_times(sizes)}",
        seen=" and ".join(map(str, sorted(values))),
        look="the values of the knob: a fragment is 16 x 16, so each of m, n and k has to be a "
        "multiple of 16",
    )
    return task


def _times(sizes: Sequence[int]) -> str:
    return "x".join(map(str, sizes))


def _expect_chosen(task: Any, index: int) -> None:
    """A configuration has the schedule that its knob says, and the right values."""
    m, n, k = task.args
    schedule, tensors = _instance(task, index)
    chosen = _knob(task, index)
    seen = [f"{each.dtype} {_times(list(map(int, each.shape)))}" for each in tensors]
    wanted = [f"float16 {m}x{k}", f"float16 {k}x{n}", f"float32 {m}x{n}"]
    expect(
        seen == wanted,
        expected=f"the tensors [A, B, C]: {', '.join(wanted)}",
        seen=", ".join(seen),
        look="te.placeholder, te.compute and the return statement",
    )
    _expect_wmma(schedule, tensors, chosen)
    if not chosen:
        across, along = _PLAIN_THREADS
        expect_bound(
            reads_most(loops_of_classic(schedule)),
            [*zip(BOUND, (-(-m // across), -(-n // along), across, along), strict=True),
             *[("serial", k)] * (k > 1)],
            "bind_threads_classic([A, B, C], 8, 32)",
        )  # fmt: skip
    _expect_sums_of_float32(task, index)


def _knob(task: Any, index: int) -> int:
    return int(task.config_space.get(index)[_TENSOR_CORES].val)


def _instance(task: Any, index: int) -> tuple[Any, list[Any]]:
    with task.target:
        schedule, tensors = task.instantiate(task.config_space.get(index))
    return schedule, list(tensors)


def _expect_wmma(schedule: Any, tensors: list[Any], chosen: int) -> None:
    """The lowered loops use tensor cores if they were chosen, and else not."""
    import tvm

    try:
        text = tvm.lower(schedule, tensors).script()
    except Exception as error:
        raise fail(
            "loops that TVM can replace by the instructions",
            str(error).strip().splitlines()[-1][:200],
            "schedule[stage].tensorize(axis, instruction), each of the same name",
        ) from error
    for name in (*INTRINSICS, "wmma"):
        wanted = {"tvm_load_matrix_sync": 2}.get(name, 1) * chosen
        seen = int("wmma" in text) if name == "wmma" else text.count(f"{name}(")
        expect(
            seen == wanted,
            expected=f"{wanted or 'no'} {name} with {_TENSOR_CORES} = {chosen}",
            seen=str(seen),
            look=f'tensorize of all four stages, and what cfg["{_TENSOR_CORES}"].val decides',
        )


def _expect_sums_of_float32(task: Any, index: int) -> None:
    """The loops of a configuration, without instructions, give the product of float32."""
    from unittest import mock

    import tvm
    from tvm import te

    from tvm_practice.labs.gpu.classic import run_on_cpu

    with mock.patch.object(te.schedule.Stage, "tensorize", lambda *_, **__: None):
        schedule, tensors = _instance(task, index)
        m, n, k = task.args
        rng = fresh_rng()
        # Products of these exceed float16's largest number.
        a, b = (rng.uniform(200, 400, shape).astype("float16") for shape in ((m, k), (k, n)))
        got = run_on_cpu(schedule, tensors, [a, b])
    halves: list[Any] = []  # a processor may compute them in float32, a GPU does not

    def keep(node: Any) -> None:
        if isinstance(node, tvm.tir.Mul) and node.dtype == "float16":
            halves.append(node)

    for stage in schedule.stages:
        for value in getattr(stage.op, "body", ()):
            tvm.tir.stmt_functor.post_order_visit(value, keep)
    expect(
        not halves,
        expected=f"products of float32 with {_TENSOR_CORES} = {_knob(task, index)}",
        seen=f"{halves[0] if halves else ''}, of float16",
        look="the casts to float32 before the product",
    )
    expect_close(
        got,
        a.astype("float32") @ b.astype("float32"),
        what=f"C with {_TENSOR_CORES} = {_knob(task, index)}",
        look="the formula, and the casts to float32 before the product",
        rtol=1e-3,
    )


def _shown_choices(tensor_core_template: Function) -> str:
    from tvm_practice.labs.gpu.classic import cuda_source
    from tvm_practice.tvm_export.cuda import kernel_of

    task = _template_task(tensor_core_template, (48, 32, 64))
    (plain, _), (schedule, tensors) = (_instance(task, index) for index in (0, 1))
    shown = [f"{_TENSOR_CORES} = 0", format_nest(loops_of_classic(plain)), f"{_TENSOR_CORES} = 1"]
    return "\n".join([*shown, wmma_lines(kernel_of(cuda_source(schedule, tensors, "sm_80")))])
