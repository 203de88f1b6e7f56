"""Schedules of one product ranked by a model of the caches, and by the clock."""
