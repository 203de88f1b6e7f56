"""Running compiled models on either engine: give inputs once, call many times.

runner = RelaxRunner(executable)
runner.set_inputs([image])
runner.run()
[logits] = runner.outputs()

A runner keeps what a single call would make again (the virtual machine, the inputs on the
device), so that timing `run` times the model alone.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from tvm_practice.tvm_export.errors import BadInput
from tvm_practice.tvm_export.run_time_checks.divisors import ERROR, DividedByZero
from tvm_practice.wording import number_of

# The virtual machine's words where a `match_cast` does not hold.
_OTHER_EXTENT = re.compile(
    r"input_shape\[i\] == reg \((\d+) vs\. (\d+)\) *: ErrorContext\(match_cast"
)
_OTHER_EXTENT_SAYS = (
    "an extent that the model computes is {0} in this call; torch.export has fixed it "
    "at {1}, as the operators after it need"
)


class RelayRunner:
    """Runs what `relay.build` returns, on classic TVM's graph executor.

    Args:
        lib: the graph executor factory.
        device: a `tvm.device`; the CPU if None.
    """

    def __init__(self, lib: Any, *, device: Any = None):
        import tvm
        from tvm.contrib import graph_executor

        device = device or tvm.cpu()
        self._take(
            graph_executor.GraphModule(lib["default"](device)),
            lambda: lib["debug_create"]("default", device),
            device,
        )

    @classmethod
    def from_files(
        cls, library: str, graph_json: str, parameters: bytes, *, device: Any = None
    ) -> "RelayRunner":
        """A runner of a saved build: a library's path, the graph, `relay.save_param_dict`."""
        import tvm
        from tvm.contrib import graph_executor

        loaded, device = tvm.runtime.load_module(library), device or tvm.cpu()
        module = graph_executor.create(graph_json, loaded, device)
        module.load_params(parameters)

        def debugger() -> Any:
            create = tvm.get_global_func("tvm.graph_executor_debug.create")
            return create(graph_json, loaded, device.device_type, device.device_id)

        runner = cls.__new__(cls)
        runner._take(module, debugger, device)
        return runner

    def _take(self, module: Any, debugger: Callable[[], Any], device: Any) -> None:
        import tvm

        self._module, self._debugger, self._device = module, debugger, device
        self._waits = device != tvm.cpu()
        shapes, dtypes = module.get_input_info()
        self._inputs = {
            str(name): (tuple(int(extent) for extent in shapes[name]), _numpys(dtypes[name]))
            for name in shapes
            if name.startswith("input_")  # the others are weights
        }

    def set_inputs(self, inputs: Sequence[np.ndarray]) -> None:
        """Copy the model's inputs, in its order, to input_0, input_1, …

        One that no operator reads is not in the graph and is passed over. Raises ValueError for
        a missing input or one of another shape or type.
        """
        given = {f"input_{position}": value for position, value in enumerate(inputs)}
        missing = sorted(self._inputs.keys() - given.keys())
        if missing:
            raise ValueError(
                f"{number_of(len(given), 'input')} given; {', '.join(missing)} missing"
            )
        for name, (shape, dtype) in self._inputs.items():
            value = given[name]
            if value.shape != shape or str(value.dtype) != dtype:
                raise ValueError(
                    f"{name} is {value.dtype} {value.shape}, the model takes {dtype} {shape}"
                )
            self._module.set_input(name, value)

    def run(self) -> None:
        """One call, and on a GPU the wait for it."""
        self._module.run()
        if self._waits:
            self._device.sync()

    def outputs(self) -> list[np.ndarray]:
        """All outputs of the last run, copied."""
        count = self._module.get_num_outputs()
        return [self._module.get_output(index).numpy() for index in range(count)]

    def profiler(self) -> Callable[[], list[tuple[str, float]]]:
        """A function that runs the graph on these inputs: each operator in order, its seconds."""
        from tvm.contrib import graph_executor
        from tvm.runtime import profiling as profiling  # which registers the report's type

        debugger = self._debugger()
        module = graph_executor.GraphModule(debugger)
        for name in self._module.get_input_info()[0]:  # the weights too
            module.set_input(name, self._module.get_input(name))

        def profiled() -> list[tuple[str, float]]:
            calls = debugger["profile"](None).calls
            return [
                (str(each["Name"]), float(each["Duration (us)"].microseconds) / 1e6)
                for each in calls
            ]

        return profiled


def _numpys(dtype: Any) -> str:
    """NumPy's name of a type that a graph names: there, bool is an integer of one bit."""
    return "bool" if str(dtype) == "uint1" else str(dtype)


class RelaxRunner:
    """Runs what `tvm.compile` makes of a Relax module, on current TVM's virtual machine.

    Args:
        executable: the `tvm.runtime.Executable`, or one that `tvm.runtime.load_module` gave.
        device: a `tvm.device`; the CPU if None.
    """

    def __init__(self, executable: Any, *, device: Any = None):
        import tvm
        import tvm_ffi
        from tvm import relax

        tvm_ffi.register_error(ERROR, DividedByZero)
        self._device = device or tvm.cpu()
        self._waits = self._device != tvm.cpu()
        self._machine = machine = relax.VirtualMachine(executable, self._device)
        self._arity = int(machine.module["get_function_arity"]("main"))
        self._main = machine["main"]
        self._inputs: list[Any] = []
        self._result: Any = None

    @classmethod
    def from_file(cls, library: str, *, device: Any = None) -> "RelaxRunner":
        """A runner of a library that `export_library` wrote."""
        import tvm

        return cls(tvm.runtime.load_module(library), device=device)

    def set_inputs(self, inputs: Sequence[np.ndarray]) -> None:
        """Copy the model's inputs, in its order. Raises ValueError if their number is wrong.

        The virtual machine checks shapes and types at `run` (RuntimeError, ValueError).
        """
        import tvm

        if len(inputs) != self._arity:
            raise ValueError(
                f"{number_of(len(inputs), 'input')} given, the model takes {self._arity}"
            )
        self._inputs = [tvm.runtime.tensor(value, self._device) for value in inputs]

    def run(self) -> None:
        """One call, and on a GPU the wait for it.

        Raises BadInput where an extent that the model computes is another than in PyTorch's export.
        """
        try:
            self._result = self._main(*self._inputs)
        except RuntimeError as error:
            if found := _OTHER_EXTENT.search(str(error)):
                raise BadInput(_OTHER_EXTENT_SAYS.format(*found.groups())) from None
            raise
        self.sync()

    def sync(self) -> None:
        """Wait for a GPU's kernels."""
        if self._waits:
            self._device.sync()

    @contextmanager
    def instrumented(self, watch: Callable[..., int]) -> Iterator[None]:
        """Have the machine call `watch` before and after each call it makes in the block.

        See `relax.VirtualMachine.set_instrument`.
        """
        self._machine.set_instrument(watch)
        try:
            yield
        finally:
            self._machine.set_instrument(lambda *_: 0)

    def outputs(self) -> list[np.ndarray]:
        """All outputs of the last run, copied; tuples within tuples are flattened."""
        return _flattened(self._result)


def _flattened(result: Any) -> list[np.ndarray]:
    if hasattr(result, "numpy"):
        return [result.numpy()]
    return [array for each in result for array in _flattened(each)]


def run_relay(lib: Any, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Run a classic build once: its outputs on `inputs`, given in the model's order."""
    runner = RelayRunner(lib)
    runner.set_inputs(inputs)
    runner.run()
    return runner.outputs()


def run_relax(executable: Any, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Run a current build once: its outputs on `inputs`, given in the model's order."""
    runner = RelaxRunner(executable)
    runner.set_inputs(inputs)
    runner.run()
    return runner.outputs()
