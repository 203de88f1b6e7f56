"""TVM's rivals on a model, timed in turns with PyTorch eager.

`measure_baselines` is a call with JSON in and out, for a child process (engines.Session).
"""

import functools
import importlib
import importlib.util
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tvm_practice import engines
from tvm_practice.engines.temporary import TemporaryFolder
from tvm_practice.tvm_export.artifacts.schema import (
    LatencyRecord,
    RatioRecord,
    VerificationRecord,
)
from tvm_practice.tvm_export.config import ATOL, RTOL
from tvm_practice.tvm_export.errors import Missing
from tvm_practice.tvm_export.example_inputs import ExampleTensor
from tvm_practice.tvm_export.loading import Loaded, describe
from tvm_practice.tvm_export.nested import flattened
from tvm_practice.tvm_export.variants import BuildRecord

if TYPE_CHECKING:
    import numpy as np

    from tvm_practice.measure import Latency, Stopwatch
    from tvm_practice.tvm_export.calling import Call

_TO_ONNX = ("onnx", "onnxscript")
ONNX_PACKAGES = (*_TO_ONNX, "onnxruntime")


@dataclass
class _Rival:
    """The model as one compiler built it; `run` is a call of it, None where there is no build."""

    build: BuildRecord
    run: Callable[[], Any] | None = None


def measure_baselines(
    model: str,
    names: Sequence[str],
    example: list[dict[str, Any]] | None = None,
    *,
    atol: float = ATOL,
    rtol: float = RTOL,
) -> dict[str, Any]:
    """Time PyTorch eager and, in turns with it, the baselines asked for.

    Args:
        model: "module:factory", see `loading.load`.
        names: of "compile" (torch.compile with inductor), "compile-max" (the same with
            max-autotune and frozen weights), "onnx" (ONNX Runtime) and "openvino".
        example: [{"shape", "dtype"}] of the inputs, for a factory that returns none.
        atol, rtol: how far outputs may be from PyTorch's.

    Returns:
        {"parameters": their number, "notes", "pytorch": eager's latency in ms, "variants": by
        name a `variants.BuildRecord`}. Outputs that are not PyTorch's are "failed" and timed all
        the same.

    Raises:
        BadInput: the model or its inputs; the message is one line.
    """
    import torch

    from tvm_practice.tvm_export.calling import as_call
    from tvm_practice.tvm_export.loading import load

    torch.set_num_threads(engines.thread_count())
    described = None if example is None else [ExampleTensor.model_validate(e) for e in example]
    loaded = load(model, example=described, seed=0)
    call = as_call(loaded.module, loaded.args, loaded.kwargs, copies=loaded.changes_inputs)
    notes = list(loaded.notes)
    rivals: dict[str, _Rival] = {}
    with TemporaryFolder() as folder:
        for name in names:
            print(f"\n{name}", flush=True)
            rivals[name] = _built(name, loaded, call, folder, atol=atol, rtol=rtol)
            if name == "compile" and rivals[name].run:
                notes += _left_to_eager()
        eager = _timed_with_eager(loaded, rivals)
    return {
        "parameters": sum(each.numel() for each in loaded.module.parameters()),
        "notes": notes,
        "pytorch": eager.to_dict(),
        "variants": {
            name: each.build.model_dump(mode="json", exclude_unset=True)
            for name, each in rivals.items()
        },
    }


def _built(
    name: str, loaded: Loaded, call: "Call", folder: Path, *, atol: float, rtol: float
) -> _Rival:
    """The model by one rival, which may be missing or fail, and whether it is right."""
    from tvm_practice.measure import Stopwatch
    from tvm_practice.tvm_export.calling import as_array

    watch = Stopwatch()
    try:
        if name in ("compile", "compile-max"):
            run, outputs = torch_compile(loaded, watch, thorough=name == "compile-max")
        elif name == "openvino":
            run, outputs = openvino(call, folder, watch)
        else:
            run, outputs = onnx_runtime(call, folder, watch)
    except Missing as missing:
        return _Rival(BuildRecord(status="missing", reason=str(missing)))
    except Exception as error:  # whatever a compiler meets in the model
        return _Rival(BuildRecord(status="failed", reason=describe(error)))
    reference = [as_array(each) for each in loaded.outputs]
    build = _judged(outputs, reference, call, atol=atol, rtol=rtol)
    build.seconds = watch.seconds
    return _Rival(build, run)


def _timed_with_eager(loaded: Loaded, rivals: Mapping[str, _Rival]) -> "Latency":
    """Eager's latency; those that were timed in turns with it go into the rivals' builds."""
    from tvm_practice.measure import COMPARISON_SECONDS, compare_interleaved

    runs = {name: each.run for name, each in rivals.items() if each.run}
    compared = compare_interleaved(
        {"eager": loaded.call, **runs}, baseline="eager", time_limit=COMPARISON_SECONDS
    )
    for name in runs:
        rivals[name].build.latency = LatencyRecord.model_validate(compared.latency[name].to_dict())
        rivals[name].build.ratio = RatioRecord.of(compared.ratio[name])
    return compared.latency["eager"]


def torch_compile(
    loaded: Loaded, watch: "Stopwatch", *, thorough: bool = False
) -> tuple[Callable[[], Any], list["np.ndarray"]]:
    """The model under torch.compile: a call to be timed, and its outputs on the inputs.

    Args:
        loaded: the model.
        watch: for the compilation.
        thorough: with max-autotune and the weights as constants, which takes minutes more.

    Raises Missing without a C++ compiler.
    """
    import torch
    from torch._dynamo.utils import counters

    from tvm_practice.tvm_export.calling import as_array

    counters.clear()  # of what was compiled before, see `_left_to_eager`
    options = torch._inductor.list_mode_options("max-autotune") | {"freezing": True}
    compiled = torch.compile(loaded.module, options=options if thorough else None)
    try:
        with watch("compile"):
            result = loaded.call(compiled)
    except Exception as error:
        if "InvalidCxxCompiler" in describe(error):
            reason = "torch.compile needs a C++ compiler (g++ or clang++), and none was found"
            raise Missing(reason) from error
        raise

    return functools.partial(loaded.call, compiled), [as_array(each) for each in flattened(result)]


def _left_to_eager() -> list[str]:
    """A note where torch.compile has not compiled all of what it was called with, with a reason."""
    from torch._dynamo.utils import counters

    reasons = counters["graph_break"] or counters["unimplemented"]
    if not reasons:
        return []
    [first] = next(iter(reasons)).strip().splitlines()[:1] or ["no reason given"]
    return [f"torch.compile left a part of the model to eager PyTorch: {first}"]


def onnx_runtime(
    call: "Call", folder: Path, watch: "Stopwatch"
) -> tuple[Callable[[], Any], list["np.ndarray"]]:
    """The model in ONNX Runtime: a call to be timed, and its outputs on the inputs.

    The ONNX file, in `folder`, has to stay while the call is used: weights are read from it.
    Raises Missing where a package is.
    """
    if reason := missing_package():
        raise Missing(reason)
    file = _onnx_file(call, folder, watch)
    with watch("load"):
        session = open_onnx_session(file)
    arrays = _feed(call)
    feed = {each.name: arrays[each.name] for each in session.get_inputs()}
    outputs = session.run(None, feed)
    return bound_call(session, feed, outputs), outputs


def openvino(
    call: "Call", folder: Path, watch: "Stopwatch"
) -> tuple[Callable[[], Any], list["np.ndarray"]]:
    """The model in OpenVINO; see `onnx_runtime`."""
    if reason := missing_package(_TO_ONNX) or missing_package(("openvino",), extra="rivals"):
        raise Missing(reason)
    file = _onnx_file(call, folder, watch)
    with watch("load"):
        compiled = compiled_by_openvino(file)
    return openvino_call(compiled, _feed(call))


def _onnx_file(call: "Call", folder: Path, watch: "Stopwatch") -> Path:
    """The model in `folder` as an ONNX file, weights beside it; one that is there is kept."""
    import torch

    from tvm_practice.tvm_export.quiet import quiet_frontends

    file = folder / "model.onnx"
    if file.exists():
        return file
    with watch("export"), quiet_frontends():
        torch.onnx.export(
            call.module,
            call.tensors,
            file,
            input_names=list(call.names),
            dynamo=True,
            external_data=True,
            verbose=False,
        )
    return file


def _feed(call: "Call") -> dict[str, "np.ndarray"]:
    from tvm_practice.tvm_export.calling import as_array

    return dict(zip(call.names, map(as_array, call.tensors), strict=True))


def bound_call(
    session: Any, feed: Mapping[str, "np.ndarray"], outputs: Sequence["np.ndarray"]
) -> Callable[[], Any]:
    """A call whose inputs and outputs have their places already, as TVM's have when it is timed.

    Args:
        session: an onnxruntime.InferenceSession.
        feed: inputs by name.
        outputs: in the session's order, of these types and shapes.
    """
    onnxruntime: Any = importlib.import_module("onnxruntime")
    binding = session.io_binding()
    for name, value in feed.items():
        binding.bind_cpu_input(name, value)
    for described, value in zip(session.get_outputs(), outputs, strict=True):
        place = onnxruntime.OrtValue.ortvalue_from_shape_and_type(value.shape, value.dtype, "cpu")
        binding.bind_ortvalue_output(described.name, place)
    return functools.partial(session.run_with_iobinding, binding)


def compiled_by_openvino(model: Any, precision: str = "f32") -> Any:
    """An openvino.CompiledModel for one call at a time on the CPU, with as many threads as TVM.

    Args:
        model: an openvino.Model, or the path of an ONNX file.
        precision: of its arithmetic, by OpenVINO's name.
    """
    openvino: Any = importlib.import_module("openvino")
    settings = {
        "PERFORMANCE_HINT": "LATENCY",
        "INFERENCE_NUM_THREADS": engines.thread_count(),
        "INFERENCE_PRECISION_HINT": precision,
    }
    return openvino.Core().compile_model(model, "CPU", settings)


def openvino_call(
    compiled: Any, feed: Mapping[str, "np.ndarray"]
) -> tuple[Callable[[], Any], list["np.ndarray"]]:
    """A call whose inputs have their places already, and its outputs; see `bound_call`."""
    import numpy as np

    openvino: Any = importlib.import_module("openvino")
    request = compiled.create_infer_request()
    for each in compiled.inputs:
        request.set_tensor(each, openvino.Tensor(feed[each.any_name]))
    request.infer()
    return request.infer, [np.array(request.get_tensor(each).data) for each in compiled.outputs]


def missing_package(packages: Sequence[str] = ONNX_PACKAGES, *, extra: str = "onnx") -> str | None:
    """One line saying which package is not installed and how to install it; None if all are."""
    for package in packages:
        if importlib.util.find_spec(package) is None:
            return f"no Python package {package}. To install: pip install 'tvm-practice[{extra}]'"
    return None


def open_onnx_session(file: Path | str) -> Any:
    """An onnxruntime.InferenceSession on the CPU with as many threads as TVM has."""
    onnxruntime: Any = importlib.import_module("onnxruntime")  # optional, and without types
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = engines.thread_count()
    options.inter_op_num_threads = 1
    options.log_severity_level = 3  # errors; the models' authors cannot act on its warnings
    return onnxruntime.InferenceSession(str(file), options, providers=["CPUExecutionProvider"])


def _judged(
    outputs: Sequence["np.ndarray"],
    reference: Sequence["np.ndarray"],
    call: "Call",
    *,
    atol: float,
    rtol: float,
) -> BuildRecord:
    """Whether outputs are PyTorch's."""
    from tvm_practice.tvm_export.steps import Steps
    from tvm_practice.tvm_export.verification import verify_against_pytorch

    try:
        judged = verify_against_pytorch(
            outputs, reference, call, Steps().verify, atol=atol, rtol=rtol
        )
    except ValueError as error:
        return BuildRecord(status="failed", reason=describe(error), verified=False)
    return BuildRecord(
        status="ok",
        verified=True,
        max_error=judged["max_error"],
        verification=VerificationRecord.model_validate(judged),
    )
