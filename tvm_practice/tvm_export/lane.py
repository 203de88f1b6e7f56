"""What the two engines' lanes share: timing of stages, and the shape of a lane."""

import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from tvm_practice.tvm_export.graph_module import GraphModule
from tvm_practice.tvm_export.tuners.search import Search

if TYPE_CHECKING:
    from tvm_practice.tvm_export.calling import Call
    from tvm_practice.tvm_export.importers.converters import Converters


class Lane(Protocol):
    """A model imported into one engine, from which variants are built.

    Attributes:
        tuners: names of the tuners it can use.
        stages: the model's IR after each stage so far, by the stage's name.
        notes: what the person should know of the import, a line each.
    """

    tuners: tuple[str, ...]
    notes: list[str]
    stages: dict[str, Any]

    def untuned(self) -> GraphModule:
        """The model as the engine builds it without any tuning record."""
        ...

    def tuned(
        self, tuner: str, *, trials: int, log: Path, search: Search | None = None
    ) -> GraphModule:
        """The model with the best of `trials` measurements by `tuner`.

        Records are kept at `log`; those that it holds already count among the trials and are not
        measured again. Raises BadInput if the log is another target's or tuner's, or in use.
        """
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


@contextmanager
def told_in_a_line(frontend: str, way_out: str) -> Iterator[None]:
    """Raise what a frontend says of a model as BadInput, with what to try instead.

    A step that is still to do is not a mistake of the model and passes through.
    """
    from tvm_practice.tvm_export.errors import BadInput
    from tvm_practice.tvm_export.loading import describe

    try:
        yield
    except BadInput:
        raise
    except Exception as error:
        raised = Path(traceback.extract_tb(error.__traceback__)[-1].filename)
        if isinstance(error, NotImplementedError) and "tvm" not in raised.parts:
            raise
        raise BadInput(
            f"{frontend} cannot import the model: {describe(error)}; {way_out}"
        ) from error


def open_lane(
    engine: str,
    call: "Call",
    *,
    target: str,
    steps: str | None = None,
    opt_level: int = 3,
    converters: "str | Converters | None" = None,
) -> Lane:
    """Import a model on the active engine, which must be `engine`.

    Args:
        engine: of the two.
        call: the model and its example inputs.
        target: in either engine's spelling.
        steps: package of the import, tuning and build functions.
        opt_level: of TVM's passes.
        converters: the person's own, see `converters.find_converters`.

    Raises:
        BadInput: a model that the engine's frontend cannot take; one line that names the operator
            or the line of the model at fault, and what to try.
    """
    from tvm_practice.engines import CLASSIC
    from tvm_practice.tvm_export.importers.converters import find_converters
    from tvm_practice.tvm_export.steps import Steps
    from tvm_practice.tvm_export.targets import resolve_target

    kind: Callable[..., Lane]
    if engine == CLASSIC:
        from tvm_practice.tvm_export.relay import RelayLane

        kind = RelayLane
    else:
        from tvm_practice.tvm_export.relax import RelaxLane

        kind = RelaxLane
    return kind(
        call,
        target=resolve_target(target),
        steps=Steps(steps),
        opt_level=opt_level,
        converters=find_converters(converters),
    )
