"""What TVM's lowering and LLVM would get wrong, rewritten in scheduled functions.

`classic` is for the classic engine, the other modules are for the current one. `claimed_loops` is
for speed: it comes after TVM's lowering.
"""
