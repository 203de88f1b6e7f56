"""What the current engine's export does to a Relax module before its functions are scheduled."""
