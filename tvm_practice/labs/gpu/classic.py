"""Classic TVM's CUDA schedules without a GPU: their text, and their values on the CPU."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest import mock


def cuda_source(schedule: Any, tensors: list[Any], arch: str) -> str:
    """The CUDA text of a tvm.te.Schedule whose axes are bound; nothing compiles it."""
    import tvm

    callback = "tvm_callback_cuda_compile"
    before = tvm.get_global_func(callback, allow_missing=True)
    tvm.register_func(callback, lambda code, *_: code, override=True)
    try:
        built = tvm.build(schedule, tensors, target=f"cuda -arch={arch}")
    finally:
        if before is not None:
            tvm.register_func(callback, before, override=True)
    return str(built.imported_modules[0].get_source())


def run_on_cpu(schedule: Any, tensors: list[Any], inputs: list[Any]) -> Any:
    """Run a schedule with its threads one after the other; the output as numpy.

    The bound axes become loops. That is right where threads do not wait for each other, or only for
    copies whose own axes are bound: every thread then makes the whole copy.
    """
    import numpy as np
    import tvm
    from tvm import tir

    from tvm_practice import engines

    def as_loop(node: Any) -> Any:
        if str(node.attr_key) != "thread_extent":
            return None
        # Stages may share a thread axis: the loop of a copy inside is then of the same variable.
        own = tir.Var(node.node.var.name, node.node.var.dtype)
        body = tir.stmt_functor.substitute(node.body, {node.node.var: own})
        return tir.For(own, 0, node.value, tir.ForKind.SERIAL, body)

    lowered = tvm.lower(schedule, tensors, name="main")
    function = lowered["main"]
    body = tir.stmt_functor.ir_transform(function.body, None, as_loop, ["tir.AttrStmt"])
    module = tvm.IRModule({"main": function.with_body(body)})
    built = tvm.build(module, target=engines.host_target())
    shape = [int(extent) for extent in tensors[-1].shape]
    output = tvm.nd.array(np.full(shape, np.nan, str(tensors[-1].dtype)))
    built["main"](*(tvm.nd.array(each) for each in inputs), output)
    return output.numpy()


@contextmanager
def own_thread_axes() -> Iterator[None]:
    """Inside the block, `bind` gives each axis a thread axis of its own; a GPU runs the same.

    TVM's loops show a thread axis that stages share in the outermost stage alone. They do not show
    how the threads divide a copy, and `run_on_cpu` computes wrong values from them.
    """
    from tvm import te, tir

    bind = te.schedule.Stage.bind

    def bound(stage: Any, ivar: Any, thread_ivar: Any) -> None:
        if isinstance(thread_ivar, tir.IterVar):
            name, tag = str(thread_ivar.var.name), str(thread_ivar.thread_tag)
            thread_ivar = te.thread_axis(thread_ivar.dom, tag, name=name)
        bind(stage, ivar, thread_ivar)

    with mock.patch.object(te.schedule.Stage, "bind", bound):
        yield
