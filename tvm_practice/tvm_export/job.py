"""One engine's part of an export, as a call with JSON in and out (engines.call)."""

import traceback
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tvm_practice import engines
from tvm_practice.engines import Engine
from tvm_practice.engines.imports import import_for_good
from tvm_practice.measure import Latency, compare_interleaved
from tvm_practice.tvm_export.steps import Steps

if TYPE_CHECKING:
    from tvm_practice.tvm_export.calling import Call
    from tvm_practice.tvm_export.graph_module import GraphModule
    from tvm_practice.tvm_export.loading import Loaded

# The artifacts' tolerance: what reordering sums in float32 does to logits of order one.
ATOL = RTOL = 1e-3
_ROUNDS = 30
_MEASURE_SECONDS = 20.0


def export_lane(
    model: str,
    trials: int,
    out: str,
    steps: str | None = None,
    target: str = "llvm",
    tuners: list[str] | None = None,
    example: list[dict[str, Any]] | None = None,
) -> dict[str, Any]:
    """Export a model on the active engine: untuned, then by each of its tuners.

    Every variant is built, verified against PyTorch, measured interleaved with PyTorch and
    written as artifacts. What fails or is to do is said in its variant; the rest goes on.

    Args:
        model: "module:factory", see `loading.load`.
        trials: schedules each tuner may measure, over all the model's tasks. The reference steps
            count those of earlier runs; a learner's are run each time, on records of their own.
        out: folder for records and artifacts; what it has of an earlier run is replaced.
        steps: package of the import, tuning and build functions.
        target: in either engine's spelling.
        tuners: which of the engine's tuners; None for all.
        example: [{"shape", "dtype"}] of the inputs, for a factory that returns none.

    Returns:
        {"model", "engine", "pytorch": latency, "notes", "graph": see viz.graph.fusion,
        "kernels": see viz.studies.kernel_pictures (current engine),
        "variants": [{"tuner", "status": "ok" | "todo" | "failed", "reason", "latency", "ratio",
        "max_error", "verified", "verification", "seconds", "tuning", "artifacts", "operators":
        where the time goes, see `_operators` (current engine)}]}, latencies in ms.
    """
    import torch

    from tvm_practice.tvm_export.artifacts import export_artifacts
    from tvm_practice.tvm_export.calling import as_array, as_call
    from tvm_practice.tvm_export.lane import open_lane
    from tvm_practice.tvm_export.loading import ExampleTensor, load
    from tvm_practice.tvm_export.tuners.records import count
    from tvm_practice.viz.graph import fusion
    from tvm_practice.viz.studies import kernel_pictures

    torch.set_num_threads(engines.thread_count())
    engine = engines.active()
    assert engine is not None
    described = None if example is None else [ExampleTensor.model_validate(e) for e in example]
    loaded = load(model, example=described, seed=0)
    call = as_call(loaded.module, loaded.args, loaded.kwargs, copies=loaded.changes_inputs)
    reference = [as_array(each) for each in loaded.outputs]
    folder = Path(out)
    report: dict[str, Any] = {
        "model": model,
        "engine": engine,
        "pytorch": None,
        "notes": list(loaded.notes),
        "variants": [],
    }

    lane, failure = _attempt(open_lane, engine, call, target=target, steps=steps)
    if lane is None:
        report["variants"].append({"tuner": None, **failure})
        return report

    _draw(report, "graph", lambda: fusion(lane.stages["imported"], lane.stages["optimized"]))
    chosen = Steps(steps)
    built: dict[str, tuple[Any, dict[str, Any]]] = {}
    report["notes"] += lane.notes
    for tuner in (None, *(each for each in lane.tuners if tuners is None or each in tuners)):
        name = tuner or "untuned"
        print(f"\n{engine}: {name}" + (f", {trials} trials" if tuner else ""), flush=True)
        if tuner is None:
            graph_module, failure = _attempt(lane.untuned)
        else:
            log, in_all = folder / f"{name}-records", trials
            if not chosen.is_own(f"tune_{tuner}"):
                log = folder / f"{name}-records-{steps}"
                in_all += count(log, tuner)
            graph_module, failure = _attempt(lane.tuned, tuner, trials=in_all, log=log)
        variant: dict[str, Any] = {"tuner": tuner, **failure}
        report["variants"].append(variant)
        if graph_module is None:
            continue
        variant |= {"seconds": graph_module.seconds, "tuning": graph_module.tuning}
        outputs = graph_module(*map(as_array, call.tensors))
        variant["verification"] = _verified(outputs, reference, call, chosen)
        variant |= {
            "status": variant["verification"].pop("status"),
            "reason": variant["verification"]["reason"],
            "verified": variant["verification"]["verified"],
            "max_error": variant["verification"]["max_error"],
        }
        built[name] = (graph_module, variant)
        if tuner is None and engine == engines.CURRENT:
            _draw(report, "kernels", lambda: kernel_pictures(lane.stages["scheduled"]))

    if not built:
        return report

    def run_pytorch() -> None:
        with torch.inference_mode():
            loaded.module(*loaded.args, **loaded.kwargs)

    compared = compare_interleaved(
        {"pytorch": run_pytorch, **{name: each.run for name, (each, _) in built.items()}},
        baseline="pytorch",
        rounds=_ROUNDS,
        time_limit=_MEASURE_SECONDS,
    )
    report["pytorch"] = compared.latency["pytorch"].to_dict()
    for name, (graph_module, variant) in built.items():
        if engine == engines.CURRENT:
            variant["operators"] = _operators(graph_module)
        variant["ratio"] = compared.ratio[name].to_dict()
        variant["latency"] = compared.latency[name].to_dict()
        own_latency, _ = _attempt(_own_latency, graph_module.run, chosen)
        variant["artifacts"] = str(
            export_artifacts(
                graph_module,
                folder / name,
                force=True,
                report={
                    "model": model,
                    "verification": variant["verification"],
                    "latency": own_latency or variant["latency"],
                    "ratio_to_pytorch": variant["ratio"],
                },
            )
        )
    return report


def _operators(graph_module: "GraphModule") -> list[dict[str, Any]]:
    """Each function's part of a run; see profiling.OperatorTime.

    "schedule" is the default rule that made it (see `rules.cpu`), or "record".
    """
    from tvm_practice.tvm_export.profiling import plain_name, profile_operators

    return [
        {**each.to_dict(), "schedule": graph_module.rules.get(plain_name(each.name), "record")}
        for each in profile_operators(graph_module.runner)
    ]


def _draw(report: dict[str, Any], key: str, draw: Callable[[], Any]) -> None:
    """Add what is drawn of the model to the report; what cannot be drawn is no reason to fail."""
    from tvm_practice.tvm_export.loading import describe

    try:
        report[key] = draw()
    except Exception as error:
        report["notes"].append(f"no picture of its {key}: {describe(error)}")


def export_model(
    model: str,
    artifacts: str,
    *,
    example: list[dict[str, Any]] | None = None,
    target: str = "llvm",
    tuner: str | None = None,
    trials: int = 0,
    log: str | None = None,
    search: dict[str, Any] | None = None,
    input_shapes: dict[str, list[int | str]] | None = None,
    opt_level: int = 3,
    converters: str | None = None,
    warmup: int = 50,
    repeats: int = 1000,
    dump_ir: bool = False,
    force: bool = False,
    steps: str | None = None,
    engine: Engine | None = None,
    reuse: bool = False,
) -> dict[str, Any]:
    """Export a person's model, once: tuned by `tuner`, or untuned.

    Args:
        model: "module:factory", see `loading.load`.
        artifacts: folder to write.
        example: [{"shape", "dtype"}] of the inputs, for a factory that returns none.
        target: in either engine's spelling; "llvm" is this machine's processor.
        tuner: of this engine; None or no trials for the untuned build.
        trials: schedules it may measure, over all the model's tasks, those in `log` included.
        log: where records go and are gone on from; None: `artifacts`/records.
        search: how, see `tuners.search.Search`.
        input_shapes: names and shapes of the inputs, see `ExportConfig`.
        opt_level: of TVM's passes.
        converters: "module:function" of the person's own, see `converters.find_converters`.
        warmup: calls of the artifact that are not kept.
        repeats: calls of the artifact that are.
        dump_ir: write the model's IR after each stage to `artifacts`/ir.
        force: write over another model's artifacts.
        steps: package of the import, tuning and build functions.
        engine: which TVM, activated when it is needed; None: the one that is active.
        reuse: make nothing anew where `artifacts` holds an export of the same, see `origin`.

    Returns:
        {"status": "ok", "engine", "target", "tuner", "tuning", "latency", "ratio" (to PyTorch
        eager, interleaved), "verification", "not_run", "artifacts", "seconds", "rules",
        "declined", "notes", "size", "unchanged_since"}, latencies in ms, the library's size in
        bytes, the date of an export that was reused or None. For a target that this machine cannot
        run "not_run" says why, and what needs a run is None.

    Raises:
        BadInput: the model, its inputs, the target, the log or the folder; one line.
    """
    import_for_good("torch")
    import torch

    from tvm_practice.tvm_export.artifacts import export_artifacts, origin, require_free
    from tvm_practice.tvm_export.errors import BadInput
    from tvm_practice.tvm_export.loading import ExampleTensor, load
    from tvm_practice.tvm_export.tuners.search import Search

    engine = engine or engines.active()
    assert engine is not None
    folder = Path(artifacts)
    require_free(folder, model, force=force)  # before hours of tuning
    described = None if example is None else [ExampleTensor.model_validate(e) for e in example]
    settings = Search.model_validate(search or {})
    tunes = tuner is not None and trials > 0
    records = Path(log) if log else folder / f"records-{tuner}"
    configuration = {
        "target": target,
        "tuner": tuner,
        "tuning_trials": trials,
        "search": search or {},
        "opt_level": opt_level,
        "input_shapes": input_shapes,
        "converters": converters,
        "warmup": warmup,
        "repeats": repeats,
        "steps": steps,
        "dump_ir": dump_ir,
    }
    made_from = {
        "software": origin.software(engine, steps=steps, own=(settings.space, converters)),
        "records": origin.records(records) if tunes else None,
    }
    torch.set_num_threads(engines.thread_count())
    loaded = load(model, example=described, seed=0)
    made_from["model"] = origin.model(loaded, steps=steps)
    former = origin.former(folder) if reuse else None
    if former is not None:
        difference = origin.difference(former, configuration, made_from)
        difference = difference or origin.damage(folder, former, dump_ir=dump_ir)
        if difference is None:
            return _told(folder, former, unchanged_since=former["environment"]["date"])
        print(f"exporting anew: {difference}", flush=True)
    engines.activate(engine)

    from tvm_practice.tvm_export.artifacts import read_metadata
    from tvm_practice.tvm_export.calling import as_array, as_call
    from tvm_practice.tvm_export.lane import open_lane
    from tvm_practice.tvm_export.targets import (
        require_buildable,
        resolve_target,
        why_not_runnable,
    )

    call = as_call(
        loaded.module,
        loaded.args,
        loaded.kwargs,
        copies=loaded.changes_inputs,
        shapes=input_shapes,
    )
    inputs = [as_array(each) for each in call.tensors]
    reference = [as_array(each) for each in loaded.outputs]

    resolved = resolve_target(target)
    cannot_run = why_not_runnable(resolved)
    require_buildable(target, engine, tuned=tunes)
    lane = open_lane(
        engine, call, target=target, steps=steps, opt_level=opt_level, converters=converters
    )
    if tuner is None or not tunes:
        graph_module = lane.untuned()
    elif tuner in lane.tuners:
        graph_module = lane.tuned(tuner, trials=trials, log=records, search=settings)
        made_from["records"] = origin.records(records)
    else:
        raise BadInput(f"{tuner} is no tuner of the {engine} engine: {', '.join(lane.tuners)}")
    if dump_ir:
        _write_stages(lane.stages, folder / "ir")

    chosen = Steps(steps)
    for position, value in enumerate(inputs):
        graph_module.set_input(position, value)
    verification = latency = ratio = None
    if not cannot_run:
        graph_module.run()
        verification = _verified(graph_module.outputs(), reference, call, chosen)
        del verification["status"]
        latency = _own_latency(graph_module.run, chosen, warmup=warmup, repeats=repeats)
        # No more rounds than calls were asked for; fewer than 6 can show nothing at 95%.
        rounds = min(_ROUNDS, max(6, repeats))
        device = "cpu" if resolved.kind.name == "llvm" else str(resolved.kind.name)
        if device == "cpu" or torch.cuda.is_available():
            ratio = _ratio_to_pytorch(loaded, graph_module, rounds=rounds, device=device)
        else:
            lane.notes.append("not compared with PyTorch, whose build here is not for CUDA")
    # The same command goes on with a search that ran out of time.
    complete = not settings.seconds or graph_module.tuning.get("trials", 0) >= trials
    report = {
        "model": model,
        "verification": verification,
        "latency": latency,
        "ratio_to_pytorch": ratio,
        "configuration": configuration,
        "not_run": cannot_run,
        "notes": [*loaded.notes, *lane.notes],
        "origin": made_from if made_from["model"] and complete else None,
    }
    export_artifacts(graph_module, folder, report=report, force=force)
    return _told(folder, read_metadata(folder))


def _told(
    folder: Path, metadata: dict[str, Any], *, unchanged_since: str | None = None
) -> dict[str, Any]:
    """What `export_model` returns of the export in `folder`."""
    from tvm_practice.tvm_export.artifacts import LIBRARY

    same = ("engine", "target", "tuner", "tuning", "latency", "verification", "not_run")
    return {
        "status": "ok",
        **{name: metadata[name] for name in (*same, "seconds", "rules", "notes")},
        "declined": metadata.get("declined", {}),
        "ratio": metadata["ratio_to_pytorch"],
        "artifacts": str(folder),
        "size": (folder / LIBRARY).stat().st_size,
        "unchanged_since": unchanged_since,
    }


def _ratio_to_pytorch(
    loaded: "Loaded", graph_module: "GraphModule", *, rounds: int, device: str
) -> dict[str, Any]:
    """The artifact's time over PyTorch's on the same device, timed in turns."""
    import copy

    import torch
    from torch.utils import _pytree as pytree

    def on_device(value: Any) -> Any:
        return value.to(device) if isinstance(value, torch.Tensor) else value

    module, args, kwargs = loaded.module, loaded.args, loaded.kwargs
    if device != "cpu":
        module = copy.deepcopy(module).to(device)
        args, kwargs = pytree.tree_map(on_device, (args, kwargs))

    def run_pytorch() -> None:
        with torch.inference_mode():
            module(*args, **kwargs)
        if device != "cpu":
            torch.cuda.synchronize()

    compared = compare_interleaved(
        {"pytorch": run_pytorch, "tvm": graph_module.run},
        baseline="pytorch",
        rounds=rounds,
        time_limit=_MEASURE_SECONDS,
    )
    return compared.ratio["tvm"].to_dict()


def _write_stages(stages: dict[str, Any], folder: Path) -> None:
    """Write the IR of each stage as text, numbered in their order, weights left out."""
    folder.mkdir(parents=True, exist_ok=True)
    for number, (name, module) in enumerate(stages.items(), start=1):
        if hasattr(module, "astext"):
            text = module.astext(show_meta_data=False)
        else:
            text = module.script(show_meta=False)
        (folder / f"{number}-{name}.txt").write_text(text)


def _verified(
    outputs: list[Any], reference: list[Any], call: "Call", steps: Steps
) -> dict[str, Any]:
    """What `verify_against_pytorch` says, and the status of that step."""
    from tvm_practice.tvm_export.verification import verify_against_pytorch

    judged, failure = _attempt(
        lambda: verify_against_pytorch(outputs, reference, call, steps.verify, atol=ATOL, rtol=RTOL)
    )
    wrong = {"verified": False, "max_error": None, "atol": ATOL, "rtol": RTOL}
    return {**(judged or wrong), **failure}


def _own_latency(
    run: Callable[[], None], steps: Steps, *, warmup: int = 3, repeats: int = 20
) -> dict[str, Any]:
    """Latency as the steps' own sampler takes it, of the artifact alone."""
    samples = steps.sample_latency(run, warmup=warmup, repeats=repeats)
    return Latency(tuple(float(each) for each in samples), warmup).to_dict()


def _attempt(work: Callable[..., Any], *given: Any, **named: Any) -> tuple[Any, dict[str, Any]]:
    """The result and {"status": "ok"}, or None and why: a step to do, or a failure."""
    try:
        return work(*given, **named), {"status": "ok", "reason": None}
    except NotImplementedError as error:
        step = traceback.extract_tb(error.__traceback__)[-1].name
        return None, {"status": "todo", "reason": step}
    except Exception as error:  # of the learner's step or of TVM: the other variants go on
        traceback.print_exc()
        text = (str(error).strip().splitlines() or ["no message"])[-1]
        return None, {"status": "failed", "reason": f"{type(error).__name__}: {text}"}
