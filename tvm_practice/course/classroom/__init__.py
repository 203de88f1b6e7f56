"""A class's answers: read, graded each in a sandbox of its own, written as marks.

`submissions` finds them, `sandbox` is what they run in, `marking` grades one, `inside` is the part
of that which runs in the sandbox, `records` writes a table and Gradescope's files, `likeness`
compares them with one another.
"""
