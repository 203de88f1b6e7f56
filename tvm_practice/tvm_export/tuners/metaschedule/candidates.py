"""The candidates of a round, kept while they are built and measured."""

from typing import Any

# (module of the task, candidate) of the round that is being built and measured, in its order.
# A process tunes one task at a time.
this_round: list[tuple[Any, Any]] = []


def remembered(strategy: Any) -> Any:
    """`strategy`, its candidates kept in `this_round` while they are measured.

    Builders and runners are given modules and files, not the schedules they are of, which a
    record needs.
    """
    from tvm.ir.utils import derived_object
    from tvm.s_tir import meta_schedule as ms
    from tvm.s_tir.meta_schedule.search_strategy import PySearchStrategy

    @derived_object
    class Remembered(PySearchStrategy):  # type: ignore[misc]
        def _initialize_with_tune_context(self, context: Any) -> None:
            self._module = context.mod
            strategy._initialize_with_tune_context(context)

        def pre_tuning(
            self, trials: int, a_round: int, spaces: Any, database: Any = None, model: Any = None
        ) -> None:
            # TuneContext has these defaults too, for the strategies that it knows.
            # An empty database is false.
            database = ms.database.MemoryDatabase() if database is None else database
            model = ms.cost_model.RandomModel() if model is None else model
            strategy.pre_tuning(trials, a_round, spaces, database, model)

        def post_tuning(self) -> None:
            strategy.post_tuning()

        def generate_measure_candidates(self) -> Any:
            found = strategy.generate_measure_candidates()
            this_round[:] = [(self._module, each) for each in found or ()]
            return found

        def notify_runner_results(self, candidates: Any, results: Any) -> None:
            strategy.notify_runner_results(candidates, results)

        def clone(self) -> Any:
            return remembered(strategy.clone())

    return Remembered()
