"""What each stage of a work takes."""

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager


class Stopwatch:
    """Seconds by stage.

    with watch("import"):
        ...
    watch.seconds["import"]

    Args:
        seconds: of stages before, which stay as they are.
    """

    def __init__(self, seconds: Mapping[str, float] | None = None):
        self.seconds: dict[str, float] = dict(seconds or {})

    @contextmanager
    def __call__(self, stage: str) -> Iterator[None]:
        started = time.perf_counter()
        try:
            yield
        finally:
            self.seconds[stage] = self.seconds.get(stage, 0.0) + time.perf_counter() - started
