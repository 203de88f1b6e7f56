"""What a search measures with, for as long as it lasts."""

import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tvm_practice.tvm_export.tuners.metaschedule.building import open_builder
from tvm_practice.tvm_export.tuners.metaschedule.database import TIMES, recover
from tvm_practice.tvm_export.tuners.metaschedule.recording import Recorder, watching
from tvm_practice.tvm_export.tuners.metaschedule.running import open_runner
from tvm_practice.tvm_export.tuners.progress import Progress
from tvm_practice.tvm_export.tuners.workers import unbound_threads, without_torch


@dataclass(frozen=True)
class Measuring:
    """What `tune_tasks` needs to measure: `builder`, `runner`, and `callback` (progress)."""

    builder: Any
    runner: Any
    callback: Any


@contextmanager
def measuring(contexts: Sequence[Any], trials: int, work_dir: str | Path) -> Iterator[Measuring]:
    """A builder, a runner and a progress callback for tuning `contexts`.

    Inside the block MetaSchedule's tables go to `work_dir`/tuning.log and the time of each trial
    is kept beside the database. Leaving it stops the worker processes, and raises
    NothingMeasured if every trial failed.

    Args:
        contexts: the tasks that will be tuned.
        trials: how many will be measured in total, for the progress display.
        work_dir: folder of the database; created if missing.
    """
    folder = Path(work_dir)
    journal = recover(folder)
    names = [str(context.task_name) for context in contexts]
    log = _log_to(folder / "tuning.log")
    with unbound_threads(), without_torch(), log, Progress("MetaSchedule", trials) as progress:
        built: dict[str, tuple[Any, Any]] = {}
        with open_builder(built) as builder:
            recorder = Recorder(journal, contexts, folder)
            with open_runner(recorder, built, progress) as runner:
                callback = watching(progress, names, folder / TIMES, journal, recorder.times)
                yield Measuring(builder, runner, callback)


class _Tables(logging.FileHandler):
    """A full disk costs the tables, not the search."""

    def handleError(self, record: logging.LogRecord) -> None:
        pass

    def close(self) -> None:
        with suppress(OSError):
            super().close()


@contextmanager
def _log_to(path: Path) -> Iterator[None]:
    """Send what MetaSchedule logs (a table after every round) to a file instead of the screen."""
    logger = logging.getLogger("tvm.s_tir.meta_schedule")
    before = logger.handlers, logger.level, logger.propagate
    handler = _Tables(path)
    handler.setFormatter(logging.Formatter("%(asctime)s %(message)s"))
    logger.handlers, logger.propagate = [handler], False
    logger.setLevel(logging.INFO)
    try:
        yield
    finally:
        logger.handlers, logger.propagate = before[0], before[2]
        logger.setLevel(before[1])
        handler.close()
