"""Variational posteriors: Gaussians over weights, and the treatment of kernels' parameters."""
