"""A change of every function that TVM has lowered, before it makes code of it."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any
from unittest import mock


@contextmanager
def changing_lowered(change: Callable[[Any], Any], name: str) -> Iterator[None]:
    """Within the block, TVM compiles what `change` makes of a lowered function.

    Args:
        change: from a tirx.PrimFunc without blocks to another. Where several are asked for, that of
            the innermost block comes last.
        name: of the pass, for TVM's messages.
    """
    from tvm.tirx.compilation_pipeline import PIPELINE_MAP

    changed = partial(_pipeline, PIPELINE_MAP["s_tir"], change, name)
    with mock.patch.dict(PIPELINE_MAP, {"s_tir": changed}):
        yield


def _pipeline(own: Any, change: Callable[[Any], Any], name: str) -> tuple[Any, ...]:
    """TVM's pipeline for scheduled functions, and the change after it."""
    import tvm
    from tvm import tirx

    lower, *finalize = own()

    def lowered(module: Any, _: Any) -> Any:
        made = lower(module)
        functions = {
            name: change(each) if isinstance(each, tirx.PrimFunc) else each
            for name, each in made.functions_items()
        }
        return tvm.IRModule(functions, attrs=made.attrs)

    both = tvm.transform.module_pass(lowered, opt_level=0, name=f"tvm_practice.{name}")
    return both, *finalize
