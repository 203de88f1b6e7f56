"""Labs: modules in the form of a phase, beyond the five; each can be done alone."""
