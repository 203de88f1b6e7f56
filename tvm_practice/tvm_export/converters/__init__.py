"""Converters of single PyTorch operators that the engines lack or convert badly."""
