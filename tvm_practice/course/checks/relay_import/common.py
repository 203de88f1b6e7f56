"""Phase 4, and what checks of several of its exercises need: models imported and run, outputs."""

import contextlib
import functools
from collections.abc import Callable, Iterator, Sequence
from typing import Any
from unittest import mock

import numpy as np

from tvm_practice.course.catalog import Phase
from tvm_practice.course.expect import expect
from tvm_practice.course.imported_models import (
    any_llvm,
    arrays,
    by_pytorch,
    expect_as_pytorch,
    other_weights,
)
from tvm_practice.engines import CLASSIC, CURRENT
from tvm_practice.tvm_export.quiet import quiet_frontends
from tvm_practice.tvm_export.running import run_relax, run_relay

PHASE = Phase(
    number=4,
    module="relay_import",
    title="importing models",
    lanes=(CURRENT, CLASSIC),
    question=(
        "What graph-level optimizations do Relay and Relax apply that individual operator "
        "schedules cannot?"
    ),
)


def relay_constants(function: Any) -> list[np.ndarray]:
    from tvm import relay

    found: list[np.ndarray] = []

    def look(node: Any) -> None:
        if isinstance(node, relay.Constant):
            found.append(node.data.numpy())

    relay.analysis.post_order_visit(function, look)
    return found


def looks_up(example: Sequence[Any]) -> bool:
    """Whether a model takes indices alone: its outputs are weights."""
    return not any(each.is_floating_point() for each in example)


def expect_as_given(name: str, seen: tuple[Any, str], tensor: Any, *, look: str) -> None:
    """An input of main has the shape and the type of the example's tensor."""
    wanted = tuple(tensor.shape), str(tensor.dtype).removeprefix("torch.")
    expect(
        seen == wanted,
        expected=f"{name} of shape {wanted[0]} and type {wanted[1]}",
        seen=f"shape {seen[0]} and type {seen[1]}",
        look=look,
    )


def run_imported_relay(
    mod: Any, params: dict[str, Any], example: Sequence[Any]
) -> list[np.ndarray]:
    """Build at level 1, which is quick, and run once: the values are those of any level."""
    import tvm
    from tvm import relay

    target = tvm.target.Target("llvm -opt-level=0")
    with quiet_frontends(), tvm.transform.PassContext(opt_level=1):
        lib = relay.build(mod, target=target, params=params)
    return run_relay(lib, arrays(example))


def imported_relay(model: Any, example: tuple[Any, ...]) -> tuple[Any, dict[str, Any]]:
    from solutions.relay_import import import_relay

    with quiet_frontends(), prelude_made_once():
        return import_relay(model, example)


@contextlib.contextmanager
def prelude_made_once() -> Iterator[None]:
    """Each import by from_pytorch begins with a copy of one prelude: to make one takes longest."""
    from tvm.relay.frontend import pytorch

    with mock.patch.object(pytorch, "Prelude", _copying_prelude()):
        yield


@functools.cache
def _copying_prelude() -> type:
    from tvm.relay.prelude import Prelude

    made = Prelude()

    class Copied(Prelude):  # type: ignore[misc]  # TVM has no types
        def load_prelude(self) -> None:
            self.mod.update(made.mod)
            self.__dict__.update({name: each for name, each in vars(made).items() if name != "mod"})

    return Copied


def same_elements(one: Any, other: Any) -> bool:
    """Whether two tensors, or arrays, have the same type and elements."""
    found, wanted = (
        each if isinstance(each, np.ndarray) else each.numpy() for each in (one, other)
    )
    return found.dtype == wanted.dtype and np.array_equal(found, wanted)


def run_imported_relax(mod: Any, example: Sequence[Any]) -> list[np.ndarray]:
    """Build with the reference function and run once."""
    from solutions.relay_import import build_relax

    return run_relax(build_relax(mod, any_llvm()), arrays(example))


def imported_relax(model: Any, example: tuple[Any, ...]) -> Any:
    from solutions.relay_import import import_relax

    with quiet_frontends():
        return import_relax(model, example)


def check_made_anew(
    run: Callable[[Any], list[np.ndarray]], model: Any, example: tuple[Any, ...], name: str
) -> None:
    """A result that was kept for inputs of these shapes has the first network's weights."""
    twin = other_weights(model)
    expect_as_pytorch(
        run(imported_relax(twin, example)),
        by_pytorch(twin, example),
        look=f"{name} was called with a second module of the same inputs and other weights",
    )


def expect_no_constant_calls(shown: Any, *, look: str) -> None:
    """No call of an optimized graph (`graph`) can be computed before it runs."""
    expect(
        not shown.constant_calls,
        expected="no call left that depends on constants alone",
        seen=f"{len(shown.constant_calls)} such calls, {shown.constant_calls[:1]}",
        look=look,
    )
