"""An export, stage by stage: load, import, tune, schedule, build, verify, measure, write.

Each stage is a function from an `Export` to an `Export` that holds more. Default schedules come
after the tuner because they are for functions without a record. `export_model` and
`export_variants` are calls with JSON in and out (engines.call).
"""

import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from tvm_practice import engines
from tvm_practice.engines import CLASSIC, CURRENT, Engine
from tvm_practice.engines.imports import import_for_good
from tvm_practice.measure import COMPARISON_SECONDS, ROUNDS, Comparison, Latency
from tvm_practice.measure import compare_interleaved as compare
from tvm_practice.tvm_export.accuracy import accuracy
from tvm_practice.tvm_export.config import Tuner
from tvm_practice.tvm_export.errors import OTHER_TVM, BadInput, DoesNotCompile
from tvm_practice.tvm_export.export import Export
from tvm_practice.tvm_export.request import ExportRequest
from tvm_practice.tvm_export.run_time_checks.extents import OpenExtents, open_extents
from tvm_practice.wording import number_of

Request = ExportRequest | Mapping[str, Any]
Seen = Callable[[Export], None]
_OWN = "own "  # before the name of what a tuner's own result is timed beside


def export_model(request: Request) -> dict[str, Any]:
    """Export a person's model, once: tuned by its tuner, or untuned.

    Args:
        request: an `ExportRequest`, or its JSON.

    Returns:
        {"status": "ok", "engine", "target", "tuner", "tuning", "latency", "ratio" (to PyTorch
        eager, interleaved), "tuners_own" (see `artifacts.schema`), "verification", "not_run",
        "artifacts", "single_file", "c_source" (see `checking.export_c`), "seconds", "rules",
        "declined", "functions", "notes", "size", "unchanged_since"}, latencies in ms, the library's
        size in bytes, the date of an export that was reused or None. For a target that this machine
        cannot run "not_run" says why, and what needs a run is None. Where the outputs are wrong
        nothing is written, unless with `force`: "artifacts" and "size" are None.

    Raises:
        BadInput: the model, its inputs, the target, the log or the folder; one line.
    """
    from tvm_practice.tvm_export.artifacts import SINGLE, linker, origin, pack
    from tvm_practice.tvm_export.c_source import checking

    request = ExportRequest.model_validate(request)
    folder = request.artifacts
    _require_place(request)  # before hours of tuning
    import_for_good("torch")
    loaded = load(request)
    made_from = origin.of(loaded)
    # A calibration file of the same name may hold other inputs.
    may_reuse = request.reuse and request.calibration is None and request.c_source is None
    if may_reuse and (date := origin.unchanged_since(folder, request, made_from)):
        if request.single_file and not (folder / SINGLE).exists():
            pack(folder, folder / SINGLE)
        return _told(folder, unchanged_since=date)
    engines.activate(loaded.engine)
    imported = import_model(loaded)
    if request.single_file:
        linker(str(imported.target))  # before hours of tuning
    if request.c_source is not None:
        checking.require_possible(imported, request.c_source)
    built = build(schedule(tune(imported)))
    if request.dump_ir:
        _write_stages(built.stages, folder / "ir")
    measured = measure(verify(built))
    if measured.is_wrong and not request.force:
        return _told_of_wrong(measured)
    write(measured, request, origin=origin.after(measured, made_from))
    told = _told(folder)
    if request.c_source is not None:
        told["c_source"] = checking.export_c(measured, request.c_source, judged)
    return told


def _require_place(request: ExportRequest) -> None:
    """Raise BadInput if the artifacts or the IR cannot be written, or would replace others."""
    from tvm_practice.tvm_export.artifacts import require_free, require_writable

    require_writable(request.artifacts / "ir" if request.dump_ir else request.artifacts)
    tuner = request.chosen_tuner if request.tunes else None
    made = {"tuner": tuner, "configuration": request.configuration}
    require_free(
        request.artifacts,
        request.model,
        made=None if request.replace else made,
        force=request.force,
    )


def export_variants(
    request: Request, tuners: Sequence[str] | None = None, *, seen: Seen = lambda export: None
) -> dict[str, Any]:
    """Export a model on the active engine: untuned, then by each of its tuners.

    Every variant is built, verified against PyTorch, measured interleaved with PyTorch and
    written as artifacts. What fails or is to do is said in its variant; the rest goes on.

    Args:
        request: an `ExportRequest`, or its JSON. Its `artifacts` has a folder for each variant
            and the records; what it has of an earlier run is replaced. Its `tuning_trials` are
            each tuner's. The product's own steps count those of earlier runs; a person's are run
            each time, on records of their own.
        tuners: which of the engine's tuners; None for all.
        seen: is given the export when the model is imported, and when a variant is verified.

    Returns:
        {"model", "engine", "pytorch": latency, "notes", "variants": [{"tuner", "status": "ok" |
        "todo" | "failed", "reason", "latency", "ratio", "max_error", "verified", "verification",
        "seconds", "tuning", "tuners_own", "artifacts", "operators": where the time goes, see
        `profiling.operators_of` (current engine)}]}, latencies in ms.
    """
    from tvm_practice.tvm_export.artifacts import require_writable

    request = ExportRequest.model_validate(request)
    engine = engines.active()
    assert engine is not None
    require_writable(request.artifacts)
    loaded = load(request, engine)
    variants: list[dict[str, Any]] = []
    report: dict[str, Any] = {
        "model": request.model,
        "engine": loaded.engine,
        "pytorch": None,
        "notes": list(loaded.notes),
        "variants": variants,
    }
    imported, failure = _attempt(import_model, replace(loaded, tuner=None))
    if imported is None:
        variants.append({"tuner": None, **failure})
        return report
    report["notes"] = list(imported.notes)
    seen(imported)
    made: list[tuple[Export, dict[str, Any]]] = []
    default = None
    for tuner in (None, *(each for each in _tuners(imported) if tuners is None or each in tuners)):
        trials = f", {number_of(request.tuning_trials, 'trial')}" if tuner else ""
        print(f"\n{loaded.engine}: {_name(tuner)}{trials}", flush=True)
        export, failure = _attempt(_variant, replace(imported, tuner=tuner, default=default))
        variants.append({"tuner": tuner, **failure})
        if export is None:
            continue
        default = default or (export.built if tuner is None else None)
        variants[-1] |= _judged(export)
        made.append((export, variants[-1]))
        seen(export)
    if made:
        report["pytorch"] = _measure_in_turns(made, request)
    return report


# The stages.


def load(request: ExportRequest, engine: Engine | None = None) -> Export:
    """The model as its factory makes it, run once on its inputs. Needs no TVM.

    Args:
        request: what is asked for.
        engine: which TVM; None: the request's, or the active one where that names none.

    Raises BadInput for the model or its inputs.
    """
    import torch

    from tvm_practice.tvm_export import loading
    from tvm_practice.tvm_export.calling import as_call
    from tvm_practice.tvm_export.draws import read_data

    torch.set_num_threads(engines.thread_count())
    loaded = None
    if request.resolved is not None:
        loaded = loading.take_over(request.model, request.resolved, shapes=request.input_shapes)
    loaded = loaded or loading.load(
        request.model,
        example=request.example,
        seed=request.model_seed,
        shapes=request.input_shapes,
    )
    call = as_call(
        loaded.module,
        loaded.args,
        loaded.kwargs,
        copies=loaded.changes_inputs,
        shapes=request.input_shapes,
    )
    # Mistakes in these are said before hours of tuning.
    if request.verify_data is not None:
        read_data(request.verify_data, call)
    if request.calibration is not None:
        read_data(request.calibration, call)
    if (log := request.tuning_log) and log.exists() and not (log.is_file() or log.is_dir()):
        raise BadInput(f"{log} is a device; tuning records are kept in a file or a folder")
    if ":" in (space := request.search.space or ""):
        loading.find_factory(space)
    if engine is None and request.engine is None and request.chosen_tuner is None:
        engine = engines.active()
    export = Export.of(call, request, engine=engine, loaded=loaded)
    if export.tuner and not export.log:
        return replace(export, log=request.artifacts / f"records-{export.tuner}")
    return export


def import_model(export: Export) -> Export:
    """The model as IR of its engine, which is active: optimized, and not scheduled.

    Raises:
        BadInput: a model that the importer cannot take; one line that names the operator or the
            line of the model at fault, and what to try. Or the target.
    """
    from tvm_practice.tvm_export.targets import require_buildable, resolve_target, with_host

    target = export.settings.target
    tuned = export.tuner is not None
    remote = export.settings.measures_elsewhere
    require_buildable(target, export.engine, tuned=tuned, remote=remote)
    resolved = with_host(resolve_target(target))
    if export.engine == CLASSIC:
        if export.settings.precision != "float32":
            wanted = f"--precision {export.settings.precision}"
            raise BadInput(f"{wanted} needs the current engine; the classic one has float32 only")
        if export.settings.quantize:
            raise BadInput(f"--quantize {export.settings.quantize} needs the current engine")
        from tvm_practice.tvm_export.importers.trace import import_traced

        return import_traced(replace(export, target=resolved))
    if export.settings.quantize and str(resolved.kind.name) != "llvm":
        wanted = f"--quantize {export.settings.quantize}"
        raise BadInput(f"{wanted} is for processors; the target is {resolved.kind.name}")
    from tvm_practice.tvm_export.importers.exported_program import import_exported

    return import_exported(replace(export, target=resolved))


def tune(export: Export) -> Export:
    """The best of `trials` measured schedules applied; nothing where there is no tuner.

    Those that `log` holds already count among the trials and are not measured again. Raises
    BadInput if the log is another target's or tuner's, or in use.
    """
    return export if export.tuner is None else _engine(export).tune(export)


def schedule(export: Export) -> Export:
    """The default schedules applied; those of Relay are chosen when it builds.

    Raises DoesNotCompile where TVM fails: one line.
    """
    if export.engine == CLASSIC:
        return export
    from tvm_practice.tvm_export import relax
    from tvm_practice.tvm_export.loading import in_a_line

    with in_a_line("TVM cannot schedule the model", DoesNotCompile, OTHER_TVM):
        return relax.schedule(export)


def build(export: Export) -> Export:
    """The model compiled, its inputs those of the example.

    Raises DoesNotCompile where TVM fails: one line.
    """
    from tvm_practice.tvm_export.calling import as_array
    from tvm_practice.tvm_export.loading import in_a_line

    way_out = OTHER_TVM if export.engine == CURRENT else ""
    with in_a_line("TVM cannot compile the model", DoesNotCompile, way_out):
        export = _engine(export).build(export)
    for built in filter(None, (export.result, export.own)):
        for position, value in enumerate(export.call.tensors):
            built.set_input(position, as_array(value))
    return export


def verify(export: Export) -> Export:
    """The outputs held against PyTorch's; nothing of a target that this machine cannot run."""
    if export.not_run:
        return export
    settings = export.settings
    found, failure = _attempt(judged, export)
    wrong = {"verified": False, "max_error": None, "atol": settings.atol, "rtol": settings.rtol}
    verification = {**(found or wrong), "reason": failure["reason"]}
    export = replace(export, status=failure["status"], verification=verification)
    return export if found is None or _agree(export) else replace(export, own=None)


def _agree(export: Export) -> bool:
    """Whether the tuner's own result, if there is another, computes what the verified one does."""
    if export.own is None:
        return True
    atol, rtol = export.settings.atol, export.settings.rtol
    for each in (export.own, export.result):
        each.run()
    outputs = list(zip(export.own.outputs(), export.result.outputs(), strict=True))
    least = export.settings.least_cosine
    if least is not None:
        own, chosen = zip(*outputs, strict=True)
        agree = accuracy(own, chosen)["cosine"] >= least
    else:
        agree = all(np.allclose(*each, rtol, atol, equal_nan=True) for each in outputs)
    if agree:
        return True
    print("the tuner's own schedules compute something else: they are not timed", flush=True)
    return False


def judged(export: Export) -> dict[str, Any]:
    """What `verification.verify_model` finds of a build that runs here, and raises."""
    from tvm_practice.tvm_export.calibration import split
    from tvm_practice.tvm_export.draws import Trial, read_data
    from tvm_practice.tvm_export.verification import verify_model

    settings = export.settings
    held_out: list[Trial] = []
    if settings.calibration is not None:
        _, held_out = split(read_data(settings.calibration, export.call))
    return verify_model(
        export.result,
        export.call,
        export.steps.verify,
        atol=settings.atol,
        rtol=settings.rtol,
        bounds=_index_bounds(export),
        extents=_open_extents(export),
        data=settings.verify_data,
        held_out=held_out,
        min_cosine=settings.least_cosine,
    )


def _index_bounds(export: Export) -> dict[str, int]:
    """What the values of inputs that index something must be below, by name."""
    if export.engine == CLASSIC:  # whose gathers take the nearest row
        return {}
    from tvm_practice.tvm_export.run_time_checks.indices import index_bounds

    return index_bounds(export.stages["imported"], export.call.names)


def _open_extents(export: Export) -> OpenExtents:
    """The extents of inputs' open axes that the compiled model takes, where not all."""
    if export.engine == CLASSIC:  # which has no open ones
        return OpenExtents()
    return open_extents(export.stages["imported"], export.call.names)


def measure(export: Export) -> Export:
    """The artifact's latency, and its ratio to PyTorch's on the same device."""
    import torch

    request = export.settings
    if export.not_run or not isinstance(request, ExportRequest):
        return export
    latency = _own_latency(export, warmup=request.warmup, repeats=request.repeats)
    export = replace(export, latency=latency)
    if _device(export) != "cpu" and not torch.cuda.is_available():
        note = "not compared with PyTorch, whose build here is not for CUDA"
        return replace(export, notes=(*export.notes, note))
    # No more rounds than calls were asked for; fewer than 6 can show nothing at 95%.
    rounds = min(ROUNDS, max(6, request.repeats))
    compared = _compare_with_pytorch(export, _runs(export, "tvm"), rounds=rounds)
    own = _own_figures(compared, "tvm")
    return replace(export, ratio=compared.ratio["tvm"].to_dict(), own_figures=own)


def write(export: Export, request: ExportRequest, *, origin: dict[str, Any] | None = None) -> Path:
    """The artifacts on disk; returns their folder. See `artifacts.export_artifacts`."""
    from tvm_practice.tvm_export.artifacts import export_artifacts

    report = {
        "model": request.model,
        "verification": export.verification,
        "latency": export.latency,
        "ratio_to_pytorch": export.ratio,
        "tuners_own": export.own_figures,
        "configuration": request.configuration,
        "not_run": export.not_run,
        "notes": list(export.notes),
        "origin": origin,
    }
    return export_artifacts(
        export.result,
        request.artifacts,
        report=report,
        replace=request.replace,
        force=request.force,
        single_file=request.single_file,
    )


# What they are made of.


def _engine(export: Export) -> Any:
    """The engine's module, with TUNERS, `tune` and `build`."""
    if export.engine == CLASSIC:
        from tvm_practice.tvm_export import relay

        return relay
    from tvm_practice.tvm_export import relax

    return relax


def _tuners(export: Export) -> tuple[Tuner, ...]:
    found: tuple[Tuner, ...] = _engine(export).TUNERS
    return found


def _name(tuner: str | None) -> str:
    return tuner or "untuned"


def _variant(export: Export) -> Export:
    """An imported model built and verified, by its tuner on records of its own or untuned."""
    from tvm_practice.tvm_export.tuners.records import count

    tuner, settings = export.tuner, export.settings
    if export.not_run:
        raise BadInput(export.not_run)
    if tuner is not None:
        assert isinstance(settings, ExportRequest)
        log, trials = settings.artifacts / f"{tuner}-records", settings.tuning_trials
        if not export.steps.is_own(f"tune_{tuner}"):
            log = log.with_name(f"{log.name}-{export.steps.package}")
            trials += count(log, tuner)
        export = replace(export, log=log, trials=trials)
    return verify(build(schedule(tune(export))))


def _judged(export: Export) -> dict[str, Any]:
    """What a report says of a variant that was built."""
    verification = export.verification
    assert verification is not None
    return {
        "status": export.status,
        "reason": verification["reason"],
        "verified": verification["verified"],
        "max_error": verification["max_error"],
        "verification": verification,
        "seconds": export.result.seconds,
        "tuning": export.result.tuning,
    }


def _measure_in_turns(
    made: Sequence[tuple[Export, dict[str, Any]]], request: ExportRequest
) -> dict[str, Any] | None:
    """Time all variants in turns with PyTorch, write their artifacts; returns PyTorch's latency.

    A variant that fails says so, and is left out of the turns; None if none is left.
    """
    compared, timed = _compared(made)
    if compared is None:
        return None
    for export, variant in timed:
        name = _name(export.tuner)
        variant["ratio"] = compared.ratio[name].to_dict()
        variant["latency"] = compared.latency[name].to_dict()
        variant["tuners_own"] = _own_figures(compared, name)
        _, failure = _attempt(_finish_variant, export, variant, request)
        if failure["reason"] is not None:
            variant.update(failure)
    return compared.latency["pytorch"].to_dict()


def _compared(
    made: Sequence[tuple[Export, dict[str, Any]]],
) -> tuple[Comparison | None, list[tuple[Export, dict[str, Any]]]]:
    """The comparison with PyTorch, and the variants in it: those that run."""
    left = list(made)
    while left:
        failing: list[str] = []
        runs = {
            key: _noting(failing, _name(export.tuner), run)
            for export, _ in left
            for key, run in _runs(export, _name(export.tuner)).items()
        }
        compared, failure = _attempt(_compare_with_pytorch, left[0][0], runs, rounds=ROUNDS)
        if compared is not None:
            return compared, left
        for export, variant in left:
            if not failing or _name(export.tuner) in failing:
                variant.update(failure)
        left = [each for each in left if failing and _name(each[0].tuner) not in failing]
    return None, []


def _noting(failing: list[str], name: str, run: Callable[[], Any]) -> Callable[[], Any]:
    """`run`, which adds its name to `failing` if it raises."""

    def noted() -> Any:
        try:
            return run()
        except Exception:
            failing.append(name)
            raise

    return noted


def _finish_variant(export: Export, variant: dict[str, Any], request: ExportRequest) -> None:
    """Add where the time goes to a variant's record, and write it if it is right."""
    from tvm_practice.tvm_export.profiling import operators_of

    if export.engine == CURRENT:
        variant["operators"] = operators_of(export.result)
    if export.is_wrong:
        return
    alone = request.model_copy(
        update={
            "artifacts": request.artifacts / _name(export.tuner),
            "tuner": export.tuner,
            "tuning_trials": export.trials if export.tuner else 0,
            "warmup": 3,
            "repeats": 20,
            "force": True,
        }
    )
    latency, _ = _attempt(_own_latency, export, warmup=alone.warmup, repeats=alone.repeats)
    export = replace(
        export,
        latency=latency or variant["latency"],
        ratio=variant["ratio"],
        own_figures=variant["tuners_own"],
    )
    variant["artifacts"] = str(write(export, alone))


def _runs(export: Export, name: str) -> dict[str, Callable[[], Any]]:
    """What is timed: an export's result by that name, and the tuner's own if it is another."""
    own = {} if export.own is None else {_OWN + name: export.own.run}
    return {name: export.result.run, **own}


def _own_figures(compared: Comparison, name: str) -> dict[str, Any] | None:
    """What `artifacts.schema.OwnRecord` has, of a comparison of `_runs`."""
    own = _OWN + name
    if own not in compared.ratio:
        return None
    return {
        "latency": compared.latency[own].to_dict(),
        "ratio_to_pytorch": compared.ratio[own].to_dict(),
    }


def _device(export: Export) -> str:
    """PyTorch's name of the kind of device that the target is."""
    kind = str(export.target.kind.name)
    return "cpu" if kind == "llvm" else kind


def _own_latency(export: Export, *, warmup: int, repeats: int) -> dict[str, Any]:
    """Latency as the steps' sampler takes it, of the artifact alone."""
    samples = export.steps.sample_latency(export.result.run, warmup=warmup, repeats=repeats)
    return Latency(tuple(float(each) for each in samples), warmup).to_dict()


def _compare_with_pytorch(
    export: Export, runs: Mapping[str, Callable[[], Any]], *, rounds: int
) -> Comparison:
    """`runs` timed in turns with "pytorch", the model on the device of the export's target."""
    import copy

    import torch

    from tvm_practice.tvm_export.nested import mapped

    loaded = export.loaded
    assert loaded is not None
    device = _device(export)
    if device != "cpu":
        args, kwargs = mapped(lambda tensor: tensor.to(device), (loaded.args, loaded.kwargs))
        module = copy.deepcopy(loaded.module).to(device)
        loaded = replace(loaded, module=module, args=args, kwargs=kwargs)

    def run_pytorch() -> None:
        loaded.call()
        if device != "cpu":
            torch.cuda.synchronize()

    return compare(
        {"pytorch": run_pytorch, **runs},
        baseline="pytorch",
        rounds=rounds,
        time_limit=COMPARISON_SECONDS,
    )


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


def _write_stages(stages: Mapping[str, Any], folder: Path) -> None:
    """Write the IR of each stage as text, numbered in their order, weights left out."""
    folder.mkdir(parents=True, exist_ok=True)
    for number, (name, module) in enumerate(stages.items(), start=1):
        if hasattr(module, "astext"):
            text = module.astext(show_meta_data=False)
        else:
            text = module.script(show_meta=False)
        (folder / f"{number}-{name}.txt").write_text(text)


def _told(folder: Path, *, unchanged_since: str | None = None) -> dict[str, Any]:
    """What `export_model` returns of the export in `folder`."""
    from tvm_practice.tvm_export.artifacts import LIBRARY, SINGLE, read_metadata

    metadata = read_metadata(folder)
    same = ("engine", "target", "tuner", "tuning", "latency", "verification", "not_run")
    return {
        "status": "ok",
        **{name: metadata[name] for name in (*same, "seconds", "rules", "notes")},
        "declined": metadata.get("declined", {}),
        "functions": metadata.get("functions", {}),
        "tuners_own": metadata.get("tuners_own"),
        "ratio": metadata["ratio_to_pytorch"],
        "artifacts": str(folder),
        "size": (folder / LIBRARY).stat().st_size,
        "single_file": str(folder / SINGLE) if (folder / SINGLE).exists() else None,
        "c_source": None,
        "unchanged_since": unchanged_since,
    }


def _told_of_wrong(export: Export) -> dict[str, Any]:
    """What `export_model` returns of an export that is not written: its outputs are wrong."""
    made = export.result
    return {
        "status": "ok",
        "engine": made.engine,
        "target": made.target,
        "tuner": made.tuner,
        "tuning": made.tuning,
        "latency": export.latency,
        "verification": export.verification,
        "not_run": export.not_run,
        "seconds": made.seconds,
        "rules": made.rules,
        "notes": list(export.notes),
        "declined": made.declined,
        "functions": made.made_by,
        "tuners_own": export.own_figures,
        "ratio": export.ratio,
        "artifacts": None,
        "size": None,
        "single_file": None,
        "c_source": None,
        "unchanged_since": None,
    }
