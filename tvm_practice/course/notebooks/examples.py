"""A notebook's cells that run the worked examples, and those that show what answers give.

They take seconds; a phase's run takes minutes, but for the first one's.
"""

TE_BASICS = """\
from tvm_practice.course.lowering import build_expression, lower_expression
from tvm_practice.viz.loop_nest import format_nest, loop_nest
import numpy as np

expression = vector_add(1024)
print(format_nest(loop_nest(lower_expression(expression))))
a, b = np.random.default_rng().standard_normal((2, 1024), dtype="float32")
print("largest difference from numpy:", np.abs(build_expression(expression)(a, b) - (a + b)).max())
"""

MANUAL_SCHEDULE = """\
from tvm_practice.viz.loop_nest import format_nest, loop_nest

schedule, block = fresh_schedule(transpose(512))
print("transpose(512):", format_nest(loop_nest(schedule.mod["main"])), sep="\\n")
in_tiles(schedule, block, 16)
print("in tiles of 16 x 16:", format_nest(loop_nest(schedule.mod["main"])), sep="\\n")
"""

SCHEDULE_ANALYSIS = """\
import numpy as np

a = np.random.default_rng().standard_normal((512, 512), dtype="float32")
print("ms:", *(f"{each:.2f}" for each in first_calls(lambda: a @ a, 8)))
"""

RELAY_IMPORT = """\
from tvm_practice.models import load_mlp

model, example = load_mlp()
for name, count in exported_operators(model, example).items():
    print(f"{count} x {name}")
"""

AUTO_TUNE = """\
for tile_m, tile_n, milliseconds in random_search(128, 4):
    print(f"tiles of {tile_m:2} x {tile_n:3}: {milliseconds:.3f} ms")
"""

SHOW_TE_BASICS = """\
from IPython.display import SVG, display
from tvm_practice.viz.nest_picture import nest_svg

try:
    nest = loop_nest(lower_expression(dense_bias_relu(8, 16, 4)))
    display(SVG(nest_svg(nest, title="Your dense_bias_relu(8, 16, 4)")))
except NotImplementedError as todo:
    print("to do:", todo)
run()
"""

SHOW_MANUAL_SCHEDULE = """\
from IPython.display import SVG, display
from tvm_practice.course.stack import earlier
from tvm_practice.viz.nest_picture import nest_svg

matmul = earlier("te_basics.matmul")
schedule, block = fresh_schedule(matmul(512, 512, 512))
try:
    tile(schedule, block, 32, 32)
    vectorize(schedule, block)
    parallelize(schedule, block)
    nest = loop_nest(schedule.mod["main"])
    display(SVG(nest_svg(nest, title="A product of 512 x 512 with your schedule")))
except NotImplementedError as todo:
    print("to do:", todo)
"""

SHOW_SCHEDULE_ANALYSIS = """\
import tvm

size = 256
inputs = [tvm.runtime.tensor(a[:size, :size].copy()) for _ in range(3)]
try:
    for name, module in compile_variants(size).items():
        milliseconds = float(np.median(time_function(module, inputs, number=5, repeats=5)))
        rate = gflop_per_second(size, size, size, milliseconds)
        print(f"{name:16} {milliseconds:7.3f} ms {rate:7.1f} GFLOP/s")
except NotImplementedError as todo:
    print("to do:", todo)
"""

SHOW_RELAY_IMPORT = """\
try:
    module = import_relax(model, example)
    print("imported:")
    print(module["main"].script())
    print("optimized:")
    print(optimize_relax(module)["main"].script())
except NotImplementedError as todo:
    print("to do:", todo)
"""

SHOW_AUTO_TUNE = """\
import tvm
from tvm import te
from tvm_practice.course.stack import earlier

function = te.create_prim_func(earlier("te_basics.matmul")(128, 128, 128))
schedule = tvm.s_tir.Schedule(function)
try:
    metaschedule_space(schedule)
    print(schedule.trace)
except NotImplementedError as todo:
    print("to do:", todo)
"""

# By the phase's module.
EXAMPLES = {
    "te_basics": TE_BASICS,
    "manual_schedule": MANUAL_SCHEDULE,
    "schedule_analysis": SCHEDULE_ANALYSIS,
    "relay_import": RELAY_IMPORT,
    "auto_tune": AUTO_TUNE,
}
SHOWS = {
    "te_basics": SHOW_TE_BASICS,
    "manual_schedule": SHOW_MANUAL_SCHEDULE,
    "schedule_analysis": SHOW_SCHEDULE_ANALYSIS,
    "relay_import": SHOW_RELAY_IMPORT,
    "auto_tune": SHOW_AUTO_TUNE,
}
