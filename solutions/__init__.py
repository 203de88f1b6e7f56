"""Reference answers, one file a phase. The adapter is built from these same functions."""
