"""Functions that the tests of lab 6 call in a process of the current engine."""


def refused_by_rfactor() -> dict[str, bool]:
    """By name of a reduction of lab 6: whether TVM's rfactor refuses to split it."""
    import tvm
    from tvm import te

    from solutions.labs.compilers_compared import online_softmax
    from tvm_practice.labs.compilers_compared import normalized

    refused = {}
    for declare in (normalized, online_softmax):
        schedule = tvm.s_tir.Schedule(te.create_prim_func(declare(5, 64)))
        [reduction] = [
            block
            for block in schedule.get_child_blocks(schedule.get_sblock("root"))
            if schedule.get(block).init is not None
        ]
        lanes = schedule.split(schedule.get_loops(reduction)[-1], [8, 8])[1]
        try:
            schedule.rfactor(lanes, 0)
        except tvm.s_tir.ScheduleError as error:
            refused[declare.__name__] = "rfactor cannot be applied" in str(error)
    return refused
