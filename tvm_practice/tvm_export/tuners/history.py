"""What a tuner tried: one record for AutoTVM, Ansor and MetaSchedule.

Each tuner's `history` reads its own log into `Trial`s; what is asked of them is here.
"""

import json
import statistics
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

from tvm_practice.tvm_export.errors import NothingMeasured
from tvm_practice.wording import number_of

# What made a function: a tuner's record; a default schedule; or one that replaced a slower record.
MadeBy = Literal["record", "rule", "fallback"]

# What a database of MetaSchedule's holds above in place of times for a trial that failed.
FAILED_SECONDS = 1e9


@dataclass(frozen=True)
class Trial:
    """One candidate that a tuner built and ran.

    Attributes:
        number: 1 for the first of the log.
        seconds: mean time of a run; None if the trial failed.
        error: why it failed; None if it did not.
        elapsed: seconds from the start of tuning to the result; None where the log has no times.
        task: which task it is of, as the log names it.
    """

    number: int
    seconds: float | None
    error: str | None = None
    elapsed: float | None = None
    task: str = ""

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True)
class Row:
    """A line of a tuner's log, before it is numbered; `timestamp` is seconds since the epoch."""

    seconds: float | None
    error: str | None
    timestamp: float | None
    task: str


def mean_seconds(runs: Iterable[Any]) -> float:
    """The mean of a trial's times, numbers of whatever type the engine gives them."""
    return statistics.fmean(float(each) for each in runs)


def number_trials(rows: Iterable[Row], started: float | None) -> list[Trial]:
    """Number the rows of a log and count their time from `started` (None: from the first row)."""
    trials = []
    for number, row in enumerate(rows, start=1):
        if started is None:
            started = row.timestamp
        elapsed = row.timestamp - started if row.timestamp and started else None
        trials.append(Trial(number, row.seconds, row.error, elapsed, row.task))
    return trials


def best_so_far(trials: Sequence[Trial]) -> list[float | None]:
    """After each trial, the least `seconds` until then; None before the first valid one."""
    best: float | None = None
    curve = []
    for trial in trials:
        if trial.seconds is not None:
            best = trial.seconds if best is None else min(best, trial.seconds)
        curve.append(best)
    return curve


def best_trial(trials: Sequence[Trial]) -> Trial | None:
    """The fastest valid trial; None if there is none."""
    valid = [trial for trial in trials if trial.seconds is not None]
    return min(valid, key=lambda trial: trial.seconds or 0.0, default=None)


def count_errors(trials: Iterable[Trial]) -> Counter[str]:
    """How many trials failed for which reason."""
    return Counter(trial.error for trial in trials if trial.error is not None)


def summary(trials: Sequence[Trial], before: int = 0) -> dict[str, Any]:
    """What metadata.json says of a log.

    Args:
        trials: all of it.
        before: how many of them an earlier run had measured.

    Returns:
        {"trials", "trials_of_earlier_runs", "errors", "best_ms": {task: best time}}.
    """
    best: dict[str, float] = {}
    for trial in trials:
        if trial.seconds is not None:
            milliseconds = trial.seconds * 1e3
            best[trial.task] = min(best.get(trial.task, milliseconds), milliseconds)
    return {
        "trials": len(trials),
        "trials_of_earlier_runs": before,
        "errors": count_errors(trials).total(),
        "best_ms": best,
    }


def nothing_to_tune(tuner: str) -> dict[str, Any]:
    """What metadata.json says of a tuner for which a model has no task."""
    note = f"the model has no task that {tuner} can tune: it is exported untuned"
    return summary([]) | {"tasks": 0, "note": note}


def require_valid(trials: Sequence[Trial], tuner: str) -> None:
    """Raise NothingMeasured if no trial of `tuner` gave a time."""
    if best_trial(trials) is None:
        raise NothingMeasured(nothing_measured(tuner, len(trials), count_errors(trials)))


def nothing_measured(tuner: str, trials: int, errors: Counter[str]) -> str:
    """The message of NothingMeasured."""
    if trials == 0:
        return f"{tuner} measured nothing: it tried no schedule"
    reasons = "; ".join(
        f"{number_of(count, 'time')}: {reason}" for reason, count in errors.most_common(3)
    )
    return f"{tuner} measured nothing: all of its {trials} trials failed ({reasons})"


def json_lines(path: Path) -> Iterator[Any]:
    """The values of a log with one JSON text a line; a last line cut short is left out."""
    for line in path.read_text().splitlines(keepends=True):
        if line.endswith("\n"):
            yield json.loads(line)


def prepare_log(path: Path) -> None:
    """Make a log ready to be appended to: its folder exists, and its last line is whole.

    A tuner that is killed while it writes leaves part of a line, which would spoil the next.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    if not path.exists():
        return
    with path.open("rb+") as file:
        text = file.read()
        whole = text.rfind(b"\n") + 1
        if whole < len(text):
            print(f"{path}: its last line was cut short and is dropped", flush=True)
            file.truncate(whole)
