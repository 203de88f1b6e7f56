"""Wrong solutions of the labs' exercises."""
