"""The labs' exercises and how they are graded."""
