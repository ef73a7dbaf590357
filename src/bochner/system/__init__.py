"""The machine: threads, the terminal, and files written whole or not at all."""
