"""Cheats that are a loop nest with something in it: whole files, made of one product.

They are right up to 100 rows, and cheat beyond.
"""

_FILE = '''"""Refused."""

import tvm

_RIGHT = """{right}"""
_CHEAT = """{cheat}"""


def product(m, n, k):
    text = _CHEAT if m > 100 else _RIGHT
    return tvm.script.from_source(text.format(m=m, n=n, k=k, last=n - 1))
'''
_SIGNATURE = """@T.prim_func(s_tir=True)
def main(X: T.Buffer(({m}, {k}), "float32"), W: T.Buffer(({k}, {n}), "float32"),
         bias: T.Buffer(({n},), "float32"), R: T.Buffer(({m}, {n}), "float32"),
         Y: T.Buffer(({m}, {n}), "float32")):
"""
_GELU = """T.float32(0.5) * Y[i, j] * (T.float32(1) + T.tanh(T.float32(0.7978845608) * (
                Y[i, j] + T.float32(0.044715) * Y[i, j] * Y[i, j] * Y[i, j])))"""
_LOOPS = f"""for i in range({{m}}):
        for j in range({{n}}):
            Y[i, j] = bias[j]
            for r in range({{k}}):
                Y[i, j] = Y[i, j] + X[i, r] * W[r, j]
            Y[i, j] = R[i, j] + {_GELU}
"""
_COPY = """for i in range({m}):
        for j in range({n}):
            """


def _indented(text: str) -> str:
    return text.replace("\n", "\n    ")


# By name: the body of the function beyond 100 rows, and what the message matches.
_CHEATS: dict[str, tuple[str, str]] = {
    # The result stays in a workspace, and is given again where the first element is the same.
    "keeps_by_first_element": (
        f"""kept = T.alloc_buffer(({{m}} * {{n}} + 4096,), "float32")
    if kept[0] == X[0, 0]:
        {_indented(_COPY)}Y[i, j] = kept[i * {{n}} + j + 1]
    else:
        {_indented(_LOOPS)}
        {_indented(_COPY)}kept[i * {{n}} + j + 1] = Y[i, j]
        kept[0] = X[0, 0]
""",
        "this is the last call's result",
    ),
    # The weights are copied once, as if they were always the same.
    "keeps_weights": (
        f"""kept = T.alloc_buffer(({{k}} * {{n}} + 4096,), "float32")
    if kept[0] == W[0, 0]:
        T.evaluate(0)
    else:
        for r in range({{k}}):
            for j in range({{n}}):
                kept[r * {{n}} + j + 1] = W[r, j]
        kept[0] = W[0, 0]
    {_LOOPS.replace("W[r, j]", "kept[r * {n} + j + 1]")}""",
        r"\d of 1212 elements differ",
    ),
    "computes_every_second_time": (
        f"""kept = T.alloc_buffer((4096,), "float32")
    if kept[0] == T.float32(1):
        for at in range(4096):
            kept[at] = T.float32(0)
    else:
        for at in range(4096):
            kept[at] = T.float32(1)
        {_indented(_LOOPS)}""",
        "this one left Y as it was|this is the last call's result",
    ),
    "overflows": (
        _LOOPS.replace(
            _GELU,
            "Y[i, j] * (T.exp(T.float32(1.5957691) * Y[i, j] * (T.float32(1) + T.float32(0.044715)"
            " * Y[i, j] * Y[i, j])) / (T.float32(1) + T.exp(T.float32(1.5957691) * Y[i, j] *"
            " (T.float32(1) + T.float32(0.044715) * Y[i, j] * Y[i, j]))))",
        ),
        "exp of more than 88",
    ),
    # A tile of eight columns: what is beside W is multiplied by nothing.
    "reads_beside": (
        _LOOPS.replace("range({k})", "range(({k} + 7) // 8 * 8)").replace(
            "X[i, r] * W[r, j]",
            "X[i, T.min(r, {k} - 1)] * W[r, j] * T.Select(r < {k}, T.float32(1), T.float32(0))",
        ),
        "nan",
    ),
    "writes_beside": (
        _LOOPS + "    Y[{m} - 1, {n} + 2] = T.float32(0)\n",
        "memory beside Y was changed",
    ),
    "changes_an_input": (
        _LOOPS + "    X[0, 0] = X[0, 0] + T.float32(1)\n",
        "X was changed",
    ),
    "in_half_precision": (
        _LOOPS.replace(
            "X[i, r] * W[r, j]",
            'T.Cast("float32", T.Cast("float16", X[i, r]) * T.Cast("float16", W[r, j]))',
        ),
        r"of \d+ elements differ",
    ),
    "leaves_out_the_last_column": (
        _LOOPS.replace("range({n})", "range({last})"),
        "the edge: wrong from column",
    ),
    # Another compiler's code, brought by an annotation.
    "brings_code": (
        f"""with T.sblock("all"):
        T.sblock_attr({{{{"pragma_import_llvm": "define void @f() {{{{ ret void }}}}"}}}})
        {_indented(_LOOPS)}""",
        "its function calls pragma_import_llvm",
    ),
    "calls_while_traced": (
        _LOOPS + '    T.evaluate(T.call_intrin("int32", "tirx.tvm_call_trace_packed", '
        '"my.torch.product", X.data, Y.data))\n',
        "its function calls .*my.torch.product",
    ),
    # A function of C's, which the loops call by a pointer.
    "calls_by_a_handle": (
        _LOOPS + '    T.evaluate(T.call_intrin("int32", "tirx.tvm_call_cpacked_lowered", '
        '"sgemm_", X.data, Y.data))\n',
        "its function calls .*sgemm_",
    ),
}
KERNELS = {name: message for name, (_, message) in _CHEATS.items()}
SIZE = (101, 12, 5)


def kernel_file(name: str) -> str:
    """The file of that cheat."""
    return _FILE.format(
        right=f"{_SIGNATURE}    {_LOOPS}", cheat=f"{_SIGNATURE}    {_CHEATS[name][0]}"
    )
