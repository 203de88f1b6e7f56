"""Every bash and python block of the documentation is run by a test, or says why not."""

import ast
from pathlib import Path

import pytest

from tests.pages import ROOT, blocks, page_file

# The test that runs a page's blocks of a language.
RUN_BY = {
    ("CONTRIBUTING.md", "bash"): "docs/test_contributing.py",
    ("CONTRIBUTING.md", "python"): "docs/test_contributing.py",
    ("README.md", "bash"): "docs/test_pages.py",
    ("README.md", "python"): "docs/test_pages.py",
    ("artifacts.md", "bash"): "docs/test_pages.py",
    ("artifacts.md", "python"): "tvm_export/test_artifacts.py",
    ("bench.md", "bash"): "test_bench.py",
    ("c_source.md", "bash"): "tvm_export/c_source/test_c_source.py",
    ("capstone.md", "bash"): "course/capstone/test_command.py",
    ("classic-to-current.md", "python"): "docs/test_classic_to_current.py",
    ("course.md", "bash"): "course/test_command_line.py",
    ("errors.md", "python"): "course/test_common_errors.py",
    ("explorer.md", "bash"): "viz/explorer/test_page.py",
    ("export.md", "bash"): "test_run_autotvm.py",
    ("export.md", "python"): "docs/test_pages.py",
    ("guides/concepts.md", "python"): "docs/test_pages.py",
    ("guides/cuda-applications.md", "bash"): "docs/test_pages.py",
    ("guides/cuda-applications.md", "python"): "docs/test_pages.py",
    ("guides/evaluation.md", "bash"): "docs/test_pages.py",
    ("guides/evaluation.md", "python"): "docs/test_pages.py",
    ("guides/integration.md", "bash"): "docs/test_pages.py",
    ("guides/integration.md", "python"): "docs/test_pages.py",
    ("guides/torch_compile.md", "python"): "docs/test_pages.py",
    ("icd.md", "bash"): "icd/test_docs.py",
    ("labs/3-cross_compile.md", "bash"): "labs/test_cross_compile.py",
    ("labs/6-compilers_compared.md", "bash"): "labs/test_compilers_compared.py",
    ("labs/2-deploy_cpp.md", "bash"): "labs/test_deploy_cpp.py",
    ("report.md", "bash"): "docs/test_pages.py",
    ("teaching.md", "bash"): "course/classroom/test_grade.py",
    ("viz.md", "bash"): "docs/test_pages.py",
    ("viz.md", "python"): "docs/test_pages.py",
}
PAGES = sorted(
    [
        "README.md",
        "CONTRIBUTING.md",
        *(
            each.relative_to(ROOT / "docs").as_posix()
            for each in (ROOT / "docs").rglob("*.md")
        ),
    ]
)  # fmt: skip


def runnable(page: str) -> set[str]:
    """The languages of the blocks of `page` that a test must run."""
    return {
        each.language
        for each in blocks(page)
        if each.language in ("bash", "python") and each.not_run is None
    }


@pytest.mark.parametrize("page", PAGES)
def test_every_block_is_run_or_says_why_not(page: str) -> None:
    for language in sorted(runnable(page)):
        test = RUN_BY.get((page, language))
        assert test, f"no test runs the {language} blocks of {page}; see CONTRIBUTING.md, A page"
        text = (ROOT / "tests" / test).read_text()
        strings = {
            each.value
            for each in ast.walk(ast.parse(text))
            if isinstance(each, ast.Constant) and isinstance(each.value, str)
        }
        assert page in strings, f"{test} does not name {page}"


def test_no_page_is_registered_in_vain() -> None:
    for page, language in RUN_BY:
        assert page in PAGES, page
        assert language in runnable(page), (page, language)


def test_a_block_that_nothing_runs_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "docs").mkdir()
    monkeypatch.setattr("tests.pages.ROOT", tmp_path)
    fence = "```"
    (tmp_path / "docs" / "p.md").write_text(
        f"<!-- not run here: a GPU is needed -->\n{fence}bash\nnvcc\n{fence}\n\n"
        f"text\n\n{fence}bash\ntrue\n{fence}\n"
    )
    assert [each.not_run for each in blocks("p.md")] == ["a GPU is needed", None]
    assert runnable("p.md") == {"bash"} and page_file("p.md").parent.name == "docs"
