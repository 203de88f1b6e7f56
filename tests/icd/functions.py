"""Stand-ins for the export to TVM, called in a child process with its arguments."""

import os
from typing import Any

LATENCY = {
    "unit": "ms", "sample": "one call", "count": 5, "warmup": 1, "mean": 2.0, "std": 0.1,
    "p50": 2.0, "p90": 2.1, "p95": 2.1, "p99": 2.2, "ci95": [1.9, 2.1], "stable": True,
}  # fmt: skip


def answer(request: dict[str, Any]) -> dict[str, Any]:
    """What an export answers; `tuning` holds what it was asked for."""
    return {
        "status": "ok",
        "engine": "current",
        "target": request["target"],
        "tuner": request["tuner"],
        "tuning": {"asked": request, "note": float("inf")},
        "latency": LATENCY,
        "ratio": {"value": 0.8, "ci95": [0.7, 0.9], "verdict": "faster"},
        "verification": {"verified": True, "max_error": 1e-6, "atol": 1e-3, "rtol": 1e-3},
        "artifacts": request["artifacts"],
        "seconds": {"build": 1.5},
    }


def prints(request: dict[str, Any]) -> dict[str, Any]:
    print("the export's own output", flush=True)
    return answer(request)


def fails_as_tvm_does(**_: Any) -> None:
    raise RuntimeError("Traceback (most recent call last):\n  File x\nCheck failed: (ndim == 2)\n")


def lacks_a_package(**_: Any) -> None:
    raise ModuleNotFoundError("No module named 'xgboost'", name="xgboost")


def lacks_an_engine(**_: Any) -> None:
    from tvm_practice.engines import EngineUnavailable

    raise EngineUnavailable("classic TVM does not load: libcuda")


def dies(**_: Any) -> None:
    os._exit(7)


def is_interrupted(**_: Any) -> None:
    raise KeyboardInterrupt


def answers_nothing(**_: Any) -> None:
    return None


def answers_half(request: dict[str, Any]) -> dict[str, Any]:
    return {**answer(request), "latency": {"mean": 2.0}}


def tells_the_model(request: dict[str, Any]) -> dict[str, Any]:
    """An answer whose `tuning` holds the weight, the input and the seed that it was given."""
    from tvm_practice.tvm_export.pipeline import load
    from tvm_practice.tvm_export.request import ExportRequest

    asked = ExportRequest.model_validate(request)
    call = load(asked).call
    found = {
        "weight": next(call.module.parameters()).tolist(),
        "input": call.tensors[0].tolist(),
        "seed": asked.model_seed,
    }
    return {**answer(request), "tuning": found}
