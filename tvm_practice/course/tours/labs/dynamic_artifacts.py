"""Artifacts of symbolic shapes as lab 4's tour uses them: called with arrays, planned, printed."""

from collections.abc import Callable, Sequence
from typing import Any

from tvm_practice.course.tours.printing import show_code
from tvm_practice.measure.comparison import Ratio


def array_function(executable: Any) -> Callable[..., Any]:
    """An artifact of one output as a function of arrays."""
    from tvm_practice.tvm_export.running import RelaxRunner

    runner = RelaxRunner(executable)

    def run(*inputs: Any) -> Any:
        runner.set_inputs(inputs)
        runner.run()
        return runner.outputs()[0]

    return run


def unplanned(module: Any) -> Any:
    """As `plan_memory`, without planning: every tensor has a storage of its own."""
    import tvm
    from tvm import relax

    passes = [
        relax.transform.RewriteDataflowReshape(),
        relax.transform.ToNonDataflow(),
        relax.transform.RemovePurityChecking(),
        relax.transform.CallTIRRewrite(),
        relax.transform.LowerAllocTensor(),
        relax.transform.KillAfterLastUse(),
    ]
    return tvm.transform.Sequential(passes)(module)


def show_script(title: str, function: Any) -> None:
    """Print a Relax function as TVMScript."""
    lines = function.script().splitlines()
    kept = [line for line in lines if line and not line.startswith(("#", "fr"))]
    show_code(title, kept, "python")


def ratio_cell(ratio: Ratio | None) -> str:
    """A ratio over its interval; empty for None."""
    return "" if ratio is None else "\n".join(filter(None, ratio.cells()))


def by_x(shape: Sequence[int]) -> str:
    """`1x64`."""
    return "x".join(map(str, shape))
