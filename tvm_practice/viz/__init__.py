"""Pictures of what a schedule does."""
