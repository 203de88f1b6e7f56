"""The questions of `tvm-practice review`, by the phase that answers them."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Question:
    """A question with one right answer.

    Attributes:
        phase: the module whose page or exercises answer it.
        name: in the progress file, with the phase.
        text: the question.
        right: the right answer.
        wrong: three others, each a mistake that is made.
        because: why.
    """

    phase: str
    name: str
    text: str
    right: str
    wrong: tuple[str, str, str]
    because: str

    @property
    def id(self) -> str:
        return f"{self.phase}.{self.name}"


QUESTIONS = (
    Question(
        "te_basics",
        "compute",
        "te.compute((m, n), lambda i, j: A[i, j] + B[i, j]): when does the addition run?",
        "When a compiled function is called; this line only describes it",
        (
            "At once, for every i and j",
            "When the result's .numpy() is called",
            "When the schedule is created",
        ),
        "te.compute makes a symbolic tensor. A schedule turns it into loops, the compiler the "
        "loops into a function, and only a call of that function computes.",
    ),
    Question(
        "te_basics",
        "reduce_axis",
        "One te.compute stage sums over k, another takes the maximum over k. What do they need?",
        "A te.reduce_axis each",
        (
            "One te.reduce_axis for both",
            "A Python loop over k",
            "te.sum and te.max over the same index of the output",
        ),
        "A reduction axis is a loop of one stage. Shared between stages, it belongs to neither "
        "stage's loops alone.",
    ),
    Question(
        "te_basics",
        "softmax_maximum",
        "Why does softmax subtract a row's maximum before exp?",
        "exp overflows float32 above 88.7; the quotient stays the same",
        (
            "It makes the row's sum exactly 1 without a division",
            "exp is faster for negative numbers",
            "TVM's te.exp is defined for numbers up to 1 only",
        ),
        "exp(x - m) / sum(exp(x - m)) equals exp(x) / sum(exp(x)), and no exponent is above 0.",
    ),
    Question(
        "te_basics",
        "python_max",
        "max(A[i], 0.0), with Python's max, inside te.compute:",
        "fails: Python asks a symbolic comparison whether it is true",
        (
            "works, and is the same as te.max",
            "takes the maximum over the whole tensor",
            "is computed once, when the expression is made",
        ),
        "A[i] > 0.0 is an expression; it has no value until the compiled function runs. te.max "
        "makes a new expression of its two arguments.",
    ),
    Question(
        "te_basics",
        "padding",
        "A convolution's padding is a stage of its own, te.if_then_else(inside, X[...], 0.0). Why "
        "does it not read outside X?",
        "The branch that is not taken is not evaluated",
        (
            "TVM clips every index to the tensor",
            "X is allocated with a border",
            "The schedule removes the condition",
        ),
        "te.if_then_else evaluates one branch only. If both were evaluated, X would be read "
        "outside of its bounds.",
    ),
    Question(
        "manual_schedule",
        "values",
        "A schedule was accepted by TVM step by step, and it compiled. Its values are",
        "to be checked: TVM tests each step, which proves nothing about the whole",
        (
            "right, because every primitive keeps the values",
            "right on current TVM, unknown on classic TVM",
            "right if all loops are serial",
        ),
        "Classic TVM accepts parallel(k) on a sum, and the threads race. A schedule that has lost "
        "a bound at an edge is accepted, too. Compare with numpy.",
    ),
    Question(
        "manual_schedule",
        "tiling",
        "Tiling i and j of a matmul makes it faster mostly because",
        "values that were fetched are used again before the cache evicts them",
        (
            "there are fewer multiplications",
            "the loops have fewer iterations in all",
            "each tile is compiled to its own function",
        ),
        "The arithmetic is the same; the distance between two uses of a value is shorter.",
    ),
    Question(
        "manual_schedule",
        "vectorize",
        "Which loop of C[i, j] += A[i, k] * B[k, j] (row-major) is the one to vectorize?",
        "j: neighbours of C and of B are neighbours in memory",
        (
            "k: it is the longest",
            "i: it is the outermost",
            "any of them: vectors are gathered",
        ),
        "Along j, one load brings a vector of B, one store writes a vector of C, and A's value "
        "is broadcast. Along k, the lanes would have to be added up.",
    ),
    Question(
        "manual_schedule",
        "parallel",
        "Why parallelize the outermost loop over tiles, and not the innermost loop?",
        "Handing out work costs microseconds each time; outermost, it is paid once",
        (
            "Only an outermost loop may be parallel in TVM",
            "Inner loops are vectorized by threads",
            "The caches are shared by the inner loops only",
        ),
        "A parallel loop inside others starts and ends its threads in every iteration around it.",
    ),
    Question(
        "manual_schedule",
        "packing",
        "packed_matmul copies B first. What does the copy buy?",
        "A tile of B lies in one piece, so each step reads on where the last one ended",
        (
            "B then fits in the registers",
            "The copy is in float16",
            "The sum needs no initial value",
        ),
        "Without the copy, rows of a tile of B lie a whole row of the matrix apart: in other cache "
        "lines and pages and, for powers of two, in the same few sets of the cache.",
    ),
    Question(
        "schedule_analysis",
        "median",
        "Two programs are compared on a shared machine. Which comparison can be trusted most?",
        "Samples of both in turns, and the interval of their ratio",
        (
            "The fastest of a hundred runs of each, one after the other",
            "The mean of each, one after the other",
            "One long run of each",
        ),
        "Other work on the machine slows both sides of a pair, and the interval says how much of "
        "its effect is left.",
    ),
    Question(
        "schedule_analysis",
        "interval",
        "A ratio of times is 0.97, with a 95% interval from 0.90 to 1.05. So the new program is",
        "not shown to differ: the interval contains 1",
        ("3% faster", "3% slower", "faster in 97% of the runs"),
        "More rounds on a quieter machine narrow the interval; until it leaves 1 out, there is "
        "nothing to report.",
    ),
    Question(
        "schedule_analysis",
        "intensity",
        "Arithmetic intensity is",
        "operations per byte that is moved between memory and the processor",
        (
            "operations per second",
            "the share of time that is arithmetic",
            "operations per instruction",
        ),
        "Left of the roofline's ridge, a kernel's limit is the memory's bandwidth times this "
        "number; right of it, the peak.",
    ),
    Question(
        "schedule_analysis",
        "break_even",
        "Below some matrix size, two threads are slower than one. What costs the time?",
        "Waking the workers and waiting for the slower one",
        (
            "Copying the matrices to each thread",
            "Compiling the loop twice",
            "Keeping the order in which the sum is computed",
        ),
        "The cost hardly depends on the size, and the gain grows with its cube.",
    ),
    Question(
        "schedule_analysis",
        "first_call",
        "Why is the first call of a compiled function not part of its latency?",
        "It pays once for threads, pages and caches that later calls find ready",
        (
            "It compiles the schedule",
            "Its result may be wrong",
            "The clock needs a warm-up",
        ),
        "If a program calls a kernel once, the first call is the latency; say which one you "
        "report.",
    ),
    Question(
        "relay_import",
        "fusion",
        "conv2d, bias and relu become one kernel. What is saved?",
        "Two tensors that would be written to memory and read again",
        (
            "Two thirds of the multiplications",
            "The weights of the bias",
            "The verification of two outputs",
        ),
        "The arithmetic is the same; an element's bias and relu are computed while it is in a "
        "register.",
    ),
    Question(
        "relay_import",
        "constants",
        "Why must parameters be bound as constants before FoldConstant?",
        "Only what depends on constants alone can be computed at compile time",
        (
            "Inputs cannot have more than two dimensions",
            "Otherwise they are quantized",
            "Relay has no variables",
        ),
        "A batch normalization's scale is arithmetic on parameters. As inputs, they may differ in "
        "each call.",
    ),
    Question(
        "relay_import",
        "training",
        "A model with dropout is imported without .eval(). What is exported?",
        "The training graph: other values, and for dropout random ones",
        (
            "The same graph: TVM removes dropout anyway",
            "Nothing: importers refuse training mode",
            "The same graph with the gradients",
        ),
        "The mode is part of the model at the moment of the export, for batch normalization too.",
    ),
    Question(
        "relay_import",
        "verify_nan",
        "`if (abs(a - b) > tolerance).any(): fail` compares an output with its reference. What "
        "does it miss?",
        "NaN: every comparison with it is false",
        ("Negative differences", "Zeros", "Outputs larger than the reference"),
        "Ask the other way round: not (abs(a - b) <= tolerance).all(). Compare the shapes first: "
        "numpy would broadcast them.",
    ),
    Question(
        "relay_import",
        "graph_or_schedule",
        "Which of these can no schedule of a single operator do?",
        "Remove a layout conversion between two operators",
        (
            "Use vector instructions",
            "Divide its loops among threads",
            "Keep a tile of its output in registers",
        ),
        "A schedule keeps its operator's inputs and outputs as they are. What lies between two "
        "operators belongs to the graph.",
    ),
    Question(
        "auto_tune",
        "space",
        "A search over a template's tiles found its best schedule. It is the best",
        "of that template's space, on this machine, for this shape",
        (
            "schedule of this operator",
            "schedule of this operator on this machine",
            "tile size for all shapes",
        ),
        "The search finds nothing outside its space: no packing, if the template has none.",
    ),
    Question(
        "auto_tune",
        "cost_model",
        "What does the cost model of a tuner save?",
        "Measurements of candidates that it predicts to be slow",
        (
            "The compilation of the best candidate",
            "The verification of the result",
            "The search for the space's limits",
        ),
        "It ranks thousands of candidates in the time of a few measurements; only the promising "
        "ones are compiled and timed.",
    ),
    Question(
        "auto_tune",
        "records",
        "A tuning log is applied on another processor of the same family. What may be expected?",
        "Right values, and a speed that must be measured again",
        (
            "The same speed",
            "Wrong values",
            "An error, because logs are bound to one machine",
        ),
        "A record is a schedule: it stays right. Whether it is fast depends on caches, cores and "
        "clocks.",
    ),
    Question(
        "auto_tune",
        "metaschedule_trace",
        "What does a MetaSchedule record keep of a candidate?",
        "The trace: primitives and the decisions taken, with the measured times",
        (
            "The machine code",
            "The loop nest as text",
            "The weights of the cost model",
        ),
        "The trace is replayed on the same workload, and other decisions can be drawn for it.",
    ),
    Question(
        "auto_tune",
        "trials",
        "8 trials per task were enough for one model. For another, with 40 tasks, 8 trials in all "
        "are",
        "fewer than one trial per task: most tasks keep the default schedule",
        (
            "as good: trials are per model",
            "better: tasks share their records",
            "enough if the tasks are small",
        ),
        "A trial measures one candidate of one task. The budget is divided among the tasks.",
    ),
)
