"""Functions that the tests of viz.graph call in a child process, on either engine."""

from typing import Any

from tvm_practice import engines
from tvm_practice.viz.graph import Graph, format_graph, graph, kernel_operators


def _described(shown: Graph) -> dict[str, Any]:
    return {
        "inputs": list(shown.inputs),
        "operators": dict(shown.operators),
        "kernels": dict(shown.kernels),
        "constants": shown.constants,
        "constant_calls": len(shown.constant_calls),
        "result": shown.result,
    }


def small_resnet() -> dict[str, Any]:
    """The small ResNet as imported, optimized, and fused, with the last one's text."""
    from solutions import relay_import as steps
    from tvm_practice.models import load_small_resnet
    from tvm_practice.tvm_export.quiet import quiet_frontends

    with quiet_frontends():
        if engines.active() == engines.CLASSIC:
            from tvm import relay

            mod, params = steps.import_relay(*load_small_resnet())
            optimized = steps.optimize_relay(mod, params)
            fused = relay.transform.FuseOps(fuse_opt_level=2)(optimized)
        else:
            mod = steps.import_relax(*load_small_resnet())
            optimized = fused = steps.optimize_relax(mod)
    return {
        "imported": _described(graph(mod)),
        "optimized": _described(graph(optimized)),
        "fused": _described(graph(fused)),
        "text": format_graph(fused),
    }


def kernel_names(names: list[str]) -> list[list[str]]:
    return [list(kernel_operators(name)) for name in names]
