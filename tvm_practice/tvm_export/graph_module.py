"""A compiled model: set inputs, run, read outputs, on either engine."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from tvm_practice.engines import Engine
from tvm_practice.measure import LatencyMeasurer
from tvm_practice.tvm_export.errors import BadInput
from tvm_practice.tvm_export.inputs import Input, disagreement, require
from tvm_practice.tvm_export.tuners.history import MadeBy


class Runner(Protocol):
    """What runs a compiled model: `running.RelayRunner` or `running.RelaxRunner`."""

    def set_inputs(self, inputs: Sequence[np.ndarray]) -> None: ...
    def run(self) -> None: ...
    def outputs(self) -> list[np.ndarray]: ...


@dataclass
class GraphModule:
    """A compiled model, ready to run.

    Attributes:
        engine: the TVM it was compiled by.
        tuner: the tuner whose records it was built with; None if untuned.
        runner: runs it; None for a target that this machine cannot run, `run` then raises.
        compiled: classic: the graph executor factory; current: the Relax executable.
        scheduled: current: the Relax module that it was compiled from.
        graph_json: classic: the executor's graph; current: the Relax module as JSON,
            see `graph_json`.
        target: what it was compiled for.
        inputs: what it takes, in the model's order.
        weight_bytes: of the weights of a model that was compiled here.
        seconds: what each stage took: import, optimize, tune, build.
        tuning: what the tuner did: tasks, trials, errors, seconds; empty if untuned.
        rules: current: which default rule scheduled each function that no record is applied to.
        declined: why the rules tried before it did not: by function, by rule.
        made_by: what made each function, see `artifacts.schema.Metadata.functions`.
    """

    engine: Engine
    tuner: str | None
    runner: Runner | None
    compiled: Any
    graph_json: str
    target: str
    inputs: tuple[Input, ...]
    weight_bytes: int = 0
    seconds: dict[str, float] = field(default_factory=dict)
    tuning: dict[str, Any] = field(default_factory=dict)
    rules: dict[str, str] = field(default_factory=dict)
    declined: dict[str, dict[str, str]] = field(default_factory=dict)
    made_by: dict[str, MadeBy] = field(default_factory=dict)
    scheduled: Any = field(default=None, repr=False)
    _given: dict[str, np.ndarray] = field(default_factory=dict, repr=False)
    _ready: bool = field(default=False, repr=False)

    @property
    def input_names(self) -> list[str]:
        """Of the inputs, in the model's order."""
        return [each.name for each in self.inputs]

    def set_input(self, name: str | int, value: Any) -> None:
        """Give input `name` (or its position) a value: an array or a torch tensor.

        Raises:
            KeyError: there is no such input.
            BadInput: a value of another shape or type than the input's; the one before stays.
        """
        names = self.input_names
        if isinstance(name, int) and not 0 <= name < len(names):
            raise KeyError(f"no input {name}, the model has {len(names)}")
        key = names[name] if isinstance(name, int) else name
        if key not in names:
            raise KeyError(f"no input {key!r}; the inputs are {', '.join(names)}")
        array = _as_array(value)
        require(self.inputs[names.index(key)], array)
        self._given[key] = array
        self._ready = len(self._given) == len(names) and not disagreement(self.inputs, self._given)
        if self.runner is not None and self._ready:
            self.runner.set_inputs([self._given[each] for each in names])

    def run(self) -> None:
        """Run on the inputs that were set.

        Raises:
            RuntimeError: an input was not set; it is named.
            BadInput: two inputs have different extents where the model wants the same.
            IndexError: an index is out of bounds (current engine); see `index_checks`.
        """
        if not self._ready:
            self._refuse()
        self._running().run()

    def _refuse(self) -> None:
        missing = [name for name in self.input_names if name not in self._given]
        if missing:
            raise RuntimeError(f"inputs not set: {', '.join(missing)}")
        if problem := disagreement(self.inputs, self._given):
            raise BadInput(problem)

    def outputs(self) -> list[np.ndarray]:
        """All outputs of the last run, tuples within tuples laid flat."""
        return self._running().outputs()

    def _running(self) -> Runner:
        if self.runner is None:
            raise RuntimeError(f"this machine cannot run code for {self.target}")
        return self.runner

    def get_output(self, index: int = 0) -> np.ndarray:
        """One output of the last run."""
        return self.outputs()[index]

    def __call__(self, *inputs: Any) -> list[np.ndarray]:
        """Set all inputs, run, return all outputs."""
        if len(inputs) != len(self.input_names):
            raise TypeError(f"{len(inputs)} inputs given, the model has {len(self.input_names)}")
        for position, value in enumerate(inputs):
            self.set_input(position, value)
        self.run()
        return self.outputs()

    def benchmark(self, *, warmup: int = 50, repeats: int = 1000) -> dict[str, Any]:
        """Latency in milliseconds of run() alone, inputs already set; see measure.Latency."""
        return LatencyMeasurer(warmup, repeats).measure_callable(self.run)


def _as_array(value: Any) -> np.ndarray:
    """An array of a value, which may be a torch tensor that requires a gradient."""
    if hasattr(value, "detach"):
        from tvm_practice.tvm_export.calling import as_array  # which imports PyTorch

        return as_array(value)
    return np.asarray(value)
