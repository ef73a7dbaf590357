"""The deep Gaussian process: layers, their composition, several of them as one."""
