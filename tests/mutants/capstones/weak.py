"""Right answers to the capstone that are not fast: they pass the gate, and miss the top tier."""

from tvm_practice.course.catalog import MINE
from tvm_practice.course.editing import replace_function
from tvm_practice.course.grading import source_file

_HELPERS = {
    "naive": """
def weak(tensors, parallel):
    return naive(tensors)
""",
    # The columns of the sums in vectors, on one core.
    "vectorized": """
def weak(tensors, parallel):
    schedule = naive(tensors)
    for name in parallel:
        block = schedule.get_sblock(name)
        kinds = [each.iter_type for each in schedule.get(block).iter_vars]
        loops = schedule.get_loops(block)
        spatial = [loop for loop, kind in zip(loops, kinds) if kind == 0]
        _, inner = schedule.split(spatial[-1], [None, 16])
        schedule.reorder(*[loop for loop, kind in zip(loops, kinds) if kind != 0], inner)
        schedule.vectorize(inner)
    return schedule
""",
    # The rows or channels of the sums shared among threads; all else as it was.
    "parallel": """
def weak(tensors, parallel):
    schedule = naive(tensors)
    for name in parallel:
        loops = schedule.get_loops(schedule.get_sblock(name))
        schedule.parallel(schedule.fuse(*loops[:2]) if name == "Y" else loops[0])
    return schedule
""",
}
WEAK = tuple(_HELPERS)

_ANSWERS = {
    "product": """def product(m, n, k):
    return weak(declare_product(m, n, k), ["T"])
""",
    "depthwise": """def depthwise(batch, channels, height, width, kernel, stride):
    tensors = declare_depthwise(batch, channels, height, width, kernel, stride)
    return weak(tensors, ["Y"])
""",
    "attention": """def attention(queries, keys):
    return weak(declare_attention(queries, keys), ["S", "O"])
""",
}


def weak_file(kind: str) -> str:
    """The chapter with that weak answer in all tracks."""
    text = source_file("capstone", MINE).read_text(encoding="utf-8")
    for name, answer in _ANSWERS.items():
        text = replace_function(text, name, answer)
    return text + _HELPERS[kind]
