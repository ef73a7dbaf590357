"""Rows of numbers: scaled, in memory or on the disk, and batches of them."""
