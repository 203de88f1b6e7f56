"""flex_attention on the current engine, beside PyTorch's."""

from tests.conftest import Processes


def test_scores_and_masks_by_functions(process_of: Processes) -> None:
    found = process_of("current").call("tests.tvm_export.importers.flex_attention_functions:errors")
    assert len(found) == 4
    assert all(each < 1e-5 for each in found.values()), found
