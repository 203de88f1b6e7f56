"""What a converter of TVM's looks at: all that a node says must be, or the model is refused."""

import functools
import importlib
from typing import Any

from tvm_practice.tvm_export.errors import CannotImport

# Attributes that a converter may leave alone, with the one value that they may have, None for any:
# shapes, which are compared with ONNX's, imply them, or the value is what TVM does.
_IMPLIED: dict[str, dict[str, Any]] = {
    "BatchNormalization": {"is_test": 1, "spatial": 1, "consumed_inputs": None},
    "Conv": {"kernel_shape": None},
    "ConvTranspose": {"kernel_shape": None},
    "Split": {"num_outputs": None},
    # Until opset 6, without an axis: as numpy does.
    **{name: {"broadcast": None} for name in ("Add", "Sub", "Mul", "Div", "Gemm", "Pow")},
}
# Inputs that one may leave alone: of training, of another mode.
_IMPLIED_INPUTS: dict[str, set[int]] = {
    "Dropout": {1, 2},
    "Resize": {1},
}


class HeededAttributes(dict[str, Any]):
    """Attributes that remember which of them were asked for."""

    def __init__(self, given: dict[str, Any]) -> None:
        super().__init__(given)
        self._asked: set[str] = {"tvm_custom"}

    def get(self, name: str, default: Any = None) -> Any:
        self._asked.add(name)
        return super().get(name, default)

    def __getitem__(self, name: str) -> Any:
        self._asked.add(name)
        return super().__getitem__(name)

    def __contains__(self, name: object) -> bool:
        self._asked.add(str(name))
        return super().__contains__(name)

    def require_all(self, operator: str, opset: int) -> None:
        """Raise CannotImport if one was not asked for that is no default."""
        defaults = _defaults(operator, opset)
        implied = _IMPLIED.get(operator, {})
        for name in self.keys() - self._asked:
            value = super().__getitem__(name)
            if name in implied and implied[name] in (None, value):
                continue
            if name in defaults and defaults[name] == value:
                continue
            raise CannotImport(
                f"TVM's importer ignores the attribute {name} of {operator}, which is "
                f"{value.decode() if isinstance(value, bytes) else value!r}"
            )


@functools.cache
def _defaults(operator: str, opset: int) -> dict[str, Any]:
    defs: Any = importlib.import_module("onnx.defs")
    helper: Any = importlib.import_module("onnx.helper")
    if not defs.has(operator, opset, ""):
        return {}
    return {
        name: helper.get_attribute_value(each.default_value)
        for name, each in defs.get_schema(operator, opset, "").attributes.items()
        if each.default_value.type
    }


class HeededInputs(list[Any]):
    """A node's inputs, None beyond their end, that remember which of them were asked for."""

    def __init__(self, given: list[Any]) -> None:
        super().__init__(given)
        self._asked: set[int] = set()

    def __getitem__(self, item: Any) -> Any:
        count = super().__len__()
        places = range(count)[item] if isinstance(item, slice) else [item]
        self._asked.update(each % count if each < 0 else each for each in places)
        if isinstance(item, slice):
            return list(super().__getitem__(item))
        return super().__getitem__(item) if item < count else None

    def __iter__(self) -> Any:
        self._asked.update(range(super().__len__()))
        return super().__iter__()

    def __add__(self, other: list[Any]) -> Any:
        return list(self) + other

    def require_all(self, operator: str) -> None:
        """Raise CannotImport if an input was not asked for."""
        for place, each in enumerate(super().__iter__()):
            if each is None or place in self._asked | _IMPLIED_INPUTS.get(operator, set()):
                continue
            raise CannotImport(f"TVM's importer ignores input {place} of {operator}")
