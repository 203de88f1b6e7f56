"""Numbers in messages."""


def number_of(count: int, noun: str) -> str:
    """A count and its noun, as in "1 task" and "12,000 trials".

    Args:
        count: of things.
        noun: for one of them, with a plural in s.
    """
    return f"{count:,} {noun}{'' if count == 1 else 's'}"
