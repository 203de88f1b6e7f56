"""Functions that the tests of exports that are there already call in a child process."""

import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch

_weight = 1.0


def scaled() -> "tuple[torch.nn.Module, tuple[torch.Tensor]]":
    """A model whose weights `export` says."""
    import torch

    layer = torch.nn.Linear(5, 3).eval()
    torch.nn.init.constant_(layer.weight, _weight)
    return layer, (torch.randn(2, 5),)


def export(
    folder: str, *, weight: float = 1.0, path: str | None = None, **options: Any
) -> dict[str, Any]:
    """What `run_autotvm` calls, on the model above; and what this process has imported.

    Args:
        folder: of the artifacts.
        weight: all of the model's.
        path: where a package of steps is.
        options: of the request.
    """
    global _weight
    from tvm_practice.tvm_export.pipeline import export_model

    _weight = weight
    if path is not None and path not in sys.path:
        sys.path.insert(0, path)
    given = {"engine": "current", "reuse": True, "warmup": 0, "repeats": 1, **options}
    result = export_model({"model": f"{__name__}:scaled", "artifacts": folder, **given})
    return {**result, "imported": sorted(sys.modules)}
