"""Wrong answers to the bug hunts: another cause, no repair, or a repair that gives up the purpose.

And right ones that are not the reference.
"""

from tests.mutants import edited, mutant, right, right_edited

edited("parallel_sum", "blames_the_rounding", {'"b"': '"d"'}, message="naive loops prove it")
edited(
    "parallel_sum",
    "columns_inside_a_parallel_sum",
    {"reorder(i, k, j)": "reorder(k, i, j)", "parallel(i)": "parallel(k)"},
    message=r"still: \d+ elements of C are written by two iterations",
)
edited(
    "parallel_sum",
    "on_one_thread",
    {"    schedule[C].parallel(i)\n": ""},
    message="keeps a parallel loop",
)
right_edited(
    "parallel_sum",
    "columns_in_parallel",
    {"reorder(i, k, j)": "reorder(j, k, i)", "parallel(i)": "parallel(j)"},
)

edited("lost_bound", "blames_the_buffer", {'"c"': '"b"'}, message="each part has its own")
edited(
    "lost_bound",
    "other_factors_that_do_not_nest",
    {"[None, 21]": "[None, 22]"},
    message=r"still: \d+ elements of C are written by two iterations",
)
edited(
    "lost_bound",
    "on_one_thread",
    {"    schedule.parallel(part)\n": ""},
    message="keeps a parallel loop",
)
edited(
    "lost_bound",
    "tiles_in_parallel",
    {"parallel(part)": "parallel(tile)"},
    message="keeps the loop over parts",
)
edited(
    "lost_bound",
    "written_at_every_step",
    {"reorder(part, tile, k, row, j)": "reorder(part, k, tile, row, j)"},
    message="2 or more per part",
)
edited(
    "lost_bound",
    "zeroed_before_all_parts",
    {"decompose_reduction(block, k)": "decompose_reduction(block, part)"},
    message="keeps every use of the local buffer inside one parallel loop",
)
edited(
    "lost_bound",
    "parts_of_columns",
    {"i, j, k = schedule.get_loops(": "j, i, k = schedule.get_loops("},
    message="keeps the loop over parts of rows",
)


@mutant("lost_bound", message="sum in a buffer of scope")
def adds_up_in_c(schedule):
    i, j, k = schedule.get_loops(schedule.get_sblock("C"))
    part, rows = schedule.split(i, [None, 20])
    schedule.reorder(part, k, rows, j)
    schedule.parallel(part)
    return "c"


@right("lost_bound")
def larger_tiles(schedule):
    block = schedule.get_sblock("C")
    write_back = schedule.cache_write(block, 0, "local")
    i, j, k = schedule.get_loops(block)
    part, tile, row = schedule.split(i, [None, 5, 4])
    schedule.reorder(part, tile, k, row, j)
    schedule.parallel(part)
    schedule.reverse_compute_at(write_back, tile)
    return "c"


@right("lost_bound")
def sum_moved_into_the_loops_of_the_copy(schedule):
    block = schedule.get_sblock("C")
    rows, _ = schedule.get_loops(schedule.cache_write(block, 0, "local"))
    part, tile, _row = schedule.split(rows, [None, 5, 4])
    schedule.compute_at(block, tile)
    *_, row, column, k = schedule.get_loops(block)
    schedule.reorder(k, row, column)
    schedule.parallel(part)
    return "c"


@right("lost_bound")
def a_copy_per_part(schedule):
    block = schedule.get_sblock("C")
    write_back = schedule.cache_write(block, 0, "local")
    i, j, k = schedule.get_loops(block)
    part, tile, row = schedule.split(i, [None, 7, 3])
    schedule.reorder(part, tile, k, row, j)
    schedule.parallel(part)
    schedule.reverse_compute_at(write_back, part)
    schedule.decompose_reduction(block, k)
    return "c"


right_edited(
    "lost_bound",
    "a_copy_per_part_that_is_zeroed_in_place",
    {"    schedule.decompose_reduction(block, k)\n": ""},
    of="a_copy_per_part",
)
edited(
    "lost_bound",
    "a_copy_per_part_of_20",
    {
        "part, tile, row = schedule.split(i, [None, 7, 3])": (
            "part, rows = schedule.split(i, [None, 20])\n"
            "    tile, row = schedule.split(rows, [None, 3])"
        )
    },
    of="a_copy_per_part",
    message="written by two iterations",
)
edited(
    "lost_bound",
    "a_copy_per_part_of_one_tile",
    {"[None, 7, 3]": "[None, 1, 21]"},
    of="a_copy_per_part",
    message="2 or more per part",
)
edited(
    "lost_bound",
    "a_copy_per_part_that_adds_up_at_once",
    {
        "reorder(part, tile, k, row, j)": "reorder(part, k, tile, row, j)",
        "    schedule.decompose_reduction(block, k)\n": "",
    },
    of="a_copy_per_part",
    message="2 or more per part",
)


@mutant("lost_bound", message="the loop over parts of rows")
def parts_of_the_copys_columns(schedule):
    block = schedule.get_sblock("C")
    write_back = schedule.cache_write(block, 0, "local")
    rows, columns = schedule.get_loops(write_back)
    part, tile, column = schedule.split(columns, [None, 2, 4])
    schedule.reorder(part, tile, rows, column)
    schedule.compute_at(block, tile)
    schedule.parallel(part)
    return "c"


edited("column_walk", "blames_the_size", {'"d"': '"c"'}, message="lines up needs few of them")
edited(
    "column_walk",
    "the_other_order",
    {
        "    i_outer, i_inner = schedule.split(i, [None, 16])\n": "",
        "    j_outer, j_inner = schedule.split(j, [None, 16])\n": "",
        "    schedule.reorder(i_outer, j_outer, i_inner, j_inner)\n": "",
    },
    message=r"still: \d+ of 1000 accesses miss",
)
right_edited(
    "column_walk",
    "columns_of_a_tile_first",
    {"j_outer, i_inner, j_inner)": "j_outer, j_inner, i_inner)"},
)

edited("strided_lanes", "blames_the_lanes", {'"b"': '"a"'}, message="128 bits hold 4 floats")
edited(
    "strided_lanes",
    "rows_again",
    {
        "_, j =": "i, j =",
        "split(j, [None, 8])": "split(i, [None, 4])",
        "schedule.vectorize": "schedule.reorder(j, lanes)\n    schedule.vectorize",
    },
    message=r"still: adjacent lanes are \d+ floats apart",
)
edited(
    "strided_lanes",
    "unrolled_instead",
    {"vectorize(lanes)": "unroll(lanes)"},
    message="keeps a vectorized innermost loop",
)
right_edited("strided_lanes", "sixteen_lanes", {"[None, 8]": "[None, 16]"})
right_edited("strided_lanes", "lanes_that_do_not_divide", {"[None, 8]": "[None, 6]"})
right_edited("strided_lanes", "five_lanes", {"[None, 8]": "[None, 5]"})

edited("guarded_lanes", "blames_the_threads", {'"c"': '"b"'}, message="share the tests")
edited(
    "guarded_lanes",
    "thirty_two_lanes",
    {"[None, 8]": "[None, 32]"},
    message=r"still: a bound is tested \d+ times",
)
edited(
    "guarded_lanes",
    "two_lanes",
    {"[None, 8]": "[None, 2]"},
    message="keeps a vectorized innermost loop of 4 lanes",
)
edited(
    "guarded_lanes",
    "vectors_in_the_lanes",
    {"_, lanes =": "lanes, _ ="},
    message="keeps a vectorized innermost loop",
)
right_edited("guarded_lanes", "four_lanes", {"[None, 8]": "[None, 4]"})

edited("false_sharing", "blames_the_elements", {'"a"': '"b"'}, message="an element of its own")
edited(
    "false_sharing",
    "adds_up_in_y",
    {
        '    write_back = schedule.cache_write(block, 0, "local")\n': "",
        "    schedule.reverse_compute_at(write_back, i)\n": "",
    },
    message=r"still: \d+ writes are to cache lines",
)
edited(
    "false_sharing",
    "on_one_thread",
    {"    schedule.parallel(i)\n": ""},
    message="keeps a parallel loop",
)
edited(
    "false_sharing",
    "one_buffer_for_all",
    {"    schedule.reverse_compute_at(write_back, i)\n": ""},
    message="keeps every use of the local buffer inside one parallel loop",
)


@right("false_sharing")
def a_line_of_y_per_iteration(schedule):
    i, _ = schedule.get_loops(schedule.get_sblock("Y"))
    part, _ = schedule.split(i, [None, 16])
    schedule.parallel(part)
    return "a"


edited("inner_parallel", "blames_the_elements", {'"d"': '"a"'}, message="elements of its own")
edited(
    "inner_parallel",
    "columns_again",
    {"i, _ =": "_, i ="},
    message=r"still: the threads are started and awaited \d+ times",
)
edited(
    "inner_parallel",
    "on_one_thread",
    {"parallel(i)": "unroll(i)"},
    message="keeps a parallel loop",
)
edited(
    "inner_parallel",
    "one_iteration_in_parallel",
    {"parallel(i)": "parallel(schedule.split(i, [1, None])[0])"},
    message="keeps a parallel loop of 2 iterations",
)
right_edited(
    "inner_parallel",
    "all_elements",
    {"i, _ =": "i, j =", "parallel(i)": "parallel(schedule.fuse(i, j))"},
)


@right("recomputed_stage")
def rows_for_partial_sums(schedule):
    *_, k = schedule.get_loops(schedule.get_sblock("Y"))
    _, part = schedule.split(k, [None, 2])
    partial_sums = schedule.rfactor(part, 0)
    schedule.compute_at(schedule.get_sblock("B"), schedule.get_loops(partial_sums)[0])
    return "a"


edited("recomputed_stage", "blames_the_buffer", {'"a"': '"b"'}, message="inlined into Y")
edited(
    "recomputed_stage",
    "columns_again",
    {"i, _, _ =": "_, i, _ ="},
    message=r"still: each element of B is computed \d+ times",
)
edited(
    "recomputed_stage",
    "computed_before",
    {'    schedule.compute_at(schedule.get_sblock("B"), i)\n': ""},
    message="keeps the stage B, computed inside a loop of Y",
)
right_edited(
    "recomputed_stage",
    "in_parallel",
    {"    schedule.compute_at(": "    schedule.parallel(i)\n    schedule.compute_at("},
)

edited("written_every_step", "blames_the_zero", {'"b"': '"a"'}, message="they are right")
edited(
    "written_every_step",
    "every_step_again",
    {"i, _ =": "_, i ="},
    message=r"still: each element of Y is written \d+ times",
)
edited(
    "written_every_step",
    "copied_at_the_end",
    {"    schedule.reverse_compute_at(write_back, i)\n": ""},
    message="keeps the copy in a loop of the sum",
)
right_edited(
    "written_every_step",
    "in_parallel",
    {"    schedule.reverse": "    schedule.parallel(i)\n    schedule.reverse"},
)

edited("huge_unroll", "blames_the_sum", {'"c"': '"b"'}, message="unrolling keeps their order")
edited(
    "huge_unroll",
    "two_whole_loops",
    {"_, _, k =": "_, j, k =", "_, steps =": "schedule.unroll(j)\n    _, steps ="},
    message=r"still: the compiled code holds \d+ copies",
)
edited(
    "huge_unroll",
    "nothing_unrolled",
    {"    schedule.unroll(steps)\n": ""},
    message="keeps an unrolled loop",
)
edited("huge_unroll", "a_word_for_a_letter", {'"c"': '"cause c"'}, message="the letter of the")
right_edited(
    "huge_unroll",
    "columns_inside",
    {
        "_, _, k =": "_, j, k =",
        "_, steps =": "k, steps =",
        "unroll(steps)": "unroll(steps)\n    _, lanes = schedule.split(j, [None, 8])\n"
        "    schedule.reorder(k, steps, lanes)",
    },
)


@mutant("lost_bound", message="parts of 2 rows or more")
def parts_of_one_row(schedule):
    block = schedule.get_sblock("C")
    write_back = schedule.cache_write(block, 0, "local")
    i, j, k = schedule.get_loops(block)
    schedule.reorder(i, k, j)
    schedule.parallel(i)
    schedule.reverse_compute_at(write_back, i)
    return "c"


@mutant("column_walk", message=r"\d+ of 1000 accesses miss")
def a_copy_too_large_for_registers(schedule):
    schedule.cache_read(schedule.get_sblock("Y"), 0, "local")
    return "d"


edited(
    "recomputed_stage",
    "inside_a_loop_of_one_iteration",
    {
        'i, _, _ = schedule.get_loops(schedule.get_sblock("Y"))': "i, _, _ = schedule.get_loops("
        'schedule.get_sblock("Y"))\n    i, _ = schedule.split(i, [1, None])'
    },
    message="the stage B, computed inside a loop of Y",
)
edited(
    "written_every_step",
    "in_a_loop_of_one_iteration",
    {
        "i, _ = schedule.get_loops(block)": "i, _ = schedule.get_loops(block)\n"
        "    i, _ = schedule.split(i, [1, None])"
    },
    message="the copy in a loop of the sum",
)
edited(
    "huge_unroll",
    "told_to_unroll_all",
    {
        "    schedule.unroll(steps)": "    schedule.unroll(steps)\n"
        '    schedule.annotate(k, "pragma_auto_unroll_max_step", 9999)',
        "_, _, k =": "i, _, k =",
        "_, steps =": "k, steps =",
    },
    message="as their primitives say, without annotations",
)


@mutant("guarded_lanes", message="side by side")
def lanes_far_apart(schedule):
    (i,) = schedule.get_loops(schedule.get_sblock("Y"))
    lanes, rest = schedule.split(i, [8, None])
    schedule.reorder(rest, lanes)
    schedule.vectorize(lanes)
    return "c"


@mutant("guarded_lanes", message="only elements of the output|no access outside")
def bound_left_out(schedule):
    (i,) = schedule.get_loops(schedule.get_sblock("Y"))
    _, lanes = schedule.split(i, [None, 16], disable_predication=True)
    schedule.vectorize(lanes)
    return "c"


@mutant("parallel_sum", message="of its own")
def equals_any_letter(schedule, C):
    class Letter(str):
        def __eq__(self, other):
            return True

        __hash__ = str.__hash__

    i, j = C.op.axis
    (k,) = C.op.reduce_axis
    schedule[C].reorder(i, k, j)
    schedule[C].parallel(i)
    return Letter("b")


edited(
    "lost_bound",
    "parts_of_one_tile",
    {"[None, 3]": "[None, 21]"},
    message="keeps parts of 2 rows or more, cut into tiles: 2 or more per part",
)


edited(
    "huge_unroll",
    "unrolls_half_of_k",
    {"_, steps = schedule.split(k, [None, 4])": "_, steps = schedule.split(k, [2, None])"},
    message="copies of the multiply-add",
)

edited(
    "recomputed_stage",
    "letter_by_the_rows",
    {'return "a"': 'return "abcd"[int(schedule.get(i).extent) % 4]'},
    message="computed many times",
)


# Right for the sizes that `hunt` shows, and some more.
edited(
    "lost_bound",
    "parts_of_20_of_many_rows",
    {"[None, 21]": "[None, 21 if int(schedule.get(i).extent) < 200 else 20]"},
    message="written by two iterations",
)
edited(
    "column_walk",
    "no_tiles_of_wide_matrices",
    {
        "    i_outer, i_inner": "    if int(schedule.get(j).extent) > 5000:\n"
        '        return "d"\n    i_outer, i_inner'
    },
    message="of 1000 accesses miss",
)
edited(
    "guarded_lanes",
    "wide_vectors_of_long_rows",
    {"[None, 8]": "[None, 8 if int(schedule.get(i).extent) < 100_000 else 32]"},
    message="a bound is tested",
)
edited(
    "inner_parallel",
    "many_rows_in_two_parts",
    {
        "    schedule.parallel(i)": "    if int(schedule.get(i).extent) > 20_000:\n"
        "        _, i = schedule.split(i, [2, None])\n    schedule.parallel(i)"
    },
    message="started and awaited",
)


# Of a stage, a copy alone is inside the loop, or the stage itself in another buffer.
edited(
    "recomputed_stage",
    "copy_inside",
    {
        'schedule.compute_at(schedule.get_sblock("B"), i)': "schedule.compute_at(copy, i)",
        "    i, _, _ =": '    copy = schedule.cache_write(schedule.get_sblock("B"), 0, "local")\n'
        "    i, _, _ =",
    },
    message="keeps the stage B, computed inside a loop of Y",
)
edited(
    "recomputed_stage",
    "columns_again_in_a_local_buffer",
    {
        "    i, _, _ =": '    schedule.set_scope(schedule.get_sblock("B"), 0, "local")\n'
        "    _, i, _ ="
    },
    message=r"still: each element of B is computed \d+ times",
)
right_edited(
    "recomputed_stage",
    "in_a_local_buffer",
    {
        "    i, _, _ =": '    schedule.set_scope(schedule.get_sblock("B"), 0, "local")\n'
        "    i, _, _ ="
    },
)
right_edited(
    "recomputed_stage",
    "rows_in_fives_in_a_local_buffer",
    {
        "    i, _, _ =": '    schedule.set_scope(schedule.get_sblock("B"), 0, "local")\n'
        "    i, _, _ =",
        "    schedule.compute_at": "    i, _ = schedule.split(i, [None, 5])\n"
        "    schedule.compute_at",
    },
)
right_edited(
    "recomputed_stage",
    "step_by_step",
    {
        "i, _, _ =": "i, j, k =",
        '    schedule.compute_at(schedule.get_sblock("B"), i)': "    schedule.reorder(i, k, j)\n"
        '    schedule.compute_at(schedule.get_sblock("B"), k)',
    },
)

# Right up to some hundred rows, or steps of the sum.
edited(
    "parallel_sum",
    "many_rows_serial",
    {
        "    schedule[C].parallel(i)": "    if int(C.shape[0]) < 500:\n"
        "        schedule[C].parallel(i)"
    },
    message="keeps a parallel loop",
)
edited(
    "parallel_sum",
    "long_sums_shared",
    {"parallel(i)": "parallel(i if int(k.dom.extent) <= 1000 else k)"},
    message="written by two iterations",
)
edited(
    "column_walk",
    "stores_the_output_by_columns",
    {
        "    i, j =": '    schedule.transform_layout("Y", ("write", 0), lambda i, j: (j, i))\n'
        "    i, j ="
    },
    message="as the caller passes it",
)
edited(
    "written_every_step",
    "every_step_of_many_rows",
    {
        "i, _ =": "i, k =",
        "write_back, i)": "write_back, i if int(schedule.get(i).extent) <= 20_000 else k)",
    },
    message="is written 32 times",
)

# A row of any length as one vector: TVM compiles those of 32,767 lanes at most.
right_edited(
    "inner_parallel",
    "columns_in_lanes",
    {"i, _ =": "i, j =", "parallel(i)": "parallel(i)\n    schedule.vectorize(j)"},
)
right_edited(
    "inner_parallel",
    "five_rows_each_with_columns_in_lanes",
    {
        "i, _ =": "i, j =",
        "    schedule.parallel(i)": "    part, _ = schedule.split(i, [None, 5])\n"
        "    schedule.vectorize(j)\n    schedule.parallel(part)",
    },
)
right_edited(
    "guarded_lanes",
    "a_single_vector",
    {"    _, lanes = schedule.split(i, [None, 8])\n": "", "vectorize(lanes)": "vectorize(i)"},
)

# TVM allocates a buffer that is used in one iteration alone there, whatever its scope.
right_edited("false_sharing", "a_buffer_of_scope_global_for_each_row", {'"local"': '"global"'})
right_edited(
    "parallel_sum",
    "a_buffer_of_scope_global_for_each_row",
    {
        "    i, j = C.op.axis\n": '    sums = schedule.cache_write(C, "global")\n'
        "    i, _ = C.op.axis\n    schedule[sums].compute_at(schedule[C], i)\n"
        "    row, j = sums.op.axis\n",
        "(k,) = C.op": "(k,) = sums.op",
        "schedule[C].reorder(i, k, j)": "schedule[sums].reorder(row, k, j)",
    },
)


edited(
    "lost_bound",
    "four_parts_in_tiles_of_three",
    {"schedule.split(i, [None, 21])": "schedule.split(i, [4, None])"},
    message="the symptom gone",
)
