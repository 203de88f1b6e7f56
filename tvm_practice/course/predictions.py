"""Predict, then measure: what a phase asks before its run and compares after it."""

import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import click

from tvm_practice.course.progress import Progress

# A prediction within this factor of the measurement is a good one.
_CLOSE = 1.5


@dataclass(frozen=True)
class Prediction:
    """A number to predict.

    Attributes:
        name: in the progress file.
        question: asked before the run; the answer is a positive number.
        unit: of the number, in the plural.
        measured: takes what `run_phase` returns; the number, or None where the run has none.
    """

    name: str
    question: str
    unit: str
    measured: Callable[[Mapping[str, Any]], float | None]


def _figures(results: Mapping[str, Any], engine: str) -> Mapping[str, Any]:
    found: Mapping[str, Any] = results.get(engine, {}).get("figures") or {}
    return found


def _speedup(step: str) -> Callable[[Mapping[str, Any]], float | None]:
    """How many times as fast as naive a step of phase 2 is."""

    def measured(results: Mapping[str, Any]) -> float | None:
        speeds = _figures(results, "current").get("gflops", {})
        return speeds[step] / speeds["naive"] if {step, "naive"} <= set(speeds) else None

    return measured


def _beside_hand_written(tuner: str, engine: str) -> Callable[[Mapping[str, Any]], float | None]:
    """How many times as fast as the hand-written schedule a tuner's best is."""

    def measured(results: Mapping[str, Any]) -> float | None:
        comparison = _figures(results, engine).get("comparison") or {}
        value = comparison.get("ratio", {}).get(tuner, {}).get("value")
        return None if value is None else 1 / float(value)

    return measured


def _first_call(results: Mapping[str, Any]) -> float | None:
    taken = _figures(results, "current").get("first_calls_ms")
    return taken[0] / statistics.median(taken) if taken else None


def _kernels(results: Mapping[str, Any]) -> float | None:
    found = _figures(results, "current").get("MLP", {}).get("kernels")
    return None if found is None else float(found)


def _beside_pytorch(results: Mapping[str, Any]) -> float | None:
    comparison = _figures(results, "current").get("MLP", {}).get("comparison") or {}
    for name, ratio in comparison.get("ratio", {}).items():
        if name != comparison["baseline"] and ratio["value"] is not None:
            return float(ratio["value"])
    return None


PREDICTIONS: dict[str, tuple[Prediction, ...]] = {
    "manual_schedule": (
        Prediction(
            "tile",
            "tile computes the same products in another order. How many times as fast as the naive "
            "loops is it?",
            "times",
            _speedup("tile"),
        ),
        Prediction(
            "packed_matmul",
            "And packed_matmul, the last step, on all threads?",
            "times",
            _speedup("packed_matmul"),
        ),
    ),
    "schedule_analysis": (
        Prediction(
            "pays_from",
            "From how many rows on does a product of square matrices gain from threads, if it is "
            "called again and again?",
            "rows",
            lambda results: _figures(results, "current").get("break_even", {}).get("pays_from"),
        ),
        Prediction(
            "first_call",
            "How many times as long as a usual call does the first call of a parallel product "
            "take?",
            "times",
            _first_call,
        ),
    ),
    "relay_import": (
        Prediction(
            "kernels",
            "The MLP has three linear layers with activations between them. How many kernels "
            "does Relax make of it, after fusion?",
            "kernels",
            _kernels,
        ),
        Prediction(
            "beside_pytorch",
            "How many times as long as in PyTorch does the MLP take in TVM, without tuning? Below "
            "1, TVM is faster.",
            "times PyTorch's time",
            _beside_pytorch,
        ),
    ),
    "auto_tune": (
        Prediction(
            "metaschedule",
            "How many times as fast as your packed_matmul is MetaSchedule's best schedule?",
            "times",
            _beside_hand_written("MetaSchedule", "current"),
        ),
        Prediction(
            "ansor",
            "How many times as fast as tile_classic is Ansor's best schedule?",
            "times",
            _beside_hand_written("Ansor", "classic"),
        ),
    ),
}


def open_predictions(module: str, progress: Progress) -> Sequence[Prediction]:
    """What of a phase has not been predicted yet."""
    return [
        each
        for each in PREDICTIONS.get(module, ())
        if f"{module}.{each.name}" not in progress.predictions
    ]


def ask(module: str, progress: Progress) -> None:
    """Ask for each number that is not predicted yet, and keep it; an empty line skips it."""
    asked = open_predictions(module, progress)
    if asked:
        click.echo("Predict, then measure. Answer with a number; Enter skips a question.")
    for each in asked:
        said = click.prompt(
            f"  {each.question}", default="", show_default=False, value_proc=_number
        )
        if said:
            progress.predict(f"{module}.{each.name}", said)


def _number(text: str) -> float | None:
    if not text.strip():
        return None
    try:
        number = float(text)
    except ValueError:
        number = 0.0
    if not 0 < number < float("inf"):
        raise click.UsageError("enter a number above 0, for example 2.5")
    return number


def compare(module: str, results: Mapping[str, Any], progress: Progress) -> list[str]:
    """A line for each prediction of a phase that this run measured."""
    lines = []
    for each in PREDICTIONS.get(module, ()):
        said = progress.predictions.get(f"{module}.{each.name}")
        measured = each.measured(results)
        if said is None or not measured:
            continue
        factor = max(said / measured, measured / said)
        verdict = "close" if factor <= _CLOSE else f"off by a factor of {factor:.1f}"
        lines.append(f"{each.name}: you said {said:g} {each.unit}, it is {measured:.3g}: {verdict}")
    return lines
