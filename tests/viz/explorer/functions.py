"""Functions that the tests of the explorer call in a child process with current TVM."""

import re
from pathlib import Path
from typing import Any


def _instructions(assembly: str) -> list[str]:
    kept = []
    for line in assembly.splitlines():
        if line.startswith("\t") and not line.strip().startswith((".", "#")):
            kept.append(" ".join(line.partition("#")[0].split()))
    return kept


def looked_at(name: str, size: int) -> dict[str, Any]:
    """A schedule of the course's matmul as the page takes it, beside TVM's own assembly.

    Returns:
        {"explored", "same": whether the located function has the instructions of `tvm.compile`,
        "shown": whether all shown instructions are among those, in order}.
    """
    import tvm

    from tvm_practice import engines
    from tvm_practice.course.tours.matmuls import matmul_makers
    from tvm_practice.viz.explorer.explored import explored
    from tvm_practice.viz.explorer.native import compiled
    from tvm_practice.viz.explorer.tir_lines import located

    make = matmul_makers(size, tile=(8, 16))[name]
    module, target = make().mod, engines.host_target()
    plain = _instructions(tvm.compile(module, target=target).mod.inspect_source("asm"))
    _, function = located(module["main"])
    own = _instructions(compiled(function, target).inspect_source("asm"))
    found = explored(name, make)
    rest = iter(plain)
    shown = _instructions("\n".join(re.sub(r"^ +", "\t", text) for text, _ in found["asm"]))
    return {"explored": found, "same": plain == own, "shown": all(each in rest for each in shown)}


def distances(size: int) -> dict[str, Any]:
    """Reuse of a product in tiles: by the compiled counter, and by a plain LRU list."""
    from tvm_practice.course.tours.matmuls import matmul_makers
    from tvm_practice.viz.access import access_program, follow
    from tvm_practice.viz.cache import touched_buffers
    from tvm_practice.viz.reuse import reuse_histograms

    program = access_program(matmul_makers(size, tile=(4, 8))["tiled"]().mod)
    limit = 20_000
    histograms = reuse_histograms(program, touches=limit)
    plain = follow(program, limit=limit).reuse_distances()
    names = [program.buffers[number].name for number in touched_buffers(program)]
    return {
        "counted": {
            name: sum(histograms[at] for at, each in enumerate(names) if each == name).tolist()
            for name in names
        },
        "plain": {name: each.tolist() for name, each in plain.items()},
    }


def strides(name: str) -> list[list[Any]]:
    """[buffer, writes, stride, whether its line is known] of each access of a small product."""
    from tvm_practice.course.tours.matmuls import matmul_makers
    from tvm_practice.viz.access import access_program
    from tvm_practice.viz.explorer.tir_lines import located
    from tvm_practice.viz.strides import touches

    _, function = located(matmul_makers(32, tile=(8, 16))[name]().mod["main"])
    program = access_program(function)
    return [
        [program.buffers[each.buffer].name, each.write, each.stride, each.line > 0]
        for each in touches(program)
    ]


def beside(size: int) -> dict[str, Any]:
    """What stands beside the lines of the parallel tiled product, and of a gather."""
    from tvm import te

    from tvm_practice.course.tours.matmuls import matmul_makers
    from tvm_practice.viz.explorer.figures import figures
    from tvm_practice.viz.explorer.tir_lines import located

    X, I = te.placeholder((100,), name="X"), te.placeholder((10,), "int32", name="I")
    gather = te.create_prim_func([X, I, te.compute((10,), lambda i: X[I[i]], name="Y")])
    made = matmul_makers(size, tile=(8, 16))["tiled+parallel"]().mod["main"]
    return {"tiled": figures(*located(made)), "gather": figures(*located(gather))}


def advised(folder: str, size: int) -> dict[str, Any]:
    """The best record of this project's own tuner, as the page takes it.

    Such a record has a tile's sizes alone; the weight is a constant, packed ahead.
    """
    import tvm
    from tvm.s_tir import meta_schedule as ms

    from tvm_practice import engines
    from tvm_practice.course.tours.matmuls import matmul_makers
    from tvm_practice.tvm_export.rules.cpu.loops import CONSTANTS
    from tvm_practice.tvm_export.tuners.tile_space import tile_space
    from tvm_practice.viz.explorer.explored import explored
    from tvm_practice.viz.explorer.tuned import tuned_makers

    database = ms.database.JSONDatabase(work_dir=folder)
    target = tvm.target.Target(engines.host_target())
    plain = matmul_makers(size)["naive"]().mod["main"]
    start = tvm.IRModule({"main": plain.with_attr(CONSTANTS, [1])})
    schedule = tvm.s_tir.Schedule(start, seed=3)
    tile_space(target)(schedule)
    found = ms.database.TuningRecord(
        schedule.trace, database.commit_workload(start), [1e-3], target,
        ms.arg_info.ArgInfo.from_prim_func(start["main"]),
    )  # fmt: skip
    database.commit_tuning_record(found)
    (make,) = tuned_makers(Path(folder)).values()
    return explored("tuned", make)


def record(folder: str, size: int) -> list[str]:
    """Leave two records of a product as MetaSchedule does; the primitives of the faster one."""
    import tvm
    from tvm.s_tir import meta_schedule as ms

    from solutions.auto_tune import metaschedule_space
    from tvm_practice import engines
    from tvm_practice.course.tours.matmuls import matmul_makers

    database = ms.database.JSONDatabase(work_dir=folder)
    for seed, seconds in ((3, 2e-3), (4, 1e-3)):
        start = matmul_makers(size)["naive"]().mod
        schedule = tvm.s_tir.Schedule(start, seed=seed)
        metaschedule_space(schedule)
        target = tvm.target.Target(engines.host_target())
        workload = database.commit_workload(start)
        found = ms.database.TuningRecord(
            schedule.trace, workload, [seconds], target,
            ms.arg_info.ArgInfo.from_prim_func(start["main"]),
        )  # fmt: skip
        database.commit_tuning_record(found)
    return [str(each) for each in schedule.mod["main"].script(syntax_sugar=False).splitlines()]
