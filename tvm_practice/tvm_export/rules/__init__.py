"""Default schedules: `cpu` for processors, `gpu` for CUDA."""
