"""Reference answers, one file a phase and lab. The adapter is built from these same functions."""
