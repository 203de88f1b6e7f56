"""What lab 7 shows: the operator alone, then in a model, compiled, verified and timed."""

from collections.abc import Callable
from typing import Any

from tvm_practice.course.steps import Steps
from tvm_practice.course.tours.printing import number_table, say, show_comparison
from tvm_practice.wording import number_of

_TOLERANCE = 1e-4
_EXTERN = "practice.matmul"


def lane(steps: Steps, *, quick: bool) -> dict[str, Any]:
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

    def __init__(self, steps: Steps, *, quick: bool):
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

        from tvm_practice import engines
        from tvm_practice.course.stack import earlier
        from tvm_practice.tvm_export.importers.converters.relay import converters
        from tvm_practice.tvm_export.running import RelayRunner
        from tvm_practice.viz.graph import graph, print_operators
        from tvm_practice.viz.loop_nest import classic_statement, loop_nest, print_nest

        build_relay = earlier("relay_import.build_relay")
        import_relay = earlier("relay_import.import_relay")
        optimize_relay = earlier("relay_import.optimize_relay")
        with self.steps.blaming("rms_norm_gate"):
            tensors = _declare(self._own("rms_norm_gate"), self.shape, self.eps)
            schedule = self.steps.chapter.schedule_classic(tensors[-1:])
            print_nest("schedule_classic", loop_nest(classic_statement(schedule)))
            function = tvm.build(schedule, tensors, target=engines.host_target())
            self._verify_operator(function, tvm.nd.array)
        own = self.steps.attempt(
            "convert_relay",
            "practice.rms_norm_gate",
            self._own("rms_norm_gate"),
            self.steps.chapter.schedule_classic,
        )
        if own is None:
            return self.figures
        say(f"\nThe model: {number_of(self.layers, 'layer')} with the operator, through a trace.")
        with self.steps.blaming("convert_relay"):
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
            with self.steps.blaming("rms_norm_gate"):
                expression = self.steps.chapter.convert_as_expression(self._own("rms_norm_gate"))
                runs["expression"] = self._compiled(self._relax(expression), "expression: kernels")
            with self.steps.blaming("convert_relax"):
                runs["kernel"] = self._compiled(module)
                say(
                    "Either way, the operator is a kernel of its own here. The expression could be "
                    "fused with an element-wise operator after it, but a product follows."
                )
        if "convert_relax" in self.steps.failed:
            module = self._relax(reference.convert_relax(self._kernel))
        self._extern()
        offloaded = self._offload(module) if module is not None else None
        if offloaded is not None:
            with self.steps.blaming("offload_linear"):
                runs["kernel, offloaded"] = self._compiled(offloaded, "offloaded: kernels")
        if runs:
            self._time_model(runs)
        return self.figures

    def _show_gate(self) -> None:
        """The worked example: its loops before and after its schedule."""
        from tvm import te

        from tvm_practice.viz.loop_nest import loop_nest, print_nest

        chapter = self.steps.chapter
        X, Z = (te.placeholder(self.shape, name=name) for name in "XZ")
        func = te.create_prim_func([X, Z, chapter.gate(X, Z)])
        say(f"\nWorked example: gate on tensors of {self.shape}, and its schedule.")
        print_nest("gate", loop_nest(func))
        scheduled = chapter.schedule_gate(func, lanes=chapter.LANES)
        print_nest("schedule_gate", loop_nest(scheduled.mod["main"]))

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
        with self.steps.blaming("rms_norm_gate"):
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
        lanes = self.steps.chapter.LANES
        scheduled = self.steps.attempt("schedule_rms_norm_gate", declared, lanes=lanes)
        if scheduled is not None:
            with self.steps.blaming("schedule_rms_norm_gate"):
                print_nest("schedule_rms_norm_gate", loop_nest(scheduled.mod["main"]))
                module = schedule_defaults(_marked(scheduled.mod), target)
                function = tvm.compile(module, target)["main"]
                runs["schedule_rms_norm_gate"] = self._verify_operator(function, tvm.runtime.tensor)
        inputs = [torch.from_numpy(each) for each in _draw(self.shape)]
        runs["PyTorch"] = lambda: in_pytorch(*inputs, self.eps)
        say(
            "PyTorch runs the operator as eight operations; six of them pass a whole tensor "
            "through memory. `as declared` calls the C library's exp for each element; TVM's other "
            "rows compute exp with arithmetic that vectorizes (tvm_export/rules)."
        )
        self.figures["operator"] = self._time(f"operator on {self.shape}", runs)

    def _import(self, converters: dict[str, Any]) -> Any | None:
        """The model in Relax, its constants folded; None if a converter fails."""
        say(
            f"\nThe model: {number_of(self.layers, 'layer')} with the operator, through "
            "torch.export."
        )
        with self.steps.blaming("convert_relax"):
            return self._relax(converters)
        return None

    def _relax(self, converters: dict[str, Any]) -> Any:
        import tvm
        from tvm import relax

        from tvm_practice.course.stack import earlier

        import_relax = earlier("relay_import.import_relax")
        module = import_relax(self.model, self.example, converters=converters)
        passes = [relax.transform.CanonicalizeBindings(), relax.transform.FoldConstant()]
        return tvm.ir.transform.Sequential(passes)(module)

    def _kernel(self, shape: tuple[int, ...], eps: float) -> Any:
        from tvm import te

        tensors = _declare(self._own("rms_norm_gate"), shape, eps)
        schedule = self._own("schedule_rms_norm_gate")
        return schedule(te.create_prim_func(tensors), lanes=self.steps.chapter.LANES).mod["main"]

    def _compiled(self, module: Any, title: str = "") -> Callable[[], Any]:
        """Optimize, schedule and build a module, verify it; what runs it.

        With a title its kernels are shown under it.
        """
        from tvm_practice import engines
        from tvm_practice.course.stack import earlier
        from tvm_practice.tvm_export.rules.cpu import schedule_defaults
        from tvm_practice.tvm_export.running import RelaxRunner
        from tvm_practice.viz.graph import graph, print_kernels

        build_relax = earlier("relay_import.build_relax")
        optimize_relax = earlier("relay_import.optimize_relax")
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

        from tvm_practice import engines
        from tvm_practice.course.stack import earlier

        verify = earlier("relay_import.verify")
        rows, inner, columns = self.shape[1], self.shape[2] // 2, self.shape[2] * 2
        A = te.placeholder((rows, inner), name="A")
        B = te.placeholder((inner, columns), name="B")
        C = self.steps.attempt("extern_matmul", A, B, _EXTERN)
        if C is None:
            return
        with self.steps.blaming("extern_matmul"):
            func = te.create_prim_func([A, B, C])
            say(
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
            print(f"Built and verified: largest difference from numpy {error:.1e}.")
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
            say(
                "\nThe graph before and after. Each linear layer should become one library call, "
                "its bias included; the residual's adds stay."
            )
            columns = ("imported", "offloaded")
            print_operators("offload_linear", graph(module), graph(offloaded), columns=columns)
        return offloaded

    def _own(self, name: str) -> Callable[..., Any]:
        """The person's function if it is written and ran so far, else the reference's."""
        from solutions.labs import custom_operator as reference

        def function(*arguments: Any, **options: Any) -> Any:
            if self.steps.ran(name):
                made = self.steps.attempt(name, *arguments, **options)
                if made is not None:
                    return made
                print("       until then the reference solution is used")
            return getattr(reference, name)(*arguments, **options)

        return function

    def _verify_operator(
        self, function: Callable[..., Any], on_device: Callable[[Any], Any]
    ) -> Callable[[], Any]:
        """Run a compiled operator and compare it with PyTorch's; what runs it again."""
        import numpy as np
        import torch

        from tvm_practice.course.stack import earlier
        from tvm_practice.labs.gated_layer import rms_norm_gate as in_pytorch

        verify = earlier("relay_import.verify")
        inputs = _draw(self.shape)
        want = in_pytorch(*map(torch.from_numpy, inputs), self.eps).numpy()
        arguments = [on_device(each) for each in (*inputs, np.zeros(self.shape, "float32"))]
        function(*arguments)
        error = verify([arguments[-1].numpy()], [want], atol=_TOLERANCE, rtol=_TOLERANCE)
        print(f"Built and verified: largest difference from PyTorch {error:.1e}.")
        return lambda: function(*arguments)

    def _verify_model(self, runner: Any) -> None:
        """Set the example inputs, run, and compare with PyTorch."""
        import torch

        from tvm_practice.course.stack import earlier

        verify = earlier("relay_import.verify")
        runner.set_inputs([each.numpy() for each in self.example])
        runner.run()
        with torch.inference_mode():
            want = self.model(*self.example).numpy()
        error = verify(runner.outputs(), [want], atol=_TOLERANCE, rtol=_TOLERANCE)
        print(f"Built and verified: largest difference from PyTorch {error:.1e}.")

    def _time_model(self, runs: dict[str, Callable[[], Any]]) -> None:
        runs["PyTorch"] = lambda: self.model(*self.example)
        title = f"{number_of(self.layers, 'layer')}, {self.shape[1]} tokens"
        self.figures["model"] = self._time(title, runs)

    def _time(
        self, what: str, runs: dict[str, Callable[[], Any]], *, baseline: str = "PyTorch"
    ) -> dict[str, Any]:
        """Time things in turns and print a table; the comparison as figures."""
        import torch

        from tvm_practice import engines
        from tvm_practice.measure import compare_interleaved

        with torch.inference_mode():
            comparison = compare_interleaved(
                runs, baseline=baseline, rounds=50, time_limit=self.seconds
            )
        headings = ("ms", f"time / {baseline}'s", "95% interval")
        title = f"in turns, {number_of(engines.thread_count(), 'thread')} each"
        table = number_table(what, *headings, title=title)
        for name, latency in comparison.latency.items():
            value, interval = comparison.ratio[name].cells()
            interval = "" if name == baseline else interval
            table.add_row(name, f"{latency.median:.3g}", value, interval)
        show_comparison(table, comparison)
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
