"""The end of a search: its fastest schedules beside each other and the default one, in turns.

A trial runs the same function again and again, its weights in the cache, as in no model. And which
of two schedules is faster can change with the moment on a machine that others share: of a product
of 1024 on two cores, tiles of 6 x 64 took 9.4 ms and of 4 x 64 10.4 at one moment, and 7.4 and 7.1
at another. So a record is judged by two moments, its trial's and this one's.
"""

import itertools
import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from tvm_practice.tvm_export.compiling import ALONE, compiling
from tvm_practice.tvm_export.errors import NotApplicable
from tvm_practice.tvm_export.rules import cpu, gpu
from tvm_practice.tvm_export.rules.cpu.loops import CONSTANTS
from tvm_practice.tvm_export.targets import device_of
from tvm_practice.tvm_export.tuners.history import MadeBy, mean_seconds

# So many of a function's records are timed again, more where functions are few, and none that took
# this much longer than the best: the machine does not explain more.
_FEWEST, _MOST, _IN_ALL, _CLOSE = 3, 8, 24, 1.4
_ROUNDS, _SAMPLE_SECONDS = 11, 0.01
# Weights that pass between two uses of one: more than a core's own caches hold.
_PASSING_BYTES, _MOST_COPIES = 64 << 20, 256
# The seconds of a call of each module's "main", which of whose parameters are weights, on a target.
Times = Callable[[list[Any], set[int], Any], list[float]]


@dataclass(frozen=True)
class Finalists:
    """What became of a search's records.

    Attributes:
        chosen: a database in memory, with the best record of each function where that is faster
            than the default schedule.
        best: another, with those that are slower too: the tuner's own result.
        kept: how many distinct functions are in `chosen`.
        slower: how many are in `best` alone.
    """

    chosen: Any
    best: Any
    kept: int
    slower: int

    def made_by(self, module: Any) -> dict[str, MadeBy]:
        """By name, what a module's functions that have a record are to be scheduled by."""
        import tvm
        from tvm.s_tir.meta_schedule.tune_context import _normalize_mod

        found: dict[str, MadeBy] = {}
        for name, function in module.functions_items():
            if isinstance(function, tvm.tirx.PrimFunc):
                alone = _normalize_mod(function)
                if self.best.has_workload(alone):
                    kept = self.chosen.has_workload(alone)
                    found[str(name.name_hint)] = "record" if kept else "fallback"
        return found


def fastest_records(
    module: Any, database: Any, target: Any, *, times: Times | None = None
) -> Finalists:
    """Time the best records of each function in turns with its default schedule.

    The best is the one with the least product of its trial's time and the time taken here. It has
    to be faster than the default schedule here.

    Args:
        module: an IRModule of unscheduled PrimFuncs; equal functions in it are timed once.
        database: a meta_schedule.Database; it is only read.
        target: what it was tuned for.
        times: see `Times`; None: here, on the target's device.
    """
    from tvm.s_tir import meta_schedule as ms

    chosen, best = ms.database.MemoryDatabase(), ms.database.MemoryDatabase()
    kept = slower = 0
    searched = _searched(module, database)
    most = max(_FEWEST, min(_MOST, _IN_ALL // max(1, len(searched))))
    for function, alone in searched:
        records = _scheduled(_contenders(database, alone, most), alone, target)
        if not records:
            continue
        record, is_faster = _winner(function, records, target, times or times_in_turns)
        kept, slower = kept + is_faster, slower + (not is_faster)
        for each in (best, chosen) if is_faster else (best,):
            each.commit_tuning_record(
                ms.database.TuningRecord(
                    record.trace,
                    each.commit_workload(alone),
                    record.run_secs,
                    record.target,
                    record.args_info,
                )
            )
    return Finalists(chosen, best, kept, slower)


def _searched(module: Any, database: Any) -> list[tuple[Any, Any]]:
    """The distinct functions of a module that a database knows, each also alone in a module."""
    import tvm
    import tvm_ffi
    from tvm.s_tir.meta_schedule.tune_context import _normalize_mod

    found: dict[int, tuple[Any, Any]] = {}
    for _, function in module.functions_items():
        if isinstance(function, tvm.tirx.PrimFunc):
            alone = _normalize_mod(function)
            if database.has_workload(alone):
                found.setdefault(tvm_ffi.structural_hash(alone), (function, alone))
    return list(found.values())


def _scheduled(records: list[Any], alone: Any, target: Any) -> list[tuple[Any, Any]]:
    """Records of a function, each with the module it makes.

    Those that make none are left out: another version of the rules may have written them.
    """
    import tvm

    found = []
    for record in records:
        try:
            found.append((record, cpu.schedule_candidate(_applied(record, alone), target)))
        except (NotApplicable, tvm.s_tir.ScheduleError):
            continue
    return found


def _winner(
    function: Any, scheduled: list[tuple[Any, Any]], target: Any, times: Times
) -> tuple[Any, bool]:
    """The best of a function's records, and whether it is faster than the default schedule.

    Args:
        function: unscheduled.
        scheduled: see `_scheduled`.
        target, times: as `fastest_records` takes them.
    """
    records, programs = [each for each, _ in scheduled], [each for _, each in scheduled]
    default = schedule_default(function, target)
    if not any(_same(default, each) for each in programs):  # else a record speaks for it
        programs.append(default)
    constants = {int(each) for each in (function.attrs or {}).get(CONSTANTS, ())}
    seconds = times(programs, constants, target)
    products = [
        now * mean_seconds(record.run_secs)
        for now, record in zip(seconds[: len(records)], records, strict=True)
    ]
    winner = products.index(min(products))
    has_default = len(seconds) > len(records)
    return records[winner], not (has_default and seconds[-1] < seconds[winner])


def schedule_default(function: Any, target: Any) -> Any:
    """A module of one function, its "main" with the default schedule of the target's kind."""
    return (gpu if "gpu" in target.keys else cpu).schedule_default(function, target)


def _contenders(database: Any, module: Any, most: int) -> list[Any]:
    """The records of a module that ran, fastest first, as many as are timed again."""
    records = list(database.get_top_k(database.commit_workload(module), most))
    return [
        each
        for each in records
        if mean_seconds(each.run_secs) <= _CLOSE * mean_seconds(records[0].run_secs)
    ]


def _applied(record: Any, module: Any) -> Any:
    """The "main" of a module with a record's schedule."""
    import tvm

    schedule = tvm.s_tir.Schedule(module)
    record.trace.apply_to_schedule(schedule, remove_postproc=False)
    return schedule.mod["main"]


def _same(one: Any, other: Any) -> bool:
    """Whether the "main" of two modules are the same loops, whatever their attributes."""
    import tvm
    import tvm_ffi

    first, second = (
        tvm.tirx.PrimFunc(each["main"].params, each["main"].body, each["main"].ret_type)
        for each in (one, other)
    )
    return bool(tvm_ffi.structural_equal(first, second))


def times_in_turns(modules: list[Any], constants: set[int], target: Any) -> list[float]:
    """The seconds of a call of each module's "main", timed in turns.

    Args:
        modules: with parameters that mean the same.
        constants: which parameters are weights. Between two runs of a model its other layers'
            weights pass through the cache; here further copies of these do.
        target: to compile for.
    """
    import numpy as np
    import tvm

    device = device_of(target)
    turns = []
    for module in modules:
        with compiling(target, ALONE):
            run = tvm.compile(module, target=target)["main"]
        arguments = _arguments(module["main"], constants, device)
        turns.append((run, arguments, device))
        run(*next(arguments))
    calls = [max(1, int(_SAMPLE_SECONDS / _seconds_of(*turn, calls=3))) for turn in turns]
    rounds = [
        [_seconds_of(*turn, calls=count) for turn, count in zip(turns, calls, strict=True)]
        for _ in range(_ROUNDS)
    ]
    return [float(each) for each in np.median(rounds, axis=0)]


def _seconds_of(run: Any, arguments: Iterator[list[Any]], device: Any, *, calls: int) -> float:
    """The seconds of a call, the mean of several."""
    given = [next(arguments) for _ in range(calls)]
    device.sync()
    started = time.perf_counter()
    for each in given:
        run(*each)
    device.sync()
    return (time.perf_counter() - started) / calls


def _arguments(function: Any, constants: set[int], device: Any) -> Iterator[list[Any]]:
    """Tensors for a PrimFunc's parameters, without end, its constants other copies each time.

    See `values_for`.
    """
    import tvm

    values = values_for(function)
    weights = sum(values[each].nbytes for each in constants)
    copies = min(_MOST_COPIES, math.ceil(_PASSING_BYTES / weights)) if weights else 1
    given = [tvm.runtime.tensor(each, device) for each in values]
    return itertools.cycle(
        [
            [
                tvm.runtime.tensor(values[index], device) if copy and index in constants else each
                for index, each in enumerate(given)
            ]
            for copy in range(copies)
        ]
    )


def values_for(function: Any) -> list[Any]:
    """An array for each parameter of a PrimFunc: normal values, or zeros where it holds indices."""
    import numpy as np

    random = np.random.default_rng(0)
    values = []
    for buffer in function.params:
        shape, dtype = [int(extent) for extent in buffer.shape], str(buffer.dtype)
        value = random.standard_normal(shape) if "float" in dtype else np.zeros(shape)
        values.append(value.astype(dtype))
    return values
