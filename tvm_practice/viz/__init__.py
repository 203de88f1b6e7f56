"""Pictures of schedules, models and tuning."""
