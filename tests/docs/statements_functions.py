"""Functions that test statements of the course's pages; called in a child process."""

import re
from typing import Any


def arithmetic(target: dict[str, Any], columns: int) -> dict[str, int]:
    """What LLVM makes of phase 2's vectorized 8x16 tiles of a matmul of that many columns.

    Returns:
        The instructions that multiply and add "single" floats, those that do so with "vectors",
        and the "masked" instructions of any kind.
    """
    import tvm
    from tvm import te

    from solutions.manual_schedule import tile, vectorize
    from solutions.te_basics import matmul

    function = te.create_prim_func(matmul(64, columns, 32)).with_attr("global_symbol", "main")
    schedule = tvm.s_tir.Schedule(function)
    block = schedule.get_sblock("C")
    tile(schedule, block, 8, 16)
    vectorize(schedule, block)
    code = tvm.compile(schedule.mod, target=tvm.target.Target(target)).mod.inspect_source("asm")
    return {
        "single": len(re.findall(r"\s(?:vfmadd\d+ss|fmadd)\s", code)),
        "vectors": len(re.findall(r"\s(?:vfmadd\d+ps|fmla)\s", code)),
        "masked": len(re.findall(r"\{%k\d\}", code)),
    }


def _sum_of_rows() -> tuple[Any, Any]:
    """A schedule of Y[i] = sum over k of X[i, k], and its loop over k."""
    import tvm
    from tvm import te

    X = te.placeholder((4, 256), name="X")
    k = te.reduce_axis((0, 256), name="k")
    Y = te.compute((4,), lambda i: te.sum(X[i, k], axis=k), name="Y")
    function = te.create_prim_func([X, Y]).with_attr("global_symbol", "main")
    schedule = tvm.s_tir.Schedule(function)
    return schedule, schedule.get_loops(schedule.get_sblock("Y"))[1]


def accepted_on_a_sum() -> list[str]:
    """The primitives, of those that give the order of a loop up, that TVM accepts on a sum's."""
    from tvm.s_tir import ScheduleError

    accepted = []
    for name, *axis in (
        ("parallel",), ("vectorize",), ("bind", "blockIdx.x"), ("bind", "threadIdx.x")
    ):  # fmt: skip
        schedule, k = _sum_of_rows()
        try:
            getattr(schedule, name)(k, *axis)
        except ScheduleError:
            continue
        accepted.append(" ".join([name, *axis]))
    return accepted


def differences_of_a_reordered_sum() -> list[float]:
    """Split k, swap the two loops, and compare the sums with those of the order as declared."""
    import numpy as np
    import tvm

    from tvm_practice import engines

    x = np.random.default_rng(0).standard_normal((4, 256), dtype="float32")
    sums = []
    for is_swapped in (False, True):
        schedule, k = _sum_of_rows()
        if is_swapped:
            outer, inner = schedule.split(k, [None, 16])
            schedule.reorder(inner, outer)
        y = tvm.runtime.tensor(np.zeros(4, "float32"))
        module = tvm.compile(schedule.mod, target=engines.host_target()).mod
        module["main"](tvm.runtime.tensor(x), y)
        sums.append(y.numpy())
    return [float(each) for each in np.abs(sums[0] - sums[1])]


def exponentials(numbers: list[float]) -> list[float]:
    """exp of these numbers, computed by a compiled te.exp in float32."""
    import numpy as np
    import tvm
    from tvm import te

    X = te.placeholder((len(numbers),), name="X")
    Y = te.compute(X.shape, lambda i: te.exp(X[i]), name="Y")
    function = te.create_prim_func([X, Y]).with_attr("global_symbol", "main")
    y = tvm.runtime.tensor(np.zeros(len(numbers), "float32"))
    module = tvm.compile(function, target="llvm").mod
    module["main"](tvm.runtime.tensor(np.array(numbers, "float32")), y)
    return [float(each) for each in y.numpy()]


def altered_layout(mcpu: str) -> str:
    """Classic TVM: the layout that AlterOpLayout gives a convolution's input."""
    import tvm
    from tvm import relay

    image, weight = relay.var("x", shape=(1, 32, 16, 16)), relay.var("w", shape=(32, 32, 3, 3))
    result = relay.nn.conv2d(image, weight, padding=(1, 1), channels=32, kernel_size=(3, 3))
    mod = tvm.IRModule.from_expr(relay.Function([image, weight], result))
    passes = [relay.transform.InferType(), relay.transform.AlterOpLayout()]
    with tvm.target.Target(f"llvm -mcpu={mcpu}"), tvm.transform.PassContext(opt_level=3):
        text = tvm.transform.Sequential(passes)(mod).astext(show_meta_data=False)
    (layout,) = re.findall(r'data_layout="(\w+)"', text)
    return str(layout)


def autotvm_features(size: int) -> dict[str, list[float]]:
    """Classic TVM: what the model of phase 5's tuner is given of one configuration.

    Returns:
        {"features": of the configuration, "values": of its knobs}.
    """
    from tvm import autotvm

    from solutions.auto_tune import matmul_template

    name = f"statements.{size}"
    autotvm.template(name)(lambda n: matmul_template(n, n, n))
    task = autotvm.task.create(name, args=(size,), target="llvm")
    tuner = autotvm.tuner.XGBTuner(task, feature_type="knob", loss_type="reg", num_threads=1)
    configuration = task.config_space.get(5)
    (features,) = tuner.cost_model._get_feature([5])
    knobs = configuration.to_json_dict()["entity"]
    return {"features": features.tolist(), "values": [float(value) for *_, value in knobs]}
