"""The schedule explorer: primitives, TIR, LLVM IR and assembly on one page, linked by line."""
