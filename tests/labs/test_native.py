"""`tvm_practice.labs.native`: a C++ answer that is refused, and one that crashes."""

import pytest

from tvm_practice.labs import native
from tvm_practice.tvm_export import cpp
from tvm_practice.tvm_export.errors import DoesNotCompile

needs_compiler = pytest.mark.skipif(
    cpp.missing_compiler() is not None, reason=str(cpp.missing_compiler())
)


@needs_compiler
def test_the_first_error_of_a_text() -> None:
    with pytest.raises(DoesNotCompile, match=r"answer\.h:2:.*nothing"):
        native.run_exercise("wrap_buffer", "\nint i = nothing;\n", [1])


@needs_compiler
def test_a_crash_is_an_exit_code() -> None:
    text = (
        "inline DLManagedTensor* wrap_buffer(float*, const std::vector<int64_t>&, void (*)(void*),"
        " void*) { std::abort(); }"
    )
    [said] = native.run_exercise("wrap_buffer", text, [1])
    assert said == {"exit": "-6"}
