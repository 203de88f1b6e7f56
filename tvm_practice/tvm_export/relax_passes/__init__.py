"""What the current engine's export does to a Relax module before its functions are scheduled.

A module per pass; `order.optimized` calls them, in their order.
"""
