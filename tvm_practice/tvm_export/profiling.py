"""Where a compiled model's time and memory go, operator by operator."""

import json
import math
import re
import time
from dataclasses import asdict, dataclass
from statistics import median
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tvm_practice.tvm_export.graph_module import GraphModule


@dataclass(frozen=True)
class OperatorTime:
    """One function of a compiled model.

    Attributes:
        name: of the function in the compiled module.
        calls: in one run of the model.
        milliseconds: of all these calls together, the median of the runs.
        share: of the sum over all functions.
    """

    name: str
    calls: int
    milliseconds: float
    share: float

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


def plain_name(name: str) -> str:
    """A function's name before its weights were packed ahead."""
    return name.partition("_prepacked")[0]


def profile_operators(runner: Any, *, runs: int = 10) -> list[OperatorTime]:
    """Time every function that current TVM's virtual machine calls; those with most time first.

    The machine calls back before and after each, which takes a few microseconds per call: compare
    shares, and take the time of the whole from a run without a profile.

    Args:
        runner: a `running.RelaxRunner` whose inputs are set.
        runs: of the model, after one that is not counted.
    """
    times: list[dict[str, float]] = []
    calls: dict[str, int] = {}
    started = 0.0

    def watch(_function: Any, name: str, before: bool, _result: Any, *_arguments: Any) -> int:
        nonlocal started
        runner.sync()  # a kernel is not done when its launch returns
        if before:
            started = time.perf_counter()
        elif not name.startswith("vm.builtin."):
            spent = time.perf_counter() - started
            times[-1][name] = times[-1].get(name, 0.0) + spent
            if len(times) == 1:
                calls[name] = calls.get(name, 0) + 1
        return 0  # go on with the call

    with runner.instrumented(watch):
        for _ in range(runs + 1):
            times.append({})
            runner.run()
    spent = {name: median(each.get(name, 0.0) for each in times[1:]) for name in calls}
    return _by_time(spent, calls)


def operators_of(built: "GraphModule") -> list[dict[str, Any]]:
    """Each function's part of a run; see `OperatorTime`.

    "schedule" is the default rule that made it (see `rules.cpu`), "index check", "division check"
    (see `run_time_checks`, `run_time_checks.divisors`), or "record".
    """
    return [
        {**each.to_dict(), "schedule": built.rules.get(plain_name(each.name), "record")}
        for each in profile_operators(built.runner)
    ]


def time_alone(runner: Any, *, repeats: int = 20) -> dict[str, float]:
    """Time every function that the virtual machine calls, over and over on the same operands.

    In the model a function finds weights that everything since the last run has driven out of the
    cache, and inputs that another core has just written. Alone it finds all in place: what it
    takes longer in the model is not its schedule's doing.

    Args:
        runner: a `running.RelaxRunner` whose inputs are set.
        repeats: calls of each, of which the median counts, after as many that do not.

    Returns:
        Milliseconds by function, of all its calls in a run of the model.
    """
    import tvm

    called: list[tuple[str, Any, tuple[Any, ...]]] = []

    def keep(function: Any, name: str, before: bool, _result: Any, *arguments: Any) -> int:
        if before and not name.startswith("vm.builtin."):
            called.append((name, function, tuple(map(_copied, arguments))))
        return 0

    def _copied(argument: Any) -> Any:
        return tvm.runtime.tensor(argument.numpy()) if hasattr(argument, "numpy") else argument

    runner.run()
    with runner.instrumented(keep):
        runner.run()
    spent: dict[str, float] = {}
    for name, function, arguments in called:
        times = []
        for _ in range(2 * repeats):
            started = time.perf_counter()
            function(*arguments)
            times.append(time.perf_counter() - started)
        spent[name] = spent.get(name, 0.0) + 1e3 * median(times[repeats:])
    return spent


def profile_graph(runner: Any, *, runs: int = 10) -> list[OperatorTime]:
    """Time every operator of a classic build by the graph executor's profiler; most time first.

    Args:
        runner: a `running.RelayRunner` whose inputs are set.
        runs: of the model; before each, the profiler makes calls that it does not count.
    """
    profiled = runner.profiler()
    times = [profiled() for _ in range(runs)]
    calls: dict[str, int] = {}
    for name, _ in times[0]:
        calls[name] = calls.get(name, 0) + 1
    spent = {
        name: median(sum(each for other, each in run if other == name) for run in times)
        for name in calls
    }
    return _by_time(spent, calls)


@dataclass(frozen=True)
class Storage:
    """Memory that a call allocates for values between functions, perhaps for several in turn.

    Attributes:
        bytes: its size.
        function: the first that runs after its allocation; None for none.
    """

    bytes: int
    function: str | None

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


def machine_storages(runner: Any) -> list[Storage]:
    """What the virtual machine allocates in one call, in order, the outputs included.

    Args:
        runner: a `running.RelaxRunner` whose inputs are set.
    """
    sizes: list[int] = []
    functions: dict[int, str] = {}

    def watch(_function: Any, name: str, before: bool, _result: Any, *arguments: Any) -> int:
        if before and name == "vm.builtin.alloc_storage":
            sizes.append(math.prod(map(int, arguments[1])))  # after the machine, its shape in bytes
        elif before and not name.startswith("vm.builtin."):
            for index in range(len(functions), len(sizes)):
                functions[index] = name
        return 0

    with runner.instrumented(watch):
        runner.run()
    return [Storage(size, functions.get(index)) for index, size in enumerate(sizes)]


def graph_storages(graph_json: str) -> list[Storage]:
    """What the classic graph executor allocates beside inputs and weights, in order.

    Args:
        graph_json: the executor's graph. It plans memory once, when the graph is loaded.
    """
    graph = json.loads(graph_json)
    first = graph["node_row_ptr"]
    attributes = graph["attrs"]
    identifiers, shapes, types = (attributes[each][1] for each in ("storage_id", "shape", "dltype"))
    given = {identifiers[first[node]] for node in graph["arg_nodes"]}
    sizes: dict[int, int] = {}
    functions: dict[int, str] = {}
    for index, node in enumerate(graph["nodes"]):
        for entry in range(first[index], first[index + 1]):
            identifier = identifiers[entry]
            if identifier in given:
                continue
            size = math.prod(shapes[entry]) * _bytes_of(types[entry])
            sizes[identifier] = max(size, sizes.get(identifier, 0))
            functions.setdefault(identifier, str(node["attrs"]["func_name"]))
    return [Storage(size, functions[identifier]) for identifier, size in sizes.items()]


def _bytes_of(dtype: str) -> int:
    """Bytes of an element: TVM keeps a bool in one."""
    bits = re.search(r"\d+$", dtype)
    return -(-int(bits[0]) // 8) if bits else 1


def _by_time(seconds: dict[str, float], calls: dict[str, int]) -> list[OperatorTime]:
    total = sum(seconds.values()) or 1.0
    return [
        OperatorTime(name, calls[name], 1e3 * each, each / total)
        for name, each in sorted(seconds.items(), key=lambda item: -item[1])
    ]
