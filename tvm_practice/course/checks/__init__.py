"""One module a phase or lab: its exercises, their hints, and the checks that grade them."""
