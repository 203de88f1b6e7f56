"""The run: resolve the model, measure PyTorch, export to TVM if asked, write metrics.json."""

import json
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from pydantic import ValidationError

from tvm_practice import engines
from tvm_practice.icd.config import RunConfig
from tvm_practice.icd.metrics import (
    Metrics,
    ModelRecord,
    PipelineRecord,
    TensorRecord,
    TvmBaseline,
)
from tvm_practice.measure import Latency, environment
from tvm_practice.tvm_export.artifacts import require_free, require_writable
from tvm_practice.tvm_export.artifacts.schema import (
    LatencyRecord,
    OwnRecord,
    RatioRecord,
    VerificationRecord,
)
from tvm_practice.tvm_export.cli import is_missing
from tvm_practice.tvm_export.errors import BadInput
from tvm_practice.tvm_export.loading import Loaded, describe, hand_over, load
from tvm_practice.tvm_export.nested import flattened
from tvm_practice.tvm_export.request import EXPORT, ExportRequest
from tvm_practice.tvm_export.writing import write_json
from tvm_practice.viz.tables import with_interval
from tvm_practice.wording import number_of

if TYPE_CHECKING:
    from tvm_practice.icd.search import Variant

METRICS = "metrics.json"
_OTHER_FOLDER = "give another --out or measure.tvm_artifacts_dir"
_UNFINISHED = "the run ended before the export did"

Say = Callable[[str], None]


def run(
    config: RunConfig,
    out: Path,
    *,
    say: Say = lambda line: None,
    output: IO[Any] | None = None,
) -> Metrics:
    """Measure as the configuration says and write `out`/metrics.json.

    The file is written when PyTorch is measured, and again when the export to TVM has ended, so
    that an interrupted export loses nothing else.

    Args:
        config: what to do.
        out: folder; made if it is not there.
        say: is given a line whenever something begins that takes long, or is known.
        output: where the export's own output goes; this process's standard output if None.

    Raises BadInput for the person's mistakes, OSError if metrics.json cannot be written.
    """
    require_writable(out, "")
    request = config.export_request(out) if config.measure.tvm_enable else None
    if request:
        require_writable(request.artifacts)
        require_free(request.artifacts, request.model, way_out=_OTHER_FOLDER)
    seconds: dict[str, float] = {}
    threads = _set_threads()
    say(f"loading {config.model.loader}")
    started = time.perf_counter()
    loaded = load(config.model.loader, example=config.model.example, seed=config.seed)
    seconds["load"] = time.perf_counter() - started

    started = time.perf_counter()
    pipeline, latency, eager = measure_pytorch(config, loaded, threads, say)
    seconds["pytorch"] = time.perf_counter() - started

    metrics = Metrics(
        environment=environment(),
        threads=threads,
        configuration=config,
        model=_describe_model(config.model.loader, loaded),
        notes=[*loaded.notes, *_notes(config, pipeline, latency)],
        pipeline=pipeline,
        latency=LatencyRecord.model_validate(latency.to_dict(samples=True)),
        eager=LatencyRecord.model_validate(eager.to_dict(samples=True)),
        tvm_baseline=_planned(config, request) if request else None,
        seconds=seconds,
    )
    _write(metrics, out)
    if request and metrics.tvm_baseline:
        started = time.perf_counter()
        planned = metrics.tvm_baseline
        with _handed_over(loaded, request) as asked:
            metrics.tvm_baseline = measure_tvm(planned, asked, say=say, output=output)
        seconds["tvm"] = time.perf_counter() - started
        metrics.seconds = seconds
        _write(metrics, out)
    return metrics


@contextmanager
def _handed_over(loaded: Loaded, request: ExportRequest) -> Iterator[ExportRequest]:
    """The request with the model that PyTorch was measured with, in a file that the block has.

    Where the model cannot be written the factory makes it again, with the same seed.
    """
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "model.pt"
        if hand_over(loaded, file):
            request = request.model_copy(update={"resolved": file})
        else:
            file.unlink(missing_ok=True)
        yield request


def _set_threads() -> int:
    """Give PyTorch the threads that TVM gets; returns their number. Raises BadInput."""
    import torch

    try:
        threads = engines.thread_count()
    except engines.EngineError as error:
        raise BadInput(str(error)) from None
    torch.set_num_threads(threads)
    return threads


def _notes(config: RunConfig, pipeline: PipelineRecord, latency: Latency) -> list[str]:
    """What to know of PyTorch's figures."""
    notes = []
    if latency.verdict != "measured":
        notes.append(f"PyTorch's latency is {latency.verdict}")
    ratio = pipeline.ratio_to_eager
    if config.pipeline.mode == "iterative" and ratio is not None and ratio.verdict != "faster":
        notes.append("at the end the choices kept were not significantly faster than eager")
    measure = config.measure
    if measure.tvm_enable and not measure.tvm_target.startswith("llvm"):
        notes.append(f"PyTorch ran on the CPU, TVM was asked for {measure.tvm_target}")
    return notes


def _write(metrics: Metrics, out: Path) -> None:
    out.mkdir(parents=True, exist_ok=True)
    # By way of JSON text, in which whatever is not finite has become null.
    write_json(out / METRICS, json.loads(metrics.model_dump_json()))


def _describe_model(loader: str, loaded: Loaded) -> ModelRecord:
    inputs = {name: flattened(value) for name, value in loaded.inputs.items()}
    return ModelRecord(
        loader=loader,
        parameters=sum(each.numel() for each in loaded.module.parameters()),
        inputs=[_tensor(name, each) for name, found in inputs.items() for each in found],
        outputs=[_tensor(f"output_{i}", each) for i, each in enumerate(loaded.outputs)],
    )


def _tensor(name: str, tensor: Any) -> TensorRecord:
    dtype = str(tensor.dtype).removeprefix("torch.")
    return TensorRecord(name=name, shape=list(tensor.shape), dtype=dtype)


def measure_pytorch(
    config: RunConfig, loaded: Loaded, threads: int, say: Say
) -> tuple[PipelineRecord, Latency, Latency]:
    """PyTorch as `pipeline.mode` has it: what was done, its latency, the eager model's."""
    from tvm_practice.icd import search
    from tvm_practice.measure import compare_interleaved, sample_latency

    pipeline, measure = config.pipeline, config.measure
    eager = search.Variant(loaded.module, threads)
    run_eager = search.runnable(eager, loaded)
    record = PipelineRecord(mode=pipeline.mode, choices=[])
    chosen = eager
    if pipeline.mode == "compiled":
        say("compiling, which can take minutes")
        chosen, record = _compiled(config, eager, loaded)
        if record.reason:
            say(f"torch.compile: {record.reason}; the eager model is measured")
    elif pipeline.mode == "iterative":
        say(f"searching, {number_of(pipeline.rounds, 'round')} a choice")
        for choice in search.choices(threads):
            chosen, step = search.try_choice(
                choice,
                chosen,
                loaded,
                atol=pipeline.atol,
                rtol=pipeline.rtol,
                rounds=pipeline.rounds,
            )
            record.search.append(step)
            say(f"  {choice.name}: {_outcome(step)}")

    run_chosen = search.runnable(chosen, loaded)
    say(
        f"measuring, {number_of(measure.warmup, 'call')} to warm up, "
        f"{number_of(measure.repeats, 'sample')}"
    )
    if chosen is eager:
        latency = sample_latency(run_eager, warmup=measure.warmup, repeats=measure.repeats)
        return record, latency, latency
    compared = compare_interleaved(
        {"eager": run_eager, "chosen": run_chosen}, baseline="eager", rounds=pipeline.rounds
    )
    record.choices = list(chosen.choices)
    record.ratio_to_eager = RatioRecord.of(compared.ratio["chosen"])
    record.verification = search.verify(run_chosen, loaded, atol=pipeline.atol, rtol=pipeline.rtol)
    latency = sample_latency(run_chosen, warmup=measure.warmup, repeats=measure.repeats)
    return record, latency, compared.latency["eager"]


def _compiled(
    config: RunConfig, eager: "Variant", loaded: Loaded
) -> "tuple[Variant, PipelineRecord]":
    """The model under torch.compile, or the eager one and why."""
    from dataclasses import replace

    from tvm_practice.icd import search

    record = PipelineRecord(mode="compiled", choices=[])
    try:
        candidate = replace(search.compile_variant(eager), choices=("compile",))
        verification = search.verify(
            search.runnable(candidate, loaded),
            loaded,
            atol=config.pipeline.atol,
            rtol=config.pipeline.rtol,
        )
    except Exception as error:  # no compiler, or whatever compilation meets in the model
        record.reason = search.reason_of(error)
        return eager, record
    if not verification.verified:
        record.reason = verification.reason
        record.verification = verification
        return eager, record
    return candidate, record


def _outcome(step: Any) -> str:
    """A step of the search in words."""
    if step.ratio is None:
        return f"{step.status.replace('_', ' ')}: {step.reason}"
    verdict = "kept" if step.status == "kept" else f"not kept ({step.reason})"
    ratio = with_interval(step.ratio.value, step.ratio.ci95)
    return f"{verdict}, {step.candidate_ms:.3g} ms, ratio to the best {ratio}"


def _planned(config: RunConfig, request: ExportRequest) -> TvmBaseline:
    """The export as it is before it ran: which tuner, hence which engine, and where to."""
    return TvmBaseline(
        status="failed",
        reason=_UNFINISHED,
        target=request.target,
        engine=request.chosen_engine,
        tuner=request.chosen_tuner,
        tuning_trials=request.tuning_trials,
        use_ansor=config.measure.tvm_use_ansor,
        artifacts_dir=str(request.artifacts),
    )


def measure_tvm(
    planned: TvmBaseline,
    request: ExportRequest,
    *,
    say: Say = lambda line: None,
    output: IO[Any] | None = None,
) -> TvmBaseline:
    """Export the model to TVM in a process of its own, verified and measured beside PyTorch.

    Never raises for a failure there: the answer's status and reason say it.
    """
    tuner, trials = planned.tuner, planned.tuning_trials
    how = f"{tuner}, {number_of(trials, 'trial')}" if tuner else "untuned"
    say(f"TVM: engine {planned.engine}, target {planned.target}, {how}")
    try:
        if request.tuning_log is not None:
            request.tuning_log.parent.mkdir(parents=True, exist_ok=True)
        with engines.Session(planned.engine, output=output) as session:
            found = _baseline(session.call(EXPORT, request.arguments()))
    except (ValidationError, KeyError, TypeError, AttributeError) as error:
        reason = f"the export answered something else: {describe(error)}"
        found = {"status": "failed", "reason": reason}
    except (engines.PlainError, OSError) as error:
        missing_or_remote = (engines.RemoteError, engines.EngineUnavailable)
        reason = error.line if isinstance(error, missing_or_remote) else describe(error)
        status = "missing_dependencies" if is_missing(error) else "failed"
        found = {"status": status, "reason": reason}
    if found["reason"]:
        say(f"TVM: {found['status']}: {found['reason']}")
    return planned.model_copy(update=found)


def _baseline(answer: dict[str, Any]) -> dict[str, Any]:
    """What an export's answer says, as `TvmBaseline` has it. Raises if it is something else."""
    return {
        "status": "ok",
        "reason": None,
        "latency": LatencyRecord.model_validate(answer["latency"]),
        "ratio_to_eager": RatioRecord.model_validate(ratio) if (ratio := answer["ratio"]) else None,
        "tuners_own": OwnRecord.model_validate(own) if (own := answer.get("tuners_own")) else None,
        "verification": VerificationRecord.model_validate(answer["verification"]),
        "tuning": dict(answer.get("tuning") or {}),
        "seconds": dict(answer.get("seconds") or {}),
    }
