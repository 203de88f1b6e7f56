"""Wrong solutions of the puzzles, and right ones that are not the reference."""

from tests.mutants import edited, mutant, right, right_edited

edited(
    "split_loop",
    "factor_outside",
    {"[None, factor]": "[factor, None]"},
    message=r"line 1: `for i_0 in serial\(\d\):`, but should be `for i_0 in serial\(\d+\):`",
)


@mutant("split_loop", message=r"line 1: .* outermost first")
def outer_rounded_down(schedule, factor):
    (i,) = schedule.get_loops(schedule.get_sblock("Y"))
    schedule.split(i, [int(schedule.get(i).extent) // factor, None])


@mutant("split_loop", message=r"line 1: .* the factors of split")
def always_fours(schedule, factor):
    (i,) = schedule.get_loops(schedule.get_sblock("Y"))
    factor = 3 if factor == 4 else 4
    schedule.split(i, [None, factor])


edited(
    "split_loop",
    "guard_switched_off",
    {"[None, factor])": "[None, factor], disable_predication=True)"},
    message="a guard around the block",
)


@right("split_loop")
def outer_computed(schedule, factor):
    (i,) = schedule.get_loops("Y")
    extent = int(schedule.get(i).extent)
    schedule.split(i, [(extent + factor - 1) // factor, factor])


edited(
    "columns_first",
    "rows_first_as_before",
    {"reorder(j, i)": "reorder(i, j)"},
    message="line 1: `for i in .* the order of the loops given to reorder",
)
edited(
    "columns_first",
    "parallel_as_well",
    {"    schedule.reorder(j, i)": "    schedule.reorder(j, i)\n    schedule.parallel(j)"},
    message="line 1: `for j in parallel",
)


@right("row_by_row")
def local_for_a_moment(schedule):
    schedule.set_scope("B", 0, "local")
    schedule.compute_at("B", schedule.get_loops("Y")[0])
    schedule.set_scope("B", 0, "global")


@right("columns_first")
def through_a_split(schedule):
    i, j = schedule.get_loops("Y")
    outer, inner = schedule.split(j, [None, 1], preserve_unit_iters=False)
    schedule.reorder(outer, inner, i)
    schedule.fuse(outer, inner)


@mutant("one_loop", message=r"line 1: `for i_j_fused_0 in serial\(\d+\):`")
def cut_again(schedule):
    i, j = schedule.get_loops(schedule.get_sblock("Y"))
    schedule.split(schedule.fuse(i, j), [None, 2])


edited(
    "one_loop",
    "column_by_column",
    {"schedule.fuse(i, j)": "schedule.reorder(j, i)\n    schedule.fuse(j, i)"},
    message=r"row by row: .*\n.*Y\[1, 0\]",
)


@mutant("one_loop", message="line 1: `for i in serial")
def left_as_it_is(schedule):
    schedule.get_loops(schedule.get_sblock("Y"))


edited(
    "rows_to_threads",
    "columns_in_parallel",
    {"i, _ =": "_, i ="},
    message="line 1: `for i in serial.* should be `for i in parallel",
)
edited(
    "rows_to_threads",
    "all_elements_at_once",
    {"i, _ =": "i, j =", "schedule.parallel(i)": "schedule.parallel(schedule.fuse(i, j))"},
    message="line 1: `for i_j_fused in parallel",
)


edited(
    "columns_to_lanes",
    "rows_in_lanes",
    {"_, j =": "j, _ ="},
    message="line 1: `for i in vectorized",
)
edited(
    "columns_to_lanes",
    "unrolled_instead",
    {"vectorize(j)": "unroll(j)"},
    message="line 2: `for j in unrolled",
)


edited(
    "written_out",
    "rows_written_out",
    {"_, k =": "k, _ ="},
    message="line 1: `for i in unrolled",
)


@mutant("written_out", message="line 1: `for i in unrolled")
def both_written_out(schedule):
    for loop in schedule.get_loops(schedule.get_sblock("Y")):
        schedule.unroll(loop)


@mutant("no_middle_stage", message="line 3: `B: B <- X`, but should be `Y: Y <- X`")
def fused_loops_only(schedule):
    i, _ = schedule.get_loops(schedule.get_sblock("Y"))
    schedule.compute_at(schedule.get_sblock("B"), i)


@mutant("no_middle_stage", message="line 3: `B: B <- X`, but should be `Y: Y <- X`")
def nothing_done(schedule):
    schedule.get_sblock("B")


@right("no_middle_stage")
def into_the_producer(schedule):
    schedule.reverse_compute_inline(schedule.get_sblock("Y"))


edited(
    "row_by_row",
    "element_by_element",
    {"i, _ =": "_, i ="},
    message="line 4: `Y: Y <- B`.* a loop of the consumer: that over rows",
)


@mutant("row_by_row", message="line 3: `Y: Y <- X`, but should be `B: B <- X`")
def inlined_instead(schedule):
    schedule.compute_inline(schedule.get_sblock("B"))


@right("row_by_row")
def the_consumer_moves(schedule):
    i, _ = schedule.get_loops(schedule.get_sblock("B"))
    schedule.reverse_compute_at(schedule.get_sblock("Y"), i)


@mutant("follow_the_sum", message="line 1: `for i in parallel")
def in_parallel_as_well(schedule):
    (i,) = schedule.get_loops(schedule.get_sblock("Y"))
    schedule.parallel(i)
    schedule.compute_at(schedule.get_sblock("B"), i)


@mutant("follow_the_sum", message="line 4: `for i in serial")
def not_moved(schedule):
    schedule.get_loops(schedule.get_sblock("B"))


@right("follow_the_sum")
def the_producer_moves(schedule):
    (i,) = schedule.get_loops(schedule.get_sblock("Y"))
    schedule.compute_at(schedule.get_sblock("B"), i)


edited(
    "row_copy",
    "copies_all_of_it_first",
    {"    i, _ = schedule.get_loops(block)\n    schedule.compute_at(copy, i)": ""},
    message="line 4: `for i in .* moves it into the loop over rows",
)
edited(
    "row_copy",
    "copies_two_elements_at_a_time",
    {"i, _ =": "_, i ="},
    message="line 2: `for j in ",
)
edited(
    "row_copy",
    "copied_to_memory",
    {'0, "local")': '0, "global")'},
    message="line 3: `X_global: X_global <- X`",
)


edited(
    "local_sum",
    "written_at_the_end",
    {"    i, _ = schedule.get_loops(block)\n    schedule.reverse_compute_at(write_back, i)": ""},
    message="line 4: .* moves it into the loop over rows",
)
edited(
    "local_sum",
    "written_at_every_step",
    {"i, _ =": "_, i ="},
    message="line 4: ",
)


edited(
    "zero_first",
    "all_zeroed_first",
    {"_, k =": "k, _ ="},
    message="line 3: `for i in .* right before it",
)


@mutant("zero_first", message="line 2: .* right before it")
def not_decomposed(schedule):
    schedule.get_loops(schedule.get_sblock("Y"))


edited(
    "partial_sums",
    "a_sum_per_step",
    {"_, k_inner =": "k_inner, _ ="},
    message=r"line 6: `for k_0 in serial",
)
edited(
    "partial_sums",
    "split_only",
    {"    schedule.rfactor(k_inner, factor_axis=0)": ""},
    message="line 4: `Y: Y <- X, Y`",
)
edited(
    "partial_sums",
    "factor_partial_sums_of_neighbours",
    {"[None, factor]": "[factor, None]"},
    message=r"line 2: `for k_0 in serial",
)
right_edited("partial_sums", "stored_by_rows", {"factor_axis=0": "factor_axis=1"})
right_edited(
    "partial_sums",
    "outer_loop_fused_of_two",
    {
        "_, k_inner = schedule.split(k, [None, factor])": "first, second, k_inner = "
        "schedule.split(k, [None, 1, factor])\n    schedule.fuse(first, second)"
    },
)


@mutant("partial_sums", message="line \\d")
def no_partial_sums_of_one_element(schedule, factor):
    block = schedule.get_sblock("Y")
    _, k = schedule.get_loops(block)
    if int(schedule.get(k).extent) > factor:
        _, k_inner = schedule.split(k, [None, factor])
        schedule.rfactor(k_inner, factor_axis=0)


edited(
    "stored_by_columns",
    "as_it_was",
    {"(i, j))": "(j, i))"},
    message="line 1: `B is stored as",
)


@mutant("stored_by_columns", message="line 2: .* old indices")
def loops_turned_as_well(schedule):
    schedule.transform_layout("B", ("write", 0), lambda j, i: (i, j))
    j, i = schedule.get_loops("B")
    schedule.reorder(i, j)


@right("stored_by_columns")
def from_the_reader(schedule):
    schedule.transform_layout("Y", ("read", 0), lambda j, i: (i, j))


edited(
    "grid_of_threads",
    "rows_and_columns_swapped",
    {'(i, "blockIdx.x")': '(i, "threadIdx.x")', '(j, "threadIdx.x")': '(j, "blockIdx.x")'},
    message="line 1: `for i in threadIdx.x",
)
edited(
    "grid_of_threads",
    "one_thread_per_row",
    {'    schedule.bind(j, "threadIdx.x")': ""},
    message="line 2: `for j in serial",
)


@mutant("columns_first", message="line 1: `for i in serial")
def where_there_are_more_columns_than_rows(schedule):
    i, j = schedule.get_loops("Y")
    if int(schedule.get(j).extent) > int(schedule.get(i).extent):
        schedule.reorder(j, i)


@mutant("split_loop", message="line 2: `for ")
def no_more_than_the_length(schedule, factor):
    (i,) = schedule.get_loops("Y")
    schedule.split(i, [None, min(factor, int(schedule.get(i).extent))])


@right("one_loop")
def of_the_block(schedule):
    _, j = schedule.get_loops("Y")
    columns = int(schedule.get(j).extent)
    schedule.transform_block_layout("Y", lambda i, j: (i * columns + j,))


@mutant("one_loop", message=r"it computes Y\[1, 0\]")
def of_the_block_column_by_column(schedule):
    i, _ = schedule.get_loops("Y")
    rows = int(schedule.get(i).extent)
    schedule.transform_block_layout("Y", lambda i, j: (j * rows + i,))


@right("written_out")
def in_two_loops(schedule):
    _, k = schedule.get_loops("Y")
    for loop in schedule.split(k, [None, 1]):
        schedule.unroll(loop)


@right("row_copy")
def a_row_of_rows(schedule):
    copy = schedule.cache_read("Y", 0, "local")
    schedule.compute_at(copy, schedule.get_loops("Y")[0], preserve_unit_loops=True)


@mutant("one_loop", message=r"row by row: iteration \d+ computes")
def blocks_of_columns(schedule):
    i, j = schedule.get_loops(schedule.get_sblock("Y"))
    outer, inner = schedule.split(j, [2, None])
    schedule.reorder(outer, i, inner)
    schedule.fuse(outer, i, inner)


@right("one_loop")
def loops_from_a_layout(schedule):
    block = schedule.get_sblock("Y")
    columns = int(schedule.get(schedule.get_loops(block)[1]).extent)
    schedule.transform_block_layout(block, lambda i, j: (i * columns + j,))


edited(
    "rows_to_threads",
    "many_rows_only",
    {"schedule.parallel(i)": "if int(schedule.get(i).extent) >= 10:\n        schedule.parallel(i)"},
    message="should be `for i in parallel",
)
edited(
    "columns_to_lanes",
    "whole_registers_only",
    {"schedule.vectorize(j)": "if int(schedule.get(j).extent) > 3:\n        schedule.vectorize(j)"},
    message="should be `for j in vectorized",
)
edited(
    "zero_first",
    "long_rows_only",
    {
        "schedule.decompose_reduction(block, k)": "if int(schedule.get(k).extent) > 4:\n"
        "        schedule.decompose_reduction(block, k)"
    },
    message="the zeroing goes right before it",
)
edited(
    "partial_sums",
    "parts_of_a_row",
    {
        "_, k_inner = schedule.split(k, [None, factor])": "part, step = schedule.split("
        "k, [factor, None])",
        "schedule.rfactor(k_inner": "schedule.reorder(step, part)\n    schedule.rfactor(part",
    },
    message=r"takes one element of a row in \d",
)
right_edited("partial_sums", "partial_sums_side_by_side", {"factor_axis=0": "factor_axis=1"})
right_edited(
    "row_copy",
    "copy_local_afterwards",
    {
        '"local")\n': '"global")\n',
        "schedule.compute_at(copy, i)": "schedule.compute_at(copy, i)\n"
        '    schedule.set_scope(copy, 0, "local")',
    },
)
right_edited(
    "local_sum",
    "sum_local_afterwards",
    {
        '"local")\n': '"global")\n    schedule.set_scope(block, 0, "local")\n',
    },
)


@right("local_sum")
def of_a_reindexed_buffer(schedule):
    block = schedule.get_sblock("Y")
    write_back = schedule.reindex(block, ("write", 0))
    schedule.set_scope(block, 0, "local")
    schedule.reverse_compute_at(write_back, schedule.get_loops(block)[0])


@mutant("split_loop", message="in unrolled")
def inner_unrolled(schedule, factor):
    (i,) = schedule.get_loops(schedule.get_sblock("Y"))
    _, inner = schedule.split(i, [None, factor])
    if factor <= 4:
        schedule.unroll(inner)


@mutant("columns_first", message="column by column")
def fuse_and_split(schedule):
    block = schedule.get_sblock("Y")
    i, j = schedule.get_loops(block)
    rows, columns = (int(schedule.get(l).extent) for l in (i, j))
    f = schedule.fuse(i, j)
    schedule.split(f, [columns, rows])


@mutant("columns_first", message="column by column")
def not_if_square(schedule):
    block = schedule.get_sblock("Y")
    i, j = schedule.get_loops(block)
    rows, columns = (int(schedule.get(l).extent) for l in (i, j))
    if rows != columns:
        schedule.reorder(j, i)


@mutant("one_loop", message="row by row")
def column_by_column_if_square(schedule):
    block = schedule.get_sblock("Y")
    i, j = schedule.get_loops(block)
    rows, columns = (int(schedule.get(l).extent) for l in (i, j))
    if rows == columns:
        schedule.reorder(j, i)
        schedule.fuse(j, i)
    else:
        schedule.fuse(i, j)


@mutant("partial_sums", message="line \\d")
def at_most_8(schedule, factor):
    block = schedule.get_sblock("Y")
    _, k = schedule.get_loops(block)
    f = min(factor, 8)
    _, p = schedule.split(k, [None, f])
    schedule.rfactor(p, 0)


@mutant("partial_sums", message="line \\d")
def nothing_for_one(schedule, factor):
    block = schedule.get_sblock("Y")
    _, k = schedule.get_loops(block)
    if factor > 1:
        _, p = schedule.split(k, [None, factor])
        schedule.rfactor(p, 0)


@mutant("stored_by_columns", message="to be stored in B")
def transposed_unless_square(schedule):
    b = schedule.get_sblock("B")
    j, i = schedule.get_loops(b)
    columns, rows = (int(schedule.get(l).extent) for l in (j, i))
    if rows != columns:
        schedule.transform_layout("B", ("write", 0), lambda a, c: (c, a))


edited(
    "split_loop",
    "no_factor_of_seven_or_more",
    {"[None, factor]": "[None, factor if factor not in (7, 11, 13) else 8]"},
    message="the factors of split",
)

edited(
    "split_loop",
    "three_loops_of_one",
    {"[None, factor]": "[1, None, factor]"},
    message="line 1: `for ",
)
edited(
    "split_loop",
    "no_factor_of_one",
    {"    schedule.split(": "    if factor > 1:\n        schedule.split("},
    message="line 2: ",
)
edited(
    "one_loop",
    "split_once_more",
    {"    schedule.fuse(i, j)": "    schedule.split(schedule.fuse(i, j), [None, 1])"},
    message="line 2: ",
)


@mutant("split_loop", message="the factors of split")
def at_most_64_iterations(schedule, factor):
    (i,) = schedule.get_loops(schedule.get_sblock("Y"))
    schedule.split(i, [None, min(factor, 64)])


@mutant("columns_to_lanes", message="vectorized")
def rows_of_a_single_column(schedule):
    i, j = schedule.get_loops(schedule.get_sblock("Y"))
    schedule.vectorize(j if int(schedule.get(j).extent) > 1 else i)


@mutant("grid_of_threads", message="whatever the sizes are")
def no_thread_for_a_single_column(schedule):
    i, j = schedule.get_loops(schedule.get_sblock("Y"))
    schedule.bind(i, "blockIdx.x")
    if int(schedule.get(j).extent) > 1:
        schedule.bind(j, "threadIdx.x")


@mutant("split_loop", message="the factors of split")
def large_factors_that_divide(schedule, factor):
    (i,) = schedule.get_loops(schedule.get_sblock("Y"))
    extent = int(schedule.get(i).extent)
    if factor > 4 and extent % factor:
        factor = max(each for each in range(1, factor) if extent % each == 0)
    schedule.split(i, [None, factor])


@mutant("rows_to_threads", message="parallel")
def vectors_where_eight_divides(schedule):
    i, j = schedule.get_loops(schedule.get_sblock("Y"))
    schedule.parallel(i)
    if int(schedule.get(j).extent) % 8 == 0:
        schedule.vectorize(j)


edited(
    "columns_first",
    "unless_far_taller_than_wide",
    {
        "schedule.reorder(j, i)": "rows, columns = (int(schedule.get(each).extent) "
        "for each in (i, j))\n    schedule.reorder(*((j, i) if rows < 64 * columns else (i, j)))"
    },
    message="the order of the loops given to reorder",
)


# Right up to a size.
edited(
    "split_loop",
    "a_third_loop_for_long_rows",
    {
        "[None, factor]": "[None, factor] if int(schedule.get(i).extent) < 50_000 "
        "else [None, factor, 1]"
    },
    message="i_1 in serial",
)
edited(
    "rows_to_threads",
    "many_rows_in_a_thousand_parts",
    {
        "    schedule.parallel(i)": "    if int(schedule.get(i).extent) > 20_000:\n"
        "        i, _ = schedule.split(i, [1000, None])\n    schedule.parallel(i)"
    },
    message="in parallel",
)
edited(
    "columns_to_lanes",
    "lanes_of_4096_for_long_rows",
    {
        "    schedule.vectorize(j)": "    if int(schedule.get(j).extent) > 50_000:\n"
        "        _, j = schedule.split(j, [None, 4096])\n    schedule.vectorize(j)"
    },
    message="in vectorized",
)
edited(
    "grid_of_threads",
    "as_many_blocks_as_there_may_be",
    {
        '    schedule.bind(i, "blockIdx.x")': "    if int(schedule.get(i).extent) > 65_535:\n"
        "        i, _ = schedule.split(i, [65_535, None])\n"
        '    schedule.bind(i, "blockIdx.x")'
    },
    message="blockIdx.x",
)
right_edited(
    "row_by_row",
    "from_the_consumers_side",
    {
        '    i, _ = schedule.get_loops(schedule.get_sblock("Y"))\n'
        '    schedule.compute_at(schedule.get_sblock("B"), i)': (
            '    B, Y = schedule.get_sblock("B"), schedule.get_sblock("Y")\n'
            "    schedule.reverse_compute_at(Y, schedule.get_loops(B)[0])"
        )
    },
)


# Pictures do not show in which order a buffer is stored.
edited(
    "row_by_row",
    "stores_b_by_columns",
    {
        "    i, _ =": '    schedule.transform_layout("B", ("write", 0), lambda i, j: (j, i))\n'
        "    i, _ ="
    },
    message="stored under other indices",
)
edited(
    "row_copy",
    "stores_the_copy_by_columns",
    {
        "    i, _ =": '    schedule.transform_layout(copy, ("write", 0), lambda i, j: (j, i))\n'
        "    i, _ ="
    },
    message="stored under other indices",
)


# Loops of the same extents exchanged, which the picture does not show.
@mutant("row_by_row", message="row by row: iteration 1 computes Y.0, 1")
def column_by_column_of_a_square(schedule):
    i, j = schedule.get_loops("Y")
    if int(schedule.get(i).extent) == int(schedule.get(j).extent):
        schedule.reorder(j, i)
        i = j
    schedule.compute_at("B", i)


@mutant("no_middle_stage", message="row by row: iteration 1 computes Y.0, 1")
def reordered_if_square(schedule):
    schedule.compute_inline("B")
    i, j = schedule.get_loops("Y")
    if int(schedule.get(i).extent) == int(schedule.get(j).extent):
        schedule.reorder(j, i)


@mutant("no_middle_stage", message="row by row: iteration 1 computes Y.0, 1")
def into_the_producer_and_reordered_if_square(schedule):
    schedule.reverse_compute_inline("Y")
    i, j = schedule.get_loops("B")
    if int(schedule.get(i).extent) == int(schedule.get(j).extent):
        schedule.reorder(j, i)


@mutant("written_out", message="sum by sum: iteration 1 adds to Y.0.")
def rows_of_a_square_written_out(schedule):
    i, k = schedule.get_loops("Y")
    if int(schedule.get(i).extent) == int(schedule.get(k).extent):
        schedule.reorder(k, i)
        k = i
    schedule.unroll(k)


@mutant("stored_by_columns", message="row by row: iteration 1 computes Y.0, 1")
def read_column_by_column_if_square(schedule):
    schedule.transform_layout("B", ("write", 0), lambda j, i: (i, j))
    i, j = schedule.get_loops("Y")
    if int(schedule.get(i).extent) == int(schedule.get(j).extent):
        schedule.reorder(j, i)


@mutant("stored_by_columns", message="the loops of B as they are: iteration 1 reads X.0, 1")
def computed_row_by_row_if_square(schedule):
    schedule.transform_layout("B", ("write", 0), lambda j, i: (i, j))
    j, i = schedule.get_loops("B")
    if int(schedule.get(i).extent) == int(schedule.get(j).extent):
        schedule.reorder(i, j)


@mutant("row_copy", message="of them of another type")
def copied_as_doubles(schedule):
    copy = schedule.cache_read("Y", "X", "local")
    row, _ = schedule.get_loops("Y")
    schedule.compute_at(copy, row)
    schedule.unsafe_set_dtype(copy, 0, "float64")


@mutant("partial_sums", message="of them of another type")
def partial_sums_of_doubles(schedule, factor):
    _, k = schedule.get_loops("Y")
    outer, _ = schedule.split(k, [factor, None])
    schedule.unsafe_set_dtype(schedule.rfactor(outer, 0), 0, "float64")
