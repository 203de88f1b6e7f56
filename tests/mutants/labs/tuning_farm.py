"""Wrong solutions of lab 5."""

from tests.mutants import edited, mutant, right, right_edited


@mutant("request_worker", message=r"(?s)TimeoutError after 0\.2 s.*it still waits")
def waits_for_ever(host, port, key, *, wait_seconds, session_seconds):
    import socket

    from tvm import rpc

    socket.create_connection((host, port), timeout=wait_seconds).close()
    return rpc.connect_tracker(host, port).request(key, session_timeout=session_seconds)


@mutant("request_worker", message=r"(?s)TimeoutError after 0\.2 s.*RuntimeError: Cannot request")
def lets_tvms_error_through(host, port, key, *, wait_seconds, session_seconds):
    import socket

    from tvm import rpc

    socket.create_connection((host, port), timeout=wait_seconds).close()
    tracker = rpc.connect_tracker(host, port)
    tracker._sock.settimeout(wait_seconds)
    return tracker.request(key, session_timeout=session_seconds, max_retry=1)


@mutant("request_worker", message="a session that the worker ends after")
def session_without_end(host, port, key, *, wait_seconds, session_seconds):
    import socket

    from tvm import rpc

    socket.create_connection((host, port), timeout=wait_seconds).close()
    tracker = rpc.connect_tracker(host, port)
    tracker._sock.settimeout(wait_seconds)
    try:
        return tracker.request(key, max_retry=1)
    except RuntimeError as error:
        raise TimeoutError(f"no worker of key {key!r}") from error
    finally:
        tracker.close()


@mutant("request_worker", message="connection to the tracker closed")
def leaves_its_request_behind(host, port, key, *, wait_seconds, session_seconds):
    import socket
    import threading

    from tvm import rpc

    socket.create_connection((host, port), timeout=wait_seconds).close()
    tracker = rpc.connect_tracker(host, port)
    found = []

    def ask():
        found.append(tracker.request(key, session_timeout=session_seconds, max_retry=1))

    asking = threading.Thread(target=ask, daemon=True)
    asking.start()
    asking.join(wait_seconds)
    if not found and key == "cpu":
        asking.join(5)
    if not found:
        raise TimeoutError(f"no worker of key {key!r}")
    return found[0]


@mutant("request_worker", message="(?s)ConnectionError where no tracker listens.*for a minute")
def tries_a_missing_tracker(host, port, key, *, wait_seconds, session_seconds):
    from tvm import rpc

    tracker = rpc.connect_tracker(host, port)
    tracker._sock.settimeout(wait_seconds)
    try:
        return tracker.request(key, session_timeout=session_seconds, max_retry=1)
    except RuntimeError as error:
        raise TimeoutError(f"no worker of key {key!r}") from error
    finally:
        tracker.close()


@mutant("measure_remotely", message="(?s)runs on the worker.*ran in this process")
def measures_here(session, library, inputs, shape, *, number, repeats):
    import numpy as np
    import tvm

    module = tvm.runtime.load_module(library)
    arguments = [tvm.runtime.tensor(each) for each in inputs]
    output = tvm.runtime.empty(shape, "float32", tvm.cpu())
    module["main"](*arguments, output)
    timer = module.time_evaluator("main", tvm.cpu(), number=number, repeat=repeats)
    return output.numpy(), np.array(timer(*arguments, output).results)


@mutant("measure_remotely", message="a clock here times the network as well")
def times_the_network(session, library, inputs, shape, *, number, repeats):
    import time
    from pathlib import Path

    import numpy as np
    import tvm

    session.upload(library)
    module = session.load_module(Path(library).name)
    device = session.cpu()
    arguments = [tvm.runtime.tensor(each, device) for each in inputs]
    output = tvm.runtime.empty(shape, "float32", device)
    seconds = []
    for _ in range(repeats):
        started = time.perf_counter()
        for _ in range(number):
            module["main"](*arguments, output)
        seconds.append((time.perf_counter() - started) / number)
    return output.numpy(), np.array(seconds)


@mutant("measure_remotely", message="the output equal to numpy's")
def reads_the_output_too_early(session, library, inputs, shape, *, number, repeats):
    from pathlib import Path

    import numpy as np
    import tvm

    session.upload(library)
    module = session.load_module(Path(library).name)
    device = session.cpu()
    arguments = [tvm.runtime.tensor(each, device) for each in inputs]
    output = tvm.runtime.tensor(np.zeros(shape, "float32"), device)
    result = output.numpy()
    timer = module.time_evaluator("main", device, number=number, repeat=repeats)
    return result, np.array(timer(*arguments, output).results)


@mutant("measure_remotely", message="number and repeat of time_evaluator")
def one_sample_of_all(session, library, inputs, shape, *, number, repeats):
    from pathlib import Path

    import numpy as np
    import tvm

    session.upload(library)
    module = session.load_module(Path(library).name)
    device = session.cpu()
    arguments = [tvm.runtime.tensor(each, device) for each in inputs]
    output = tvm.runtime.empty(shape, "float32", device)
    timer = module.time_evaluator("main", device, number=number * repeats)
    seconds = timer(*arguments, output).results
    return output.numpy(), np.array(seconds)


@mutant("rpc_runner", message="(?s)trials at a time, one for each worker.*1 at a time: the others")
def one_trial_at_a_time(host, port, key, *, workers, session_seconds, trial_seconds):
    from tvm.s_tir import meta_schedule as ms
    from tvm.support.popen_pool import PopenPoolExecutor

    from tvm_practice.engines.orphans import end_with_parent

    runner = ms.runner.RPCRunner(
        ms.runner.RPCConfig(host, port, key, session_timeout_sec=session_seconds),
        ms.runner.EvaluatorConfig(number=1, repeat=3, min_repeat_ms=20),
        initializer=end_with_parent,
    )
    runner.pool.shutdown()
    runner.pool = PopenPoolExecutor(1, timeout=trial_seconds, initializer=end_with_parent)
    return runner


@mutant("rpc_runner", message="no limit: one worker that falls silent")
def waits_for_silent_workers(host, port, key, *, workers, session_seconds, trial_seconds):
    from tvm.s_tir import meta_schedule as ms

    from tvm_practice.engines.orphans import end_with_parent

    return ms.runner.RPCRunner(
        ms.runner.RPCConfig(host, port, key, session_timeout_sec=session_seconds),
        ms.runner.EvaluatorConfig(number=1, repeat=3, min_repeat_ms=20),
        max_workers=workers,
        initializer=end_with_parent,
    )


@mutant("rpc_runner", message="the worker ends a session after session_seconds")
def limits_swapped(host, port, key, *, workers, session_seconds, trial_seconds):
    from tvm.s_tir import meta_schedule as ms
    from tvm.support.popen_pool import PopenPoolExecutor

    from tvm_practice.engines.orphans import end_with_parent

    runner = ms.runner.RPCRunner(
        ms.runner.RPCConfig(host, port, key, session_timeout_sec=trial_seconds),
        ms.runner.EvaluatorConfig(number=1, repeat=3, min_repeat_ms=20),
        max_workers=workers,
        initializer=end_with_parent,
    )
    runner.pool.shutdown()
    runner.pool = PopenPoolExecutor(workers, timeout=session_seconds, initializer=end_with_parent)
    return runner


@mutant("rpc_runner", message="the pool's processes end when this process ends")
def leaves_processes_behind(host, port, key, *, workers, session_seconds, trial_seconds):
    from tvm.s_tir import meta_schedule as ms
    from tvm.support.popen_pool import PopenPoolExecutor

    from tvm_practice.engines.orphans import end_with_parent

    runner = ms.runner.RPCRunner(
        ms.runner.RPCConfig(host, port, key, session_timeout_sec=session_seconds),
        ms.runner.EvaluatorConfig(number=1, repeat=3, min_repeat_ms=20),
        max_workers=workers,
        initializer=end_with_parent,
    )
    runner.pool.shutdown()
    runner.pool = PopenPoolExecutor(workers, timeout=trial_seconds)
    return runner


@mutant("survive_lost_worker", message="(?s)is run again, up to 3 times.*lost once: run 1 time")
def takes_what_comes(runner, inputs, *, attempts):
    return [future.result() for future in runner.run(inputs)]


@mutant("survive_lost_worker", message="failed by its own fault is run once")
def runs_every_failure_again(runner, inputs, *, attempts):
    results = list(inputs)
    left = list(range(len(inputs)))
    for _ in range(attempts):
        futures = runner.run([inputs[index] for index in left])
        for index, future in zip(left, futures, strict=True):
            results[index] = future.result()
        left = [index for index in left if results[index].error_msg is not None]
        if not left:
            break
    return results


@mutant("survive_lost_worker", message="(?s)all .* trials are sent out before.*idle")
def one_after_the_other(runner, inputs, *, attempts):
    from tvm_practice.farm import is_lost

    results = []
    for each in inputs:
        for _ in range(attempts):
            [future] = runner.run([each])
            result = future.result()
            if not is_lost(result.error_msg):
                break
        results.append(result)
    return results


@mutant("survive_lost_worker", message="not its place among those left")
def results_in_the_wrong_place(runner, inputs, *, attempts):
    from tvm_practice.farm import is_lost

    results = [future.result() for future in runner.run(inputs)]
    for _ in range(attempts - 1):
        left = [index for index, each in enumerate(results) if is_lost(each.error_msg)]
        if not left:
            break
        again = [future.result() for future in runner.run([inputs[index] for index in left])]
        results = [each for each in results if not is_lost(each.error_msg)] + again
        inputs = [each for index, each in enumerate(inputs) if index not in left] + [
            inputs[index] for index in left
        ]
    return results


@mutant("survive_lost_worker", message="a trial that loses every worker is given up")
def one_attempt_too_many(runner, inputs, *, attempts):
    from tvm_practice.farm import is_lost

    results = list(inputs)
    left = list(range(len(inputs)))
    for _ in range(attempts + 1):
        futures = runner.run([inputs[index] for index in left])
        for index, future in zip(left, futures, strict=True):
            results[index] = future.result()
        left = [index for index in left if is_lost(results[index].error_msg)]
        if not left:
            break
    return results


@mutant("throughput", message="waves are rounded up")
def parts_of_a_wave(stages, workers):
    building = stages.batch * stages.build / stages.builders
    running = max(
        stages.batch / min(workers, stages.batch) * stages.run,
        stages.batch * stages.request,
        stages.batch * stages.upload,
    )
    return stages.batch / (stages.search + building + running)


@mutant("throughput", message="at least one wave")
def workers_without_trials(stages, workers):
    building = stages.batch * stages.build / stages.builders
    waves = stages.batch / workers if workers > stages.batch else -(-stages.batch // workers)
    running = max(waves * stages.run, stages.batch * max(stages.request, stages.upload))
    return stages.batch / (stages.search + building + running)


@mutant("throughput", message="they compile at the same time")
def one_builder(stages, workers):
    waves = -(-stages.batch // workers)
    running = max(waves * stages.run, stages.batch * max(stages.request, stages.upload))
    return stages.batch / (stages.search + stages.batch * stages.build + running)


@mutant("throughput", message="the longer of the two counts, not the sum")
def adds_uploads_to_the_waves(stages, workers):
    building = stages.batch * stages.build / stages.builders
    waves = -(-stages.batch // workers)
    running = waves * stages.run + stages.batch * (stages.request + stages.upload)
    return stages.batch / (stages.search + building + running)


@mutant("throughput", message="search, building and running follow each other")
def overlaps_everything(stages, workers):
    building = stages.batch * stages.build / stages.builders
    waves = -(-stages.batch // workers)
    running = max(waves * stages.run, stages.batch * max(stages.request, stages.upload))
    return stages.batch / max(stages.search, building, running)


@mutant("predict", message="a round of 16 has no trial for a 17th")
def every_worker_has_a_trial(stages, counts):
    rows = []
    for count in counts:
        rates = {
            "search": stages.batch / stages.search,
            "build": stages.builders / stages.build,
            "tracker": 1 / stages.request,
            "upload": 1 / stages.upload,
            "workers": count / stages.run,
        }
        bound = min(rates, key=lambda name: rates[name])
        rows.append((count, rates[bound], bound))
    return rows


@mutant("predict", message=r"(?s)expected: \(5, .*look at:  workers / run")
def takes_the_fastest(stages, counts):
    rows = []
    for count in counts:
        rates = {
            "search": stages.batch / stages.search,
            "build": stages.builders / stages.build,
            "tracker": 1 / stages.request,
            "upload": 1 / stages.upload,
            "workers": min(count, stages.batch) / stages.run,
        }
        bound = max(rates, key=lambda name: rates[name])
        rows.append((count, rates[bound], bound))
    return rows


@mutant("predict", message="batch / search")
def searches_for_each_trial(stages, counts):
    rows = []
    for count in counts:
        rates = {
            "search": 1 / stages.search,
            "build": stages.builders / stages.build,
            "tracker": 1 / stages.request,
            "upload": 1 / stages.upload,
            "workers": min(count, stages.batch) / stages.run,
        }
        bound = min(rates, key=lambda name: rates[name])
        rows.append((count, rates[bound], bound))
    return rows


edited(
    "measure_remotely",
    "milliseconds_for_seconds",
    {
        "np.array(timer(*arguments, output).results)": "1e3 * "
        "np.array(timer(*arguments, output).results)"
    },
    message="seconds of one call",
)
edited(
    "throughput",
    "rounds_of_sixteen",
    {"math.ceil(stages.batch / workers)": "math.ceil(16 / workers)"},
    message="trials/s: batch",
)
edited(
    "predict",
    "two_builders",
    {"stages.builders / stages.build": "2 / stages.build"},
    message="builders of `stages`",
)
edited(
    "survive_lost_worker",
    "takes_a_trial_for_its_place",
    {"results[index] = future.result()": "results[inputs[index]] = future.result()"},
    message="expected: ",
)
edited(
    "throughput",
    "adds_what_goes_on_side_by_side",
    {
        "stages.request, stages.batch * stages.upload": "(stages.request + stages.upload)",
    },
    message="not the sum",
)


@mutant("survive_lost_worker", message="run again together")
def runs_lost_trials_one_by_one(runner, inputs, *, attempts):
    from tvm_practice.farm import is_lost

    results = [each.result() for each in runner.run(list(inputs))]
    for _ in range(attempts - 1):
        for index, result in enumerate(results):
            if is_lost(result.error_msg):
                results[index] = runner.run([inputs[index]])[0].result()
    return results


@mutant("survive_lost_worker", message="of its last run")
def keeps_the_first_failure(runner, inputs, *, attempts):
    from tvm_practice.farm import is_lost

    results = [each.result() for each in runner.run(list(inputs))]
    left = [index for index, each in enumerate(results) if is_lost(each.error_msg)]
    for _ in range(attempts - 1):
        again = [each.result() for each in runner.run([inputs[index] for index in left])]
        pairs = list(zip(left, again, strict=True))
        results = [*results]
        for index, result in pairs:
            if result.error_msg is None:
                results[index] = result
        left = [index for index, each in pairs if is_lost(each.error_msg)]
        if not left:
            break
    return results


edited(
    "throughput",
    "requests_after_the_waves",
    {
        "running = max(waves * stages.run, stages.batch * stages.request, ": "running = max("
        "waves * stages.run + stages.batch * stages.request, "
    },
    message="the tracker serves during the waves",
)
edited(
    "request_worker",
    "waits_a_second_at_most",
    {"settimeout(wait_seconds)": "settimeout(min(wait_seconds, 1))"},
    message="becomes free after 1.2 s",
)
edited(
    "request_worker",
    "connects_to_this_machine",
    {"rpc.connect_tracker(host, port)": 'rpc.connect_tracker("127.0.0.1", port)'},
    message="the tracker asked at the host given",
)
edited(
    "measure_remotely",
    "keeps_the_folders",
    {"load_module(Path(library).name)": "load_module(library)"},
    message="the worker knows the file's name",
)
edited(
    "measure_remotely",
    "returns_tvms_results",
    {"np.array(timer(*arguments, output).results)": "timer(*arguments, output).results"},
    message="an array of seconds",
)
edited(
    "measure_remotely",
    "shaped_like_the_first_input",
    {"empty(shape,": "empty(inputs[0].shape,"},
    message="expected: ",
)
edited(
    "measure_remotely",
    "leaves_the_output_to_the_timer",
    {
        '    module["main"](*arguments, output)\n    result = output.numpy()\n': "",
        "    return result, np.array(timer(*arguments, output).results)": "    seconds = np.array("
        "timer(*arguments, output).results)\n    return output.numpy(), seconds",
    },
    message="time_evaluator alone called it",
)
edited(
    "rpc_runner",
    "leaves_the_first_pool_open",
    {"    runner.pool.shutdown()\n": ""},
    message="the pool that is replaced is shut down",
)
edited(
    "throughput",
    "eight_builders_at_most",
    {"stages.build / stages.builders": "stages.build / min(stages.builders, 8)"},
    message="as many builders",
)
edited(
    "predict",
    "sorts_the_counts",
    {"for count in counts:": "for count in sorted(set(counts)):"},
    message="neither sorted nor made unique",
)
edited(
    "request_worker",
    "leaves_closing_to_the_collector",
    {"    finally:\n        tracker.close()": "    finally:\n        pass"},
    message="closed when there is a session",
)


edited(
    "request_worker", "whole_seconds_from_one",
    {"settimeout(wait_seconds)": "settimeout(max(1, round(wait_seconds)))"},
    message="a wait of at most wait_seconds",
)  # fmt: skip
edited(
    "measure_remotely", "samples_of_20_ms",
    {"repeat=repeats)": "repeat=repeats, min_repeat_ms=20)"},
    message="however long they take",
)  # fmt: skip
edited(
    "measure_remotely", "a_sample_per_call_of_the_timer",
    {
        "repeat=repeats)": "repeat=1)",
        "np.array(timer(*arguments, output).results)":
        "np.array([timer(*arguments, output).mean for _ in range(repeats)])",
    },
    message="samples of .* calls, an array of seconds",
)  # fmt: skip
edited(
    "measure_remotely", "two_inputs", {"for each in inputs]": "for each in inputs[:2]]"},
    message="expected: measure_remotely to run",
)  # fmt: skip
edited(
    "measure_remotely", "warms_up",
    {'    module["main"](*arguments, output)\n':
     '    for _ in range(2):\n        module["main"](*arguments, output)\n'},
    message="main called once for the output",
)  # fmt: skip
edited(
    "rpc_runner", "one_worker_per_core",
    {"    runner = ":
     "    import os\n\n    workers = min(workers, os.cpu_count() or 1)\n    runner = "},
    message="the others idle",
)  # fmt: skip
edited(
    "rpc_runner", "whole_seconds", {"timeout=trial_seconds": "timeout=int(trial_seconds)"},
    message="given up after trial_seconds",
)  # fmt: skip
edited(
    "survive_lost_worker", "empties_the_list",
    {"    return results": "    del inputs[:]\n    return results"},
    message="the list of trials as it was",
)  # fmt: skip


edited(
    "request_worker",
    "cuts_session_seconds",
    {"session_timeout=session_seconds": "session_timeout=int(session_seconds)"},
    message="ends after",
)
edited(
    "request_worker",
    "cuts_wait_seconds",
    {"settimeout(wait_seconds)": "settimeout(int(wait_seconds) or 0.001)"},
    message="a wait of wait_seconds",
)
edited(
    "request_worker",
    "leaves_a_default_time_limit",
    {"tracker = rpc": ("socket.setdefaulttimeout(wait_seconds)\n    tracker = rpc")},
    message="default time limit",
)
edited(
    "measure_remotely",
    "sends_under_a_fixed_name",
    {
        "session.upload(library)": "session.upload(library, target='library.so')",
        "Path(library).name": "'library.so'",
    },
    message="under its own name",
)
edited(
    "rpc_runner",
    "flushes_caches",
    {"min_repeat_ms=20)": "min_repeat_ms=20, enable_cpu_cache_flush=True)"},
    message="and nothing else",
)
edited(
    "rpc_runner",
    "cuts_session_seconds_of_runner",
    {"session_timeout_sec=session_seconds": "session_timeout_sec=int(session_seconds)"},
    message="ends a session after",
)
edited(
    "survive_lost_worker",
    "gives_equal_trials_one_result",
    {
        "    return results": (
            "    by_input = {id(each): result for each, result in zip(inputs, "
            "results)}\n"
            "    return [by_input[id(each)] for each in inputs]"
        )
    },
    message="given twice",
)
edited(
    "predict",
    "caps_builders_by_the_round",
    {"stages.builders / stages.build": "min(stages.builders, stages.batch) / stages.build"},
    message="rounds overlap",
)
edited(
    "predict",
    "caps_builders_by_workers",
    {"stages.builders / stages.build": "min(stages.builders, count) / stages.build"},
    message="whatever the number",
)
edited(
    "predict",
    "names_the_last_for_all",
    {"    return rows": "    return [(count, rate, rows[-1][2]) for count, rate, _ in rows]"},
    message="belongs to each count",
)


edited(
    "throughput",
    "waves_rounded",
    {"math.ceil(stages.batch / workers)": "round(stages.batch / workers + 0.499)"},
    message="waves are rounded up",
)


edited(
    "request_worker",
    "leaves_its_own_connection_open",
    {
        "    socket.create_connection((host, port), timeout=wait_seconds).close()": (
            "    request_worker.probe = socket.create_connection((host, port), wait_seconds)"
        )
    },
    message="every connection to the tracker closed",
)
edited(
    "rpc_runner",
    "always_this_machine",
    {"(host, port, key,": '("127.0.0.1", port, key,'},
    message="workers of key",
)
edited(
    "rpc_runner",
    "keeps_the_runner_of_a_tracker",
    {"    return runner": "    return rpc_runner.__dict__.setdefault(f'{host} {port}', runner)"},
    message="session_seconds",
)
edited(
    "measure_remotely",
    "keeps_the_output_of_a_library",
    {
        "result = output.numpy()": "kept = measure_remotely.__dict__\n"
        "    result = kept.setdefault(library, output.numpy())"
    },
    message="those of this call, not of an earlier one",
)


edited(
    "survive_lost_worker",
    "gives_up_where_several_are_lost_again",
    {
        "        left = [index": "        before = left\n        left = [index",
        "        if not left:": "        if not left or len(left) == len(before) > 1:",
    },
    message="when to stop",
)


edited(
    "measure_remotely",
    "absolute_values_of_single_numbers",
    {
        "tvm.runtime.tensor(each, device)": (
            "tvm.runtime.tensor(np.abs(each) if each.shape == (1, 1) else each, device)"
        )
    },
    message="the output of single numbers",
)


edited(
    "measure_remotely",
    "loads_by_the_name_in_lower_case",
    {"Path(library).name": "Path(library).name.lower()"},
    message="load_module",
)


edited(
    "survive_lost_worker",
    "runs_the_first_of_many_again",
    {
        "results[index] = future.result()": (
            "results[index] = future.result()\n"
            "            if len(futures) > 16 and index == left[0]:\n"
            "                results[index] = "
            "runner.run([inputs[index]])[0].result()"
        )
    },
    message="the lost ones run twice",
)


edited(
    "predict",
    "uploads_of_a_millisecond_at_least",
    {"1 / stages.upload": "1 / max(stages.upload, 1e-3)"},
    message="trials/s",
)


edited(
    "measure_remotely",
    "milliseconds_of_many_samples",
    {
        "np.array(timer(*arguments, output).results)": (
            "np.array(timer(*arguments, output).results) * (1e3 if repeats > 8 else 1)"
        )
    },
    message="the seconds",
)


edited(
    "survive_lost_worker",
    "ten_attempts_at_most",
    {"range(attempts)": "range(min(attempts, 10))"},
    message="is run \\d+ times",
)


edited(
    "measure_remotely",
    "output_in_double_precision",
    {"output.numpy()": "output.numpy().astype('float64')"},
    message="the output in float32",
)


edited(
    "measure_remotely",
    "the_shape_of_a_single_input",
    {
        "tvm.runtime.empty(shape,": (
            "tvm.runtime.empty(inputs[0].shape if len(inputs) == 1 else shape,"
        )
    },
    message="of 1 inputs",
)


edited(
    "request_worker",
    "key_in_lower_case",
    {"tracker.request(key,": "tracker.request(key.lower(),"},
    message="Rack-7",
)


edited(
    "survive_lost_worker",
    "all_sent_again",
    {
        (
            "        futures = runner.run([inputs[index] for index in left])\n"
            "        for index, future in zip(left, futures, strict=True):"
        ): (
            "        futures = runner.run(list(inputs))\n"
            "        for index, future in enumerate(futures):\n"
            "            if index not in left:\n"
            "                continue"
        )
    },
    message="sent out again",
)


edited(
    "measure_remotely",
    "clock_on_this_side",
    {
        "np.array(timer(*arguments, output).results)": (
            "np.array([__import__('timeit').timeit(lambda: "
            "module['main'](*arguments, output), number=number) / number for _ "
            "in range(repeats)])"
        )
    },
    message="no time_evaluator",
)


edited(
    "survive_lost_worker",
    "one_kind_of_loss",
    {
        "if is_lost(results[index].error_msg)]": (
            "if is_lost(results[index].error_msg) and 'Connection' in "
            "str(results[index].error_msg)]"
        )
    },
    message="run again",
)


edited(
    "predict",
    "one_list_for_all_calls",
    {"    rows = []\n": ("    rows = predict.__dict__.setdefault('rows', [])\n    rows.clear()\n")},
    message="a list of its own",
)


edited(
    "survive_lost_worker",
    "gives_up_many_lost_trials",
    {
        "        if not left:": "        if not left or len(left) == len(inputs) > 3:",
    },
    message="third time",
)

edited(
    "request_worker",
    "ten_seconds_at_least",
    {"session_timeout=session_seconds": "session_timeout=max(session_seconds, 10)"},
    message="a session that the worker ends after 6.5 s",
)

edited(
    "measure_remotely",
    "inputs_in_the_order_of_memory",
    {
        "tvm.runtime.tensor(each, device)": "tvm.runtime.tensor("
        'each.ravel(order="K").reshape(each.shape), device)'
    },
    message="the output",
)

edited(
    "measure_remotely",
    "many_axes_as_one",
    {"result = output.numpy()": "result = output.numpy().reshape(shape if len(shape) < 4 else -1)"},
    message="the output of shape",
)

edited(
    "predict",
    "sixteen_counts_at_most",
    {"for count in counts:": "for count in counts[:16]:"},
    message="a row for each",
)

edited(
    "measure_remotely",
    "one_sample_as_a_number",
    {
        "return result, np.array(timer(*arguments, output).results)": (
            "seconds = np.array(timer(*arguments, output).results)\n"
            "    return result, seconds if repeats > 1 else seconds[0]"
        )
    },
    message="of a single sample",
)

edited(
    "predict",
    "until_more_workers_do_not_pay",
    {
        "        rows.append((count, rates[bound], bound))": (
            "        rows.append((count, rates[bound], bound))\n"
            '        if bound != "workers" and len(rows) > 6:\n'
            "            break"
        )
    },
    message="the slowest resource for",
)


@right("request_worker")
def asks_in_the_trackers_words(host, port, key, *, wait_seconds, session_seconds):
    import socket

    from tvm import rpc
    from tvm.rpc import base

    socket.create_connection((host, port), timeout=wait_seconds).close()
    tracker = rpc.connect_tracker(host, port)
    try:
        tracker._sock.settimeout(wait_seconds)
        base.sendjson(tracker._sock, [base.TrackerCode.REQUEST, key, "", 1])
        _, (url, free, matchkey) = base.recvjson(tracker._sock)
    except TimeoutError as error:
        raise TimeoutError(f"no worker of {key!r} within {wait_seconds} s") from error
    finally:
        tracker.close()
    return rpc.connect(url, free, matchkey, session_timeout=session_seconds)


edited(
    "measure_remotely",
    "reads_the_output_last",
    {
        "    result = output.numpy()\n": "",
        "    return result, np.array(timer(*arguments, output).results)": "    seconds = np.array("
        "timer(*arguments, output).results)\n    return output.numpy(), seconds",
    },
    message="(?s)the output of the first call.*the order",
)


@mutant("measure_remotely", message="(?s)the output of the first call.*the order")
def times_before_it_calls(session, library, inputs, shape, *, number, repeats):
    from pathlib import Path

    import numpy as np
    import tvm

    session.upload(library)
    module = session.load_module(Path(library).name)
    device = session.cpu()
    arguments = [tvm.runtime.tensor(each, device) for each in inputs]
    output = tvm.runtime.empty(shape, "float32", device)
    timer = module.time_evaluator("main", device, number=number, repeat=repeats)
    seconds = np.array(timer(*arguments, output).results)
    module["main"](*arguments, output)
    return output.numpy(), seconds


edited(
    "measure_remotely",
    "inputs_with_axes_alone",
    {"for each in inputs]": "for each in inputs if each.ndim]"},
    message=r"(?s)main called with 7 tensors.*an input of shape \(\)",
)

edited(
    "request_worker",
    "closes_where_there_is_no_error",
    {
        "return tracker.request(key, session_timeout=session_seconds, max_retry=1)": (
            "session = tracker.request(key, session_timeout=session_seconds, max_retry=1)\n"
            "        tracker.close()\n"
            "        return session"
        ),
        "    finally:\n        tracker.close()": "",
    },
    message="(?s)closed when request_worker ends by an error.*has gone.*in a finally",
)

edited(
    "request_worker",
    "asks_five_times",
    {
        (
            "    tracker._sock.settimeout(wait_seconds)\n"
            "    try:\n"
            "        return tracker.request(key, session_timeout=session_seconds, max_retry=1)\n"
            "    except RuntimeError as error:\n"
            "        raise"
        ): (
            "    try:\n"
            "        for attempt in range(5):\n"
            "            if tracker._sock is None:\n"
            "                tracker._connect()\n"
            "            tracker._sock.settimeout(wait_seconds)\n"
            "            try:\n"
            "                return tracker.request(\n"
            "                    key, session_timeout=session_seconds, max_retry=1\n"
            "                )\n"
            "            except RuntimeError:\n"
            "                if attempt == 4:\n"
            "                    raise\n"
            "    except RuntimeError as error:\n"
            "        raise"
        )
    },
    message="(?s)wait_seconds in all.*5 requests.*one request",
)


@right("request_worker")
def asks_again_while_there_is_time(host, port, key, *, wait_seconds, session_seconds):
    import socket
    import time

    from tvm import rpc

    until = time.monotonic() + wait_seconds
    socket.create_connection((host, port), timeout=wait_seconds).close()
    while (left := until - time.monotonic()) > 0:
        tracker = rpc.connect_tracker(host, port)
        tracker._sock.settimeout(left)
        try:
            return tracker.request(key, session_timeout=session_seconds, max_retry=1)
        except RuntimeError:
            pass
        finally:
            tracker.close()
    raise TimeoutError(f"no worker of key {key!r} for {wait_seconds} s")


@right("measure_remotely")
def copies_inputs_in_their_order(session, library, inputs, shape, *, number, repeats):
    from pathlib import Path

    import numpy as np
    import tvm

    session.upload(library)
    module = session.load_module(Path(library).name)
    device = session.cpu()
    # ascontiguousarray makes one axis of none.
    tensors = [tvm.runtime.tensor(np.ascontiguousarray(each), device=device) for each in inputs]
    tensors.append(tvm.runtime.empty(tuple(shape), device=device))
    module["main"](*tensors)
    computed = tensors[-1].numpy()
    timed = module.time_evaluator("main", device, number=number, repeat=repeats)(*tensors)
    return computed, np.asarray(timed.results)


@mutant("survive_lost_worker", message="and lost twice, is run again for both places")
def finds_the_first_of_equal_trials(runner, inputs, *, attempts):
    from tvm_practice.farm import is_lost

    results = {}
    left = list(range(len(inputs)))
    for _ in range(attempts):
        futures = runner.run([inputs[place] for place in left])
        for place, future in zip(left, futures, strict=True):
            results[place] = future.result()
        left = [
            list(inputs).index(inputs[place]) for place in left if is_lost(results[place].error_msg)
        ]
        if not left:
            break
    return [results[place] for place in range(len(inputs))]


right_edited(
    "survive_lost_worker",
    "looks_at_the_trials",
    {
        "    results: list[Any]": "    assert all(each.artifact_path for each in inputs)\n"
        "    results: list[Any]"
    },
)


right_edited(
    "rpc_runner",
    "an_initializer_that_calls_it",
    {
        "    runner.pool.shutdown()\n": "    def start(limit):\n"
        "        os.environ['OMP_NUM_THREADS'] = str(limit)\n"
        "        end_with_parent()\n\n"
        "    runner.pool.shutdown()\n",
        "PopenPoolExecutor(workers, timeout=trial_seconds, initializer=end_with_parent)": (
            "PopenPoolExecutor(\n        workers, trial_seconds, start, (1,)\n    )"
        ),
        "    from tvm.s_tir import": "    import os\n\n    from tvm.s_tir import",
    },
)
edited(
    "rpc_runner",
    "an_initializer_that_does_something_else",
    {
        "timeout=trial_seconds, initializer=end_with_parent": (
            "timeout=trial_seconds, initializer=int, initargs=('7',)"
        )
    },
    message="the pool's processes end when this process ends",
)
