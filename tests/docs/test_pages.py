"""The commands and programs of the guides and of the README, with small numbers and models."""

import json
import re
import shutil
from pathlib import Path

import pytest

from tests.pages import ROOT, blocks, run_blocks
from tvm_practice.course.catalog import PHASE_MODULES

_SMALLER = (
    (r"load_(resnet18|bert_base)\b", "load_mlp"),
    (r"(--tuning-trials|--trials) \d+", r"\1 4"),
    (r"tuning_trials=\d+", "tuning_trials=4"),
    (r"tvm_trials=\d+", "tvm_trials=0"),
    (r"(repeats[ =])\d+", r"\g<1>5"),
    (r"(warmup[ =])\d+", r"\g<1>1"),
    (r"(run_autotvm [\w.]+:\w+)", r"\1 --measure-warmup 1 --measure-repeats 5"),
    (r"rounds=20", "rounds=6"),
    (r"mode=iterative", "mode=eager"),
    (r"states, pooled", "[logits]"),  # of the MLP that stands in for BERT
    (r"--example-shape 1 3 224 224", "--example-shape 1 8"),
    (r"--size \d+", "--size 32"),
    (r"--only relax --only onnx", "--only onnx"),
    (r"roofline --size 32", "roofline --size 64"),
)


def smaller(text: str) -> str:
    for pattern, replacement in _SMALLER:
        text = re.sub(pattern, replacement, text)
    return text


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A working directory with the configurations that the pages name."""
    (tmp_path / "configs").mkdir()
    content = json.loads((ROOT / "configs" / "mlp.json").read_text())
    content["measure"] |= {"warmup": 1, "repeats": 5, "tvm_warmup": 1, "tvm_repeats": 5}
    content["pipeline"]["rounds"] = 6
    (tmp_path / "configs" / "mlp.json").write_text(json.dumps(content))
    return tmp_path


@pytest.mark.pages
@pytest.mark.slow
@pytest.mark.parametrize(
    ("page", "says"),
    [
        ("README.md", ["'p50'"]),
        ("export.md", ["largest difference 0.0", " ms"]),
        ("guides/concepts.md", ["T.grid(128, 128, 128)", "sch.parallel", "call_tir"]),
        ("guides/cuda-applications.md", ["blockIdx.x"]),
        ("guides/evaluation.md", ["float64"]),
        ("guides/integration.md", ["95% interval", "trials"]),
        ("guides/torch_compile.md", ["tensor(True)", "2 parts by TVM", "tuned"]),
    ],
)
def test_the_pages_programs(page: str, says: list[str], folder: Path) -> None:
    printed = run_blocks(page, folder, smaller=smaller, language="python")
    if page == "guides/evaluation.md":
        assert re.search(r"\d\.\d\d \[.*\]: (slower|no significant)", printed[0])
        return
    assert len(printed) == len(says)
    for text, words in zip(printed, says, strict=True):
        assert words in text


@pytest.mark.pages
@pytest.mark.slow
@pytest.mark.parametrize(
    "page",
    [
        "artifacts.md",
        "guides/cuda-applications.md",
        "guides/evaluation.md",
        "guides/integration.md",
    ],
)
def test_the_pages_commands(page: str, folder: Path) -> None:
    """Untuned: the tuners' commands are run by the README's and the exporter's pages."""

    def untuned(block: str) -> str:
        block = re.sub(r"--tuner metaschedule --tuning-trials \d+", "--tuning-trials 0", block)
        return smaller(re.sub(r"tvm_tuner=metaschedule", "tvm_trials=0", block))

    printed = run_blocks(page, folder, smaller=untuned)
    if page == "artifacts.md":
        assert "output_0  float32 [32, 10]" in printed[0] and "allocations" in printed[0]
        assert "output_0" in printed[1]
    elif page == "guides/cuda-applications.md":
        [line] = re.findall(r"^-?[\d.]+ -?[\d.]+$", printed[0], flags=re.MULTILINE)
        of_pytorch = [float(each) for each in line.split()]
        of_cpp = [float(each) for each in printed[1].split()]
        assert of_cpp == pytest.approx(of_pytorch, rel=1e-4)
    elif page == "guides/integration.md":
        assert "not run   code for aarch64" in printed[2]
    else:
        assert "verified" in printed[1]


@pytest.mark.pages
@pytest.mark.slow
def test_the_pages_of_pictures(folder: Path) -> None:
    [program] = [each.text for each in blocks("viz.md") if each.language == "python"]
    (folder / "mymodule.py").write_text(program)
    printed = run_blocks("viz.md", folder, smaller=smaller)
    assert any("conv2d" in each for each in printed)
    run_blocks("report.md", folder, smaller=smaller)
    # A picture of several schedules is a file each.
    for name in ("nest*.svg", "access*.svg", "cache*.svg", "conv*.png", "schedules.html"):
        assert list(folder.glob(name)), name


@pytest.mark.pages
@pytest.mark.slow
def test_the_readmes_commands(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without those that start these tests."""
    files = folder / "files"
    files.mkdir()
    for module in PHASE_MODULES:
        shutil.copy(ROOT / "tvm_practice" / f"{module}.py", files)
    monkeypatch.setenv("TVM_PRACTICE_FILES", str(files))
    (folder / "mymodule.py").write_text(
        "import torch\ndef load_model():\n    return torch.nn.Linear(8, 4)\n"
    )

    def shorter(block: str) -> str:
        block = re.sub(r"(?m)^pytest .*\n", "", smaller(block))
        return re.sub(r"check matmul\b", "check matmul --solutions", block)

    printed = "".join(run_blocks("README.md", folder, smaller=shorter))
    assert "matmul passes" in printed and "verified" in printed
