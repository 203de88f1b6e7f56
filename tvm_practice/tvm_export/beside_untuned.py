"""A model with a tuner's records beside the untuned one; the artifact has the faster of them.

A function's record is judged alone. In the model, functions share the caches, and Ansor's and
AutoTVM's other layouts cost transposes between them.
"""

from dataclasses import replace

from tvm_practice.measure import Ratio, Stopwatch, compare_interleaved
from tvm_practice.tvm_export.calling import as_array
from tvm_practice.tvm_export.export import Export
from tvm_practice.tvm_export.graph_module import GraphModule
from tvm_practice.tvm_export.tuners import remote
from tvm_practice.tvm_export.tuners.history import MadeBy

_ROUNDS, _SECONDS = 15, 10.0


def with_faster(export: Export, own: GraphModule) -> Export:
    """The export with its untuned build, if the one with records is not faster as a whole.

    The two are timed in turns, here or on the search's server. Nothing changes where there is no
    untuned build, or the other has no records.

    Args:
        own: the tuner's own result, compiled; the export keeps it where its build is another.
    """
    chosen = _faster(export)
    is_own = own.compiled is chosen.result.compiled
    return chosen if is_own else replace(chosen, own=own)


def _faster(export: Export) -> Export:
    built, default, tuning = export.result, export.default, export.tuning
    if default is None or not tuning.get("records_stayed"):
        return export
    watch = Stopwatch(export.seconds)
    with watch("choose"):
        is_faster, ratio = _compared(export)
    tuning = tuning | {"ratio_to_untuned": ratio.to_dict()}
    if is_faster:
        if ratio.measured:
            took = f"with them the model took {ratio.value:.2f} of the untuned one's time"
            tuning |= {"note": f"{tuning['note']}; {took}"}
        built = replace(built, tuning=tuning, seconds=watch.seconds)
        return replace(export, built=built, tuning=tuning, seconds=watch.seconds)
    note = f"{tuning['note']}; with them the whole model was not faster: all defaults stayed"
    tuning |= {"note": note, "records_stayed": False}
    fallen: dict[str, MadeBy] = {
        name: "fallback"
        for name, maker in built.made_by.items()
        if maker != "rule" and name in default.made_by
    }
    built = replace(
        default,
        tuner=export.tuner,
        tuning=tuning,
        made_by=default.made_by | fallen,
        seconds=watch.seconds,
    )
    return replace(export, built=built, tuning=tuning, seconds=watch.seconds)


def _compared(export: Export) -> tuple[bool, Ratio]:
    """Whether the built model is faster than the untuned one, and the ratio of their times."""
    built, default, search = export.result, export.default, export.settings.search
    assert default is not None
    inputs = [as_array(each) for each in export.call.tensors]
    if search.tracker is not None:
        ratio = remote.model_ratio(built, default, inputs, search=search)
        return ratio.value < 1, ratio
    for each in (built, default):
        each(*inputs)
    compared = compare_interleaved(
        {"built": built.run, "untuned": default.run},
        baseline="untuned",
        rounds=_ROUNDS,
        time_limit=_SECONDS,
    )
    ratio = compared.ratio["built"]
    if not ratio.measured:  # a choice is due all the same
        return compared.latency["built"].median < compared.latency["untuned"].median, ratio
    return ratio.value < 1, ratio
