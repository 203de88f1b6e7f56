"""What TVM is compared with on a model, interleaved with PyTorch eager.

`measure_baselines` is a call with JSON in and out, for a child process (engines.Session).
"""

import importlib
import importlib.util
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tvm_practice import engines
from tvm_practice.tvm_export.errors import Missing
from tvm_practice.tvm_export.loading import ExampleTensor, Loaded, describe
from tvm_practice.tvm_export.nested import copied, flattened

if TYPE_CHECKING:
    import numpy as np

    from tvm_practice.measure import Stopwatch
    from tvm_practice.tvm_export.calling import Call

ONNX_PACKAGES = ("onnx", "onnxscript", "onnxruntime")


def measure_baselines(
    model: str, names: Sequence[str], example: list[dict[str, Any]] | None = None
) -> dict[str, Any]:
    """Time PyTorch eager and, in turns with it, the baselines asked for.

    Args:
        model: "module:factory", see `loading.load`.
        names: of "compile" (torch.compile with inductor) and "onnx" (ONNX Runtime).
        example: [{"shape", "dtype"}] of the inputs, for a factory that returns none.

    Returns:
        {"parameters": their number, "notes", "pytorch": eager's latency in ms, "variants":
        {name: {"status": "ok" | "failed" | "missing", "reason", and once it ran "latency",
        "ratio" (to eager), "verified", "max_error", "seconds"}}}. Outputs that are not
        PyTorch's are "failed" and timed all the same.

    Raises:
        BadInput: the model or its inputs; the message is one line.
    """
    import torch

    from tvm_practice.measure import COMPARISON_SECONDS, Stopwatch, compare_interleaved
    from tvm_practice.tvm_export.calling import as_array, as_call
    from tvm_practice.tvm_export.loading import load

    torch.set_num_threads(engines.thread_count())
    described = None if example is None else [ExampleTensor.model_validate(e) for e in example]
    loaded = load(model, example=described, seed=0)
    call = as_call(loaded.module, loaded.args, loaded.kwargs, copies=loaded.changes_inputs)
    reference = [as_array(each) for each in loaded.outputs]

    def run_eager() -> None:
        with torch.inference_mode():
            loaded.module(*loaded.args, **loaded.kwargs)

    runs: dict[str, Callable[[], Any]] = {"eager": run_eager}
    variants: dict[str, dict[str, Any]] = {}
    notes = list(loaded.notes)
    with tempfile.TemporaryDirectory(prefix="tvm-practice-") as folder:
        for name in names:
            print(f"\n{name}", flush=True)
            watch = Stopwatch()
            try:
                if name == "compile":
                    run, outputs = torch_compile(loaded, watch)
                    notes += _left_to_eager()
                else:
                    run, outputs = onnx_runtime(call, Path(folder), watch)
            except Missing as missing:
                variants[name] = {"status": "missing", "reason": str(missing)}
            except Exception as error:  # whatever a compiler meets in the model
                variants[name] = {"status": "failed", "reason": describe(error)}
            else:
                variants[name] = _judged(outputs, reference, call) | {"seconds": watch.seconds}
                runs[name] = run
        compared = compare_interleaved(runs, baseline="eager", time_limit=COMPARISON_SECONDS)
    for name in runs.keys() - {"eager"}:
        variants[name]["latency"] = compared.latency[name].to_dict()
        variants[name]["ratio"] = compared.ratio[name].to_dict()
    return {
        "parameters": sum(each.numel() for each in loaded.module.parameters()),
        "notes": notes,
        "pytorch": compared.latency["eager"].to_dict(),
        "variants": variants,
    }


def torch_compile(
    loaded: Loaded, watch: "Stopwatch"
) -> tuple[Callable[[], Any], list["np.ndarray"]]:
    """The model under torch.compile: a call to be timed, and its outputs on the inputs.

    Raises Missing without a C++ compiler.
    """
    import torch
    from torch._dynamo.utils import counters

    from tvm_practice.tvm_export.calling import as_array

    counters.clear()  # of what was compiled before, see `_left_to_eager`
    compiled = torch.compile(loaded.module)
    try:
        with watch("compile"), torch.inference_mode():
            result = compiled(*copied(loaded.args), **copied(loaded.kwargs))
    except Exception as error:
        if "InvalidCxxCompiler" in describe(error):
            reason = "torch.compile needs a C++ compiler (g++ or clang++), and none was found"
            raise Missing(reason) from error
        raise

    def run() -> None:
        with torch.inference_mode():
            compiled(*loaded.args, **loaded.kwargs)

    return run, [as_array(each) for each in flattened(result)]


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
    if reason := onnx_missing():
        raise Missing(reason)
    import torch

    from tvm_practice.tvm_export.calling import as_array
    from tvm_practice.tvm_export.quiet import quiet_frontends

    file = folder / "model.onnx"
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
    with watch("load"):
        session = open_onnx_session(file)
    arrays = dict(zip(call.names, map(as_array, call.tensors), strict=True))
    feed = {each.name: arrays[each.name] for each in session.get_inputs()}
    return (lambda: session.run(None, feed)), session.run(None, feed)


def onnx_missing(packages: Sequence[str] = ONNX_PACKAGES) -> str | None:
    """One line saying which package is not installed and how to install it; None if all are."""
    for package in packages:
        if importlib.util.find_spec(package) is None:
            return f"no Python package {package}. To install: pip install 'tvm-practice[onnx]'"
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
    outputs: Sequence["np.ndarray"], reference: Sequence["np.ndarray"], call: "Call"
) -> dict[str, Any]:
    """Whether outputs are PyTorch's, in the words of a variant of `pipeline.export_variants`."""
    from tvm_practice.tvm_export.config import ATOL, RTOL
    from tvm_practice.tvm_export.steps import Steps
    from tvm_practice.tvm_export.verification import verify_against_pytorch

    try:
        judged = verify_against_pytorch(
            outputs, reference, call, Steps().verify, atol=ATOL, rtol=RTOL
        )
    except ValueError as error:
        reason = describe(error)
        return {"status": "failed", "reason": reason, "verified": False, "max_error": None}
    return {
        "status": "ok",
        "reason": None,
        "verified": True,
        "max_error": judged["max_error"],
    }
