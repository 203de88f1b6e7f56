"""The labs' reference solutions."""
