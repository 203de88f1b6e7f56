"""The innermost loop of assembly: handwritten, in each syntax."""

import pytest

from tvm_practice.viz.assembly import innermost_loop

X86 = """
	.text
__tvm_ffi_main:                         # @__tvm_ffi_main
	vmulps	%ymm0, %ymm0, %ymm0     # before the loops
.LBB0_1:                                # =>This Loop Header: Depth=1
	xorl	%eax, %eax
	.p2align	4
.LBB0_2:                                #   Parent Loop BB0_1 Depth=1
	vfmadd231ps	(%rdi,%rax,4), %ymm1, %ymm0 # 32-byte Folded Reload
	addq	$8, %rax
	cmpq	$64, %rax
	jne	.LBB0_2
	decl	%ecx
	jne	.LBB0_1
.LBB0_3:
	incl	%edx
	jne	.LBB0_3
	retq
"""

ARM = """
.LBB0_1:                                // =>This Inner Loop Header: Depth=1
	ldr	q1, [x1], #16
	fmla	v0.4s, v1.4s, v2.s[0]
	subs	x8, x8, #1                      // =1
	b.ne	.LBB0_1
	cbz	x0, .LBB0_9
.LBB0_9:
	ret
"""

WASM = """
	i32.const	0
.LBB0_1:                                # %loop
                                        # =>This Loop Header: Depth=1
	loop    	                        # label1:
	local.get	3
	loop    	                        # label2:
	f32x4.mul
	br_if   	0                               # 0: up to label2
# %bb.3:
	end_loop
	br_if   	0
	end_loop
"""


@pytest.mark.parametrize(
    ("assembly", "loop"),
    [
        (
            X86,
            [
                "vfmadd231ps (%rdi,%rax,4), %ymm1, %ymm0",
                "addq $8, %rax",
                "cmpq $64, %rax",
                "jne .LBB0_2",
            ],
        ),
        (
            ARM,
            [
                "ldr q1, [x1], #16",
                "fmla v0.4s, v1.4s, v2.s[0]",
                "subs x8, x8, #1",
                "b.ne .LBB0_1",
            ],
        ),
        (WASM, ["loop", "f32x4.mul", "br_if 0", "end_loop"]),
    ],
)
def test_the_innermost_loop_that_multiplies(assembly: str, loop: list[str]) -> None:
    assert innermost_loop(assembly) == loop


def test_no_loop_is_an_error() -> None:
    with pytest.raises(ValueError, match="no loop of this assembly multiplies"):
        innermost_loop("f:\n\tmulps %xmm0, %xmm1\n\tretq\n.L1:\n\tincl %eax\n\tjne .L1\n")
