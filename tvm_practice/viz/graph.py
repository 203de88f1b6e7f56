"""A model's graph, read from Relay or Relax: its operators, and which were fused together.

print(format_graph(module))

fn(input_0)
%0 = nn.conv2d(input_0, constant)
%1 = add(%0, constant)
%2 = nn.relu(%1)
return %2

After fusion a line is a kernel: `%0 = nn.conv2d + add + nn.relu(input_0, constant, constant)`.
"""

import functools
import textwrap
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class GraphCall:
    """A call in a graph's main function.

    Attributes:
        operators: what it computes: one operator, or those of a fused kernel in order.
        arguments: what it reads: inputs by name, `constant`, earlier calls as %0, %1, …
        kernel: whether it calls a kernel (a Relay primitive function, a PrimFunc) rather than an
            operator.
    """

    operators: tuple[str, ...]
    arguments: tuple[str, ...]
    kernel: bool

    def __str__(self) -> str:
        return f"{' + '.join(self.operators)}({', '.join(self.arguments)})"


@dataclass(frozen=True)
class Graph:
    """A module's main function.

    Attributes:
        inputs: names of its parameters.
        calls: in the order they run.
        result: what it returns, in terms of the calls.
    """

    inputs: tuple[str, ...]
    calls: tuple[GraphCall, ...]
    result: str

    @property
    def operators(self) -> Counter[str]:
        """How often each operator occurs, those inside kernels included."""
        return Counter(name for call in self.calls for name in call.operators)

    @property
    def kernels(self) -> Counter[str]:
        """How often each kind of call occurs: `nn.conv2d + add + nn.relu`."""
        return Counter(" + ".join(call.operators) for call in self.calls)

    @property
    def constants(self) -> int:
        """How many arguments of calls are constants."""
        return sum(argument == "constant" for call in self.calls for argument in call.arguments)

    @property
    def constant_calls(self) -> list[GraphCall]:
        """Calls that read nothing but constants: work that could be done at compile time."""
        return [
            call for call in self.calls if call.arguments and set(call.arguments) == {"constant"}
        ]


def graph(module: Any) -> Graph:
    """Read the main function of an IRModule, Relay's or Relax's."""
    main = module["main"]
    return _read_relax(main) if hasattr(main.body, "blocks") else _read_relay(main)


def fusion(imported: Any, optimized: Any) -> dict[str, list[Any]]:
    """What the graph passes made of a model: its operators, and its kernels with theirs.

    Args:
        imported: the IRModule as it was imported.
        optimized: after the passes. Relay's is fused here as relay.build does it; Relax's is
            fused already.

    Returns:
        {"operators": [name], "kernels": [[name]]}, in the order they run.
    """
    if not hasattr(optimized["main"].body, "blocks"):
        from tvm import relay

        optimized = relay.transform.FuseOps(fuse_opt_level=2)(optimized)
    return {
        "operators": [name for call in graph(imported).calls for name in call.operators],
        "kernels": [list(call.operators) for call in graph(optimized).calls],
    }


def format_graph(module: Any, *, width: int = 76) -> str:
    """The main function as text, one call a line, wrapped at `width` characters."""
    shown = graph(module)
    lines = [f"fn({', '.join(shown.inputs)})"]
    lines += [f"%{index} = {call}" for index, call in enumerate(shown.calls)]
    lines.append(f"return {shown.result}")
    return "\n".join(textwrap.fill(line, width, subsequent_indent="     ") for line in lines)


def _read_relay(main: Any) -> Graph:
    from tvm import relay

    everywhere = _relay_calls(main.body)
    inside = {
        inner
        for call in everywhere
        if isinstance(call.op, relay.Function)
        for inner in _relay_calls(call.op.body)
    }
    outer = [call for call in everywhere if call not in inside]
    label = {call: f"%{index}" for index, call in enumerate(outer)}

    def name(node: Any) -> str:
        if node in label:
            return label[node]
        if isinstance(node, relay.Tuple):
            return f"({', '.join(name(field) for field in node.fields)})"
        if isinstance(node, relay.TupleGetItem):
            return f"{name(node.tuple_value)}.{node.index}"
        return str(node.name_hint) if isinstance(node, relay.Var) else type(node).__name__.lower()

    calls = []
    for call in outer:
        kernel = isinstance(call.op, relay.Function)
        made_of = [each.op for each in _relay_calls(call.op.body)] if kernel else [call.op]
        operators = tuple(str(getattr(each, "name", each)) for each in made_of)
        calls.append(GraphCall(operators, tuple(name(each) for each in call.args), kernel))
    inputs = tuple(str(parameter.name_hint) for parameter in main.params)
    return Graph(inputs, tuple(calls), name(main.body))


def _relay_calls(expression: Any) -> list[Any]:
    """Calls in the order they run, those in functions defined inside included."""
    from tvm import relay

    found: list[Any] = []
    relay.analysis.post_order_visit(
        expression, lambda node: found.append(node) if isinstance(node, relay.Call) else None
    )
    return found


def _read_relax(main: Any) -> Graph:
    from tvm import relax

    label = {parameter: str(parameter.name) for parameter in main.params}
    tuples: dict[Any, Any] = {}
    calls: list[GraphCall] = []

    def name(node: Any) -> str:
        if isinstance(node, relax.TupleGetItem):
            made = tuples.get(node.tuple_value)
            if made is not None:
                return name(made.fields[node.index])
            return f"{name(node.tuple_value)}.{node.index}"
        if isinstance(node, relax.Tuple):
            return f"({', '.join(name(field) for field in node.fields)})"
        if isinstance(node, relax.Var):
            return label[node]
        return "constant" if _is_constant(node) else type(node).__name__.lower()

    for block in main.body.blocks:
        for binding in block.bindings:
            value = binding.value
            if isinstance(value, relax.Tuple):
                tuples[binding.var] = value
            if not isinstance(value, relax.Call):
                label[binding.var] = name(value)
                continue
            label[binding.var] = f"%{len(calls)}"
            operators, arguments, kernel = _relax_call(value)
            tensors = tuple(name(each) for each in arguments if _is_data(each))
            calls.append(GraphCall(operators, tensors, kernel))
    inputs = tuple(str(parameter.name) for parameter in main.params)
    return Graph(inputs, tuple(calls), name(main.body.body))


def _is_constant(node: Any) -> bool:
    return type(node).__name__ == "GenericConst"


def _is_data(node: Any) -> bool:
    """Not a shape, a type or a number given to an operator."""
    return _is_constant(node) or type(node).__name__ in ("Var", "DataflowVar", "Tuple")


def _relax_call(call: Any) -> tuple[tuple[str, ...], list[Any], bool]:
    """Operators, arguments, and whether it is a kernel."""
    called = str(getattr(call.op, "name", ""))
    if called.startswith("relax.call_tir"):
        return kernel_operators(str(call.args[0].name_hint)), list(call.args[1].fields), True
    if called.startswith("relax."):
        return (called.rpartition(".")[2],), list(call.args), False
    return kernel_operators(str(call.op.name_hint)), list(call.args), False


@functools.cache
def _operator_names() -> frozenset[str]:
    """Names of TVM's operators without their namespaces."""
    import tvm

    return frozenset(str(each).rpartition(".")[2] for each in tvm.ir.Op.list_op_names())


def kernel_operators(name: str) -> tuple[str, ...]:
    """The operators that a kernel of current TVM was fused from, read from its name.

    `fused_matmul1_add1_relu1` is ("matmul", "add", "relu"): the numbers only tell functions
    apart. The words of an operator are found in TVM's own list of operators.
    """
    known = _operator_names()
    if not name.startswith("fused_"):
        return (name if name in known else name.rstrip("0123456789"),)
    words = name.removeprefix("fused_").split("_")
    found = []
    while words:
        for length in range(len(words), 0, -1):
            exact = "_".join(words[:length])
            bare = exact.rstrip("0123456789")
            if exact in known or bare in known or length == 1:
                found.append(exact if exact in known else bare)
                del words[:length]
                break
    return tuple(found)


def print_graph(title: str, module: Any) -> None:
    """Print a module's main function under a title."""
    from rich.console import Console
    from rich.panel import Panel

    Console(highlight=False).print(
        Panel(format_graph(module), title=title, title_align="left"), markup=False
    )


def print_operators(
    title: str, before: Graph, after: Graph, *, columns: tuple[str, str] = ("imported", "optimized")
) -> None:
    """Print how often each operator occurs before and after, those in kernels included."""
    from rich.console import Console
    from rich.table import Table

    table = Table("operator", title=title)
    for column in columns:
        table.add_column(column, justify="right")
    counts = before.operators, after.operators
    for name in sorted(counts[0] | counts[1]):
        table.add_row(name, *(str(count[name] or "") for count in counts))
    table.add_section()
    table.add_row("operators", *(str(count.total()) for count in counts))
    table.add_row("inputs of main", *(str(len(each.inputs)) for each in (before, after)))
    table.add_row("constant arguments", *(str(each.constants) for each in (before, after)))
    Console().print(table)


def print_kernels(title: str, fused: Graph) -> None:
    """Print each kind of kernel and how often it is launched."""
    from rich.console import Console
    from rich.table import Table

    table = Table(title=title)
    table.add_column("launches", justify="right")
    table.add_column("operators in one kernel")
    for kernel, count in fused.kernels.most_common():
        table.add_row(str(count), kernel)
    Console().print(table)


def plot_imports(studies: Mapping[str, Mapping[str, Any]], file: Path) -> None:
    """Draw what importing did to models, as bars, to a PNG.

    Args:
        studies: by label, a dictionary with the counts "imported", "optimized" (operators) and
            "kernels", and "comparison", a `measure.Comparison.to_dict()`.
        file: where to.
    """
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10, 4.2), layout="constrained")
    counts, times = figure.subplots(1, 2)
    labels = list(studies)
    for shift, (key, label) in enumerate(
        (
            ("imported", "operators, imported"),
            ("optimized", "operators, optimized"),
            ("kernels", "kernels, fused"),
        )
    ):
        bars = counts.bar(
            [index + 0.27 * (shift - 1) for index in range(len(labels))],
            [study[key] for study in studies.values()],
            width=0.27,
            label=label,
        )
        counts.bar_label(bars, fontsize=8)
    counts.set_xticks(range(len(labels)), labels)
    counts.set_title("What the graph passes did")
    counts.set_ylabel("calls in the graph")
    counts.margins(y=0.15)
    counts.legend()
    for index, study in enumerate(studies.values()):
        for shift, (who, latency) in enumerate(study["comparison"]["latency"].items()):
            bars = times.bar(
                index + 0.36 * (shift - 0.5),
                latency["p50"],
                width=0.36,
                color=f"C{3 + shift}",
                label=("TVM" if shift else who) if index == 0 else None,
            )
            median = latency["p50"]
            times.bar_label(
                bars, [f"{median:.0f}" if median >= 100 else f"{median:.3g}"], fontsize=8
            )
    times.set_xticks(range(len(labels)), labels)
    times.set_yscale("log")
    times.set_title("Latency, each pair measured in turn")
    times.set_ylabel("median of a call, ms")
    times.margins(y=0.2)
    times.legend()
    figure.savefig(file, dpi=120)
