"""Wrong solutions of lab 6."""

from tests.mutants import edited, mutant, right


@mutant("online_softmax", message="(?s)one reduction.*2: ")
def two_passes(rows, columns):
    from tvm import te

    X = te.placeholder((rows, columns), name="X")
    j = te.reduce_axis((0, columns), name="j")
    k = te.reduce_axis((0, columns), name="k")
    largest = te.compute((rows,), lambda i: te.max(X[i, j], axis=j), name="largest")
    total = te.compute((rows,), lambda i: te.sum(te.exp(X[i, k] - largest[i]), axis=k))
    Y = te.compute((rows, columns), lambda i, c: te.exp(X[i, c] - largest[i]) / total[i], name="Y")
    return [X, Y]


@mutant("online_softmax", message="merge: ")
def sums_are_not_scaled(rows, columns):
    from tvm import te, tirx

    def merge(left, right):
        return te.max(left[0], right[0]), left[1] + right[1]

    def nothing(*types):
        return te.min_value(types[0]), tirx.const(0, types[1])

    reducer = te.comm_reducer(merge, nothing)
    X = te.placeholder((rows, columns), name="X")
    j = te.reduce_axis((0, columns), name="j")
    one = tirx.const(1, "float32")
    m, s = te.compute((rows,), lambda i: reducer((X[i, j], one), axis=j), name="state")
    Y = te.compute((rows, columns), lambda i, c: te.exp(X[i, c] - m[i]) / s[i], name="Y")
    return [X, Y]


@mutant("online_softmax", message="(?s)masked scores.*te.min_value")
def nothing_is_minus_infinity(rows, columns):
    from tvm import te, tirx

    def merge(left, right):
        m = te.max(left[0], right[0])
        return m, left[1] * te.exp(left[0] - m) + right[1] * te.exp(right[0] - m)

    def nothing(*types):
        return tirx.const(float("-inf"), types[0]), tirx.const(0, types[1])

    reducer = te.comm_reducer(merge, nothing)
    X = te.placeholder((rows, columns), name="X")
    j = te.reduce_axis((0, columns), name="j")
    one = tirx.const(1, "float32")
    m, s = te.compute((rows,), lambda i: reducer((X[i, j], one), axis=j), name="state")
    Y = te.compute((rows, columns), lambda i, c: te.exp(X[i, c] - m[i]) / s[i], name="Y")
    return [X, Y]


@mutant("online_softmax", message="(?s)near -500.*below every float32")
def nothing_is_zero(rows, columns):
    from tvm import te, tirx

    def merge(left, right):
        m = te.max(left[0], right[0])
        return m, left[1] * te.exp(left[0] - m) + right[1] * te.exp(right[0] - m)

    def nothing(*types):
        return tirx.const(0, types[0]), tirx.const(0, types[1])

    reducer = te.comm_reducer(merge, nothing)
    X = te.placeholder((rows, columns), name="X")
    j = te.reduce_axis((0, columns), name="j")
    one = tirx.const(1, "float32")
    m, s = te.compute((rows,), lambda i: reducer((X[i, j], one), axis=j), name="state")
    Y = te.compute((rows, columns), lambda i, c: te.exp(X[i, c] - m[i]) / s[i], name="Y")
    return [X, Y]


@mutant("fuse_epilogue", message="one statement after the product")
def does_nothing(schedule, stages):
    pass


@mutant("fuse_epilogue", message="one statement after the product")
def inlines_into_the_last(schedule, stages):
    for stage in stages[:-1]:
        schedule.compute_inline(schedule.get_sblock(stage))


@mutant("fuse_epilogue", message="one statement after the product")
def moves_them_into_the_tile(schedule, stages):
    _, j_outer = schedule.get_loops(schedule.get_sblock("C_update"))[:2]
    for stage in stages:
        schedule.reverse_compute_at(schedule.get_sblock(stage), j_outer)


@mutant("fuse_epilogue", message="one statement after the product")
def only_the_first_stage(schedule, stages):
    schedule.reverse_compute_inline(schedule.get_sblock(stages[0]))


@mutant("count_lines", message="a statement over five lines")
def lines_of_the_file(source):
    lines = [each.strip() for each in source.splitlines()]
    return sum(bool(each) and not each.startswith("#") for each in lines)


@mutant("count_lines", message="docstring over four lines")
def docstrings_count(source):
    import io
    import tokenize

    tokens = tokenize.generate_tokens(io.StringIO(source).readline)
    return sum(each.type == tokenize.NEWLINE for each in tokens)


@mutant("count_lines", message="(?s)expected: 4 logical lines in a function with two decorators")
def statements_of_the_tree(source):
    import ast

    found = [each for each in ast.walk(ast.parse(source)) if isinstance(each, ast.stmt)]
    strings = [
        each
        for each in found
        if isinstance(each, ast.Expr) and isinstance(getattr(each.value, "value", None), str)
    ]
    return len(found) - len(strings)


@mutant("time_to_first_result", message="that goes on after it")
def waits_for_the_end(command, *, runs):
    import statistics
    import subprocess
    import time

    seconds = []
    for _ in range(runs):
        started = time.perf_counter()
        subprocess.run(command, capture_output=True, check=True)
        seconds.append(time.perf_counter() - started)
    return statistics.median(seconds)


@mutant("time_to_first_result", message="(?s)a process starts when the one before has ended")
def does_not_wait(command, *, runs):
    import statistics
    import subprocess
    import time

    seconds = []
    for _ in range(runs):
        started = time.perf_counter()
        process = subprocess.Popen(command, stdout=subprocess.PIPE)
        assert process.stdout is not None
        process.stdout.readline()
        seconds.append(time.perf_counter() - started)
    return statistics.median(seconds)


@mutant("time_to_first_result", message="(?s)the median of runs.*a mean is moved")
def takes_the_mean(command, *, runs):
    import statistics
    import subprocess
    import time

    seconds = []
    for _ in range(runs):
        started = time.perf_counter()
        with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
            assert process.stdout is not None
            process.stdout.readline()
            seconds.append(time.perf_counter() - started)
            process.stdout.read()
    return statistics.mean(seconds)


@mutant(
    "time_to_first_result",
    message="a RuntimeError for a program whose first run of three ends with",
)
def overlooks_failures(command, *, runs):
    import statistics
    import subprocess
    import time

    seconds = []
    for _ in range(runs):
        started = time.perf_counter()
        with subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        ) as process:
            assert process.stdout is not None
            process.stdout.readline()
            seconds.append(time.perf_counter() - started)
            process.stdout.read()
    return statistics.median(seconds)


@mutant("pays_after", message="(?s)None for the ratio.*no significant difference")
def believes_the_median(load_seconds, baseline_ms, ratio):
    import math

    if ratio[0] >= 1:
        return None
    return max(0, math.ceil(load_seconds * 1e3 / (baseline_ms * (1 - ratio[0]))))


@mutant("pays_after", message="rounded up")
def rounds_down(load_seconds, baseline_ms, ratio):
    if ratio[2] >= 1:
        return None
    return max(0, int(load_seconds * 1e3 / (baseline_ms * (1 - ratio[0]))))


@mutant("pays_after", message="seconds to milliseconds")
def seconds_over_milliseconds(load_seconds, baseline_ms, ratio):
    import math

    if ratio[2] >= 1:
        return None
    return max(0, math.ceil(load_seconds / (baseline_ms * (1 - ratio[0]))))


@mutant("pays_after", message="nothing to save up for")
def negative_calls(load_seconds, baseline_ms, ratio):
    import math

    if ratio[2] >= 1:
        return None
    return math.ceil(load_seconds * 1e3 / (baseline_ms * (1 - ratio[0])))


@mutant("pays_after", message="which of the two questions is asked first")
def asks_for_the_load_first(load_seconds, baseline_ms, ratio):
    import math

    if load_seconds <= 0:
        return 0
    if ratio[2] >= 1:
        return None
    return math.ceil(load_seconds * 1e3 / (baseline_ms * (1 - ratio[0])))


edited(
    "count_lines",
    "a_string_is_code",
    {"(*beside, tokenize.STRING)": "beside"},
    message="nothing but a string",
)
edited(
    "pays_after",
    "an_interval_that_ends_at_one",
    {"high >= 1": "high > 1"},
    message="the interval ends at 1|it is as fast",
)
edited(
    "online_softmax",
    "nothing_has_a_sum_of_one",
    {"tirx.const(0, types[1])": "tirx.const(1, types[1])"},
    message="a sum of 0",
)
edited(
    "online_softmax",
    "merges_elements_only",
    {"right[1] * te.exp(": "te.exp("},
    message="two merged states",
)
edited(
    "online_softmax",
    "nothing_is_a_small_number",
    {"te.min_value(types[0])": "tirx.const(-1e4, types[0])"},
    message="a sum of 0",
)
edited(
    "pays_after",
    "one_call_more_than_needed",
    {"math.ceil(load_seconds * 1e3 / saved_ms)": "math.floor(load_seconds * 1e3 / saved_ms) + 1"},
    message="is enough",
)


@right("pays_after")
def whole_number_of_numpy(load_seconds, baseline_ms, ratio):
    import numpy as np

    if not ratio[2] < 1:
        return None
    saved = baseline_ms / 1e3 * (1 - ratio[0])
    return np.int64(max(np.ceil(load_seconds / saved), 0))


edited(
    "time_to_first_result",
    "takes_an_empty_line_for_none",
    {"process.stdout.readline()": "process.stdout.readline().strip()"},
    message="whose first line is empty",
)
edited(
    "pays_after",
    "the_nearest_number",
    {"math.ceil(load_seconds * 1e3 / saved_ms)": "round(load_seconds * 1e3 / saved_ms)"},
    message="rounded up",
)


@mutant("count_lines", message="begins with a string")
def looks_at_the_first_token(source):
    import io
    import tokenize

    beside = (tokenize.COMMENT, tokenize.NL, tokenize.INDENT, tokenize.DEDENT)
    lines, first = 0, None
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.NEWLINE:
            lines += first != tokenize.STRING
            first = None
        elif token.type not in beside and first is None:
            first = token.type
    return lines


edited(
    "time_to_first_result",
    "stops_at_the_first_letter",
    {"process.stdout.readline()": "process.stdout.read(1)"},
    message="whose first line is complete after 0.25 s",
)
edited(
    "time_to_first_result",
    "overlooks_signals",
    {"if process.returncode or not line": "if process.returncode > 0 or not line"},
    message="ends with status -9",
)


edited(
    "time_to_first_result", "higher_median", {"statistics.median(": "statistics.median_high("},
    message="statistics.median",
)  # fmt: skip
edited(
    "time_to_first_result", "errors_fill_a_pipe",
    {"stderr=errors, text=True": "stderr=subprocess.PIPE, text=True",
     "                process.stdout.read()  # a closed pipe would end a program that prints more":
     "                process.stdout.read()\n                process.wait()\n"
     "                errors.write(process.stderr.read())"},
    message="the exit status 5 and 'and done'",
)  # fmt: skip


@mutant("time_to_first_result", message="the exit status 5 and 'and done'")
def reads_errors_after_the_line(command, *, runs):
    import statistics
    import subprocess
    import time

    taken = []
    for _ in range(runs):
        start = time.perf_counter()
        process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        assert process.stdout
        line = process.stdout.readline()
        taken.append(time.perf_counter() - start)
        _, errors = process.communicate()
        if process.returncode or not line:
            last = (errors.strip().splitlines() or [""])[-1]
            raise RuntimeError(f"exit status {process.returncode}: {last}")
    return statistics.median(taken)


@mutant("count_lines", message="EOF in multi-line string")
def cuts_at_the_mark(source):
    import io
    import tokenize

    beside = (tokenize.COMMENT, tokenize.NL, tokenize.INDENT, tokenize.DEDENT)
    cut = []
    for line in source.splitlines(keepends=True):
        whole = line.count("(") != line.count(")")
        cut.append(line if whole else line.partition("#")[0].rstrip() + "\n")
    lines = 0
    only_strings = True
    for token in tokenize.generate_tokens(io.StringIO("".join(cut)).readline):
        if token.type == tokenize.NEWLINE:
            lines += not only_strings
            only_strings = True
        elif token.type not in (*beside, tokenize.STRING):
            only_strings = False
    return lines


edited(
    "count_lines",
    "leaves_future_imports_out",
    {
        "            lines += not only_strings": (
            "            lines += not only_strings and not token.line.startswith('from __future__')"
        )
    },
    message="two imports|twelve pieces",
)
edited(
    "time_to_first_result",
    "waits_without_reading",
    {"process.stdout.read()": "process.wait()"},
    message="400000 letters after its first line",
)
edited(
    "time_to_first_result",
    "waits_for_words",
    {
        "line = process.stdout.readline()": (
            "line = process.stdout.readline()\n"
            "                while line and not line.strip():\n"
            "                    line = process.stdout.readline()"
        )
    },
    message="an empty one",
)
edited(
    "time_to_first_result",
    "looks_at_the_last_status",
    {
        "if process.returncode or not line:": (
            "if len(seconds) == runs and (process.returncode or not line):"
        )
    },
    message="whose first run",
)
edited(
    "time_to_first_result",
    "begins_with_the_started_process",
    {
        (
            "started = time.perf_counter()\n"
            "            with subprocess.Popen(\n"
            "                command, stdout=subprocess.PIPE, stderr=errors, "
            "text=True\n"
            "            ) as process:"
        ): (
            "with subprocess.Popen(\n"
            "                command, stdout=subprocess.PIPE, stderr=errors, "
            "text=True\n"
            "            ) as process:\n"
            "                started = time.perf_counter()"
        )
    },
    message="takes 0.3 s to start|the median of runs",
)
edited(
    "pays_after",
    "takes_the_middle_of_the_interval",
    {"value, _, high = ratio": ("_, low, high = ratio\n    value = (low + high) / 2")},
    message="middle is not the ratio|364|calls for",
)
edited(
    "pays_after",
    "rounds_before_it_rounds_up",
    {"(load_seconds * 1e3 / saved_ms)": "(round(load_seconds * 1e3 / saved_ms, 2))"},
    message="quarter of a millisecond",
)
edited(
    "pays_after", "wants_a_margin_below_1", {"high >= 1": "high >= 0.99"}, message="ends below 1"
)
edited(
    "pays_after",
    "gives_up_after_a_million",
    {"max(0, math": "min(10**6, math", "saved_ms))": "saved_ms)) if load_seconds > 0 else 0"},
    message="many calls",
)


edited(
    "fuse_epilogue",
    "three_stages_at_most",
    {"for stage in stages:": "for stage in list(stages)[:3]:"},
    message="one statement after the product",
)


@mutant("count_lines", message="returns a Same with __eq__ of its own")
def equals_anything(source):
    class Same(int):
        def __eq__(self, other):
            return True

        __hash__ = int.__hash__

    return Same(1)


edited(
    "online_softmax",
    "keeps_the_columns_of_as_many_rows",
    {
        "    reducer = te": "    columns = online_softmax.__dict__.setdefault(str(rows), columns)\n"
        "    reducer = te"
    },
    message="X and Y of shape",
)
edited(
    "time_to_first_result",
    "takes_warnings_for_failures",
    {"if process.returncode or not line": "if process.returncode or not line or said"},
    message="a warning",
)


edited(
    "time_to_first_result",
    "drops_the_first_of_five",
    {"median(seconds)": "median(seconds[1:] if runs > 4 else seconds)"},
    message="all of them",
)


edited(
    "online_softmax",
    "begins_with_a_tiny_sum",
    {"tirx.const(0, types[1])": "tirx.const(1e-9, types[1])"},
    message="a sum of 0",
)


edited(
    "fuse_epilogue",
    "takes_the_stages_out_of_the_list",
    {
        (
            "for stage in stages:\n"
            "        schedule.reverse_compute_inline(schedule.get_sblock(stage)"
            ")"
        ): (
            "while stages:\n"
            "        schedule.reverse_compute_inline(schedule.get_sblock(stages"
            ".pop(0)))"
        )
    },
    message="the stages given as they were|fuse_epilogue to run",
)


edited(
    "count_lines",
    "does_not_count_parentheses",
    {"only_strings = False": "only_strings = only_strings and token.string in '()'"},
    message="an empty tuple",
)


edited(
    "online_softmax",
    "an_even_number_of_many_columns",
    {
        'te.reduce_axis((0, columns), name="j")': (
            'te.reduce_axis((0, columns - columns % 2 if columns > 100000 else columns), name="j")'
        )
    },
    message="all 1000003 columns",
)


edited(
    "time_to_first_result",
    "in_the_root_folder",
    {
        "text=True": (
            "text=True, bufsize=1, shell=False, close_fds=True, stdin=subprocess.DEVNULL, cwd='/'"
        )
    },
    message="started in the caller's folder",
)


edited(
    "online_softmax",
    "sum_plus_a_little",
    {"/ total[i]": "/ (total[i] + te.const(1e-7, 'float32'))"},
    message="single elements",
)


edited(
    "online_softmax",
    "exponent_at_least_tiny",
    {
        "te.exp(X[i, c] - maximum[i])": (
            "te.exp(te.max(X[i, c] - maximum[i], te.const(-80, 'float32')))"
        )
    },
    message=r"values of \S1e4",
)


edited(
    "count_lines",
    "raw_docstrings_count",
    {
        "elif token.type not in (*beside, tokenize.STRING):": (
            "elif token.type not in (*beside, tokenize.STRING) or "
            "token.string[:1] in 'rR' and token.type == tokenize.STRING:"
        )
    },
    message="that are raw",
)


edited(
    "count_lines",
    "global_not_counted",
    {
        "            lines += not only_strings": (
            "            lines += not only_strings and not "
            "token.line.lstrip().startswith('global ')"
        )
    },
    message="global, del",
)


edited(
    "online_softmax",
    "other_names_for_long_rows",
    {
        'name="state")': 'name="state" if columns < 2048 else "states")',
    },
    message="two stages",
)


edited(
    "online_softmax",
    "other_names_for_many_rows",
    {
        'name="state")': 'name="state" if rows < 100 else "states")',
    },
    message="two stages",
)


edited(
    "fuse_epilogue",
    "asks_the_compiler_to_unroll",
    {
        "    for stage in stages:\n": (
            '    first = schedule.get_child_blocks(schedule.get_sblock("root"))[0]\n'
            "    tiles = schedule.get_loops(first)[0]\n"
            '    schedule.annotate(tiles, "pragma_auto_unroll_max_step", 16)\n'
            "    for stage in stages:\n"
        )
    },
    message="without annotations",
)


edited(
    "count_lines",
    "numbers_not_counted",
    {"(*beside, tokenize.STRING)": "(*beside, tokenize.STRING, tokenize.NUMBER)"},
    message="a statement that is a number",
)


edited(
    "count_lines",
    "code_in_a_string_counted",
    {
        "            lines += not only_strings": (
            "            lines += not only_strings or ': ' in token.line"
        )
    },
    message="a string with code in it|docstring",
)


edited(
    "time_to_first_result",
    "reads_a_page_more",
    {"process.stdout.read()": "process.stdout.read(4096)"},
    message="letters after its first line",
)

edited(
    "fuse_epilogue",
    "six_stages_at_most",
    {"for stage in stages:": "for stage in stages[:6]:"},
    message="one statement after the product",
)

edited(
    "time_to_first_result",
    "sets_a_variable",
    {
        "command, stdout=subprocess.PIPE": "command, env={**os.environ, "
        '"MEASURED_BY": "me"}, stdout=subprocess.PIPE',
        "    import statistics\n": "    import os\n    import statistics\n",
    },
    message="with its environment",
)

edited(
    "pays_after",
    "a_little_more_is_nothing",
    {"math.ceil(load_seconds * 1e3 / saved_ms)": "round(load_seconds * 1e3 / saved_ms + 0.4999)"},
    message="a microsecond more",
)

edited(
    "count_lines",
    "lines_of_splitlines",
    {
        "io.StringIO(source).readline": (
            "iter([*(line + '\\n' for line in source.splitlines()), '']).__next__"
        )
    },
    message="end a line to str.splitlines|EOF|Error",
)

edited(
    "time_to_first_result",
    "arguments_without_spaces",
    {"command, stdout": "[each.strip() for each in command], stdout"},
    message="and the arguments",
)

edited(
    "time_to_first_result",
    "ascii_alone",
    {"text=True\n": "text=True, encoding='ascii'\n"},
    message="a program that prints",
)

edited(
    "online_softmax",
    "a_least_factor",
    {"te.exp(left[0] - maximum)": "te.exp(te.max(left[0] - maximum, -20.0))"},
    message="the sum of two merged states",
)

edited(
    "pays_after",
    "a_billion_calls_at_most",
    {
        "max(0, math.ceil(load_seconds * 1e3 / saved_ms))": (
            "max(0, min(math.ceil(load_seconds * 1e3 / saved_ms), 10**9))"
        )
    },
    message="however many",
)

edited(
    "time_to_first_result",
    "a_broken_pipe_is_no_failure",
    {"if process.returncode or not line:": "if process.returncode not in (0, 141) or not line:"},
    message="141",
)

edited(
    "online_softmax",
    "a_least_factor_of_the_right",
    {"te.exp(right[0] - maximum)": "te.exp(te.max(right[0] - maximum, -60.0))"},
    message="the sum of two merged states",
)

edited(
    "online_softmax",
    "counts_masked_scores_as_the_least",
    {
        "        maximum = te.max(left[0], right[0])\n": (
            "        least = te.min_value('float32')\n"
            "        left, right = ((te.max(m, least), s) for m, s in (left, right))\n"
            "        maximum = te.max(left[0], right[0])\n"
        )
    },
    message=r"(?s)a masked score, \(-inf, 1\).*exp\(-inf\)",
)


@right("online_softmax")
def leaves_a_state_alone_beside_nothing(rows, columns):
    from tvm import te, tirx

    def merge(left, right):
        maximum = te.max(left[0], right[0])

        def scaled(state):
            factor = tirx.Select(state[0] == maximum, 1.0, te.exp(state[0] - maximum))
            return state[1] * factor

        both = maximum, scaled(left) + scaled(right)
        return tuple(
            tirx.Select(left[1] == 0, right[at], tirx.Select(right[1] == 0, left[at], both[at]))
            for at in range(2)
        )

    def nothing(*types):
        return te.min_value(types[0]), tirx.const(0, types[1])

    reducer = te.comm_reducer(merge, nothing)
    X = te.placeholder((rows, columns), name="X")
    j = te.reduce_axis((0, columns), name="j")
    one = tirx.const(1, "float32")
    m, s = te.compute((rows,), lambda i: reducer((X[i, j], one), axis=j), name="state")
    Y = te.compute((rows, columns), lambda i, c: te.exp(X[i, c] - m[i]) / s[i], name="Y")
    return [X, Y]
