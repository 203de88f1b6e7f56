"""Functions that the tests of the tuners call in a child process, or run as a script.

python -m tests.tvm_export.tuners.tuner_functions autotvm log.json 100
"""

import importlib
import sys
from pathlib import Path
from typing import Any

from tvm_practice.tvm_export.tuners.search import Search, searching

SIZES = (48, 40, 56)


def _module(tuner: str) -> Any:
    return importlib.import_module(f"tvm_practice.tvm_export.tuners.{tuner}")


def task_of(tuner: str, sizes: tuple[int, int, int] = SIZES) -> Any:
    """A tuning task for a matmul; a template's design space has 280 points."""
    from solutions.auto_tune import matmul_template
    from solutions.te_basics import matmul
    from tvm_practice.engines import host_target

    if tuner == "metaschedule":
        from tvm import te

        function = te.create_prim_func(matmul(*sizes)).with_attr("global_symbol", "main")
        with searching(Search(), most=6):
            return _module(tuner).make_context(function, host_target(), name="matmul")
    declare = matmul_template if tuner == "autotvm" else matmul
    return _module(tuner).make_task(declare, sizes, host_target())


def run_tuner(tuner: str, task: Any, log: str, trials: int) -> None:
    from solutions import auto_tune

    if tuner == "autotvm":
        auto_tune.tune_autotvm(task, trials=trials, log=log)
    elif tuner == "ansor":
        auto_tune.tune_ansor([task], [1.0], trials=trials, log=log)
    else:
        auto_tune.tune_metaschedule([task], [1.0], trials=trials, work_dir=log)


def tune(tuner: str, log: str, trials: int) -> None:
    run_tuner(tuner, task_of(tuner), log, trials)


def tuned_twice_at_once(log: str) -> dict[str, Any]:
    """Tasks of two functions tuned in one call, and what each one's best record does."""
    import tvm
    from tvm import te

    from solutions import auto_tune
    from solutions.te_basics import dense_bias_relu, matmul
    from tvm_practice.engines import host_target
    from tvm_practice.tvm_export.tuners import metaschedule

    target = host_target()
    functions = {
        "matmul": te.create_prim_func(matmul(*SIZES)).with_attr("global_symbol", "matmul"),
        "dense": te.create_prim_func(dense_bias_relu(24, 40, 32)).with_attr(
            "global_symbol", "dense"
        ),
    }
    with searching(Search(), most=6):
        contexts = [
            metaschedule.make_context(function, target, name=name)
            for name, function in functions.items()
        ]
    database = auto_tune.tune_metaschedule(contexts, [1.0, 2.0], trials=6, work_dir=log)
    applied = auto_tune.apply_metaschedule(tvm.IRModule(functions), database, target)
    return {
        variable.name_hint: bool(function.attrs.get("tirx.is_scheduled"))
        for variable, function in applied.functions.items()
    }


def die_after_the_first_round(log: str, counted: str) -> None:
    """Tune two tasks in one call and end the process once a task's round is in the database.

    A byte is added to the file `counted` for each trial that was written down.
    """
    import os

    from tvm_practice.tvm_export.tuners.journal import Journal

    patched: Any = Journal
    append, settle = Journal.append, Journal.settle

    def append_and_count(journal: Any, entry: Any) -> None:
        append(journal, entry)
        with Path(counted).open("a") as file:
            file.write(".")

    def settle_and_die(journal: Any) -> None:
        settle(journal)
        if Path(counted).exists():  # not the one before the search
            os._exit(9)

    patched.append, patched.settle = append_and_count, settle_and_die
    tuned_twice_at_once(log)


def _fails(m: int, n: int, k: int) -> Any:
    """A template that gives a schedule for the space and fails for every configuration."""
    from tvm import autotvm

    from solutions.auto_tune import matmul_template

    result = matmul_template(m, n, k)
    if isinstance(autotvm.get_config(), autotvm.ConfigEntity):
        raise ValueError("this template always fails")
    return result


def tune_what_fails(tuner: str, log: str) -> None:
    """Tune a task whose trials all fail: a bad template, or code for another processor."""
    import tvm

    from solutions.te_basics import matmul

    if tuner == "autotvm":
        from tvm_practice.engines import host_target

        task = _module(tuner).make_task(_fails, SIZES, host_target())
    elif tuner == "ansor":
        target = tvm.target.Target("llvm -mtriple=aarch64-linux-gnu -num-cores=2")
        task = _module(tuner).make_task(matmul, SIZES, target)
    else:
        from tvm import te

        foreign = {"kind": "llvm", "mtriple": "riscv64-linux-gnu", "num-cores": 2}
        function = te.create_prim_func(matmul(*SIZES))
        with searching(Search(), most=4):
            task = _module(tuner).make_context(function, tvm.target.Target(foreign))
    run_tuner(tuner, task, log, 4)


def predictions(tuner: str, log: str, size: int) -> list[dict[str, Any]]:
    """What the tuner's model would have said of the log's trials, in rounds of `size`."""
    from tvm_practice.tvm_export.tuners import prediction

    predict = getattr(prediction, f"predict_{tuner}")
    return [each.to_dict() for each in predict(task_of(tuner), log, size=size)]


def best_code(tuner: str, log: str) -> str | None:
    """The best schedule as code."""
    task = task_of(tuner)
    if tuner != "metaschedule":
        code: str | None = _module(tuner).best_code(task, log)
        return code
    from tvm_practice.engines import host_target

    database = _module(tuner).open_database(log)
    return str(_module(tuner).best_code(database, task.mod, host_target()))


def code_makes_the_schedule(tuner: str, log: str) -> list[str]:
    """Loops of the schedule that `best_code` makes, and of the one that is applied."""
    from solutions import auto_tune
    from tvm_practice.viz.loop_nest import classic_statement, format_nest, loop_nest

    task, code = task_of(tuner), best_code(tuner, log)
    assert code is not None
    if tuner == "metaschedule":
        import tvm
        from tvm import s_tir

        from tvm_practice.engines import host_target

        made: dict[str, Any] = {"s_tir": s_tir}
        exec(code, made)
        schedule = tvm.s_tir.Schedule(task.mod)
        made["apply_trace"](schedule)
        record = (
            _module(tuner).open_database(log).query_tuning_record(task.mod, host_target(), "main")
        )
        wanted = tvm.s_tir.Schedule(task.mod)
        record.trace.apply_to_schedule(wanted, remove_postproc=True)
        return [format_nest(loop_nest(each.mod["main"])) for each in (schedule, wanted)]
    if tuner == "ansor":
        from tvm import te

        from solutions.te_basics import matmul

        A, B, C = matmul(*SIZES)
        schedule = te.create_schedule(C.op)
        exec(code, {"s": schedule, "A": A, "B": B, "C": C})
        wanted, _ = auto_tune.apply_ansor(task, log)
        return [format_nest(loop_nest(classic_statement(each))) for each in (schedule, wanted)]
    from tvm import autotvm

    cfg: dict[str, Any] = {}
    exec(code, {"cfg": cfg})
    with task.target:
        config = autotvm.apply_history_best(log).query(task.target, task.workload)
    return [repr(cfg), repr({name: config[name].val for name in cfg})]


def workers_threads(tuner: str) -> dict[str, Any]:
    """What a tuner's worker process is told of threads."""
    from tvm_practice.engines import CURRENT, active, thread_count
    from tvm_practice.tvm_export.tuners.workers import unbound_threads

    if active() == CURRENT:
        from tvm.support.popen_pool import PopenWorker
    else:
        from tvm.contrib.popen_pool import PopenWorker

    def look() -> dict[str, Any]:
        import os

        import tvm

        return {
            "threads": os.environ["TVM_NUM_THREADS"],
            "bind": os.environ["TVM_BIND_THREADS"],
            "version": tvm.__version__,
        }

    worker = PopenWorker()
    with unbound_threads():
        worker.send(look)
        seen: dict[str, Any] = worker.recv()
    worker.kill()
    return {**seen, "wanted": str(thread_count())}


def children_left_at_once(count: int) -> int:
    """How many processes of a pool are left that ends while its processes start."""
    import time
    from unittest import mock

    import psutil
    from tvm.support import popen_pool

    from tvm_practice.tvm_export.tuners.workers import processes

    start = popen_pool.subprocess.Popen
    entered: list[None] = []

    def slowly(*arguments: Any, **options: Any) -> Any:
        started = start(*arguments, **options)
        entered.append(None)
        time.sleep(0.5)  # it has no pipes yet
        return started

    with mock.patch.object(popen_pool.subprocess, "Popen", slowly), processes(count):
        while not entered:
            time.sleep(0.01)
    return len(psutil.Process().children())


def extracted() -> dict[str, Any]:
    """Tasks of a Relax model whose two layers have one shape, and whose third differs."""
    import torch

    from solutions.relay_import import import_relax, optimize_relax
    from tvm_practice.engines import host_target
    from tvm_practice.tvm_export.tuners import metaschedule

    def layers() -> list[torch.nn.Module]:
        return [torch.nn.Linear(16, 16), torch.nn.ReLU()]

    model = torch.nn.Sequential(*layers(), *layers(), torch.nn.Linear(16, 3)).eval()
    module = optimize_relax(import_relax(model, (torch.randn(2, 16),)))
    contexts, weights = metaschedule.extract_contexts(module, host_target())
    return {"tasks": [str(context.task_name) for context in contexts], "weights": weights}


def intrinsics_imported() -> list[str]:
    """Which tensor intrinsics are imported after a context for a CPU was made."""
    task_of("metaschedule")
    return sorted(name for name in sys.modules if name.startswith("tvm.s_tir.tensor_intrin"))


if __name__ == "__main__":
    from tvm_practice import engines

    chosen, path, count = sys.argv[1:]
    engines.activate("current" if chosen == "metaschedule" else "classic")
    try:
        tune(chosen, path, int(count))
    except KeyboardInterrupt:
        sys.exit(130)
    print(f"{count} trials at {Path(path)}")
