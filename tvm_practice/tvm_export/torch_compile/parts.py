"""A graph divided into parts for TVM and the rest for PyTorch, and what a part does when called."""

import copy
import logging
import re
import threading
import weakref
from collections.abc import Callable, Collection, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import fx, nn
from torch.fx.passes.infra.partitioner import CapabilityBasedPartitioner, Partition
from torch.utils import _pytree as pytree

from tvm_practice.tvm_export.calling import Call
from tvm_practice.tvm_export.loading import describe
from tvm_practice.tvm_export.torch_compile import building, caching
from tvm_practice.tvm_export.torch_compile.closed import (
    closed,
    has_open_extents,
    output_orders,
)
from tvm_practice.tvm_export.torch_compile.options import Options
from tvm_practice.tvm_export.torch_compile.running import TensorRunner
from tvm_practice.tvm_export.torch_compile.supported import Support, computes, is_worthwhile, trim
from tvm_practice.tvm_export.torch_compile.telling import say_once

_log = logging.getLogger(__name__)
# TVM's importer and the silencing of its C++ code change what the whole process shares.
_BUILDING = threading.RLock()
# A part is built anew at most so often because its weights changed; then they are inputs.
_MOST_WEIGHTS = 3
# … and for so many shapes, where the exporter cannot leave them open; the others are PyTorch's.
_MOST_SHAPES = 8
_PREFIX = "tvm_part_"
# In a line of the log.
_MOST_NAMES = 8


def divided(
    graph: fx.GraphModule,
    weights: Collection[int],
    options: Options,
    *,
    refused: Collection[str] = (),
) -> fx.GraphModule:
    """A graph whose supported nodes are calls of `Part`s; the others stay as they are.

    Args:
        graph: functional ATen; left as it is.
        weights: which of its inputs are weights that do not change while it runs.
        options: of the backend.
        refused: names of nodes that the exporter does not take, as an earlier attempt has shown.
    """
    graph = fx.GraphModule(graph, copy.deepcopy(graph.graph))
    support = Support(graph, refused)
    partitioner = CapabilityBasedPartitioner(graph, support, allows_single_node_partition=True)
    partitions = _chosen(graph, partitioner.propose_partitions())
    inputs = [node.name for node in graph.graph.find_nodes(op="placeholder")]
    constant = {inputs[index] for index in weights}
    whole = partitioner.fuse_partitions(partitions, prefix=_PREFIX)
    for node in whole.graph.find_nodes(op="call_module"):
        if not str(node.target).startswith(_PREFIX):
            continue
        fixed = [
            position
            for position, given in enumerate(node.args)
            if isinstance(given, fx.Node) and (given.op == "get_attr" or given.name in constant)
        ]
        part = whole.get_submodule(str(node.target))
        assert isinstance(part, fx.GraphModule)
        whole.set_submodule(
            str(node.target), Part(part, frozenset(fixed), options, whole=not refused)
        )
    whole.recompile()
    return whole


def _chosen(graph: fx.GraphModule, partitions: Sequence[Partition]) -> list[Partition]:
    """Those worth a build: that compute something, and enough unless they are all that does."""
    for each in partitions:
        trim(each.nodes)
    computing = [each for each in partitions if computes(each.nodes)]
    taken = {node for each in computing for node in each.nodes}
    if not computes(node for node in graph.graph.nodes if node not in taken):
        return computing
    return [each for each in computing if is_worthwhile(each.nodes)]


@dataclass
class _Build:
    """What runs a part, and for which calls.

    Attributes:
        run: takes the part's arguments.
        weights: position of each argument that is a constant of it, and its version.
        key: what `Part._key` must give, or None for any.
    """

    run: Callable[..., Any]
    weights: tuple[tuple[int, "weakref.ref[torch.Tensor]", int], ...] = ()
    key: tuple[Any, ...] | None = None

    def fits(self, arguments: Sequence[Any]) -> bool:
        return all(
            given() is arguments[position] and arguments[position]._version == version
            for position, given, version in self.weights
        )

    def is_stale(self) -> bool:
        """Whether no call can fit any more: a weight was changed, or is gone."""
        return any(
            (weight := given()) is None or weight._version != version
            for _, given, version in self.weights
        )


class Part(nn.Module):
    """A part of a graph, built by TVM when it is first called; by PyTorch if TVM does not take it.

    Args:
        graph: the part. It is left as it is.
        weights: which of its arguments are weights.
        options: of the backend.
        whole: whether it may be divided again where the exporter does not take all of it.
    """

    def __init__(
        self, graph: fx.GraphModule, weights: frozenset[int], options: Options, *, whole: bool
    ):
        super().__init__()
        self._graph = graph
        self._weights = weights if options.freeze else frozenset()
        self._options = options
        self._whole = whole
        self._orders = output_orders(graph)
        self._open = has_open_extents(graph)
        self._by_shape = False
        self._rebuilt = 0
        self._builds: list[_Build] = []

    def forward(self, *arguments: Any) -> Any:
        """The part's outputs, one tensor or a sequence."""
        run = self._find(arguments)
        if run is None:
            # A thread of its own: this one runs below autograd, where nothing can be traced.
            with _BUILDING, ThreadPoolExecutor(1) as thread:
                run = self._find(arguments) or thread.submit(self._build, arguments).result()
        return run(*arguments)

    def _find(self, arguments: Sequence[Any]) -> Callable[..., Any] | None:
        key = self._key(arguments) if self._by_shape else None
        for build in self._builds:
            if build.key == key and build.fits(arguments):
                return build.run
        return None

    def _key(self, arguments: Sequence[Any]) -> tuple[Any, ...]:
        """The extents and numbers of a call, which a build is for unless it leaves them open."""
        return tuple(
            tuple(each.shape) if isinstance(each, torch.Tensor) else each for each in arguments
        )

    def _build(self, arguments: Sequence[Any]) -> Callable[..., Any]:
        stale = [each for each in self._builds if each.is_stale()]
        if stale:
            self._rebuilt += 1
            self._builds = [each for each in self._builds if each not in stale]
        weights = self._constants(arguments)
        key = None
        if self._open and not self._by_shape:
            try:
                run = self._through_tvm(arguments, weights, opened=True)
                return self._added(run, weights, arguments, None)
            except Exception as error:  # the extents as they are, then
                _log.info("extents of %s are not left open: %s", self._name, describe(error))
                self._by_shape, self._builds = True, []
        if self._by_shape:
            key = self._key(arguments)
            if len(self._builds) >= _MOST_SHAPES:
                return self._graph
        try:
            run = self._through_tvm(arguments, weights, opened=False)
        except Exception as error:  # of the importer, of TVM or a wrong value
            run, weights = self._without(arguments, weights, error), frozenset()
            self._by_shape, key = False, None
        return self._added(run, weights, arguments, key)

    def _constants(self, arguments: Sequence[Any]) -> frozenset[int]:
        """The weights that can be constants: that tell when they change, and do not always."""
        if self._rebuilt >= _MOST_WEIGHTS:
            return frozenset()
        return frozenset(each for each in self._weights if not arguments[each].is_inference())

    def _added(
        self,
        run: Callable[..., Any],
        weights: frozenset[int],
        arguments: Sequence[Any],
        key: tuple[Any, ...] | None,
    ) -> Callable[..., Any]:
        known = tuple(
            (each, weakref.ref(arguments[each]), arguments[each]._version)
            for each in sorted(weights)
        )
        self._builds.insert(0, _Build(run, known, key))
        return run

    @property
    def _name(self) -> str:
        names = [node.name for node in self._graph.graph.nodes if node.op == "call_function"]
        return names[0] if len(names) == 1 else f"{names[0]} … {names[-1]} ({len(names)} nodes)"

    def _through_tvm(
        self, arguments: Sequence[Any], weights: frozenset[int], *, opened: bool
    ) -> Callable[..., Any]:
        """The part by TVM. Raises what the exporter raises, and ValueError for wrong values."""
        from torch._dynamo.utils import counters

        call = closed(self._graph, arguments, weights, opened=opened)
        places = [
            place
            for place, value in enumerate(arguments)
            if isinstance(value, torch.Tensor) and place not in weights
        ]
        cache = caching.Cache(self._options)
        name = caching.key(self._graph, call, self._options)
        run: TensorRunner | None = None
        if found := cache.find(name):
            if found.compiled is None:
                raise _Refused(found)
            run = _loaded(found.compiled, call, self._orders)
        if run is not None:
            counters["tvm_practice"]["loaded"] += 1
        else:
            executable = building.compiled(call, self._options, name=name)
            run = building.runner(executable, call, self._orders)
            if self._options.verify:
                building.require_equal(run, call)
            counters["tvm_practice"]["built"] += 1
            cache.keep(name, executable=executable)

        def called(*given: Any) -> Any:
            return run([given[place] for place in places])

        return called

    def _without(
        self, arguments: Sequence[Any], weights: frozenset[int], error: Exception
    ) -> Callable[..., Any]:
        """The part with PyTorch for the nodes that the exporter refuses, which the log names."""
        from torch._dynamo.utils import counters

        counters["tvm_practice"]["refused"] += 1
        if isinstance(error, _Refused):
            entry = error.entry
        else:
            entry = self._searched(arguments, describe(error))
            call = closed(self._graph, arguments, weights, opened=False)
            name = caching.key(self._graph, call, self._options)
            caching.Cache(self._options).keep(name, entry)
        left = f"leaves {_plain_names(entry.refused)}" if entry.refused else "is left"
        say_once(f"{self._name} {left} to PyTorch: {entry.reason}")
        if not entry.refused:
            return self._graph
        return divided(self._graph, self._weights, self._options, refused=entry.refused)

    def _searched(self, arguments: Sequence[Any], reason: str) -> caching.Entry:
        """Which nodes the exporter does not take one by one, and the first one's reason."""
        refused: dict[str, str] = {}
        if self._whole:
            search = _Search(self._graph, self._options)
            with torch.no_grad():
                search.run(*arguments)
            refused = search.refused
        return caching.Entry(None, tuple(refused), next(iter(refused.values()), reason))


class _Refused(Exception):
    """An earlier process found that the exporter does not take a part."""

    def __init__(self, entry: caching.Entry):
        super().__init__(entry.reason)
        self.entry = entry


class _Search(fx.Interpreter):
    """Runs a graph, and asks the exporter for each operator that it meets by itself.

    Args:
        graph: the part.
        options: of the backend.

    Attributes:
        refused: the nodes that it does not take, and why.
    """

    def __init__(self, graph: fx.GraphModule, options: Options):
        super().__init__(graph)
        self._options = Options(target=options.target, cache=False)
        self.refused: dict[str, str] = {}
        self._asked: dict[str, str | None] = {}

    def run_node(self, n: fx.Node) -> Any:
        if isinstance(n.target, torch._ops.OpOverload) and not _is_unwritten(n.target):
            args, kwargs = self.fetch_args_kwargs_from_env(n)
            # Equal calls fare alike; what the tensors hold does not count.
            call = repr((n.target, pytree.tree_map(_kind, (args, kwargs))))
            if call not in self._asked:
                self._asked[call] = building.refusal(n, args, kwargs, self._options)
            if reason := self._asked[call]:
                self.refused[n.name] = reason
        return super().run_node(n)


def _plain_names(nodes: Collection[str]) -> str:
    """The operators of nodes: add of add, add_1, add_2."""
    names = list(dict.fromkeys(re.sub(r"_\d+$", "", each) for each in nodes))
    return ", ".join(names[:_MOST_NAMES] + ["…"] * (len(names) > _MOST_NAMES))


def _is_unwritten(target: torch._ops.OpOverload) -> bool:
    """Whether an operator makes memory of any content, which no two runs have in common."""
    return str(target.__name__).startswith(("empty", "new_empty"))


def _kind(value: Any) -> Any:
    return (value.dtype, tuple(value.shape)) if isinstance(value, torch.Tensor) else value


def _loaded(
    library: Path, call: Call, orders: Sequence[Sequence[int] | None]
) -> TensorRunner | None:
    """A build from disk; None of a library that does not load."""
    import tvm

    try:
        return building.runner(tvm.runtime.load_module(str(library)), call, orders)
    except (RuntimeError, OSError):
        return None
