"""How well a tuner's cost model foresaw what was measured: its log, gone through again in order.

A tuner measures in rounds. Before each it ranks candidates by its model, after each it fits the
model to its measurements. Going through the log again with a fresh model of the same kind gives
the prediction that the search could have had of each trial: made from the rounds before, never
from the trial itself. All trials of a log must be of one task.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from tvm_practice.tvm_export.tuners.history import mean_seconds


@dataclass(frozen=True)
class Prediction:
    """One trial as the model saw it before it was measured.

    Attributes:
        number: 1 for the first of the log.
        score: the model's; higher is faster. Scales differ between tuners: compare ranks.
        seconds: measured.
    """

    number: int
    score: float
    seconds: float

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


def rank_correlation(predictions: Sequence[Prediction]) -> float | None:
    """Kendall's tau-b between predicted and measured speed: 1 in the same order, 0 by chance.

    None for fewer than four trials, or where all scores are equal.
    """
    from scipy.stats import kendalltau

    if len(predictions) < 4 or len({each.score for each in predictions}) < 2:
        return None
    found = kendalltau(
        [each.score for each in predictions], [-each.seconds for each in predictions]
    )
    return float(found.statistic)


def _in_rounds(
    trials: Sequence[tuple[Any, float | None]], size: int, predict: Any, update: Any
) -> list[Prediction]:
    """Predict each round from those before it.

    Args:
        trials: (candidate, seconds or None if it failed) in order.
        predict: from candidates to scores.
        update: takes one round's trials.
    """
    found: list[Prediction] = []
    for start in range(0, len(trials), size):
        batch = trials[start : start + size]
        if start:
            scores = predict([candidate for candidate, _ in batch])
            found += [
                Prediction(start + at + 1, float(score), seconds)
                for at, (score, (_, seconds)) in enumerate(zip(scores, batch, strict=True))
                if seconds is not None
            ]
        update(batch)
    return found


def predict_metaschedule(context: Any, work_dir: str | Path, *, size: int) -> list[Prediction]:
    """MetaSchedule's model over a work_dir; current engine.

    Args:
        context: the meta_schedule.TuneContext that was tuned.
        size: trials in a round.
    """
    from tvm.s_tir import meta_schedule as ms

    from tvm_practice.tvm_export.tuners import metaschedule

    database = metaschedule.open_database(work_dir)
    times = [trial.seconds for trial in metaschedule.history(work_dir)]
    records = list(database.get_all_tuning_records())
    model = ms.cost_model.XGBModel(num_warmup_samples=1, num_tuning_cores=1)

    def update(batch: Sequence[tuple[Any, float | None]]) -> None:
        measured = [(candidate, each) for candidate, each in batch if each is not None]
        if measured:
            model.update(
                context,
                [candidate for candidate, _ in measured],
                [ms.runner.RunnerResult([each], None) for _, each in measured],
            )

    trials = [
        (record.as_measure_candidate(), seconds)
        for record, seconds in zip(records, times, strict=True)
    ]
    return _in_rounds(
        trials, size, lambda candidates: model.predict(context, list(candidates)), update
    )


def predict_ansor(task: Any, log: str | Path, *, size: int) -> list[Prediction]:
    """Ansor's model over a log; classic engine.

    Args:
        task: the auto_scheduler.SearchTask.
        size: trials in a round.
    """
    from tvm import auto_scheduler

    model = auto_scheduler.XGBModel(num_warmup_sample=1, verbose_eval=0)
    trials = []
    for measured, result in auto_scheduler.RecordReader(str(log)):
        whole = auto_scheduler.measure.recover_measure_input(measured, rebuild_state=True)
        costs = [each.value for each in result.costs]
        seconds = mean_seconds(costs) if result.error_no == 0 else None
        trials.append(((whole, result), seconds))
    return _in_rounds(
        trials,
        size,
        lambda pairs: model.predict(task, [whole.state for whole, _ in pairs]),
        lambda batch: model.update(
            [whole for (whole, _), _ in batch], [result for (_, result), _ in batch]
        ),
    )


def predict_autotvm(task: Any, log: str | Path, *, size: int) -> list[Prediction]:
    """AutoTVM's model over a log; classic engine.

    Args:
        task: the autotvm.task.Task.
        size: trials in a round.
    """
    import numpy as np
    from tvm import autotvm
    from tvm.autotvm.tuner.xgboost_cost_model import XGBoostCostModel

    model = XGBoostCostModel(task, "itervar", loss_type="reg", num_threads=1, log_interval=None)
    seen: list[tuple[int, float]] = []
    trials = []
    for measured, result in autotvm.record.load_from_file(str(log)):
        seconds = mean_seconds(result.costs) if result.error_no == 0 else None
        trials.append((measured.config.index, seconds))

    def update(batch: Sequence[tuple[int, float | None]]) -> None:
        # A failed trial has no speed, as in XGBTuner.
        seen.extend((index, task.flop / each if each else 0.0) for index, each in batch)
        indexes, rates = zip(*seen, strict=True)
        model.fit(list(indexes), np.array(rates), size)

    return _in_rounds(trials, size, lambda indexes: model.predict(list(indexes)), update)
