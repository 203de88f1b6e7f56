"""Lab 7: an operator of one's own.

A model uses an operator that neither TVM knows: gated RMS normalization, Mamba-2's, registered
with PyTorch in `tvm_practice/labs/gated_layer.py`. It goes the way that TVM's own operators go:

    compute      a tensor expression in TOPI's form: tensors in, a tensor out, any rank
    schedule     from that expression's loops to loops for a processor
    convert      what a frontend calls when it meets the operator in a model: one for each engine

And what a library does better is given to the library, in two ways:

    call_packed  a tensor that a function outside TVM computes, called by its name
    offload      patterns find parts of a graph, a backend of one's own makes a module of each;
                 TVM's name for it is BYOC, bring your own codegen

The worked examples are `gate`, the first half of the operator, with `schedule_gate`;
`schedule_classic`, the operator's schedule in classic TVM; and `convert_as_expression`, a converter
that leaves the schedule to TVM. Write the functions below them, then run

    python -m tvm_practice.labs.custom_operator
    pytest -m lab7
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from tvm_practice.course.phase import phase_command

if TYPE_CHECKING:
    from tvm_practice.course import Steps

_LANES = 16
_TOLERANCE = 1e-4
_EXTERN = "practice.matmul"


def gate(X: Any, Z: Any) -> Any:
    """Worked example: H = X · silu(Z), element by element, in TOPI's form.

    Args:
        X: a te.Tensor of any rank.
        Z: one of the same shape.

    Returns:
        The te.Tensor H, of that shape.
    """
    from tvm import te

    # Without names for its indices the function takes any number of them: i is a tuple.
    return te.compute(X.shape, lambda *i: X[i] * Z[i] * te.sigmoid(Z[i]), name="H")


def schedule_gate(func: Any, *, lanes: int) -> Any:
    """Worked example: `gate` for a processor: rows in parallel, columns in vectors.

    Args:
        func: the PrimFunc of X, Z and H that te.create_prim_func makes of `gate`.
        lanes: elements in a vector register.

    Returns:
        The tvm.s_tir.Schedule.
    """
    import tvm

    schedule = tvm.s_tir.Schedule(func)
    *rows, column = schedule.get_loops(schedule.get_sblock("H"))
    schedule.parallel(schedule.fuse(*rows))
    schedule.vectorize(schedule.split(column, [None, lanes])[1])
    return schedule


def schedule_classic(outputs: Sequence[Any]) -> Any:
    """Worked example: `rms_norm_gate` in classic TVM, as TOPI's schedule functions are.

    Args:
        outputs: the tensor Y of `rms_norm_gate`, in a sequence: an operator may have several.

    Returns:
        The te.Schedule: the rows in parallel, H and the sum of a row just before its Y.
    """
    from tvm import te

    (Y,) = outputs
    schedule = te.create_schedule(Y.op)
    stages = {each.op.name: each for each in Y.op.input_tensors}
    H, S = stages["H"], stages["S"]
    *rows, column = Y.op.axis
    row = schedule[Y].fuse(*rows)
    schedule[Y].parallel(row)
    schedule[Y].vectorize(schedule[Y].split(column, factor=_LANES)[1])
    (reduced,) = S.op.reduce_axis
    lane = schedule[S].split(reduced, factor=_LANES)[1]
    partial = schedule.rfactor(S, lane, factor_axis=len(rows))
    (outer,) = partial.op.reduce_axis
    schedule[partial].reorder(outer, partial.op.axis[-1])
    schedule[partial].vectorize(partial.op.axis[-1])
    schedule[H].vectorize(schedule[H].split(H.op.axis[-1], factor=_LANES)[1])
    for stage in (S, partial, H):
        schedule[stage].compute_at(schedule[Y], row)
    return schedule


def convert_as_expression(compute: Callable[..., Any]) -> dict[str, Any]:
    """Worked example: a converter that puts a tensor expression into the graph.

    The operator is then one of TVM's: fused with its neighbours, scheduled by a rule or a tuner.

    Args:
        compute: `rms_norm_gate`: takes X, Z, W and eps, returns Y.

    Returns:
        {"rms_norm_gate.default": the converter}, for from_exported_program's custom_convert_map.
    """

    def convert(node: Any, importer: Any) -> Any:
        tensors = [importer.env[each] for each in node.args[:3]]
        return importer.block_builder.emit_te(
            compute, *tensors, eps=node.args[3], primfunc_name_hint="rms_norm_gate"
        )

    return {"rms_norm_gate.default": convert}


def rms_norm_gate(X: Any, Z: Any, W: Any, *, eps: float) -> Any:
    """Declare Y = W · H / sqrt(mean of H² over a row + eps), with H = X · silu(Z).

    In TOPI's form, so that a converter can give it whatever tensors a model has: a row is the
    last dimension, and there may be any number of others before it, one at least. Three stages:
    "H" as in `gate`; "S", the sum of H² over each row, without the last dimension; and "Y".

    Args:
        X: a te.Tensor (…, columns), float32.
        Z: one of the same shape.
        W: a te.Tensor (columns,): the weight of each column.
        eps: added to the mean, so that a row of zeros is not divided by zero.

    Returns:
        The te.Tensor Y (…, columns).
    """
    raise NotImplementedError("declare H, S and Y with te.compute and a lambda of *i")


def schedule_rms_norm_gate(func: Any, *, lanes: int) -> Any:
    """Schedule `rms_norm_gate` for a processor: a row at a time, in the cache of one core.

    - All dimensions before the last are fused to one loop over rows, in parallel; H, S and Y are
      computed inside it, so that a row of H is still in the cache when Y reads it.
    - The last dimension of H and of Y is split by `lanes` and vectorized.
    - A sum over a row cannot be vectorized: every step needs the one before. `rfactor` makes
      `lanes` sums of it, side by side in a vector register, and S then adds those up. The loop
      over the lanes is the innermost one, vectorized: compute_at makes the loops anew, in the
      order of the block's iterators, and has to be followed by a reorder.
    - What sets a sum to zero is a statement of its own before the loop that adds:
      decompose_reduction, last, for both sums.

    Args:
        func: the PrimFunc of X, Z, W and Y that te.create_prim_func makes of `rms_norm_gate`.
        lanes: elements in a vector register; they divide the columns.

    Returns:
        The tvm.s_tir.Schedule.
    """
    raise NotImplementedError("fuse and parallelize the rows, rfactor, compute_at, vectorize")


def convert_relax(kernel: Callable[[tuple[int, ...], float], Any]) -> dict[str, Any]:
    """Current TVM: a converter, as from_exported_program takes it in custom_convert_map.

    A converter is called with the torch.fx.Node of the call and the importer. `importer.env`
    holds the Relax variable of every node converted so far; `importer.block_builder` adds
    functions to the module and calls to its main.

    The kernel has its schedule already. Two attributes of the PrimFunc are to say so:
    "op_pattern" 8 (opaque) keeps FuseOps from merging it with its neighbours, and
    "tirx.is_scheduled" keeps rules for default schedules away. A third has to go: a Schedule
    leaves its function the "global_symbol" main, which the model's own main has.

    Args:
        kernel: takes the shape of x and eps, returns a scheduled PrimFunc of x, z, weight and
            the result, as a Schedule has it.

    Returns:
        {"rms_norm_gate.default": the converter}: the operator's name in an exported program.
        The operator's arguments (x, z, weight, eps) are in the node's `args`.
    """
    raise NotImplementedError("add the kernel to the module, emit a relax.call_tir of it")


def convert_relay(
    name: str, compute: Callable[..., Any], schedule: Callable[[Sequence[Any]], Any]
) -> dict[str, Any]:
    """Classic TVM: register a Relay operator, and give a converter for custom_convert_map.

    A Relay operator is a name in a registry with attributes: three inputs; a type relation, a
    function of the inputs' types and the call's attributes that returns the result's type; the
    pattern OPAQUE, so that it is not fused with its neighbours; and a strategy, which gives
    relay.build a compute function and a schedule function. The call carries eps in its attributes,
    a "DictAttrs".

    Args:
        name: of the Relay operator, "practice.rms_norm_gate" say. A process can register a name
            once only.
        compute: `rms_norm_gate`: takes X, Z, W and eps, returns Y.
        schedule: takes the output tensors in a sequence, returns their te.Schedule.

    Returns:
        {"tvm_practice::rms_norm_gate": the converter}: the operator's name in a trace. The
        converter takes [x, z, weight, eps] and their types, and returns a relay.Call.
    """
    raise NotImplementedError("register the operator, its type relation and its strategy")


def extern_matmul(A: Any, B: Any, name: str) -> Any:
    """Declare C = A · B, computed by numpy where the kernel runs.

    A function (a, b, c) is registered with TVM under `name` (replacing what has that name): it
    writes the product of a and b to c, with no copy of any of them. Compiled code gives it bare
    DLTensors, on which numpy.from_dlpack crashes; `view` of tvm_practice.labs.blas_backend makes
    an array on the memory of one.

    Args:
        A: a te.Tensor (rows, inner), float32.
        B: a te.Tensor (inner, columns).
        name: of the function, in TVM's registry of global functions.

    Returns:
        The te.Tensor C (rows, columns), of te.extern.
    """
    raise NotImplementedError("register a function that calls np.matmul, then te.extern it")


def offload_linear(mod: Any, backend: str) -> Any:
    """Give every linear layer of a Relax module to a backend.

    A linear layer is a relax.matmul with a constant right operand, and the relax.add of a
    constant to its result if there is one. A product of two activations is none.
    Its patterns are called f"{backend}.linear" and f"{backend}.linear_bias".

    FuseOpsByPattern makes a function of each match, and constants arguments of it; RunCodegen
    gives the functions to the global function f"relax.ext.{backend}" and puts calls of what that
    returns in their place.

    Args:
        mod: an IRModule as imported and folded, its operators not lowered yet; left as it was.
        backend: a name under which a code generator is registered.

    Returns:
        A new IRModule.
    """
    raise NotImplementedError("write the patterns, run FuseOpsByPattern and RunCodegen")


def lane(steps: "Steps", *, quick: bool) -> dict[str, Any]:
    """The operator alone, then in a model, on the active engine."""
    import torch

    from tvm_practice import engines
    from tvm_practice.tvm_export.quiet import quiet_frontends

    torch.set_num_threads(engines.thread_count())
    study = _Study(steps, quick=quick)
    with quiet_frontends():
        return study.classic() if engines.active() == engines.CLASSIC else study.current()


class _Study:
    """The lab on the active engine, as far as the functions are written.

    Attributes:
        model: with the operator in each layer.
        example: what it is called with.
        shape: of x and z in it.
        figures: what was found so far.
    """

    def __init__(self, steps: "Steps", *, quick: bool):
        from tvm_practice.labs.gated_layer import EPS, load_gated

        self.steps = steps
        self.eps = EPS
        self.layers = 2 if quick else 4
        self.shape = (1, 128 if quick else 512, 1536)
        self.seconds = 0.5 if quick else 5.0
        self.model, self.example = load_gated(layers=self.layers, tokens=self.shape[1])
        self.figures: dict[str, Any] = {}

    def classic(self) -> dict[str, Any]:
        """TE, the worked schedule, the converter, the model, in classic TVM."""
        import tvm

        from solutions.relay_import import build_relay, import_relay, optimize_relay
        from tvm_practice import engines
        from tvm_practice.tvm_export.importers.converters.relay import converters
        from tvm_practice.tvm_export.running import RelayRunner
        from tvm_practice.viz.graph import graph, print_operators
        from tvm_practice.viz.loop_nest import classic_statement, loop_nest, print_nest

        with self._blaming("rms_norm_gate"):
            tensors = _declare(self._own("rms_norm_gate"), self.shape, self.eps)
            schedule = schedule_classic(tensors[-1:])
            print_nest("schedule_classic", loop_nest(classic_statement(schedule)))
            function = tvm.build(schedule, tensors, target=engines.host_target())
            self._verify_operator(function, tvm.nd.array)
        own = self.steps.attempt(
            "convert_relay",
            "practice.rms_norm_gate",
            self._own("rms_norm_gate"),
            schedule_classic,
        )
        if own is None:
            return self.figures
        _say(f"\nThe model: {self.layers} layers with the operator, through a trace.")
        with self._blaming("convert_relay"):
            mod, params = import_relay(self.model, self.example, converters=converters() | own)
            optimized = optimize_relay(mod, params)
            print_operators("the model in Relay", graph(mod), graph(optimized))
            runner = RelayRunner(build_relay(optimized, {}, engines.host_target()))
            self._verify_model(runner)
            self._time_model({"Relay": runner.run})
        return self.figures

    def current(self) -> dict[str, Any]:
        """All of the lab but `convert_relay`."""
        from solutions.labs import custom_operator as reference

        self._show_gate()
        self._operator()
        runs = {}
        own = self.steps.attempt("convert_relax", self._kernel)
        module = self._import(own or reference.convert_relax(self._kernel))
        if own is not None and module is not None:
            with self._blaming("rms_norm_gate"):
                expression = convert_as_expression(self._own("rms_norm_gate"))
                runs["expression"] = self._compiled(self._relax(expression), "expression: kernels")
            with self._blaming("convert_relax"):
                runs["kernel"] = self._compiled(module)
                _say(
                    "As an expression and as a kernel with its schedule the operator is a kernel "
                    "of its own: only an element-wise operator that follows would be fused with "
                    "the former, and here a product does."
                )
        if "convert_relax" in self.steps.failed:
            module = self._relax(reference.convert_relax(self._kernel))
        self._extern()
        offloaded = self._offload(module) if module is not None else None
        if offloaded is not None:
            with self._blaming("offload_linear"):
                runs["kernel, offloaded"] = self._compiled(offloaded, "offloaded: kernels")
        if runs:
            self._time_model(runs)
        return self.figures

    def _show_gate(self) -> None:
        """The worked example: its loops before and after its schedule."""
        from tvm import te

        from tvm_practice.viz.loop_nest import loop_nest, print_nest

        X, Z = (te.placeholder(self.shape, name=name) for name in "XZ")
        func = te.create_prim_func([X, Z, gate(X, Z)])
        _say(f"\nWorked example: gate on tensors of {self.shape}, and its schedule.")
        print_nest("gate", loop_nest(func))
        print_nest("schedule_gate", loop_nest(schedule_gate(func, lanes=_LANES).mod["main"]))

    def _operator(self) -> None:
        """The operator's loops, values and time: as declared, by a rule, as scheduled."""
        import torch
        import tvm
        from tvm import te

        from tvm_practice import engines
        from tvm_practice.labs.gated_layer import rms_norm_gate as in_pytorch
        from tvm_practice.tvm_export.rules.cpu import schedule_defaults
        from tvm_practice.viz.loop_nest import loop_nest, print_nest

        target = engines.host_target()
        runs: dict[str, Callable[[], Any]] = {}
        with self._blaming("rms_norm_gate"):
            tensors = _declare(self._own("rms_norm_gate"), self.shape, self.eps)
            declared = te.create_prim_func(tensors).with_attr("global_symbol", "main")
            print_nest("rms_norm_gate", loop_nest(declared))
            function = tvm.compile(declared, target)["main"]
            runs["as declared"] = self._verify_operator(function, tvm.runtime.tensor)
            ruled = schedule_defaults(tvm.IRModule({"main": declared}), target)
            function = tvm.compile(ruled, target)["main"]
            runs["default rule"] = self._verify_operator(function, tvm.runtime.tensor)
        if "rms_norm_gate" in self.steps.failed:
            return
        scheduled = self.steps.attempt("schedule_rms_norm_gate", declared, lanes=_LANES)
        if scheduled is not None:
            with self._blaming("schedule_rms_norm_gate"):
                print_nest("schedule_rms_norm_gate", loop_nest(scheduled.mod["main"]))
                module = schedule_defaults(_marked(scheduled.mod), target)
                function = tvm.compile(module, target)["main"]
                runs["schedule_rms_norm_gate"] = self._verify_operator(function, tvm.runtime.tensor)
        inputs = [torch.from_numpy(each) for each in _draw(self.shape)]
        runs["PyTorch"] = lambda: in_pytorch(*inputs, self.eps)
        _say(
            "PyTorch runs the operator as eight, six of which pass a whole tensor through memory. "
            "`as declared` calls the C library's exp for each element; in TVM's other rows it is "
            "arithmetic that vectorizes (tvm_export/rules)."
        )
        self.figures["operator"] = self._time(f"operator on {self.shape}", runs)

    def _import(self, converters: dict[str, Any]) -> Any | None:
        """The model in Relax, its constants folded; None if a converter fails."""
        _say(f"\nThe model: {self.layers} layers with the operator, through torch.export.")
        with self._blaming("convert_relax"):
            return self._relax(converters)
        return None

    def _relax(self, converters: dict[str, Any]) -> Any:
        import tvm
        from tvm import relax

        from solutions.relay_import import import_relax

        module = import_relax(self.model, self.example, converters=converters)
        passes = [relax.transform.CanonicalizeBindings(), relax.transform.FoldConstant()]
        return tvm.ir.transform.Sequential(passes)(module)

    def _kernel(self, shape: tuple[int, ...], eps: float) -> Any:
        from tvm import te

        tensors = _declare(self._own("rms_norm_gate"), shape, eps)
        schedule = self._own("schedule_rms_norm_gate")
        return schedule(te.create_prim_func(tensors), lanes=_LANES).mod["main"]

    def _compiled(self, module: Any, title: str = "") -> Callable[[], Any]:
        """Optimize, schedule and build a module, verify it; what runs it.

        With a title its kernels are shown under it.
        """
        from solutions.relay_import import build_relax, optimize_relax
        from tvm_practice import engines
        from tvm_practice.tvm_export.rules.cpu import schedule_defaults
        from tvm_practice.tvm_export.running import RelaxRunner
        from tvm_practice.viz.graph import graph, print_kernels

        optimized = optimize_relax(module)
        if title:
            print_kernels(title, graph(optimized))
        target = engines.host_target()
        runner = RelaxRunner(build_relax(schedule_defaults(optimized, target), target))
        self._verify_model(runner)
        return runner.run

    def _extern(self) -> None:
        """A product as large as the model's first, by numpy, called from a kernel."""
        import numpy as np
        import tvm
        from tvm import te

        from solutions.relay_import import verify
        from tvm_practice import engines

        rows, inner, columns = self.shape[1], self.shape[2] // 2, self.shape[2] * 2
        A = te.placeholder((rows, inner), name="A")
        B = te.placeholder((inner, columns), name="B")
        C = self.steps.attempt("extern_matmul", A, B, _EXTERN)
        if C is None:
            return
        with self._blaming("extern_matmul"):
            func = te.create_prim_func([A, B, C])
            _say(
                f'\nextern_matmul: the kernel of C is one statement, a call of "{_EXTERN}" in '
                "TVM's table of global functions."
            )
            function = tvm.compile(func, engines.host_target())[func.attrs["global_symbol"]]
            rng = np.random.default_rng()
            a = rng.standard_normal((rows, inner), dtype="float32")
            b = rng.standard_normal((inner, columns), dtype="float32")
            c = np.full((rows, columns), np.nan, "float32")
            on_device = [tvm.runtime.tensor(each) for each in (a, b, c)]
            function(*on_device)
            error = verify([on_device[-1].numpy()], [a @ b], atol=_TOLERANCE, rtol=_TOLERANCE)
            print(f"Built and verified: largest difference to numpy {error:.1e}.")
            self.figures["extern"] = self._time(
                f"{rows}x{inner} by {inner}x{columns}",
                {
                    "numpy": lambda: np.matmul(a, b, out=c),
                    "extern_matmul": lambda: function(*on_device),
                },
                baseline="numpy",
            )

    def _offload(self, module: Any) -> Any | None:
        """The module with its linear layers given to the library; None if that is to do."""
        from tvm_practice.labs import blas_backend
        from tvm_practice.viz.graph import graph, print_operators

        blas_backend.register()
        offloaded = self.steps.attempt("offload_linear", module, blas_backend.BACKEND)
        if offloaded is not None:
            _say(
                "\nThe graph before and after. A linear layer is to be one call of the library, "
                "its bias included; the adds of the residual stay."
            )
            columns = ("imported", "offloaded")
            print_operators("offload_linear", graph(module), graph(offloaded), columns=columns)
        return offloaded

    def _own(self, name: str) -> Callable[..., Any]:
        """The person's function if it is written and ran so far, else the reference's."""
        from solutions.labs import custom_operator as reference

        def function(*arguments: Any, **options: Any) -> Any:
            if name not in (*self.steps.todo, *self.steps.failed):
                made = self.steps.attempt(name, *arguments, **options)
                if made is not None:
                    return made
                print("       until then the reference's is used")
            return getattr(reference, name)(*arguments, **options)

        return function

    @contextmanager
    def _blaming(self, name: str) -> Iterator[None]:
        """What goes wrong in the block is said to be a failure of the function `name`."""
        try:
            yield
        except Exception as error:  # whatever TVM finds wrong with what the person made
            lines = str(error).strip().splitlines() or ["(no message)"]
            self.steps.failed[name] = f"{type(error).__name__}: {lines[-1]}"
            _say(f"fails  {name}: {self.steps.failed[name]}")

    def _verify_operator(
        self, function: Callable[..., Any], on_device: Callable[[Any], Any]
    ) -> Callable[[], Any]:
        """Run a compiled operator and compare it with PyTorch's; what runs it again."""
        import numpy as np
        import torch

        from solutions.relay_import import verify
        from tvm_practice.labs.gated_layer import rms_norm_gate as in_pytorch

        inputs = _draw(self.shape)
        want = in_pytorch(*map(torch.from_numpy, inputs), self.eps).numpy()
        arguments = [on_device(each) for each in (*inputs, np.zeros(self.shape, "float32"))]
        function(*arguments)
        error = verify([arguments[-1].numpy()], [want], atol=_TOLERANCE, rtol=_TOLERANCE)
        print(f"Built and verified: largest difference to PyTorch {error:.1e}.")
        return lambda: function(*arguments)

    def _verify_model(self, runner: Any) -> None:
        """Set the example inputs, run, and compare with PyTorch."""
        import torch

        from solutions.relay_import import verify

        runner.set_inputs([each.numpy() for each in self.example])
        runner.run()
        with torch.inference_mode():
            want = self.model(*self.example).numpy()
        error = verify(runner.outputs(), [want], atol=_TOLERANCE, rtol=_TOLERANCE)
        print(f"Built and verified: largest difference to PyTorch {error:.1e}.")

    def _time_model(self, runs: dict[str, Callable[[], Any]]) -> None:
        runs["PyTorch"] = lambda: self.model(*self.example)
        title = f"{self.layers} layers, {self.shape[1]} tokens"
        self.figures["model"] = self._time(title, runs)

    def _time(
        self, what: str, runs: dict[str, Callable[[], Any]], *, baseline: str = "PyTorch"
    ) -> dict[str, Any]:
        """Time things in turns and print a table; the comparison as figures."""
        import torch
        from rich.console import Console
        from rich.table import Table

        from tvm_practice import engines
        from tvm_practice.measure import compare_interleaved

        with torch.inference_mode():
            comparison = compare_interleaved(
                runs, baseline=baseline, rounds=50, time_limit=self.seconds
            )
        table = Table(what, title=f"in turns, {engines.thread_count()} threads each")
        for title in ("ms", f"time / {baseline}'s", "95% interval"):
            table.add_column(title, justify="right")
        for name, latency in comparison.latency.items():
            ratio = comparison.ratio[name]
            interval = "" if name == baseline else f"{ratio.low:.3g} to {ratio.high:.3g}"
            table.add_row(name, f"{latency.median:.3g}", f"{ratio.value:.3g}", interval)
        Console().print(table)
        return comparison.to_dict()


def _declare(compute: Callable[..., Any], shape: tuple[int, ...], eps: float) -> list[Any]:
    """The tensors [X, Z, W, Y] of the operator on x of `shape`."""
    from tvm import te

    X, Z = (te.placeholder(shape, name=name) for name in "XZ")
    W = te.placeholder(shape[-1:], name="W")
    return [X, Z, W, compute(X, Z, W, eps=eps)]


def _draw(shape: tuple[int, ...]) -> list[Any]:
    """Random x, z and weight, as numpy arrays."""
    import numpy as np

    rng = np.random.default_rng()
    return [rng.standard_normal(each, dtype="float32") for each in (shape, shape, shape[-1:])]


def _marked(module: Any) -> Any:
    """A module with its main marked as scheduled, see `convert_relax`."""
    import tvm

    return tvm.IRModule({"main": module["main"].with_attr("tirx.is_scheduled", True)})


def _say(text: str) -> None:
    """Print wrapped to the terminal."""
    from rich.console import Console
    from rich.text import Text

    Console().print(Text(text))


main = phase_command("labs.custom_operator", "Lab 7: an operator of one's own.")

if __name__ == "__main__":
    main()
