"""Deep Gaussian processes through random feature expansions."""
