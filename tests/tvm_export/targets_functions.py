"""Functions that the tests of targets call in a child process, on either engine."""

from types import SimpleNamespace
from typing import Any
from unittest import mock

from tvm_practice import engines
from tvm_practice.engines.host import TILES
from tvm_practice.tvm_export import targets
from tvm_practice.tvm_export.errors import BadInput


def resolved(texts: list[str]) -> list[str]:
    """What each text becomes, or its error."""
    found = []
    for text in texts:
        try:
            found.append(str(targets.resolve_target(text)))
        except BadInput as error:
            found.append(f"BadInput: {error}")
    return found


def attributes(text: str) -> dict[str, Any]:
    """A target's attributes, with its keys and its kind."""
    target = targets.resolve_target(text)
    found = {str(name): _plain(value) for name, value in target.attrs.items()}
    return {**found, "kind": str(target.kind.name), "keys": _plain(target.keys)}


def _plain(value: Any) -> Any:
    """Text, a list of texts, or a number."""
    if isinstance(value, str):
        return str(value)
    return [str(each) for each in value] if hasattr(value, "__len__") else int(value)


def hosts_own() -> tuple[str, str]:
    """`host_target()` and what "llvm" becomes."""
    return str(engines.host_target()), str(targets.resolve_target("llvm"))


def not_runnable(texts: list[str], flags: list[str] | None = None) -> list[str | None]:
    """Why this machine, or one with these processor flags, cannot run code for each target."""
    made = [targets.resolve_target(text) for text in texts]
    if flags is None:
        return [targets.why_not_runnable(each) for each in made]
    with mock.patch.object(targets, "flags", lambda: frozenset(flags)):
        return [targets.why_not_runnable(each) for each in made]


def without_tiles(has_them: bool) -> str | None:
    """Why a machine that Linux denies tile registers does not run code for Sapphire Rapids.

    Args:
        has_them: whether its processor has tile registers.
    """
    from tvm.target import codegen

    target = targets.resolve_target("llvm -mcpu=sapphirerapids")
    names = targets._LINUX_NAMES | (TILES if has_them else {})
    features = map(str, codegen.llvm_get_cpu_features(target))
    flags = frozenset(names[each] for each in features if each in names)
    with (
        mock.patch.object(targets, "flags", lambda: flags),
        mock.patch.object(targets, "tiles_allowed", lambda: False),
    ):
        return targets.why_not_runnable(target)


def on_a_cuda_device(texts: list[str], compute_version: str) -> list[str | None]:
    """The same on a machine whose CUDA device has this compute version."""
    import tvm

    device = SimpleNamespace(exist=True, compute_version=compute_version)
    made = [targets.resolve_target(text) for text in texts]
    with mock.patch.object(tvm, "device", lambda kind, index: device):
        return [targets.why_not_runnable(each) for each in made]


def runs_what_it_says(text: str) -> list[float]:
    """The result of a function that is compiled for `text` and called: 0 … 19, doubled."""
    import numpy as np
    import tvm
    from tvm import te

    x = te.placeholder((20,), "float32", name="x")
    y = te.compute((20,), lambda i: x[i] * 2, name="y")
    target = targets.resolve_target(text)
    given = np.arange(20, dtype="float32")
    if engines.active() == engines.CLASSIC:
        function = tvm.build(te.create_schedule(y.op), [x, y], target)
        arrays = [tvm.nd.array(given), tvm.nd.array(np.zeros_like(given))]
    else:
        function = tvm.compile(te.create_prim_func([x, y]), target=target)["main"]
        arrays = [tvm.runtime.tensor(given), tvm.runtime.tensor(np.zeros_like(given))]
    function(*arrays)
    result: list[float] = arrays[1].numpy().tolist()
    return result
