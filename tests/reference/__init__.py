"""Independent NumPy and SciPy oracles, written from the formulas and not from the library."""
