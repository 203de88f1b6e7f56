"""What TVM's lowering and LLVM would get wrong, rewritten in scheduled functions."""
