"""Lab 2's exercises and how they are graded: libraries are loaded, C++ is compiled and run."""

import contextlib
import math
import platform
import re
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple
from unittest import mock

import numpy as np

from tvm_practice.course.catalog import Phase
from tvm_practice.course.expect import (
    expect,
    expect_close,
    expect_type,
    fail,
    fresh_rng,
    seed_torch,
)
from tvm_practice.course.imported_models import expect_only_read, give_gradients, state
from tvm_practice.engines import CURRENT, host_target
from tvm_practice.labs.native import run_exercise
from tvm_practice.tvm_export.cpp import describe_main
from tvm_practice.tvm_export.errors import DoesNotCompile, Missing
from tvm_practice.viz.graph import graph
from tvm_practice.viz.loop_nest import loop_nest, paths
from tvm_practice.wording import number_of

PHASE = Phase(
    number=2,
    module="labs.deploy_cpp",
    title="a model in a C++ program",
    lanes=(CURRENT,),
    builds_on=(
        "relay_import.import_relax",
        "relay_import.verify",
    ),
    question=(
        "What has to outlive what when a C++ program calls a compiled model, on a CPU and on a "
        "GPU, and what happens if it does not?"
    ),
)

Function = Callable[..., Any]
Said = dict[str, str]  # what a program said of a run
_MAGIC = {"Linux": b"\x7fELF"}  # of a shared library


def _perceptron(inputs: int, hidden: int, outputs: int) -> Any:
    import torch

    seed_torch()
    layers = [torch.nn.Linear(inputs, hidden), torch.nn.ReLU(), torch.nn.Linear(hidden, outputs)]
    model = torch.nn.Sequential(*layers).eval()
    # Of another type than the weights, which a conversion of the whole model would change.
    model.register_buffer("seen", torch.zeros(2, dtype=torch.float64))
    return model


def _classifier(filters: int, classes: int) -> Any:
    """A convolution, the mean over the image, and a linear layer."""
    import torch

    seed_torch()
    return torch.nn.Sequential(
        torch.nn.Conv2d(3, filters, 3),
        torch.nn.ReLU(),
        torch.nn.AdaptiveAvgPool2d(1),
        torch.nn.Flatten(),
        torch.nn.Linear(filters, classes),
    ).eval()


def _of_torch(model: Any, *inputs: Any) -> np.ndarray:
    import torch

    with torch.inference_mode():
        result: np.ndarray = model(*inputs).numpy()
    return result


def _imported(model: Any, example: tuple[Any, ...]) -> Any:
    from solutions.relay_import import import_relax
    from tvm_practice.tvm_export.quiet import quiet_frontends

    with quiet_frontends():
        return import_relax(model, example)


def _signature(module: Any) -> str:
    """`main: float32 2x8 -> float32 2x3`."""
    described = describe_main(module)
    sides = (
        ", ".join(f"{each['dtype']} {'x'.join(map(str, each['shape']))}" for each in tensors)
        for tensors in (described["inputs"], described["outputs"])
    )
    return f"main: {' -> '.join(sides)}"


def _export_here(export_model: Function) -> str:
    import torch

    with tempfile.TemporaryDirectory() as folder:
        mod = export_model(_perceptron(8, 16, 3), (torch.zeros(2, 8),), Path(folder) / "made")
        files = sorted(each.name for each in (Path(folder) / "made").iterdir())
    return "\n".join([*files, _signature(mod)])


@PHASE.exercise(
    "export_model",
    engine=CURRENT,
    title="from PyTorch to one shared library",
    hints=(
        "These are phase 4's steps, import_relax, optimize_relax, build_relax, with "
        "tvm_practice.tvm_export.rules.cpu.schedule_defaults before the build, and `ends` after "
        "the import.",
        "The result of build_relax has export_library(path). The path's ending selects the "
        "format: .so is a shared library, .tar an archive of object files. "
        "engines.host_target() is this machine.",
        "mod = import_relax(model, example); mod = ends(mod) if ends else mod; "
        "build_relax(schedule_defaults(optimize_relax(mod), target), target)"
        ".export_library(str(folder / 'model.so')); return mod.",
    ),
    looks_like="""
        model.so
        main: float32 2x8 -> float32 2x3
    """,
    demonstrate=_export_here,
)
def check_export_model(export_model: Function) -> None:
    import torch

    rng = fresh_rng()
    batch, inputs, outputs = (int(size) for size in rng.choice(np.arange(3, 20), 3, replace=False))
    model, other = (_perceptron(inputs, 24, each) for each in (outputs, outputs + 1))
    x = torch.from_numpy(rng.standard_normal((batch, inputs), dtype="float32"))
    example = (torch.zeros(batch, inputs),)
    _expect_export(export_model, model, example, {}, x, _of_torch(model, x), "the steps")
    twin = _perceptron(inputs, 24, outputs)
    look = "state kept from an earlier call: that of another model of the same class"
    _expect_export(export_model, twin, example, {}, x, _of_torch(twin, x), look)
    # A large one, of which a row of the identity picks weights.
    picked = torch.eye(1200)[[0, *rng.integers(1, 1200, 3)]]
    large = torch.nn.Linear(1200, int(rng.integers(1000, 1100)), bias=False).eval()
    look = "what is done to the weights before the import, in a large model as in a small one"
    _expect_export(
        export_model, large, (torch.zeros(4, 1200),), {}, picked, _of_torch(large, picked), look,
        exact=True,
    )  # fmt: skip
    given: list[Any] = []

    def ends(mod: Any) -> Any:
        given.append(mod)
        return _imported(other, example)

    look = "the use of `ends`: it takes the imported module, and its result is compiled"
    compiled = _expect_export(
        export_model, model, example, {"ends": ends}, x, _of_torch(other, x), look
    )
    expect(
        len(given) == 1 and "matmul" in str(getattr(given[0], "script", str)()),
        expected="`ends` is called once, with the imported IRModule",
        seen=f"{number_of(len(given), 'call')}, with "
        f"{', '.join(type(each).__name__ for each in given)}",
        look=look,
    )
    expect(
        len(compiled.kernels) < 5,
        expected="fewer kernels than the operators of two linear layers and a ReLU: fused",
        seen=f"{len(compiled.kernels)}: {', '.join(sorted(compiled.kernels))}",
        look="optimize_relax, before schedule_defaults",
    )
    expect(
        bool({"parallel", "vectorized"} & set(compiled.loops)),
        expected="a default schedule for each function",
        seen=f"loops that are {', '.join(dict.fromkeys(compiled.loops)) or 'not compiled'}",
        look="schedule_defaults(optimized, target), between optimize_relax and build_relax",
    )
    unused = sorted(_features(host_target()).difference(*compiled.features))
    expect(
        not unused,
        expected="kernels with all of this processor's instructions",
        seen=f"without {', '.join(unused[:5])}{' and others' if len(unused) > 5 else ''}",
        look="engines.host_target(), given to schedule_defaults and build_relax",
    )


def _expect_export(
    export_model: Function,
    model: Any,
    example: tuple[Any, ...],
    options: dict[str, Any],
    x: Any,
    want: np.ndarray,
    look: str,
    *,
    exact: bool = False,
) -> "_Compiled":
    """Export, load the library again, compare with `want`; returns what was compiled.

    With `exact`, each element of `want` is a weight of the model.
    """
    from tvm_practice.tvm_export.running import RelaxRunner

    with tempfile.TemporaryDirectory() as parent:
        folder = Path(parent) / "new" / "folder"
        kept = []
        if options:  # there already, with a file of somebody else's and a library to replace
            folder.mkdir(parents=True)
            (folder / "notes.txt").write_text("kept")
            (folder / "model.so").write_text("old")
            kept = ["notes.txt"]
        give_gradients(model)
        before = state(model)
        with _compiled() as compiled:
            mod = export_model(model, example, folder, **options)
        expect_only_read(before, model)
        files = sorted(each.name for each in folder.iterdir()) if folder.is_dir() else []
        expect(
            files == ["model.so", *kept],
            expected="the folder holds model.so and nothing else new"
            + "".join(f"; {each}, which was there before, stays" for each in kept),
            seen=", ".join(files) or "nothing",
            look="export_library's path, and mkdir(parents=True, exist_ok=True)",
        )
        library = folder / "model.so"
        expect(
            not library.is_symlink(),
            expected="model.so itself in the folder, which a program takes with it",
            seen=f"a link to a file outside: {library.resolve().name}",
            look="export_library(str(folder / 'model.so'))",
        )
        expect(
            library.read_bytes() != b"old",
            expected="model.so of this model, in place of the file that was there before",
            seen="the file that was there before",
            look="where export_library is called: each time",
        )
        magic = _MAGIC.get(platform.system(), b"")
        expect(
            library.read_bytes()[: len(magic)] == magic,
            expected="model.so is a shared library, which a program loads as it stands",
            seen="a file of another kind; an archive of object files is not a library, whatever "
            "its name",
            look="the ending of the path given to export_library",
        )
        runner = RelaxRunner.from_file(str(library))
        expect(
            runner._arity == len(example),
            expected=f"main takes the model's {len(example)} input",
            seen=f"{runner._arity}: the weights are not in the library",
            look="the import: keep_params_as_input=False makes them constants",
        )
        runner.set_inputs([x.numpy()])
        runner.run()
        allowed = 1e-7 if exact else 1e-4
        expect_close(
            runner.outputs()[0], want, what="the library's output", look=look, atol=allowed,
            rtol=allowed,
        )  # fmt: skip
    _expect_imported(mod, want)
    return compiled


def _expect_imported(mod: Any, want: np.ndarray) -> None:
    """`mod` is a module of operators whose main returns `want`'s shape."""
    import tvm

    expect(
        isinstance(mod, tvm.IRModule) and "main" in {each.name_hint for each in mod.functions},
        expected="the IRModule that was compiled is returned",
        seen=type(mod).__name__,
        look="the return statement",
    )
    wanted = "x".join(map(str, want.shape))
    expect(
        _signature(mod).endswith(f"-> float32 {wanted}"),
        expected=f"the IRModule that was compiled, whose main returns float32 {wanted}",
        seen=_signature(mod),
        look="the module that is returned: the result of `ends`",
    )
    expect(
        not any(call.kernel for call in graph(mod).calls),
        expected="the IRModule before it was optimized: operators, not kernels",
        seen="calls of kernels",
        look="the module that is returned: the result of `ends`, or the imported one",
    )


class _Compiled(NamedTuple):
    """What TVM compiled.

    Attributes:
        loops: how each loop runs.
        kernels: the functions' names.
        features: the instructions of each target's processor, as LLVM calls them.
    """

    loops: list[str]
    kernels: list[str]
    features: list[set[str]]


@contextlib.contextmanager
def _compiled() -> Iterator[_Compiled]:
    """What is compiled meanwhile."""
    import tvm

    seen = _Compiled([], [], [])
    build = tvm.tirx.build

    def recording(mod: Any, *arguments: Any, **options: Any) -> Any:
        given = arguments[0] if arguments else options.get("target")
        target = given or tvm.target.Target.current()
        if target is not None:
            seen.features.append(_features(target))
        for name, function in mod.functions.items():
            seen.kernels.append(str(name.name_hint))
            seen.loops.extend(loop.kind for path, _ in paths(loop_nest(function)) for loop in path)
        return build(mod, *arguments, **options)

    with mock.patch.object(tvm.tirx, "build", recording):
        yield seen


def _features(target: Any) -> set[str]:
    import tvm

    return set(map(str, tvm.target.codegen.llvm_get_cpu_features(tvm.target.Target(target))))


@PHASE.exercise(
    "image_to_label",
    engine=CURRENT,
    title="pre- and postprocessing compiled into the model",
    hints=(
        "A relax.BlockBuilder makes a function, operator by operator. The model's own function is "
        "called like an operator, once it is in the builder's module; then it is inlined.",
        "`with builder.function('main', [image])`, inside it `with builder.dataflow()`, and "
        "builder.emit for each operator of relax.op. "
        "(p / 255 - mean) / std is p * scale + shift with two arrays of 3, which broadcast over "
        "the last axis; then permute_dims to [0, 3, 1, 2]. classifier = builder.add_func(model."
        "without_attr('global_symbol'), 'classifier') can be called: classifier(planes).",
        "After emitting astype, multiply, add, permute_dims, classifier(planes): "
        "argmax(logits, axis=1), nn.softmax(logits, axis=1), max(shares, axis=1), "
        "emit_output(relax.Tuple([label, best])), emit_func_output; then InlinePrivateFunctions "
        "on builder.get().",
    ),
    looks_like="main: uint8 1x6x4x3 -> int64 1, float32 1",
    demonstrate=lambda image_to_label: _signature(
        image_to_label(_imported(_classifier(4, 5), _image(6, 4)), (0.5,) * 3, (0.2,) * 3)
    ),
)
def check_image_to_label(image_to_label: Function) -> None:
    import torch
    from tvm import IRModule

    rng = fresh_rng()
    height, width = (int(size) for size in rng.choice(np.arange(6, 13), 2, replace=False))
    classes = int(rng.integers(5, 9))
    model = _classifier(6, classes)
    with torch.no_grad():  # exp of such logits is 0 in float32, and so is their sum
        model[-1].bias -= float(rng.uniform(115, 130))
    mean, std = rng.uniform(0.3, 0.7, 3), rng.uniform(0.05, 0.2, 3)
    mod = _imported(model, _image(height, width))
    before = mod.script()
    wrapped = image_to_label(mod, tuple(mean.tolist()), tuple(std.tolist()))
    expect_type(wrapped, IRModule, "a new IRModule")
    expect(
        mod.script() == before,
        expected="the given module stays as it was",
        seen="it was changed in place",
        look="the BlockBuilder's module: make a new one",
    )
    _expect_one_main(wrapped, f"main: uint8 1x{height}x{width}x3 -> int64 1, float32 1")
    expect(
        "float16" not in wrapped.script(),
        expected="pixels and logits in float32",
        seen="float16 in the module",
        look="the types given to astype",
    )
    _expect_labels(wrapped, model, mean, std, (height, width))
    falling, same = np.sort(mean)[::-1], np.full(3, std[0])
    for means, deviations in ((falling, same), (np.full(3, mean[0]), np.sort(std))):
        wrapped = image_to_label(mod, tuple(means.tolist()), tuple(deviations.tolist()))
        _expect_labels(wrapped, model, means, deviations, (height, width))
    large = int(rng.integers(65, 129))
    # Of any number of classes: softmax is no sigmoid of two, and of one it is 1.
    for image, few in (((width, width), 2), ((3 * width, width), 1), ((large, large), 3)):
        other = _classifier(6, few)
        wrapped = image_to_label(
            _imported(other, _image(*image)), tuple(mean.tolist()), tuple(std.tolist())
        )
        _expect_labels(wrapped, other, mean, std, image)
    # Small logits, whose probability is far from 1, and large ones.
    for std in (rng.uniform(1.5, 3, 3), rng.uniform(0.005, 0.02, 3)):
        wrapped = image_to_label(mod, tuple(mean.tolist()), tuple(std.tolist()))
        _expect_labels(wrapped, model, mean, std, (height, width))
    _expect_exact_mean(image_to_label)
    _expect_largest_logit(image_to_label)


def _expect_largest_logit(image_to_label: Function) -> None:
    """Logits that differ by less than a softmax in float32 can tell, and large ones."""
    for base, step in ((0.0, 1e-9), (9e3, 1.0), (-9e3, 1.0)):
        _expect_largest_of(image_to_label, base, step)


def _expect_largest_of(image_to_label: Function, base: float, step: float) -> None:
    """The class whose logit is two steps above the base, where others are below one."""
    import torch

    from solutions.relay_import import build_relax, optimize_relax
    from tvm_practice.tvm_export.running import RelaxRunner

    linear = torch.nn.Linear(3, 7)
    model = torch.nn.Sequential(torch.nn.AdaptiveAvgPool2d(1), torch.nn.Flatten(1), linear).eval()
    best = int(fresh_rng().integers(1, 7))
    with torch.no_grad():
        linear.weight.zero_()
        linear.bias.copy_(base + step * torch.rand(7))
        linear.bias[best] = base + 2 * step
    wrapped = image_to_label(_imported(model, _image(4, 5)), (0.5,) * 3, (0.2,) * 3)
    runner = RelaxRunner(build_relax(optimize_relax(wrapped), host_target()))
    runner.set_inputs([np.full((1, 4, 5, 3), 9, "uint8")])
    runner.run()
    label = int(runner.outputs()[0][0])
    expect(
        label == best,
        expected=f"class {best}, whose logit, {base + 2 * step:g}, is the largest",
        seen=f"class {label}",
        look="argmax of the logits themselves: their softmax in float32 may have many equal values",
    )


def _expect_exact_mean(image_to_label: Function) -> None:
    """Of many classes the last is a little ahead, if the means are not rounded to whole pixels."""
    import torch

    from solutions.relay_import import build_relax, optimize_relax
    from tvm_practice.tvm_export.running import RelaxRunner

    rng = fresh_rng()
    classes, step = 40_000, 0.4 / 255
    pixels, std = rng.integers(80, 180, 3), rng.uniform(0.05, 0.1, 3)
    linear = torch.nn.Linear(3, classes)
    model = torch.nn.Sequential(torch.nn.AdaptiveAvgPool2d(1), torch.nn.Flatten(1), linear).eval()
    with torch.no_grad():
        linear.weight.zero_()
        linear.weight[-1] = torch.tensor(-1.2 / 3 * std / step, dtype=torch.float32)
        linear.bias.fill_(-40)
        linear.bias[[0, -1]] = 0
    mean = tuple(float(each) / 255 + step for each in pixels)
    wrapped = image_to_label(_imported(model, _image(5, 4)), mean, tuple(std.tolist()))
    runner = RelaxRunner(build_relax(optimize_relax(wrapped), host_target()))
    runner.set_inputs([np.broadcast_to(pixels.astype("uint8"), (1, 5, 4, 3)).copy()])
    runner.run()
    label, probability = runner.outputs()
    expect_close(
        probability,
        np.array([1 / (1 + np.exp(-1.2))], "float32"),
        what=f"the probability for pixels a little below the means {mean}",
        look="mean and std as they are given, in float32",
        atol=2e-3,
        rtol=0,
    )
    expect(
        int(label[0]) == classes - 1,
        expected=f"class {classes - 1} of {classes}",
        seen=str(label),
        look="the type of argmax, int64, which nothing narrows",
    )


def _expect_labels(
    wrapped: Any, model: Any, mean: np.ndarray, std: np.ndarray, image_shape: tuple[int, int]
) -> None:
    """The label and the probability are those that PyTorch's logits give."""
    import torch

    from solutions.relay_import import build_relax, optimize_relax
    from tvm_practice.tvm_export.running import RelaxRunner

    rng = fresh_rng()
    height, width = image_shape
    runner = RelaxRunner(build_relax(optimize_relax(wrapped), host_target()))
    for _ in range(3):
        image = rng.integers(0, 256, (1, height, width, 3), "uint8")
        normalized = ((image / 255 - mean) / std).astype("float32")
        logits = _of_torch(model, torch.from_numpy(normalized.transpose(0, 3, 1, 2).copy()))
        shares = np.exp(logits - logits.max()) / np.exp(logits - logits.max()).sum()
        runner.set_inputs([image])
        runner.run()
        label, probability = runner.outputs()
        expect_close(
            probability,
            shares.max(axis=1),
            what="the probability",
            look="(pixels / 255 - mean) / std by channel, with the channels moved to the front, "
            "and the softmax over the classes, whose logits may be large",
            atol=5e-5,
            rtol=0,
        )
        expect_close(label, logits.argmax(axis=1), what="the label", look="argmax over the classes")


def _expect_one_main(wrapped: Any, want: str) -> None:
    """One Relax function, main(image), whose signature is `want`."""
    import tvm

    expect(
        _signature(wrapped) == want,
        expected=want,
        seen=_signature(wrapped),
        look="the type of `image`, the axes of argmax and max, and the tuple that is returned",
    )
    name = describe_main(wrapped)["inputs"][0]["name"]
    expect(
        name == "image",
        expected="main(image): a program asks the library for its inputs by name",
        seen=f"main({name})",
        look='relax.Var("image", …)',
    )
    names = [
        str(name.name_hint)
        for name, function in wrapped.functions_items()
        if isinstance(function, tvm.relax.Function)
    ]
    expect(
        names == ["main"],
        expected="one Relax function, main",
        seen=", ".join(sorted(names)),
        look="relax.transform.InlinePrivateFunctions; a function without global_symbol is private",
    )


def _image(height: int, width: int) -> tuple[Any, ...]:
    import torch

    return (torch.zeros(1, 3, height, width),)


def _tried(name: str, function: Function, *runs: Sequence[int], races: bool = False) -> list[Said]:
    """What the program says, run by run, that tries a C++ answer; a text that is none fails."""
    text = function()
    expect(
        isinstance(text, str) and f"{name}(" in text,
        expected=f"the text of a C++ function {name}",
        seen=repr(text)[:80],
        look="the return statement, and the function's name in the text",
    )
    code = re.sub(r'//[^\n]*|/\*[\s\S]*?\*/|"(?:\\.|[^"\\\n])*"', "", text)
    foreign = re.search(r"\b(?:main|_?_?[eE]xit|quick_exit|__attribute__)\b|#\s*define\b", code)
    expect(
        foreign is None,
        expected=f"{name} and its own helpers",
        seen=f"{foreign and foreign[0]} in the text",
        look="only the function: the program around it exists already and ends by itself",
    )
    try:
        return run_exercise(name, text, *runs, races=races)
    except DoesNotCompile as error:
        look = "the line after answer.h: it counts from the first line of the text"
        raise fail("C++17 that compiles", str(error)[:300], look) from None
    except Missing as error:
        raise fail("a C++ compiler", str(error), "apt install g++, or its like") from None


def _listed(name: str, function: Function, arguments: Sequence[int], *words: str) -> str:
    """What a C++ answer gives, a line for each of `words`."""
    [said] = run_exercise(name, function(), arguments)
    return "\n".join(f"{word} {said.get(word, '')}".rstrip() for word in words)


@PHASE.exercise(
    "wrap_buffer",
    engine=CURRENT,
    title="wrap your own memory as a tensor, in C++",
    hints=(
        "A struct of your own on the heap holds the DLManagedTensor, a copy of the extents, "
        "release and owner. manager_ctx points to it, so that the deleter finds it.",
        "dl_tensor: data, device {kDLCPU, 0}, ndim, dtype {kDLFloat, 32, 1}, shape (of the copy), "
        "strides nullptr for compact, byte_offset 0. The deleter is a plain function: it calls "
        "release(owner), then deletes the struct.",
        "struct Borrowed { DLManagedTensor managed; std::vector<int64_t> shape; void "
        "(*release)(void*); void* owner; }; auto* b = new Borrowed{{}, shape, release, owner}; "
        "first of all: if (reinterpret_cast<uintptr_t>(data) % 64) throw std::invalid_argument.",
    ),
    looks_like="""
        same_memory 1
        ndim 3
        shape 2,3,5
        dtype 2,32,1
        device 1,0
        released 1
        refused 1
        living 0
    """,
    demonstrate=lambda wrap_buffer: _listed(
        *("wrap_buffer", wrap_buffer, (2, 3, 5)),
        *("same_memory", "ndim", "shape", "dtype", "device", "released", "refused", "living"),
    ),
)
def check_wrap_buffer(wrap_buffer: Function) -> None:
    rng = fresh_rng()
    shapes = [
        [int(each) for each in rng.integers(1, 9 if dimensions < 6 else 3, dimensions)]
        for dimensions in (3, 1, 5, 0, int(rng.integers(7, 10)))
    ]
    few = [int(each) for each in rng.integers(2, 9, 4)]
    shapes += [[1, few[0]], [few[1], 1], [few[2], few[3]], [few[0], 1, 1]]
    shapes.append([*(1,) * int(rng.integers(60, 90)), few[1]])
    for shape, said in zip(shapes, _tried("wrap_buffer", wrap_buffer, *shapes), strict=True):
        _expect_wrapped(shape, said)


def _expect_wrapped(shape: list[int], said: dict[str, str]) -> None:
    compact = ",".join(str(math.prod(shape[axis + 1 :])) for axis in range(len(shape)))
    for word, wanted, expected, look in (
        (
            "own",
            "1",
            "a tensor of its own for each call, two of them at a time",
            "static variables, and the release that belongs to each buffer",
        ),
        ("same_memory", "1", "the tensor's data is the buffer", "a copy: dl_tensor.data = data"),
        ("ndim", f"{len(shape)}", f"ndim {len(shape)}", "dl_tensor.ndim = shape.size()"),
        (
            "shape",
            ",".join(map(str, shape)),
            f"the extents {shape}, even after the caller's vector is gone",
            "the owner of the memory that dl_tensor.shape points to",
        ),
        ("dtype", "2,32,1", "dtype {kDLFloat, 32, 1}: float, 32 bits, 1 lane", "dl_tensor.dtype"),
        ("device", "1,0", "device {kDLCPU, 0}", "dl_tensor.device"),
        ("offset", "0", "byte_offset 0", "dl_tensor.byte_offset: set every field"),
        (
            "released_early",
            "0",
            "release is not called before the deleter",
            "the place that calls release",
        ),
        ("released", "1", "the deleter calls release once", "dl_tensor's manager: its deleter"),
        ("owner", "1", "release is given `owner`", "the argument of release"),
        (
            "released_null",
            "1",
            "the deleter calls release once, even with a null `owner`",
            "the condition around the call of release",
        ),
        (
            "refused",
            "1",
            "std::invalid_argument, with a text, for an address that is not a multiple of 64",
            "reinterpret_cast<uintptr_t>(data) % 64, and the type of what is thrown",
        ),
        ("released_refused", "0", "a refused buffer is not released", "the order: check first"),
        (
            "empty",
            "1",
            "a tensor without elements, at address 0, which is a multiple of 64",
            "conditions besides reinterpret_cast<uintptr_t>(data) % 64",
        ),
        (
            "released_empty",
            "0,1",
            "release called by the deleter, once, for a tensor without elements as well",
            "the place that calls release, and conditions around it",
        ),
        ("living", "0", "the deleter frees what wrap_buffer took", "a delete for each new"),
    ):
        expect(
            word in said,
            expected="the program ends by itself",
            seen=f"exit code {said['exit']}, before the check could see whether {expected}",
            look="an exception for a valid buffer, such as a tensor of one element without "
            "extents; and, in the deleter, reads of freed memory, or memory freed twice",
        )
        expect(said[word] == wanted, expected=expected, seen=f"{word} {said[word]}", look=look)
    strides = said.get("strides", compact)
    expect(
        strides == compact,
        expected=f"strides of {compact}, or a null pointer, which says compact",
        seen=f"strides {strides}",
        look="dl_tensor.strides; they are in elements, the last is 1",
    )


@PHASE.exercise(
    "call_on_threads",
    engine=CURRENT,
    title="an instance for each thread, in C++",
    hints=(
        "Every thread makes its own instance and then takes the next free input until none is "
        "left: all threads increment one std::atomic<size_t>.",
        "Results go to results[i] of a vector as long as the inputs, made before the threads: two "
        "threads never write to the same place. A thread's body is within try and catch (...). "
        "Several threads may fail at once: a std::mutex guards the one std::exception_ptr.",
        "auto work = [&] { try { auto mine = model.Clone(); for (size_t i = next++; i < "
        "inputs.size(); i = next++) results[i] = mine(inputs[i]); } catch (...) { "
        "std::lock_guard<std::mutex> lock(mutex); failure = std::current_exception(); } }; then "
        "emplace_back, join, rethrow_exception.",
    ),
    looks_like="""
        results 1,11,21,31,41,51
        clones 3
        shared 0
        unfinished 0
    """,
    demonstrate=lambda call_on_threads: _listed(
        *("call_on_threads", call_on_threads, (6, 3, -1)),
        *("results", "clones", "shared", "unfinished"),
    ),
)
def check_call_on_threads(call_on_threads: Function) -> None:
    rng = fresh_rng()
    threads = int(rng.integers(3, 6))
    inputs = 4 * threads + int(rng.integers(1, threads))  # equal shares would leave some out
    failing = int(rng.integers(2, 6))
    many = int(rng.integers(4200, 4400))
    runs = (
        (many, threads, -1), (inputs, threads, -1), (2, threads, -1), (inputs, threads, failing),
        (0, threads, -1), (5, 1, -1), (inputs, threads, -2), (inputs, threads, -3),
        (inputs, threads, inputs - 1), (inputs, 1, failing), (1, threads, 0), (93, 20, -1),
        (inputs, threads, 0),
    )  # fmt: skip
    programs = _tried("call_on_threads", call_on_threads, *runs)
    crowd, said, few, failed, none, single, no_clone, number, late, alone, only, wide, first = (
        programs
    )
    expect(
        said["exit"] == "0",
        expected="the program ends by itself",
        seen=f"exit code {said['exit']}",
        look="threads that are neither joined nor detached, or a thread that waits for ever",
    )
    _expect_thread_results(((said, inputs), (crowd, many), (wide, 93)))
    for each in (said, crowd):
        _expect_own_instances(each, threads)
    _expect_few_clones(((said, inputs, threads), (few, 2, 2), (none, 0, 0), (single, 5, 1)))
    _expect_few_clones(((crowd, many, threads), (wide, 93, 20)))
    _expect_exceptions(failing, failed, number, no_clone)
    _expect_exceptions(inputs - 1, late, number, no_clone)
    _expect_exceptions(failing, alone, number, no_clone)  # on a single thread
    for each in (only, first):
        _expect_exceptions(0, each, number, no_clone)
    for each, (count, *_) in zip(programs, runs, strict=True):
        want = ",".join(str(10 * (count - 1 - at) + 1) for at in range(min(count, 20)))
        expect(
            each.get("again", "") == want,
            expected=f"of a second call {min(count, 20)} results, result i of input i",
            seen=each.get("again", f"exit code {each['exit']}")[:200] or "no result",
            look="static variables, and others that a call leaves behind for the next",
        )
    for each in _tried("call_on_threads", call_on_threads, (9, 4, -1), (9, 4, -4), races=True):
        expect(
            "race" not in each,
            expected="no memory that one thread writes while another uses it",
            seen=f"a data race, as ThreadSanitizer reports it, at {each.get('race')} of the text",
            look="the state that all threads share: the counter is a std::atomic, the "
            "exception_ptr is written under a mutex",
        )


def _expect_thread_results(programs: Iterable[tuple[Said, int]]) -> None:
    """Each program has the results of its inputs, so many, in their order."""
    for each, count in programs:
        want = ",".join(str(10 * number + 1) for number in range(count))
        seen = each.get("results") or each.get("caught", f"exit code {each['exit']}")
        expect(
            seen == want,
            expected=f"{count} results, result i of input i",
            seen=seen[:200],
            look="the place where a thread writes its result; inputs that no thread takes; the "
            "joins, before which no result is sure",
        )


def _expect_own_instances(said: Said, threads: int) -> None:
    """Each thread calls an instance of its own, and several do so at a time."""
    expect(
        said["shared"] == "0",
        expected="every instance is called by one thread only",
        seen=f"{said['shared']} of {said['calls']} calls on another thread's instance",
        look="the instance that a thread calls: its own Clone()",
    )
    expect(
        1 < int(said["peak"]) <= threads,
        expected=f"up to {threads} calls at a time, and more than one",
        seen=f"{said['peak']} at most",
        look="the joins: only after all threads have started; and a mutex held during a call"
        if int(said["peak"]) < 2
        else "the number of threads: std::min(threads, inputs.size())",
    )


def _expect_few_clones(programs: Iterable[tuple[Said, int, int]]) -> None:
    """Each program has results if it has inputs, and at most so many clones."""
    for each, given, most in programs:
        expect(
            each["exit"] == "0" and bool(each["results"]) == (given > 0),
            expected=f"a result for each of {given} inputs",
            seen=each.get("caught") or f"exit code {each['exit']}",
            look="a division by the number of threads, and other cases of few inputs",
        )
        expect(
            int(each["clones"]) <= most,
            expected=f"at most {most} clones: one per thread, no more threads than inputs",
            seen=f"{each['clones']} clones",
            look="where Clone() is called, and std::min(threads, inputs.size())",
        )
        expect(
            int(each["clones"]) > 0 or not given,
            expected=f"a Clone() called with the {given} inputs, even on a single thread",
            seen="calls of `model` itself",
            look="the instance that a thread calls: its own Clone(), however few threads there are",
        )


def _expect_exceptions(
    failing: int, failed: dict[str, str], number: dict[str, str], no_clone: dict[str, str]
) -> None:
    """What was thrown arrives: an exception of input `failing`, a number, and Clone()'s."""
    expect(
        failed["exit"] == "0",
        expected="an exception of a call arrives in the caller",
        seen=f"the program was ended, exit code {failed['exit']}: std::terminate",
        look="try and catch (...) within the thread, std::current_exception(); and no throw in the "
        "caller before every thread is joined",
    )
    expect(
        failed["caught"] == f"input {failing} is bad" and failed["unfinished"] == "0",
        expected=f"the exception 'input {failing} is bad', thrown after every thread is joined",
        seen=f"'{failed['caught']}', {failed['unfinished']} calls unfinished",
        look="std::rethrow_exception, after the joins",
    )
    expect(
        number["exit"] == "0" and number["caught"] == "number 7",
        expected="any exception of a call arrives in the caller, even one that is not a "
        "std::exception",
        seen=f"'{number.get('caught', '')}', exit code {number['exit']}",
        look="catch (...) within the thread",
    )
    expect(
        no_clone["exit"] == "0" and no_clone["caught"] == "no memory for a clone",
        expected="an exception of Clone() arrives in the caller",
        seen=f"'{no_clone.get('caught', '')}', exit code {no_clone['exit']}",
        look="the try of a thread: put everything that the thread does inside",
    )


@PHASE.exercise(
    "call_on_stream",
    engine=CURRENT,
    title="kernel, model, kernel on one CUDA stream, in C++",
    hints=(
        "Five pieces of work on one stream, then one wait. Work queued on a stream runs in order, "
        "so the host waits for nothing in between.",
        "The model launches on the default stream unless told: model.SetStream(stream). Its input "
        "is device_input itself, by Model::Wrap with model.device(): a tensor on the GPU.",
        "const auto scores = model({Model::Wrap(device_input, shape, model.device())})[0]; "
        "Postprocess(stream, Model::template Data<float>(scores), scores.numel(), device_label); "
        "cudaMemcpyAsync(&label, device_label, sizeof label, cudaMemcpyDeviceToHost, stream); "
        "cudaStreamSynchronize(stream).",
    ),
    looks_like="""
        order copy,preprocess,model,postprocess,copy
        elsewhere 0
        waits 1
    """,
    demonstrate=lambda call_on_stream: _listed(
        *("call_on_stream", call_on_stream, (6, 4, 5, 1)), *("order", "elsewhere", "waits")
    ),
)
def check_call_on_stream(call_on_stream: Function) -> None:
    rng = fresh_rng()
    height, width, classes = (int(each) for each in rng.choice(np.arange(5, 14), 3, replace=False))
    large = *(int(each) for each in rng.permutation(np.arange(230, 250))[:2]), 100_003
    huge = *(int(each) for each in rng.permutation(np.arange(2400, 2450))[:2]), 1009  # 16 MB
    seed = int(rng.integers(1, 1 << 30))
    sizes = ((height, width, classes), large, huge)
    runs = _tried("call_on_stream", call_on_stream, *((*each, seed) for each in sizes))
    for each, said in zip(sizes, runs, strict=True):
        _expect_on_stream(said, *each)


def _expect_on_stream(said: Said, height: int, width: int, classes: int) -> None:
    """What the program says of one image of that size."""
    expect(
        "order" in said,
        expected="the program ends by itself",
        seen=f"exit code {said['exit']}",
        look="pointers to GPU memory: the host must not dereference them",
    )
    expect(
        "threw" not in said,
        expected="the model runs on device_input as it lies on the GPU",
        seen=said.get("threw", ""),
        look="Model::Wrap(device_input, shape, model.device())",
    )
    expect(
        said["elsewhere"] == "0",
        expected="everything is queued on `stream`",
        seen=f"{said['elsewhere']} of {said['order']} on another stream, which does not wait",
        look="model.SetStream(stream), and the stream given to each copy and kernel",
    )
    order = "copy,preprocess,model,postprocess,copy"
    expect(
        said["order"] == order,
        expected=order,
        seen=said["order"],
        look="the copies: the pixels once to the GPU, the label once back, and nothing in between",
    )
    expect(
        said["waits"] == "1",
        expected="the host waits once",
        seen=f"{said['waits']} waits",
        look="cudaStreamSynchronize: at the end, before the label is read",
    )
    _expect_copied(said, height, width, classes)
    _expect_label(said)


def _expect_copied(said: Said, height: int, width: int, classes: int) -> None:
    """The copies have the image's size, and the scores live until they are used."""
    for word, wanted, expected, look in (
        ("kinds", "1,2", "the pixels copied to the GPU, the label copied from it",
         "cudaMemcpyHostToDevice for the pixels, cudaMemcpyDeviceToHost for the label"),
        ("beside", "0", "a wait for `stream` alone, while another stream has work",
         "cudaStreamSynchronize(stream): cudaDeviceSynchronize waits for all streams"),
        ("sizes", f"{3 * height * width},4", f"copies of {3 * height * width} and 4 bytes",
         "the bytes of the copies: pixels.size(), and sizeof of an int for the label"),
        ("input", "1", f"device_input filled, all {height} x {width} x 3 of it and nothing "
            "beyond",
         "height * width for Preprocess: shape[2] * shape[3]; and the bytes of the first copy, "
         "three times as many"),
        ("scored", str(classes), f"the label chosen from {classes} scores",
         "numel() of the scores for Postprocess"),
        ("dangling", "0", "the scores alive until the stream has used them",
         "the variable that holds the tensor: it lives until cudaStreamSynchronize has returned"),
    ):  # fmt: skip
        expect(said[word] == wanted, expected=expected, seen=f"{word} {said[word]}", look=look)


def _expect_label(said: Said) -> None:
    """The label is right, and so it is after other calls on other streams."""
    expect(
        said["label"] == said["expected"],
        expected=f"the label {said['expected']}",
        seen=said["label"],
        look="the pixels, all of them, in the memory that is wrapped; sizeof label for the copy "
        "back; wait, then return",
    )
    for word, what in (
        ("again", "a second call of the model, on another stream"),
        ("other", "a call of another model, of another shape"),
    ):
        expect(
            said.get(word) == "1",
            expected=f"the label of {what}, all on that stream",
            seen=f"{word} {said.get(word, 'is missing')}",
            look="static variables: SetStream and the shape belong to each call",
        )
