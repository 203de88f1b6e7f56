"""What test_finals.py runs in the current engine's process."""

from typing import Any
from unittest.mock import patch

_N = 256


def _matmul() -> Any:
    """Two equal functions in a module, as two layers of a model are."""
    import tvm
    from tvm import te

    from solutions.te_basics import matmul

    function = te.create_prim_func(matmul(_N, _N, _N)).without_attr("global_symbol")
    return tvm.IRModule({"first": function, "second": function})


def chosen() -> dict[str, Any]:
    """How records fare, whose times in the database are not those that they take.

    Returns:
        By what the records are: how many functions got one, how many kept the default, the
        time in the database of the record that was chosen, how many functions of the module
        have it applied, and what made each of them.
    """
    import tvm
    from tvm.s_tir import meta_schedule as ms
    from tvm.s_tir.meta_schedule.tune_context import _normalize_mod

    from solutions.auto_tune import apply_metaschedule
    from tvm_practice.engines import host_target
    from tvm_practice.tvm_export.rules.cpu.contraction import TileChoice
    from tvm_practice.tvm_export.tuners import finals
    from tvm_practice.tvm_export.tuners.tile_space import ranked_choices, scheduled_by

    target, module = host_target(), _matmul()
    alone = _normalize_mod(module["first"])
    loops = tvm.s_tir.Schedule(alone)
    loops.split(loops.get_loops(loops.get_sblock("C"))[0], [None, 2])
    tiles = scheduled_by(alone, target, ranked_choices(alone["main"], target)[0])
    refused = scheduled_by(alone, target, TileChoice(4, 2, 1, chunks=7))  # of a sum of 256

    def choose(*records: tuple[Any, float]) -> list[Any]:
        database = ms.database.MemoryDatabase()
        workload = database.commit_workload(alone)
        for schedule, seconds in records:
            database.commit_tuning_record(
                ms.database.TuningRecord(schedule.trace, workload, [seconds], target)
            )
        found = finals.fastest_records(module, database, target)
        applied = apply_metaschedule(module, found.chosen, target)
        changed = sum(not applied[name].same_as(module[name]) for name in ("first", "second"))
        record = found.chosen.query_tuning_record(alone, target, "main")
        time = None if record is None else float(record.run_secs[0])
        return [found.kept, found.slower, time, changed, found.made_by(module)]

    verdicts = {"loops beside the default": choose((loops, 1e-6)), "none": choose()}
    verdicts["a tile that is refused"] = choose((refused, 1e-6))
    with patch.object(finals, "schedule_default", lambda *_: alone):
        verdicts["loops and tiles beside loops"] = choose((loops, 1.0e-6), (tiles, 1.2e-6))
        verdicts["tiles far behind"] = choose((loops, 1.0e-6), (tiles, 9e-6))
    return verdicts
