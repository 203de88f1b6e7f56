"""Phase 5, and what checks of several tuners expect: logs, calls, loops, records applied."""

import contextlib
import inspect
import json
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

from tvm_practice.course.catalog import Phase
from tvm_practice.course.expect import draw_distinct, expect, fail
from tvm_practice.course.lowering import build_schedule
from tvm_practice.course.nests import accumulation, expect_loops
from tvm_practice.course.products import expect_product
from tvm_practice.course.tuning_logs import Records, classic_nest, draw_seconds, expect_best
from tvm_practice.engines import CLASSIC, CURRENT
from tvm_practice.tvm_export.tuners.journal import Journal
from tvm_practice.tvm_export.tuners.progress import Progress
from tvm_practice.viz.loop_nest import Loop, Node, format_nest, paths

PHASE = Phase(
    number=5,
    module="auto_tune",
    title="auto-tuning",
    lanes=(CURRENT, CLASSIC),
    builds_on=(
        "te_basics.matmul",
        "manual_schedule.tile",
        "manual_schedule.vectorize",
        "manual_schedule.parallelize",
        "manual_schedule.packed_matmul",
        "manual_schedule.tile_classic",
    ),
    question="Why does Ansor often beat hand-written schedules? What is the trade-off?",
)


def expect_schedule(returned: Any, name: str) -> tuple[Any, list[Any]]:
    """`returned` is (te.Schedule, tensors)."""
    from tvm import te

    # A pair may be TVM's array as well, which is what apply_steps_from_state returns.
    pair = list(returned) if hasattr(returned, "__len__") and len(returned) == 2 else []
    expect(
        bool(pair) and isinstance(pair[0], te.schedule.Schedule),
        expected=f"{name} returns (schedule, tensors)",
        seen=f"{type(returned).__name__}"
        + (f" of length {len(returned)}" if hasattr(returned, "__len__") else ""),
        look="the return statement",
    )
    return pair[0], list(pair[1])


@contextmanager
def new_log() -> Iterator[Path]:
    """A file that is not there yet, in a folder that is gone afterwards."""
    with tempfile.TemporaryDirectory() as folder:
        yield Path(folder) / "log.json"


def expect_records(log: Path, look: str) -> None:
    expect(
        log.exists() and bool(log.read_text().strip()),
        expected=f"records in {log.name}",
        seen="no such file" if not log.exists() else "an empty file",
        look=look,
    )


def expect_trials(trials: Sequence[Any], asked: int, look: str) -> None:
    """The log has as many trials as were asked for, and none failed."""
    from tvm_practice.tvm_export.tuners import count_errors

    errors = count_errors(trials)
    expect(
        not errors,
        expected="trials that could be built and run",
        seen=f"{errors.total()} of {len(trials)} failed: {', '.join(errors)}",
        look="the builder and the runner: those of `measuring` work, TVM's defaults may not",
    )
    expect(
        len(trials) == asked,
        expected=f"{asked} trials in the log, as many as asked for",
        seen=f"{len(trials)}",
        look=look,
    )


def expect_different(nests: Sequence[list[Node]], expected: str, look: str) -> None:
    """The nests are not all the same."""
    expect(
        len({format_nest(nest) for nest in nests}) > 1,
        expected=expected,
        seen=f"the same loops in all of {len(nests)}",
        look=look,
    )


def all_loops(nest: list[Node]) -> list[Loop]:
    return [loop for loops, _ in paths(nest) for loop in loops]


def expect_vectorized_and_parallel(nests: Sequence[list[Node]]) -> None:
    """Where the sum adds up, the innermost loop is vectorized and the outermost parallel."""
    sums = [accumulation(nest)[0] for nest in nests]
    for loops, nest in zip(sums, nests, strict=True):
        kinds = {loop.kind for loop in all_loops(nest)}  # a loop of one iteration may be dropped
        expect_loops(
            "vectorized" not in kinds or loops[-1].kind == "vectorized",
            loops,
            "the innermost loop is vectorized, that of the sum and not of a copy alone",
            "vectorize of the loop over the columns of a tile, last in reorder",
        )
        expect_loops(
            "parallel" not in kinds or loops[0].kind == "parallel",
            loops,
            "the tiles are shared among the threads: the outermost loop is parallel",
            "parallel of the fused outer tile loops",
        )
    for at, kind, expected, look in (
        (-1, "vectorized", "the innermost loop is vectorized, of two lanes or more",
         "vectorize of the loop over the columns of a tile, last in reorder"),
        (0, "parallel", "the tiles are shared among the threads",
         "parallel of the fused outer tile loops"),
    ):  # fmt: skip
        found = [loops[at] for loops in sums if loops and loops[at].kind == kind]
        expect_loops(any(int(each.extent) > 1 for each in found), sums[-1], expected, look)


Called = list[dict[str, Any]]


@contextmanager
def calls_of(
    owner: Any, name: str, *, instead: Any = None, also: Sequence[Any] = (), like: Any = None
) -> Iterator[Called]:
    """The arguments of each call of `owner`'s function `name`, by their names.

    With `instead`, that is what a call does. Modules in `also` have the function under that name
    as well. `like` has its signature, where it hands all its arguments on.
    """
    function, seen = getattr(owner, name), []
    signature = inspect.signature(like or function)

    def call(*arguments: Any, **options: Any) -> Any:
        bound = signature.bind(*arguments, **options)
        bound.apply_defaults()
        seen.append({**bound.arguments, **bound.arguments.get("kwargs", {})})
        return (instead or function)(*arguments, **options)

    with contextlib.ExitStack() as patches:
        for each in (owner, *also):
            patches.enter_context(mock.patch.object(each, name, call))
        yield seen


@contextmanager
def measuring_calls() -> Iterator[dict[str, Called]]:
    """What the `measuring` of a tuner is asked for: its displays of progress, and its journals.

    And "shown": the trials that the displays are told of.
    """
    with (
        calls_of(Progress, "__init__") as displays,
        calls_of(Progress, "add") as shown,
        calls_of(Journal, "__init__") as journals,
    ):
        yield {"displays": displays, "shown": shown, "journals": journals}


def expect_measuring(
    calls: dict[str, Called], trials: int, log: str | Path, *, rounded_up_to: int | None = None
) -> None:
    """`measuring`, if it is called, is given the number of trials and the log, or the folder.

    With `rounded_up_to`, its number may be as large: that of whole rounds.
    """
    most = max(trials, rounded_up_to or 0)
    for display in calls["displays"]:
        expect(
            trials <= display["trials"] <= most,
            expected=f"progress shown of {trials} trials, as many as asked for",
            seen=f"of {display['trials']}",
            look="the second argument of measuring: it is the end of the progress bar, and the "
            "time left is worked out from it",
        )
    for journal in calls["journals"]:
        files = Path(journal["log"]), Path(journal["log"]).parent
        expect(
            Path(log) in files,
            expected=f"measuring(…, {Path(log).name}): the records are kept there",
            seen=str(files[0]),
            look="the last argument of measuring: a search that is killed loses no trial, because "
            "the next one recovers them from a journal beside the log",
        )


def expect_progress(callbacks: Any, look: str, shown: Called | None = None) -> None:
    """There is a callback beside the one that writes the records, or one that does both.

    `shown` are the trials that the display was told of; None: nothing was measured.
    """
    count = len(list(callbacks or ()))
    expect(
        count > 1 or (count == 1 and (shown is None or bool(shown))),
        expected="a callback that writes the records, and one that shows progress",
        seen=f"{count} callback{'s' * (count != 1)}",
        look=f"{look}: measure.callback is the one that shows progress",
    )


def check_apply(
    apply: Callable[..., Any],
    make_task: Callable[..., Any],
    write_log: Callable[..., Records],
    *,
    best: str,
    refused: str,
    error: type[Exception],
) -> None:
    """`apply` takes the best record of a log, and none of another task's."""
    m, n, k = draw_distinct(3, range(33, 64))
    task = make_task((m, n, k))
    with new_log() as log:
        records = write_log(task, log, draw_seconds(5))
        schedule, tensors = expect_schedule(apply(task, str(log)), apply.__name__)
        expect_best(classic_nest(schedule), records, best)
        expect_product(
            build_schedule(schedule, tensors),
            (m, k),
            (k, n),
            look="the tensors that are returned",
        )
        _expect_best_of_another_log(apply, task, write_log, records, best)
        # A log may have the records of many searches.
        lines = log.read_text().splitlines()
        of_others = [line for line in lines if _failed(json.loads(line))][:1]
        (many,) = draw_distinct(1, range(1100, 2100))
        before, after = (of_others * int(part) for part in (many // 2, many - many // 2))
        log.write_text("\n".join([*before, *lines, *after, ""]))
        schedule, _ = apply(task, str(log))
        expect_best(classic_nest(schedule), records, f"{best}; this log has {many} records more")
        log.write_text("\n".join([*lines, ""]))
        for other in ((m + 7, n, k), (2 * m, n, k)):
            _expect_refused(apply, make_task(other), log, refused, error)
        # That of a trial that failed is none.
        failed = [line for line in log.read_text().splitlines() if _failed(json.loads(line))]
        log.write_text("\n".join([*failed, ""]))
        _expect_refused(apply, task, log, refused, error)


def _expect_best_of_another_log(
    apply: Callable[..., Any],
    task: Any,
    write_log: Callable[..., Records],
    before: Records,
    look: str,
) -> None:
    """`apply` takes the best of a log in which another schedule is the best than `before`."""
    found = before
    while found.nests[found.best] == before.nests[before.best]:
        with new_log() as log:
            found = write_log(task, log, draw_seconds(5))
            schedule, _ = apply(task, str(log))
            expect_best(classic_nest(schedule), found, look)


def _failed(record: dict[str, Any]) -> bool:
    """Whether a line of a log is of a trial that failed, in AutoTVM's form or in Ansor's."""
    return bool((record["result"] if "result" in record else record["r"])[1])


def _expect_refused(
    apply: Callable[..., Any], task: Any, log: Path, look: str, error: type[Exception]
) -> None:
    """`apply` raises for a task that the log has no valid record of."""
    before = log.read_text()
    try:
        apply(task, str(log))
    except error:
        expect(
            log.read_text() == before,
            expected="a log that is only read",
            seen="it was changed",
            look="the statement that writes to the log",
        )
        return
    except (ValueError, RuntimeError, AttributeError, TypeError, KeyError) as other:
        raise fail(
            f"{error.__name__} when the log has no valid record of the task",
            f"{type(other).__name__}: {other}"[:200],
            f"the docstring's Raises; {look}",
        ) from other
    raise fail(
        "an error when the log has no valid record of the task",
        "a schedule, which was never measured",
        look,
    )
