"""How a small budget of trials is spent.

The tuners' defaults are made for a thousand trials per task. With a few dozen they measure all of
them before their cost model has learned from the first, which makes them random searches.
"""

from collections.abc import Sequence

from tvm_practice.wording import number_of

_MOST_IN_A_ROUND = 16
_LEAST_TO_LEARN_FROM = 4
# A task of a model needs a few trials to gain anything; the last of its time is worth none.
_LEAST_FOR_A_TASK = 8
_TIME_WORTH_TUNING = 0.97


def trials_per_round(trials: int, tasks: int = 1) -> int:
    """Trials that Ansor or MetaSchedule measure between two updates of the cost model.

    At most half of a task's share, so that the model helps to choose the rest, unless that
    leaves rounds too small to learn from. Both tuners finish the round they are in: among sizes
    not much smaller than that, this is the one with which `trials` is overshot least.

    Args:
        trials: in total, at least one for each task.
        tasks: how many share them.
    """
    if trials < tasks:
        raise ValueError(
            f"{number_of(trials, 'trial')} cannot cover {number_of(tasks, 'task')}: each needs one"
        )
    share = trials // tasks
    most = min(_MOST_IN_A_ROUND, share // 2 if share // 2 >= _LEAST_TO_LEARN_FROM else share)
    return min(range((most + 1) // 2, most + 1), key=lambda size: (-trials % size, -size))


def plan_size(trials: int) -> int:
    """Trials that AutoTVM's XGBTuner measures between two fits of its cost model.

    One more than a quarter of the trials (at least 8): the tuner plans whenever a multiple of
    it is reached, and a plan after the last trial would be thrown away.
    """
    return max(8, min(64, trials // 4)) + 1


def worth_tuning(shares: Sequence[float], trials: int) -> list[int]:
    """Which of a model's tasks a budget is spent on: those where the time is.

    Args:
        shares: of the model's time, by task.
        trials: in total.

    Returns:
        Indexes of tasks, at least one, those with most time first.
    """
    order = sorted(range(len(shares)), key=lambda index: -shares[index])
    chosen: list[int] = []
    for index in order[: max(1, trials // _LEAST_FOR_A_TASK)]:
        if chosen and sum(shares[each] for each in chosen) >= _TIME_WORTH_TUNING * sum(shares):
            break
        chosen.append(index)
    return chosen
