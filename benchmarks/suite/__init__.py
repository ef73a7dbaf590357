"""The measure of quality: fifty real tables, every system at its best reasonable setting, the same splits for all."""
