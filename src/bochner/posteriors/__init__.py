"""What a deep model is uncertain about: weights, frequencies, parameters of kernels."""
