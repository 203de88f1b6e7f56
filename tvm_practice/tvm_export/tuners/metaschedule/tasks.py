"""Tuning tasks: their design spaces, how they are searched, and the cost model."""

import importlib
import importlib.util
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tvm_practice.engines import thread_count
from tvm_practice.tvm_export.loading import find_factory
from tvm_practice.tvm_export.rules.cpu.attention import ATTENTION
from tvm_practice.tvm_export.tuners.metaschedule.candidates import remembered
from tvm_practice.tvm_export.tuners.search import going
from tvm_practice.tvm_export.tuners.tile_space import ranked_choices, tile_search, tile_space

_INTRINSICS = "tvm.s_tir.tensor_intrin"
# Operands of tensor cores in MetaSchedule's space.
_TENSOR_CORES = {"float16", "int8"}


def make_context(
    function: Any,
    target: Any,
    *,
    space: Any = None,
    name: str = "main",
) -> Any:
    """A tuning task with a search small enough for tens of trials.

    Args:
        function: the workload, a PrimFunc or an IRModule with one.
        target: a `tvm.target.Target`; it needs "num-cores".
        space: a function that takes a `Schedule` and makes sampling decisions on it, or
            "post-order-apply", MetaSchedule's own space, or "register-tiles", see `tile_space`;
            None: what `search.going()` says, else "post-order-apply".
        name: what the log calls it.

    Returns:
        A `meta_schedule.TuneContext`.
    """
    from tvm.s_tir import meta_schedule as ms

    search = going().search
    if space is None:
        space = search.space or "post-order-apply"
    space, strategy = _space_and_strategy(space, target)
    if space == "post-order-apply" and "gpu" in target.keys:
        space = _cuda_space(function)
    with _intrinsics_of(target):
        return ms.TuneContext(
            function,
            target=target,
            space_generator=space,
            search_strategy=remembered(strategy),
            task_name=name,
            rand_state=-1 if search.seed is None else search.seed,
            # Threads share the random numbers as chance has it.
            num_threads=thread_count() if search.seed is None else 1,
        )


def _space_and_strategy(space: Any, target: Any) -> tuple[Any, Any]:
    """A space as TVM takes it, and the strategy that searches it, see `make_context`."""
    from tvm.s_tir import meta_schedule as ms

    policy = going().search.policy
    if space == "register-tiles":
        tiles = ms.space_generator.ScheduleFn(tile_space(target), postprocs=[])
        return tiles, tile_search(target) if policy is None else _strategy(policy)
    if isinstance(space, str) and ":" in space:
        space = find_factory(space)
    return space, _strategy(policy)


def _cuda_space(function: Any) -> Any:
    """MetaSchedule's own space for CUDA, with tensor cores where the function's types fit them.

    That part costs a minute: TVM parses all its tensor intrinsics, of which none is for float32.
    """
    import tvm
    from tvm.s_tir import meta_schedule as ms

    function = function["main"] if isinstance(function, tvm.IRModule) else function
    if {str(each.dtype) for each in function.params} & _TENSOR_CORES:
        importlib.import_module(_INTRINSICS)
        return "post-order-apply"
    return ms.space_generator.PostOrderApply(
        sch_rules="cuda", postprocs="cuda", mutator_probs="cuda"
    )


def _strategy(policy: str | None) -> Any:
    from tvm.s_tir import meta_schedule as ms

    if policy == "replay-trace":
        return ms.search_strategy.ReplayTrace(max_fail_count=100)
    # Half of the default, 512. On a product of 1024 three searches of 64 trials took 42 to 44 s;
    # with 64 they took 33 to 42 and found slower schedules. Fewer trials cannot use as many.
    most, sizes = going().most, going().search.sizes
    size = 256 if most is None else min(256, 16 * max(most, 1))
    size = sizes.get("population", size)
    return ms.search_strategy.EvolutionarySearch(
        population_size=size,
        init_min_unmeasured=sizes.get("samples", min(50, size)),
        genetic_num_iters=sizes.get("iterations", 4),
    )


def extract_contexts(module: Any, target: Any) -> tuple[list[Any], list[float]]:
    """The tuning tasks of a Relax module whose operators are PrimFuncs, and how often each runs.

    Equal functions share a task; functions that are already scheduled have none, nor has attention,
    whose stages MetaSchedule's rules would put beyond each other's loops. The space of a
    contraction is "register-tiles", that of other functions MetaSchedule's own, unless
    `search.going()` names one for all, or sizes of an evolutionary search: tiles are ranked, not
    evolved.
    """
    from tvm.s_tir import meta_schedule as ms

    with _intrinsics_of(target):
        tasks = [
            task
            for task in ms.relax_integration.extract_tasks(module, target)
            if not any(
                attribute in (function.attrs or {})
                for attribute in ("tirx.is_scheduled", ATTENTION)
                for function in task.dispatched[0].functions.values()
            )
        ]
    contexts, weights = [], []
    for task in tasks:
        function = task.dispatched[0]
        wanted = "post-order-apply" if going().search.sizes else going().search.space
        tiles = (
            wanted in (None, "register-tiles")
            and "gpu" not in target.keys
            and ranked_choices(function["main"], target)
        )
        if wanted == "register-tiles" and not tiles:
            continue
        space = "register-tiles" if tiles else None
        contexts.append(make_context(function, target, space=space, name=task.task_name))
        weights.append(float(task.weight))
    return contexts, weights


def cost_model() -> Any:
    """MetaSchedule's XGBoost model, set for tens of trials.

    It predicts at random until it has seen 100 trials, unless told to begin sooner. Its data are
    so few that more than one thread only makes them wait for each other.
    """
    from tvm.s_tir import meta_schedule as ms

    if going().search.cost_model == "random":
        return ms.cost_model.RandomModel()
    return ms.cost_model.XGBModel(num_warmup_samples=8, num_tuning_cores=1)


@contextmanager
def _intrinsics_of(target: Any) -> Iterator[None]:
    """Let TVM import the tensor intrinsics that `target` can use, and no others.

    A tuning context imports all of them, most for GPUs, which parses scripts for tens of
    seconds. An empty package stands in for them meanwhile, for a CPU with those of its
    family loaded: the default design space looks them up.
    """
    if _INTRINSICS in sys.modules:
        yield
        return
    spec = importlib.util.find_spec(_INTRINSICS)
    assert spec is not None
    families: tuple[str, ...] = ()
    if str(target.kind.name) == "llvm":
        families = ("arm_cpu",) if "arm_cpu" in target.keys else ("x86", "riscv_cpu")
    sys.modules[_INTRINSICS] = importlib.util.module_from_spec(spec)
    try:
        for family in families:
            importlib.import_module(f"{_INTRINSICS}.{family}")
        yield
    finally:
        del sys.modules[_INTRINSICS]  # a later import is the real one
