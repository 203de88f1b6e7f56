"""The frameworks that the workloads are written in, and which are missing here."""

import importlib.util
from dataclasses import dataclass


@dataclass(frozen=True)
class Framework:
    """A way to write and run the workloads.

    Attributes:
        name: on command lines and in results.
        label: in tables.
        file: the module of this package that holds its functions.
        packages: that it needs, beyond what the project always installs.
        extra: of pyproject.toml, that has them.
        uses_tvm: whether its process holds the current engine.
        tuned: whether it searches for schedules before it runs.
    """

    name: str
    label: str
    file: str
    packages: tuple[str, ...] = ()
    extra: str = ""
    uses_tvm: bool = False
    tuned: bool = False

    @property
    def module(self) -> str:
        return f"{__package__}.{self.file}"


BASELINE = "torch"
FRAMEWORKS = {
    each.name: each
    for each in (
        Framework("numpy", "numpy", "in_numpy"),
        Framework("torch", "PyTorch eager", "in_torch"),
        Framework("inductor", "torch.compile", "in_inductor"),
        Framework("jax", "JAX (XLA)", "in_jax", ("jax",), "compare"),
        Framework("onnx", "ONNX Runtime", "in_onnx", ("onnx", "onnxscript", "onnxruntime"), "onnx"),
        Framework("triton", "Triton", "in_triton", ("triton",), "compare"),
        Framework("tvm", "TVM, default rules", "in_tvm", uses_tvm=True),
        Framework("tvm-tuned", "TVM, tuned", "in_tvm", uses_tvm=True, tuned=True),
        Framework("tvm-by-hand", "TVM, by hand", "in_tvm_by_hand", uses_tvm=True),
    )
}


def missing(framework: Framework) -> str | None:
    """One line saying what is not installed and how to install it; None if nothing is."""
    for package in framework.packages:
        if importlib.util.find_spec(package) is None:
            return (
                f"no Python package {package}. "
                f"To install: pip install 'tvm-practice[{framework.extra}]'"
            )
    return None
