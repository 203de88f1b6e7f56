"""Functions that the tests of viz call in a child process with an engine."""

from collections import Counter
from pathlib import Path
from typing import Any

from tvm_practice import engines
from tvm_practice.viz.access import AccessProgram, CannotFollow, access_program, follow


def _programs(size: int, rows: int, columns: int) -> dict[str, AccessProgram]:
    from tvm_practice.course.tours.matmuls import matmul_makers

    makers = matmul_makers(size, tile=(rows, columns))
    return {name: access_program(make().mod, name=name) for name, make in makers.items()}


def _classic_schedule(size: int, rows: int, columns: int) -> tuple[Any, list[Any]]:
    from solutions.manual_schedule import tile_classic
    from solutions.te_basics import matmul

    tensors = matmul(size, size, size)
    return tile_classic(tensors, rows, columns), tensors


def matmul_touches(size: int, rows: int, columns: int) -> dict[str, Any]:
    """By schedule and buffer: [reads, writes] of all elements, and whether all have as many."""
    if engines.active() == engines.CLASSIC:
        programs = {"tiled": access_program(*_classic_schedule(size, rows, columns))}
    else:
        programs = _programs(size, rows, columns)
    found: dict[str, Any] = {}
    for name, program in programs.items():
        trace = follow(program)
        found[name] = {}
        for buffer in program.buffers:
            touched = trace.of(buffer.name)
            reads = Counter(touched.elements[touched.writes == 0].tolist())
            writes = Counter(touched.elements[touched.writes == 1].tolist())
            found[name][buffer.name] = {
                "shape": list(buffer.shape),
                "in_registers": buffer.in_registers,
                "reads": sorted(set(reads.values())),
                "writes": sorted(set(writes.values())),
                "read": len(reads),
                "written": len(writes),
                "inside": not touched.elements.size
                or (
                    bool(touched.elements.min() >= 0)
                    and bool(touched.elements.max() < _size(buffer.shape))
                ),
            }
    return found


def _size(shape: Any) -> int:
    size = 1
    for extent in shape:
        size *= extent
    return size


def naive_order() -> list[list[int]]:
    """The first touches of a 2 x 2 matmul: [buffer, element, write]."""
    program = _programs(2, 1, 1)["naive"]
    trace = follow(program)
    return [
        [int(number), int(element), int(write)]
        for number, element, write in zip(trace.numbers, trace.elements, trace.writes, strict=True)
    ]


def what_cannot_be_followed() -> list[str]:
    """The messages for an index from data and for an unknown size; then with the size given."""
    from tvm import te
    from tvm.tirx import Var

    X, I = te.placeholder((100,), name="X"), te.placeholder((10,), "int32", name="I")
    gather = te.create_prim_func([X, I, te.compute((10,), lambda i: X[I[i]], name="Y")])
    n = Var("n", "int32")
    A = te.placeholder((n, 4), name="A")
    double = te.create_prim_func([A, te.compute((n, 4), lambda i, j: A[i, j] * 2.0, name="B")])
    messages = []
    for function in (gather, double):
        try:
            access_program(function)
            messages.append("")
        except CannotFollow as error:
            messages.append(str(error))
    trace = follow(access_program(double, sizes={"n": 3}))
    messages.append(str(trace.numbers.size))
    return messages


def cache_counts(programs: dict[str, Any], levels: list[list[Any]]) -> dict[str, Any]:
    """`simulate` of programs with given [name, sets, ways, line bytes]."""
    from tvm_practice.viz.cache import CacheLevel, simulate

    caches = [CacheLevel(*each) for each in levels]
    return {
        name: simulate(AccessProgram.from_dict(program), caches).to_dict()
        for name, program in programs.items()
    }


def clamped_misses() -> dict[str, Any]:
    """`simulate` of sixteen reads, the last nine of one element."""
    from tvm import te
    from tvm.tirx import min as least

    from tvm_practice.viz.cache import CacheLevel, simulate

    X = te.placeholder((16,), name="X")
    clamped = te.create_prim_func([X, te.compute((16,), lambda i: X[least(i, 7)], name="Y")])
    return simulate(access_program(clamped), [CacheLevel("L1", 8, 8, 4)]).to_dict()


def matmul_programs(size: int, rows: int, columns: int) -> dict[str, Any]:
    return {name: each.to_dict() for name, each in _programs(size, rows, columns).items()}


def steps_of(name: str) -> dict[str, Any]:
    """The recorded steps of a schedule: primitives, nests, and the nest of the schedule itself."""
    from tvm_practice.course.tours.matmuls import matmul_makers
    from tvm_practice.viz.history import recorded
    from tvm_practice.viz.loop_nest import classic_statement, format_nest, loop_nest

    if engines.active() == engines.CLASSIC:
        made, steps = recorded(lambda: _classic_schedule(32, 8, 8))
        last = format_nest(loop_nest(classic_statement(made[0])))
    else:
        make: Any
        if name == "sampled":

            def make() -> Any:
                from solutions.auto_tune import metaschedule_space

                schedule = matmul_makers(64, tile=(8, 16))["naive"]()
                metaschedule_space(schedule)
                return schedule
        elif name == "rewritten":

            def make() -> Any:
                import tvm

                makers = matmul_makers(64, tile=(8, 16))
                function = makers["tiled+parallel"]().mod["main"]
                makers["tiled"]()
                return tvm.s_tir.Schedule(tvm.IRModule({"main": function}))
        else:
            make = matmul_makers(64, tile=(8, 16))[name]
        made, steps = recorded(make)
        last = format_nest(loop_nest(made.mod["main"]))
    return {
        "primitives": [step.primitive for step in steps],
        "nests": [format_nest(step.nest) for step in steps],
        "last": last,
    }


def study(folder: str) -> dict[str, Any]:
    """A small study and a roofline, and a report page of them."""
    import json

    from tvm_practice.course.tours.matmuls import matmul_roofline, matmul_study
    from tvm_practice.measure import environment
    from tvm_practice.viz import report

    looked = matmul_study(96)
    roof = matmul_roofline(96, seconds=0.5)
    graphs = {"MLP": {"operators": ["dense", "add"] * 40, "kernels": [["dense", "add"]] * 40}}
    graph_section = report.graph_section(graphs)
    assert graph_section is not None
    sections = [
        *report.schedule_sections(looked),
        report.roofline_section(roof),
        graph_section,
        report.environment_section(environment()),
        report.commands_section(["python -m <none> & more"]),
    ]
    report.write(report.Page("A <test> page", ["a fact"], sections), Path(folder) / "report.html")
    return {
        "roofline": {key: roof[key] for key in ("limits", "kernels")},
        "schedules": list(looked["steps"]),
        "bytes": len(json.dumps(looked)),
    }


def left_out() -> dict[str, Any]:
    """A study of functions that are still to do."""
    from tvm_practice.viz.studies import make_all

    def stub() -> Any:
        raise NotImplementedError("to do")

    def broken() -> Any:
        raise ValueError("a line\nthe last line")

    return make_all({"stub": stub, "broken": broken})[1]


def step_lines() -> dict[str, dict[str, int]]:
    """By step of phase 2's matmul and buffer, how many cache lines one tile's work touches."""
    from tvm_practice.course.tours.matmuls import step_windows

    return {
        name: {each.buffer.name: len(set(each.lines().tolist())) for each in part.buffers}
        for name, part in step_windows().items()
    }
