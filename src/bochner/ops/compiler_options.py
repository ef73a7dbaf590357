"""What XLA is asked to do otherwise than by default, with the reason."""

# XLA would use half the vector registers of processors that have the wide ones.
WIDE_VECTORS = {"xla_cpu_prefer_vector_width": 512}

# On a GPU the search among generated products takes most of the time of compilation; libraries have good ones.
NO_SEARCH = {"xla_gpu_enable_triton_gemm": False}
