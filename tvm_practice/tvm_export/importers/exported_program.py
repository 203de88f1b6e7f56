"""PyTorch to Relax, by way of an exported program (torch.export)."""

import io
import os
from contextlib import AbstractContextManager, nullcontext, redirect_stderr
from dataclasses import replace
from typing import Any

from tvm_practice.measure import Stopwatch
from tvm_practice.tvm_export.calibration import calibrated
from tvm_practice.tvm_export.calling import Call
from tvm_practice.tvm_export.errors import OTHER_TVM, BadInput, DoesNotCompile
from tvm_practice.tvm_export.export import Export
from tvm_practice.tvm_export.importers.asking import nothing_asked
from tvm_practice.tvm_export.importers.converters import Converters, find_converters
from tvm_practice.tvm_export.importers.converters.kernels import HOST_ONLY
from tvm_practice.tvm_export.importers.converters.mixtures import mixture_converters
from tvm_practice.tvm_export.importers.converters.recurrent_kernels import recurrent_converters
from tvm_practice.tvm_export.importers.converters.relax import corrections
from tvm_practice.tvm_export.importers.exporting import by_whatever_helps
from tvm_practice.tvm_export.importers.frontend import checked_frontend
from tvm_practice.tvm_export.importers.open_extents import exported_open, with_conditions
from tvm_practice.tvm_export.importers.packed_sequences import padded_sequences
from tvm_practice.tvm_export.importers.recurrent_layers import whole_recurrences
from tvm_practice.tvm_export.importers.refusals import Refused, told_in_a_line
from tvm_practice.tvm_export.importers.torch_script import scripts_as_modules
from tvm_practice.tvm_export.importers.tracing import data_as_elements, ordinary_parameters
from tvm_practice.tvm_export.loading import in_a_line
from tvm_practice.tvm_export.quiet import native_stderr_to, quiet_frontends
from tvm_practice.tvm_export.relax_passes.order import is_checked, optimized
from tvm_practice.tvm_export.relax_passes.quantization import Quantization
from tvm_practice.tvm_export.rules.cpu.loops import cpu_of
from tvm_practice.tvm_export.steps import Steps

# Operators that TVM's runtime computes, by functions that read the processor's memory.
_OF_THE_RUNTIME = ("nonzero", "unique")
_WAY_OUT = f"--converters can give what it lacks, --how OPERATOR prints a template; {OTHER_TVM}"


def import_exported(export: Export) -> Export:
    """The model as a Relax module of fused functions, none of them scheduled.

    Raises:
        BadInput: the importer refuses it: one line that names the operator.
        DoesNotCompile: what TVM's passes meet after it.
    """
    call, steps, settings = export.call, export.steps, export.settings
    quantization = None
    if settings.quantize:
        ranges = None
        if settings.calibration:
            ranges = calibrated(call, settings.calibration, settings.calibration_method)
        quantization = Quantization.of(call.module.module, settings.keep_float, ranges)
    converters = {**mixture_converters(), **find_converters(settings.converters)}
    whole: AbstractContextManager[None] = nullcontext()
    packed = padded_sequences(whole=False)
    if str(export.target.kind.name) == "llvm" and "recurrence" not in settings.without:
        converters = recurrent_converters(cpu_of(export.target)) | converters
        whole, packed = whole_recurrences(), padded_sequences(whole=True)
    watch = Stopwatch(export.seconds)
    refused = told_in_a_line("Relax", _WAY_OUT)
    quiet = native_stderr_to(os.devnull)  # it warns of every gather
    hidden = redirect_stderr(io.StringIO())  # PyTorch prints the graph of a model that it refuses
    with (
        watch("import"),
        refused,
        quiet_frontends(),
        quiet,
        hidden,
        corrections(),
        checked_frontend(),
        nothing_asked(),
        data_as_elements(),
        ordinary_parameters(call.module),
        scripts_as_modules(call.module, call.tensors),
        whole,
        packed,
    ):
        imported = _import(call, steps, converters, export.target)
        _require_host(imported, export.target)
    unfit = in_a_line("TVM cannot optimize the model", DoesNotCompile, OTHER_TVM)
    with watch("optimize"), unfit, native_stderr_to(os.devnull):
        module = optimized(
            imported,
            steps,
            names=call.names,
            target=export.target,
            precision=settings.precision,
            quantization=quantization,
            without=settings.without,
        )
    if quantization is not None and not (quantization.done or quantization.convolutions):
        raise BadInput(f"--quantize {settings.quantize}: the model has no layer for it")
    stages = {"imported": imported, "optimized": module}
    notes = export.notes if quantization is None else (*export.notes, quantization.told)
    return replace(export, module=module, stages=stages, seconds=watch.seconds, notes=notes)


def _import(call: Call, steps: Steps, converters: Converters, target: Any) -> Any:
    """The model in Relax, as its phase's step imports it."""

    def imported(module: Any) -> Any:
        if any(call.dynamic):
            return _import_dynamic(replace(call, module=module), converters, target)
        return steps.import_relax(module, call.tensors, converters=converters)

    return by_whatever_helps(imported, call.module, call.tensors)


def _require_host(imported: Any, target: Any) -> None:
    """Raise Refused for what only a processor can run, on another target."""
    if target.kind.name == "llvm":
        return
    kernels = [
        name.name_hint
        for name, func in imported.functions_items()
        if HOST_ONLY in (func.attrs or {})
    ]
    called = [
        str(getattr(getattr(each.value, "op", None), "name", "")).removeprefix("relax.")
        for block in imported["main"].body.blocks
        for each in block.bindings
    ]
    for name in (*kernels, *(each for each in called if each in _OF_THE_RUNTIME)):
        raise Refused(f"{name} has code for processors alone, not {target.kind.name}")


def _import_dynamic(call: Call, converters: Converters, target: Any) -> Any:
    """As phase 4's import_relax, for any value of the extents that have names, or for a range."""
    from tvm.relax.frontend.torch import from_exported_program

    opened = exported_open(call, checked=is_checked(target))
    imported = from_exported_program(
        opened.program,
        unwrap_unit_return_tuple=True,
        custom_convert_map=dict(converters),
        run_ep_decomposition=False,
    )
    return with_conditions(imported, opened.conditions, call.dynamic)
