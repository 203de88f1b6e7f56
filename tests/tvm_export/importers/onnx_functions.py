"""ONNX nodes through `compile_onnx`'s pipeline, beside ONNX's own evaluator."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

_random = np.random.default_rng(0)


def _draw(*shape: int) -> np.ndarray:
    return _random.standard_normal(shape).astype("float32")


def _integers(dtype: str, *shape: int) -> np.ndarray:
    return _random.integers(0, 9, shape).astype(dtype)


def single(
    operator: str,
    inputs: Sequence[np.ndarray | None],
    bound: Mapping[int, np.ndarray] | None = None,
    *,
    outputs: int = 1,
    opset: int = 22,
    domain: str = "",
    **attributes: Any,
) -> tuple[Any, list[np.ndarray]]:
    """A model of one node, and its inputs; `bound` are weights by position."""
    bound = bound or {}
    every: list[np.ndarray | None] = list(inputs)
    for position, value in sorted(bound.items()):
        every[position:position] = [value]
    names = ["" if each is None else f"x{place}" for place, each in enumerate(every)]
    node = helper.make_node(
        operator, names, [f"y{place}" for place in range(outputs)], domain=domain, **attributes
    )
    given = {name: each for name, each in zip(names, every, strict=True) if each is not None}
    weights = {f"x{position}" for position in bound}
    return _model([node], given, weights, outputs, opset, domain)


def _model(
    nodes: Sequence[Any],
    given: Mapping[str, np.ndarray],
    weights: set[str],
    outputs: int,
    opset: int,
    domain: str = "",
) -> tuple[Any, list[np.ndarray]]:
    described = [
        helper.make_tensor_value_info(
            name, helper.np_dtype_to_tensor_dtype(value.dtype), value.shape
        )
        for name, value in given.items()
        if name not in weights
    ]
    results = [helper.make_tensor_value_info(f"y{place}", 0, None) for place in range(outputs)]
    constants = [numpy_helper.from_array(given[name], name) for name in sorted(weights)]
    graph = helper.make_graph(list(nodes), "tested", described, results, constants)
    domains = [helper.make_opsetid("", opset)]
    if domain:
        domains.append(helper.make_opsetid(domain, 1))
    model = helper.make_model(graph, opset_imports=domains, ir_version=10)
    return model, [value for name, value in given.items() if name not in weights]


def _loop(times: int) -> tuple[Any, list[np.ndarray]]:
    """x = x * 2 + step, and every x."""
    body = helper.make_graph(
        [
            helper.make_node("Cast", ["step"], ["number"], to=TensorProto.FLOAT),
            helper.make_node("Add", ["before", "before"], ["twice"]),
            helper.make_node("Add", ["twice", "number"], ["after"]),
            helper.make_node("Identity", ["goes_on"], ["still"]),
            helper.make_node("Identity", ["after"], ["row"]),
        ],
        "body",
        [
            helper.make_tensor_value_info("step", TensorProto.INT64, []),
            helper.make_tensor_value_info("goes_on", TensorProto.BOOL, []),
            helper.make_tensor_value_info("before", TensorProto.FLOAT, [3]),
        ],
        [
            helper.make_tensor_value_info("still", TensorProto.BOOL, []),
            helper.make_tensor_value_info("after", TensorProto.FLOAT, [3]),
            helper.make_tensor_value_info("row", TensorProto.FLOAT, [3]),
        ],
    )
    node = helper.make_node("Loop", ["times", "", "x"], ["y0", "y1"], body=body)
    given = {"times": np.array(times), "x": _draw(3)}
    return _model([node], given, {"times"}, 2, 22)


def _branch() -> tuple[Any, list[np.ndarray]]:
    """Whether x has two axes, which its shape says."""
    branches = {
        name: helper.make_graph(
            [helper.make_node(operator, ["x"], [name])],
            name,
            [],
            [helper.make_tensor_value_info(name, TensorProto.FLOAT, [2, 5])],
        )
        for name, operator in (("then_branch", "Relu"), ("else_branch", "Neg"))
    }
    nodes = [
        helper.make_node("Shape", ["x"], ["shape"]),
        helper.make_node("Size", ["shape"], ["rank"]),
        helper.make_node("Equal", ["rank", "two"], ["is_matrix"]),
        helper.make_node("If", ["is_matrix"], ["y0"], **branches),
    ]
    return _model(nodes, {"x": _draw(2, 5), "two": np.array(2)}, {"two"}, 1, 22)


def _detections(by_center: bool, least: float) -> tuple[Any, list[np.ndarray]]:
    """The boxes that a detector keeps, however many there are."""
    nodes = [
        helper.make_node(
            "NonMaxSuppression", ["boxes", "scores", "most", "overlap", "least"], ["rows"],
            center_point_box=int(by_center),
        ),
        helper.make_node("Gather", ["rows", "two"], ["places"], axis=1),
        helper.make_node("Squeeze", ["boxes", "zero"], ["corners"]),
        helper.make_node("Gather", ["corners", "places"], ["y0"]),
        helper.make_node("Identity", ["rows"], ["y1"]),
    ]  # fmt: skip
    given = {
        "boxes": np.abs(_draw(1, 50, 4)),
        "scores": _draw(1, 3, 50),
        "most": np.array([7]),
        "overlap": np.array([0.4], "float32"),
        "least": np.array([least], "float32"),
        "two": np.array(2),
        "zero": np.array([0]),
    }
    return _model(nodes, given, set(given) - {"boxes", "scores"}, 2, 22)


def _unlike_first_dimension() -> tuple[Any, list[np.ndarray]]:
    """A weight above the size that is folded, reshaped by what the input's shape says."""
    nodes = [
        helper.make_node("Shape", ["x"], ["shape"]),
        helper.make_node("Reshape", ["w", "shape"], ["matrix"]),
        helper.make_node("Mul", ["x", "matrix"], ["y0"]),
    ]
    return _model(nodes, {"x": _draw(80, 64), "w": _draw(5120)}, {"w"}, 1, 22)


def _resized(
    sizes: Sequence[int] | None, scales: Sequence[float] | None, **attributes: Any
) -> tuple[Any, list[np.ndarray]]:
    bound = {1: np.zeros(0, "float32"), 2: np.array(scales or [], "float32")}
    if sizes is not None:
        bound[3] = np.array(sizes)
    return single("Resize", [_draw(1, 2, 7, 5)], bound, **attributes)


def _without_imports(case: tuple[Any, list[np.ndarray]]) -> tuple[Any, list[np.ndarray]]:
    """A model that imports ONNX's own operators alone, whatever it uses."""
    model, inputs = case
    del model.opset_import[1:]
    return model, inputs


def cases() -> dict[str, tuple[Any, list[np.ndarray]]]:
    """Models of what was wrong or refused, by name."""
    return _small_cases() | _large_cases()


def _small_cases() -> dict[str, tuple[Any, list[np.ndarray]]]:
    infinite = np.array([[np.inf, -np.inf, 1, -2], [-np.inf] * 4], "float32")
    signs = np.array([-5.5, 5.5, -2.0, 7.25], "float32"), np.array([3, -3, 1.5, 2], "float32")
    image, filters = _draw(1, 2, 5, 4), _draw(2, 3, 3, 3)
    return {
        "LayerNormalization, three outputs": single(
            "LayerNormalization", [_draw(2, 3, 8), _draw(3, 8)], outputs=3, axis=1
        ),
        "IsInf, positive": single("IsInf", [infinite], detect_negative=0),
        "IsInf, negative": single("IsInf", [infinite], detect_positive=0),
        "Mod, fmod": single("Mod", list(signs), fmod=1),
        "Mod of integers": single("Mod", [each.astype("int32") for each in signs]),
        "Pow of integers": single("Pow", [np.array([-3, 2, 7]), np.array([3, 40, 0])]),
        "Pow of two types": single("Pow", [np.array([3, 2]), np.array([0.5, 3], "float32")]),
        "ReduceMax of minus infinity": single("ReduceMax", [infinite], {1: np.array([1])}),
        "ReduceMin of bool": single("ReduceMin", [infinite > 0], {1: np.array([0])}),
        "Dropout with a mask": single("Dropout", [_draw(2, 3)], outputs=2),
        "Sinh": single("Sinh", [np.array([-9, -1e-4, 0, 1e-3, 2], "float32")]),
        "ConvTranspose, output_shape": single(
            "ConvTranspose", [image, filters], strides=[2, 2], output_shape=[11, 9]
        ),
        "MaxPool with indices": single(
            "MaxPool", [image], outputs=2, kernel_shape=[3, 2], pads=[1, 0, 1, 1], strides=[2, 1]
        ),
        "ScatterElements, add": single(
            "ScatterElements",
            [image[0, 0], np.array([[0, -1], [2, 2]]), _draw(2, 2)],
            axis=1,
            reduction="add",
        ),
        "Resize, linear": _resized(None, [1, 1, 0.6, 2.5], mode="linear"),
        "Resize, cubic, antialias": _resized(
            None, [1, 1, 0.6, 0.8], mode="cubic", antialias=1, exclude_outside=1
        ),
        "Resize with a region that it does not crop to": single(
            "Resize",
            [_draw(1, 2, 5, 4)],
            {
                1: np.array([0.1, 0.2, 0.9, 0.8], "float32"),
                2: np.array([1, 1, 2, 2], "float32"),
            },
            mode="linear",
        ),
        "of a domain that is not imported": _without_imports(
            single("QuickGelu", [_draw(3, 4)], domain="com.microsoft", alpha=1.0)
        ),
        "LayerNormalization of float64": single(
            "LayerNormalization", [each.astype("float64") for each in (_draw(3, 4), _draw(4))]
        ),
        "Split in equal parts": single("Split", [_draw(6, 2)], outputs=3, opset=13),
        "Split in parts, the last one shorter": single(
            "Split", [_draw(7, 2)], outputs=3, num_outputs=3
        ),
        "Resize of two axes": _resized(
            [4, 9], None, axes=[3, 2], mode="nearest", nearest_mode="round_prefer_ceil"
        ),
        "Resize, corners": _resized(
            [1, 2, 3, 8], None, mode="linear", coordinate_transformation_mode="align_corners"
        ),
    }


def _large_cases() -> dict[str, tuple[Any, list[np.ndarray]]]:
    image = _draw(1, 2, 5, 4)
    sequence, lengths = _draw(4, 3, 2), np.array([4, 2, 0], "int32")
    lstm = _draw(2, 20, 2), _draw(2, 20, 5), _draw(2, 40)
    pixels, kernel = _integers("uint8", 1, 2, 5, 5), _integers("int8", 3, 2, 3, 3)
    scale, zero = np.array(0.1, "float32"), np.array(3, "uint8")
    square = _draw(3, 3)
    heads = _draw(1, 2, 6, 8), _draw(1, 2, 6, 8), _draw(1, 2, 6, 8)
    spectrum = single("DFT", [_draw(2, 6, 2)], {1: np.array(9), 2: np.array(1)}, inverse=1)
    return {
        "LSTM in two directions": single(
            "LSTM", [sequence, *lstm], outputs=3, hidden_size=5, direction="bidirectional"
        ),
        "GRU after the reset": single(
            "GRU",
            [sequence, _draw(1, 15, 2), _draw(1, 15, 5), _draw(1, 30)],
            outputs=2,
            hidden_size=5,
            linear_before_reset=1,
        ),
        "LSTM over 300 steps": single(
            "LSTM",
            [_draw(300, 1, 2), *(each[:1] for each in lstm)],
            outputs=3,
            hidden_size=5,
            direction="reverse",
        ),
        "RNN": single(
            "RNN", [sequence, _draw(1, 5, 2), _draw(1, 5, 5)], outputs=2, hidden_size=5
        ),
        "QLinearConv per channel": single(
            "QLinearConv",
            [pixels, scale, zero, kernel, np.array([0.1, 0.2, 0.05], "float32")],
            {5: np.zeros(3, "int8"), 6: np.array(2.5, "float32"), 7: np.array(100, "uint8")},
            pads=[1, 1, 1, 1],
        ),
        "ConvInteger": single(
            "ConvInteger", [pixels, _integers("uint8", 3, 2, 3, 3), zero], pads=[1, 1, 1, 1]
        ),
        "Col2Im": single(
            "Col2Im", [_draw(1, 4, 16)], {1: np.array([5, 6]), 2: np.array([2, 2])}, strides=[1, 2],
            dilations=[2, 1], pads=[0, 1, 1, 1],
        ),
        "DFT, longer, inverse": spectrum,
        "CumProd from the end": single(
            "CumProd", [_draw(3, 4)], {1: np.array(1)}, opset=26, reverse=1, exclusive=1
        ),
        "NonZero": single("NonZero", [_draw(3, 4).clip(0)]),
        "NonZero of nothing": single("NonZero", [np.zeros((3, 4), "float32")]),
        "Compress": single("Compress", [_draw(3, 4), np.array([True, False])], axis=-1),
        "Compress without an axis": single("Compress", [_draw(3, 4), np.arange(3) > 0]),
        "Unique of a matrix": single("Unique", [_draw(4, 5).round()], outputs=4),
        "Unique as they are met": single(
            "Unique", [np.array([3, 1, 3, 2, 1, 3], "int64")], outputs=4, sorted=0
        ),
        "Unique columns": single("Unique", [_draw(2, 9).round() > 0], outputs=4, axis=-1),
        "Unique slices": single("Unique", [_draw(2, 6, 2).round() * 0.0], outputs=4, axis=1),
        "detections": _detections(False, 0.5),
        "detections by their centers": _detections(True, -1.0),
        "no detections": _detections(False, 99.0),
        "OneHot of values at run time": single(
            "OneHot", [np.array([1, -1, 7]), np.array([2.0, 5.0], "float32")], {1: np.array(4)}
        ),
        "Pad with a value at run time": single(
            "Pad", [image, np.array(2.5, "float32")], {1: np.array([0, 0, 1, 2, 0, 0, 3, 0])}
        ),
        "a loop": _loop(4),
        "a branch": _branch(),
        "a weight of a computed shape": _unlike_first_dimension(),
        "Attention, causal": single("Attention", list(heads), opset=23, is_causal=1),
        "DeformConv": single(
            "DeformConv",
            [_draw(2, 4, 6, 5), _draw(6, 2, 3, 2), 3 * _draw(2, 24, 5, 6), _draw(6),
             _draw(2, 12, 5, 6)],
            group=2, offset_group=2, pads=[1, 1, 0, 2], dilations=[1, 2],
        ),
        "Det": single("Det", [_draw(5, 3, 3)]),
        "an old Add": single("Add", [square, square[0]], opset=6, broadcast=1, axis=0),
        "an old Pow": single("Pow", [square**2, square[0]], opset=6, broadcast=1, axis=0),
        "an old PRelu": single("PRelu", [square[None], square[0]], opset=6),
        "PRelu": single("PRelu", [image, image[0, 0, :, :1]]),
        "an old Slice": single("Slice", [image], opset=9, starts=[1, -4], ends=[9, 3], axes=[1, 2]),
        "BitCast of bool": single("BitCast", [image > 0], opset=26, to=TensorProto.UINT8),
        "Celu": single("Celu", [_draw(3, 4)], alpha=2.0),
        "an old Resize": single(
            "Resize", [image], {1: np.array([1, 1, 2, 3], "float32")}, opset=10
        ),
    } | {"RNN with lengths": _with_lengths(sequence, lengths)}  # fmt: skip


def _with_lengths(sequence: np.ndarray, lengths: np.ndarray) -> tuple[Any, list[np.ndarray]]:
    parameters = _draw(1, 5, 2), _draw(1, 5, 5)
    return single("RNN", [sequence, *parameters, None, lengths], outputs=2, hidden_size=5, opset=22)


def _rnn_with_lengths(
    x: np.ndarray, weight: np.ndarray, recurrence: np.ndarray, lengths: np.ndarray
) -> list[np.ndarray]:
    outputs = np.zeros((len(x), 1, x.shape[1], 5), "float32")
    state = np.zeros((1, x.shape[1], 5), "float32")
    for sample, length in enumerate(lengths):
        for step in range(length):
            total = weight[0] @ x[step, sample] + recurrence[0] @ state[0, sample]
            state[0, sample] = outputs[step, 0, sample] = np.tanh(total)
    return [outputs, state]


def _looped(x: np.ndarray) -> list[np.ndarray]:
    rows = []
    for step in range(4):
        x = 2 * x + np.float32(step)
        rows.append(x)
    return [x, np.stack(rows)]


# What ONNX's evaluator ignores, or fails on.
_BY_HAND: dict[str, Callable[..., list[np.ndarray]]] = {
    "RNN with lengths": _rnn_with_lengths,
    "a loop": _looped,
    "an old Add": lambda x, y: [x + y[:, None]],
    "an old Pow": lambda x, y: [x ** y[:, None]],
    "an old PRelu": lambda x, slope: [np.where(x < 0, slope[:, None] * x, x)],
    "an old Slice": lambda x: [x[:, 1:9, -4:3]],
    "an old Resize": lambda image: [image.repeat(2, 2).repeat(3, 3)],
    "of a domain that is not imported": lambda x: [x / (1 + np.exp(-x))],
    "Resize with a region that it does not crop to": lambda image: [_twice_as_wide(image)],
}


def _twice_as_wide(image: np.ndarray) -> np.ndarray:
    """By linear interpolation, half pixels."""
    for axis in (2, 3):
        first = np.take(image, [0, *range(image.shape[axis] - 1)], axis)
        last = np.take(image, [*range(1, image.shape[axis]), -1], axis)
        parts = 0.25 * first + 0.75 * image, 0.75 * image + 0.25 * last
        shape = [extent * (2 if place == axis else 1) for place, extent in enumerate(image.shape)]
        image = np.stack(parts, axis + 1).reshape(shape)
    return image


def errors() -> dict[str, str]:
    """How each case differs from ONNX's evaluator; empty if it does not."""
    from onnx.reference import ReferenceEvaluator

    from conformance.onnx_backend import difference
    from tvm_practice.tvm_export.errors import ExportError

    class Tolerance:
        rtol, atol = 1e-4, 1e-6

    found = {}
    for name, (model, inputs) in cases().items():
        names = [each.name for each in model.graph.input]
        if name in _BY_HAND:
            expected = _BY_HAND[name](*inputs)
        else:
            with np.errstate(all="ignore"):
                given = dict(zip(names, inputs, strict=True))
                expected = ReferenceEvaluator(model).run(None, given)
        try:
            found[name] = difference(_run(model, inputs), expected, Tolerance)
        except ExportError as error:
            found[name] = str(error)
    return found


def _run(model: Any, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    from tvm_practice.measure import Stopwatch
    from tvm_practice.tvm_export.importers.onnx import input_tensors
    from tvm_practice.tvm_export.onnx_library import compile_model
    from tvm_practice.tvm_export.running import run_relax
    from tvm_practice.tvm_export.targets import resolve_target

    model = onnx.ModelProto.FromString(model.SerializeToString())
    tensors = input_tensors(model, {})
    _, executable = compile_model(model, tensors, resolve_target("llvm"), Stopwatch())
    return run_relax(executable, inputs)


def refusals() -> dict[str, str]:
    """What is said of models that TVM would compile to something else, by name."""
    from tvm_practice.tvm_export.errors import CannotImport

    image, boxes = _draw(1, 2, 8, 8), np.array([[0, 0, 4, 4]], "float32")
    half = np.array([1.5, 2], "float32")
    models = {
        "another's operator": single("Relu", [half], domain="a.company"),
        "an attribute": single("SpaceToDepth", [image], opset=28, blocksize=2, mode="CRD"),
        "a mode": single("RoiAlign", [image, boxes, np.array([0])], mode="max"),
        "a type": single("Cast", [half], to=TensorProto.FLOAT8E4M3FN),
        "a value": single("TopK", [half, np.array([1])], outputs=2),
        "sizes": single("Split", [image], {1: np.array([3, 4])}, outputs=2, axis=2),
        "an activation": single(
            "RNN", [_draw(2, 1, 3), _draw(1, 4, 3), _draw(1, 4, 4)], hidden_size=4,
            activations=["Elu"],
        ),
    }  # fmt: skip
    said = {}
    for name, (model, inputs) in models.items():
        try:
            _run(model, inputs)
        except CannotImport as error:
            said[name] = str(error)
    return said
