"""A hands-on course on Apache TVM scheduling and auto-tuning, and the exporter it builds."""

__version__ = "0.1.0"
