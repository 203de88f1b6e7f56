"""TorchScript, a model or a module in it that was traced or scripted, as torch.export takes it."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from tvm_practice.tvm_export.importers.refusals import Refused


@contextmanager
def scripts_as_modules(
    model: Any, example: Sequence[Any], *, fixed: bool = False
) -> Iterator[None]:
    """Inside the block, ordinary modules stand for those of TorchScript in a model.

    PyTorch's converter makes them, of the inputs that the example gives them. An export is verified
    against the model as it was.

    Args:
        model: a torch.nn.Module that holds them, not itself one of TorchScript.
        example: the tensors that it is called with.
        fixed: whether the modules are for inputs of the example's shapes alone, as a trace is.

    Raises:
        Refused: the converter does not know an operator or a branch of one, or one is called with
            inputs of several shapes.
    """
    found = dict(_outermost(model))
    if not found:
        yield
        return
    holders = _holders(model, found)
    try:
        calls = _calls(model, example, holders)
        for name, script in found.items():
            if name in calls:
                holders[name][_last(name)] = _converted(name, script, *calls[name], fixed=fixed)
        yield
    finally:
        for name, script in found.items():
            holders[name][_last(name)] = script


def _outermost(model: Any, prefix: str = "") -> Iterator[tuple[str, Any]]:
    """The modules of TorchScript in a model, by name, without those in one of them."""
    import torch

    for name, each in model._modules.items():  # with those that have several names
        if isinstance(each, torch.jit.ScriptModule):
            yield f"{prefix}{name}", each
        elif each is not None:
            yield from _outermost(each, f"{prefix}{name}.")


def _holders(model: Any, names: Iterable[str]) -> dict[str, dict[str, Any]]:
    """By module, the children that it is one of."""
    modules = dict(model.named_modules(remove_duplicate=False))
    return {name: modules[name.rpartition(".")[0]]._modules for name in names}


def _last(name: str) -> str:
    return name.rpartition(".")[2]


def _calls(
    model: Any, example: Sequence[Any], holders: dict[str, dict[str, Any]]
) -> dict[str, tuple[tuple[Any, ...], dict[str, Any]]]:
    """By module, the inputs of its call; one that is not called has none.

    Modules that note them are left in the places of those of TorchScript, which take no hooks.
    """
    import torch
    from torch.utils import _pytree as pytree

    calls: dict[str, tuple[tuple[Any, ...], dict[str, Any]]] = {}

    class Noting(torch.nn.Module):
        def __init__(self, name: str, script: Any) -> None:
            super().__init__()
            self.name = name
            self.script = script

        def forward(self, *args: Any, **kwargs: Any) -> Any:
            if self.name in calls and _shapes(calls[self.name]) != _shapes((args, kwargs)):
                raise Refused(f"TorchScript, {self.name}, is called with inputs of several shapes")
            # A tensor that is given twice is two inputs, which the converter would take for one.
            calls[self.name] = pytree.tree_map_only(torch.Tensor, torch.clone, (args, kwargs))
            return self.script(*args, **kwargs)

    for name, holder in holders.items():
        holder[_last(name)] = Noting(name, holder[_last(name)])
    with torch.no_grad():
        model(*example)
    return calls


def _shapes(given: Any) -> list[tuple[int, ...]]:
    import torch
    from torch.utils import _pytree as pytree

    leaves = pytree.tree_leaves(given)
    return [tuple(each.shape) for each in leaves if isinstance(each, torch.Tensor)]


def _converted(
    name: str, script: Any, args: tuple[Any, ...], kwargs: dict[str, Any], *, fixed: bool
) -> Any:
    import torch
    from torch._export.converter import TS2EPConverter

    try:
        program = TS2EPConverter(script, args, kwargs).convert()
    except Exception as error:  # of whatever the converter meets
        reason = " ".join(str(error).split()) or type(error).__name__
        raise Refused(f"PyTorch cannot convert TorchScript, {name}: {reason[:120]}") from error
    made = program.module(check_guards=False)
    if not fixed:
        return made
    return torch.export.export(made, args, kwargs).module(check_guards=False)
