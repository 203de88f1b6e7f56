"""Matrix products on the active engine: compiled, run, and compared with numpy's."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np


def compiled(schedule: Any, tensors: Sequence[Any]) -> Any:
    """A schedule compiled for this machine's processor: a module whose function is "main".

    Args:
        schedule: of the active engine.
        tensors: that it schedules, which classic TVM asks for.
    """
    import tvm

    from tvm_practice import engines

    if engines.active() == engines.CLASSIC:
        return tvm.build(schedule, list(tensors), target=engines.host_target(), name="main")
    return tvm.compile(schedule.mod, target=engines.host_target()).mod


def on_device(*arrays: "np.ndarray") -> list[Any]:
    """Copies as tensors of the active engine on the CPU."""
    import tvm

    from tvm_practice import engines

    classic = engines.active() == engines.CLASSIC
    to_tensor = tvm.nd.array if classic else tvm.runtime.tensor
    return [to_tensor(each, tvm.cpu()) for each in arrays]


class Product:
    """A product of two square matrices.

    Attributes:
        arguments: [A, B, C] as tensors, in the order that a compiled "main" takes them.
    """

    def __init__(self, a: "np.ndarray", b: "np.ndarray"):
        import numpy as np

        self.arguments = on_device(a, b, np.zeros_like(a))
        self._exact = a @ b

    def difference(self) -> float:
        """The largest difference of C from numpy's product; NaN if C holds one."""
        import numpy as np

        return float(np.abs(self.arguments[-1].numpy() - self._exact).max())

    def is_right(self) -> bool:
        """Whether C differs from numpy's product by rounding only."""
        return self.difference() <= 1e-5 * len(self._exact)  # false for NaN


def random_product(size: int) -> Product:
    """A product of that size, of values between 0 and 1."""
    import numpy as np

    return Product(*np.random.default_rng().random((2, size, size), dtype="float32"))
