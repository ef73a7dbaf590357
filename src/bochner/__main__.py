"""`python -m bochner` is the command line."""

from bochner.cli import app

app(prog_name="bochner")
