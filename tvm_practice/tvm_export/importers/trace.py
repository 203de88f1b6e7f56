"""PyTorch to Relay, by way of a trace (torch.jit.trace)."""

import os
from dataclasses import replace

from tvm_practice.measure import Stopwatch
from tvm_practice.tvm_export.calling import without_fast_path
from tvm_practice.tvm_export.export import Export
from tvm_practice.tvm_export.importers.converters import (
    find_converters,
    relay_missing,
    relay_rare,
    relay_types,
)
from tvm_practice.tvm_export.importers.converters import relay as relay_converters
from tvm_practice.tvm_export.importers.converters.relay_results import results_as_traced
from tvm_practice.tvm_export.importers.refusals import told_in_a_line
from tvm_practice.tvm_export.quiet import decisions_fixed, native_stderr_to, quiet_frontends

_WAY_OUT = "--converters can give what it lacks; --tuner metaschedule imports by Relax"


def import_traced(export: Export) -> Export:
    """The model as an optimized Relay module, its weights constants.

    Raises BadInput where the importer refuses: one line that names the operator or the
    line of the model at fault.
    """
    call, steps = export.call, export.steps
    converters = relay_converters.converters() | relay_types.converters()
    converters |= relay_missing.converters() | relay_rare.converters()
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
        held,
        decisions_fixed() as notes,
    ):
        imported, parameters = steps.import_relay(call.module, call.tensors, converters=converters)
    with watch("optimize"), native_stderr_to(os.devnull):
        imported = relay_converters.one_parameter_per_name(imported)
        imported = relay_converters.sums_as_products(imported)
        module = steps.optimize_relay(imported, parameters)
    stages = {"imported": imported, "optimized": module}
    return replace(
        export,
        module=module,
        stages=stages,
        seconds=watch.seconds,
        notes=(*export.notes, *notes),
    )
