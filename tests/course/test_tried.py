"""Each argument of each exercise is varied by its check: none is right at one value alone."""

import json
from collections import defaultdict

import pytest

from tests.course.tried import Plain
from tvm_practice import engines
from tvm_practice.course.catalog import Exercise, exercises

# A number takes three values at least, an extent, a length or anything else two. What does not:
FEWER = {
    # It has two values only, or always as many elements.
    "manual_schedule.pack_operand": ("axis",),
    "manual_schedule.tile_classic": ("len(tensors)",),
    "labs.gpu_schedule.register_tile_gpu": ("columns",),
    "labs.gpu_schedule.tensorize_copies": ("len(intrinsics)",),
    "labs.gpu_schedule.tensorize_product": ("len(intrinsics)",),
    "labs.gpu_schedule.tensor_cores": ("len(intrinsics)",),
    "labs.gpu_schedule.bind_threads_classic": ("len(tensors)",),
    "labs.gpu_schedule.register_tile_classic": ("len(tensors)",),
    "labs.deploy_cpp.image_to_label": ("len(mean)", "len(std)"),
    "labs.cross_compile.compile_object": ("len(target)",),
    "labs.compilers_compared.pays_after": ("len(ratio)",),
    "labs.low_precision.pack_weights": ("group",),
    "labs.low_precision.schedule_vnni": ("intrinsic",),
    "labs.low_precision.dequantize": ("scale", "zero_point"),  # and arrays of them
    "relay_import.import_relax": ("len(converters)",),
    "relay_import.import_relay": ("len(converters)",),
    "labs.custom_operator.rms_norm_gate": ("X.shape[4]", "Z.shape[4]"),  # as many dimensions: once
    # A further value would be another compilation, import, server or search.
    "labs.deploy_cpp.export_model": ("len(example)",),
    "labs.dynamic_shapes.import_dynamic": ("len(example)", "len(axes)"),
    "labs.tuning_farm.request_worker": ("host", "port", "key", "session_seconds", "wait_seconds"),
    "labs.tuning_farm.rpc_runner": ("host", "port"),
    "labs.tuning_farm.measure_remotely": (
        "library", "len(inputs)", "len(shape)", "number", "repeats"
    ),
    "labs.compilers_compared.time_to_first_result": ("len(command)",),
    "auto_tune.apply_autotvm": ("log",),
    "auto_tune.apply_ansor": ("log",),
}  # fmt: skip


def untried(calls: list[dict[str, Plain]]) -> dict[str, list[Plain]]:
    """The arguments that take fewer values than they should, with these."""
    values: dict[str, list[Plain]] = defaultdict(list)
    for call in calls:
        for name, value in call.items():
            values[name].append(value)
    found = {}
    for name, seen in values.items():
        distinct = {json.dumps(each): each for each in seen}
        number = all(isinstance(each, int | float) and not isinstance(each, bool) for each in seen)
        size = name.startswith("len(") or ".shape[" in name
        given_otherwise = seen.count(None) == len(seen) < len(calls)  # what it is then is not told
        if not given_otherwise and len(distinct) < (3 if number and not size else 2):
            found[name] = list(distinct.values())
    return found


@pytest.mark.pages
@pytest.mark.drawn
@pytest.mark.parametrize("exercise", [pytest.param(each, id=each.id) for each in exercises()])
def test_each_argument_is_varied(exercise: Exercise) -> None:
    if reason := engines.unavailable_reason(exercise.engine):
        pytest.skip(reason)
    calls = engines.call(
        exercise.engine,
        "tests.course.tried:arguments_tried",
        {"exercise": exercise.id, "seed": 1},
    )
    few = untried(calls)
    allowed = FEWER.get(exercise.id, ())
    assert {name: seen for name, seen in few.items() if name not in allowed} == {}


def test_an_argument_that_is_never_varied_is_told() -> None:
    calls: list[dict[str, Plain]] = [{"a": 1, "b": 2, "c": True}, {"a": 3, "b": 2, "c": False}]
    assert untried([*calls, {"a": 5, "b": 2, "c": True}]) == {"b": [2]}
    assert untried(calls) == {"a": [1, 3], "b": [2]}
