"""Experiments: one file a figure or table, run by name with `python -m experiments`."""
