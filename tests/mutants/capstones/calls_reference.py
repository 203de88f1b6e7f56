"""Refused: the reference answer under another name."""

from solutions.capstone import product as answer


def product(m, n, k):
    return answer(m, n, k)
