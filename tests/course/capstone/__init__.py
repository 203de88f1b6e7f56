"""Tests of the capstone."""
