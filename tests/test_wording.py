from tvm_practice.wording import number_of


def test_one_has_no_plural() -> None:
    assert number_of(1, "task") == "1 task"
    assert number_of(0, "task") == "0 tasks"
    assert number_of(12000, "trial") == "12,000 trials"
