"""The layer of random features."""
