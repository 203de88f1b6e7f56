"""A case, what became of it, and how a kind of cases is tried."""

import math
import random
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import asdict, dataclass
from queue import Empty, SimpleQueue
from typing import Any, Literal

from tvm_practice import engines

Verdict = Literal["right", "wrong", "refused", "raw", "left out"]
VERDICTS: tuple[Verdict, ...] = ("right", "wrong", "refused", "raw", "left out")


@dataclass(frozen=True)
class Case:
    """One case of a kind.

    Attributes:
        group: what it is counted under: an operator, an ONNX operator, an architecture.
        name: what finds it again within its kind.
        arguments: of the kind's judge, JSON values.
    """

    group: str
    name: str
    arguments: dict[str, Any]


@dataclass(frozen=True)
class Outcome:
    """What became of a case.

    Attributes:
        reason: one line, empty where it is right.
        seconds: that it took.
        is_static: whether PyTorch's core decompositions make operators of core ATen with static
            shapes of its group; None for a kind that does not ask.
    """

    group: str
    name: str
    verdict: Verdict
    reason: str = ""
    seconds: float = 0.0
    is_static: bool | None = None

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


def of_samples(
    names: Iterable[str],
    samples_of: Callable[[str, str], Sequence[Any]],
    dtype: str,
    most: int | None,
    label: str = "",
) -> Iterator[Case]:
    """A case for each sample of a type that a name has, `most` of a name (None: all)."""
    for name in names:
        known = len(samples_of(name, dtype))
        for index in range(known if most is None else min(most, known)):
            arguments = {"name": name, "index": index, "dtype": dtype}
            yield Case(name, f"{name} {dtype} {label}{index}", arguments)


def drawn(cases: Iterable[Case], count: int | None, seed: int | None) -> list[Case]:
    """All cases, or `count` of them drawn at random; None as seed: other ones each time."""
    found = list(cases)
    if count is None or count >= len(found):
        return found
    return random.Random(seed).sample(found, count)


class Judges:
    """Processes that judge, one per engine; a crash or a hang costs its case, and the process.

    with closing(Judges(120)) as judged:
        judged("module:judge", {"name": "add"}, engines.CURRENT)

    Args:
        timeout: seconds per case.
    """

    def __init__(self, timeout: float):
        self._timeout = timeout
        self._sessions: dict[engines.Engine, engines.Session] = {}

    def __call__(
        self, judge: str, arguments: Mapping[str, Any], engine: engines.Engine
    ) -> dict[str, Any]:
        """What the function returned, or {"verdict": "raw", "reason"}.

        Raises EngineUnavailable.
        """
        try:
            if engine not in self._sessions:
                self._sessions[engine] = engines.Session(engine, output=sys.stderr)
            found: dict[str, Any] = self._sessions[engine].call(
                judge, arguments, timeout=self._timeout
            )
            return found
        except (engines.EngineDied, engines.EngineTimeout) as error:
            self._sessions.pop(engine).close(grace=0)
            return {"verdict": "raw", "reason": str(error)}
        except engines.PlainError as error:
            return {"verdict": "raw", "reason": f"the judge: {error.line}"}

    def close(self) -> None:
        for each in self._sessions.values():
            each.close()
        self._sessions.clear()


def try_all(
    judge: str,
    cases: Sequence[Case],
    *,
    engine: engines.Engine = engines.CURRENT,
    jobs: int = 2,
    timeout: float = 180.0,
    limit: float | None = None,
    say: Callable[[Outcome], None] = lambda outcome: None,
) -> list[Outcome]:
    """Judge each case in a process that has the engine; a crash or a hang costs only its case.

    Args:
        judge: "module:function" that takes a case's arguments and returns {"verdict", "reason"}.
        cases: to judge.
        engine: which TVM.
        jobs: processes.
        timeout: seconds per case.
        limit: seconds after which no case is begun.
        say: is told each outcome, in the order in which they end.

    Returns:
        The outcomes in the order of the cases, without those that were not begun.
    """
    end = math.inf if limit is None else time.monotonic() + limit
    waiting: SimpleQueue[tuple[int, Case]] = SimpleQueue()
    for numbered in enumerate(cases):
        waiting.put(numbered)
    outcomes: dict[int, Outcome] = {}

    def work() -> None:
        with closing(Judges(timeout)) as judged:
            while time.monotonic() < end:
                try:
                    number, case = waiting.get_nowait()
                except Empty:  # another worker has the last one
                    return
                answer = judged(judge, case.arguments, engine)
                outcomes[number] = outcome = Outcome(case.group, case.name, **answer)
                say(outcome)

    with ThreadPoolExecutor(jobs) as workers:
        for each in [workers.submit(work) for _ in range(jobs)]:
            each.result()
    return [outcomes[number] for number in sorted(outcomes)]


def counts(outcomes: Iterable[Outcome]) -> Counter[Verdict]:
    """How many outcomes have each verdict."""
    return Counter(each.verdict for each in outcomes)
