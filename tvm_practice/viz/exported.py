"""An export with pictures of the model, as a call with JSON in and out (engines.call)."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tvm_practice.engines import CURRENT
from tvm_practice.tvm_export.export import Export
from tvm_practice.tvm_export.loading import describe
from tvm_practice.tvm_export.pipeline import export_variants
from tvm_practice.viz.graph import fusion
from tvm_practice.viz.studies import kernel_pictures


def export_with_pictures(
    request: Mapping[str, Any], tuners: Sequence[str] | None = None
) -> dict[str, Any]:
    """`pipeline.export_variants`, and pictures of its results.

    Returns:
        What that returns, and where it could be drawn "graph", see viz.graph.fusion, and on the
        current engine "kernels", see viz.studies.kernel_pictures.
    """
    pictures: dict[str, Any] = {}
    notes: list[str] = []

    def draw(name: str, picture: Callable[[], Any]) -> None:
        try:
            pictures[name] = picture()
        except Exception as error:  # what cannot be drawn is no reason to fail
            notes.append(f"no picture of its {name}: {describe(error)}")

    def seen(export: Export) -> None:
        stages = export.stages
        if export.built is None:
            draw("graph", lambda: fusion(stages["imported"], stages["optimized"]))
        elif export.tuner is None and export.engine == CURRENT:
            draw("kernels", lambda: kernel_pictures(stages["scheduled"]))

    report = export_variants(request, tuners, seen=seen)
    return report | pictures | {"notes": [*report["notes"], *notes]}
