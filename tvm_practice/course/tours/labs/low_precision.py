"""What lab 8 shows: a layer of ResNet-18 from real numbers to integers, loops, assembly, times."""

import functools
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from tvm_practice.course.steps import Steps
from tvm_practice.course.tours.printing import number_table, say, show, show_code, show_comparison
from tvm_practice.wording import number_of

Function = Callable[..., Any]
BITS = (8, 7, 6, 5, 4, 3)
_TILE_ROWS = 8  # vectors of sums: as many as fill the instruction's pipeline, and some


def lane(steps: Steps, *, quick: bool) -> dict[str, Any]:
    """Rounding, error against bits, the integer product and its epilogue, tiles."""
    import torch

    from tvm_practice import engines

    torch.set_num_threads(engines.thread_count())
    study = _Study(steps, quick=quick)
    figures: dict[str, Any] = {}
    parts: dict[str, tuple[tuple[str, ...], Function]] = {
        "rounding": (("round_to_bfloat16",), study.rounding),
        "errors": (("affine_parameters", "quantize", "dequantize"), study.errors),
        "product": (("pack_weights", "schedule_vnni"), study.product),
        "epilogue": (("fold_zero_point", "requantized"), study.epilogue),
        "times": ((), study.times),
        "tiles": (("tile_configuration", "amx_product"), study.tiles),
    }
    for name, (used, run) in parts.items():
        figures[name] = _part(steps, used, run)
    return figures


def _part(steps: Steps, used: tuple[str, ...], run: Function) -> Any:
    """What `run` returns; None where it fails on what one of the functions `used` returned."""
    try:
        return run()
    except Exception as error:
        written = [name for name in used if steps.ran(name)]
        if not written:
            raise
        said = (str(error).strip().splitlines() or ["(no message)"])[0]
        steps.fail(written[0], f"{type(error).__name__}: {said}")
        say(f"This part stops here. It uses {', '.join(written)}; grade them: pytest -m lab8")
    return None


def layer(*, rows: int, seed: int = 0) -> tuple[Any, Any, Any]:
    """Inputs, weight and bias of a layer of ResNet-18: its last 1x1 convolution, as a product.

    Its batch normalization is folded into the weight and the bias. The inputs are drawn.

    Returns:
        float32 arrays (rows, 256), (256, 512), (512,).
    """
    import numpy as np

    weight, bias = _parameters()
    x = np.random.default_rng(seed).normal(0.5, 1.0, (rows, len(weight))).astype("float32")
    return x, weight, bias


@functools.cache
def _parameters() -> tuple[Any, Any]:
    import torch

    from tvm_practice.models import load_resnet18

    model: Any = load_resnet18()[0]
    convolution, norm = model.layer4[0].downsample
    with torch.no_grad():
        factor = norm.weight / torch.sqrt(norm.running_var + norm.eps)
        weight = (convolution.weight[:, :, 0, 0] * factor[:, None]).T.contiguous().numpy()
        bias = (norm.bias - norm.running_mean * factor).numpy()
    return weight, bias


def errors_by_bits(own: Mapping[str, Function], scales: Function) -> dict[str, list[float]]:
    """Relative error of the layer's product by bits of weights and inputs, and by their scales.

    Args:
        own: `affine_parameters`, `quantize` and `dequantize`.
        scales: the chapter's `column_scales`.
    """
    import numpy as np

    x, weight, _ = layer(rows=64)
    exact = x.astype("float64") @ weight.astype("float64")
    found: dict[str, list[float]] = {"one scale": [], "a scale per column": []}
    for bits in BITS:
        scale, zero = own["affine_parameters"](float(x.min()), float(x.max()), bits=bits)
        q = own["quantize"](x, scale, zero, signed=False, bits=bits)
        x_real = own["dequantize"](q, scale, zero).astype("float64")
        columns = scales(weight, bits=bits)
        for name, each in zip(found, (columns.max(), columns), strict=True):
            w = own["quantize"](weight, each, 0, signed=True, bits=bits)
            error = x_real @ own["dequantize"](w, each, 0).astype("float64") - exact
            found[name].append(float(np.linalg.norm(error) / np.linalg.norm(exact)))
    return found


class _Study:
    """The lab on the layer, as far as the functions are written.

    Attributes:
        x, weight, bias: the layer's inputs and parameters.
    """

    def __init__(self, steps: Steps, *, quick: bool):
        self.steps = steps
        self.seconds = 0.5 if quick else 5.0
        self.x, self.weight, self.bias = layer(rows=128 if quick else 1024)
        self._product: Any = None
        self._scales = steps.chapter.column_scales(self.weight)

    def _own(self, name: str) -> Function:
        """The person's function if it is written and ran so far, else the reference's."""
        from solutions.labs import low_precision as reference

        def function(*arguments: Any, **options: Any) -> Any:
            if self.steps.ran(name):
                made = self.steps.attempt(name, *arguments, **options)
                if self.steps.ran(name):
                    return made
                print("       until then the reference solution is used")
            return getattr(reference, name)(*arguments, **options)

        return function

    def _expect(self, name: str, right: bool, what: str) -> None:
        if not right and self.steps.ran(name):
            self.steps.fail(name, what)

    def rounding(self) -> dict[str, Any]:
        """A table of rounded numbers, and the largest relative error of many."""
        import numpy as np

        rounded = self._own("round_to_bfloat16")
        x = np.array([1, 1.0039062, 0.1, 3.1415927, 65504, 3.4e38, np.nan], "float32")
        table = number_table("float32", "bits", "bfloat16", "value", title="Rounding")
        for number, upper in zip(x, rounded(x), strict=True):
            value = np.uint32(int(upper) << 16).view("float32")
            table.add_row(f"{number:.8g}", f"{number.view('uint32'):08x}", f"{upper:04x}",
                          f"{value:.8g}")  # fmt: skip
        show(table)
        many = np.random.default_rng(1).standard_normal(100_000).astype("float32")
        back = (rounded(many).astype("uint32") << 16).view("float32")
        worst = float(np.max(np.abs(back - many) / np.abs(many)))
        say(
            f"Largest relative error of 100000 numbers: {worst:.5f}; half a step is 2^-8 = 0.00391."
        )
        self._expect("round_to_bfloat16", worst <= 2**-8, f"a relative error of {worst:.2g}")
        return {"largest_error": worst}

    def errors(self) -> dict[str, Any]:
        """Error against bits: of quantized weights and inputs, and of bfloat16."""
        import numpy as np

        names = ("affine_parameters", "quantize", "dequantize")
        own = {name: self._own(name) for name in names}
        found = errors_by_bits(own, self.steps.chapter.column_scales)
        say(
            "\nA layer of ResNet-18, 256 to 512 channels, its batch normalization folded. Relative "
            "error of its product, by the bits of inputs and weights:"
        )
        table = number_table("bits", *found)
        for at, bits in enumerate(BITS):
            table.add_row(str(bits), *(f"{each[at]:.4f}" for each in found.values()))
        show(table)
        rounded = self._own("round_to_bfloat16")
        x, weight = (
            (rounded(each).astype("uint32") << 16).view("float32").astype("float64")
            for each in (self.x[:64], self.weight)
        )
        exact = self.x[:64].astype("float64") @ self.weight.astype("float64")
        error = float(np.linalg.norm(x @ weight - exact) / np.linalg.norm(exact))
        say(f"bfloat16, which needs no scale: {error:.4f}.")
        return {**found, "bits": list(BITS), "bfloat16": error}

    def _quantized(self) -> tuple[Any, Any, float, int]:
        """The inputs and weights as integers, the inputs' scale and zero point."""
        parameters = self._own("affine_parameters")
        quantize = self._own("quantize")
        scale, zero = parameters(float(self.x.min()), float(self.x.max()))
        x = quantize(self.x, scale, zero, signed=False)
        return x, quantize(self.weight, self._scales, 0, signed=True), scale, zero

    def product(self) -> dict[str, Any]:
        """The loops before and after, the inner loop's assembly, the values."""
        import numpy as np
        import tvm

        from tvm_practice.viz.loop_nest import loop_nest, print_nest

        x, weight, _, _ = self._quantized()
        schedule = self._schedule(None)
        print_nest("declared", loop_nest(schedule.mod["main"]))
        schedule = self._schedule("tvm_practice_vnni")
        print_nest("schedule_vnni", loop_nest(schedule.mod["main"]))
        self._show_assembly(schedule)
        packed = self._own("pack_weights")(weight, group=4)
        out = tvm.runtime.tensor(np.zeros((len(x), weight.shape[1]), "int32"))
        arguments = [tvm.runtime.tensor(x), tvm.runtime.tensor(packed), out]
        has_it = _has_vnni()
        if not has_it:
            say("This processor has no AVX-512 VNNI: the same loops run with plain arithmetic.")
            schedule = self._schedule("tvm_practice_dot")
        kernel = _built(schedule.mod)
        kernel(*arguments)
        right = np.array_equal(out.numpy(), x.astype("int32") @ weight.astype("int32"))
        say(f"The integer product is {'exact' if right else 'WRONG'}.")
        self._expect("schedule_vnni", right, "another product than numpy's")
        if has_it and right:
            self._product = functools.partial(kernel, *arguments)
        return {"exact": right, "vnni": has_it}

    def _schedule(self, intrinsic: str | None) -> Any:
        """The layer's product, scheduled with an intrinsic if one is named."""
        import tvm
        from tvm import te

        from tvm_practice.labs.integer_products import declare, register_intrinsics

        register_intrinsics()
        func = te.create_prim_func(declare(len(self.x), *self.weight.shape))
        schedule = tvm.s_tir.Schedule(func.with_attr("global_symbol", "main"))
        if intrinsic is not None:
            options = {"rows": _TILE_ROWS, "intrinsic": intrinsic}
            with_intrinsic = self._own("schedule_vnni")
            with_intrinsic(schedule, schedule.get_sblock("C"), **options)
        return schedule

    def _show_assembly(self, schedule: Any) -> None:
        """What LLVM makes of the innermost loop for a processor with VNNI."""
        from tvm_practice.labs.simulated_tiles import assembly
        from tvm_practice.viz.assembly import innermost_loop

        listing = assembly(schedule.mod["main"], mcpu="cascadelake")
        loop = innermost_loop(listing)
        products = [each for each in loop if "vpdpbusd" in each]
        show_code("its innermost loop, the first lines", loop[:12], "gas")
        say(
            f"{len(loop)} instructions, {len(products)} of them vpdpbusd: "
            f"{64 * len(products)} products of bytes each time around."
        )

    def epilogue(self) -> dict[str, Any]:
        """The whole layer in integers: fold, product, requantize, and its error."""
        import numpy as np
        from tvm import te

        from tvm_practice.course.lowering import build_expression

        x, weight, scale, zero = self._quantized()
        exact = np.maximum(self.x @ self.weight + self.bias, 0)
        units = (scale * self._scales).astype("float32")
        folded = self._own("fold_zero_point")(weight, zero, self.bias, units)
        result = float(exact.max()) / 255
        multiplier = (units / result).astype("float32")
        C = te.placeholder(exact.shape, "int32", name="C")
        bias = te.placeholder(folded.shape, "int32", name="bias")
        factors = te.placeholder(folded.shape, "float32", name="multiplier")
        tensors = [C, bias, factors, self._own("requantized")(C, bias, factors, 0)]
        product = x.astype("int32") @ weight.astype("int32")
        bytes_out = build_expression(tensors)(product, folded, multiplier)
        error = bytes_out.astype("float64") * result - exact
        relative = float(np.linalg.norm(error) / np.linalg.norm(exact))
        say(
            f"\nThe whole layer in integers, bias and ReLU included, its result in 8 bits: "
            f"relative error {relative:.4f}, "
            f"largest error {np.abs(error).max() / result:.1f} steps."
        )
        self._expect("requantized", relative < 0.05, f"a relative error of {relative:.2g}")
        return {"relative_error": relative}

    def times(self) -> dict[str, Any] | None:
        """The product against float32, TVM's own and torch's, in turns."""
        import torch

        from tvm_practice import engines
        from tvm_practice.measure import compare_interleaved

        if self._product is None:
            say("\nNot timed: schedule_vnni is not right yet, or there is no VNNI here.")
            return None
        x, weight, _, _ = self._quantized()
        given = [torch.from_numpy(each) for each in (self.x, self.weight)]
        signed = [torch.from_numpy(x.view("int8")), torch.from_numpy(weight)]
        runs = {
            "float32, TVM": self._in_float32(),
            "float32, torch": lambda: torch.matmul(*given),
            "int8, torch": lambda: torch._int_mm(*signed),
            "int8, schedule_vnni": self._product,
        }
        with torch.inference_mode():
            comparison = compare_interleaved(
                runs, baseline="float32, TVM", rounds=100, time_limit=self.seconds
            )
        title = f"the product alone, in turns, {number_of(engines.thread_count(), 'thread')} each"
        shape = f"{len(x)} x {weight.shape[0]} x {weight.shape[1]}"
        table = number_table(shape, "ms", "ratio", "95% interval", title=title)
        for name, latency in comparison.latency.items():
            value, interval = comparison.ratio[name].cells()
            table.add_row(name, f"{latency.median:.3g}", value, interval)
        show_comparison(table, comparison)
        return comparison.to_dict()

    def _in_float32(self) -> Callable[[], Any]:
        """The same product in float32 by the exporter's default schedule."""
        import tvm
        from tvm import relax

        from tvm_practice import engines
        from tvm_practice.tvm_export.rules.cpu import schedule_defaults
        from tvm_practice.tvm_export.steps.relax import optimize_relax

        builder = relax.BlockBuilder()
        x = relax.Var("x", relax.TensorType(self.x.shape, "float32"))
        with builder.function("main", [x]):
            with builder.dataflow():
                product = relax.op.matmul(x, relax.const(self.weight))
                result = builder.emit_output(builder.emit(product))
            builder.emit_func_output(result)
        target = engines.host_target()
        module = schedule_defaults(optimize_relax(builder.get()), target)
        machine = relax.VirtualMachine(tvm.compile(module, target), tvm.cpu())
        return functools.partial(machine["main"], tvm.runtime.tensor(self.x))

    def tiles(self) -> dict[str, Any]:
        """A product on tile registers: simulated, compiled for a processor that has them, run."""
        import numpy as np

        from tvm_practice.labs import simulated_tiles

        rows, k = 32, 128
        rounded, pack = self._own("round_to_bfloat16"), self._own("pack_weights")
        a, b = rounded(self.x[:rows, :k]), rounded(self.weight[:k, :16])
        packed = pack(b, group=2)[0].reshape(k // 2, 32)
        shape = (16, 64)
        configuration = self._own("tile_configuration")({0: shape, 1: shape, 2: shape})
        func = self._own("amx_product")(rows, k)
        C = np.zeros((rows, 16), "float32")
        tiles = simulated_tiles.run_simulated(func, [configuration, a, packed, C])
        want = self.x[:rows, :k].astype("float64") @ self.weight[:k, :16].astype("float64")
        error = float(np.linalg.norm(C - want) / np.linalg.norm(want))
        counts = {name: tiles.calls.count(name) for name in dict.fromkeys(tiles.calls)}
        say(
            f"\nTiles, {rows} x {k} x 16 in bfloat16, simulated: relative error {error:.4f}. "
            f"{', '.join(f'{count} {name}' for name, count in counts.items())}."
        )
        self._expect("amx_product", error < 0.02, f"a relative error of {error:.2g}")
        lines = simulated_tiles.assembly(func).splitlines()
        lines = [" ".join(each.split()) for each in lines if "tmm" in each or "tilecfg" in each]
        show_code("for mcpu=sapphirerapids, the first lines", lines[:6], "gas")
        if simulated_tiles.allowed():
            simulated_tiles.run_on_tiles(func, [configuration, a, packed, C])
            error = float(np.linalg.norm(C - want) / np.linalg.norm(want))
            say(f"On this processor's tiles: relative error {error:.4f}.")
        else:
            say("This processor has no bfloat16 tiles (AMX), or the operating system forbids them.")
        return {"relative_error": error, "calls": counts}


def _has_vnni() -> bool:
    from tvm_practice.engines.host import flags

    return "avx512_vnni" in flags()


def _built(mod: Any) -> Any:
    import tvm

    from tvm_practice import engines

    return tvm.compile(mod, target=engines.host_target())["main"]


def errors_figure(found: Mapping[str, list[float]]) -> Any:
    """Error against bits, one line per way to choose scales."""
    from tvm_practice.viz.drawing import new_figure

    figure = new_figure(6, 2.8)
    axes = figure.subplots()
    for name, errors in found.items():
        axes.plot(BITS, errors, "o-", markersize=4, label=name)
    axes.axhline(2**-8, color="0.6", linestyle=":")
    axes.text(BITS[-1], 2**-8 * 1.1, "half a step of bfloat16", fontsize=8, ha="right")
    axes.set_yscale("log", base=2)
    axes.invert_xaxis()
    axes.set_xlabel("bits of inputs and weights")
    axes.set_ylabel("relative error")
    axes.legend(loc="upper left")
    return figure


def report(results: dict[str, Any], folder: Path) -> None:
    """Draw the error against bits."""
    from tvm_practice.viz.drawing import style

    found = (results.get("current", {}).get("figures", {}) or {}).get("errors")
    if not found:
        return
    with style():
        file = folder / "error_by_bits.png"
        errors_figure({name: found[name] for name in ("one scale", "a scale per column")}).savefig(
            file
        )
    print(f"\nError against bits: {file}")
