"""CUDA schedules without a GPU: their text, their memory traffic, their occupancy, their values."""
