"""The kinds of cases, by name. A kind is a module with what `Kind` names."""

from collections.abc import Iterable
from typing import Protocol

from conformance import (
    library_models,
    memory,
    modules,
    onnx_backend,
    operators,
    rare,
    timm_models,
    torch_compile,
    torch_mlir_suite,
    transformers_models,
)
from conformance.cases import Case
from tvm_practice.engines import Engine


class Kind(Protocol):
    """What a module gives to be a kind.

    Attributes:
        __name__: of the module, whose docstring says what has to be installed.
        TITLE: heads its results on the page.
        JUDGE: "module:function" that takes a case's arguments, in a process that has the engine,
            and returns {"verdict", "reason", "seconds"}.
        DTYPES: the types of inputs that it has cases of; the first is the default.
        ENGINES: that its cases can be tried on; the first is the default.
    """

    __name__: str
    TITLE: str
    JUDGE: str
    DTYPES: tuple[str, ...]
    ENGINES: tuple[Engine, ...]

    def cases(self, dtype: str, samples: int | None) -> Iterable[Case]:
        """The cases of a type; `samples` per group at most, None: all."""


KINDS: dict[str, Kind] = {
    "operators": operators,
    "rare": rare,
    "memory": memory,
    "modules": modules,
    "onnx": onnx_backend,
    "transformers": transformers_models,
    "timm": timm_models,
    "libraries": library_models,
    "compile": torch_compile,
    "torch-mlir": torch_mlir_suite,
}
