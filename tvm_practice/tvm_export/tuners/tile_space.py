"""A design space of register tiles for MetaSchedule, and a search of it.

MetaSchedule's own space for a contraction has every way to split its loops, and trials by the
hundred go to tiles that do not fit the vector registers. Here the loops are those of
`rules.cpu.contraction`, weights packed at compile time and what is fused after it in the
write-back, and the space is what that rule has to guess: rows and width of the tile, how far the
sum is unrolled and in how many parts it is taken, which tiles follow each other. Its guess ranks
the tiles, and so do recorded searches of other functions, see `tile_transfer`.

A candidate is the function as it was with its block annotated; it is scheduled when it is built.
A cost model that learns from loops sees no difference between candidates: the search has none.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from tvm_practice.tvm_export.errors import NotApplicable
from tvm_practice.tvm_export.rules.cpu import schedule_candidate
from tvm_practice.tvm_export.rules.cpu.contraction import (
    VECTORS,
    TileChoice,
    find_contraction,
    ranked_tiles,
)
from tvm_practice.tvm_export.rules.cpu.flat import tiled_function
from tvm_practice.tvm_export.rules.cpu.loops import cpu_of
from tvm_practice.tvm_export.rules.cpu.register_tiles import advice_of, advise
from tvm_practice.tvm_export.tuners.history import FAILED_SECONDS, mean_seconds
from tvm_practice.tvm_export.tuners.search import going
from tvm_practice.tvm_export.tuners.tile_transfer import Transfer

# Of the fastest so far: how many have what is beside them tried.
_KEPT = 3
# Steps unrolled and parts of the sum that are tried beside a choice's own.
_DOUBLED = (1, 2, 4, 8)


def ranked_choices(func: Any, target: Any) -> list[TileChoice]:
    """A function's tiles by predicted time, the fastest first; none if it is no contraction."""
    cpu = cpu_of(target)
    try:
        found = find_contraction(tiled_function(func, cpu), cpu)
        return [choice for choice, _ in ranked_tiles(found, cpu)]
    except NotApplicable:
        return []


def foreseen_choices(func: Any, target: Any) -> list[TileChoice]:
    """Its tiles as searches of other functions foretell them; none where they foretell nothing."""
    if going().search.transfer is False:
        return []
    transfer = Transfer.of(cpu_of(target))
    return [] if transfer is None else transfer.ranked(func, target)


def tile_space(target: Any) -> Callable[[Any], None]:
    """The design space: a function that takes a `Schedule` and samples a tile."""

    def sample(schedule: Any) -> None:
        _apply(schedule, target, None)

    return sample


def _apply(schedule: Any, target: Any, choice: TileChoice | None) -> None:
    found = find_contraction(schedule.mod["main"], cpu_of(target))

    def decide(name: str, values: list[int]) -> Any:
        decision = None if choice is None else values.index(int(getattr(choice, name)))
        return schedule.sample_categorical(values, [1 / len(values)] * len(values), decision)

    advise(schedule, schedule.get_sblock(found.block.name_hint), decide)


def next_choices(
    ranked: Sequence[TileChoice],
    times: Mapping[TileChoice, float],
    count: int,
    *,
    foreseen: Sequence[TileChoice] = (),
) -> list[TileChoice]:
    """What to measure next: by turns the next foreseen, what is beside the fastest so far, and
    the next by rank.

    Args:
        ranked: the tiles in the order of their predicted time.
        times: seconds of each choice measured, infinite if it failed.
        count: how many to return; fewer if the space has no more.
        foreseen: choices in the order that searches of other functions foretell.
    """
    beside: list[TileChoice] = []
    fastest = sorted((each for each in times if times[each] < math.inf), key=lambda it: times[it])
    tiles = {_tile(each) for each in ranked}
    for choice in fastest[:_KEPT]:
        beside += [each for each in _neighbours(choice) if _tile(each) in tiles]
    sources = [
        iter(dict.fromkeys(each for each in source if each not in times))
        for source in (foreseen, beside, ranked)
    ]
    chosen: dict[TileChoice, None] = {}
    while len(chosen) < count:
        before = len(chosen)
        for source in sources:
            following = next((each for each in source if each not in chosen), None)
            if following is not None and len(chosen) < count:
                chosen[following] = None
        if len(chosen) == before:
            break
    return list(chosen)


def _tile(choice: TileChoice) -> tuple[int, int, bool]:
    """What of a choice not every contraction can have."""
    return choice.rows, choice.vectors, choice.both


def _neighbours(choice: TileChoice) -> list[TileChoice]:
    """The choices that differ in one decision, those first that most often matter."""
    at = VECTORS.index(choice.vectors)
    return [
        *(replace(choice, unroll=each) for each in _DOUBLED if each != choice.unroll),
        *(replace(choice, chunks=each) for each in _DOUBLED if each != choice.chunks),
        replace(choice, both=not choice.both),
        replace(choice, rows_first=not choice.rows_first),
        *(replace(choice, rows=choice.rows + step) for step in (-1, 1, -2, 2)),
        *(replace(choice, vectors=each) for each in VECTORS[max(at - 1, 0) : at + 2]),
    ]


def tile_search(target: Any) -> Any:
    """A MetaSchedule search strategy for `tile_space`; measures nothing that a database holds."""
    from tvm.ir.utils import derived_object
    from tvm.s_tir.meta_schedule.search_strategy import PySearchStrategy

    @derived_object
    class TileSearch(PySearchStrategy):  # type: ignore[misc]
        def _initialize_with_tune_context(self, context: Any) -> None:
            self._module = context.mod

        def pre_tuning(
            self, trials: int, a_round: int, spaces: Any, database: Any = None, model: Any = None
        ) -> None:
            self._left, self._round = trials, a_round
            self._ranked = ranked_choices(self._module["main"], target)
            self._foreseen = foreseen_choices(self._module["main"], target)
            self._times = {} if database is None else recorded_times(self._module, database)

        def post_tuning(self) -> None:
            pass

        def generate_measure_candidates(self) -> Any:
            found: list[Any] = []
            wanted = min(self._round, self._left)
            while len(found) < wanted:
                choices = next_choices(
                    self._ranked,
                    self._times,
                    wanted - len(found),
                    foreseen=self._foreseen,
                )
                if not choices:
                    break
                for choice in choices:
                    self._times[choice] = math.inf  # until its result is there
                    candidate = _candidate(self._module, target, choice)
                    if candidate is not None:
                        found.append((choice, candidate))
            self._waiting = [choice for choice, _ in found]
            self._left -= len(found)
            return [candidate for _, candidate in found] or None

        def notify_runner_results(self, candidates: Any, results: Any) -> None:
            for choice, result in zip(self._waiting, results, strict=True):
                if result.run_secs:
                    self._times[choice] = mean_seconds(result.run_secs)

        def clone(self) -> Any:
            return tile_search(target)

    return TileSearch()


def recorded_times(module: Any, database: Any) -> dict[TileChoice, float]:
    """Seconds of each tile of a module that a database holds, infinite if it failed."""
    import tvm

    workload = database.commit_workload(module)
    times: dict[TileChoice, float] = {}
    for record in database.get_all_tuning_records():
        if not record.workload.same_as(workload):
            continue
        schedule = tvm.s_tir.Schedule(module)
        record.trace.apply_to_schedule(schedule, remove_postproc=True)
        choice = advice_of(schedule.mod["main"])
        if choice is not None:
            seconds = mean_seconds(record.run_secs)
            times[choice] = seconds if seconds < FAILED_SECONDS else math.inf
    return times


def scheduled_by(module: Any, target: Any, choice: TileChoice) -> Any:
    """A `Schedule` of a module's "main", its trace the decisions of a tile."""
    import tvm

    schedule = tvm.s_tir.Schedule(module)
    _apply(schedule, target, choice)
    return schedule


def _candidate(module: Any, target: Any, choice: TileChoice) -> Any:
    """To be measured with arguments as they are built: weights packed; None if it fails."""
    import tvm
    from tvm.s_tir import meta_schedule as ms

    schedule = scheduled_by(module, target, choice)
    try:
        built = schedule_candidate(schedule.mod["main"], target)
    except (NotApplicable, tvm.s_tir.ScheduleError):
        return None
    arguments = ms.arg_info.ArgInfo.from_prim_func(built["main"])
    return ms.search_strategy.MeasureCandidate(schedule, arguments)
