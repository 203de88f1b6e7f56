"""What test_own.py runs in an engine's process: exports whose records win or lose as told."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any
from unittest.mock import patch

import torch

from tvm_practice.measure import Ratio
from tvm_practice.tvm_export import beside_untuned, pipeline, relax
from tvm_practice.tvm_export.request import ExportRequest
from tvm_practice.tvm_export.tuners import fallback, finals

HALF, TWICE = Ratio(0.5, 0.5, 0.5, 6), Ratio(2.0, 2.0, 2.0, 6)


def two_layers() -> tuple[torch.nn.Module, torch.Tensor]:
    layers = torch.nn.Linear(16, 32), torch.nn.ReLU(), torch.nn.Linear(32, 8), torch.nn.Softmax(-1)
    return torch.nn.Sequential(*layers), torch.randn(8, 16)


def shipped(tuner: str, folder: str, wins: list[list[bool]]) -> list[dict[str, Any]]:
    """Exports of `two_layers` on the records of one short search.

    Args:
        tuner: which tuner.
        folder: of the artifacts and the records.
        wins: for each export: whether the first function's record is faster than the default
            schedule, whether the others' are, and whether the whole model is with those that are.

    Returns:
        For each, as metadata.json has it: "functions", "tuners_own", "stayed", "verified",
        "over_untuned"; and "own", what made the functions of the tuner's own build, None where
        there is none.
    """
    request = ExportRequest.model_validate(
        {
            "model": f"{__name__}:two_layers",
            "artifacts": folder,
            "tuner": tuner,
            "tuning_trials": 6,
            "warmup": 1,
            "repeats": 6,
        }
    )
    imported = pipeline.import_model(pipeline.load(request))
    found = []
    for first, others, whole in wins:
        with _judged(first, others, whole):
            export = pipeline.build(pipeline.schedule(pipeline.tune(imported)))
        export = pipeline.measure(pipeline.verify(export))
        pipeline.write(export, request)
        told = pipeline._told(request.artifacts)
        found.append(
            {
                "functions": told["functions"],
                "tuners_own": told["tuners_own"],
                "stayed": told["tuning"]["records_stayed"],
                "verified": told["verification"]["verified"],
                "over_untuned": (told["tuning"].get("ratio_to_untuned") or {}).get("value"),
                "own": None if export.own is None else export.own.made_by,
            }
        )
    return found


@contextmanager
def _judged(first: bool, others: bool, whole: bool) -> Iterator[None]:
    """In the block these verdicts are given in place of the times."""
    verdicts = iter([first, *[others] * 20])
    with ExitStack() as patched:
        for module, name, verdict in (
            (finals, "_winner", lambda _, scheduled, *more: (scheduled[0][0], next(verdicts))),
            (fallback, "_config_is_faster", lambda *_: next(verdicts)),
            (beside_untuned, "_compared", lambda *_: (whole, TWICE if not whole else HALF)),
            (relax, "worth_tuning", lambda shares, _: list(range(len(shares)))),
        ):
            patched.enter_context(patch.object(module, name, verdict))
        yield
