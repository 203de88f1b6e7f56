"""What lab 2 shows: a classifier exported, a C++ program around it, and the C++ functions tried."""

import json
import os
import subprocess
import textwrap
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tvm_practice.course.steps import Steps
from tvm_practice.course.tours.printing import cut, number_table, say, show
from tvm_practice.measure import MIN_ROUNDS
from tvm_practice.wording import number_of

if TYPE_CHECKING:
    import numpy as np

# Of each C++ function: the arguments of the program that tries it, and what to show of its answer.
_TRIALS: tuple[tuple[str, tuple[int, ...], tuple[str, ...]], ...] = (
    ("wrap_buffer", (1, 3, 224, 224), ("same_memory", "shape", "dtype", "released", "living")),
    ("call_on_threads", (24, 4, -1), ("clones", "shared", "peak", "results")),
    ("call_on_stream", (224, 224, 1000, 1), ("order", "elsewhere", "waits", "label", "expected")),
)


def lane(steps: Steps, *, quick: bool) -> dict[str, Any]:
    """Export a classifier, build C++ around it, compare and time it; try the C++ functions."""
    # Two processes are timed in turns: bound workers of both would be on the same cores.
    os.environ["TVM_BIND_THREADS"] = "0"
    _show_tensor(steps)
    figures = _export(steps, quick=quick)
    for name, arguments, shown in _TRIALS:
        answer = steps.attempt(name)
        if answer is not None:
            _try_cpp(name, answer, arguments, shown)
    return figures


def _show_tensor(steps: Steps) -> None:
    import numpy as np

    matrix = np.zeros((4, 6), "float32")
    print("A tensor as DLPack hands it over: numpy's 4x6 float32, and its columns 1, 3, 5.\n")
    fields = steps.chapter.tensor_fields
    whole, part = fields(matrix), fields(matrix[:, 1::2])
    part["data"] = f"+{part['data'] - whole['data']} bytes"
    whole["data"] = "an address"
    for name, value in whole.items():
        print(f"  {name:12}{value!s:20}{part[name]}")
    print("\nNeither is a copy: two descriptions of the same memory.\n")


def _export(steps: Steps, *, quick: bool) -> dict[str, Any]:
    """From PyTorch to a C++ program; what could be done of it."""
    from tvm_practice.models import load_resnet18, load_small_resnet
    from tvm_practice.tvm_export.cpp import describe_main, write_project
    from tvm_practice.tvm_export.errors import DoesNotCompile, Missing

    name, load = ("a small ResNet", load_small_resnet) if quick else ("ResNet-18", load_resnet18)
    model, example = load()
    folder = steps.folder / "model"
    imported = steps.attempt("export_model", model, example, folder)
    if imported is None:
        _attempt_ends(steps, model, example)
        return {}
    if not (folder / "model.so").exists():
        print(f"export_model left no {folder / 'model.so'}")
        return {}
    (folder / "model.json").write_text(json.dumps(describe_main(imported), indent=2))
    print(f"{name}: {folder / 'model.so'}, {(folder / 'model.so').stat().st_size / 1e6:.1f} MB")
    if not _verify(folder, model, example):
        return {}
    write_project(folder)
    whole = _export_with_ends(steps, model, example)
    try:
        programs = _build(folder)
    except (Missing, DoesNotCompile) as error:
        print(f"The C++ program is not built: {error}")
        return {}
    _run_main(programs, folder, [example[0].numpy()])
    if whole is not None:
        _run_main(programs, *whole)
    return {"latency": _time(programs, folder, rounds=MIN_ROUNDS if quick else 30)}


def _export_with_ends(
    steps: Steps, model: Any, example: tuple[Any, ...]
) -> "tuple[Path, list[np.ndarray]] | None":
    """The same model with `image_to_label` around it: its folder and an image for it."""
    import numpy as np

    from tvm_practice.tvm_export.cpp import describe_main

    wrapped: list[Any] = []

    def ends(mod: Any) -> Any:
        wrapped.append(steps.attempt("image_to_label", mod, steps.chapter.MEAN, steps.chapter.STD))
        return wrapped[0] if wrapped[0] is not None else mod

    folder = steps.folder / "image_to_label"
    exported = steps.attempt("export_model", model, example, folder, ends=ends)
    if exported is None or not wrapped or wrapped[0] is None:
        return None
    (folder / "model.json").write_text(json.dumps(describe_main(wrapped[0]), indent=2))
    print(f"From an image's bytes to a label: {folder / 'model.so'}")
    height, width = example[0].shape[2:]
    random = np.random.default_rng(0)
    return folder, [random.integers(0, 256, (1, height, width, 3), "uint8")]


def _attempt_ends(steps: Steps, model: Any, example: tuple[Any, ...]) -> None:
    """`image_to_label` by itself, while there is no library to put it into."""
    from tvm_practice.course.stack import earlier
    from tvm_practice.tvm_export.cpp import describe_main
    from tvm_practice.tvm_export.quiet import quiet_frontends

    import_relax = earlier("relay_import.import_relax")
    with quiet_frontends():
        imported = import_relax(model, example)
    wrapped = steps.attempt("image_to_label", imported, steps.chapter.MEAN, steps.chapter.STD)
    if wrapped is not None:
        for side, tensors in describe_main(wrapped).items():
            shown = (f"{each['name']} {each['dtype']} {each['shape']}" for each in tensors)
            print(f"image_to_label, {side}: {', '.join(shown)}")


def _verify(folder: Path, model: Any, example: tuple[Any, ...]) -> bool:
    """Load the library in Python and compare it with PyTorch."""
    import torch

    from tvm_practice.course.stack import earlier
    from tvm_practice.tvm_export.running import RelaxRunner

    verify = earlier("relay_import.verify")
    try:
        runner = RelaxRunner.from_file(str(folder / "model.so"))
        runner.set_inputs([each.numpy() for each in example])
        runner.run()
        with torch.inference_mode():
            want = model(*example).numpy()
        error = verify(runner.outputs(), [want], atol=1e-3, rtol=1e-3)
    except (ValueError, RuntimeError) as problem:  # of a learner's export
        print(f"Wrong when called from Python: {str(problem).splitlines()[-1]}")
        return False
    print(f"In Python: largest difference from PyTorch {error:.1e}")
    return True


def _build(folder: Path) -> Path:
    from tvm_practice.tvm_export.cpp import build_project

    print(f"\nCMake builds {folder / 'cpp'}: tvm_model.h, main.cpp, patterns.cpp")
    started = time.perf_counter()
    programs = build_project(folder)
    print(f"built in {time.perf_counter() - started:.0f} s: {programs / 'main'}")
    return programs


def _run_main(programs: Path, folder: Path, inputs: "list[np.ndarray]") -> None:
    """Run the C++ program on the inputs, and compare its outputs with Python's, bit by bit."""
    import numpy as np

    from tvm_practice.tvm_export.running import RelaxRunner

    files = []
    for position, value in enumerate(inputs):
        files.append(folder / f"input_{position}.bin")
        value.tofile(files[-1])
    command = [str(programs / "main"), str(folder), *map(str, files)]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        print(f"The C++ program fails: {done.stderr.strip()}")
        return
    runner = RelaxRunner.from_file(str(folder / "model.so"))
    runner.set_inputs(inputs)
    runner.run()
    described = json.loads((folder / "model.json").read_text())["outputs"]
    for position, (output, want) in enumerate(zip(described, runner.outputs(), strict=True)):
        got = np.fromfile(folder / f"output_{position}.bin", want.dtype).reshape(want.shape)
        same = "the same bits as Python" if np.array_equal(got, want) else "NOT Python's bits"
        values = ", ".join(f"{each:.4g}" for each in got.ravel()[:2])
        shape = "x".join(map(str, want.shape))
        more = ", ..." if got.size > 2 else ""
        print(f"C++: {output['name']} {shape} {want.dtype}: {values}{more}; {same}")


def _time(programs: Path, folder: Path, *, rounds: int) -> dict[str, Any]:
    from tvm_practice import engines
    from tvm_practice.labs.native.latency import compare_calls

    found = compare_calls(programs / "main", folder, rounds=rounds)
    threads = number_of(engines.thread_count(), "thread")
    title = f"A call, {threads}, {number_of(rounds, 'sample')} each, in turns"
    table = number_table("", "median, ms", "p90, ms", "/ Python", "95% interval", title=title)
    for name, latency in found.latency.items():
        value, interval = found.ratio[name].cells()
        spread = (latency.median, latency.percentile(90))
        interval = "" if name == "Python" else interval
        table.add_row(name, *(f"{each:.3g}" for each in spread), value, interval)
    show(table)
    if found.explanation:
        say(found.explanation)
    say(f"C++ against Python: {found.ratio['C++'].verdict}")
    return found.to_dict()


def _try_cpp(name: str, answer: str, arguments: tuple[int, ...], shown: tuple[str, ...]) -> None:
    """Compile a function with the program that tries it, and show what that says."""
    from tvm_practice.labs.native import run_exercise
    from tvm_practice.tvm_export.errors import DoesNotCompile, Missing

    print(f"\n{name}, tried with {', '.join(map(str, arguments))}")
    try:
        [said] = run_exercise(name, answer, arguments)
    except (Missing, DoesNotCompile) as error:
        print(textwrap.fill(f"not compiled: {error}", 76, initial_indent="  ")[:400])
        return
    for word in shown:
        text = said.get(word, "(nothing)").replace(",", ", ")
        print(f"  {word:12}{cut(text, 62)}")
