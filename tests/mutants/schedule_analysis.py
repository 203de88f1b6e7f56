"""Wrong solutions of phase 3."""

from tests.mutants import edited, mutant, right, right_edited


@mutant("time_function", message="the unit of .results is the second")
def seconds_for_milliseconds(function, arguments, *, number, repeats):
    import numpy as np
    import tvm

    evaluator = function.time_evaluator("main", tvm.cpu(), number=number, repeat=repeats)
    return np.array(evaluator(*arguments).results)


@mutant("time_function", message="which are exchanged")
def number_and_repeats_swapped(function, arguments, *, number, repeats):
    import numpy as np
    import tvm

    evaluator = function.time_evaluator("main", tvm.cpu(), number=repeats, repeat=number)
    return np.array(evaluator(*arguments).results) * 1e3


@mutant("time_function", message="already divided by `number`")
def time_of_all_calls_together(function, arguments, *, number, repeats):
    import numpy as np
    import tvm

    evaluator = function.time_evaluator("main", tvm.cpu(), number=number, repeat=repeats)
    return np.array(evaluator(*arguments).results) * 1e3 * number


@mutant("time_function", message="the engine's time_evaluator measures the time")
def loop_in_python(function, arguments, *, number, repeats):
    import time

    import numpy as np

    function["main"](*arguments)
    samples = []
    for _ in range(repeats):
        started = time.perf_counter()
        for _ in range(number):
            function["main"](*arguments)
        samples.append((time.perf_counter() - started) / number * 1e3)
    return np.array(samples)


@mutant("time_function", message="calls for each of")
def number_ignored(function, arguments, *, number, repeats):
    import numpy as np
    import tvm

    evaluator = function.time_evaluator("main", tvm.cpu(), number=1, repeat=repeats)
    return np.array(evaluator(*arguments).results) * 1e3


@mutant("time_function", message="one sample per repeat")
def mean_alone(function, arguments, *, number, repeats):
    import tvm

    evaluator = function.time_evaluator("main", tvm.cpu(), number=number, repeat=repeats)
    return evaluator(*arguments).mean * 1e3


edited(
    "sample_latency",
    "no_warmup",
    {"    for _ in range(warmup):\n        run()\n": ""},
    message="the calls in each of the two loops",
)


@mutant("sample_latency", message="one sample per repeat")
def warmup_kept(run, *, warmup, repeats):
    import time

    import numpy as np

    samples = []
    for _ in range(warmup + repeats):
        started = time.perf_counter()
        run()
        samples.append((time.perf_counter() - started) * 1e3)
    return np.array(samples)


@mutant("sample_latency", message="which are slow, left out of the samples")
def last_samples_dropped(run, *, warmup, repeats):
    import time

    import numpy as np

    samples = []
    for _ in range(warmup + repeats):
        started = time.perf_counter()
        run()
        samples.append((time.perf_counter() - started) * 1e3)
    return np.array(samples[:repeats])


@mutant("sample_latency", message="the samples in milliseconds")
def one_clock_around_all(run, *, warmup, repeats):
    import time

    import numpy as np

    for _ in range(warmup):
        run()
    started = time.perf_counter()
    for _ in range(repeats):
        run()
    return np.full(repeats, (time.perf_counter() - started) * 1e3 / repeats)


edited(
    "sample_latency",
    "latency_in_seconds",
    {"(time.perf_counter() - started) * 1e3": "time.perf_counter() - started"},
    message="in seconds, times 1e3",
)


@mutant("gflop_per_second", message="one addition and one multiplication")
def counts_multiplications_alone(m, n, k, milliseconds):
    return m * n * k / milliseconds / 1e6


@mutant("gflop_per_second", message="milliseconds, not seconds")
def takes_milliseconds_for_seconds(m, n, k, milliseconds):
    return 2 * m * n * k / milliseconds / 1e9


@mutant("gflop_per_second", message="m·n·k steps")
def takes_the_matrices_for_square(m, n, k, milliseconds):
    return 2 * m**3 / milliseconds / 1e6


@mutant("arithmetic_intensity", message="bytes and not elements")
def per_element(m, n, k):
    return 2 * m * n * k / (m * k + k * n + m * n)


@mutant("arithmetic_intensity", message="A, B and C count once each")
def output_forgotten(m, n, k):
    return 2 * m * n * k / (4 * (m * k + k * n))


@mutant("arithmetic_intensity", message="however often the loops read them")
def every_load_of_the_naive_loops(m, n, k):
    return 2 * m * n * k / (4 * (2 * m * n * k + m * n))


@mutant("compare_interleaved", message="first and second in turn")
def one_after_the_other(first, second, *, rounds):
    import time

    import numpy as np

    from tvm_practice.measure import quiesce

    taken = []
    for run in (first, second):
        samples = []
        for _ in range(rounds):
            quiesce()
            run()
            started = time.perf_counter()
            run()
            samples.append(time.perf_counter() - started)
        taken.append(samples)
    ratios = np.array(taken[0]) / np.array(taken[1])
    drawn = np.random.default_rng().choice(ratios, (2000, rounds))
    low, high = np.percentile(np.median(drawn, axis=1), [2.5, 97.5])
    return float(np.median(ratios)), float(low), float(high)


edited(
    "compare_interleaved",
    "upside_down",
    {"taken[0] / taken[1]": "taken[1] / taken[0]"},
    message="which is second over first",
)


edited(
    "compare_interleaved",
    "threads_left_spinning",
    {"            quiesce()\n": ""},
    message="while the other one's threads spin",
)


edited(
    "compare_interleaved",
    "threads_still_asleep",
    {"            run()\n            started": "            started"},
    message="one untimed call",
)


@mutant("compare_interleaved", message="divide the times of one round")
def medians_divided(first, second, *, rounds):
    import time

    import numpy as np

    from tvm_practice.measure import quiesce

    taken = np.empty((2, rounds))
    for i in range(rounds):
        for j, run in enumerate((first, second)):
            quiesce()
            run()
            started = time.perf_counter()
            run()
            taken[j, i] = time.perf_counter() - started
    rng = np.random.default_rng()
    drawn = [np.median(rng.choice(each, (2000, rounds)), axis=1) for each in taken]
    low, high = np.percentile(drawn[0] / drawn[1], [2.5, 97.5])
    return float(np.median(taken[0]) / np.median(taken[1])), float(low), float(high)


edited(
    "compare_interleaved",
    "spread_for_interval",
    {
        "    drawn = np.random.default_rng().choice(ratios, (2000, rounds))\n": "",
        "np.percentile(np.median(drawn, axis=1), ": "np.percentile(ratios, ",
    },
    message="as wide as the middle 95% of the ratios",
)


@mutant("compile_variants", message="naive is serial")
def one_schedule_for_all(size, *, tile=32):
    import tvm
    from tvm import te

    from solutions import manual_schedule
    from solutions.te_basics import matmul
    from tvm_practice import engines

    expression = te.create_prim_func(matmul(size, size, size)).with_attr("global_symbol", "main")
    schedule = tvm.s_tir.Schedule(expression)
    block = schedule.get_sblock("C")
    schedules = {"naive": schedule}
    manual_schedule.tile(schedule, block, tile, tile)
    manual_schedule.vectorize(schedule, block)
    schedules["tiled"] = schedule
    manual_schedule.parallelize(schedule, block)
    schedules["tiled+parallel"] = schedule
    target = engines.host_target()
    return {name: tvm.compile(each.mod, target=target).mod for name, each in schedules.items()}


edited(
    "compile_variants",
    "parallel_forgotten",
    {"manual_schedule.parallelize(schedule, block)": "pass"},
    message="shares its tiles among threads",
)


edited(
    "compile_variants",
    "compiled_for_any_processor",
    {"target=engines.host_target())": 'target={"kind": "llvm"})'},
    message="compiled for this machine's processor",
)


edited(
    "compile_variants",
    "naive_twice",
    {'if name != "naive"': 'if name == "tiled+parallel"'},
    message="vectorize for both tiled ones",
)


edited(
    "compile_variants",
    "product_the_other_way_round",
    {
        "    expression = te.create_prim_func(matmul(size, size, size))": "    A, B, C = "
        "matmul(size, size, size)\n    expression = te.create_prim_func([B, A, C])"
    },
    message="the order of A, B and C",
)


edited(
    "compile_variants",
    "tile_ignored",
    {"tile(schedule, block, tile, tile)": "tile(schedule, block, 32, 32)"},
    message="manual_schedule.tile, its tile sizes",
)


@mutant("parallel_pays_from", message="faster at the second size by chance")
def first_faster_size(sizes, serial_ms, parallel_ms):
    for size, serial, parallel in zip(sizes, serial_ms, parallel_ms, strict=True):
        if parallel < serial:
            return size
    return None


@mutant("parallel_pays_from", message="equal is not faster")
def equal_counts_as_faster(sizes, serial_ms, parallel_ms):
    pays = None
    for size, serial, parallel in zip(sizes, serial_ms, parallel_ms, strict=True):
        if parallel > serial:
            pays = None
        elif pays is None:
            pays = size
    return pays


@mutant("parallel_pays_from", message="faster at every size")
def after_the_last_slower_size(sizes, serial_ms, parallel_ms):
    for i in range(len(sizes) - 1, 0, -1):
        if parallel_ms[i - 1] >= serial_ms[i - 1]:
            return sizes[i] if parallel_ms[i] < serial_ms[i] else None
    return None


@mutant("parallel_pays_from", message="faster from the fourth size on")
def index_for_size(sizes, serial_ms, parallel_ms):
    pays = None
    for i, (serial, parallel) in enumerate(zip(serial_ms, parallel_ms, strict=True)):
        if parallel >= serial:
            pays = None
        elif pays is None:
            pays = i
    return pays


edited(
    "time_function",
    "sorted_samples",
    {"np.array(evaluator(*arguments).results)": "np.sort(evaluator(*arguments).results)[::-1]"},
    message="(?s)the samples.*in their order",
)
edited(
    "time_function",
    "as_many_calls_as_fill_a_tenth_of_a_second",
    {"repeat=repeats)": "repeat=repeats, min_repeat_ms=100)"},
    message="min_repeat_ms",
)
edited(
    "time_function",
    "the_least_of_all",
    {
        "np.array(evaluator(*arguments).results) * 1e3": "np.full(repeats, "
        "min(evaluator(*arguments).results)) * 1e3"
    },
    message="(?s)the samples.*in their order",
)


@mutant("sample_latency", message="the samples in milliseconds")
def processor_time(run, *, warmup, repeats):
    import time

    import numpy as np

    for _ in range(warmup):
        run()
    samples = np.empty(repeats)
    for i in range(repeats):
        started = time.process_time()
        run()
        samples[i] = (time.process_time() - started) * 1e3
    return samples


@mutant("sample_latency", message="time.perf_counter")
def wall_clock(run, *, warmup, repeats):
    import time

    import numpy as np

    for _ in range(warmup):
        run()
    samples = np.empty(repeats)
    for i in range(repeats):
        started = time.time()
        run()
        samples[i] = (time.time() - started) * 1e3
    return samples


edited(
    "sample_latency",
    "sorted_latencies",
    {"    return samples": "    return np.sort(samples)"},
    message="in the order of the calls",
)
edited(
    "gflop_per_second",
    "rounded",
    {
        "return 2 * m * n * k / (milliseconds * 1e-3) / 1e9": "return round(2 * m * n * k / "
        "(milliseconds * 1e-3) / 1e9, 2)"
    },
    message="the rate of",
)
edited(
    "gflop_per_second",
    "in_32_bits",
    {"2 * m * n * k /": "float(2 * m * n * k % 2**31) /"},
    message="the rate of",
)
edited(
    "arithmetic_intensity",
    "whole_number",
    {"return 2 * m": "return 2 * m // 1", "/ (4": "// (4"},
    message="the intensity of",
)
edited(
    "compare_interleaved",
    "fifth_and_95th_percentile",
    {"[2.5, 97.5]": "[5, 95]"},
    message="end of a 95% interval",
)
edited(
    "compare_interleaved",
    "half_the_percentiles",
    {"[2.5, 97.5]": "[0.5, 99.5]"},
    message="end of a 95% interval",
)
edited(
    "compare_interleaved",
    "mean_of_the_ratios",
    {"return float(np.median(ratios))": "return float(np.mean(ratios))"},
    message="the ratio of the two medians",
)
edited(
    "compare_interleaved",
    "means_resampled",
    {"np.median(drawn, axis=1)": "np.mean(drawn, axis=1)"},
    message="low < median < high|an interval of the median|95% interval",
)
edited(
    "compare_interleaved",
    "ten_ratios_of_each_resample",
    {"(2000, rounds)": "(2000, 10)"},
    message="95% interval|narrows",
)
edited(
    "compare_interleaved",
    "by_processor_time",
    {
        "started = time.perf_counter()": "started = time.process_time()",
        "time.perf_counter() - started": "time.process_time() - started",
    },
    message="between two readings of time.perf_counter",
)
edited(
    "compare_interleaved",
    "three_timed_calls",
    {
        "            run()\n            taken": "            run()\n"
        "            run()\n            taken",
    },
    message="two calls of each in a round",
)
edited(
    "compile_variants",
    "columns_of_another_size",
    {"tile(schedule, block, tile, tile)": "tile(schedule, block, tile, 32)"},
    message="its tile sizes",
)
edited(
    "compile_variants",
    "not_vectorized",
    {"            manual_schedule.vectorize(schedule, block)\n": ""},
    message="vectorize for both",
)
edited(
    "compile_variants",
    "tile_up_to_the_size",
    {"    import tvm\n": "    tile = min(tile, size)\n    import tvm\n"},
    message="of size 5, tile=8",
)
edited(
    "parallel_pays_from",
    "first_size_for_none",
    {"    return pays": "    return pays or sizes[0]"},
    message="parallel is faster at the answer",
)
edited(
    "parallel_pays_from",
    "a_tenth_faster",
    {"parallel >= serial": "parallel >= serial * 0.9"},
    message="faster by a millionth",
)


@mutant("parallel_pays_from", message="only read|parallel is faster at the answer")
def pops_what_it_is_given(sizes, serial_ms, parallel_ms):
    pays = None
    while sizes and parallel_ms.pop() < serial_ms.pop():
        pays = sizes.pop()
    return pays


@mutant("parallel_pays_from", message="of its own")
def anything_equals_it(sizes, serial_ms, parallel_ms):
    class Right:
        def __eq__(self, other):
            return True

    return Right()


@right("time_function")
def as_a_list_comprehension(function, arguments, *, number, repeats):
    import numpy
    from tvm import runtime

    device = runtime.device("cpu", 0)
    clock = function.time_evaluator("main", device, repeat=repeats, number=number)
    return numpy.asarray([1000 * seconds for seconds in clock(*arguments).results])


@right("sample_latency")
def in_nanoseconds(run, *, warmup, repeats):
    from time import perf_counter_ns

    import numpy as np

    taken = []
    for i in range(warmup + repeats):
        before = perf_counter_ns()
        run()
        after = perf_counter_ns()
        if i >= warmup:
            taken.append((after - before) / 1e6)
    return np.array(taken)


@right("gflop_per_second")
def as_a_numpy_scalar(m, n, k, milliseconds):
    import numpy as np

    return np.float64(m) * n * k / 500_000 / np.float64(milliseconds)


@right("arithmetic_intensity")
def from_reciprocals(m, n, k):
    return 0.5 / (1 / m + 1 / n + 1 / k)


@right("compare_interleaved")
def by_the_standard_library(first, second, *, rounds):
    import random
    from statistics import median, quantiles
    from time import perf_counter

    from tvm_practice import measure

    def timed(run):
        measure.quiesce()
        run()
        started = perf_counter()
        run()
        return perf_counter() - started

    ratios = [timed(first) / timed(second) for _ in range(rounds)]
    medians = [median(random.choices(ratios, k=rounds)) for _ in range(2000)]
    ends = quantiles(medians, n=40, method="inclusive")
    return median(ratios), ends[0], ends[-1]


@right("compile_variants")
def without_the_functions_of_phase_two(size, *, tile=32):
    import tvm
    from tvm import te

    from tvm_practice.engines import host_target

    def product():
        A = te.placeholder((size, size), name="A")
        B = te.placeholder((size, size), name="B")
        r = te.reduce_axis((0, size), name="r")
        C = te.compute((size, size), lambda i, j: te.sum(A[i, r] * B[r, j], axis=r), name="C")
        return tvm.IRModule({"main": te.create_prim_func([A, B, C])})

    def build(schedule):
        return tvm.compile(schedule.mod["main"], host_target()).mod

    built = {"tiled+parallel": None, "tiled": None, "naive": build(tvm.s_tir.Schedule(product()))}
    for name in ("tiled", "tiled+parallel"):
        schedule = tvm.s_tir.Schedule(product())
        block = schedule.get_sblock("C")
        i, j, k = schedule.get_loops(block)
        i_0, i_1 = schedule.split(i, [None, tile])
        j_0, j_1 = schedule.split(j, [None, tile])
        schedule.reorder(i_0, j_0, k, i_1, j_1)
        schedule.vectorize(j_1)
        if "parallel" in name:
            schedule.parallel(schedule.fuse(i_0, j_0))
        built[name] = build(schedule)
    return built


@right("parallel_pays_from")
def from_the_end(sizes, serial_ms, parallel_ms):
    import numpy as np

    faster = np.asarray(parallel_ms) < np.asarray(serial_ms)
    slower = np.flatnonzero(~faster)
    start = slower[-1] + 1 if len(slower) else 0
    return np.asarray(sizes)[start] if start < len(sizes) else None


edited(
    "compare_interleaved",
    "ratio_of_the_medians",
    {
        "ratios = np.empty(rounds)": "ratios, both = np.empty(rounds), []",
        "= taken[0] / taken[1]": "= both.append(taken) or taken[0] / taken[1]",
        "float(np.median(ratios))": "float(np.divide(*np.median(both, axis=0)))",
    },
    message="the ratio of the two medians",
)


@mutant("parallel_pays_from", message="of its own")
def equal_to_everything(sizes, serial_ms, parallel_ms):
    class Anything(int):
        __hash__ = int.__hash__

        def __eq__(self, other):
            return True

    return Anything(7)


@mutant("time_function", message="which repeats short calls more often")
def samples_of_five_milliseconds(function, arguments, *, number, repeats):
    import numpy as np
    import tvm

    options = {"number": number, "repeat": repeats, "min_repeat_ms": 5}
    timer = function.time_evaluator("main", tvm.cpu(), **options)
    return np.array(timer(*arguments).results) * 1e3


edited(
    "sample_latency",
    "nothing_far_off",
    {"return samples": "return np.minimum(samples, 3 * np.median(samples))"},
    message="the samples in milliseconds",
)


edited(
    "sample_latency",
    "clock_in_single_precision",
    {
        "started = time.perf_counter()": "started = np.float32(time.perf_counter())",
        "(time.perf_counter() - started)": "(np.float32(time.perf_counter()) - started)",
    },
    message="the samples in milliseconds|left out of the samples",
)
edited(
    "compare_interleaved",
    "halves_without_replacement",
    {
        "drawn = np.random.default_rng().choice(ratios, (2000, rounds))": "rng = "
        "np.random.default_rng()\n    half = max(rounds // 2, 1)\n"
        "    drawn = np.array([rng.permutation(ratios)[:half] for _ in range(2000)])"
    },
    message="with replacement",
)


@mutant("gflop_per_second", message="the rate of m")
def largest_squared(m, n, k, milliseconds):
    a, b, c = sorted((m, n, k))
    return 2 * a * b * c / (milliseconds * 1e6) if m != n else 2 * m * m * m / (milliseconds * 1e6)


@mutant("parallel_pays_from", message="slower at the second")
def one_slip_forgiven(sizes, serial_ms, parallel_ms):
    out = None
    for at in range(len(sizes) - 1, -1, -1):
        if parallel_ms[at] < serial_ms[at]:
            out = sizes[at]
        elif at and parallel_ms[at - 1] < serial_ms[at - 1] and at < len(sizes) - 2:
            continue
        else:
            break
    return out


@mutant("compile_variants", message="the loops parallel")
def parallel_rows_only(size, *, tile=32):
    import tvm
    from tvm import te

    from tvm_practice.engines import host_target

    A = te.placeholder((size, size), name="A")
    B = te.placeholder((size, size), name="B")
    r = te.reduce_axis((0, size), name="k")
    C = te.compute((size, size), lambda i, j: te.sum(A[i, r] * B[r, j], axis=r), name="C")
    out = {}
    for name in ("naive", "tiled", "tiled+parallel"):
        s = tvm.s_tir.Schedule(te.create_prim_func([A, B, C]).with_attr("global_symbol", "main"))
        if name != "naive":
            i, j, k = s.get_loops(s.get_sblock("C"))
            io, ii = s.split(i, [None, tile])
            jo, ji = s.split(j, [None, tile])
            s.reorder(io, jo, k, ii, ji)
            s.vectorize(ji)
            if name == "tiled+parallel":
                s.parallel(io)
        out[name] = tvm.compile(s.mod, target=host_target()).mod
    return out


@mutant("sample_latency", message="the exception of call")
def failures_swallowed(run, *, warmup, repeats):
    import time

    import numpy as np

    for _ in range(warmup):
        run()
    out = []
    for _ in range(repeats):
        t = time.perf_counter()
        try:
            run()
        except Exception:
            pass
        out.append((time.perf_counter() - t) * 1e3)
    return np.array(out)


@mutant("sample_latency", message="the exception of call")
def warmup_failures_swallowed(run, *, warmup, repeats):
    import time

    import numpy as np

    for _ in range(warmup):
        try:
            run()
        except Exception:
            pass
    out = []
    for _ in range(repeats):
        t = time.perf_counter()
        run()
        out.append((time.perf_counter() - t) * 1e3)
    return np.array(out)


@mutant("sample_latency", message="garbage collector")
def collector_left_off(run, *, warmup, repeats):
    import gc
    import time

    import numpy as np

    gc.disable()
    for _ in range(warmup):
        run()
    out = []
    for _ in range(repeats):
        t = time.perf_counter()
        run()
        out.append((time.perf_counter() - t) * 1e3)
    return np.array(out)


@mutant("sample_latency", message="shape \\(0,\\)")
def last_of_all(run, *, warmup, repeats):
    import time

    import numpy as np

    out = []
    for _ in range(warmup + repeats):
        t = time.perf_counter()
        run()
        out.append((time.perf_counter() - t) * 1e3)
    return np.array(out)[-repeats:]


edited(
    "time_function",
    "fifty_calls_at_most",
    {"number=number": "number=min(number, 50)"},
    message="number=30000",
)

edited(
    "sample_latency",
    "eight_calls_of_warm_up_at_most",
    {"range(warmup)": "range(min(warmup, 8))"},
    message="150 \\+ 3 calls",
)

edited(
    "compile_variants",
    "even_tiles",
    {"schedule, block, tile, tile)": "schedule, block, tile + tile % 2, tile + tile % 2)"},
    message="for every size and every tile",
)

edited(
    "compare_interleaved",
    "sleeps",
    {"            quiesce()\n": "            time.sleep(0.2)\n"},
    message="quiesce, first, first, quiesce, second, second",
)

edited(
    "time_function",
    "of_other_arguments",
    {
        "evaluator(*arguments)": "evaluator(\n        *(tvm.runtime.tensor(np.zeros(each.shape, "
        "each.dtype)) for each in arguments)\n    )"
    },
    message="on the arguments given, in their order",
)
edited(
    "sample_latency",
    "whole_microseconds",
    {"    return samples": "    return np.round(samples, 3)"},
    message="the samples in milliseconds",
)


@mutant("sample_latency", message=r"\d+ \+ \d+ calls")
def gives_up_after_two_seconds(run, *, warmup, repeats):
    import time

    import numpy as np

    for _ in range(warmup):
        run()
    samples, begun = [], time.perf_counter()
    for _ in range(repeats):
        started = time.perf_counter()
        run()
        samples.append((time.perf_counter() - started) * 1e3)
        if time.perf_counter() - begun > 2:
            break
    return np.resize(np.array(samples), repeats)


edited(
    "compare_interleaved",
    "a_hundred_medians",
    {"(2000, rounds)": "(100, rounds)"},
    message="percentage points|an interval from 1 to 8|which .* of resampled medians are below",
)

edited(
    "sample_latency",
    "calls_again_what_gives_false",
    {"        run()\n        samples[i]": "        if run() is False:\n            run()\n"
     "        samples[i]"},
    message=r"\d+ \+ \d+ calls",
)  # fmt: skip
edited(
    "compare_interleaved",
    "the_median_for_few_rounds",
    {"[2.5, 97.5]": "[2.5 if rounds > 3 else 50, 97.5]"},
    message="an interval from",
)
edited(
    "compare_interleaved",
    "the_upper_of_two_medians",
    {"np.median(drawn, axis=1)": "np.sort(drawn, axis=1)[:, rounds // 2]"},
    message="an interval from",
)
edited(
    "compile_variants",
    "naive_alone_for_one_element",
    {'in ("naive", "tiled", "tiled+parallel"):': 'in ("naive", "tiled", "tiled+parallel")[: size '
     'if size == 1 else 3]:'},
    message="three modules of size 1",
)  # fmt: skip
edited(
    "compile_variants",
    "without_vectors",
    {
        "        modules[name] = tvm": "        off = {'tirx.disable_vectorize': True}\n"
        "        with tvm.transform.PassContext(config=off):\n            modules[name] = tvm"
    },
    message="compiled with tvm.compile's own settings",
)
right_edited(
    "compile_variants",
    "at_the_level_that_many_write",
    {
        "        modules[name] = tvm": "        with tvm.transform.PassContext(opt_level=3):\n"
        "            modules[name] = tvm"
    },
)
right_edited(
    "compile_variants",
    "for_the_target_around_it",
    {
        "        modules[name] = tvm": "        with engines.host_target():\n"
        "            modules[name] = tvm",
        ", target=engines.host_target()).mod": ").mod",
    },
)
right_edited(
    "compile_variants",
    "for_the_target_of_the_function",
    {
        "modules[name] = tvm.compile(schedule.mod, target=engines.host_target()).mod": (
            'function = schedule.mod["main"].with_attr("target", engines.host_target())\n'
            "        modules[name] = tvm.compile(function).mod"
        ),
    },
)
edited(
    "compile_variants",
    "for_another_target_around_it",
    {
        "        modules[name] = tvm": '        with tvm.target.Target("llvm"):\n'
        "            modules[name] = tvm",
        ", target=engines.host_target()).mod": ").mod",
    },
    message="compiled for engines.host_target|compiled for this machine's processor",
)


@right("parallel_pays_from")
def one_size_less_each_time(sizes, serial_ms, parallel_ms):
    def of_the_first(count):
        if count == 0 or parallel_ms[count - 1] >= serial_ms[count - 1]:
            return None
        before = of_the_first(count - 1)
        return sizes[count - 1] if before is None else before

    return of_the_first(len(sizes))


@right("parallel_pays_from")
def by_the_gain(sizes, serial_ms, parallel_ms):
    gains = [serial / parallel > 1 for serial, parallel in zip(serial_ms, parallel_ms, strict=True)]
    return next((size for at, size in enumerate(sizes) if all(gains[at:])), None)


edited(
    "compare_interleaved",
    "seeds_the_shared_generator",
    {"np.random.default_rng().choice(": "(np.random.seed(0) or np.random).choice("},
    message="seeds NumPy's shared generator",
)
right_edited(
    "compare_interleaved",
    "draws_from_the_shared_generator",
    {"np.random.default_rng().choice(": "np.random.choice("},
)
edited(
    "parallel_pays_from",
    "the_last_of_many",
    {"    return pays": "    return sizes[-1] if pays is not None and len(sizes) > 50 else pays"},
    message="expected: .* where parallel is faster from",
)


edited(
    "time_function",
    "caches_emptied_before",
    {"repeat=repeats)": 'repeat=repeats, f_preproc="cache_flush_cpu_non_first_arg")'},
    message="f_preproc='cache_flush_cpu_non_first_arg'",
)
edited(
    "time_function",
    "rests_between_samples",
    {"repeat=repeats)": "repeat=repeats, cooldown_interval_ms=10)"},
    message="cooldown_interval_ms=10",
)
edited(
    "time_function",
    "many_calls_for_a_millisecond",
    {"repeat=repeats)": "repeat=repeats, min_repeat_ms=1 if number > 100 else 0)"},
    message="min_repeat_ms=1",
)
edited(
    "time_function",
    "whole_nanoseconds",
    {
        "return np.array(evaluator(*arguments).results) * 1e3": "return np.round("
        "np.array(evaluator(*arguments).results) * 1e3, 6)"
    },
    message="the evaluator's .results as they are",
)


@right("time_function")
def warmed_up_first(function, arguments, *, number, repeats):
    import numpy as np
    import tvm

    function["main"](*arguments)
    function(*arguments)
    evaluate = function.time_evaluator("main", tvm.cpu(), number=number, repeat=repeats)
    return np.asarray(evaluate(*arguments).results) * 1000


@right("time_function")
def evaluator_by_position(function, arguments, *, number, repeats):
    import numpy as np
    import tvm

    evaluate = function.time_evaluator("main", tvm.device("cpu", 0), number, repeats)
    return np.fromiter((1000 * each for each in evaluate(*arguments).results), dtype=float)


@right("sample_latency")
def by_timeit(run, *, warmup, repeats):
    import timeit

    import numpy as np

    timer = timeit.Timer(run)
    for _ in range(warmup):
        run()
    return np.array([timer.timeit(1) * 1e3 for _ in range(repeats)])


@right("compare_interleaved")
def by_indices(first, second, *, rounds):
    from time import perf_counter

    import numpy as np

    from tvm_practice import measure

    def timed(run):
        measure.quiesce()
        run()
        begin = perf_counter()
        run()
        return perf_counter() - begin

    times = np.array([(timed(first), timed(second)) for _ in range(rounds)])
    ratios = times[:, 0] / times[:, 1]
    rng = np.random.default_rng()
    medians = [np.median(ratios[rng.integers(0, rounds, rounds)]) for _ in range(2000)]
    return (np.median(ratios), *np.quantile(medians, (0.025, 0.975)))


@right("parallel_pays_from")
def after_the_last_that_is_not_faster(sizes, serial_ms, parallel_ms):
    import numpy as np

    slower = np.flatnonzero(np.asarray(parallel_ms) >= np.asarray(serial_ms))
    start = 0 if len(slower) == 0 else int(slower[-1]) + 1
    return sizes[start] if start < len(sizes) else None


edited(
    "compile_variants",
    "unrolled_by_a_pragma",
    {
        "            manual_schedule.vectorize(schedule, block)\n": "            "
        "manual_schedule.vectorize(schedule, block)\n            schedule.annotate(\n"
        '                schedule.get_loops(block)[2], "pragma_auto_unroll_max_step", 16\n'
        "            )\n"
    },
    message="pragma_auto_unroll_max_step",
)


@right("compile_variants")
def by_a_list_of_steps(size, *, tile=32):
    import tvm
    from tvm import te

    from solutions.manual_schedule import parallelize, vectorize
    from solutions.manual_schedule import tile as cut
    from solutions.te_basics import matmul
    from tvm_practice.engines import host_target

    def made(*steps):
        function = te.create_prim_func(matmul(size, size, size))
        schedule = tvm.s_tir.Schedule(function.with_attr("global_symbol", "main"))
        for step, *arguments in steps:
            step(schedule, schedule.get_sblock("C"), *arguments)
        return tvm.compile(schedule.mod["main"], host_target()).mod

    tiled = [(cut, tile, tile), (vectorize,)]
    return {
        "tiled+parallel": made(*tiled, (parallelize,)),
        "tiled": made(*tiled),
        "naive": made(),
    }


edited(
    "compare_interleaved",
    "drops_the_first_of_many_ratios",
    {
        "    drawn = np.random": "    if rounds > 6:\n        ratios = ratios[1:]\n"
        "    drawn = np.random",
        "(2000, rounds)": "(2000, len(ratios))",
    },
    message="the median of the ratios",
)


edited(
    "arithmetic_intensity",
    "other_bytes_for_huge_products",
    {"2 * m * n * k / (4": "2 * m * n * k / (4.0 if m * n * k < 2**62 else 8.0) / (1"},
    message="the intensity of",
)


edited(
    "time_function",
    "divides_many_calls_again",
    {".results) * 1e3": ".results) * 1e3 / max(1, number // 1000)"},
    message="the evaluator's within",
)


edited(
    "sample_latency",
    "minutes_in_seconds",
    {
        "(time.perf_counter() - started) * 1e3": (
            "(lambda s: s * 1e3 if s < 60 else s)(time.perf_counter() - started)"
        )
    },
    message="the samples in milliseconds",
)


edited(
    "compile_variants",
    "one_schedule_for_large_sizes",
    {
        "        schedule = tvm.s_tir.Schedule(expression)\n": (
            "        schedule = tvm.s_tir.Schedule(expression) if name == "
            "'naive' or size < 200 else schedule\n"
        )
    },
    message="tiled\\+parallel of size 255",
)


edited(
    "time_function",
    "arguments_by_rank",
    {"evaluator(*arguments)": "evaluator(*sorted(arguments, key=lambda each: -len(each.shape)))"},
    message="arguments given, in their order",
)


edited(
    "gflop_per_second",
    "in_float32",
    {
        "return 2 * m * n * k / (milliseconds * 1e-3) / 1e9": (
            "import numpy as np\n"
            "    return float(np.float32(2 * m * n * k) / "
            "np.float32(milliseconds) / np.float32(1e6))"
        )
    },
    message="the rate of",
)


edited(
    "parallel_pays_from",
    "no_size_of_one",
    {
        "    return pays": (
            "    return int(pays) if pays is not None and pays > 1 else pays "
            "if pays is None else None"
        )
    },
    message="faster from 1 on",
)

edited(
    "sample_latency",
    "a_microsecond_at_least",
    {"    return samples": "    return np.maximum(samples, 1e-3)"},
    message="the samples in milliseconds",
)


@mutant("parallel_pays_from", message="sizes but for")
def looks_at_the_next_eight(
    sizes: list[int], serial_ms: list[float], parallel_ms: list[float]
) -> int | None:
    for at in range(len(sizes)):
        ahead = zip(serial_ms[at : at + 8], parallel_ms[at : at + 8], strict=True)
        if all(parallel < serial for serial, parallel in ahead):
            return sizes[at]
    return None


edited(
    "parallel_pays_from",
    "compares_in_nanoseconds",
    {"parallel >= serial": "round(parallel, 6) >= round(serial, 6)"},
    message="faster by (a millionth|one part in a hundred billion)",
)


edited(
    "time_function",
    "another_name_for_one_argument",
    {'"main", tvm.cpu()': '"main" if len(arguments) != 1 else "__main__", tvm.cpu()'},
    message='the function "main" timed',
)
edited(
    "sample_latency",
    "cuts_off_far_samples",
    {"return samples": "return np.minimum(samples, 50 * np.median(samples))"},
    message="the samples in milliseconds",
)
edited(
    "sample_latency",
    "kept_in_float32",
    {"return samples": 'return samples.astype("float32")'},
    message="as the clock gives them",
)
edited(
    "sample_latency",
    "rounds_to_tenths_of_microseconds",
    {"return samples": "return samples.round(4)"},
    message="as the clock gives them",
)
edited(
    "gflop_per_second",
    "a_thousand_seconds_at_most",
    {"(milliseconds * 1e-3)": "(min(milliseconds, 1e6) * 1e-3)"},
    message="the rate of",
)
edited(
    "compare_interleaved",
    "ratios_of_a_thousand_at_most",
    {"taken[0] / taken[1]": "min(max(taken[0] / taken[1], 1e-3), 1e3)"},
    message="the median of the ratios",
)
edited(
    "compare_interleaved",
    "five_hundred_medians",
    {"(2000, rounds)": "(500, rounds)"},
    message="2000",
)
edited(
    "parallel_pays_from",
    "a_hundred_sizes",
    {
        "zip(sizes, serial_ms, parallel_ms, strict=True)": (
            "list(zip(sizes, serial_ms, parallel_ms, strict=True))[:100]"
        )
    },
    message="sizes and times|faster from|faster at",
)


@right("compare_interleaved")
def draws_by_places_with_a_seed(first, second, *, rounds):
    from time import perf_counter

    import numpy

    from tvm_practice import measure

    ratios = []
    for _ in range(rounds):
        times = {}
        for name, run in {"first": first, "second": second}.items():
            measure.quiesce()
            run()
            begin = perf_counter()
            run()
            times[name] = perf_counter() - begin
        ratios.append(times["first"] / times["second"])
    at = numpy.random.default_rng(7).integers(0, rounds, size=(2000, rounds))
    medians = numpy.median(numpy.array(ratios)[at], axis=-1)
    ends = numpy.quantile(medians, (0.025, 0.975))
    return float(numpy.median(ratios)), *map(float, ends)


right_edited(
    "compare_interleaved",
    "quiesce_from_its_module",
    {"measure import quiesce": "measure.threads import quiesce"},
)

edited(
    "sample_latency",
    "ten_thousand_at_most",
    {
        "    samples = np.empty(repeats)": "    repeats = min(repeats, 10_000)\n"
        "    samples = np.empty(repeats)"
    },
    message="one sample per repeat",
)

# What is kept from call to call.
edited(
    "sample_latency",
    "one_array_for_all_calls",
    {"np.empty(repeats)": 'sample_latency.__dict__.setdefault("kept", np.empty(99_999))[:repeats]'},
    message="as they were",
)
edited(
    "compile_variants",
    "one_dictionary_for_all_calls",
    {"modules = {}": 'modules = compile_variants.__dict__.setdefault("kept", {})'},
    message="a dictionary of its own",
)
edited(
    "gflop_per_second",
    "kept_by_the_sizes",
    {
        "    return 2 * m": '    kept = gflop_per_second.__dict__.setdefault("kept", {})\n'
        "    milliseconds = kept.setdefault((m, n, k), milliseconds)\n    return 2 * m"
    },
    message="after another one",
)
edited(
    "arithmetic_intensity",
    "kept_by_the_operations",
    {
        "    return 2 * m": '    kept = arithmetic_intensity.__dict__.setdefault("kept", {})\n'
        "    m, n, k = kept.setdefault(m * n * k, (m, n, k))\n    return 2 * m"
    },
    message="the intensity of m=",
)


@mutant("time_function", message="as they were")
def one_array_for_all_calls(function, arguments, *, number, repeats):
    import numpy as np
    import tvm

    evaluator = function.time_evaluator("main", tvm.cpu(), number=number, repeat=repeats)
    samples = time_function.__dict__.setdefault("kept", np.empty(99_999))[:repeats]  # type: ignore[name-defined]  # noqa: F821
    samples[:] = np.array(evaluator(*arguments).results) * 1e3
    return samples


edited(
    "compare_interleaved",
    "median_of_the_resampled_medians",
    {
        "low, high = np.percentile(np.median(drawn, axis=1), [2.5, 97.5])": "low, ratio, high = "
        "np.percentile(np.median(drawn, axis=1), [2.5, 50, 97.5])",
        "float(np.median(ratios))": "float(ratio)",
    },
    message="the median of the ratios themselves, not of the resampled ones",
)
edited(
    "parallel_pays_from",
    "not_from_a_large_first_size",
    {"    return pays": "    return sizes[-1] if pays == [*sizes, 0][0] >= 4096 else pays"},
    message="faster at every size",
)
edited(
    "parallel_pays_from",
    "always_from_a_million",
    {"if parallel >= serial:": "if parallel >= serial and size < 10**6:"},
    message="faster from the fourth size on",
)


edited(
    "parallel_pays_from",
    "hardly_faster_is_as_fast",
    {"parallel >= serial": "parallel >= serial or __import__('math').isclose(parallel, serial)"},
    message="faster by one part in a hundred billion",
)
edited(
    "parallel_pays_from",
    "sizes_of_a_list",
    {"zip(sizes, ": "zip(sizes + [], "},
    message="can only concatenate tuple",
)
edited(
    "compile_variants",
    "copied_to_the_output",
    {
        "    expression = te.create_prim_func(matmul(size, size, size))": "    A, B, C = "
        "matmul(size, size, size)\n"
        '    D = te.compute((size, size), lambda i, j: C[i, j], name="D")\n'
        "    expression = te.create_prim_func([A, B, D])"
    },
    message="one statement that adds up, straight into its output",
)

edited(
    "compare_interleaved",
    "a_round_more_that_is_left_out",
    {
        "np.empty(rounds)": "np.empty(rounds + 1)",
        "range(rounds)": "range(rounds + 1)",
        "    drawn =": "    ratios = ratios[1:]\n    drawn =",
    },
    message="two calls of each in a round",
)
right_edited(
    "time_function",
    "its_spread_printed",
    {
        "evaluator =": "evaluate =",
        "return np.array(evaluator(*arguments).results)": "found = evaluate(*arguments)\n"
        '    print(f"{found.mean} to {found.max}, {found.std}, {found.median}, {found.min}")\n'
        "    return np.array(found.results)",
    },
)
right_edited(
    "compile_variants",
    "each_called_once_on_zeros",
    {
        "    return modules": "        empty = tvm.runtime.empty((size, size))\n"
        '        modules[name]["main"](empty, empty, tvm.runtime.empty((size, size)))\n'
        "    return modules",
    },
)
right_edited(
    "compile_variants",
    "the_older_name",
    {
        "tvm.compile(schedule.mod, target=engines.host_target()).mod": "tvm.build(schedule.mod, "
        "target=engines.host_target())",
    },
)
right_edited(
    "compile_variants",
    "verifies_the_values",
    {
        "    return modules": "        import numpy as np\n\n"
        "        a, b = np.random.rand(2, size, size).astype('float32')\n"
        "        c = tvm.runtime.empty((size, size))\n"
        '        modules[name]["main"](tvm.runtime.tensor(a), tvm.runtime.tensor(b), c)\n'
        "        np.testing.assert_allclose(c.numpy(), a @ b, rtol=1e-3)\n"
        "    return modules",
    },
)
edited(
    "sample_latency",
    "warms_a_function_up_once",
    {
        "    for _ in range(warmup)": "    warm = globals().setdefault('_warm', set())\n"
        "    warmup *= id(run) not in warm\n"
        "    warm.add(id(run))\n"
        "    for _ in range(warmup)"
    },
    message="measured before|calls for warmup",
)
edited(
    "sample_latency",
    "warms_the_first_function_up",
    {
        "    for _ in range(warmup)": "    warmup *= not globals().get('_is_warm')\n"
        "    globals()['_is_warm'] = True\n"
        "    for _ in range(warmup)"
    },
    message="calls for warmup",
)

edited(
    "parallel_pays_from",
    "forgives_a_size_long_before_the_last",
    {
        "            pays = None\n": (
            "            pays = None if len(sizes) - list(sizes).index(size) <= 10 else pays\n"
        )
    },
    message="sizes but for",
)
edited(
    "sample_latency",
    "ends_one_sample_where_the_next_begins",
    {
        "    for i in range(repeats):\n        started = time.perf_counter()\n": (
            "    started = time.perf_counter()\n    for i in range(repeats):\n"
        ),
        "        samples[i] = (time.perf_counter() - started) * 1e3\n": (
            "        ended = time.perf_counter()\n"
            "        samples[i], started = (ended - started) * 1e3, ended\n"
        ),
    },
    message="the clock read before each call and after it",
)
