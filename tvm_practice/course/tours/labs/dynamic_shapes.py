"""What lab 4 shows: symbols from one operator to a Transformer layer, verified and timed."""

import itertools
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from tvm_practice.course.steps import Steps
from tvm_practice.course.tours.labs.dynamic_artifacts import (
    array_function,
    by_x,
    show_script,
    unplanned,
)
from tvm_practice.course.tours.labs.dynamic_encoder import show_encoder
from tvm_practice.course.tours.labs.dynamic_matmuls import show_matmuls
from tvm_practice.course.tours.printing import say
from tvm_practice.wording import number_of

# Widths of a chain of layers. No two intermediate tensors have the same size.
_CHAIN = (256, 1024, 512, 768, 128, 256)
_CHAIN_BOUND = 64


def lane(steps: Steps, *, quick: bool) -> dict[str, Any]:
    """Symbols from one operator to a Transformer layer: shown, verified, timed."""
    import torch

    from tvm_practice import engines

    torch.set_num_threads(engines.thread_count())
    _show_added(steps)
    product, planning = ("symbolic_matmul", "schedule_dynamic"), ("plan_memory",)
    figures: dict[str, Any] = {
        "matmul": _part(steps, product, lambda: show_matmuls(steps, quick=quick)),
        "chain": _part(steps, planning, lambda: _plan_of_a_chain(steps)),
    }
    _verify_a_matmul(steps)
    buckets = _part(steps, ("bucketed",), lambda: _show_buckets(steps))
    used = ("import_dynamic", *planning, "schedule_dynamic", "verify_over_range", "bucketed")
    figures["encoder"] = _part(
        steps, used, lambda: show_encoder(steps, quick=quick, buckets=bool(buckets))
    )
    return figures


def _part(steps: Steps, used: Sequence[str], run: Callable[[], Any]) -> Any:
    """What `run` returns; None where it fails on what one of the functions `used` returned."""
    try:
        return run()
    except Exception as error:
        written = [name for name in used if name not in steps.todo]
        if not written:
            raise
        said = (str(error).strip().splitlines() or ["(no message)"])[0]
        steps.fail(written[0], f"{type(error).__name__}: {said}")
        say(f"This part stops here. It uses {', '.join(written)}; grade them: pytest -m lab4")
    return None


def _show_added(steps: Steps) -> None:
    import numpy as np

    from tvm_practice import engines
    from tvm_practice.course.stack import earlier

    build_relax = earlier("relay_import.build_relax")
    module = steps.chapter.added(8)
    say("One artifact for every n. The worked example, added(8):")
    show_script("added(8)", module["main"])
    run = array_function(build_relax(module, engines.host_target()))
    rows = (1, 5, 1000)
    right = all(
        np.array_equal(
            run(np.ones((n, 8), "float32"), np.ones((n, 8), "float32")), np.full((n, 8), 2)
        )
        for n in rows
    )
    say(f"Compiled once, {'right' if right else 'WRONG'} for n = {', '.join(map(str, rows))}.")
    try:
        run(np.ones((5, 8), "float32"), np.ones((4, 8), "float32"))
    except Exception as error:
        said = str(error).strip().splitlines()[0]
        say(f"x of 5 rows and y of 4 are refused, because n is one symbol: {said}")


def _chain() -> Any:
    """Products and ReLUs of _CHAIN's widths, n rows, fused; its symbol is n."""
    import numpy as np

    from tvm_practice.course.checks.labs.dynamic_shapes.memory import dense_chain

    return dense_chain([np.zeros(each, "float32") for each in itertools.pairwise(_CHAIN)])


def _plan_of_a_chain(steps: Steps) -> dict[str, Any]:
    """plan_memory on a chain of layers, with and without a bound."""
    from tvm_practice.tvm_export.memory import read_memory

    widths = " > ".join(map(str, _CHAIN))
    say(f"\nMemory. A chain of dense layers, {widths}, n rows:")
    module = _chain()
    plans = {"not planned": unplanned(module)}
    for name, bounds in (("no bound", None), (f"n <= {_CHAIN_BOUND}", {"n": _CHAIN_BOUND})):
        planned = steps.attempt("plan_memory", module, bounds)
        if planned is None:
            return {}
        plans[f"planned, {name}"] = planned
    figures = {}
    for name, planned in plans.items():
        formulas = read_memory(planned, n=1).formulas.values()
        if not formulas:
            raise ValueError(f"{name}: main allocates no storage")
        say(f"- {name}: {number_of(len(formulas), 'storage')} of {', '.join(formulas)} bytes")
        figures[name] = list(formulas)
    say(
        "A storage whose size depends on n is reused only for the same size. With a bound, all "
        "sizes are numbers, and a larger storage can hold a smaller tensor. The result is never "
        "planned."
    )
    return figures


def _verify_a_matmul(steps: Steps) -> None:
    """verify_over_range on a product of n rows."""
    import numpy as np

    from solutions.labs.dynamic_shapes import symbolic_matmul
    from tvm_practice import engines
    from tvm_practice.course.stack import earlier

    build_relax = earlier("relay_import.build_relax")
    run = array_function(build_relax(symbolic_matmul(24, 16), engines.host_target()))
    rng = np.random.default_rng()

    def draw(n: int) -> tuple[Any, ...]:
        return rng.standard_normal((n, 24), "float32"), rng.standard_normal((24, 16), "float32")

    errors = steps.attempt("verify_over_range", run, lambda a, b: a @ b, draw, (40,))
    if errors is not None:
        shapes = ", ".join(str(n) for (n,) in sorted(errors))
        say(
            f"\nverify_over_range: a product of n rows, n = {shapes}: largest error "
            f"{max(errors.values()):.1e}."
        )


def _show_buckets(steps: Steps) -> bool:
    """`bucketed` with PyTorch in place of artifacts: whether it is written, and right."""
    import numpy as np
    import torch

    from tvm_practice.models import load_encoder

    model, (x, _) = load_encoder(batch=1, length=11, width=32, heads=2)

    def artifact(tokens: Any, keep: Any) -> Any:
        with torch.inference_mode():
            return model(torch.from_numpy(tokens), torch.from_numpy(keep)).numpy()

    out = steps.attempt("bucketed", {8: artifact, 16: artifact, 32: artifact}, x.numpy())
    if out is None:
        return False
    error = float(np.abs(out - artifact(x.numpy(), np.ones((1, 11), "float32"))).max())
    say(f"\nbucketed: 11 tokens through a bucket of 16: {error:.1e} from the same tokens unpadded.")
    if error > 1e-4:
        steps.fail("bucketed", f"{error:.1e} from the same tokens unpadded")
    return error <= 1e-4


def report(results: dict[str, Any], folder: Path) -> None:
    """Draw the bytes held over a call, and the times by shape."""
    from tvm_practice.viz.shapes import plot_costs, plot_held

    encoder = results.get("current", {}).get("figures", {}).get("encoder") or {}
    if encoder.get("memory"):
        memory = encoder["memory"]
        file = plot_held(
            folder / "memory.png",
            memory["held"],
            title=f"A Transformer layer, {by_x(memory['shape'])}: intermediate tensors",
        )
        print(f"\nMemory, kernel by kernel: {file}")
    if encoder.get("cost"):
        rows = [
            {
                "shape": row["shape"],
                "ratio": {
                    name: (each["value"], *each["ci95"])
                    for name, each in row["ratio"].items()
                    if name != row["baseline"] and each["value"] is not None
                },
            }
            for row in encoder["cost"]
        ]
        file = plot_costs(
            folder / "cost.png",
            rows,
            baseline="an artifact for that shape",
            title="A Transformer layer: one artifact for all shapes, and its rivals",
        )
        print(f"Times by shape: {file}")
