"""Tables in memory, batches of their rows, and scaling."""
