"""What lab 3 shows: one function compiled for every machine, read, run and timed; then a model."""

import functools
import itertools
import math
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.table import Table
from rich.text import Text

from tvm_practice.course.steps import Steps
from tvm_practice.course.tours.printing import cut, number_table, say, show, show_comparison
from tvm_practice.tvm_export.errors import Missing

# Two that this machine may have, and what stands in for a phone and a browser.
_BESIDE = (("x86-64-v3", "aarch64"), ("x86-64-v4", "wasm32"))
_ARCHS = ("sm_75", "sm_80", "sm_90", "sm_100")
_PROGRAM = "matmul"
_MOST_LINES = 28  # of a loop, side by side with another's


def lane(steps: Steps, *, quick: bool) -> dict[str, Any]:
    """Compile one function for every machine, read it, run it, and then a whole model."""
    lab = _Lab(steps, 64 if quick else 256)
    lab.show_here()
    lab.show_targets()
    machines = lab.compile_all()
    lab.run_all(machines)
    figures = {
        "size": lab.size,
        "machines": machines,
        "time": lab.time_here(seconds=2 if quick else 6),
        "cuda": lab.show_cuda(),
    }
    if "target_for" not in steps.todo:
        target = lab.targets["aarch64"]
        text = f"llvm -mtriple={target['mtriple']} -mcpu={target['mcpu']}"
        loader = "load_mlp" if quick else "load_resnet18"
        figures["model"] = _whole_model(steps.folder, loader, text)
    return figures


class _Lab:
    """The function on its way to every machine; what is to do is done by the reference."""

    def __init__(self, steps: Steps, size: int):
        self.steps = steps
        self.size = size
        self.module = steps.chapter.blocked_matmul(size)
        self.targets: dict[str, dict[str, Any]] = {}

    def ask(self, name: str, *arguments: Any) -> tuple[Any, bool]:
        """A step's result and True; while the step is to do, the reference's result and False."""
        from solutions.labs import cross_compile as reference
        from tvm_practice.tvm_export.quiet import native_stderr_to

        right = getattr(reference, name)
        with native_stderr_to(os.devnull):  # TVM warns of wasm32's vectors, which are 128 bits wide
            given = self.steps.attempt(name, *arguments)
        if self.steps.ran(name):
            wanted = dict if "dict" in str(right.__annotations__["return"]) else str
            if isinstance(given, wanted):
                return given, True
            self.steps.fail(name, f"it returned {type(given).__name__}, not {wanted.__name__}")
        with native_stderr_to(os.devnull):
            return right(*arguments), False

    def show_here(self) -> None:
        """Worked: the loops, this machine's innermost loop, and the values."""
        import numpy as np
        import tvm

        from tvm_practice.engines import host_target
        from tvm_practice.viz.assembly import innermost_loop
        from tvm_practice.viz.loop_nest import loop_nest, print_nest

        size = self.size
        print(f"\nWorked example: a matmul of {size}x{size}x{size} for this machine.")
        print_nest("the function", loop_nest(self.module["main"]))
        library = tvm.compile(self.module, target=host_target())
        loop = innermost_loop(library.mod.inspect_source("asm"))
        print("Its innermost loop; LLVM may have unrolled several steps of k:")
        print("".join(f"    {cut(each, 76)}\n" for each in loop), end="")
        a, b = self._inputs()
        c = tvm.runtime.tensor(np.zeros_like(a))
        library["main"](tvm.runtime.tensor(a), tvm.runtime.tensor(b), c)
        print(f"largest difference from numpy {np.abs(c.numpy() - a @ b).max():.1e}")

    def _inputs(self) -> Any:
        import numpy as np

        random = np.random.default_rng(0)
        return random.standard_normal((2, self.size, self.size), "float32")

    def show_targets(self) -> None:
        print("\nThe machines, and the instructions that LLVM may use on each.")
        table = Table("machine", "triple", "processor, features", "vector", "FMA")
        for machine in self.steps.chapter.MACHINES:
            target, _ = self.ask("target_for", machine)
            self.targets[machine] = target
            described, mine = self.ask("describe_target", target)
            words = " ".join([target.get("mcpu", ""), *target.get("mattr", ())])
            found = [
                f"{described.get('vector_bits')} bits",
                "yes" if described.get("fma") else "no",
            ]
            shown = found if mine else ["to do"] * 2
            table.add_row(machine, target.get("mtriple", "-"), words, *shown)
        show(table)

    def compile_all(self) -> dict[str, dict[str, Any]]:
        """The function for each machine: object and assembly files, the innermost loop counted."""
        from tvm_practice.viz.assembly import innermost_loop

        print("\nThe same function for each machine; one step of k updates 64 sums:")
        table = Table("machine", "object", "inner loop", "steps", "float32 vector arithmetic")
        machines: dict[str, dict[str, Any]] = {}
        for machine, target in self.targets.items():
            object_file = self.steps.folder / f"{machine}.o"
            assembly, _ = self.ask("compile_object", self.module, target, str(object_file))
            (self.steps.folder / f"{machine}.s").write_text(assembly)
            try:
                loop = innermost_loop(assembly)
            except ValueError as error:
                self.steps.fail("compile_object", f"for {machine}: {error}")
                loop = []
            counts, mine = self.ask("vector_arithmetic", loop)
            size = object_file.stat().st_size if object_file.exists() else 0
            machines[machine] = {"object_bytes": size, "loop": loop, "arithmetic": counts}
            arithmetic = ", ".join(f"{count} {what}" for what, count in counts.items())
            shown = [f"{self._steps_of_k(counts):g}", arithmetic] if mine else ["to do"] * 2
            table.add_row(machine, f"{size} B", f"{len(loop)} instructions", *shown)
        show(table)
        for one, other in _BESIDE:
            _print_beside(one, machines[one]["loop"], other, machines[other]["loop"])
        say(f"complete assembly: {self.steps.folder}/*.s")
        return machines

    def run_all(self, machines: dict[str, dict[str, Any]]) -> None:
        """Link each object with the C program, and run it where something here can."""
        source, mine = self.ask("c_harness", "main", [(self.size, self.size)] * 3)
        if not mine:
            return
        file = self.steps.folder / f"{_PROGRAM}.c"
        file.write_text(source)
        print()
        say(f"A C program calls it ({file}), without TVM's runtime.")
        table = Table("machine", "program", "run by", "largest error")
        results: dict[bytes, list[str]] = {}
        for machine in self.targets:
            try:
                size, by, written = self._run_on(machine, file)
            except Missing as missing:
                machines[machine]["missing"] = str(missing)
                table.add_row(machine, "", f"- {missing}", "")
            except RuntimeError as failure:
                self.steps.fail("c_harness", f"for {machine}: {failure}")
            else:
                results.setdefault(written, []).append(machine)
                error = self._error_of(written)
                machines[machine] |= {"run_by": by, "max_error": error}
                table.add_row(machine, f"{size / 1e3:.0f} kB", by, f"{error:.1e}")
        show(table)
        if len(results) > 1:
            groups = "; ".join(" and ".join(each) for each in results.values())
            say(f"results equal bit for bit: {groups}; an FMA rounds once, multiply then add twice")

    def _run_on(self, machine: str, file: Path) -> tuple[int, str, bytes]:
        """Link a machine's object with the C program, and run it.

        Returns:
            The program's bytes, what runs it, and what it wrote.

        Raises:
            Missing: a linker or an emulator; or this processor cannot run it.
            RuntimeError: it does not link, or ends with an error.
        """
        from tvm_practice.tvm_export import cross

        target = self.targets[machine]
        triple = target["mtriple"]
        program = self.steps.folder / f"{_PROGRAM}-{machine}"
        _require_features(target)
        command = cross.launcher(triple)
        cross.link([file, self.steps.folder / f"{machine}.o"], triple, program)
        a, b = self._inputs()
        written = cross.run_program(program, triple, a.tobytes() + b.tobytes())
        return program.stat().st_size, Path(command[0]).name if command else "itself", written

    def _error_of(self, written: bytes) -> float:
        """The largest difference of a program's output from numpy's product."""
        import numpy as np

        a, b = self._inputs()
        return float(np.abs(np.frombuffer(written, "float32").reshape(a.shape) - a @ b).max())

    def _steps_of_k(self, counts: Mapping[str, int]) -> float:
        """Steps of k in a loop: its products over those of a step."""
        lanes = {"ymm": 8, "zmm": 16}
        products = sum(
            count * lanes.get(what.split()[-1], 4)
            for what, count in counts.items()
            if not what.startswith("add")
        )
        return float(products / math.prod(self.steps.chapter.TILE))

    def time_here(self, *, seconds: float) -> dict[str, Any]:
        """Time the code of each target that this machine runs, in turns; {} for fewer than two."""
        from tvm_practice.measure import compare_interleaved

        runs = self._runs_here()
        if len(runs) < 2:
            return {}
        first = next(iter(runs))
        print("\nThe versions that this machine can run, timed in turns on one thread:")
        comparison = compare_interleaved(runs, baseline=first, rounds=30, time_limit=seconds)
        table = number_table("machine", "ms", "GFLOP/s", f"x {first}", "95% interval")
        for name, latency in comparison.latency.items():
            faster, interval = comparison.ratio[name].cells(".2f", inverse=True)
            gflops = 2 * self.size**3 / latency.median / 1e6
            times = (f"{latency.median:.3f}", f"{gflops:.1f}", faster)
            table.add_row(name, *times, "" if name == first else interval)
        show_comparison(table, comparison)
        print("An emulator's time says nothing about the machine that it stands in for.")
        return comparison.to_dict()

    def _runs_here(self) -> dict[str, Callable[[], Any]]:
        """The function compiled for each machine that this one is, by machine."""
        import numpy as np
        import tvm

        from tvm_practice.tvm_export.targets import why_not_runnable

        a, b = map(tvm.runtime.tensor, self._inputs())
        runs: dict[str, Callable[[], Any]] = {}
        for machine, described in self.targets.items():
            target = tvm.target.Target(described)
            if why_not_runnable(target) is None:
                c = tvm.runtime.tensor(np.zeros(a.shape, "float32"))
                function = tvm.compile(self.module, target=target)["main"]
                runs[machine] = functools.partial(function, a, b, c)
        return runs

    def show_cuda(self) -> dict[str, Any]:
        """The same product as CUDA source, and as PTX where a CUDA compiler is."""
        from tvm_practice.tvm_export.cuda import NO_COMPILER, compiler

        print("\nThe same product as CUDA source, one thread per element; this needs no GPU.")
        module = self.steps.chapter.threaded_matmul(self.size)
        figures: dict[str, Any] = {}
        table = Table("arch", "CUDA source", "same text", "PTX", "PTX version", "fma.rn.f32")
        first = None
        for arch in _ARCHS:
            source, mine = self.ask("cuda_source", module, arch)
            if not mine:
                return {}
            (self.steps.folder / f"{arch}.cu").write_text(source)
            first = first or source
            figures[arch] = {"source_bytes": len(source), "same": source == first}
            cells = ["-", "-", "-"]
            if text := self._ptx(source, arch):
                version = text.partition(".version ")[2].split()[0]
                count = text.count("fma.rn.f32")
                cells = [f"{len(text)} B", version, str(count)]
                figures[arch] |= {"ptx_bytes": len(text), "fma": count}
            table.add_row(arch, f"{len(source)} B", "yes" if source == first else "no", *cells)
        show(table)
        if compiler() is None:
            say(f"PTX: {NO_COMPILER}")
        return figures

    def _ptx(self, source: str, arch: str) -> str:
        """The PTX of CUDA source, which is saved; "" where it cannot be compiled."""
        from tvm_practice.tvm_export.cuda import CudaCompilerError, compiled, compiler

        if compiler() is None:
            return ""
        try:
            text = compiled(source, arch, form="ptx").decode()
        except CudaCompilerError as error:
            say(str(error))
            return ""
        (self.steps.folder / f"{arch}.ptx").write_text(text)
        return text


def _require_features(target: Mapping[str, Any]) -> None:
    """Raises Missing if a target of this architecture has features that this processor lacks."""
    import tvm

    from tvm_practice.tvm_export.targets import why_not_runnable

    reason = why_not_runnable(tvm.target.Target(dict(target)))
    if reason and not reason.startswith("code for"):
        raise Missing(reason)


def _print_beside(one: str, loop: Sequence[str], other: str, other_loop: Sequence[str]) -> None:
    """Two loops' instructions side by side."""
    table = Table(one, other)
    narrow = min(36, max(map(len, other_loop), default=0))
    shown = [_shortened(each) for each in (loop, other_loop)]
    for left, right in itertools.zip_longest(*shown, fillvalue=""):
        # As text: square brackets are rich's markup, and aarch64's addresses.
        table.add_row(Text(cut(left, 72 - narrow)), Text(cut(right, narrow)))
    show(table)


def _shortened(loop: Sequence[str]) -> list[str]:
    if len(loop) <= _MOST_LINES:
        return list(loop)
    return [*loop[: _MOST_LINES - 1], f"… {len(loop) - _MOST_LINES + 1} more"]


def _whole_model(folder: Path, loader: str, target: str) -> dict[str, Any]:
    """Export a model for aarch64; run it under qemu where all that this needs is here."""
    from tvm_practice.course.stack import earlier
    from tvm_practice.tvm_export import cross
    from tvm_practice.tvm_export.calling import as_array, as_call
    from tvm_practice.tvm_export.config import ATOL, RTOL
    from tvm_practice.tvm_export.loading import load
    from tvm_practice.tvm_export.pipeline import export_model

    verify = earlier("relay_import.verify")
    model = f"tvm_practice.models:{loader}"
    artifacts = folder / loader
    print()
    say(f"A whole model for aarch64, exported by run_autotvm {model} --target '{target}':")
    asked = {"model": model, "artifacts": artifacts, "target": target, "force": True}
    result = export_model(asked)
    say(f"written to {artifacts}, library {result['size'] / 1e6:.1f} MB")
    say(f"not run: {result['not_run']}")
    figures = {"library_bytes": result["size"], "not_run": result["not_run"]}
    if reason := cross.why_no_artifact("aarch64-linux-gnu"):
        say(f"not emulated either: {reason}")
        return figures
    loaded = load(model, example=None, seed=0)
    call = as_call(loaded.module, loaded.args, loaded.kwargs)
    outputs = cross.run_artifact(artifacts, [as_array(each) for each in call.tensors])
    reference = [as_array(each) for each in loaded.outputs]
    error = verify(outputs, reference, atol=ATOL, rtol=RTOL)
    say(f"emulated, with TVM's runtime for aarch64: largest difference from PyTorch {error:.1e}")
    return {**figures, "max_error": error}
