"""One module a phase: its exercises, their hints, and the checks that grade them."""
