"""Tensor cores, step by step, on current TVM."""

from collections.abc import Callable
from typing import Any

from tvm_practice.course.checks.labs.gpu_schedule.common import (
    PHASE,
    Function,
    nest_of,
    reference_answers,
    shown_loops,
)
from tvm_practice.course.checks.labs.gpu_schedule.threads import block_name
from tvm_practice.course.expect import (
    draw_distinct,
    expect,
    expect_close,
    fail,
    fresh_rng,
    path_to,
)
from tvm_practice.course.nests import shared_loops
from tvm_practice.engines import CURRENT
from tvm_practice.labs.gpu.matmul import declare
from tvm_practice.labs.gpu.wmma import warp_tiles
from tvm_practice.viz.loop_nest import (
    loop_nest,
    paths,
)


def _fragments(
    warps: tuple[int, int] = (2, 1),
    fragments: tuple[int, int] = (1, 2),
    *,
    around: int = 0,
    k: int = 32,
) -> tuple[Any, Any]:
    """A float16 matmul of 64x64xk tiled for tensor cores, its inputs staged.

    So many loops of one iteration as `around` are around all others.
    """
    schedule, block = declare(64, 64, k, "float16")
    tiles = warp_tiles(schedule, block, warps=warps, tiles=fragments, step=16)
    for reader in (tiles.load_a, tiles.load_b):
        reference_answers().stage_shared(schedule, reader, 0, tiles.k_outer, tiles.warps, 32, 8)
    for _ in range(around):
        schedule.add_unit_loop(schedule.get_loops(tiles.product)[0])
    return schedule, tiles


INTRINSICS = {
    "tvm_load_matrix_sync": "load_a and load_b",
    "tvm_fill_fragment": "the block inside what decompose_reduction returns",
    "tvm_mma_sync": "the block inside product",
    "tvm_store_matrix_sync": "store",
}


# What the intrinsics are called: as TVM calls its own, but each as one for another purpose.
_CALLED = {
    "load_a": "wmma_store_16x16x16_f32_global",
    "load_b": "wmma_sync_16x16x16_f16f16f32",
    "init": "wmma_load_16x16x16_f16_a_shared",
    "compute": "wmma_fill_16x16x16_f32",
    "store": "wmma_load_16x16x16_f16_b_shared",
}


def _renamed(*purposes: str, alike: bool = False) -> dict[str, str]:
    """The intrinsics for `tensorize` by purpose, under names drawn anew, in any order.

    With `purposes`, those and no others, in this order. With `alike`, their names end alike. A name
    does not say what it is for.
    """
    from tvm_practice.labs.gpu.wmma import wmma_intrinsics

    known = wmma_intrinsics()
    uses = purposes or draw_distinct(len(known), list(known))
    rng = fresh_rng()
    mark = int(rng.integers(10**6, 10**7))
    return {
        use: _known_as(known[use], _CALLED[use], mark if alike else int(rng.integers(10**6)))
        for use in uses
    }


def _around(schedule: Any, block: Any) -> list[str]:
    """How the loops around a block run, their annotations and the block's."""
    from tvm import tirx

    loops = [schedule.get(each) for each in schedule.get_loops(block)]
    kinds = [tirx.ForKind(int(each.kind)).name.lower() for each in loops]
    marks = [sorted(map(str, each.annotations)) for each in loops]
    told = [" ".join([kind, *mark]) for kind, mark in zip(kinds, marks, strict=True)]
    return [*told, " ".join(["block", *sorted(map(str, schedule.get(block).annotations))])]


def _expect_loops_kept(schedule: Any, product: Any, before: list[str]) -> None:
    """The loops around the product run as `before`."""
    after = _around(schedule, product)
    expect(
        after == before,
        expected=f"the product and its loops as they were: {', '.join(before)}",
        seen=", ".join(after),
        look="a primitive other than split, reorder, decompose_reduction and tensorize",
    )


def _expect_names_kept(given: dict[str, str], names: dict[str, str]) -> None:
    """The intrinsics' names given are those from before the call."""
    expect(
        given == names,
        expected="the dictionary of intrinsics only read: it belongs to the caller",
        seen=f"{', '.join(given) or 'nothing'} in it after the call, {', '.join(names)} before",
        look="pop and other methods that change a dictionary",
    )


def _expect_instructions(schedule: Any, names: dict[str, str], *purposes: str, k: int = 32) -> None:
    """Just the blocks of these purposes are tensorized, by the names given, and C is right."""
    from tvm_practice.labs.gpu.on_cpu import matmul_on_cpu

    used = [str(each.attrs[0]) for each in schedule.trace.insts if each.kind.name == "Tensorize"]
    uses = {name: use for use, name in names.items()}
    expect(
        sorted(used) == sorted(names[use] for use in purposes),
        expected=f"tensorize by the names given, once each for {', '.join(purposes)}",
        seen=", ".join(uses.get(each, each) for each in used) or "none",
        look=f'intrinsics["{purposes[0]}"] and so on, in schedule.tensorize',
    )
    got, want = matmul_on_cpu(schedule, 64, 64, k)
    expect_close(got, want, what="C without tensorize", look="the primitives", atol=1e-3)


@PHASE.exercise(
    "fragment_loops",
    engine=CURRENT,
    step_of="tensor_cores",
    title="put the loops of one fragment innermost",
    hints=(
        "The same as phase 2's tile, for a block of two loops: which two of four loops count the "
        "fragments?",
        "schedule.get_loops(block)[-2:] are rows and columns; each is split by [None, 16].",
        "schedule.reorder(row_tiles, column_tiles, rows, columns), then return rows, the third.",
    ),
    looks_like="""
        A fragments: 2 x 1 of 16 x 16
        B fragments: 1 x 4 of 16 x 16
        C fragments: 2 x 4 of 16 x 16
    """,
    demonstrate=lambda fragment_loops: _shown_fragments(fragment_loops),
)
def check_fragment_loops(fragment_loops: Function) -> None:
    from tvm_practice.labs.gpu.on_cpu import matmul_on_cpu

    names = _renamed()
    several, single = (2, 4), (1, 1)
    for use, blocks, fragments in (
        ("load_a", (2, 1), several), ("load_b", (1, 4), several), ("store", (2, 4), several),
        ("load_a", (1, 1), single), ("store", (1, 1), single),
    ):  # fmt: skip
        schedule, block = _to_split(use, fragments)
        columns = _told(schedule, schedule.get_loops(block)[-1]).partition("(")[0]
        outside = len(schedule.get_loops(block)) - 2
        before = _kinds(schedule, block)[:outside]
        returned = fragment_loops(schedule, block)
        loops = schedule.get_loops(block)
        extents = [int(schedule.get(loop).extent) for loop in loops[outside:]]
        expect(
            extents == [*blocks, 16, 16],
            expected=f"the last loops of {use}: {blocks[0]} row tiles, {blocks[1]} column "
            "tiles, 16 rows, 16 columns",
            seen=", ".join(map(str, extents)),
            look="split by [None, 16], and the order of the four in schedule.reorder",
        )
        expect(
            not _told(schedule, loops[-2]).startswith(f"{columns}_"),
            expected="16 rows outside 16 columns, as the last two loops",
            seen=f"{_told(schedule, loops[-2])} outside {_told(schedule, loops[-1])}",
            look="the order of the four in schedule.reorder",
        )
        expect(
            _is_loop(schedule, returned, loops[-2]),
            expected="the third of the last four loops returned, "
            f"{_told(schedule, loops[-2])}, the 16 rows",
            seen=_told(schedule, returned),
            look="the return statement: the inner part of the rows",
        )
        kinds = _kinds(schedule, block)
        expect(
            kinds == [*before, *["serial"] * 4],
            expected=f"loops of {use} that are {', '.join([*before, *['serial'] * 4])}: the "
            "outer loops stay as they are, and the four are only split and reordered",
            seen=", ".join(kinds),
            look="a primitive other than split and reorder",
        )
        try:
            schedule.tensorize(returned, names[use])
        except Exception as error:
            raise fail(
                f"loops that tensorize recognizes as a fragment of {use}",
                "tensorize refuses them: the two loops of 16 are in another order, are other "
                "loops, or parts of a fused one",
                "schedule.reorder(row_tiles, column_tiles, rows, columns)",
            ) from error
        got, want = matmul_on_cpu(schedule, 64, 64, 32)
        expect_close(got, want, what="C", look="the primitives", atol=1e-3)
    for blocks in ((9, 2), (1, 40), (4, 4), (40, 1)):
        _expect_split(fragment_loops, blocks)


def _expect_split(fragment_loops: Function, blocks: tuple[int, int]) -> None:
    """The loops of a copy of so many fragments, which is not tensorized."""
    import tvm
    from tvm import te

    X = te.placeholder(tuple(16 * each for each in blocks), name="X")
    Y = te.compute(X.shape, lambda i, j: X[i, j], name="Y")
    schedule = tvm.s_tir.Schedule(te.create_prim_func([X, Y]))
    block = schedule.get_sblock("Y")
    returned = fragment_loops(schedule, block)
    loops = schedule.get_loops(block)
    seen = [(kind, int(schedule.get(each).extent)) for kind, each in zip(
        _kinds(schedule, block), loops, strict=True
    )]  # fmt: skip
    expect(
        seen == [("serial", extent) for extent in (*blocks, 16, 16)]
        and _is_loop(schedule, returned, loops[-2]),
        expected=f"of {blocks[0]} x {blocks[1]} fragments: {blocks[0]} row tiles, {blocks[1]} "
        "column tiles, 16 rows, 16 columns, all serial; the loop of 16 rows returned",
        seen=", ".join(f"{kind}({extent})" for kind, extent in seen),
        look="the same two primitives for any number of fragments",
    )


def _kinds(schedule: Any, block: Any) -> list[str]:
    """The kinds of a block's loops, or the threads that they are bound to."""
    name = block_name(schedule, block)
    return [loop.thread or loop.kind for loop in path_to(nest_of(schedule), name, look="the block")]


def _to_split(use: str, fragments: tuple[int, int] = (2, 4)) -> tuple[Any, Any]:
    """A matmul whose copies are of so many fragments: the schedule, the block of one copy."""
    schedule, tiles = _fragments((1, 1), fragments)
    return schedule, getattr(tiles, use)


def _told(schedule: Any, returned: Any) -> str:
    """A loop's name and extent, or the type of what is none."""
    from tvm.s_tir.schedule import LoopRV

    if not isinstance(returned, LoopRV):
        return type(returned).__name__
    loop = schedule.get(returned)
    return f"{loop.loop_var.name}({loop.extent})"


def _is_loop(schedule: Any, returned: Any, wanted: Any) -> bool:
    """Whether both are handles of the same loop."""
    try:
        seen = schedule.get(returned).loop_var
    except Exception:  # of TVM or of Python, whatever was given
        return False
    return bool(seen.same_as(schedule.get(wanted).loop_var))


def _shown_fragments(fragment_loops: Function) -> str:
    lines = []
    for matrix, use in (("A", "load_a"), ("B", "load_b"), ("C", "store")):
        schedule, block = _to_split(use)
        fragment_loops(schedule, block)
        loops = [int(schedule.get(loop).extent) for loop in schedule.get_loops(block)[-4:]]
        lines.append("{} fragments: {} x {} of {} x {}".format(matrix, *loops))
    return "\n".join(lines)


@PHASE.exercise(
    "tensorize_copies",
    engine=CURRENT,
    step_of="tensor_cores",
    title="replace the copies of fragments by instructions",
    hints=(
        "Three blocks, one after the other, each with an intrinsic of its own name. Your "
        "fragment_loops gives the loop that tensorize needs.",
        "schedule.tensorize(loop, name) replaces the loops from `loop` inwards.",
        "for block, name in ((load_a, 'load_a'), (load_b, 'load_b'), (store, 'store')): "
        "schedule.tensorize(fragment_loops(schedule, block), intrinsics[name]).",
    ),
    looks_like="""
        load_a: tvm_load_matrix_sync
        load_b: tvm_load_matrix_sync
        store: tvm_store_matrix_sync
    """,
    demonstrate=lambda tensorize_copies: _shown_instructions(
        lambda schedule, tiles, names: tensorize_copies(
            schedule, tiles.load_a, tiles.load_b, tiles.store, names
        )
    ),
)
def check_tensorize_copies(tensorize_copies: Function) -> None:
    purposes = "load_a", "load_b", "store"
    for names in (_renamed(), _renamed(*purposes[::-1]), _renamed(alike=True)):
        schedule, tiles = _fragments()
        copies = tiles.load_a, tiles.load_b, tiles.store
        before = _around(schedule, tiles.product)
        tensorize_copies(schedule, *copies, given := dict(names))
        _expect_names_kept(given, names)
        _expect_instructions(schedule, names, *purposes)
        _expect_loops_kept(schedule, tiles.product, before)


def _shown_instructions(function: Callable[[Any, Any, dict[str, str]], None]) -> str:
    """What tensorize replaced, by purpose, in the order of the trace."""
    import tvm

    from tvm_practice.labs.gpu.wmma import wmma_intrinsics

    names = wmma_intrinsics()
    schedule, tiles = _fragments()
    function(schedule, tiles, names)
    uses = {name: use for use, name in names.items()}
    used = [str(each.attrs[0]) for each in schedule.trace.insts if each.kind.name == "Tensorize"]
    lines = []
    for name in sorted(used, key=lambda each: list(names.values()).index(each)):
        script = tvm.s_tir.TensorIntrin.get(name).impl.script()
        called = next(each for each in INTRINSICS if f"{each}(" in script)
        lines.append(f"{uses[name]}: {called}")
    return "\n".join(lines)


@PHASE.exercise(
    "tensorize_product",
    engine=CURRENT,
    step_of="tensor_cores",
    title="replace the product of fragments, and the zeroing before it",
    hints=(
        "First the primitive that makes zeroing a block of its own. Then both blocks, the new "
        "one and the product, contain the block to tensorize.",
        "zero = schedule.decompose_reduction(product, k_outer); schedule.get_child_blocks(zero) "
        "is a list of one block. Its 16 x 16 are get_loops(…)[-2:]; in product, 16 x 16 x 16 are "
        "[-3:].",
        "[inside] = schedule.get_child_blocks(zero); schedule.tensorize("
        "schedule.get_loops(inside)[-2], intrinsics['init']); the same for product with [-3] and "
        "'compute'.",
    ),
    looks_like="""
        init: tvm_fill_fragment
        compute: tvm_mma_sync
    """,
    demonstrate=lambda tensorize_product: _shown_instructions(
        lambda schedule, tiles, names: tensorize_product(
            schedule, tiles.product, tiles.k_outer, names
        )
    ),
)
def check_tensorize_product(tensorize_product: Function) -> None:
    from tvm_practice.labs.gpu.on_cpu import untensorized

    names = _renamed()
    (around,) = draw_distinct(1, (2, 3))
    schedule, tiles = _fragments(around=around)
    before = _around(schedule, tiles.product)
    tensorize_product(schedule, tiles.product, tiles.k_outer, given := dict(names))
    _expect_names_kept(given, names)
    _expect_instructions(schedule, names, "init", "compute")
    _expect_loops_kept(schedule, tiles.product, before)
    plain = untensorized(schedule, declare(64, 64, 32, "float16")[0].mod)
    _expect_zeroed_once(plain, around=around)
    for names, around in ((_renamed("init", "compute"), 0), (_renamed("compute", "init"), 2)):
        schedule, tiles = _fragments(k=16, around=around)  # a single step of k_outer
        tensorize_product(schedule, tiles.product, tiles.k_outer, names)
        _expect_instructions(schedule, names, "init", "compute", k=16)
        plain = untensorized(schedule, declare(64, 64, 16, "float16")[0].mod)
        _expect_zeroed_once(plain, around=around)


@PHASE.exercise(
    "tensor_cores",
    engine=CURRENT,
    title="replace loops by tensor-core instructions",
    hints=(
        "Five blocks, five intrinsics: the steps above hold all of them. tensorize compares the "
        "intrinsic with the loops from the given one inwards.",
        "tensorize_product decomposes the reduction and does two of them, tensorize_copies the "
        "other three. In one piece: decompose_reduction, then split, reorder and tensorize of each "
        "copy, and tensorize inside get_child_blocks of the other two.",
        "tensorize_product(schedule, product, k_outer, intrinsics), then tensorize_copies("
        "schedule, load_a, load_b, store, intrinsics).",
    ),
    looks_like="""
        nvcuda::wmma::fill_fragment
        nvcuda::wmma::fill_fragment
        for (int k_0_0 = 0; k_0_0 < 2; ++k_0_0):
          nvcuda::wmma::load_matrix_sync
          for (int ax1_0 = 0; ax1_0 < 2; ++ax1_0):
            nvcuda::wmma::load_matrix_sync
          nvcuda::wmma::mma_sync
          nvcuda::wmma::mma_sync
        for (int ax1_0_1 = 0; ax1_0_1 < 2; ++ax1_0_1):
          nvcuda::wmma::store_matrix_sync
    """,
    demonstrate=lambda tensor_cores: _wmma_calls(tensor_cores),
)
def check_tensor_cores(tensor_cores: Function) -> None:
    from tvm_practice.labs.gpu.on_cpu import matmul_on_cpu, untensorized
    from tvm_practice.tvm_export.cuda import cuda_source, why_no_text

    names = _renamed()
    schedule, tiles = _fragments(around=1)
    before = _around(schedule, tiles.product)
    tensor_cores(schedule, *tiles[:5], given := dict(names))
    _expect_names_kept(given, names)
    _expect_loops_kept(schedule, tiles.product, before)
    used = {str(each.attrs[0]) for each in schedule.trace.insts if each.kind.name == "Tensorize"}
    expect(
        used <= set(names.values()),
        expected="the intrinsics tensorized by the names given",
        seen=", ".join(sorted(used)) or "none",
        look='intrinsics["load_a"] and so on, in schedule.tensorize',
    )
    text = schedule.mod.script()
    for name, where in INTRINSICS.items():
        wanted = 2 if name == "tvm_load_matrix_sync" else 1
        expect(
            text.count(f"T.{name}(") == wanted,
            expected=f"{wanted} statement{'s' * (wanted > 1)} {name}",
            seen=f"{text.count(f'T.{name}(')}",
            look=f"tensorize of {where}",
        )
    _expect_zeroed_once(untensorized(schedule, declare(64, 64, 32, "float16")[0].mod), around=1)
    source = cuda_source(schedule.mod, "sm_80") if why_no_text() is None else None
    expect(
        source is None or ("mma_sync(" in source and "load_matrix_sync(" in source),
        expected="the CUDA text calls nvcuda::wmma::mma_sync",
        seen="it does not",
        look="tensorize",
    )
    got, want = matmul_on_cpu(schedule, 64, 64, 32)
    expect_close(got, want, what="C without tensorize", look="the primitives", atol=1e-3)
    schedule, tiles = _fragments(k=16)  # a single step of k_outer
    tensor_cores(schedule, *tiles[:5], names)
    _expect_zeroed_once(untensorized(schedule, declare(64, 64, 16, "float16")[0].mod), around=0)


def _expect_zeroed_once(plain: Any, *, around: int) -> None:
    """Of a module without tensor-core instructions: the sum is zeroed before k_outer."""
    loops = {each.name: path for path, each in paths(loop_nest(plain["main"]))}
    start, update = loops["C_init"], loops["C"]
    expect(
        shared_loops(start, update) == around + 3,  # two of thread blocks, the warps
        expected="accumulators are set to zero once, before k_outer",
        seen=f"zeroed in {shown_loops(start)}, added to in {shown_loops(update)}",
        look="schedule.decompose_reduction(product, k_outer)",
    )


def _known_as(name: str, called: str, mark: int) -> str:
    """Another name of a tensor intrinsic, with a number at its end."""
    from tvm.s_tir import TensorIntrin

    known = TensorIntrin.get(name)
    other = f"{called}_{mark}"
    TensorIntrin.register(other, known.desc, known.impl, override=True)
    return other


def _wmma_calls(tensor_cores: Function) -> str:
    """The tensor-core calls of the CUDA text, in their order, with their loops."""
    from tvm_practice.labs.gpu.wmma import wmma_intrinsics
    from tvm_practice.tvm_export.cuda import cuda_source, kernel_of

    schedule, tiles = _fragments()
    tensor_cores(schedule, *tiles[:5], wmma_intrinsics())
    return wmma_lines(kernel_of(cuda_source(schedule.mod, "sm_80")))


def wmma_lines(text: str) -> str:
    """Of a kernel's text, the tensor-core calls and the loops."""
    shown = []
    for line in text.splitlines():
        if ("wmma::" in line and "_sync(" in line) or "fill_fragment(" in line:
            name = line.partition("(")[0].strip()
            depth = len(line) - len(line.lstrip())
            shown.append(" " * (depth - 2) + name)
        elif line.strip().startswith("for ("):
            shown.append(line[2:].partition("{")[0].rstrip() + ":")
    return "\n".join(shown)
