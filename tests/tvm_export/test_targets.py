"""Targets: one spelling for both engines, mistakes named, and what this machine can run."""

import platform
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from tests.conftest import Processes
from tvm_practice import engines
from tvm_practice.engines.host import flags
from tvm_practice.tvm_export.errors import BadInput
from tvm_practice.tvm_export.targets import BOARDS, to_dictionary

FUNCTIONS = "tests.tvm_export.targets_functions"
on_linux_x86 = pytest.mark.skipif(
    not sys.platform.startswith("linux") or platform.machine() != "x86_64",
    reason="the processors in it are x86-64's, the system Linux",
)
HASWELL = ["pni", "ssse3", "sse4_1", "sse4_2", "popcnt", "cx16", "movbe", "abm"] + [
    "bmi1", "bmi2", "f16c", "fma", "avx", "avx2",
]  # fmt: skip


@pytest.fixture(scope="module")
def printed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the engines' processes print to."""
    return tmp_path_factory.mktemp("targets") / "output"


@pytest.fixture(scope="module", params=engines.ENGINES)
def session(request: pytest.FixtureRequest, printed: Path) -> Iterator[engines.Session]:
    """A process of each engine in turn."""
    if reason := engines.unavailable_reason(request.param):
        pytest.skip(reason)
    with printed.open("ab") as output, engines.Session(request.param, output=output) as opened:
        yield opened


def test_a_text_becomes_a_dictionary() -> None:
    text = "llvm -mcpu=core-avx2 -mattr=+fma -mattr=-avx512f --num-cores=4 -model='a b'"
    assert to_dictionary(text) == {
        "kind": "llvm",
        "mcpu": "core-avx2",
        "mattr": "+fma,-avx512f",
        "num-cores": "4",
        "model": "a b",
    }
    assert to_dictionary('{"kind": "llvm", "num-cores": 4}') == {"kind": "llvm", "num-cores": 4}


@pytest.mark.parametrize("text", ["", "llvm mcpu", "llvm -mcpu", "llvm -mcpu=", "llvm -m='", "{"])
def test_a_malformed_text_is_refused(text: str) -> None:
    with pytest.raises(BadInput) as caught:
        to_dictionary(text)
    assert "\n" not in str(caught.value)


def test_llvm_alone_is_this_machine(session: engines.Session) -> None:
    own, found = session.call(f"{FUNCTIONS}:hosts_own")
    assert found == own
    [as_json] = session.call(f"{FUNCTIONS}:resolved", {"texts": ['{"kind": "llvm"}']})
    assert as_json == own


@on_linux_x86
def test_every_option_reaches_the_engine(session: engines.Session) -> None:
    text = (
        "llvm -mcpu=core-avx2 -mattr=+fma,-avx512f -num-cores=3 -mtriple=x86_64-linux-gnu "
        "-keys=cpu,x -libs=mkl -device=mine -model=ours -opt-level=2 -fast-math=1"
    )
    found = session.call(f"{FUNCTIONS}:attributes", {"text": text})
    assert set(found.pop("keys")) == {"cpu", "x", "mine"}
    assert found == {
        "kind": "llvm",
        "mcpu": "core-avx2",
        "mattr": ["+fma", "-avx512f"],
        "num-cores": 3,
        "mtriple": "x86_64-linux-gnu",
        "libs": ["mkl"],
        "device": "mine",
        "model": "ours",
        "opt-level": 2,
        "fast-math": 1,
    }


def test_a_cuda_target_without_a_device(session: engines.Session) -> None:
    text = "cuda -arch=sm_80 -max_threads_per_block=512"
    found = session.call(f"{FUNCTIONS}:attributes", {"text": text})
    assert found["arch"] == "sm_80" and found["max_threads_per_block"] == 512
    assert "gpu" in found["keys"]
    assert session.call(f"{FUNCTIONS}:attributes", {"text": "cuda"})["kind"] == "cuda"
    hosted = session.call(f"{FUNCTIONS}:attributes", {"text": "cuda -arch=sm_80 -host=llvm"})
    assert hosted["arch"] == "sm_80"


def test_llvm_targets_have_a_number_of_threads(session: engines.Session) -> None:
    for text in ("llvm -opt-level=3", '{"kind": "llvm", "opt-level": 3}', "llvm"):
        found = session.call(f"{FUNCTIONS}:attributes", {"text": text})
        assert found["num-cores"] == engines.thread_count(), text


def test_a_tag_of_the_engine(session: engines.Session) -> None:
    found = session.call(f"{FUNCTIONS}:attributes", {"text": "nvidia/nvidia-a100"})
    assert found["arch"] == "sm_80"
    found = session.call(f"{FUNCTIONS}:attributes", {"text": "aws/cpu/c5.xlarge"})
    assert found["mcpu"] == "skylake-avx512" and found["num-cores"] >= 1


def test_an_engines_own_spelling_is_read_again(session: engines.Session) -> None:
    texts = [
        "llvm",
        "llvm -model='a b' -num-cores=7",
        "llvm -mtriple=aarch64-linux-gnu -mcpu=cortex-a72",
        "cuda -arch=sm_90a -max_num_threads=512",
    ]
    once = session.call(f"{FUNCTIONS}:resolved", {"texts": texts})
    again = session.call(f"{FUNCTIONS}:resolved", {"texts": once})
    assert [sorted(each) for each in again] == [sorted(each) for each in once]  # in any order
    assert not [each for each in once if "BadInput" in each]


MISTAKES = [
    ("lllvm", "'lllvm'; did you mean llvm?"),
    ("nvidia/nvidia-a1000", "did you mean nvidia/nvidia-a10"),
    ("llvm -mcpux=1", "-mcpux; did you mean mcpu?"),
    ("llvm -num-core=4", "-num-core; did you mean num-cores?"),
    ("llvm mcpu", "'mcpu' is not of the form -key=value"),
    ("llvm -mcpu haswell", "'-mcpu' is not of the form"),
    ("llvm -mcpu=haswell -mcpu=skylake", "-mcpu is given twice"),
    ("llvm -num-cores=four", "-num-cores=four is not a whole number"),
    ("llvm -num-cores=0", "-num-cores=0 is not a positive number"),
    ("llvm -mtriple=aarch65-linux-gnu", "'aarch65'; did you mean aarch64?"),
    ("llvm -mtriple=nonsense", "no architecture 'nonsense'"),
    ("llvm -mtriple=armv7x-linux", "no architecture 'armv7x'"),
    ("llvm -mtriple=aarch64-linux-gnu -mcpu=cortex-a5", "'cortex-a5'; did you mean cortex-a"),
    ("llvm -mcpu=native", "'llvm' alone is this machine's"),
    ("cuda -arch=80", "-arch=80 is not of the form sm_80"),
    ("cuda -host='llvm -mcpux=1'", "-mcpux; did you mean mcpu?"),
    ('{"kind": "llvm", "mcpu": 5}', "-mcpu=5 is not a word"),
    ('{"kind": "llvm", "mattr": [5]}', "is not a list of words"),
    ('{"kind": "cuda", "host": 5}', "-host=5 is not a target"),
    ('{"mcpu": "haswell"}', "no kind in it"),
    ('{"kind": "llvm"', "not JSON"),
    ("  ", "empty"),
]
X86_MISTAKES = [
    ("llvm -mcpu=skylak", "'skylak'; did you mean skylake?"),
    ("llvm -mcpu=cortex-a72", "'cortex-a72'; add -mtriple=aarch64-linux-gnu"),
    ("llvm -mattr=+avx512ff", "'avx512ff'; did you mean avx512f?"),
    ("llvm -mattr=avx2", "-mattr=avx2 does not begin with + or -"),
]


def assert_refused(
    session: engines.Session, mistakes: list[tuple[str, str]], printed: Path
) -> None:
    before = printed.stat().st_size
    texts = [text for text, _ in mistakes]
    found = session.call(f"{FUNCTIONS}:resolved", {"texts": texts})
    for (text, message), said in zip(mistakes, found, strict=True):
        assert said.startswith(f"BadInput: target {text!r}: "), said
        assert message in said and "\n" not in said
    assert printed.stat().st_size == before  # no line of LLVM's beside ours


def test_mistakes_are_named(session: engines.Session, printed: Path) -> None:
    assert_refused(session, MISTAKES, printed)


@on_linux_x86
def test_mistakes_in_names_of_processors(session: engines.Session, printed: Path) -> None:
    assert_refused(session, X86_MISTAKES, printed)


@on_linux_x86
def test_a_processor_newer_than_llvm_10_and_the_nearest_it_has(session: engines.Session) -> None:
    names = {"sapphirerapids": "cascadelake", "znver4": "cascadelake", "alderlake": "skylake"}
    texts = [f"llvm -mcpu={name}" for name in names]
    found = session.call(f"{FUNCTIONS}:resolved", {"texts": texts})
    for said, (name, nearest) in zip(found, names.items(), strict=True):
        if session.engine == engines.CURRENT:
            assert name in said and "BadInput" not in said
        else:
            assert f"'{name}'; the nearest that it has is {nearest}" in said


def test_this_machine_runs_its_own_targets(session: engines.Session) -> None:
    texts = ["llvm", "llvm -opt-level=3", "c"]
    assert session.call(f"{FUNCTIONS}:not_runnable", {"texts": texts}) == [None, None, None]
    result = session.call(f"{FUNCTIONS}:runs_what_it_says", {"text": "llvm -opt-level=3"})
    np.testing.assert_array_equal(result, 2.0 * np.arange(20))


@on_linux_x86
def test_what_this_machine_cannot_run(session: engines.Session) -> None:
    reasons = {
        "cuda -arch=sm_80": "no CUDA device",
        "rocm": "no ROCm device",
        "llvm -mtriple=aarch64-linux-gnu": "code for aarch64, this machine is x86_64",
        "llvm -mtriple=i686-linux-gnu": "code for i686, this machine is x86_64",
        "llvm -mtriple=x86_64-w64-windows-gnu": "code for Windows, this machine runs Linux",
        "llvm -mtriple=x86_64-unknown-linux-gnu": None,
        "llvm -mtriple=amd64-linux": None,
    }
    if session.call(f"{FUNCTIONS}:not_runnable", {"texts": ["cuda"]}) == [None]:
        reasons.pop("cuda -arch=sm_80")
    found = session.call(f"{FUNCTIONS}:not_runnable", {"texts": list(reasons)})
    assert dict(zip(reasons, found, strict=True)) == reasons


@on_linux_x86
def test_a_processor_that_lacks_what_code_may_use(session: engines.Session) -> None:
    reasons = {
        "llvm -mcpu=core-avx2": None,
        "llvm -mcpu=nehalem": None,
        "llvm -mcpu=cascadelake": "this processor has no avx512bw, avx512cd, avx512dq, avx512f "
        "and 2 more",
        "llvm -mcpu=core-avx2 -mattr=+avx512f": "this processor has no avx512f",
        "llvm -mcpu=bdver2 -mattr=-fma4,-xop,-tbm,-sse4a": None,
        "llvm -mattr=-avx512f,+avx2": None,
        "llvm": None,
    }
    if "amx_tile" in flags():
        reasons.pop("llvm")  # the target of this processor, which is no Haswell, names its tiles
    given = {"texts": list(reasons), "flags": HASWELL}
    found = session.call(f"{FUNCTIONS}:not_runnable", given)
    assert dict(zip(reasons, found, strict=True)) == reasons
    given = {"texts": ["llvm -mcpu=core-avx2", "llvm -mcpu=x86-64"], "flags": ["pni", "ssse3"]}
    lacking, oldest = session.call(f"{FUNCTIONS}:not_runnable", given)
    assert "avx" in lacking and oldest is None


@on_linux_x86
@pytest.mark.parametrize("has_them", [True, False])
def test_tile_registers_that_linux_denies(process_of: Processes, has_them: bool) -> None:
    tiles = "amx-bf16, amx-int8, amx-tile"
    said = f"Linux does not let this process use {tiles} (arch_prctl)"
    session = process_of(engines.CURRENT)
    found = session.call(f"{FUNCTIONS}:without_tiles", {"has_them": has_them})
    assert found == (said if has_them else f"this processor has no {tiles}")


def test_a_cuda_device_older_than_the_code(session: engines.Session) -> None:
    texts = ["cuda -arch=sm_70", "cuda -arch=sm_80", "cuda -arch=sm_86", "cuda -arch=sm_90a"]
    given = {"texts": texts[:3], "compute_version": "8.6"}
    assert session.call(f"{FUNCTIONS}:on_a_cuda_device", given) == [None, None, None]
    given = {"texts": texts, "compute_version": "8.0"}
    assert session.call(f"{FUNCTIONS}:on_a_cuda_device", given) == [
        None,
        None,
        "code for sm_86, the CUDA device is sm_80",
        "code for sm_90a, the CUDA device is sm_80",
    ]


def test_what_clang_calls_a_processor(session: engines.Session) -> None:
    """LLVM's own list lacks clang's names of the same processors."""
    texts = ["llvm -mtriple=arm64-apple-macos -mcpu=apple-m1", "llvm -mtriple=aarch64-linux-gnu "]
    texts[1] += "-mcpu=grace"
    if session.engine == engines.CURRENT:
        found = [session.call(f"{FUNCTIONS}:attributes", {"text": each}) for each in texts]
        assert [each["mcpu"] for each in found] == ["apple-a14", "grace"]
        return
    found = session.call(f"{FUNCTIONS}:resolved", {"texts": texts})
    assert "nearest that it has is apple-a13" in found[0] and "neoverse-n1" in found[1]


def test_a_board_by_its_name(session: engines.Session) -> None:
    processors = {"raspberry-pi-3": "cortex-a53", "raspberry-pi-4": "cortex-a72"}
    for name, processor in {**processors, "raspberry-pi-5": "cortex-a76"}.items():
        found = session.call(f"{FUNCTIONS}:attributes", {"text": name})
        assert (found["mcpu"], found["num-cores"]) == (processor, 4)
        assert found["mtriple"] == "aarch64-linux-gnu"
    [said] = session.call(f"{FUNCTIONS}:resolved", {"texts": ["raspberry-pi-6"]})
    assert "did you mean raspberry-pi-" in said
    if session.engine == engines.CURRENT:
        names = [name for name in BOARDS if name.startswith("jetson")]
        found = [session.call(f"{FUNCTIONS}:attributes", {"text": each}) for each in names]
        assert [each["arch"] for each in found] == ["sm_53", "sm_72", "sm_87", "sm_87"]


@on_linux_x86
def test_a_gpu_beside_another_processor(session: engines.Session) -> None:
    if session.engine == engines.CLASSIC:
        pytest.skip("its exports are for processors")
    given = {"texts": ["jetson-orin-nano"], "compute_version": "8.7"}
    [reason] = session.call(f"{FUNCTIONS}:on_a_cuda_device", given)
    assert reason == "code for aarch64, this machine is x86_64"


def test_what_no_export_is_for(session: engines.Session) -> None:
    reasons = {
        "hexagon": "exports are for llvm, cuda,",
        "vulkan": "no code generator for Vulkan",
        "rocm": "install ROCm or set ROCM_PATH",
        "cuda": "name it, cuda -arch=sm_80",
    }
    if session.engine == engines.CLASSIC:
        reasons = {"metal": "for processors and CUDA only", "cuda": "name it, cuda -arch=sm_80"}
    for text, reason in reasons.items():
        given = {"texts": [text], "engine": session.engine, "tuned": False}
        with pytest.raises(BadInput, match=reason):
            session.call("tvm_practice.tvm_export.targets:require_all_buildable", given)


@on_linux_x86
def test_tuning_for_another_machine_needs_one(session: engines.Session) -> None:
    function = "tvm_practice.tvm_export.targets:require_all_buildable"
    targets = ["raspberry-pi-4"]
    if session.engine == engines.CURRENT:
        targets += ["jetson-orin-nano"]
    for target in targets:
        given = {"texts": [target], "engine": session.engine, "tuned": True}
        with pytest.raises(BadInput, match="--rpc-tracker measures on a machine that can"):
            session.call(function, given)
        session.call(function, given | {"remote": True})
