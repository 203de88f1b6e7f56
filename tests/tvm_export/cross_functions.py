"""Called in a process of the current engine by test_cross."""

from solutions.relay_import import verify
from tvm_practice.tvm_export import cross
from tvm_practice.tvm_export.calling import as_array, as_call
from tvm_practice.tvm_export.loading import load


def emulated(model: str, folder: str) -> float:
    """The largest error of an artifact for aarch64 under qemu; raises if it is wrong."""
    loaded = load(model, example=None, seed=0)
    call = as_call(loaded.module, loaded.args, loaded.kwargs)
    outputs = cross.run_artifact(folder, [as_array(each) for each in call.tensors])
    return float(verify(outputs, [as_array(e) for e in loaded.outputs], atol=1e-3, rtol=1e-3))
