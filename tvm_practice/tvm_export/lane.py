"""What the two engines' lanes share: timing of stages, and the shape of a lane."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from tvm_practice.tvm_export.graph_module import GraphModule

if TYPE_CHECKING:
    from tvm_practice.tvm_export.calling import Call


class Lane(Protocol):
    """A model imported into one engine, from which variants are built.

    Attributes:
        tuners: names of the tuners it can use.
    """

    tuners: tuple[str, ...]

    def untuned(self) -> GraphModule:
        """The model as the engine builds it without any tuning record."""
        ...

    def tuned(self, tuner: str, *, trials: int, log: Path) -> GraphModule:
        """The model after `trials` measurements by `tuner`, records kept at `log`."""
        ...


class Stopwatch:
    """Seconds by stage.

    with watch("import"):
        ...
    watch.seconds["import"]
    """

    def __init__(self, seconds: dict[str, float] | None = None):
        self.seconds: dict[str, float] = dict(seconds or {})

    @contextmanager
    def __call__(self, stage: str) -> Iterator[None]:
        started = time.perf_counter()
        try:
            yield
        finally:
            self.seconds[stage] = self.seconds.get(stage, 0.0) + time.perf_counter() - started


def open_lane(engine: str, call: "Call", *, target: str, steps: str) -> Lane:
    """Import a model on the active engine, which must be `engine`."""
    from tvm_practice.engines import CLASSIC
    from tvm_practice.tvm_export.steps import Steps
    from tvm_practice.tvm_export.targets import resolve_target

    resolved = resolve_target(target)
    if engine == CLASSIC:
        from tvm_practice.tvm_export.relay import RelayLane

        return RelayLane(call, target=resolved, steps=Steps(steps))
    from tvm_practice.tvm_export.relax import RelaxLane

    return RelaxLane(call, target=resolved, steps=Steps(steps))
