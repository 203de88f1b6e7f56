"""PyTorch to Relay, by way of a trace (torch.jit.trace)."""

import os
from contextlib import suppress
from dataclasses import replace
from typing import Any

from tvm_practice.measure import Stopwatch
from tvm_practice.tvm_export.calling import Call, masks_as_given, without_fast_path
from tvm_practice.tvm_export.errors import OTHER_TVM, DoesNotCompile
from tvm_practice.tvm_export.export import Export
from tvm_practice.tvm_export.importers.converters import (
    Converters,
    find_converters,
    relay_core,
    relay_images,
    relay_missing,
    relay_rare,
    relay_types,
)
from tvm_practice.tvm_export.importers.converters import relay as relay_converters
from tvm_practice.tvm_export.importers.converters.relay_results import results_as_traced
from tvm_practice.tvm_export.importers.refusals import Refused, told_in_a_line
from tvm_practice.tvm_export.importers.relay_operators import in_known_operators
from tvm_practice.tvm_export.importers.torch_script import scripts_as_modules
from tvm_practice.tvm_export.loading import in_a_line
from tvm_practice.tvm_export.quiet import decisions_fixed, native_stderr_to, quiet_frontends
from tvm_practice.tvm_export.steps import Steps

_WAY_OUT = "--converters can give what it lacks; --tuner metaschedule imports by Relax"
# What TVM's frontend says of operators that it has no converter for begins so.
_MISSING = "The following operators are not implemented"


def import_traced(export: Export) -> Export:
    """The model as an optimized Relay module, its weights constants.

    Raises BadInput where the importer refuses: one line that names the operator or the
    line of the model at fault.
    """
    call, steps = export.call, export.steps
    converters = relay_converters.converters() | relay_types.converters()
    for module in (relay_missing, relay_rare, relay_core, relay_images):
        converters |= module.converters()
    converters |= find_converters(export.settings.converters)
    watch = Stopwatch(export.seconds)
    refused = told_in_a_line("Relay", _WAY_OUT)
    quiet, plain = native_stderr_to(os.devnull), without_fast_path()
    held = results_as_traced()
    with (
        watch("import"),
        refused,
        quiet_frontends(),
        quiet,
        plain,
        masks_as_given(),
        held,
        scripts_as_modules(call.module, call.tensors, fixed=True),
        decisions_fixed() as notes,
    ):
        imported, parameters = _import(call, steps, converters)
    unfit = in_a_line("TVM cannot optimize the model", DoesNotCompile, OTHER_TVM)
    with watch("optimize"), unfit, native_stderr_to(os.devnull):
        imported = relay_converters.one_parameter_per_name(imported)
        imported = relay_converters.sums_as_products(imported)
        imported = relay_converters.without_empty_results(imported)
        module = steps.optimize_relay(imported, parameters)
    stages = {"imported": imported, "optimized": module}
    return replace(
        export,
        module=module,
        stages=stages,
        seconds=watch.seconds,
        notes=(*export.notes, *notes),
    )


def _import(call: Call, steps: Steps, converters: Converters) -> Any:
    """The model in Relay and its weights, as its phase's step imports it.

    A model that TVM's frontend has no converters for, or PyTorch does not trace, is taken apart
    into operators that it has. If that fails too, what was said of the model as it was is raised.
    """
    from tvm.relay.frontend.pytorch import PyTorchOpConverter

    try:
        return steps.import_relay(call.module, call.tensors, converters=converters)
    except (NotImplementedError, Refused, RuntimeError) as error:
        if isinstance(error, NotImplementedError) and not str(error).startswith(_MISSING):
            raise  # the step is to do
        known = frozenset(PyTorchOpConverter(None, "float32").convert_map) | frozenset(converters)
        with suppress(Exception):
            module = in_known_operators(call.module, call.tensors, known)
            return steps.import_relay(module, call.tensors, converters=converters)
        raise
