"""Answers that do not do the work themselves: none of them passes, and none spoils a grading."""

from pathlib import Path

import pytest

from tvm_practice.course import checks
from tvm_practice.course.catalog import SOLUTIONS, find
from tvm_practice.course.editing import function_source
from tvm_practice.course.grading import Grader, source_file

_RATE = "2e-6 * m * n * k / milliseconds"
_CHECKS = "tvm_practice.course.checks.schedule_analysis"

_REPLY = (
    "import gc, json, os, struct, sys\n"
    "passed = {'status': 'passed', 'message': '', 'seconds': 0.1, 'cheated': False}\n"
)

# Each is the body of gflop_per_second, and what it is told.
_CHEATS = {
    "imports_the_reference": (
        "from solutions.schedule_analysis import gflop_per_second as key\n"
        "return key(m, n, k, milliseconds)",
        "calls the reference answer",
    ),
    "finds_it_among_the_modules": (
        "import sys\nkey = sys.modules['solu' + 'tions.schedule_analysis']\n"
        "return getattr(key, 'gflop_per_second')(m, n, k, milliseconds)",
        "calls the reference answer",
    ),
    "hides_that_it_was_caught": (
        "import importlib\nkey = importlib.import_module('solutions.schedule_analysis')\n"
        "try:\n    return key.gflop_per_second(m, n, k, milliseconds)\n"
        f"except BaseException:\n    return {_RATE}",
        "calls the reference answer",
    ),
    "makes_a_function_of_its_code": (
        "import types\nimport solutions.schedule_analysis as key\n"
        "copy = types.FunctionType(key.gflop_per_second.__code__, {})\n"
        "return copy(m, n, k, milliseconds)",
        "calls the reference answer",
    ),
    "executes_its_text": (
        "import importlib.util\nfrom pathlib import Path\n"
        "text = Path(importlib.util.find_spec('solutions.schedule_analysis').origin).read_text()\n"
        "names = {}\nexec(text, names)\nreturn names['gflop_per_second'](m, n, k, milliseconds)",
        "reads the reference answer",
    ),
    "inspects_its_source": (
        "import inspect, linecache\nimport solutions.schedule_analysis as key\n"
        "linecache.clearcache()\nnames = {}\nexec(inspect.getsource(key), names)\n"
        "return names['gflop_per_second'](m, n, k, milliseconds)",
        "reads the reference answer",
    ),
    "loads_a_copy_of_the_module": (
        "import importlib.util\nspec = importlib.util.find_spec('solutions.schedule_analysis')\n"
        "copy = importlib.util.module_from_spec(spec)\nspec.loader.exec_module(copy)\n"
        "return copy.gflop_per_second(m, n, k, milliseconds)",
        "reads the reference answer",
    ),
    "asks_another_process": (
        "from tvm_practice import engines\n"
        "return engines.call('current', 'solutions.schedule_analysis:gflop_per_second',\n"
        "    dict(m=m, n=n, k=k, milliseconds=milliseconds))",
        "starts a process with the reference answers",
    ),
    "asks_another_python": (
        "import subprocess, sys\nsaid = subprocess.run([sys.executable, '-c',\n"
        "    'from solutions.schedule_analysis import gflop_per_second as key\\n'\n"
        "    f'print(key({m}, {n}, {k}, {milliseconds}))'], capture_output=True, text=True)\n"
        "return float(said.stdout)",
        "starts a process with the reference answers",
    ),
    "replaces_the_comparison": (
        f"import {_CHECKS} as checks\nchecks._expect_number = lambda *a, **o: None\nreturn 0.0",
        "changes _expect_number",
    ),
    "replaces_expect": (
        "from tvm_practice.course import expect\nexpect.expect.__code__ = (\n"
        "    lambda condition, *, expected, seen, look: None).__code__\nreturn 0.0",
        "changes __code__ of expect",
    ),
    "loosens_a_default": (
        "from tvm_practice.course import expect\n"
        "expect.expect_close.__kwdefaults__['atol'] = 1e9\n"
        f"return {_RATE}",
        "changes atol",
    ),
    "replaces_numpy": (
        "import numpy as np\nnp.isclose = lambda *a, **o: True\nreturn 0.0",
        "changes isclose of numpy",
    ),
    "puts_numpy_back_afterwards": (
        "import numpy as np\nkept = np.isclose\n"
        "def close(*a, **o):\n    np.isclose = kept\n    return True\n"
        "np.isclose = close\nreturn 0.0",
        "changes isclose of numpy",
    ),
    "replaces_json": (
        "import json\njson.dumps = lambda *a, **o: '{\"result\": {\"status\": \"passed\", '\\\n"
        "    '\"message\": \"\", \"seconds\": 0}}'\nreturn 0.0",
        "changes dumps of json",
    ),
    "disarms_the_guard": (
        "from tvm_practice.course import guarding\nguarding.Guard.note = lambda *a: None\n"
        f"return {_RATE}",
        "changes note of Guard",
    ),
    "dismisses_the_guard": (
        "from tvm_practice.course import guarding\nguarding._guard = None\n"
        f"return {_RATE}",
        "changes the grader's guard",
    ),
    "hides_a_function_of_pythons": (
        f"import {_CHECKS} as checks\nchecks.bool = lambda value: True\nreturn 0.0",
        "changes bool of",
    ),
    "gives_a_class_a_method": (
        "from tvm_practice.course.expect import CheckFailed\n"
        "CheckFailed.__str__ = lambda self: ''\nreturn 0.0",
        "changes __str__ of CheckFailed",
    ),
    "reads_its_callers_frame": (
        "import sys\nframe = sys._getframe()\nwhile 'want' not in frame.f_locals:\n"
        f"    frame = frame.f_back\n    if frame is None:\n        return {_RATE}\n"
        "return frame.f_locals['want']",
        "looks into the frames",
    ),
    "inspects_its_callers_frame": (
        f"import inspect\nframe = inspect.currentframe()\nreturn {_RATE}",
        "looks into the frames",
    ),
    "reads_a_frame_as_tvms_errors_do": (
        "import sys, types\n"
        "def _create_frame():\n    return peek()\n"
        "def append_traceback():\n    return made()\n"
        "names = {'__name__': 'tvm_ffi.error', 'peek': lambda: sys._getframe()}\n"
        "names['made'] = types.FunctionType(_create_frame.__code__, names)\n"
        "frame = types.FunctionType(append_traceback.__code__, names)()\n"
        f"return {_RATE}",
        "looks into the frames",
    ),
    "reads_a_frame_off_a_traceback": (
        "try:\n    raise ValueError\nexcept ValueError as error:\n"
        f"    frame = error.__traceback__.tb_frame.f_back\nreturn {_RATE}",
        "looks into the frames",
    ),
    "reads_it_through_a_link": (
        "import os, sys, tempfile\nlink = os.path.join(tempfile.mkdtemp(), 'x')\n"
        "os.symlink(sys.modules['solutions.schedule_analysis'].__file__, link)\n"
        f"text = open(link).read()\nreturn {_RATE}",
        "reads the reference answer",
    ),
    "reads_it_by_a_name_of_bytes": (
        "import os, sys\nname = os.fsencode(sys.modules['solutions.schedule_analysis'].__file__)\n"
        f"text = open(name).read()\nreturn {_RATE}",
        "reads the reference answer",
    ),
    "asks_another_shell": (
        f"import subprocess\nsubprocess.run('cat so*/sch*', shell=True)\nreturn {_RATE}",
        "starts a process",
    ),
    "asks_another_repository": (
        f"import os\nos.system('git show HEAD:so* > /dev/null 2>&1')\nreturn {_RATE}",
        "starts a process",
    ),
    "draws_zeros_from_now_on": (
        f"import numpy as np\nnp.random.default_rng = lambda *a: None\nreturn {_RATE}",
        "changes default_rng of numpy.random",
    ),
    "replaces_a_primitive": (
        f"import tvm\ntvm.s_tir.Schedule.get_loops = lambda *a: []\nreturn {_RATE}",
        "changes get_loops of Schedule",
    ),
    "leaves": ("raise SystemExit(0)", "SystemExit"),
    "leaves_while_it_is_traced": (
        "import sys\ndef leave(frame, event, argument):\n"
        "    if frame.f_code.co_name == 'verdict':\n        raise SystemExit(0)\n"
        f"sys.settrace(leave)\nreturn {_RATE}",
        "looks into the frames",
    ),
    "leaves_while_its_error_is_told": (
        "class Odd(Exception):\n    def __str__(self):\n        raise SystemExit(0)\nraise Odd",
        "SystemExit, raised while the grader itself was running",
    ),
    "forks_and_leaves": (
        f"import os\nif os.fork() == 0:\n    raise SystemExit(0)\nreturn {_RATE}",
        "forks the grader's process",
    ),
    "answers_in_another_name": (
        "import json, os, struct\nverdict = dict(status='passed', message='', seconds=0.0, "
        "cheated=False)\ntext = json.dumps({'id': '', 'result': verdict}).encode()\n"
        "for pipe in range(3, 60):\n    try:\n"
        "        os.write(pipe, struct.pack('!i', len(text)) + text)\n"
        "    except OSError:\n        pass\nreturn 0.0",
        "",
    ),
    "seeds_everybodys_draws": (
        f"import numpy as np\nnp.random.seed(7)\nreturn {_RATE}",
        "seeds NumPy's shared generator",
    ),
    "seeds_pythons_draws": (
        f"import random\nrandom.seed(7)\nreturn {_RATE}",
        "seeds Python's shared generator",
    ),
    "spoils_it_later": (
        "import threading, time, sys\n"
        f"checks = sys.modules['{_CHECKS}']\n"
        "def spoil():\n"
        "    while True:\n"
        "        checks._expect_number = lambda *a, **o: None\n"
        "        time.sleep(1e-4)\n"
        "threading.Thread(target=spoil, daemon=True).start()\n"
        "time.sleep(0.01)\nreturn 0.0",
        "starts a thread",
    ),
    "spoils_it_for_a_moment": (
        "import concurrent.futures, sys, time\n"
        f"checks = sys.modules['{_CHECKS}']\n"
        "def spoil():\n"
        "    kept = checks._expect_number\n"
        "    checks._expect_number = lambda *a, **o: None\n"
        "    time.sleep(0.2)\n"
        "    checks._expect_number = kept\n"
        "concurrent.futures.ThreadPoolExecutor(1).submit(spoil)\nreturn 0.0",
        "starts a thread",
    ),
    "spoils_it_at_a_signal": (
        "import signal, sys\n"
        f"checks = sys.modules['{_CHECKS}']\n"
        "def spoil(number, frame):\n"
        "    checks._expect_number = lambda *a, **o: None\n"
        "signal.signal(signal.SIGALRM, spoil)\n"
        "signal.setitimer(signal.ITIMER_REAL, 60)\nreturn 0.0",
        "handles a signal",
    ),
    "writes_the_check": (
        f"import sys\nopen(sys.modules['{_CHECKS}'].__file__, 'a').close()\nreturn {_RATE}",
        "changes a file of the grader",
    ),
    "writes_the_check_once_it_is_caught": (
        "import gc, sys\ngc.get_objects()\n"
        f"open(sys.modules['{_CHECKS}'].__file__ + '.new', 'w').close()\nreturn {_RATE}",
        "looks into the frames or objects",
    ),
    "puts_another_check_in_its_place": (
        "import os, sys, tempfile\n_, path = tempfile.mkstemp()\n"
        f"os.replace(path, sys.modules['{_CHECKS}'].__file__ + '.new')\nreturn {_RATE}",
        "changes a file of the grader",
    ),
    "searches_all_objects": (
        f"import gc\nfound = gc.get_objects()\nreturn {_RATE}",
        "looks into the frames or objects",
    ),
    "writes_the_verdict_itself": (
        f"{_REPLY}"
        "for each in gc.get_objects():\n"
        "    if type(each) is dict and each.keys() >= {'id', 'function', 'arguments'}:\n"
        "        said = json.dumps({'id': each['id'], 'result': passed}).encode()\n"
        "        os.write(int(sys.argv[2]), struct.pack('!i', len(said)) + said)\n"
        "return 0.0",
        "looks into the frames or objects",
    ),
    "changes_how_a_verdict_is_told": (
        f"{_REPLY}kept = json.JSONEncoder.encode\n"
        "def encode(self, told):\n"
        "    return kept(self, told | {'result': passed} if 'result' in told else told)\n"
        "json.JSONEncoder.encode = encode\nreturn 0.0",
        "changes encode of JSONEncoder",
    ),
    "puts_its_own_encoder_there": (
        f"{_REPLY}class Encoder(json.JSONEncoder):\n"
        "    def encode(self, told):\n"
        "        return super().encode(told | {'result': passed} if 'result' in told else told)\n"
        "json._default_encoder = Encoder()\nreturn 0.0",
        "changes _default_encoder of json",
    ),
    "changes_how_a_verdict_is_sent": (
        f"{_REPLY}from multiprocessing.connection import Connection\n"
        "kept = Connection._send_bytes\n"
        "def send(self, told):\n"
        "    said = json.loads(bytes(told)) | {'result': passed}\n"
        "    return kept(self, json.dumps(said).encode())\n"
        "Connection._send_bytes = send\nreturn 0.0",
        "changes _send_bytes of Connection",
    ),
    "waits_in_what_is_printed_to": (
        "import sys\n"
        "class Printed:\n"
        "    def __getattr__(self, name):\n"
        "        return getattr(sys.__stdout__, name)\n"
        "sys.stdout = Printed()\nreturn 0.0",
        "leaves another object in sys.stdout",
    ),
    "reads_the_reference_in_c": (
        "import ctypes, importlib.util\n"
        "path = importlib.util.find_spec('solutions.schedule_analysis').origin\n"
        "libc, text = ctypes.CDLL(None), ctypes.create_string_buffer(1 << 20)\n"
        "libc.read(libc.open(path.encode(), 0), text, 1 << 20)\n"
        "names = {}\nexec(text.value.decode(), names)\n"
        "return names['gflop_per_second'](m, n, k, milliseconds)",
        "calls C by ctypes",
    ),
    "reads_the_reference_as_a_tensor": (
        "import importlib.util, os, torch, types\n"
        "path = importlib.util.find_spec('solutions.schedule_analysis').origin\n"
        "text = torch.from_file(path, size=os.stat(path).st_size, dtype=torch.uint8)\n"
        "module = compile(bytes(text.tolist()), 'mine', 'exec')\n"
        "codes = [each for each in module.co_consts if isinstance(each, types.CodeType)]\n"
        "[code] = [each for each in codes if each.co_name == 'gflop_per_second']\n"
        "return types.FunctionType(code, {})(m, n, k, milliseconds)",
        "runs a copy of the reference answer",
    ),
    "puts_its_own_numpy_there": (
        "import sys, types\n"
        f"checks = sys.modules['{_CHECKS}']\n"
        "fake = types.ModuleType('numpy')\n"
        "vars(fake).update(vars(checks.np), isclose=lambda *a, **o: True)\n"
        "checks.np = fake\nreturn 0.0",
        "changes np of",
    ),
}  # fmt: skip


def _file(folder: Path, body: str) -> str:
    lines = "\n".join(f"    {line}" for line in body.split("\n"))
    path = folder / "mine.py"
    path.write_text(f"def gflop_per_second(m, n, k, milliseconds):\n{lines}\n")
    return str(path)


@pytest.mark.parametrize("name", [each for each in _CHEATS if "another" not in each])
def test_a_cheat_is_refused_and_spoils_nothing(grader: Grader, name: str, tmp_path: Path) -> None:
    rate = find("gflop_per_second")
    body, said = _CHEATS[name]
    verdict = grader.grade(rate, _file(tmp_path, body))
    assert verdict.status == "failed"
    assert said in verdict.message and "look at:" in verdict.message, verdict.message
    assert not list(Path(checks.__file__).parent.glob("*.new")), (
        "a file of the grader's was written"
    )
    after = [
        grader.grade(rate, _file(tmp_path, f"return {value}")).status for value in (_RATE, "0.0")
    ]
    assert after == ["passed", "failed"]
    assert grader.grade(rate, SOLUTIONS).status == "passed"


@pytest.mark.pages
@pytest.mark.real_processes
def test_a_process_that_knows_the_answers_is_refused(tmp_path: Path) -> None:
    """Where processes are forked, the answer starts none."""
    with Grader() as grader:
        for body, said in (_CHEATS[each] for each in _CHEATS if "another" in each):
            verdict = grader.grade(find("gflop_per_second"), _file(tmp_path, body))
            assert verdict.status == "failed" and said in verdict.message, body


def test_a_reference_that_is_a_step_of_the_export_is_one_too(
    grader: Grader, tmp_path: Path
) -> None:
    path = tmp_path / "mine.py"
    for body in (
        "from tvm_practice.tvm_export.steps.comparing import verify\n",
        "def verify(outputs, reference, *, atol, rtol):\n"
        "    from tvm_practice.tvm_export.steps import comparing\n"
        "    return comparing.verify(outputs, reference, atol=atol, rtol=rtol)\n",
    ):
        path.write_text(body)
        verdict = grader.grade(find("relay_import.verify"), str(path))
        assert verdict.status == "failed" and "calls the reference answer" in verdict.message
    assert grader.grade(find("relay_import.verify"), SOLUTIONS).status == "passed"


def test_an_error_may_come_through_tvm(grader: Grader, tmp_path: Path) -> None:
    """TVM then makes a frame of the answer's file, as it would for its traceback."""
    answer = (
        "    import tvm\n"
        "    def raises():\n"
        "        raise KeyError('no such matrix')\n"
        "    try:\n"
        "        tvm.runtime.convert(raises)()\n"
        "    except KeyError:\n"
        "        pass\n"
    )
    text = source_file("te_basics", SOLUTIONS).read_text()
    head, line, body = function_source(text, "matmul").partition("    from tvm import te\n")
    path = tmp_path / "mine.py"
    path.write_text(f"from typing import Any\n\n\n{head}{line}{answer}{body}\n")
    assert grader.grade(find("matmul"), str(path)).message == ""


def test_the_answers_of_other_exercises_may_be_used(grader: Grader, tmp_path: Path) -> None:
    """compile_variants is made of phase 2's functions, the learner's own or not."""
    path = tmp_path / "mine.py"
    text = source_file("schedule_analysis", SOLUTIONS).read_text()
    path.write_text(
        "from typing import Any\n\n\n" + function_source(text, "compile_variants") + "\n"
    )
    assert grader.grade(find("compile_variants"), str(path)).message == ""


@pytest.mark.parametrize(
    ("exercise", "body", "said"),
    [
        (
            "puzzles.one_loop",
            "def one_loop(schedule):\n"
            "    from tvm_practice.course.puzzle_loops import PUZZLES\n"
            "    other = PUZZLES['no_middle_stage'].after\n"
            "    object.__setattr__(PUZZLES['one_loop'], 'after', other)\n",
            "changes after of Puzzle",
        ),
        (
            "puzzles.one_loop",
            "def one_loop(schedule):\n"
            "    from tvm_practice.course.puzzle_loops import PUZZLES\n"
            "    PUZZLES['one_loop'] = PUZZLES['no_middle_stage']\n",
            "changes one_loop of a table",
        ),
        (
            "schedule_analysis.sample_latency",
            "from tvm_practice.tvm_export.steps.timing import sample_latency\n",
            "calls the reference answer",
        ),
        (
            "bug_hunts.column_walk",
            "def column_walk(schedule):\n"
            "    from tvm_practice.course.suspects import HUNTS\n"
            "    return HUNTS['column_walk'].cause\n",
            "reads the cause",
        ),
        (
            "bug_hunts.column_walk",
            "def column_walk(schedule):\n"
            "    from tvm_practice.course.suspects import HUNTS\n"
            "    causes = vars(HUNTS['column_walk'])['causes']\n"
            "    return 'abcd'[[each.why_not for each in causes].index('')]\n",
            "reads the cause",
        ),
        (
            "bug_hunts.column_walk",
            "def column_walk(schedule):\n"
            "    from tvm_practice.course import suspects\n"
            "    return 'd' if 'lambda' in open(suspects.__file__).read() else 'a'\n",
            "reads the file with the letters",
        ),
        (
            "te_basics.matmul",
            "def matmul(m, n, k):\n"
            "    from tvm_practice.course.products import matmul_tensors\n"
            "    return matmul_tensors(m, n, k)\n",
            "calls the reference answer",
        ),
    ],
)
def test_tables_and_functions_that_do_the_same_are_guarded_too(
    grader: Grader, tmp_path: Path, exercise: str, body: str, said: str
) -> None:
    path = tmp_path / "mine.py"
    path.write_text(body)
    verdict = grader.grade(find(exercise), str(path))
    assert verdict.status == "failed" and said in verdict.message, verdict.message
    assert grader.grade(find(exercise), SOLUTIONS).status == "passed"
