"""A compiled model: set inputs, run, read outputs, on either engine."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from tvm_practice.engines import Engine
from tvm_practice.measure import LatencyMeasurer


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
        graph_json: classic: the executor's graph; current: the Relax module as JSON.
        target: what it was compiled for.
        input_names: in the model's order: the argument's name where the example gave it by name,
            else `input_0`, `input_1`, …
        seconds: what each stage took: import, optimize, tune, build.
        tuning: what the tuner did: tasks, trials, errors, seconds; empty if untuned.
        rules: current: which default rule scheduled each function that no record is applied to.
        declined: why the rules tried before it did not: by function, by rule.
    """

    engine: Engine
    tuner: str | None
    runner: Runner | None
    compiled: Any
    graph_json: str
    target: str
    input_names: list[str]
    seconds: dict[str, float] = field(default_factory=dict)
    tuning: dict[str, Any] = field(default_factory=dict)
    rules: dict[str, str] = field(default_factory=dict)
    declined: dict[str, dict[str, str]] = field(default_factory=dict)
    _inputs: dict[str, np.ndarray] = field(default_factory=dict, repr=False)

    def set_input(self, name: str | int, value: Any) -> None:
        """Give input `name` (or its position) a value: an array or a torch tensor."""
        key = self.input_names[name] if isinstance(name, int) else name
        if key not in self.input_names:
            raise KeyError(f"no input {key!r}; the inputs are {', '.join(self.input_names)}")
        self._inputs[key] = np.asarray(value)
        if self.runner is not None and len(self._inputs) == len(self.input_names):
            self.runner.set_inputs([self._inputs[each] for each in self.input_names])

    def run(self) -> None:
        """Run on the inputs that were set. Raises RuntimeError naming those that were not."""
        missing = [name for name in self.input_names if name not in self._inputs]
        if missing:
            raise RuntimeError(f"inputs not set: {', '.join(missing)}")
        self._running().run()

    def outputs(self) -> list[np.ndarray]:
        """All outputs of the last run."""
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
