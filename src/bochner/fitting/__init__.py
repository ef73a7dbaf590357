"""From settings and checked rows to a fitted deep model."""
