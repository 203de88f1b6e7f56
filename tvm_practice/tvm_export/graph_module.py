"""A compiled model: set inputs, run, read outputs, on either engine."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from tvm_practice.engines import Engine
from tvm_practice.measure import LatencyMeasurer
from tvm_practice.tvm_export.errors import BadInput
from tvm_practice.tvm_export.inputs import Input, disagreement, require
from tvm_practice.tvm_export.tuners.history import MadeBy
from tvm_practice.wording import number_of


class Runner(Protocol):
    """What runs a compiled model: `running.RelayRunner` or `running.RelaxRunner`."""

    def set_inputs(self, inputs: Sequence[np.ndarray]) -> None: ...
    def run(self) -> None: ...
    def outputs(self) -> list[np.ndarray]: ...


@dataclass(frozen=True)
class Place:
    """Where a tensor is in a model's arguments: the input's position among all."""

    position: int


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
        arguments: what the model was called with, a `Place` for each tensor. Empty where only the
            inputs are known, as in a loaded artifact, or where arguments were given by name.
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
    arguments: tuple[Any, ...] = field(default=(), repr=False)
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
            IndexError: an index is out of bounds (current engine); see `run_time_checks`.
            ValueError: an open extent is beyond the model's range; see `run_time_checks.extents`.
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
        """Set all inputs, run, return all outputs.

        Args:
            inputs: in the model's order; or the arguments that the model takes, with tensors or
                arrays in their tuples, lists and dictionaries.

        Raises:
            TypeError: they are not as many, or have another structure.
        """
        if not all(isinstance(each, Place) for each in self.arguments):
            inputs = self._laid_flat(inputs)
        if len(inputs) != len(self.input_names):
            raise TypeError(
                f"{number_of(len(inputs), 'input')} given, the model has {len(self.input_names)}"
            )
        for position, value in enumerate(inputs):
            self.set_input(position, value)
        self.run()
        return self.outputs()

    def _laid_flat(self, given: tuple[Any, ...]) -> tuple[Any, ...]:
        """The model's arguments as its inputs; inputs as they are."""
        is_flat = not any(isinstance(each, Mapping | list | tuple) for each in given)
        if is_flat or len(given) != len(self.arguments):
            return given
        found: dict[int, Any] = {}
        for place, (value, like) in enumerate(zip(given, self.arguments, strict=True)):
            _lay_flat(value, like, f"input {place}", found)
        return tuple(found[place] for place in sorted(found))

    def benchmark(self, *, warmup: int = 50, repeats: int = 1000) -> dict[str, Any]:
        """Latency in milliseconds of run() alone, inputs already set; see measure.Latency."""
        return LatencyMeasurer(warmup, repeats).measure_callable(self.run)


def _lay_flat(given: Any, like: Any, name: str, found: dict[int, Any]) -> None:
    """Find the tensors of an argument where `like`, the example's, has places."""
    if isinstance(like, Place):
        found[like.position] = given
        return
    kind = next((each for each in (Mapping, list, tuple) if isinstance(like, each)), None)
    if kind is None:  # part of the model
        return
    keys = like.keys() if isinstance(like, Mapping) else range(len(like))
    same = isinstance(given, kind) and len(given) == len(like)
    if not same or (kind is Mapping and given.keys() != keys):
        wanted = f"keys {', '.join(map(str, keys))}" if kind is Mapping else f"{len(like)} items"
        raise TypeError(f"{name} is no {kind.__name__.lower()} of {wanted}, as the example has")
    for key in keys:
        _lay_flat(given[key], like[key], f"{name}[{key!r}]", found)


def _as_array(value: Any) -> np.ndarray:
    """An array of a value, which may be a torch tensor that requires a gradient."""
    if hasattr(value, "detach"):
        from tvm_practice.tvm_export.calling import as_array  # which imports PyTorch

        return as_array(value)
    return np.asarray(value)
