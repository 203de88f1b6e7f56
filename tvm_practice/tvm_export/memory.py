"""What a Relax function allocates, step by step, read from its IR after memory planning.

    plan = read_memory(planned, n=64)
    plan.storages          their bytes, in the order they are allocated
    plan.held()            bytes held while each kernel runs
    pool_bytes([plan, …])  what the virtual machine's pool has taken after those calls

Constants and inputs are not counted: they are there before the call and after it.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from tvm_practice.tvm_export.rules.cpu.loops import constant, substitute

# The virtual machine's pool rounds up to pages, and gives a block again for the same size only.
PAGE = 4096


@dataclass(frozen=True)
class Event:
    """Something that a call of main does to memory.

    Attributes:
        kind: "alloc" or "free" of a storage, or "run" of a kernel.
        name: of the storage or the kernel.
        bytes: of the storage.
    """

    kind: str
    name: str
    bytes: int = 0


@dataclass(frozen=True)
class MemoryPlan:
    """A function's allocations, for one value of each symbol.

    Attributes:
        events: in the order they happen.
        formulas: of each storage, its bytes as the IR has them: a number, or terms in symbols.
    """

    events: tuple[Event, ...]
    formulas: Mapping[str, str]

    @property
    def storages(self) -> dict[str, int]:
        """Bytes of each storage, in the order of allocation."""
        return {each.name: each.bytes for each in self.events if each.kind == "alloc"}

    def held(self) -> list[tuple[str, int]]:
        """Each kernel, and the bytes that are held while it runs."""
        steps, held = [], 0
        for event in self.events:
            if event.kind == "run":
                steps.append((event.name, held))
            else:
                held += event.bytes if event.kind == "alloc" else -event.bytes
        return steps


def read_memory(mod: Any, **values: int) -> MemoryPlan:
    """The allocations of a module's main.

    Args:
        mod: an IRModule after StaticPlanBlockMemory (or without it), LowerAllocTensor and
            KillAfterLastUse.
        values: of the symbols, by name. Raises ValueError if one is missing.
    """
    return _Reader(mod["main"], values).read()


def pool_bytes(plans: Iterable[MemoryPlan]) -> int:
    """Bytes that the virtual machine's pool has taken from the system after calls in turn.

    A storage that is freed goes back to the pool, not to the system, and serves another request
    of the same number of pages only. So sizes that come once are held ever after.

    Args:
        plans: one for each call; the result of a call is dropped before the next.
    """
    taken = 0
    idle: dict[int, int] = {}
    for plan in plans:
        held: dict[str, int] = {}
        for event in plan.events:
            size = -(-event.bytes // PAGE) * PAGE
            if event.kind == "alloc":
                held[event.name] = size
                if idle.get(size, 0):
                    idle[size] -= 1
                else:
                    taken += size
            elif event.kind == "free":
                size = held.pop(event.name)
                idle[size] = idle.get(size, 0) + 1
        for size in held.values():
            idle[size] = idle.get(size, 0) + 1
    return taken


class _Reader:
    """Walks the bindings of main, and knows which storage each variable keeps alive."""

    def __init__(self, main: Any, values: Mapping[str, int]):
        self._main, self._values = main, values
        self._events: list[Event] = []
        self._formulas: dict[str, str] = {}
        self._storage: dict[Any, str] = {}  # of each variable that is or lies in a storage
        self._bytes: dict[str, int] = {}
        self._alive: dict[str, set[Any]] = {}  # the variables that hold each storage

    def read(self) -> MemoryPlan:
        for block in self._main.body.blocks:
            for binding in block.bindings:
                self._visit(binding.var, binding.value)
        return MemoryPlan(tuple(self._events), self._formulas)

    def _visit(self, var: Any, value: Any) -> None:
        operator = str(getattr(getattr(value, "op", None), "name", ""))
        arguments = list(getattr(value, "args", ()))
        if operator == "relax.memory.alloc_storage":
            self._allocate(var, arguments[0].values[0])
        elif operator in ("relax.memory.kill_storage", "relax.memory.kill_tensor"):
            self._kill(arguments[0])
        elif type(getattr(value, "op", None)).__name__ == "GlobalVar":
            self._events.append(Event("run", str(value.op.name_hint)))
        else:  # a tensor in a storage, a view of a tensor, another name
            for each in (value, *arguments):
                if each in self._storage:
                    self._hold(var, self._storage[each])

    def _allocate(self, var: Any, size: Any) -> None:
        name = f"s{len(self._bytes)}"  # names in the IR are not unique
        self._formulas[name] = re.sub(r"T\.int64\((\d+)\)", r"\1", str(self._simplified(size)))
        self._bytes[name] = self._evaluated(size)
        self._alive[name] = set()
        self._events.append(Event("alloc", name, self._bytes[name]))
        self._hold(var, name)

    def _hold(self, var: Any, storage: str) -> None:
        self._storage[var] = storage
        self._alive[storage].add(var)

    def _kill(self, var: Any) -> None:
        storage = self._storage.get(var)
        if storage is None:
            return
        self._alive[storage].discard(var)
        if not self._alive[storage]:
            self._events.append(Event("free", storage, self._bytes[storage]))

    def _evaluated(self, size: Any) -> int:
        import tvm
        import tvm_ffi
        from tvm import tirx

        symbols: dict[str, Any] = {}
        tvm_ffi.structural_walk(size, (tvm.ir.Var, lambda v: symbols.update({str(v.name): v})))
        missing = sorted(symbols.keys() - self._values.keys())
        if missing:
            raise ValueError(f"no value given for {', '.join(missing)}")
        chosen = {
            var: tirx.const(self._values[name], str(var.ty.dtype)) for name, var in symbols.items()
        }
        found = constant(self._simplified(substitute(size, chosen)))
        assert found is not None
        return found

    @staticmethod
    def _simplified(expression: Any) -> Any:
        import tvm

        return tvm.sym.Analyzer().simplify(expression)
