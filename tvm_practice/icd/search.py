"""PyTorch's own ways to be faster: each built, verified, and compared with the best so far.

A choice is kept when its outputs are the eager model's within tolerance and the whole interval of
its time over that of the best so far, measured interleaved, is below 1. Choices are tried once
each, cheap ones first, on top of those kept before.
"""

import contextlib
import copy
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from tvm_practice.icd.metrics import SearchStep
from tvm_practice.tvm_export.artifacts.schema import RatioRecord, VerificationRecord
from tvm_practice.tvm_export.errors import NotApplicable
from tvm_practice.tvm_export.loading import Loaded, describe
from tvm_practice.tvm_export.nested import copied, flattened, mapped

if TYPE_CHECKING:
    import torch

Run = Callable[[], Any]


@dataclass(frozen=True)
class Variant:
    """The model with some choices made.

    Attributes:
        module: what is called.
        threads: PyTorch's threads.
        channels_last: whether 4-D inputs are given in that layout.
        bfloat16: whether it runs under autocast.
        choices: names of the changes to the eager model, in order.
    """

    module: Callable[..., Any]
    threads: int
    channels_last: bool = False
    bfloat16: bool = False
    choices: tuple[str, ...] = ()


@dataclass(frozen=True)
class Choice:
    """One way to be faster: what it does to the best variant so far."""

    name: str
    apply: Callable[[Variant], Variant]


def choices(threads: int) -> list[Choice]:
    """All choices, in the order they are tried.

    Args:
        threads: what the run may use; fewer are tried too.
    """
    fewer = []
    count = threads // 2
    while count >= 1:
        fewer.append(count)
        count //= 2
    return [
        *(Choice(f"threads={each}", _with_threads(each)) for each in fewer),
        Choice("fuse_conv_bn", _fuse_conv_bn),
        Choice("channels_last", _channels_last),
        Choice("compile", compile_variant),
        Choice("bfloat16", lambda best: replace(best, bfloat16=True)),
    ]


def _with_threads(count: int) -> Callable[[Variant], Variant]:
    return lambda best: replace(best, threads=count)


def _fuse_conv_bn(best: Variant) -> Variant:
    import torch

    module = best.module
    assert isinstance(module, torch.nn.Module)
    normalizations = (torch.nn.BatchNorm1d, torch.nn.BatchNorm2d, torch.nn.BatchNorm3d)
    before = sum(isinstance(each, normalizations) for each in module.modules())
    if not before:
        raise NotApplicable("the model has no batch normalization")
    with warnings.catch_warnings():
        # torch.fx's own import of a deprecated decorator.
        warnings.filterwarnings("ignore", r"`torch\.jit\.script", DeprecationWarning)
        from torch.fx.experimental.optimization import fuse
    try:
        fused: Any = fuse(module)
    except Exception as error:  # tracing meets whatever the model's Python does
        raise NotApplicable(f"torch.fx cannot trace the model: {describe(error)}") from error
    used = {str(node.target) for node in fused.graph.nodes if node.op == "call_module"}
    if sum(isinstance(fused.get_submodule(each), normalizations) for each in used) == before:
        raise NotApplicable("no batch normalization directly follows a convolution")
    return replace(best, module=fused)


def _channels_last(best: Variant) -> Variant:
    import torch

    module = best.module
    assert isinstance(module, torch.nn.Module)
    if not any(parameter.dim() == 4 for parameter in module.parameters()):
        raise NotApplicable("the model has no two-dimensional convolution")
    moved = copy.deepcopy(module).to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    return replace(best, module=moved, channels_last=True)


def compile_variant(best: Variant) -> Variant:
    """The variant under torch.compile; the compilation itself happens at the first call."""
    import torch

    return replace(best, module=torch.compile(best.module))


def runnable(variant: Variant, loaded: Loaded) -> Run:
    """A call of the variant on the example inputs, to be timed.

    It takes the inputs as the person has them: a change of layout is part of the call.
    """
    import torch

    def as_channels_last(tensor: torch.Tensor) -> torch.Tensor:
        if tensor.dim() == 4:
            return tensor.contiguous(memory_format=torch.channels_last)
        return tensor

    def autocast() -> contextlib.AbstractContextManager[Any]:
        if variant.bfloat16:
            return torch.autocast("cpu", dtype=torch.bfloat16)
        return contextlib.nullcontext()

    def run() -> Any:
        args, kwargs = loaded.args, loaded.kwargs
        if loaded.changes_inputs:
            args, kwargs = copied(args), copied(kwargs)
        if variant.channels_last:
            args, kwargs = mapped(as_channels_last, (args, kwargs))
        if torch.get_num_threads() != variant.threads:
            torch.set_num_threads(variant.threads)
        with torch.inference_mode(), autocast():
            return variant.module(*args, **kwargs)

    return run


def verify(run: Run, loaded: Loaded, *, atol: float, rtol: float) -> VerificationRecord:
    """Whether the outputs are the eager model's."""
    from tvm_practice.tvm_export.steps import Steps

    record = VerificationRecord(verified=False, atol=atol, rtol=rtol)
    outputs, reference = _arrays(flattened(run())), _arrays(loaded.outputs)
    try:
        found = Steps().verify(outputs, reference, atol=atol, rtol=rtol)
    except ValueError as error:
        return record.model_copy(update={"reason": str(error)})
    return record.model_copy(update={"verified": True, "max_error": found})


def _arrays(tensors: "tuple[torch.Tensor, ...] | list[torch.Tensor]") -> list[Any]:
    return [
        (each.float() if each.is_floating_point() else each).detach().numpy() for each in tensors
    ]


def try_choice(
    choice: Choice, best: Variant, loaded: Loaded, *, atol: float, rtol: float, rounds: int
) -> tuple[Variant, SearchStep]:
    """Apply a choice to the best variant; returns the better of both, and what was seen."""
    from tvm_practice.measure import compare_interleaved

    started = time.perf_counter()

    def step(status: Any, **seen: Any) -> SearchStep:
        seconds = time.perf_counter() - started
        return SearchStep(
            choice=choice.name, on=list(best.choices), status=status, seconds=seconds, **seen
        )

    try:
        candidate = choice.apply(best)
        candidate = replace(candidate, choices=(*best.choices, choice.name))
        run = runnable(candidate, loaded)
        verification = verify(run, loaded, atol=atol, rtol=rtol)
    except NotApplicable as reason:
        return best, step("not_applicable", reason=str(reason))
    except Exception as error:  # a compiler that is missing, an operator without a kernel
        return best, step("failed", reason=reason_of(error))
    if not verification.verified:
        return best, step("not_verified", reason=verification.reason, verification=verification)
    compared = compare_interleaved(
        {"best": runnable(best, loaded), "candidate": run}, baseline="best", rounds=rounds
    )
    ratio = compared.ratio["candidate"]
    seen = {
        "verification": verification,
        "ratio": RatioRecord.of(ratio),
        "best_ms": compared.latency["best"].median,
        "candidate_ms": compared.latency["candidate"].median,
    }
    if ratio.verdict == "faster":
        return candidate, step("kept", **seen)
    return best, step("not_faster", reason=ratio.verdict, **seen)


def reason_of(error: BaseException) -> str:
    """Why a variant could not be run, with the way out where it is known."""
    text = describe(error)
    if "InvalidCxxCompiler" in text:
        return "torch.compile needs a C++ compiler: install g++, or name yours in CXX"
    return text
