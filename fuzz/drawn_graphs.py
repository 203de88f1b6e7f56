"""Graphs drawn at random, valid by construction."""

from random import Random

from fuzz.drawing import Drawn, Unsuitable
from fuzz.graphs import Graph
from fuzz.operators import MAKERS

_STEPS = (5, 20)
_DRAWS = 4  # tries per step


def drawn_graph(random: Random) -> Graph:
    """A graph of at most 20 steps, most often of 5 or more."""
    families = sorted(MAKERS)
    while True:
        drawn = Drawn(random)
        for _ in range(drawn.among((1, 2, 2, 3))):
            drawn.input()
        for _ in range(drawn.integer(*_STEPS)):
            for _ in range(_DRAWS):
                makers = MAKERS[drawn.among(families)]
                name = drawn.among(sorted(makers))
                try:
                    makers[name](drawn, name)
                    break
                except Unsuitable:
                    continue
        found = drawn.graph()
        if found.steps and found.inputs:
            return found
