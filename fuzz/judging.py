"""A graph compiled and run in a process that has its engine, and what is wrong with it.

On the current engine it is run with every function's output filled with NaN before, and once more
function by function between pages that nobody may touch; all results must be the same bits. A model
with an open extent is called with others, too.
"""

import math
import os
import resource
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from conformance.judging import last_line
from fuzz.graphs import Graph
from fuzz.open_extents import at_other_extents, opened

JUDGE = f"{__name__}:judge"
Mode = Literal["rules", "tiles", "open", "classic"]
MODES: tuple[Mode, ...] = ("rules", "tiles", "open", "classic")
_TOLERANCE = 1e-4
# Of a processor: what a graph takes by the clock depends on what else the machine does.
_MOST_SECONDS = 120
_UNWRITTEN = 0xFF  # NaN in every floating-point type


@dataclass(frozen=True)
class Outcome:
    """What became of a graph.

    Attributes:
        verdict: "right", "wrong", "refused" (in a line) or "raw" (any other error).
        reason: one line; empty where it is right.
    """

    verdict: Literal["right", "wrong", "refused", "raw"]
    reason: str = ""

    @property
    def is_fault(self) -> bool:
        return self.verdict in ("wrong", "raw")


def judge(graph: Mapping[str, Any], mode: Mode, seed: int = 0) -> dict[str, str]:
    """Compile a graph, run it, and say what became of it.

    The process ends by SIGXCPU where that takes a processor more than two minutes.

    Args:
        graph: as `Graph.to_dict` gives it.
        mode: "rules", the current engine's default schedules; "tiles", a drawn tile for each
            contraction in place of the rule's; "open", the default schedules with an axis of an
            input open; "classic", the classic engine.
        seed: of the tiles, and of the open axis.

    Returns:
        The fields of an `Outcome`.
    """
    import torch

    from tvm_practice.tvm_export.rules.first_match import STRICT

    os.environ[STRICT] = "1"
    torch.set_num_threads(1)
    with warnings.catch_warnings(), processor_time(_MOST_SECONDS):
        warnings.simplefilter("ignore")
        found = _judged(Graph.of(graph), mode, seed)
    return {"verdict": found.verdict, "reason": found.reason}


@contextmanager
def processor_time(seconds: float) -> Iterator[None]:
    """A block that may use a processor for so many seconds more; it ends the process if it does."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    most = math.ceil(used.ru_utime + used.ru_stime + seconds)
    before = resource.getrlimit(resource.RLIMIT_CPU)
    resource.setrlimit(resource.RLIMIT_CPU, (most, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_CPU, before)


def _judged(graph: Graph, mode: Mode, seed: int) -> Outcome:
    from tvm_practice.engines import PlainError
    from tvm_practice.tvm_export.calling import as_call
    from tvm_practice.tvm_export.errors import DoesNotCompile

    try:
        built, call = _built(graph, mode, seed)
        outputs = built(*call.tensors)
    except PlainError as refused:
        # What was imported is there to be compiled, but on the classic engine: it is as it is.
        fault = isinstance(refused, DoesNotCompile) and mode != "classic"
        return Outcome("raw" if fault else "refused", str(refused))
    except Exception as error:
        return Outcome("raw", f"{type(error).__name__}: {last_line(error)}")
    if reason := _wrong(graph, built, call, outputs, mode):
        return Outcome("wrong", reason)
    if mode == "open":
        for extent, other in at_other_extents(graph, seed):
            call = as_call(other.module(), other.tensors())
            try:
                outputs = built(*call.tensors)
            except ValueError as error:
                if "is out of range, the model takes" in str(error):
                    continue  # torch.export's conditions hold for others
                return Outcome("refused", f"at extent {extent}: {last_line(error)}")
            if reason := _wrong(other, built, call, outputs, mode):
                return Outcome("wrong", f"at extent {extent}: {reason}")
    return Outcome("right")


def _wrong(graph: Graph, built: Any, call: Any, outputs: list[np.ndarray], mode: Mode) -> str:
    """What is wrong with a compiled graph, which was run on the inputs of `call`; empty if none."""
    if reason := _differs(graph, outputs, call):
        return reason
    again = _on_unwritten_memory(built) if mode != "classic" else _after_others(built, call)
    for place, (one, other) in enumerate(zip(outputs, again, strict=True)):
        if one.tobytes() != other.tobytes():
            return f"output {place} differs between two runs"
    if mode != "classic":
        from conformance.guarded import outside

        return "; ".join(outside(built.runner))
    return ""


def _built(graph: Graph, mode: Mode, seed: int) -> tuple[Any, Any]:
    """The compiled model and its `Call`. Raises what the exporter raises."""
    from tvm_practice.tvm_export import ExportConfig
    from tvm_practice.tvm_export.calling import as_call
    from tvm_practice.tvm_export.export import Export
    from tvm_practice.tvm_export.pipeline import build, import_model

    model, tensors = graph.module(), graph.tensors()
    engine = "classic" if mode == "classic" else "current"
    shapes = opened(graph, seed) if mode == "open" else None
    config = ExportConfig(example_input=tensors, engine=engine, input_shapes=shapes)  # type: ignore[arg-type]
    export = import_model(Export.of(as_call(model, tensors, shapes=shapes), config))
    if mode == "tiles":
        from fuzz.tiles import advised

        export = replace(export, module=advised(export.module, export.target, seed))
    if mode == "classic":
        return build(export).result, export.call
    from tvm_practice.tvm_export.relax import schedule

    # Not the pipeline's stage, which tells a rule's mistake in a line, as it does a refusal.
    return build(schedule(export)).result, export.call


def _differs(graph: Graph, outputs: list[np.ndarray], call: Any) -> str:
    """Where outputs are not PyTorch's; empty where they are, but for rounding."""
    import torch

    from fuzz.rounding import is_rounding
    from tvm_practice.tvm_export.calling import as_array
    from tvm_practice.tvm_export.steps import Steps
    from tvm_practice.tvm_export.verification import verify_against_pytorch

    with torch.inference_mode():
        reference = [as_array(each) for each in call.module(*call.tensors)]
    if len(outputs) != len(reference):
        return f"{len(outputs)} outputs, PyTorch has {len(reference)}"
    for place, (one, other) in enumerate(zip(outputs, reference, strict=True)):
        if (one.dtype, one.shape) != (other.dtype, other.shape):
            return (
                f"output {place} is {one.dtype} {one.shape}, PyTorch's {other.dtype} {other.shape}"
            )
    verify, tolerances = Steps(None).verify, {"atol": _TOLERANCE, "rtol": _TOLERANCE}
    try:
        if graph.is_rare:
            verify(*_without_equal_nan(outputs, reference), **tolerances)
        else:
            verify_against_pytorch(outputs, reference, call, verify, **tolerances)
    except ValueError as wrong:
        with torch.inference_mode():
            return "" if is_rounding(graph, outputs) else " ".join(str(wrong).split())
    return ""


def _without_equal_nan(
    outputs: list[np.ndarray], reference: list[np.ndarray]
) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """Both with 0 where both are NaN, which verification takes for wrong."""
    pairs = []
    for one, other in zip(outputs, reference, strict=True):
        both = (one != one) & (other != other)
        zero = np.zeros((), one.dtype)
        pairs.append((np.where(both, zero, one), np.where(both, zero, other)))
    return [one for one, _ in pairs], [other for _, other in pairs]


def _on_unwritten_memory(built: Any) -> list[np.ndarray]:
    """The outputs of a run before each of whose functions its output's memory holds NaN."""
    from conformance.guarded import NOT_KERNELS

    def fill(function: Any, name: str, before: bool, result: Any, *operands: Any) -> int:
        if before and not name.startswith(NOT_KERNELS) and operands:
            last = operands[-1]
            if hasattr(last, "numpy"):
                _fill(last)
        return 0

    with built.runner.instrumented(fill):
        built.run()
    found: list[np.ndarray] = built.outputs()
    return found


def _fill(tensor: Any) -> None:
    import torch

    memory = torch.utils.dlpack.from_dlpack(tensor).reshape(-1)
    if memory.numel():
        memory.view(torch.uint8).fill_(_UNWRITTEN)


def _after_others(built: Any, call: Any) -> list[np.ndarray]:
    """The outputs of a run after one on other inputs."""
    others = [
        each.flatten().flip(0).reshape(each.shape) if not each.dtype.is_floating_point else -each
        for each in call.tensors
    ]
    built(*others)
    found: list[np.ndarray] = built(*call.tensors)
    return found
