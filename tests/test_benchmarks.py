"""The command lines of the hand-written schedules' benchmarks; never their figures."""

import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from tests.test_command_lines import quick_help

BENCHMARKS = Path(__file__).parent.parent / "benchmarks"
NAMES = (
    *("matmul", "conv2d", "winograd", "startup", "tuning", "deploy_cpp"),
    *("torch_compile", "low_precision", "low_precision_models"),
    *("busy_machine", "goals", "rivals", "compilers", "runtime_checks", "c_source"),
)


@pytest.mark.parametrize("name", NAMES)
def test_help_has_examples_and_needs_no_tvm(name: str) -> None:
    quick_help(name, folder=BENCHMARKS)


@pytest.mark.parametrize("name", NAMES[:9])
def test_no_page_without_measurements(name: str, tmp_path: Path) -> None:
    ended = subprocess.run(
        [sys.executable, str(BENCHMARKS / f"{name}.py"), "--table"],
        capture_output=True,
        text=True,
        cwd=tmp_path,
    )
    assert ended.returncode == 2 and not ended.stdout
    assert ended.stderr.strip().splitlines()[-1].startswith("Error: ")


def test_no_aims_without_measurements(tmp_path: Path) -> None:
    command = [sys.executable, str(BENCHMARKS / "goals.py")]
    ended = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)
    assert ended.returncode == 2 and "runs has none of matmul.json" in ended.stderr


@pytest.mark.real_processes
def test_load_comes_and_goes() -> None:
    code = (
        f"import sys; sys.path.insert(0, {str(BENCHMARKS)!r})\n"
        "import os, psutil, busy_machine\n"
        "with busy_machine.load_of((0.01, 0.01)) as pids:\n"
        "    loads = [psutil.Process(each) for each in pids]\n"
        "    assert len(loads) == 2 and os.getpid() not in [each.ppid() for each in loads]\n"
        "    loads[0].kill()  # a load that ends early is no failure\n"
        "assert not psutil.wait_procs(loads, timeout=10)[1]\n"
    )
    # Captured: the load must not keep its starter's output open.
    subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, timeout=60)


@pytest.mark.real_processes
def test_load_ends_with_its_owner() -> None:
    code = (
        f"import sys; sys.path.insert(0, {str(BENCHMARKS)!r})\n"
        "import busy_machine, time\n"
        "with busy_machine.load_of((0.01, 0.01)) as pids:\n"
        "    print(*pids, flush=True)\n"
        "    time.sleep(60)\n"
    )
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE) as owner:
        assert owner.stdout
        loads = [psutil.Process(int(pid)) for pid in owner.stdout.readline().split()]
        assert len(loads) == 2
        owner.kill()
    _, left = psutil.wait_procs(loads, timeout=30)
    for each in left:
        each.kill()
    assert not left
