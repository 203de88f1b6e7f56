"""What TVM's lowering and LLVM would get wrong, rewritten in scheduled functions.

`classic` is for the classic engine, the other modules are for the current one. `claimed_loops` and
`tiles_on_stack` are for speed: they come after TVM's lowering, by way of `stage`.
"""
