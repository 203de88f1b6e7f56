"""RNN, GRU and LSTM: one kernel for all steps where PyTorch has the layer too, else step by step.

ONNX and PyTorch order the gates differently.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tvm_practice.tvm_export.importers.converters.recurrent_kernels import direction
from tvm_practice.tvm_export.importers.onnx.converters.base import Node, constant, dtype_of
from tvm_practice.wording import number_of

_MOST_STEPS = 256  # that are written out
_DEFAULTS = {
    "RNN": ("Tanh",),
    "GRU": ("Sigmoid", "Tanh"),
    "LSTM": ("Sigmoid", "Tanh", "Tanh"),
}
# Of a node with these activations: the cell of `recurrent_kernels`, and for each of PyTorch's gates
# its place in ONNX.
_CELLS = {
    ("RNN", "Tanh"): ("rnn_tanh", (0,)),
    ("RNN", "Relu"): ("rnn_relu", (0,)),
    ("GRU", "Sigmoid", "Tanh"): ("gru", (1, 0, 2)),
    ("LSTM", "Sigmoid", "Tanh", "Tanh"): ("lstm", (0, 2, 3, 1)),
}
Function = Callable[[Any], Any]


def recurrent(node: Node) -> Any:
    """The outputs of all steps and the last state, for each direction."""
    from tvm import relax

    batched = bool(node.get("layout", 0))
    x = node.inputs[0]
    if batched:
        x = node.emit(relax.op.permute_dims(x, [1, 0, 2]))
    direction = node.get("direction", "forward")
    ways = {"forward": [False], "reverse": [True], "bidirectional": [False, True]}[direction]
    made = [_Layer(node, x, place, backward, batched).run() for place, backward in enumerate(ways)]
    outputs = [relax.op.stack([each[0] for each in made], 1)]
    outputs += [
        relax.op.stack([each[1][state] for each in made], 0)
        for state in range(2 if node.operator == "LSTM" else 1)
    ]
    if batched:
        orders = [2, 0, 1, 3], [1, 0, 2], [1, 0, 2]
        outputs = [
            relax.op.permute_dims(each, order) for each, order in zip(outputs, orders, strict=False)
        ]
    return relax.Tuple(outputs)


class _Layer:
    """One direction of a recurrent node."""

    def __init__(self, node: Node, x: Any, place: int, backward: bool, batched: bool) -> None:
        self.node, self.backward = node, backward
        self.dtype = dtype_of(x)
        self.steps, self.batch = int(x.ty.shape[0]), int(x.ty.shape[1])
        self.hidden = int(node.inputs[2].ty.shape[-1])
        weight, self.recurrence = self._own(1, place), self._own(2, place)
        self.bias = None if node.input(3) is None else self._own(3, place)
        self.gates = int(weight.ty.shape[0]) // self.hidden
        self.x, self.weight = x, weight
        self.activations = _activations(node, place)
        self.lengths = node.input(4)
        self.initial = [self._state(position, place, batched) for position in (5, 6)]
        self.peepholes = None
        if node.operator == "LSTM" and node.input(7) is not None:
            self.peepholes = self._parts(self._own(7, place), 3)

    def _own(self, position: int, place: int) -> Any:
        """The direction's part of a parameter."""
        from tvm import relax

        part = relax.op.strided_slice(self.node.inputs[position], [0], [place], [place + 1])
        return self.node.emit(relax.op.squeeze(part, [0]))

    def _state(self, position: int, place: int, batched: bool) -> Any:
        from tvm import relax

        given = self.node.input(position) if self.node.operator == "LSTM" or position == 5 else None
        if given is None:
            return constant(np.zeros((self.batch, self.hidden)), self.dtype)
        axis = 1 if batched else 0
        part = relax.op.strided_slice(given, [axis], [place], [place + 1])
        return self.node.emit(relax.op.squeeze(part, [axis]))

    def _parts(self, expression: Any, count: int) -> list[Any]:
        """A tensor in equal parts along its last axis."""
        from tvm import relax

        size = int(expression.ty.shape[-1]) // count
        return [
            self.node.emit(
                relax.op.strided_slice(expression, [-1], [place * size], [(place + 1) * size])
            )
            for place in range(count)
        ]

    def run(self) -> tuple[Any, list[Any]]:
        """All outputs (steps, batch, hidden), and the last states (batch, hidden)."""
        from tvm import relax

        if whole := self._whole():
            return whole
        if self.steps > _MOST_STEPS:
            raise self.node.refused(
                f"with these attributes, {number_of(self.steps, 'step')}, more than {_MOST_STEPS}"
            )
        self.inputs = self.node.emit(relax.op.matmul(self.x, relax.op.permute_dims(self.weight)))
        self.functions = _functions(self.node, self.activations)
        step = {"RNN": self._rnn, "GRU": self._gru, "LSTM": self._lstm}[self.node.operator]
        states = self.initial[: 2 if self.node.operator == "LSTM" else 1]
        outputs: dict[int, Any] = {}
        order = range(self.steps)
        for at in reversed(order) if self.backward else order:
            row = relax.op.strided_slice(self.inputs, [0], [at], [at + 1])
            made = step(self.node.emit(relax.op.squeeze(row, [0])), states)
            outputs[at], states = self._within(at, made, states)
        return self.node.emit(relax.op.stack([outputs[at] for at in order], 0)), states

    def _whole(self) -> tuple[Any, list[Any]] | None:
        """The same by one kernel; None where there is none for the node."""
        from tvm import relax

        node = self.node
        cell = _CELLS.get((node.operator, *self.activations))
        plain = self.lengths is None and self.peepholes is None and node.get("clip") is None
        plain = plain and not node.get("input_forget", 0)
        plain = plain and bool(node.operator != "GRU" or node.get("linear_before_reset", 0))
        if not plain or cell is None or node.cpu is None:
            return None
        if self.dtype not in ("float32", "float64"):
            return None
        name, order = cell

        def in_order(rows: Any) -> Any:
            parts = [
                relax.op.strided_slice(rows, [0], [at * self.hidden], [(at + 1) * self.hidden])
                for at in order
            ]
            return node.emit(relax.op.concat(parts, 0))

        weights = [self.weight, self.recurrence]
        if self.bias is not None:
            half = self.gates * self.hidden
            weights += [
                node.emit(relax.op.strided_slice(self.bias, [0], [at * half], [(at + 1) * half]))
                for at in range(2)
            ]
        states = self.initial[: 2 if node.operator == "LSTM" else 1]
        return direction(
            node.builder,
            node.cpu,
            name,
            self.x,
            list(map(in_order, weights)),
            states,
            backward=self.backward,
        )

    def _within(self, at: int, made: list[Any], before: list[Any]) -> tuple[Any, list[Any]]:
        """A step's output and states; zeros, and the states before, of sequences that ended."""
        from tvm import relax

        if self.lengths is None:
            return made[0], made
        lengths = relax.op.astype(self.lengths, "int64")
        goes_on = relax.op.expand_dims(relax.op.less(constant(at, "int64"), lengths), 1)
        goes_on = self.node.emit(goes_on)
        kept = [
            self.node.emit(relax.op.where(goes_on, one, other))
            for one, other in zip(made, before, strict=True)
        ]
        zero = constant(0, self.dtype)
        return self.node.emit(relax.op.where(goes_on, made[0], zero)), kept

    def _biases(self) -> tuple[list[Any], list[Any]] | None:
        if self.bias is None:
            return None
        parts = self._parts(self.bias, 2 * self.gates)
        return parts[: self.gates], parts[self.gates :]

    def _sums(self, row: Any, state: Any, count: int) -> list[Any]:
        """The first gates' sums of input, state and biases."""
        from tvm import relax

        product = self.node.emit(relax.op.matmul(state, relax.op.permute_dims(self.recurrence)))
        pairs = zip(self._parts(row, self.gates), self._parts(product, self.gates), strict=True)
        sums = [relax.op.add(*each) for each in pairs][:count]
        if biases := self._biases():
            sums = [
                relax.op.add(relax.op.add(each, one), other)
                for each, one, other in zip(sums, *biases, strict=False)
            ]
        return [self.node.emit(each) for each in sums]

    def _clipped(self, expression: Any) -> Any:
        from tvm import relax

        limit = self.node.get("clip")
        return expression if limit is None else relax.op.clip(expression, -limit, limit)

    def _rnn(self, row: Any, states: list[Any]) -> list[Any]:
        [total] = self._sums(row, states[0], 1)
        return [self.node.emit(self.functions[0](self._clipped(total)))]

    def _gru(self, row: Any, states: list[Any]) -> list[Any]:
        from tvm import relax

        [state], (f, g) = states, self.functions
        update, reset = (
            self.node.emit(f(self._clipped(each))) for each in self._sums(row, state, 2)
        )
        weights = relax.op.strided_slice(self.recurrence, [0], [2 * self.hidden], [3 * self.hidden])
        turned = self.node.emit(relax.op.permute_dims(weights))
        biases = self._biases()
        inner = self._parts(row, 3)[2]
        if self.node.get("linear_before_reset", 0):
            product = relax.op.matmul(state, turned)
            if biases:
                product = relax.op.add(product, biases[1][2])
            inner = relax.op.add(inner, relax.op.multiply(reset, product))
        else:
            inner = relax.op.add(
                inner, relax.op.matmul(self.node.emit(relax.op.multiply(reset, state)), turned)
            )
            if biases:
                inner = relax.op.add(inner, biases[1][2])
        if biases:
            inner = relax.op.add(inner, biases[0][2])
        new = self.node.emit(g(self._clipped(inner)))
        change = relax.op.multiply(update, relax.op.subtract(state, new))
        return [self.node.emit(relax.op.add(new, change))]

    def _lstm(self, row: Any, states: list[Any]) -> list[Any]:
        from tvm import relax

        (state, cell), (f, g, h) = states, self.functions
        into, out, forget, new = self._sums(row, state, 4)
        holes = self.peepholes
        if holes:
            into = relax.op.add(into, relax.op.multiply(holes[0], cell))
            forget = relax.op.add(forget, relax.op.multiply(holes[2], cell))
        into = self.node.emit(f(self._clipped(into)))
        if self.node.get("input_forget", 0):
            forget = relax.op.subtract(constant(1, self.dtype), into)
        else:
            forget = f(self._clipped(forget))
        kept = relax.op.multiply(forget, cell)
        added = relax.op.multiply(into, g(self._clipped(new)))
        cell = self.node.emit(relax.op.add(kept, added))
        if holes:
            out = relax.op.add(out, relax.op.multiply(holes[1], cell))
        state = self.node.emit(relax.op.multiply(f(self._clipped(out)), h(cell)))
        return [state, cell]


def _activations(node: Node, place: int) -> tuple[str, ...]:
    """The names of a direction's activation functions."""
    defaults = _DEFAULTS[node.operator]
    names = [each.decode() for each in node.attributes.get("activations", ())]
    return tuple(names[place * len(defaults) : (place + 1) * len(defaults)]) or defaults


def _functions(node: Node, names: Sequence[str]) -> list[Function]:
    """The functions of activations."""
    from tvm import relax

    known: dict[str, Function] = {
        "Relu": relax.op.nn.relu,
        "Sigmoid": relax.op.sigmoid,
        "Tanh": relax.op.tanh,
    }
    if unknown := [each for each in names if each not in known]:
        raise node.refused(f"the activation {unknown[0]}")
    return [known[each] for each in names]


CONVERTERS = {"GRU": recurrent, "LSTM": recurrent, "RNN": recurrent}
