"""ONNX's backend tests: each model that ONNX ships for testing a backend, on its stored data.

A case is compiled as `python -m tvm_practice.compile_onnx` does it, except that no library is
linked: the module runs in the process that compiled it. Inputs that choose shapes (the axes of a
reduction, the shape of a Reshape …) are bound to the stored values first, as `--value` does,
because a compiled model has them fixed.
"""

import functools
import time
import warnings
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from conformance.cases import Case
from conformance.judging import last_line
from tvm_practice.engines import CURRENT, Engine

TITLE = "ONNX's backend tests"
JUDGE = f"{__name__}:judge"
DTYPES: tuple[str, ...] = ("stored",)  # each case has its own
ENGINES: tuple[Engine, ...] = (CURRENT,)
# Real models are whole networks of which only names ship with the package.
_KINDS = ("node", "simple", "pytorch-converted", "pytorch-operator")
_RANDOM = frozenset(
    ("Bernoulli", "Multinomial", "RandomNormal", "RandomNormalLike", "RandomUniform",
     "RandomUniformLike")
)  # fmt: skip
_SEQUENCES = ("Sequence", "Optional", "SplitToSequence", "ConcatFromSequence")
_TRAINING = frozenset(("Adagrad", "Adam", "Gradient", "Momentum"))
_UNITS = 4
# Two units in the last place, which ONNX's own runner allows bfloat16.
_RTOL = {"bfloat16": 2**-6, "float16": 2**-9}


@functools.cache
def database() -> dict[str, Any]:
    """ONNX's test cases by kind and name."""
    from onnx.backend.test.loader import load_model_tests

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the infinities that some cases compute
        return {
            f"{kind} {each.name}": each for kind in _KINDS for each in load_model_tests(kind=kind)
        }


def cases(dtype: str = "stored", samples: int | None = None) -> Iterator[Case]:
    """All cases, or so many per group: the operator under test, or the kind of a whole model."""
    seen: Counter[str] = Counter()
    for name, test in database().items():
        kind, _, _ = name.partition(" ")
        nodes: Sequence[Any] = () if test.model is None else test.model.graph.node
        group = str(nodes[0].op_type) if len(nodes) == 1 else kind
        seen[group] += 1
        if samples is None or seen[group] <= samples:
            yield Case(group, name, {"name": name})


def judge(name: str) -> dict[str, Any]:
    """Compile one model and compare its outputs with the stored ones."""
    started = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        verdict, reason = _judged(database()[name])
    return {"verdict": verdict, "reason": reason, "seconds": time.perf_counter() - started}


def _judged(test: Any) -> tuple[str, str]:
    from tvm_practice.engines import PlainError

    model, data = _loaded(test)
    if reason := _left_out(model, data):
        return "left out", reason
    for inputs, expected in data:
        names = [each.name for each in model.graph.input][: len(inputs)]
        try:
            got = _outputs(model, dict(zip(names, inputs, strict=True)))
        except PlainError as refused:
            return "refused", " ".join(str(refused).split())
        except Exception as error:
            return "raw", f"{type(error).__name__}: {last_line(error)}"
        if problem := difference(got, expected, test):
            return "wrong", problem
    return "right", ""


def _outputs(model: Any, given: dict[str, Any]) -> list[Any]:
    from tvm_practice.measure import Stopwatch
    from tvm_practice.tvm_export.importers.onnx import choosing_inputs, input_tensors, with_values
    from tvm_practice.tvm_export.onnx_library import compile_model
    from tvm_practice.tvm_export.running import run_relax
    from tvm_practice.tvm_export.targets import resolve_target

    chosen = choosing_inputs(model)
    rest = {name: each for name, each in given.items() if name not in chosen}
    bound = with_values(model, {name: each for name, each in given.items() if name in chosen})
    inputs = input_tensors(bound, {name: list(each.shape) for name, each in rest.items()})
    _, executable = compile_model(bound, inputs, resolve_target("llvm"), Stopwatch())
    return run_relax(executable, list(rest.values()))


def _loaded(test: Any) -> tuple[Any, list[tuple[list[Any], list[Any]]]]:
    """A test's model, and its stored inputs and outputs."""
    import onnx

    if test.model is not None:
        return test.model, [
            ([_array(each) for each in given], [_array(each) for each in expected])
            for given, expected in test.data_sets
        ]
    folder = Path(test.model_dir)
    model = onnx.load(folder / "model.onnx")
    return model, [
        (_stored(each, "input", model.graph.input), _stored(each, "output", model.graph.output))
        for each in sorted(folder.glob("test_data_set_*"))
    ]


def _stored(folder: Path, kind: str, described: Sequence[Any]) -> list[Any]:
    import onnx

    arrays = []
    for position in range(len(list(folder.glob(f"{kind}_*.pb")))):
        content = (folder / f"{kind}_{position}.pb").read_bytes()
        is_tensor = described[position].type.HasField("tensor_type")
        arrays.append(_array(onnx.TensorProto.FromString(content)) if is_tensor else None)
    return arrays


def _array(value: Any) -> Any:
    import onnx

    return onnx.numpy_helper.to_array(value) if isinstance(value, onnx.TensorProto) else value


def _left_out(model: Any, data: Sequence[tuple[list[Any], list[Any]]]) -> str:
    """Why a case is none for a compiler of tensors; empty if it is one."""
    import numpy as np
    import onnx

    for node in model.graph.node:
        if node.op_type.startswith(_SEQUENCES):
            return "sequences and optionals"
        if node.op_type in _RANDOM:
            return "it draws random numbers"
        if "training" in node.domain or node.op_type in _TRAINING or _trains(node):
            return "it trains"
    for each in (*model.graph.input, *model.graph.output):
        kind = each.type.WhichOneof("value")
        if kind != "tensor_type":
            return f"{kind.removesuffix('_type')}s"
        if each.type.tensor_type.elem_type == onnx.TensorProto.STRING:
            return "strings"
    for arrays in data:
        for array in (*arrays[0], *arrays[1]):
            if not isinstance(array, np.ndarray | np.generic):
                return "no tensors"
    return ""


def _trains(node: Any) -> bool:
    """Whether a node is a dropout or a batch normalization in training mode."""
    if node.op_type == "BatchNormalization":
        return any(each.name == "training_mode" and each.i for each in node.attribute)
    return node.op_type == "Dropout" and len(node.input) == 3 and bool(node.input[2])


def difference(got: list[Any], expected: list[Any], test: Any) -> str:
    """What differs between the outputs, in a line: number, type, shape, values."""
    import numpy as np

    if len(got) != len(expected):
        return f"{len(got)} outputs, expected {len(expected)}"
    for position, (ours, theirs) in enumerate(zip(got, expected, strict=True)):
        if ours.dtype != theirs.dtype:
            return f"output {position} is {ours.dtype}, expected {theirs.dtype}"
        if ours.shape != theirs.shape:
            return f"output {position} has shape {ours.shape}, expected {theirs.shape}"
        rtol = max(test.rtol, _RTOL.get(str(ours.dtype), 0.0))
        if ours.dtype.kind == "V":  # ml_dtypes', which numpy does not compare
            ours, theirs = ours.astype("float32"), theirs.astype("float32")
        atol = max(test.atol, _round_off(theirs))
        try:
            np.testing.assert_allclose(ours, theirs, rtol=rtol, atol=atol)
        except AssertionError as error:
            return f"output {position}: {' '.join(str(error).split())[:200]}"
    return ""


def _round_off(expected: Any) -> float:
    """The round-off of the largest finite value: terms that cancel leave as much."""
    import numpy as np

    if expected.dtype.kind != "f":
        return 0.0
    sizes = np.abs(expected[np.isfinite(expected)])
    return _UNITS * float(np.finfo(expected.dtype).eps) * float(sizes.max(initial=0.0))
