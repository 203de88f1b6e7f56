"""AutoTVM's records held against the configurations that TOPI takes without any."""

from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from statistics import mean
from typing import Any

from tvm_practice.tvm_export.rules.gpu import compiling_kernels
from tvm_practice.tvm_export.targets import device_of
from tvm_practice.tvm_export.tuners.remote import device_on, sent, session
from tvm_practice.tvm_export.tuners.search import Search


@dataclass(frozen=True)
class Finalists:
    """The best record of each task, as `apply_history_best` takes them.

    Attributes:
        faster: those that beat the configuration TOPI takes without records.
        slower: those that do not.
    """

    faster: list[Any]
    slower: list[Any]


def faster_than_fallback(tasks: Sequence[Any], log: Path, *, search: Search) -> Finalists:
    """The best record of each task, held against the configuration TOPI takes without records.

    Args:
        tasks: AutoTVM tasks of one target.
        log: records of theirs.
        search: whose servers measure, if it has any.

    Raises BadInput: no server answers.
    """
    from tvm import autotvm
    from tvm.autotvm.task.space import FallbackConfigEntity

    best: dict[Any, tuple[float, Any]] = {}
    for measured, result in autotvm.record.load_from_file(str(log)):
        workload = measured.task.workload
        if result.error_no:
            continue
        seconds = mean(result.costs)
        if seconds < best.get(workload, (float("inf"),))[0]:
            best[workload] = (seconds, (measured, result))
    found = Finalists([], [])
    for task in tasks:
        if task.workload not in best:
            continue
        record = best[task.workload][1]
        place = session(search) if search.tracker is not None else nullcontext()
        with place as remote:
            faster = _config_is_faster(task, record[0].config, FallbackConfigEntity(), remote)
        (found.faster if faster else found.slower).append(record)
    return found


def _config_is_faster(task: Any, one: Any, other: Any, remote: Any) -> bool:
    """Whether a task runs faster with configuration `one` than with `other`, timed in turns.

    Args:
        task: of AutoTVM.
        one: a configuration of its template.
        other: another.
        remote: the session of a server to time on; None: here.
    """
    import numpy as np
    import tvm

    device = device_of(task.target) if remote is None else device_on(remote, task.target)
    timers = []
    for number, config in enumerate((one, other)):
        with task.target, compiling_kernels(task.target):
            schedule, tensors = task.instantiate(config)
            function = tvm.build(schedule, tensors, target=task.target)
        if remote is not None:
            function = sent(remote, function, f"configuration{number}.tar")
        random = np.random.default_rng(0)
        arguments = [
            tvm.nd.array(
                random.standard_normal([int(extent) for extent in each.shape]).astype(each.dtype),
                device,
            )
            for each in tensors
        ]
        timer = function.time_evaluator(
            function.entry_name, device, number=1, repeat=1, min_repeat_ms=10
        )
        timers.append((timer, arguments))
    rounds = [[timer(*arguments).mean for timer, arguments in timers] for _ in range(5)]
    first, second = np.median(rounds, axis=0)
    return bool(first < second)
